"""LinearSVC against its peers.

    python -m benchmarks.linear [--quick] [--only TEXT] [--output FILE]

The gap of both sides is computed here: the primal from the coefficients alone, against one lower
bound, the value of a dual point that a tight fit of ours found and that is checked here for
feasibility.  A peer with a dial is run at the loosest setting that reaches the gap wanted; where
none does, its best is taken and the note says so.
"""

import argparse
import dataclasses
import functools
import importlib
import pathlib
import statistics
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks import generators, harness
from benchmarks.harness import Row, measured, seconds, setting
from benchmarks.peers.linear import PEERS


@dataclasses.dataclass(frozen=True)
class Work:
    """A fit: data set, loss, C, the relative gap wanted, with or without the free bias."""

    data: str
    loss: str
    C: float
    gap: float
    intercept: bool = False

    def __str__(self) -> str:
        bias = ", free bias" if self.intercept else ""
        return f"{self.loss.replace('_', ' ')}, {self.data}, C={self.C:g}, gap {self.gap:g}{bias}"


@dataclasses.dataclass(frozen=True)
class Comparison:
    """A fit against the best of some peers."""

    work: Work
    peers: tuple[str, ...]
    speedup: float


SKLEARN, SKLEARN_PRIMAL = "scikit-learn", "scikit-learn dual=False"

COMPARISONS = (
    Comparison(Work("dense", "hinge", 1.0, 1e-6), ("clarabel",), 10),
    Comparison(Work("dense", "hinge", 100.0, 1e-6), ("clarabel",), 10),
    Comparison(Work("dense", "hinge", 0.1, 1e-4), (SKLEARN,), 2),
    Comparison(Work("sparse", "hinge", 1.0, 1e-6), (SKLEARN,), 1.5),
    Comparison(Work("sparse", "hinge", 100.0, 1e-6), (SKLEARN,), 1),
    Comparison(Work("dense", "squared_hinge", 1.0, 1e-6), (SKLEARN, SKLEARN_PRIMAL), 2),
    Comparison(Work("sparse", "squared_hinge", 1.0, 1e-6), (SKLEARN, SKLEARN_PRIMAL), 2),
)
BIAS_GOAL = {"dense": 1.5, "sparse": 2.5}
MEMORY_GOAL, IMPORT_GOAL, FIRST_FIT_GOAL = 1.2, 1.3, 0.6


# ---------------------------------------------------------------- what runs in fresh processes


def reference(folder: str, work: dict[str, Any]) -> float:
    """A rigorous lower bound of the optimum without bias, from the duals of a tight fit."""
    from anynorm.losses import get_loss
    from anynorm.problem import Problem
    from anynorm.solvers.linear import solve_linear

    wanted = Work(**work)
    X, y = generators.load(pathlib.Path(folder), wanted.data)
    problem = Problem(y=y, C=wanted.C, loss=get_loss(wanted.loss), X=X, intercept=None)
    return dual_value(wanted, X, y, solve_linear(problem, tol=1e-9).dual)


