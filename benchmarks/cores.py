"""What more cores are good for: all of them against one, against oneDAL's, and BLAS left alone.

    python -m benchmarks.cores [--quick] [--only TEXT] [--repeats 3] [--output FILE]

* ``n_jobs`` of all cores against ``n_jobs=1``, by turns in one process, both with as many BLAS
  threads as a user has who sets nothing.
* The same of scikit-learn-intelex, at the tolerance at which it reaches our gap.
* Fits with ``n_jobs=1``, BLAS left alone against BLAS with one thread, by turns in one process: no
  fit may be slower because there are more cores.  `benchmarks.threads` does it for every row of the
  other benchmarks.

Times are wall times, which only a quiet machine can tell.  Goals depend on its cores: the ones of
16 cores, and where there are fewer, 1.6 for what two of them can share; such rows are recorded by
themselves.
"""

import argparse
import dataclasses
import functools
import importlib.util
import os
import pathlib
import statistics
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.harness import Row, seconds

CORES = os.cpu_count() or 1
MANY = 16  # cores, that the goals of the table are for
SOME_GOAL = 1.6  # times as fast with all cores where there are fewer, from two on
SOME_WORK = ("SVC", "LinearSVC", "predict")  # what that is asked of
TURNS = 10.0  # seconds for runs with BLAS left alone and with one thread
LONG_TURNS = 40.0  # seconds from which no more runs with one thread and with all are made
DEFAULT_GOAL = 0.95  # of the speed with one BLAS thread that the default must have
LONG_FIT = 20.0  # seconds for SVC on 40,000 rows with 16 cores
GAP = 1e-3


# ---------------------------------------------------------------- what runs in fresh processes


