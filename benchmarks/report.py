"""Put the recorded benchmark tables into the README and the documentation.

    python -m benchmarks.report

Each goes between ``<!-- benchmark: NAME -->`` and ``<!-- end -->``, from
``benchmarks/results/NAME.json``.  Two NAMEs are about all of them: "summary" says how many goals
are met and which are not, and "chosen" is the README's few rows, one of each kind of work and one
of those that are lost.  Of "threads", which has a row for everything we time, the worst are shown.
"""

import json
import pathlib
import re
import statistics
from collections.abc import Callable, Sequence

from benchmarks import harness

PAGES = tuple(
    harness.ROOT / name
    for name in ("README.md", "docs/benchmarks.md", "docs/dask.md", "docs/size.md")
)
NAMES = (
    "linear", "walk", "sparse", "kernel", "search", "search_threads", "small", "bridge", "dask"
)  # fmt: skip
CHOSEN = (
    "whole exact path, microarray 38 x 7129",
    "one fit, dense 2000 x 2000, gap 1e-09",
    "SVC against sklearnex, curved 10000 x 20, C=1, gap 0.0001",
    "hinge, sparse, C=1, gap 1e-06",
    "Lasso, dense 1000 x 20,000, lambda_max / 20, gap 1e-06",
    "logistic + 1-norm, text 50000 x 50000, C=100, gap 1e-06, against a gap of 0.001",
)
_CHOSEN = ("work", "ours", "against", "ratio")
_WORST = 10  # rows that are shown of a table whose goal is the same for all
_BLOCK = re.compile(r"(<!-- benchmark: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def recorded(path: pathlib.Path) -> list[harness.Row]:
    """The rows of a results file."""
    names = list(harness.Row.__dataclass_fields__)
    rows = json.loads(path.read_text())["rows"]
    return [harness.Row(**{name: row[name] for name in names}) for row in rows]


def table(path: pathlib.Path) -> str:
    """The rows of a results file as a Markdown table, with the machine below it."""
    return f"\n{harness.table(recorded(path))}\n\n{_measured_with(path)}\n\n"


def worst(path: pathlib.Path) -> str:
    """How many rows meet the goal, the middle one, and a table of the worst."""
    rows = sorted(recorded(path), key=lambda row: row.ratio or 0.0)
    middle = statistics.median(row.ratio or 0.0 for row in rows)
    return (
        f"\n{_count(rows)} rows meet the goal; the middle one has {middle:.3g} x. The worst:\n\n"
        f"{harness.table(rows[:_WORST])}\n\n{_measured_with(path)}\n\n"
    )


def _measured_with(path: pathlib.Path) -> str:
    machine = json.loads(path.read_text())["machine"]
    return f"Measured with: {', '.join(f'{key} {value}' for key, value in machine.items())}."


def summary(rows: Sequence[harness.Row]) -> str:
    """How many of the goals are met, of those for speed and of the others, and the rest."""
    goals = [row for row in rows if row.bound is not None]
    speeds = [row for row in goals if row.sense == ">="]
    costs = [row for row in goals if row.sense == "<="]
    missed = "\n".join(f"- {row.work}: {_ratio(row)}" for row in goals if not row.met)
    return (
        f"\nOf the goals for speed {_count(speeds)} are met, of those for memory, start-up time, "
        f"overhead and messages {_count(costs)}. Missed:\n\n{missed or '- none'}\n\n"
    )


def chosen(rows: Sequence[harness.Row]) -> str:
    """The table of the README."""
    by_work = {row.work: row for row in reversed(rows)}  # the first peer of several
    return f"\n{harness.table([by_work[work] for work in CHOSEN], _CHOSEN)}\n\n"


def sizes(path: pathlib.Path) -> str:
    """Time and memory by the number of rows: a line for each estimator, a column for each size."""
    points = [row.details for row in recorded(path) if row.details]
    counts = sorted({point["n"] for point in points})
    lines = [["", *(f"{n:,} rows" for n in counts)], ["---"] * (len(counts) + 1)]
    for name in dict.fromkeys(point["name"] for point in points):
        found = {point["n"]: point for point in points if point["name"] == name}
        lines.append([f"{name}, {found[min(found)]['p']:,} columns", *map(_cell(found), counts)])
    return "\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n\n"


def _cell(found: dict[int, dict[str, float]]) -> Callable[[int], str]:
    def cell(n: int) -> str:
        if n not in found:
            return "-"
        memory = found[n]["memory"] / 2**20
        size = f"{memory:.0f}" if memory >= 100 else f"{memory:.2g}"
        return f"{harness.seconds(found[n]['cpu'])}, {size} MiB"

    return cell


def _ratio(row: harness.Row) -> str:
    cells = row.cells()
    return f"{cells['ratio']} instead of {cells['goal']}"


def everything() -> list[harness.Row]:
    """The rows of all results files that there are."""
    paths = [harness.RESULTS / f"{name}.json" for name in NAMES]
    return [row for path in paths if path.exists() for row in recorded(path)]


_OF_ALL = {"summary": summary, "chosen": chosen}
_SHOWN = {"size": sizes, "threads": worst}


def _count(rows: Sequence[harness.Row]) -> str:
    return f"{sum(bool(row.met) for row in rows)} of {len(rows)}"


def filled(page: pathlib.Path) -> str:
    """The page with every block replaced by its table."""

    def replace(match: re.Match[str]) -> str:
        if match[2] in _OF_ALL:
            return match[1] + _OF_ALL[match[2]](everything()) + match[3]
        path = harness.RESULTS / f"{match[2]}.json"
        show = _SHOWN.get(match[2], table)
        return match[1] + (show(path) if path.exists() else "") + match[3]

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
