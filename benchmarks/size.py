"""Time and memory of the estimators as the number of rows grows.

    python -m benchmarks.size [--quick] [--only TEXT] [--output FILE]

Each point is a process of its own, with one thread: a fit that loads and compiles code, then the
fit that is measured, by its CPU time and by the resident memory that it takes on top of the data.
A curve ends at its last size or after the first fit of more than `LONGEST` seconds.  There is no
peer and no goal; the curves are drawn into docs/_static/size.png.
"""

import argparse
import dataclasses
import functools
import pathlib
import sys
import time
from typing import Any

from benchmarks import generators, harness
from benchmarks.harness import Row, seconds

LONGEST = 6.0
SIZES = (500, 1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
FIGURE = harness.ROOT / "docs" / "_static" / "size.png"


@dataclasses.dataclass(frozen=True)
class Curve:
    """An estimator with its parameters, and the data it is fitted to."""

    name: str
    estimator: str
    data: str
    p: int
    parameters: dict[str, Any] = dataclasses.field(default_factory=dict)


CURVES = (
    Curve("LinearSVC", "LinearSVC", "dense", 50),
    Curve("LinearSVC, sparse", "LinearSVC", "text", 20_000),
    Curve("ReweightedSVC", "ReweightedSVC", "dense", 50),
    Curve("SparseSVC", "SparseSVC", "dense", 50),
    Curve("SparseSVC, squared hinge", "SparseSVC", "dense", 50, {"loss": "squared_hinge"}),
    Curve("SparseSVCCV", "SparseSVCCV", "dense", 50),
    Curve("SVC, rbf", "SVC", "curved", 20),
    Curve("LeastNormSVC, rbf", "LeastNormSVC", "curved", 20),
    Curve("LeastSquaresSVC, rbf", "LeastSquaresSVC", "curved", 20),
    Curve("BudgetSVC(100, strict)", "BudgetSVC", "curved", 20, {"budget": 100, "strict": True}),
)


def measure(curve: dict[str, Any], n: int, folder: str) -> dict[str, float]:
    """CPU seconds and bytes on top of the data of one fit; the fits before it do not count."""
    import anynorm

    wanted = Curve(**curve)
    X, y = generators.Data(wanted.data, n, wanted.p, 0).load(folder)
    spent = []

    def work() -> None:
        begin = time.process_time()
        getattr(anynorm, wanted.estimator)(**wanted.parameters).fit(X, y)
        spent.append(time.process_time() - begin)

    memory = harness.peak_memory(work)
    parts = [X.data, X.indices, X.indptr] if hasattr(X, "indptr") else [X]
    return {"cpu": spent[-1], "memory": memory, "data": sum(part.nbytes for part in parts)}


def point(curve: Curve, n: int, folder: str, limit: float, ended: set[str]) -> Row:
    """One size of a curve; nothing where the curve has ended before it."""
    work = f"{curve.name}, {n} x {curve.p}"
    if curve.name in ended:
        return Row(work=work, ours="not run", other="-", ratio=None)
    arguments = {"curve": dataclasses.asdict(curve), "n": n, "folder": folder}
    try:
        found = harness.call(
            "benchmarks.size:measure",
            arguments,
            limit=limit,
            environment=harness.MEMORY_ENVIRONMENT,
        )
    except TimeoutError:
        ended.add(curve.name)
        return Row(work=work, ours=f"over {limit / 2:g} s", other="-", ratio=None)
    if found["cpu"] > LONGEST:
        ended.add(curve.name)
    ours = f"{seconds(found['cpu'])}, {found['memory'] / 2**20:.3g} MiB"
    details = {"name": curve.name, "n": n, "p": curve.p, **found}
    return Row(work=work, ours=ours, other="-", ratio=None, details=details)


def draw(rows: list[Row], file: pathlib.Path) -> None:
    """Both curves of every estimator, over the number of rows."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for curve in CURVES:
        found = [row.details for row in rows if row.details.get("name") == curve.name]
        n = [point["n"] for point in found]
        kind = "--" if curve.data == "curved" else "-"
        axes[0].loglog(n, [point["cpu"] for point in found], kind, marker=".", label=curve.name)
        memory = [max(point["memory"] / 2**20, 0.1) for point in found]
        axes[1].loglog(n, memory, kind, marker=".")
    axes[0].set(xlabel="rows", ylabel="CPU seconds, one thread", title="time of a fit")
    axes[1].set(xlabel="rows", ylabel="MiB on top of the data", title="memory of a fit")
    for ax in axes:
        ax.grid(alpha=0.3)
    figure.legend(loc="outside right upper", fontsize=9)
    figure.savefig(file, dpi=120)


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The points, curve by curve."""
    ended: set[str] = set()
    sizes = SIZES[:1] if options.quick else SIZES
    return [
        (
            f"{curve.name}, {n}",
            functools.partial(point, curve, n, str(folder), options.limit, ended),
        )
        for curve in CURVES
        for n in sizes
    ]


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the points asked for, and draw them where all of them were."""
    packages = ["numpy", "scipy", "scikit-learn", "numba"]
    rows = harness.command("size", __doc__, prepare, packages, arguments)
    if len(rows) == len(CURVES) * len(SIZES):
        draw(rows, FIGURE)
    return rows


if __name__ == "__main__":
    main(sys.argv[1:])
