"""The 1-norm SVM against linear programming and against liblinear.

    python -m benchmarks.sparse [--quick] [--only TEXT] [--repeats 5] [--output FILE]

* Whole exact paths, verified at every knot, against 100 linear programmes on a grid of lambdas,
  each of which HiGHS starts from the last basis.  pyprimal's path is shown where it can be had.
* Single fits at lambda = lambda_ref / 10, on text and tables at a C of everyday, against the best
  of HiGHS's methods on both forms of the linear programme, and against PDLP.
* The squared hinge and the logistic loss with the 1-norm on sparse text-like data against
  liblinear, as LinearSVC and LogisticRegression of scikit-learn.
* Time per joint as the number of features grows, memory, and the first run of all.

Objectives and bounds are computed here from the coefficients and from the duals alone.
"""

import argparse
import dataclasses
import functools
import importlib
import importlib.util
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlog1py, xlogy

from benchmarks import harness
from benchmarks.generators import Data
from benchmarks.harness import Row, measured, seconds
from benchmarks.peers.sparse import (
    GRIDS,
    PEERS,
    SQUARED_HINGE_DIAL,
    Point,
    scikit_learn,
    scikit_learn_logistic,
)

PATH_GAP = 1e-9
N_GRID = 100
PYPRIMAL_LIMIT = 120.0
HIGHS = tuple(name for name in PEERS if name.startswith("HiGHS"))
PER_JOINT_GOAL, MEMORY_GOAL = 2.0, 1.5


