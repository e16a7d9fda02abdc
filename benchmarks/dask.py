"""Rows on the workers of a Dask cluster of processes, against one process and against dask-ml.

    python -m benchmarks.dask [--quick] [--only TEXT] [--workers 2] [--output FILE]

* The hinge, dense and sparse: times of workers and of one process, how many rounds there were, and
  the numbers that a round brings to or from a worker, as multiples of p or of p^2.
* A strict budget with the Gaussian kernel likewise, and the logistic loss beside dask-ml's two
  usual solvers at the fewest iterations that reach the gap.  Their goals are about more rows than
  are recorded: `--budget-rows 5000000` and `--peer-rows 2000000` run those.
* Only by their names: the command on Parquet files with workers that may take a quarter of the
  data (`--only memory`), and the dense hinge on 1, 2, 4, 8 and 16 workers of one thread each
  (`--only "16 workers"`, `--scaling-rows 8000000` for more rows), which needs as many cores.

Wall times need a machine whose cores nobody else uses; processor times are those of driver and
workers together.  Those of the hinge are medians of up to five fits, all others from one, after a
smaller fit by which all is compiled.
"""

import argparse
import dataclasses
import functools
import importlib.util
import pathlib
import sys
from collections.abc import Callable
from typing import Any

import joblib

from benchmarks import harness
from benchmarks.dask_fits import BLOCKS, GAP, Case
from benchmarks.dask_rows import BUDGET, PEER_SOLVERS, QUARTER
from benchmarks.harness import Row, seconds

