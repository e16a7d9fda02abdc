"""Pages of the documentation that are filled from results.

Tables go between ``<!-- papers: NAME -->`` and ``<!-- end -->``, figures into docs/_static/papers.
"""

import pathlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks import harness

DOCS = harness.ROOT / "docs"
FIGURES = DOCS / "_static" / "papers"
Makers = Mapping[str, Callable[[Any], str]]
Drawings = Mapping[str, tuple[Sequence[str], Callable[..., None]]]
_BLOCK = re.compile(r"(<!-- papers: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def markdown(lines: Sequence[Sequence[str]]) -> str:
    """A table whose columns line up; the first line is its head."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = [
        "| " + " | ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) + " |"
        for line in lines
    ]
    return "\n".join([text[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *text[1:]])


def filled(page: str, content: Mapping[str, Any], makers: Makers) -> str:
    """The page with every block that there are results for replaced by its table."""

    def replace(match: re.Match[str]) -> str:
        part = match[2]
        if part not in content:
            return match[0]
        return match[1] + makers[part](content[part]) + match[3]

    return _BLOCK.sub(replace, page)


def write(
    page: pathlib.Path, content: Mapping[str, Any], makers: Makers, drawings: Drawings
) -> None:
    """Bring a page and its figures up to date.

    A figure's file name goes with the parts that it needs and ``make(*parts, file)``.
    """
    page.write_text(filled(page.read_text(), content, makers))
    draw(content, drawings, FIGURES)
    print(f"updated {page.relative_to(harness.ROOT)} and its figures")


def draw(content: Mapping[str, Any], drawings: Drawings, folder: pathlib.Path) -> None:
    """All figures that there are results for."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (parts, make) in drawings.items():
        if all(part in content for part in parts):
            make(*(content[part] for part in parts), folder / name)


def text(content: Mapping[str, Any], makers: Makers) -> str:
    """All tables that there are results for."""
    return "\n".join(make(content[part]) for part, make in makers.items() if part in content)
