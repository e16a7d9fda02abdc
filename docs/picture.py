"""Draw docs/_static/report.png and report-dark.png: the path in the report that `make demo` leaves.

    make picture

The page is opened in Chromium, in its light and its dark colours, and photographed from the
heading of the path to the end of the table of the rules.
"""

from __future__ import annotations

import io
import pathlib
import sys

from PIL import Image
from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).parents[1]
PICTURES = {"light": "report.png", "dark": "report-dark.png"}
PARTS = ("Along the path", "What the rules pick")  # the headings of what is shown
WIDTH, EDGE = 1230, 24  # of the page, and around what is shown, in pixels


def draw(report: pathlib.Path, folder: pathlib.Path) -> None:
    """Write the pictures of a report into a folder."""
    sys.path.insert(0, str(ROOT))
    from tests.app.browser.launch import start

    with sync_playwright() as driver:
        browser = start(driver)
        for scheme, name in PICTURES.items():
            page = browser.new_page(
                viewport={"width": WIDTH, "height": 1000},
                color_scheme=scheme,  # type: ignore[arg-type]
            )
            page.goto(report.as_uri())
            page.wait_for_selector("html[data-ready]", state="attached")
            boxes = [
                page.locator(
                    "section", has=page.get_by_role("heading", name=part, exact=True)
                ).last.bounding_box()
                for part in PARTS
            ]
            found = [box for box in boxes if box is not None]
            left = min(box["x"] for box in found) - EDGE
            top = min(box["y"] for box in found) - EDGE / 2
            right = max(box["x"] + box["width"] for box in found) + EDGE
            bottom = max(box["y"] + box["height"] for box in found) + EDGE / 2
            clip = {"x": left, "y": top, "width": right - left, "height": bottom - top}
            taken = page.screenshot(clip=clip, full_page=True)  # type: ignore[arg-type]
            # few colours: a third of the size, and nobody sees the difference
            Image.open(io.BytesIO(taken)).quantize(128).save(folder / name, optimize=True)
        browser.close()


if __name__ == "__main__":
    draw(ROOT / "demo" / "report.html", ROOT / "docs" / "_static")