FASTER = 1.5  # times as fast as one process, with two cores for two workers
COSTLIER = 1.5  # times one process's processor time that the cluster may take
ROUNDS = 50  # at the most
NUMBERS = 4.0  # times p, or p^2 where matrices are summed, that a round may bring
PEER_FASTER = 3.0  # times as fast as dask-ml at equal objective
BUDGET_ROWS, PEER_ROWS = 5_000_000, 2_000_000  # that the goals are about
COLUMNS = 200  # of the dense tables
COUNTS = (1, 2, 4, 8, 16)  # of workers
AS_FAST = 8.0  # times as fast as one worker: the most of them, on as many cores


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The tables of a run."""

    dense: Case
    sparse: Case
    budget_rows: int
    peer_rows: int
    memory_rows: int
    scaling_rows: int


FULL = Sizes(
    dense=Case(2_000_000, COLUMNS, 0, "hinge", 0.01),
    sparse=Case(1_000_000, 50_000, 20, "hinge", 0.1),
    budget_rows=1_000_000,
    peer_rows=200_000,
    memory_rows=496_000,
    scaling_rows=2_000_000,
)
QUICK = Sizes(
    dense=Case(80_000, 50, 0, "hinge", 0.01),
    sparse=Case(40_000, 10_000, 20, "hinge", 0.1),
    budget_rows=16_000,
    peer_rows=16_000,
    memory_rows=40_000,
    scaling_rows=80_000,
)


@dataclasses.dataclass(frozen=True)
class Run:
    """One run of the benchmark; what several rows are about is measured once."""

    folder: pathlib.Path
    sizes: Sizes
    workers: int
    limit: float

    @functools.cache  # noqa: B019  # a run lives as long as the process
    def _fit(self, case: Case) -> dict[str, Any]:
        return self._call("dask_fits:compared", case=dataclasses.asdict(case))

    @functools.cache  # noqa: B019
    def _budget(self) -> dict[str, Any]:
        return self._call("dask_rows:strict_budget", n=self.sizes.budget_rows)

    @functools.cache  # noqa: B019
    def _peer(self, solver: str) -> dict[str, Any]:
        n = self.sizes.peer_rows
        return self._call("dask_rows:beside_dask_ml", solver=solver, n=n, p=COLUMNS)

    def _call(self, function: str, **given: Any) -> dict[str, Any]:
        found: dict[str, Any] = harness.call(
            f"benchmarks.{function}", {**given, "workers": self.workers}, limit=self.limit
        )
        return found

    def _times(self, work: str, found: dict[str, Any], clock: str, goal: float | None) -> Row:
        """Workers against one process: their speed in wall time, or what they cost."""
        one, many = (found[side][clock] for side in ("one", "workers"))
        wall = clock == "wall"
        note = f"objectives differ by {found['difference']:.0e}"
        if "load" in found:
            note += f"; load average before it {found['load']:.1f}"
        return Row(
            work=f"{work}: {'wall' if wall else 'processor'} time",
            ours=f"{self.workers} workers {seconds(many)}",
            other=f"one process {seconds(one)}",
            ratio=one / many if wall else many / one,
            sense=">=" if wall else "<=",
            bound=goal,
            note=note,
            details=found,
        )

    def fit_time(self, work: str, case: Case, clock: str) -> Row:
        """A linear fit."""
        return self._times(work, self._fit(case), clock, FASTER if clock == "wall" else COSTLIER)

    def rounds(self, work: str, case: Case) -> Row:
        """How often all workers were asked."""
        asked = self._fit(case)["rounds"]
        count = sum(asked.values())
        return Row(f"{work}: rounds", f"{count}", "-", count, "<=", ROUNDS, "rounds", details=asked)

    def numbers(self, work: str, case: Case) -> Row:
        """The largest message of all rounds."""
        numbers = self._fit(case)["numbers"]
        unit, size = ("p", case.p) if case.entries else ("p^2", case.p**2)
        return Row(
            work=f"{work}: numbers to or from a worker in a round",
            ours=f"{numbers:,.0f} at the most",
            other=f"{unit} = {size:,}",
            ratio=numbers / size,
            sense="<=",
            bound=NUMBERS,
            unit=unit,
        )

    def budget_time(self, clock: str) -> Row:
        """A strict budget."""
        n = self.sizes.budget_rows
        row = self._times(f"strict budget of {BUDGET}, RBF, {n:,} x 20", self._budget(), clock,
                          FASTER if clock == "wall" else COSTLIER)  # fmt: skip
        return _of_size(row, n, BUDGET_ROWS)

    def beside(self, solver: str) -> Row:
        """dask-ml on the same workers, by processor time."""
        n, found = self.sizes.peer_rows, self._peer(solver)
        ours, theirs = found["ours"], found["peer"]
        near = theirs["gap"] <= GAP
        wall = f"wall time {seconds(ours['wall'])} against {seconds(theirs['wall'])}"
        row = Row(
            work=f"logistic, no bias, {n:,} x {COLUMNS}, against dask-ml {solver}: processor time",
            ours=f"{self.workers} workers {harness.measured(ours)}",
            other=f"dask-ml, {theirs['iterations']} iterations: {harness.measured(theirs)}",
            ratio=theirs["cpu"] / ours["cpu"],
            bound=PEER_FASTER,
            note=wall if near else f"{wall}; not near enough, so a lower bound",
            details=found,
        )
        return _of_size(row, n, PEER_ROWS)

    def memory(self) -> Row:
        """What the workers of a command on files take at their peaks, beyond their start."""
        n = self.sizes.memory_rows
        work = f"anynorm fit, hinge, {n:,} x {COLUMNS} in Parquet: memory"
        try:
            found = self._call(
                "dask_rows:within_a_quarter", folder=str(self.folder), n=n, p=COLUMNS
            )
        except RuntimeError as error:
            if "KilledWorker" not in str(error):
                raise
            note = "ended by their nannies, again and again"
            return Row(work, f"{self.workers} workers", "-", None, "<=", QUARTER, note=note)
        more = sum(found["peaks"]) - self.workers * found["taken"]
        return Row(
            work=work,
            ours=f"{self.workers} workers {more / 2**20:.0f} MiB beyond their start",
            other=f"data {found['data'] / 2**20:.0f} MiB",
            ratio=None if found["lost"] else more / found["data"],  # others took their place
            sense="<=",
            bound=QUARTER,
            note=f"{found['lost']} workers ended by their nannies; {seconds(found['wall'])}",
            details=found,
        )

    @functools.cache  # noqa: B019
    def _by_workers(self) -> list[dict[str, Any]]:
        case = dataclasses.asdict(dataclasses.replace(self.sizes.dense, n=self.sizes.scaling_rows))
        limit, counts = self.limit, list(COUNTS)
        found: list[dict[str, Any]] = harness.call(
            "benchmarks.dask_fits:by_workers", {"case": case, "counts": counts}, limit=limit
        )
        return found

    def many(self, workers: int) -> Row:
        """More workers against one."""
        one, *others = self._by_workers()
        found = next(each for each in others if each["workers"] == workers)
        goal, cores, p = AS_FAST, joblib.cpu_count(), self.sizes.dense.p
        return Row(
            work=f"hinge, dense {self.sizes.scaling_rows:,} x {p}: {workers} workers, wall time",
            ours=f"{workers} workers {seconds(found['wall'])}",
            other=f"1 worker {seconds(one['wall'])}",
            ratio=one["wall"] / found["wall"],
            bound=goal if workers == COUNTS[-1] <= cores else None,
            note=f"{found['rounds']} rounds; one without work {seconds(found['latency'])}; "
            f"processor time {seconds(found['cpu'])} against {seconds(one['cpu'])}; {cores} cores",
            details={"one": one, "workers": found},
        )

    def jobs(self, only: str) -> harness.Jobs:
        """Every row by its name."""
        jobs: list[tuple[str, Callable[[], Row]]] = []
        for name, case in (("dense", self.sizes.dense), ("sparse", self.sizes.sparse)):
            work = f"hinge, {name} {case.n:,} x {case.p:,}"
            jobs += [
                (f"{name} wall", functools.partial(self.fit_time, work, case, "wall")),
                (f"{name} processor", functools.partial(self.fit_time, work, case, "cpu")),
                (f"{name} rounds", functools.partial(self.rounds, work, case)),
                (f"{name} numbers", functools.partial(self.numbers, work, case)),
            ]
        jobs += [
            ("budget wall", functools.partial(self.budget_time, "wall")),
            ("budget processor", functools.partial(self.budget_time, "cpu")),
        ]
        if importlib.util.find_spec("dask_ml"):  # which not every Python has
            jobs += [
                (f"dask-ml {name}", functools.partial(self.beside, name)) for name in PEER_SOLVERS
            ]
        if "memory" in only:
            jobs += [("memory", self.memory)]
        if "workers" in only:  # in all names, so that one measurement makes all of its rows
            jobs += [
                (f"{workers} of {COUNTS[-1]} workers", functools.partial(self.many, workers))
                for workers in COUNTS[1:]
            ]
        return [(title, harness.in_time(self.limit, title, None, job)) for title, job in jobs]


def _of_size(row: Row, n: int, goal: int) -> Row:
    """The row, whose goal counts with the rows that it is about."""
    if n >= goal:
        return row
    about = f"the goal, {row.sense} {row.bound:g} x, is about {goal:,} rows"
    return dataclasses.replace(row, bound=None, note=f"{row.note}; {about}")


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows of the size asked for."""
    sizes = QUICK if options.quick else FULL
    given = {
        "budget_rows": options.budget_rows,
        "peer_rows": options.peer_rows,
        "scaling_rows": options.scaling_rows,
    }
    asked = {name: n // BLOCKS * BLOCKS for name, n in given.items() if n is not None}
    sizes = dataclasses.replace(sizes, **asked)
    return Run(folder, sizes, options.workers, options.limit).jobs(options.only)


def add_options(parser: argparse.ArgumentParser) -> None:
    """What this benchmark alone can be asked for."""
    parser.add_argument("--workers", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--budget-rows", type=int, help="of the strict budget")
    parser.add_argument("--peer-rows", type=int, help="of the comparison with dask-ml")
    parser.add_argument("--scaling-rows", type=int, help="of the fits on 1 to 16 workers")


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba", "dask", "distributed"]
    packages += ["dask-ml"] if importlib.util.find_spec("dask_ml") else []
    clock = "wall and CPU seconds, one thread in each process"
    return harness.command(
        "dask", __doc__, prepare, packages, arguments, clock=clock, add_options=add_options
    )


if __name__ == "__main__":
    main(sys.argv[1:])