def points(n: int, p: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes that overlap, told apart by a few features."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    scores = X[:, : min(p, 5)].sum(axis=1) + 0.5 * X[:, 0] * X[:, 1 % p]
    return X, np.where(scores + rng.standard_normal(n) > 0, 1, -1)


def work_of(name: str, n: int, p: int, C: float, n_jobs: int) -> Callable[[], Any]:
    """A piece of work, ready to be timed."""
    from anynorm import SVC, LinearSVC, ReweightedSVCCV, SparseSVC, SparseSVCCV, sparse_svm_path

    X, y = points(n, p)
    if name == "predict":
        fitted = SVC(C, tol=GAP, n_jobs=n_jobs).fit(X[: n // 2], y[: n // 2])
        return lambda: fitted.decision_function(X)
    if name == "path":
        return lambda: sparse_svm_path(X, y)
    models: dict[str, Any] = {
        "SVC": SVC(C, tol=GAP, n_jobs=n_jobs),
        "LinearSVC": LinearSVC(C, n_jobs=n_jobs),
        "SparseSVC": SparseSVC(C, n_jobs=n_jobs),
        "SparseSVCCV": SparseSVCCV(cv=5, n_jobs=n_jobs),
        "ReweightedSVCCV": ReweightedSVCCV(5, max_rounds=5, cv=5, n_jobs=n_jobs),
    }
    return functools.partial(models[name].fit, X, y)


def measure_peer(n: int, p: int, C: float, repeats: int) -> dict[str, Any]:
    """scikit-learn-intelex with all cores, at the loosest tolerance that reaches the gap."""
    import sklearnex.svm  # noqa: F401  what it costs to import is not its speed

    from benchmarks.kernel import aimed, kernel_problem, loosest, true_gap
    from benchmarks.peers.kernel import Task, intel_svc

    X, y = points(n, p)
    task = Task(C, float(1 / (p * X.var())))
    problem = kernel_problem(X, y, task, "sklearnex SVC")
    solve = functools.partial(intel_svc, X, y, task, cache_size=1000)
    trials = list(aimed(solve, lambda f: true_gap(problem, f.dual, f.intercept), GAP, GAP))
    best = loosest(trials, GAP)
    timing, _ = harness.timed(lambda: solve(best["tol"]), repeats=repeats)
    return {**dataclasses.asdict(timing), "gap": best["gap"], "tol": best["tol"]}


def measure(name: str, n: int, p: int, C: float, n_jobs: int, repeats: int) -> dict[str, Any]:
    """Time a piece of work; the first run, which may compile, does not count."""
    warnings.simplefilter("ignore")
    timing, _ = harness.timed(work_of(name, n, p, C, n_jobs), repeats=repeats)
    return dataclasses.asdict(timing)


def measure_turns(name: str, n: int, p: int, C: float, repeats: int) -> dict[str, Any]:
    """Time a piece of work with one thread and with all, by turns: both meet the same machine."""
    warnings.simplefilter("ignore")
    works = [work_of(name, n, p, C, n_jobs) for n_jobs in (1, CORES)]
    first = [harness.once(work)[0].wall for work in works]
    pairs: list[list[float]] = []
    while len(pairs) < repeats and sum(map(sum, pairs)) <= LONG_TURNS:
        pairs.append([harness.once(work)[0].wall for work in works])
    return {"pairs": pairs or [first], "first": first}


# ---------------------------------------------------------------- rows


@dataclasses.dataclass(frozen=True)
class Run:
    """A run with its options; `part` of the full sizes."""

    repeats: int
    limit: float
    part: float

    def timed(self, name: str, n: int, p: int, C: float, n_jobs: int, blas: int) -> dict[str, Any]:
        """A measurement in a process of its own, whose BLAS would take so many threads."""
        variables = dict.fromkeys(harness.THREADS, str(blas))
        given = self._given(name, n, p, C, n_jobs)
        result: dict[str, Any] = harness.call(
            "benchmarks.cores:measure", given, limit=self.limit, environment=variables
        )
        return result

    def speedup(self, name: str, n: int, p: int, C: float, goal: float) -> Row:
        """All cores against one."""
        given = {"name": name, "n": self._rows(n), "p": p, "C": C, "repeats": self.repeats}
        variables = dict.fromkeys(harness.THREADS, str(CORES))
        found: dict[str, Any] = harness.call(
            "benchmarks.cores:measure_turns", given, limit=self.limit, environment=variables
        )
        one, all_cores = (statistics.median(side) for side in zip(*found["pairs"], strict=True))
        return Row(
            work=f"{name} {n} x {p}, C={C:g}",
            ours=f"n_jobs={CORES}: {seconds(all_cores)}",
            other=f"n_jobs=1: {seconds(one)}",
            ratio=statistics.median(one / other for one, other in found["pairs"]),
            bound=_goal(name, goal),
            note=f"{len(found['pairs'])} pairs" if len(found["pairs"]) > 1 else "one pair",
            details=found,
        )

    def against_peer(self, n: int, p: int, C: float) -> Row:
        """All cores of ours against all cores of scikit-learn-intelex, at the same gap."""
        n = self._rows(n)
        given = {"n": n, "p": p, "C": C, "repeats": self.repeats}
        ours = dataclasses.replace(self, part=1.0).timed("SVC", n, p, C, CORES, CORES)
        variables = dict.fromkeys(harness.THREADS, str(CORES))
        theirs: dict[str, Any] = harness.call(
            "benchmarks.cores:measure_peer", given, limit=self.limit, environment=variables
        )
        return Row(
            work=f"SVC {n} x {p}, C={C:g}, against sklearnex",
            ours=f"n_jobs={CORES}: {seconds(ours['wall'])}",
            other=f"sklearnex {seconds(theirs['wall'])}, gap {theirs['gap']:.1e}",
            ratio=theirs["wall"] / ours["wall"],
            bound=1.0,
            details={"ours": ours, "sklearnex": theirs},
        )

    def long_fit(self, name: str, n: int, p: int, C: float) -> Row:
        """The seconds of a long fit with all cores."""
        found = self.timed(name, n, p, C, CORES, CORES)
        return Row(
            work=f"{name} {n} x {p}, C={C:g}",
            ours=f"n_jobs={CORES}: {seconds(found['wall'])}",
            other="-",
            ratio=found["wall"],
            sense="<=",
            bound=LONG_FIT if CORES >= MANY else None,
            unit="s",
            details={"all": found},
        )

    def default(self, name: str, n: int, p: int, C: float) -> Row:
        """BLAS left alone against BLAS with one thread."""
        both_ways = {harness.BOTH_WAYS: str(TURNS)}
        found, _ = harness.make_calls(
            "benchmarks.cores:measure",
            self._given(name, n, p, C, 1),
            self.limit,
            both_ways,
            one_thread=False,
        )
        work = f"{name} {n} x {p}, C={C:g}, default threads"
        return harness.turns_row(work, found["pairs"], DEFAULT_GOAL)

    def _given(self, name: str, n: int, p: int, C: float, n_jobs: int) -> dict[str, Any]:
        sizes = {"n": self._rows(n), "p": p, "C": C, "n_jobs": n_jobs}
        return {"name": name, **sizes, "repeats": self.repeats}

    def _rows(self, n: int) -> int:
        return max(60, int(n * self.part))

    def jobs(self) -> list[tuple[str, Callable[[], Row]]]:
        """Every row by its name."""
        speedups = [
            ("SVC", 20_000, 20, 1.0, 6.0),
            ("SVC", 20_000, 20, 100.0, 6.0),
            ("predict", 10_000, 20, 1.0, 10.0),
            ("predict", 10_000, 780, 1.0, 10.0),
            ("LinearSVC", 1_280_000, 200, 1.0, 5.0),
            ("SparseSVCCV", 500, 500, 1.0, 4.0),
            ("ReweightedSVCCV", 500, 500, 1.0, 4.0),
        ]
        defaults = [
            ("path", 500, 500, 1.0),
            ("SparseSVC", 1000, 1000, 0.1),
            ("SVC", 10_000, 20, 1.0),
            ("LinearSVC", 200_000, 50, 1.0),
            ("predict", 10_000, 20, 1.0),
        ]
        return [
            *(
                ("{} of {} x {}, C={:g}".format(*row[:4]), functools.partial(self.speedup, *row))
                for row in speedups
            ),
            *(
                (f"sklearnex, C={C:g}", functools.partial(self.against_peer, 20_000, 20, C))
                for C in (1.0, 100.0)
                if importlib.util.find_spec("sklearnex")  # which not every platform has
            ),
            ("long fit", functools.partial(self.long_fit, "SVC", 40_000, 20, 100.0)),
            *((f"default, {row[0]}", functools.partial(self.default, *row)) for row in defaults),
        ]


def _goal(name: str, many: float) -> float | None:
    """What a speed-up of some work is to be on this machine."""
    if CORES >= MANY:
        return many
    return SOME_GOAL if CORES > 1 and name in SOME_WORK else None


def record_as(_: argparse.Namespace) -> str:
    """Rows of few cores do not take the place of those of many."""
    return "cores" if CORES >= MANY else "few_cores"


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows."""
    return Run(options.repeats, options.limit, 0.02 if options.quick else 1.0).jobs()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba", "threadpoolctl"]
    clock = f"Wall seconds, {CORES} cores"
    return harness.command(
        "cores", __doc__, prepare, packages, arguments, clock=clock, record_as=record_as
    )


if __name__ == "__main__":
    main(sys.argv[1:])
