"""Draw the pictures of docs/_static that show the report of `make demo`.

    make picture

The page is opened in Chromium, in its light and its dark colours, and photographed: from the
heading of the path to the end of the table of the rules (report.png, report-dark.png), and the
samples that were held out (report-held-out.png, report-held-out-dark.png).
"""

from __future__ import annotations

import io
import pathlib
import sys
from typing import Any

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).parents[1]
SCHEMES = {"light": "", "dark": "-dark"}
PICTURES = {  # the headings of the first and the last part of each
    "report": ("Along the path", "What the rules pick"),
    "report-held-out": ("Held-out samples",),
}
WIDTH, EDGE = 1230, 24  # of the page, and around what is shown, in pixels


def draw(report: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the pictures of a report into a folder."""
    sys.path.insert(0, str(ROOT))
    from tests.app.browser.launch import start

    with sync_playwright() as driver:
        browser = start(driver)
        for scheme, suffix in SCHEMES.items():
            page = browser.new_page(
                viewport={"width": WIDTH, "height": 1000},
                color_scheme=scheme,  # type: ignore[arg-type]
            )
            page.goto(report.as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            for name, parts in PICTURES.items():
                taken = page.screenshot(clip=_around(page, parts), full_page=True)
                # few colours: a third of the size, and nobody sees the difference
                small = Image.open(io.BytesIO(taken)).quantize(128)
                small.save(folder / f"{name}{suffix}.png", optimize=True)
        browser.close()


def _around(page: Any, parts: tuple[str, ...]) -> Any:
    """The rectangle around the sections with these headings."""
    boxes = [
        page.locator(
            "section", has=page.get_by_role("heading", name=part, exact=True)
        ).last.bounding_box()
        for part in parts
    ]
    left = min(box["x"] for box in boxes) - EDGE
    top = min(box["y"] for box in boxes) - EDGE / 2
    right = max(box["x"] + box["width"] for box in boxes) + EDGE
    bottom = max(box["y"] + box["height"] for box in boxes) + EDGE / 2
    return {"x": left, "y": top, "width": right - left, "height": bottom - top}


if __name__ == "__main__":
    draw(ROOT / "demo" / "report.html", ROOT / "docs" / "_static")