@dataclasses.dataclass(frozen=True)
class Fit:
    """A single fit: the data, the gap wanted, the peers and the speed-up wanted over the best."""

    data: Data
    gap: float
    peers: tuple[str, ...]
    speedup: float
    C: float | None = None

    def __str__(self) -> str:
        place = "" if self.C is None else f", C={self.C:g}"
        return f"one fit, {self.data}{place}, gap {self.gap:g}"


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The rows of a run: paths and their goals, fits, text by loss and C, and growing widths."""

    paths: tuple[tuple[Data, float], ...]
    fits: tuple[Fit, ...]
    text: Data
    text_goals: tuple[tuple[str, float, float, float], ...]  # the last is the peer's gap
    widths: tuple[Data, ...]


FULL = Sizes(
    paths=(
        (Data("microarray", 38, 7129, 1), 50),
        (Data("dense", 100, 1000, 1), 20),
        (Data("dense", 1000, 100, 1), 5),
    ),
    fits=(
        Fit(Data("dense", 100, 10_000, 0), 1e-9, HIGHS, 40),
        Fit(Data("dense", 500, 5000, 0), 1e-9, HIGHS, 10),
        Fit(Data("dense", 2000, 2000, 0), 1e-9, HIGHS, 10),
        Fit(Data("dense", 10_000, 100, 0), 1e-9, HIGHS, 3),
        Fit(Data("dense", 5000, 5000, 0), 1e-6, ("PDLP at 1e-3",), 1),
        *(
            Fit(Data(kind, n, p, 0), 1e-6, HIGHS, 3, C)
            for kind, n, p in (
                ("newsgroup counts", 2000, 4000),
                ("newsgroup tf-idf", 2000, 4000),
                ("counts", 2000, 4000),
                ("tf-idf", 300, 20_000),
                ("tf-idf", 20_000, 300),
                ("binary", 3000, 180),
                ("whole numbers", 3000, 180),
            )
            for C in (0.1, 1.0, 10.0)
        ),
    ),
    text=Data("text", 50_000, 50_000, 2),
    text_goals=(
        ("squared hinge", 1.0, 2, 1e-6),
        ("squared hinge", 100.0, 5, 1e-6),
        ("logistic", 1.0, 2, 1e-6),
        ("logistic", 100.0, 5, 1e-6),
        ("squared hinge", 1.0, 2, 1e-3),
        ("squared hinge", 100.0, 10, 1e-3),
        ("logistic", 1.0, 2, 1e-3),
        ("logistic", 100.0, 10, 1e-3),
    ),
    widths=tuple(Data("dense", 100, p, 1) for p in (1000, 10_000, 100_000)),
)
QUICK = Sizes(
    paths=((Data("microarray", 20, 150, 1), 50), (Data("dense", 40, 15, 1), 5)),
    fits=(
        Fit(Data("dense", 30, 80, 0), 1e-9, HIGHS, 40),
        Fit(Data("dense", 60, 40, 0), 1e-6, ("PDLP at 1e-3",), 1),
        Fit(Data("counts", 300, 100, 0), 1e-6, HIGHS, 3, 1.0),
        Fit(Data("binary", 300, 30, 0), 1e-6, HIGHS, 3, 1.0),
    ),
    text=Data("text", 1000, 1000, 2),
    text_goals=(("squared hinge", 1.0, 2, 1e-6), ("logistic", 1.0, 2, 1e-3)),
    widths=tuple(Data("dense", 20, p, 1) for p in (100, 1000)),
)


# ---------------------------------------------------------------- values, apart from any solver


def objective(X: Any, y: np.ndarray, penalty: float, coef: np.ndarray, intercept: float) -> float:
    """sum of the hinge losses + penalty ||w||_1."""
    slack = np.maximum(0, 1 - y * (X @ coef + intercept))
    return float(slack.sum() + penalty * np.abs(coef).sum())


def lower_bound(X: Any, y: np.ndarray, penalty: float, dual: np.ndarray) -> float:
    """The value of the duals, clipped, balanced and scaled until they are allowed."""
    a = np.clip(dual, 0, 1)
    positive, negative = a[y > 0].sum(), a[y < 0].sum()
    if min(positive, negative) == 0:
        return 0.0
    share = min(positive, negative)
    a = a * np.where(y > 0, share / positive, share / negative)
    pull = float(np.abs(X.T @ (y * a)).max())
    return float(a.sum() * min(1.0, penalty / pull if pull else 1.0))


def squared_hinge_values(X: Any, y: np.ndarray, C: float, coef: np.ndarray) -> tuple[float, float]:
    """||w||_1 + C sum of squared hinge losses, and a lower bound made from the residuals."""
    slack = np.maximum(0, 1 - y * (X @ coef))
    value = float(np.abs(coef).sum() + C * slack @ slack)
    a = 2 * C * slack
    pull = float(np.abs(X.T @ (y * a)).max())
    if pull == 0:
        return value, 0.0
    t = min(1 / pull, 2 * C * a.sum() / (a @ a))
    return value, float(t * a.sum() - t * t * (a @ a) / (4 * C))


def logistic_values(X: Any, y: np.ndarray, C: float, coef: np.ndarray) -> tuple[float, float]:
    """||w||_1 + C sum of logistic losses, and a lower bound made from the probabilities."""
    margin = y * (X @ coef)
    value = float(np.abs(coef).sum() + C * np.logaddexp(0, -margin).sum())
    share = 1 / (1 + np.exp(np.minimum(margin, 700.0)))
    pull = C * float(np.abs(X.T @ (y * share)).max())
    share = share * min(1.0, 1 / pull if pull else 1.0)
    return value, -C * float(np.sum(xlogy(share, share) + xlog1py(1 - share, -share)))


def relative_gap(primal: float, dual: float, n: int) -> float:
    """How far apart the two are, relative to the larger or to 1e-10 of the loss at zero."""
    return (primal - dual) / max(abs(primal), abs(dual), 1e-10 * n)


class TextLoss(NamedTuple):
    """A loss on the text: what we call it, its values, scikit-learn's estimator and fit."""

    name: str
    values: Callable[..., tuple[float, float]]
    estimator: str
    fit: Callable[..., np.ndarray]


TEXT_LOSSES = {
    "squared hinge": TextLoss(
        "squared_hinge", squared_hinge_values, 'LinearSVC(penalty="l1")', scikit_learn
    ),
    "logistic": TextLoss(
        "logistic", logistic_values, 'LogisticRegression(penalty="l1")', scikit_learn_logistic
    ),
}


def reference_penalty(X: Any, y: np.ndarray) -> float:
    """A lambda from which on w is 0: of the duals that are constant in each class."""
    positive, negative = np.sum(y > 0), np.sum(y < 0)
    a = np.where(y > 0, min(1, negative / positive), min(1, positive / negative))
    return float(np.abs(X.T @ (y * a)).max())


def grid_of(X: Any, y: np.ndarray) -> np.ndarray:
    """100 values from just below the largest lambda of interest down to 1/1000 of it."""
    return reference_penalty(X, y) * np.geomspace(0.9, 1e-3, N_GRID)


