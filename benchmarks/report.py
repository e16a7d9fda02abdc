"""Put the recorded benchmark tables into the README and the documentation.

    python -m benchmarks.report

Each goes between ``<!-- benchmark: NAME -->`` and ``<!-- end -->``, from
``benchmarks/results/NAME.json``.
"""

import json
import pathlib
import re

from benchmarks import harness

PAGES = (harness.ROOT / "README.md", harness.ROOT / "docs" / "benchmarks.md")
_BLOCK = re.compile(r"(<!-- benchmark: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(path: pathlib.Path) -> str:
    """The rows of a results file as a Markdown table, with the machine below it."""
    content = json.loads(path.read_text())
    names = list(harness.Row.__dataclass_fields__)
    rows = [harness.Row(**{name: row[name] for name in names}) for row in content["rows"]]
    about = ", ".join(f"{key} {value}" for key, value in content["machine"].items())
    return f"\n{harness.table(rows)}\n\nMeasured with: {about}.\n\n"


def filled(text: str) -> str:
    """The page with every block replaced by its table."""

    def replace(match: re.Match[str]) -> str:
        path = harness.RESULTS / f"{match[2]}.json"
        return match[1] + (table(path) if path.exists() else "") + match[3]

    return _BLOCK.sub(replace, text)


def main() -> None:
    """Rewrite the pages that changed."""
    for page in PAGES:
        text = page.read_text()
        if filled(text) != text:
            page.write_text(filled(text))
            print(f"updated {page.relative_to(harness.ROOT)}")


if __name__ == "__main__":
    main()
