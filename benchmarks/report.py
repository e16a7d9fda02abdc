"""Put the recorded benchmark tables into the README and the documentation.

    python -m benchmarks.report

Each goes between ``<!-- benchmark: NAME -->`` and ``<!-- end -->``, from
``benchmarks/results/NAME.json``.  The NAME "summary" is one table over all of them: what is faster
or slower than a peer, and how many of the other goals (memory, start-up, overhead) are met.
"""

import dataclasses
import json
import pathlib
import re
from collections.abc import Sequence

from benchmarks import harness

PAGES = tuple(
    harness.ROOT / name for name in ("README.md", "docs/benchmarks.md", "docs/compare.md")
)
NAMES = ("linear", "walk", "sparse", "kernel", "search", "small", "bridge")
_SUMMARY = ("work", "ours", "against", "ratio", "goal", "met")
_BLOCK = re.compile(r"(<!-- benchmark: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
_DETAILS = re.compile(r" \([^()]*\)| at tol=\S+ cache \d+ MB")


def recorded(path: pathlib.Path) -> list[harness.Row]:
    """The rows of a results file."""
    names = list(harness.Row.__dataclass_fields__)
    rows = json.loads(path.read_text())["rows"]
    return [harness.Row(**{name: row[name] for name in names}) for row in rows]


def table(path: pathlib.Path) -> str:
    """The rows of a results file as a Markdown table, with the machine below it."""
    machine = json.loads(path.read_text())["machine"]
    about = ", ".join(f"{key} {value}" for key, value in machine.items())
    return f"\n{harness.table(recorded(path))}\n\nMeasured with: {about}.\n\n"


def summary(paths: Sequence[pathlib.Path]) -> str:
    """One table of all ratios to peers that a goal was set for, and a sentence on the others."""
    rows = [row for path in paths for row in recorded(path) if row.bound is not None]
    peers = [row for row in rows if row.sense == ">="]
    costs = [row for row in rows if row.sense == "<="]
    short = [
        dataclasses.replace(row, ours=_DETAILS.sub("", row.ours), other=_DETAILS.sub("", row.other))
        for row in peers
    ]
    missed = "; ".join(f"{row.work} ({row.cells()['ratio']})" for row in costs if not row.met)
    return (
        f"\n{harness.table(short, _SUMMARY)}\n\n"
        f"Goals met: {_count(peers)}. Of the goals on memory, start-up time and overhead "
        f"{_count(costs)} are met; missed: {missed or 'none'}.\n\n"
    )


def _count(rows: Sequence[harness.Row]) -> str:
    return f"{sum(bool(row.met) for row in rows)} of {len(rows)}"


def filled(page: pathlib.Path) -> str:
    """The page with every block replaced by its table."""

    def replace(match: re.Match[str]) -> str:
        if match[2] == "summary":
            paths = [harness.RESULTS / f"{name}.json" for name in NAMES]
            return match[1] + summary([path for path in paths if path.exists()]) + match[3]
        path = harness.RESULTS / f"{match[2]}.json"
        return match[1] + (table(path) if path.exists() else "") + match[3]

    return _BLOCK.sub(replace, page.read_text())


def main() -> None:
    """Rewrite the pages that changed."""
    for page in PAGES:
        text = filled(page)
        if text != page.read_text():
            page.write_text(text)
            print(f"updated {page.relative_to(harness.ROOT)}")


if __name__ == "__main__":
    main()