def ours(folder: str, work: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time LinearSVC; returns the timing, its primal value and what its certificate says."""
    wanted = Work(**work)
    X, y = generators.load(pathlib.Path(folder), wanted.data)
    timing, model = harness.timed(lambda: _fit(wanted, X, y), repeats=repeats)
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    return {
        **dataclasses.asdict(timing),
        "primal": primal_value(wanted, X, y, w, b),
        "certified_gap": model.certificate_.gap,
        "n_iter": int(np.max(model.n_iter_)),
    }


def peer(
    folder: str, work: dict[str, Any], name: str, gap: float, bound: float, repeats: int
) -> Iterator[dict[str, Any]]:
    """Time a peer at its loosest setting that reaches `gap`; see `harness.loosest`."""
    wanted = Work(**work)
    X, y = generators.load(pathlib.Path(folder), wanted.data)
    importlib.import_module(PEERS[name].module)
    solve = functools.partial(PEERS[name].solve, X, y, wanted.C, wanted.loss)

    def gap_of(w: np.ndarray) -> float:
        return relative_gap(primal_value(wanted, X, y, w, 0.0), bound)

    return harness.loosest(solve, gap_of, PEERS[name].tols, gap, repeats)


def memory(folder: str, work: dict[str, Any]) -> dict[str, int]:
    """Bytes of the data, and bytes that a fit takes at its peak on top of them."""
    wanted = Work(**work)
    X, y = generators.load(pathlib.Path(folder), wanted.data)
    parts = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
    return {
        "data": sum(part.nbytes for part in parts),
        "fit": harness.peak_memory(lambda: _fit(wanted, X, y)),
    }


def first_fit(folder: str, work: dict[str, Any]) -> dict[str, float]:
    """Seconds of the first fit in a process that has scikit-learn loaded, and of later ones.

    The import of the estimator and of everything it needs counts as part of the first fit.
    """
    import sklearn.svm

    assert sklearn.svm
    wanted = Work(**work)
    X, y = generators.load(pathlib.Path(folder), wanted.data)
    timing, _ = harness.timed(lambda: _fit(wanted, X, y), repeats=3)
    return dataclasses.asdict(timing)


def _fit(work: Work, X: Any, y: np.ndarray) -> Any:
    from anynorm import LinearSVC

    model = LinearSVC(
        C=work.C, loss=work.loss, fit_intercept=work.intercept, tol=work.gap, random_state=0
    )
    return model.fit(X, y)


# ---------------------------------------------------------------- values, apart from any solver


def primal_value(work: Work, X: Any, y: np.ndarray, w: np.ndarray, b: float) -> float:
    """1/2 ||w||^2 + C sum of the losses."""
    slack = np.maximum(0, 1 - y * (X @ w + b))
    return float(0.5 * w @ w + work.C * (slack.sum() if work.loss == "hinge" else slack @ slack))


def dual_value(work: Work, X: Any, y: np.ndarray, a: np.ndarray) -> float:
    """The dual objective without bias at `a`, which is clipped to be feasible."""
    a = np.clip(a, 0, work.C if work.loss == "hinge" else None)
    v = X.T @ (y * a)
    curvature = 0.0 if work.loss == "hinge" else a @ a / (4 * work.C)
    return float(a.sum() - 0.5 * v @ v - curvature)


def relative_gap(primal: float, dual: float) -> float:
    """How far apart the two are, relative to the larger."""
    return (primal - dual) / max(abs(primal), abs(dual))


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark: data in a folder, measurements that several rows share."""

    def __init__(self, folder: pathlib.Path, repeats: int, limit: float) -> None:
        self.folder, self.repeats, self.limit = str(folder), repeats, limit
        self.bound = functools.cache(self._bound)
        self.ours = functools.cache(self._ours)

    def _call(self, function: str, work: Work, **more: Any) -> Any:
        environment = more.pop("environment", None)
        arguments = {"folder": self.folder, "work": dataclasses.asdict(work), **more}
        return harness.call(
            f"benchmarks.linear:{function}", arguments, limit=self.limit, environment=environment
        )

    def _bound(self, work: Work) -> float:
        return float(self._call("reference", work))

    def _ours(self, work: Work) -> dict[str, Any]:
        measured = self._call("ours", work, repeats=self.repeats)
        measured["gap"] = measured["certified_gap"]
        if not work.intercept:
            measured["gap"] = relative_gap(measured["primal"], self.bound(work))
        return measured

    def peer(self, work: Work, name: str, gap: float) -> dict[str, Any]:
        """Time a peer at its loosest setting that reaches `gap`, else at the one nearest to it."""
        arguments = {
            "folder": self.folder,
            "work": dataclasses.asdict(work),
            "name": name,
            "gap": gap,
            "bound": self.bound(work),
            "repeats": self.repeats,
        }
        trials = harness.call_each("benchmarks.linear:peer", arguments, limit=self.limit)
        if not trials:
            return {"reached": False, "gap": None, "cpu": self.limit, "wall": self.limit}
        reached = trials[-1]["gap"] <= gap
        best = trials[-1] if reached else min(trials, key=lambda trial: trial["gap"])
        return {**best, "reached": reached, "trials": trials}

    def comparison(self, row: Comparison) -> Row:
        """LinearSVC and the fastest of its peers."""
        mine = self.ours(row.work)
        theirs = {name: self.peer(row.work, name, row.work.gap) for name in row.peers}
        name = min(theirs, key=lambda key: (not theirs[key]["reached"], theirs[key]["cpu"]))
        other = theirs[name]
        notes = []
        if not other["reached"]:
            reached = "nothing" if other["gap"] is None else f"{other['gap']:.1e}"
            notes.append(f"{name} reaches {reached} only")
        reached = mine["certified_gap"] <= row.work.gap
        if not reached:
            notes.append(f"ours stopped at a gap of {mine['certified_gap']:.1e}")
        return Row(
            work=str(row.work),
            ours=measured(mine),
            other=f"{name}{setting(other)} {measured(other)}",
            ratio=other["cpu"] / mine["cpu"] if reached else None,
            bound=row.speedup,
            note="; ".join(notes),
            details={"ours": mine, "peers": theirs},
        )

    def bias(self, work: Work) -> Row:
        """The same fit with the bias that is not regularised."""
        with_bias = dataclasses.replace(work, intercept=True)
        mine, plain = self.ours(with_bias), self.ours(work)
        reached = mine["certified_gap"] <= work.gap
        return Row(
            work=str(with_bias),
            ours=measured(mine),
            other=f"ours without bias {measured(plain)}",
            ratio=mine["cpu"] / plain["cpu"] if reached else None,
            sense="<=",
            bound=BIAS_GOAL[work.data],
            note="" if reached else f"ours stopped at a gap of {mine['certified_gap']:.1e}",
            details={"ours": mine, "without bias": plain},
        )

    def memory(self, work: Work) -> Row:
        """Data and fit together, relative to the data."""
        used = self._call("memory", work, environment=harness.MEMORY_ENVIRONMENT)
        return harness.memory_row(f"peak memory: {work}", used, "fit", MEMORY_GOAL)

    def imports(self, ours: str, other: str, goal: float | None) -> Row:
        """Two import statements, each in fresh interpreters."""
        times = {}
        for statement in (ours, other):
            trials = [
                harness.call("benchmarks.harness:import_time", {"statement": statement})
                for _ in range(max(3, self.repeats))
            ]
            times[statement] = statistics.median(trial["cpu"] for trial in trials)
        return Row(
            work=ours,
            ours=seconds(times[ours]),
            other=f"{other} {seconds(times[other])}",
            ratio=times[ours] / times[other],
            sense="<=",
            bound=goal,
            details=times,
        )

    def first_fit(self, work: Work) -> Row:
        """What the first fit of a process costs more than the same fit later."""
        self._call("first_fit", work)  # fills Numba's cache
        trials = [self._call("first_fit", work) for _ in range(3)]
        first = statistics.median(trial["first_cpu"] for trial in trials)
        later = statistics.median(trial["cpu"] for trial in trials)
        return Row(
            work=f"first fit in a fresh process: {work}",
            ours=seconds(first),
            other=f"the same later {seconds(later)}",
            ratio=first - later,
            sense="<=",
            bound=FIRST_FIT_GOAL,
            unit="s more",
            details={"trials": trials},
        )

    def cold_start(self, work: Work) -> Row:
        """The first fit with nothing in Numba's cache: it compiles."""
        with tempfile.TemporaryDirectory() as empty:
            trial = self._call("first_fit", work, environment={"NUMBA_CACHE_DIR": empty})
        return Row(
            work=f"first fit with an empty Numba cache: {work}",
            ours=seconds(trial["first_cpu"]),
            other=f"the same later {seconds(trial['cpu'])}",
            ratio=trial["first_cpu"] - trial["cpu"],
            unit="s more",
            details=trial,
        )

    def jobs(self) -> list[tuple[str, functools.partial[Row]]]:
        """Every row by its name, in the order of the table."""
        works = [row.work for row in COMPARISONS]
        fits = [Work(data, loss, 1.0, 1e-6, True) for data, loss in _CELLS]
        jobs = [(str(row.work), functools.partial(self.comparison, row)) for row in COMPARISONS]
        jobs += [(f"bias: {work}", functools.partial(self.bias, work)) for work in works]
        jobs += [(f"peak memory: {work}", functools.partial(self.memory, work)) for work in fits]
        for mine, other, goal in _IMPORTS:
            jobs.append((mine, functools.partial(self.imports, mine, other, goal)))
        hinge = [work for work in fits if work.loss == "hinge"]
        jobs += [(f"first fit: {work}", functools.partial(self.first_fit, work)) for work in hinge]
        jobs += [
            (f"cold start: {work}", functools.partial(self.cold_start, work)) for work in hinge
        ]
        return jobs


_CELLS = [(data, loss) for data in ("dense", "sparse") for loss in ("hinge", "squared_hinge")]
_IMPORTS = [
    ("import anynorm", "import sklearn", IMPORT_GOAL),
    ("from anynorm import LinearSVC", "from sklearn.svm import LinearSVC", None),
]


def write_data(folder: pathlib.Path, *, quick: bool) -> None:
    """Put both data sets where the processes of the run find them."""
    n, p = (1000, 20) if quick else (20_000, 200)
    dense = generators.dense_classification(n, p, informative=p // 4, seed=2)
    generators.save(folder, "dense", *dense)
    size = 1000 if quick else 50_000
    text = generators.sparse_text(size, size, informative=size // 100, seed=2)
    generators.save(folder, "sparse", *text)


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows, with their data in the folder."""
    write_data(folder, quick=options.quick)
    return Run(folder, options.repeats, options.limit).jobs()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba", "clarabel"]
    return harness.command("linear", __doc__, prepare, packages, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