# ---------------------------------------------------------------- what runs in fresh processes


def path_ours(folder: str, data: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time the whole path; returns its joints, its worst gap and its objectives on the grid."""
    from anynorm import sparse_svm_path

    X, y = Data(**data).load(folder)
    timing, path = harness.timed(lambda: sparse_svm_path(X, y), repeats=repeats)
    assert path.stopped == "end", path.stopped
    penalties = grid_of(X, y)
    values = [objective(X, y, penalty, *path.coef_at(C=1 / penalty)) for penalty in penalties]
    return {
        **dataclasses.asdict(timing),
        "n_joints": path.n_joints,
        "gap": float(path.gaps.max()),
        "values": values,
    }


def path_peer(folder: str, data: dict[str, Any], name: str, repeats: int) -> dict[str, Any]:
    """Time a peer on the grid; returns its objectives, and bounds where it has duals."""
    X, y = Data(**data).load(folder)
    penalties = grid_of(X, y)
    importlib.import_module("highspy")
    timing, points = harness.timed(lambda: GRIDS[name](X, y, penalties.tolist()), repeats=repeats)
    pairs = list(zip(penalties, points, strict=True))
    values = [objective(X, y, penalty, point.coef, point.intercept) for penalty, point in pairs]
    bounds = [
        lower_bound(X, y, penalty, point.dual) for penalty, point in pairs if point.dual is not None
    ]
    return {**dataclasses.asdict(timing), "values": values, "bounds": bounds}


def penalty_of(X: Any, y: np.ndarray, C: float | None) -> float:
    """Lambda of a fit: 1 / C, or a tenth of the reference."""
    return 0.1 * reference_penalty(X, y) if C is None else 1 / C


def fit_ours(
    folder: str, data: dict[str, Any], gap: float, C: float | None, repeats: int
) -> dict[str, Any]:
    """Time a single fit."""
    X, y = Data(**data).load(folder)
    penalty = penalty_of(X, y, C)
    problem = _problem(X, y, "hinge", 1 / penalty)
    timing, found = harness.timed(_solver(problem, gap), repeats=repeats)
    return {
        **dataclasses.asdict(timing),
        "value": objective(X, y, penalty, found.coef, found.intercept),
        "bound": lower_bound(X, y, penalty, penalty * found.dual),
        "certified_gap": found.certificate.gap,
        "n_nonzero": int(np.count_nonzero(found.coef)),
    }


def fit_peer(
    folder: str, data: dict[str, Any], name: str, C: float | None, repeats: int
) -> dict[str, Any]:
    """Time a peer on the same problem."""
    X, y = Data(**data).load(folder)
    penalty = penalty_of(X, y, C)
    importlib.import_module(PEERS[name].module)
    point: Point
    timing, point = harness.timed(lambda: PEERS[name].solve(X, y, penalty), repeats=repeats)
    assert point.dual is not None
    return {
        **dataclasses.asdict(timing),
        "value": objective(X, y, penalty, point.coef, point.intercept),
        "bound": lower_bound(X, y, penalty, point.dual),
    }


def text_ours(
    folder: str, data: dict[str, Any], loss: str, C: float, gap: float, repeats: int
) -> dict[str, Any]:
    """Time a smooth loss on the text data, without bias; `bound` is that of its duals."""
    X, y = Data(**data).load(folder)
    problem = _problem(X, y, TEXT_LOSSES[loss].name, C, bias=False)
    timing, found = harness.timed(_solver(problem, gap), repeats=repeats)
    return {
        **dataclasses.asdict(timing),
        "value": TEXT_LOSSES[loss].values(X, y, C, found.coef)[0],
        "bound": problem.dual_objective(found.dual),
        "certified_gap": found.certificate.gap,
        "n_nonzero": int(np.count_nonzero(found.coef)),
    }


def text_peer(
    folder: str, data: dict[str, Any], loss: str, C: float, gap: float, bound: float, repeats: int
) -> Iterator[dict[str, Any]]:
    """Time scikit-learn at its loosest tolerance that reaches the gap."""
    X, y = Data(**data).load(folder)
    importlib.import_module("sklearn.svm")
    importlib.import_module("sklearn.linear_model")
    kind = TEXT_LOSSES[loss]

    def gap_of(coef: np.ndarray) -> float:
        value, own = kind.values(X, y, C, coef)
        return relative_gap(value, max(bound, own), len(y))

    solve = functools.partial(kind.fit, X, y, C)
    return harness.loosest(solve, gap_of, SQUARED_HINGE_DIAL, gap, repeats)


def memory(folder: str, data: dict[str, Any]) -> dict[str, int]:
    """Bytes of the data, and bytes that the whole path takes at its peak on top of them."""
    from anynorm import sparse_svm_path

    X, y = Data(**data).load(folder)
    return {"data": X.nbytes, "path": harness.peak_memory(lambda: sparse_svm_path(X, y))}


def _solver(problem: Any, gap: float) -> Callable[[], Any]:
    """One solve to a gap, with the threads that an estimator's fit has."""
    from anynorm.design.threads import entry_point
    from anynorm.solvers.one_norm import solve_one_norm

    return functools.partial(entry_point(solve_one_norm), problem, tol=gap)


def _problem(X: Any, y: np.ndarray, loss: str, C: float, *, bias: bool = True) -> Any:
    from anynorm.losses import get_loss
    from anynorm.problem import Problem

    return Problem(
        y=y, C=C, loss=get_loss(loss), X=X, regulariser="l1", intercept="free" if bias else None
    )


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark, with its data in a folder."""

    def __init__(self, folder: pathlib.Path, sizes: Sizes, repeats: int, limit: float) -> None:
        self.folder, self.sizes = str(folder), sizes
        self.repeats, self.limit = repeats, limit
        self.path = functools.cache(self._path)

    def _call(self, function: str, data: Data, **more: Any) -> Any:
        limit = more.pop("limit", self.limit)
        environment = more.pop("environment", None)
        arguments = {"folder": self.folder, "data": dataclasses.asdict(data), **more}
        return harness.call(
            f"benchmarks.sparse:{function}", arguments, limit=limit, environment=environment
        )

    def _path(self, data: Data) -> dict[str, Any]:
        measured: dict[str, Any] = self._call("path_ours", data, repeats=self.repeats)
        if measured["gap"] > PATH_GAP:
            raise AssertionError(f"the path of {data} is verified to {measured['gap']:.1e} only")
        return measured

    def whole_path(self, data: Data, goal: float) -> Row:
        """The whole path against the linear programmes on a grid."""
        name = "100 warm HiGHS LPs"
        mine = self.path(data)
        theirs = self._call("path_peer", data, name=name, repeats=self.repeats)
        gap = _worst(theirs["values"], theirs["bounds"], data.n)
        excess = _worst(mine["values"], theirs["values"], data.n)
        notes = [f"first run of the process {seconds(mine['first_cpu'])}"]
        if gap > PATH_GAP:
            notes.append(f"HiGHS reaches {gap:.0e} only")
        if excess > PATH_GAP:
            notes.append(f"ours is up to {excess:.0e} above HiGHS")
        return Row(
            work=f"whole exact path, {data}",
            ours=f"{seconds(mine['cpu'])} ({mine['n_joints']} joints, worst gap {mine['gap']:.0e})",
            other=f"{name} {seconds(theirs['cpu'])} (worst gap {gap:.0e})",
            ratio=theirs["cpu"] / mine["cpu"] if excess <= PATH_GAP else None,
            bound=goal,
            note="; ".join(notes),
            details={"ours": mine, name: theirs},
        )

    def pyprimal(self, data: Data) -> Row:
        """The same against pyprimal's path."""
        mine = self.path(data)
        row = Row(f"whole exact path, {data}", seconds(mine["cpu"]), "pyprimal", ratio=None)
        limit = min(self.limit, PYPRIMAL_LIMIT)
        try:
            theirs = self._call("path_peer", data, name="pyprimal", repeats=1, limit=limit)
        except TimeoutError:
            return dataclasses.replace(
                row, other=f"pyprimal over {limit:g} s", ratio=limit / mine["cpu"], note="at least"
            )
        excess = _worst(theirs["values"], mine["values"], data.n)
        return dataclasses.replace(
            row,
            other=f"pyprimal {seconds(theirs['cpu'])}",
            ratio=theirs["cpu"] / mine["cpu"],
            note=f"its objective is up to {excess:.0e} above ours",
            details={"ours": mine, "pyprimal": theirs},
        )

    def one_fit(self, fit: Fit) -> Row:
        """A single fit against the best of its peers."""
        mine = self._call("fit_ours", fit.data, gap=fit.gap, C=fit.C, repeats=self.repeats)
        theirs: dict[str, dict[str, Any]] = {}
        limit = self.limit
        for name in fit.peers:
            try:
                theirs[name] = self._call(
                    "fit_peer", fit.data, name=name, C=fit.C, repeats=self.repeats, limit=limit
                )
            except TimeoutError:
                print(f"  {name} stopped after {limit:.0f} s", flush=True)
            else:
                # A run that is first in its process and twice as slow cannot be the best.
                limit = min(limit, 10 + 2 * theirs[name]["first_wall"])
        bound = max(side["bound"] for side in (mine, *theirs.values()))
        for side in (mine, *theirs.values()):
            side["gap"] = max(relative_gap(side["value"], bound, fit.data.n), 0.0)
        if not theirs:
            return Row(str(fit), measured(mine), f"none of {', '.join(fit.peers)} in time", None)
        name = min(theirs, key=lambda key: theirs[key]["cpu"])
        reached = mine["gap"] <= fit.gap
        return Row(
            work=str(fit),
            ours=measured(mine),
            other=f"{name} {measured(theirs[name])}",
            ratio=theirs[name]["cpu"] / mine["cpu"] if reached else None,
            bound=fit.speedup,
            note=f"{mine['n_nonzero']} features; first run {seconds(mine['first_cpu'])}",
            details={"ours": mine, **theirs},
        )

    def text_fit(self, data: Data, loss: str, C: float, gap: float) -> dict[str, Any]:
        """Ours with a smooth loss."""
        measured: dict[str, Any] = self._call(
            "text_ours", data, loss=loss, C=C, gap=gap, repeats=self.repeats
        )
        return measured

    def text(self, loss: str, C: float, goal: float, peer_gap: float, gap: float = 1e-6) -> Row:
        """A smooth loss with the 1-norm against scikit-learn, which may be asked for less."""
        data = self.sizes.text
        mine = self.text_fit(data, loss, C, gap)
        tight = self._call("text_ours", data, loss=loss, C=C, gap=0.01 * gap, repeats=0)
        mine["gap"] = max(relative_gap(mine["value"], tight["bound"], data.n), 0.0)
        arguments = {
            "folder": self.folder, "data": dataclasses.asdict(data), "loss": loss, "C": C,
            "gap": peer_gap, "bound": tight["bound"], "repeats": self.repeats,
        }  # fmt: skip
        trials = harness.call_each("benchmarks.sparse:text_peer", arguments, limit=self.limit)
        other, note = time_needed(trials, peer_gap, self.limit)
        against = "" if peer_gap == gap else f", against a gap of {peer_gap:g}"
        return Row(
            work=f"{loss} + 1-norm, {data}, C={C:g}, gap {gap:g}{against}",
            ours=measured(mine),
            other=f"scikit-learn {TEXT_LOSSES[loss].estimator} {measured(other)}",
            ratio=other["cpu"] / mine["cpu"] if mine["certified_gap"] <= gap else None,
            bound=goal,
            note=note or f"{mine['n_nonzero']} features",
            details={"ours": mine, "scikit-learn": {**other, "trials": trials}},
        )

    def per_joint(self) -> Row:
        """How the time per joint of the whole path grows with the number of features."""
        paths = [self.path(data) for data in self.sizes.widths]
        times = [path["cpu"] / path["n_joints"] for path in paths]
        first, last = self.sizes.widths[0], self.sizes.widths[-1]
        steps = [
            f"p={data.p}: {path['n_joints']} joints, {seconds(time)} each"
            for data, path, time in zip(self.sizes.widths, paths, times, strict=True)
        ]
        return Row(
            work=f"time per joint, n={first.n}, p from {first.p} to {last.p}",
            ours=f"{seconds(times[0])} to {seconds(times[-1])}",
            other=f"p grows {last.p // first.p} times",
            ratio=times[-1] / times[0] / (last.p / first.p),
            sense="<=",
            bound=PER_JOINT_GOAL,
            unit="x linear",
            note="; ".join(steps),
            details={str(data): path for data, path in zip(self.sizes.widths, paths, strict=True)},
        )

    def memory(self) -> Row:
        """Data and path together, relative to the data."""
        data = self.sizes.widths[-1]
        used = self._call("memory", data, environment=harness.MEMORY_ENVIRONMENT)
        return harness.memory_row(
            f"peak memory, whole exact path, {data}", used, "path", MEMORY_GOAL
        )

    def cold_start(self) -> Row:
        """The first path with nothing in Numba's cache: it compiles."""
        data, _ = self.sizes.paths[-1]
        with tempfile.TemporaryDirectory() as empty:
            variables = {"NUMBA_CACHE_DIR": empty}
            cold = self._call("path_ours", data, repeats=0, environment=variables)
        warm = self.path(data)
        return Row(
            work=f"first path with an empty Numba cache, {data}",
            ours=seconds(cold["first_cpu"]),
            other=f"the same later {seconds(warm['cpu'])}",
            ratio=cold["first_cpu"] - warm["cpu"],
            unit="s more",
            details={"cold": cold, "warm": warm},
        )

    def jobs(self) -> harness.Jobs:
        """Every row by its name."""
        jobs: list[tuple[str, Callable[[], Row]]] = []
        for data, goal in self.sizes.paths:
            job = functools.partial(self.whole_path, data, goal)
            jobs.append(
                (
                    f"path, {data}",
                    harness.in_time(self.limit, f"whole exact path, {data}", goal, job),
                )
            )
        if importlib.util.find_spec("pyprimal") is None:
            print("skipped pyprimal, which is not installed: pip install pyprimal", flush=True)
        else:
            for data, _ in self.sizes.paths:
                jobs.append((f"pyprimal, {data}", functools.partial(self.pyprimal, data)))
        if importlib.util.find_spec("ortools") is None:
            print("PDLP is HiGHS's own, as OR-tools is not installed", flush=True)
        for fit in self.sizes.fits:
            job = functools.partial(self.one_fit, fit)
            jobs.append((str(fit), harness.in_time(self.limit, str(fit), fit.speedup, job)))
        for loss, C, goal, peer_gap in self.sizes.text_goals:
            name = f"{loss}, C={C:g}, peer at {peer_gap:g}"
            job = functools.partial(self.text, loss, C, goal, peer_gap)
            jobs.append((name, harness.in_time(self.limit, name, goal, job)))
        return [
            *jobs,
            ("time per joint", self.per_joint),
            ("memory", self.memory),
            ("cold start", self.cold_start),
        ]


def _worst(values: list[float], others: list[float], n: int) -> float:
    """The largest relative distance of objectives above other values on the grid."""
    return max(relative_gap(v, b, n) for v, b in zip(values, others, strict=True))


def time_needed(
    trials: list[dict[str, Any]], gap: float, limit: float
) -> tuple[dict[str, Any], str]:
    """The trial that reached the gap; else what is known, with a note.

    Where the time was over first, the trial that was under way had run for the rest of it, and
    that is a lower bound of what the peer needs: in CPU seconds, of which the trials before had
    their share of each second.
    """
    reached = [trial for trial in trials if trial["gap"] <= gap]
    if reached:
        return reached[-1], ""
    best = min(trials, key=lambda trial: trial["gap"], default={"gap": None, "cpu": 0.0})
    spent = sum(trial["first_wall"] for trial in trials)
    share = min(1.0, sum(trial["cpu"] for trial in trials) / spent) if spent else 1.0
    rest = share * (limit - spent)
    if len(trials) < len(SQUARED_HINGE_DIAL):
        best = {**best, "cpu": max(rest, best["cpu"])}
    gap_text = "nothing" if best["gap"] is None else f"a gap of {best['gap']:.1e}"
    return best, f"scikit-learn reaches {gap_text} in {limit:g} s: the ratio is at least this"


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows, with Numba's cache filled; data are made when they are first needed."""
    warm = Run(folder, QUICK, 0, options.limit)
    warm.path(QUICK.paths[0][0])
    for loss in TEXT_LOSSES:
        warm.text_fit(QUICK.text, loss, 1.0, 1e-3)
    for fit in QUICK.fits:
        warm._call("fit_ours", fit.data, gap=fit.gap, C=fit.C, repeats=0)
    return Run(folder, QUICK if options.quick else FULL, options.repeats, options.limit).jobs()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba", "highspy"]
    return harness.command("sparse", __doc__, prepare, packages, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
