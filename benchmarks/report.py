"""Put the recorded benchmark tables into the README and the documentation.

    python -m benchmarks.report

Each goes between ``<!-- benchmark: NAME -->`` and ``<!-- end -->``, from
``benchmarks/results/NAME.json``.
"""

import json
import pathlib
import re
from collections.abc import Sequence

from benchmarks import harness

# The README has the rows that a goal was set for; the documentation has everything.
COLUMNS = {
    harness.ROOT / "README.md": ("work", "ours", "against", "ratio", "goal", "met"),
    harness.ROOT / "docs" / "benchmarks.md": harness.COLUMNS,
}
_BLOCK = re.compile(r"(<!-- benchmark: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(path: pathlib.Path, columns: Sequence[str]) -> str:
    """The rows of a results file as a Markdown table, with the machine below it."""
    content = json.loads(path.read_text())
    names = list(harness.Row.__dataclass_fields__)
    rows = [harness.Row(**{name: row[name] for name in names}) for row in content["rows"]]
    if "note" not in columns:
        rows = [row for row in rows if row.bound is not None]
    about = ", ".join(f"{key} {value}" for key, value in content["machine"].items())
    return f"\n{harness.table(rows, columns)}\n\nMeasured with: {about}.\n\n"


def filled(page: pathlib.Path) -> str:
    """The page with every block replaced by its table."""

    def replace(match: re.Match[str]) -> str:
        path = harness.RESULTS / f"{match[2]}.json"
        return match[1] + (table(path, COLUMNS[page]) if path.exists() else "") + match[3]

    return _BLOCK.sub(replace, page.read_text())


def main() -> None:
    """Rewrite the pages that changed."""
    for page in COLUMNS:
        text = filled(page)
        if text != page.read_text():
            page.write_text(text)
            print(f"updated {page.relative_to(harness.ROOT)}")


if __name__ == "__main__":
    main()
