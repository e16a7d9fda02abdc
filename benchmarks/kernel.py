"""The kernel SVMs against libsvm, as scikit-learn calls it, oneDAL and scipy.

    python -m benchmarks.kernel [--quick] [--only TEXT] [--repeats 5] [--output FILE]

* SVC, BudgetSVC and LeastNormSVC against SVC, NuSVC (rescaled) and SVR(epsilon=0), all with an RBF
  kernel, at equal certified gaps.  The gap of both sides is computed here in float64 from the duals
  and the better of the side's own bias and the optimal one.  A peer runs at the loosest tolerance
  found that reaches the gap, with a small and with a large cache, and the faster of the two counts.
* LeastSquaresSVC against a Cholesky factor of the whole system; with leave-one-out; by conjugate
  gradients.
* Prediction with 5000 support vectors, memory against the limit that was set, the first fit of all.

Accuracy is that on further rows of the same kind.
"""

import argparse
import dataclasses
import functools
import importlib
import pathlib
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import harness
from benchmarks.generators import Data
from benchmarks.harness import Row, seconds
from benchmarks.peers.kernel import PEERS, Point, Task, least_squares

N_TEST = 2000
CACHES = (2000, 200)  # MB: large, and scikit-learn's default
N_TRIALS = 6
CLOSE = 0.3  # a tolerance is loose enough if the gap is at least this share of the one wanted
STUCK = 0.9  # a gap that is above this share of an earlier one has not fallen
LONG = 10.0  # seconds from which one run of a peer is measurement enough
# Solver, gap, whether with leave-one-out, and the goal: a speed-up, or with it at most this cost.
LEAST_SQUARES = (
    ("cholesky", 1e-9, False, 1.0),
    ("cholesky", 1e-9, True, 3.0),
    ("cg", 1e-6, False, 3.0),
)


@dataclasses.dataclass(frozen=True)
class Fit:
    """One comparison: the peer, data, C, the gap, the speed-up wanted, a budget, cache limit."""

    peer: str
    data: Data
    C: float
    gap: float
    goal: float
    budget: int | None = None
    cache: int | None = None  # MB for both sides; None leaves each its own

    def __str__(self) -> str:
        budget = f", budget {self.budget}" if self.budget else ""
        cache = f", cache {self.cache} MB" if self.cache else ""
        against = " against sklearnex" if "sklearnex" in self.peer else ""
        ours = f"{OURS[self.peer]}{against}, {self.data}{budget}"
        return f"{ours}, C={self.C:g}, gap {self.gap:g}{cache}"

    @classmethod
    def read(cls, content: dict[str, Any]) -> "Fit":
        """From the JSON of `dataclasses.asdict`."""
        return cls(**{**content, "data": Data(**content["data"])})

    @property
    def caches(self) -> tuple[int, ...]:
        """What the peer may choose from."""
        return CACHES if self.cache is None else (self.cache, min(self.cache, CACHES[1]))

    def model(self, gamma: float) -> Any:
        """Our estimator."""
        import anynorm

        options: dict[str, Any] = {"gamma": gamma, "tol": self.gap}
        if self.cache is not None:
            options["cache_size"] = self.cache
        if self.budget is not None:
            options["budget"] = self.budget
        return getattr(anynorm, OURS[self.peer])(C=self.C, **options)


OURS = {
    "SVC": "SVC",
    "sklearnex SVC": "SVC",
    "rescaled NuSVC": "BudgetSVC",
    "SVR(epsilon=0)": "LeastNormSVC",
}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The rows of a run; memory is a fit with its cache limit."""

    fits: tuple[Fit, ...]
    least_squares: Data
    predictions: tuple[tuple[Data, float], ...]  # rows to fit on, and the speed-up wanted
    n_predicted: int
    memory: tuple[Fit, ...]


FULL = Sizes(
    fits=(
        Fit("SVC", Data("curved", 10_000, 20, 3), 1.0, 1e-4, 3),
        Fit("SVC", Data("curved", 10_000, 20, 3), 100.0, 1e-4, 4),
        Fit("SVC", Data("digit-like", 10_000, 780, 3), 1.0, 1e-4, 8),
        Fit("SVC", Data("digit-like", 10_000, 780, 3), 100.0, 1e-4, 8),
        Fit("SVC", Data("curved", 30_000, 20, 3), 1.0, 1e-3, 4, cache=1000),
        Fit("sklearnex SVC", Data("curved", 10_000, 20, 3), 1.0, 1e-4, 1),
        Fit("sklearnex SVC", Data("curved", 10_000, 20, 3), 100.0, 1e-4, 1),
        Fit("sklearnex SVC", Data("digit-like", 10_000, 780, 3), 1.0, 1e-4, 1),
        Fit("sklearnex SVC", Data("digit-like", 10_000, 780, 3), 100.0, 1e-4, 1),
        Fit("rescaled NuSVC", Data("curved", 1000, 20, 4), 10.0, 1e-6, 2, budget=20),
        Fit("rescaled NuSVC", Data("curved", 1000, 20, 4), 10.0, 1e-6, 2, budget=200),
        Fit("rescaled NuSVC", Data("curved", 10_000, 20, 4), 10.0, 1e-6, 2, budget=200),
        Fit("rescaled NuSVC", Data("curved", 10_000, 20, 4), 10.0, 1e-6, 2, budget=2000),
        Fit("SVR(epsilon=0)", Data("curved", 5000, 20, 3), 1.0, 1e-4, 4),
    ),
    least_squares=Data("curved", 8000, 20, 3),
    predictions=((Data("curved", 5000, 20, 5), 5), (Data("digit-like", 5000, 780, 5), 10)),
    n_predicted=10_000,
    memory=(
        Fit("SVC", Data("curved", 10_000, 20, 3), 1.0, 1e-4, 1.2, cache=200),
        Fit("SVC", Data("digit-like", 10_000, 780, 3), 1.0, 1e-4, 1.2, cache=200),
    ),
)
QUICK = Sizes(
    fits=(
        Fit("SVC", Data("curved", 300, 20, 3), 1.0, 1e-4, 3),
        Fit("SVC", Data("digit-like", 300, 100, 3), 100.0, 1e-4, 8),
        Fit("SVC", Data("curved", 400, 20, 3), 1.0, 1e-3, 4, cache=1),
        Fit("sklearnex SVC", Data("curved", 300, 20, 3), 1.0, 1e-4, 1),
        Fit("rescaled NuSVC", Data("curved", 200, 20, 4), 10.0, 1e-6, 2, budget=20),
        Fit("SVR(epsilon=0)", Data("curved", 200, 20, 3), 1.0, 1e-4, 4),
    ),
    least_squares=Data("curved", 300, 20, 3),
    predictions=((Data("curved", 200, 20, 5), 5),),
    n_predicted=300,
    memory=(Fit("SVC", Data("curved", 1000, 20, 3), 1.0, 1e-3, 1.2, cache=2),),
)


# ---------------------------------------------------------------- values, apart from any solver


def kernel_problem(X: np.ndarray, y: np.ndarray, task: Task, peer: str) -> Any:
    """The problem that a peer and our estimator have in common."""
    from anynorm.kernels.gram import Gram
    from anynorm.losses import Loss
    from anynorm.norms import L1, SquaredL2, TopK
    from anynorm.problem import Problem

    loss = {
        "SVC": lambda: Loss.from_slack(L1()),
        "sklearnex SVC": lambda: Loss.from_slack(L1()),
        "rescaled NuSVC": lambda: Loss.from_slack(TopK(task.budget or 1)),
        "SVR(epsilon=0)": lambda: Loss.from_slack(L1(), "equality"),
        "LS-SVM": lambda: Loss.from_slack(SquaredL2(), "equality"),
    }[peer]()
    return Problem(y=y, C=task.C, loss=loss, gram=Gram.rbf(X, task.gamma))


def true_gap(problem: Any, dual: np.ndarray, intercept: float) -> float:
    """The relative gap of duals, with the better of a bias and the optimal one for them."""
    from anynorm.losses.bias import optimal_bias
    from anynorm.problem.certificate import certify, relative_gap

    scores = problem.scores(dual)
    certificate = certify(problem, dual, intercept, dual, tol=0.0, scores=scores)
    best = optimal_bias(problem.loss, scores, problem.y, problem.C)
    primal = min(certificate.primal, problem.objective(dual, best, scores=scores))
    return relative_gap(primal, certificate.dual)


def aimed(
    solve: Callable[[float], Any],
    gap_of: Callable[[Any], float],
    gap: float,
    tol: float,
) -> Iterator[dict[str, Any]]:
    """Look for a tolerance that just reaches `gap`, from a first guess; yields every trial.

    The gap of an SMO method is about proportional to its tolerance, so that two or three trials
    do.  Ends at a gap between 0.3 and 1 times the one wanted, where tightening hardly lowers the
    gap any more, or after six trials.
    """
    least = np.inf
    for _ in range(N_TRIALS):
        timing, result = harness.timed(lambda tol=tol: solve(tol), repeats=0)  # type: ignore[misc]
        found = gap_of(result)
        yield {**dataclasses.asdict(timing), "tol": tol, "gap": found, "result": result}
        if CLOSE * gap <= found <= gap or (found <= gap and timing.cpu > 3 * LONG):
            return
        if gap < found and STUCK * least < found:
            return
        least = min(least, found)
        tol *= min(max(0.7 * gap / max(found, 1e-300), 1e-3), 1e3)


# ---------------------------------------------------------------- what runs in fresh processes


def parts(folder: str, data: Data) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows to fit on, their labels, further rows and their labels."""
    X, y = dataclasses.replace(data, n=data.n + N_TEST).load(folder)
    return X[: data.n], y[: data.n], X[data.n :], y[data.n :]


def task_of(fit: Fit, X: np.ndarray) -> Task:
    """The parameters, with gamma = 1 / (p Var(X)) as a number for both sides."""
    return Task(fit.C, float(1 / (X.shape[1] * X.var())), fit.budget)


def dual_of(model: Any, y: np.ndarray) -> np.ndarray:
    """The dual variables a of a fitted estimator of ours."""
    beta = np.zeros(len(y))
    beta[model.support_] = np.ravel(model.dual_coef_)
    return y * beta


def fit_ours(folder: str, fit: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time our estimator; its gap is computed as the peer's is, the certificate's beside it."""
    work = Fit.read(fit)
    X, y, X_test, y_test = parts(folder, work.data)
    task = task_of(work, X)
    model = work.model(task.gamma)
    timing, fitted = harness.timed(lambda: model.fit(X, y), repeats=repeats)
    dual = dual_of(fitted, y)
    problem = kernel_problem(X, y, task, work.peer)
    return {
        **dataclasses.asdict(timing),
        "gap": true_gap(problem, dual, float(fitted.intercept_[0])),
        "certified_gap": fitted.certificate_.gap,
        "accuracy": float(np.mean(fitted.predict(X_test) == y_test)),
        "n_support": len(fitted.support_),
        "n_iter": int(fitted.n_iter_),
        "filled": float(np.abs(dual).sum() / (task.budget * task.C)) if task.budget else None,
    }


def compile_all(folder: str) -> None:
    """Run every kind of fit once, so that all later processes find compiled code."""
    for fit in QUICK.fits:
        fit_ours(folder, dataclasses.asdict(fit), 0)


def fit_peer(folder: str, fit: dict[str, Any], repeats: int) -> Iterator[dict[str, Any]]:
    """Find the peer's tolerance and time it there with every cache size; yields all trials.

    The first guess is what the first 2000 rows need.
    """
    work = Fit.read(fit)
    X, y, X_test, y_test = parts(folder, work.data)
    task = task_of(work, X)
    importlib.import_module("sklearnex.svm" if "sklearnex" in work.peer else "sklearn.svm")
    solve = PEERS[work.peer]

    def search(rows: slice, task: Task, tol: float) -> Iterator[dict[str, Any]]:
        A, b = X[rows], y[rows]
        problem = kernel_problem(A, b, task, work.peer)
        run = functools.partial(solve, A, b, task, cache_size=work.caches[0])
        gap_of: Callable[[Point], float] = lambda p: true_gap(problem, p.dual, p.intercept)  # noqa: E731
        return aimed(run, gap_of, work.gap, tol)

    few = min(len(y), 2000)
    budget = None if task.budget is None else max(1, task.budget * few // len(y))
    tol = loosest(list(search(slice(few), task._replace(budget=budget), 1e-3)), work.gap)["tol"]
    trials = []
    for trial in search(slice(None), task, tol):
        decided = trial.pop("result").decide(X_test)
        trial.update(accuracy=float(np.mean(decided == y_test)), cache=work.caches[0])
        trials.append(trial)
        yield trial
    best = loosest(trials, work.gap)
    for cache in work.caches:
        if best["cpu"] > LONG and cache == work.caches[0]:
            continue
        run = functools.partial(solve, X, y, task, best["tol"], cache)
        timing, _ = harness.timed(run, repeats=repeats)
        yield {**best, **dataclasses.asdict(timing), "cache": cache}


def loosest(trials: list[dict[str, Any]], gap: float) -> dict[str, Any]:
    """The trial of the loosest tolerance that reached the gap, or came as near to it as any."""
    gap = max(gap, min(trial["gap"] for trial in trials) / STUCK)
    reached = [trial for trial in trials if trial["gap"] <= gap]
    return max(reached, key=lambda trial: trial["tol"])


def least_squares_peer(folder: str, data: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time one Cholesky factor of the whole system."""
    X, y, _, _ = parts(folder, Data(**data))
    task = Task(0.5, float(1 / (X.shape[1] * X.var())))
    importlib.import_module("scipy.linalg")
    timing, (dual, intercept) = harness.timed(lambda: least_squares(X, y, task), repeats=repeats)
    problem = kernel_problem(X, y, task, "LS-SVM")
    return {**dataclasses.asdict(timing), "gap": true_gap(problem, dual, intercept)}


def least_squares_ours(
    folder: str, data: dict[str, Any], solver: str, gap: float, leave_one_out: bool, repeats: int
) -> dict[str, Any]:
    """Time LeastSquaresSVC by one of its solvers, with the leave-one-out error or without."""
    from anynorm import LeastSquaresSVC

    X, y, X_test, y_test = parts(folder, Data(**data))
    task = Task(0.5, float(1 / (X.shape[1] * X.var())))
    model = LeastSquaresSVC(
        C=task.C, gamma=task.gamma, tol=gap, solver=solver, leave_one_out=leave_one_out
    )
    timing, fitted = harness.timed(lambda: model.fit(X, y), repeats=repeats)
    return {
        **dataclasses.asdict(timing),
        "gap": true_gap(
            kernel_problem(X, y, task, "LS-SVM"), dual_of(fitted, y), float(fitted.intercept_[0])
        ),
        "certified_gap": fitted.certificate_.gap,
        "accuracy": float(np.mean(fitted.predict(X_test) == y_test)),
        "leave_one_out": float(fitted.loo_score_) if leave_one_out else None,
    }


def prediction_ours(**given: Any) -> dict[str, Any]:
    """Time our `predict`."""
    return _prediction("anynorm", **given)


def prediction_peer(**given: Any) -> dict[str, Any]:
    """Time that of scikit-learn."""
    return _prediction("sklearn.svm", **given)


def _prediction(
    home: str, folder: str, data: dict[str, Any], n_predicted: int, dtype: str, repeats: int
) -> dict[str, Any]:
    """Time `predict` with a model in which every row is a support vector.

    It is so where both classes have as many rows and C is small: all duals are C.
    """
    content = Data(**data)
    X, y = dataclasses.replace(content, n=2 * content.n + n_predicted).load(folder)
    X_new = X[-n_predicted:].astype(dtype)
    sides = [np.flatnonzero(y[: 2 * content.n] == label)[: content.n // 2] for label in (-1, 1)]
    rows = np.sort(np.concatenate(sides))
    X, y = X[rows].astype(dtype), y[rows]
    model = importlib.import_module(home).SVC(C=1e-4, gamma=float(1 / (X.shape[1] * X.var())))
    model.fit(X, y)
    timing, labels = harness.timed(lambda: model.predict(X_new), repeats=repeats)
    scores = model.decision_function(X_new[:500])
    return {
        **dataclasses.asdict(timing),
        "n_support": len(model.support_),
        "positive": int(np.sum(labels > 0)),
        "scores": scores.tolist(),
    }


def memory(folder: str, fit: dict[str, Any]) -> dict[str, int]:
    """Bytes of the data and of the cache limit, and those that a fit takes on top of the data."""
    work = Fit.read(fit)
    assert work.cache is not None
    X, y, _, _ = parts(folder, work.data)
    X = X.copy()
    model = work.model(task_of(work, X).gamma)
    used = harness.peak_memory(lambda: model.fit(X, y))
    return {"data": X.nbytes, "limit": work.cache * 2**20, "fit": used}


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark, with its data in a folder."""

    def __init__(self, folder: pathlib.Path, sizes: Sizes, repeats: int, limit: float) -> None:
        self.folder, self.sizes = str(folder), sizes
        self.repeats, self.limit = repeats, limit
        self.ours = functools.cache(self._ours)
        self.cholesky = functools.cache(self._cholesky)

    def _call(self, function: str, **more: Any) -> Any:
        environment = more.pop("environment", None)
        arguments = {"folder": self.folder, "repeats": self.repeats, **more}
        if function == "memory":
            del arguments["repeats"]
        return harness.call(
            f"benchmarks.kernel:{function}", arguments, limit=self.limit, environment=environment
        )

    def _ours(self, fit: Fit) -> dict[str, Any]:
        measured: dict[str, Any] = self._call("fit_ours", fit=dataclasses.asdict(fit))
        return measured

    def fit(self, fit: Fit) -> Row:
        """A fit against the peer at the same gap."""
        mine = self.ours(fit)
        arguments = {
            "folder": self.folder, "fit": dataclasses.asdict(fit), "repeats": self.repeats,
        }  # fmt: skip
        trials = harness.call_each("benchmarks.kernel:fit_peer", arguments, limit=self.limit)
        theirs, note = peer_time(trials, fit.gap, self.limit)
        notes = [note] if note else []
        notes.append(f"{mine['n_support']} support vectors; first {seconds(mine['first_cpu'])}")
        if mine["filled"] is not None:
            notes.append(f"sum of the duals {100 * mine['filled']:.3g} % of the budget's")
        if mine["gap"] > fit.gap:
            notes.append(f"ours reaches {mine['gap']:.1e} only")
        return Row(
            work=str(fit),
            ours=_measured(mine),
            other=f"{fit.peer}{_settings(theirs)} {_measured(theirs)}",
            ratio=theirs["cpu"] / mine["cpu"] if mine["gap"] <= fit.gap else None,
            bound=fit.goal,
            note="; ".join(notes),
            details={"ours": mine, fit.peer: {**theirs, "trials": trials}},
        )

    def _cholesky(self) -> dict[str, Any]:
        data = dataclasses.asdict(self.sizes.least_squares)
        measured: dict[str, Any] = self._call("least_squares_peer", data=data)
        return measured

    def least_squares(self, solver: str, gap: float, leave_one_out: bool, goal: float) -> Row:
        """LS-SVM against one Cholesky factor of the system."""
        mine = self._call(
            "least_squares_ours", data=dataclasses.asdict(self.sizes.least_squares),
            solver=solver, gap=gap, leave_one_out=leave_one_out,
        )  # fmt: skip
        theirs = self.cholesky()
        extra = " with leave-one-out" if leave_one_out else ""
        speed = theirs["cpu"] / mine["cpu"]
        left_out = mine["leave_one_out"]
        return Row(
            work=f"LS-SVM, {solver}{extra}, {self.sizes.least_squares}, gap {gap:g}",
            ours=_measured(mine),
            other=f"Cholesky of the system (scipy) {_measured(theirs)}",
            ratio=None if mine["gap"] > gap else 1 / speed if leave_one_out else speed,
            sense="<=" if leave_one_out else ">=",
            bound=goal,
            note="" if left_out is None else f"leave-one-out accuracy {left_out:.4f}",
            details={"ours": mine, "Cholesky": theirs},
        )

    def predict(self, data: Data, goal: float | None, dtype: str) -> Row:
        """Prediction with many support vectors."""
        mine, theirs = (
            self._call(
                function, data=dataclasses.asdict(data), n_predicted=self.sizes.n_predicted,
                dtype=dtype,
            )
            for function in ("prediction_ours", "prediction_peer")
        )  # fmt: skip
        scores, others = (np.array(side.pop("scores")) for side in (mine, theirs))
        off = float(np.abs(scores - others).max() / np.abs(others).max())
        return Row(
            work=f"predict, {self.sizes.n_predicted} rows, p={data.p}, {dtype}",
            ours=f"{seconds(mine['cpu'])} ({mine['n_support']} support vectors)",
            other=f"SVC.predict {seconds(theirs['cpu'])} ({theirs['n_support']} support vectors)",
            ratio=theirs["cpu"] / mine["cpu"],
            bound=goal,
            note=f"scores differ by {off:.0e} of the largest",
            details={"ours": mine, "scikit-learn": theirs},
        )

    def memory(self, fit: Fit) -> Row:
        """Data and fit together, relative to the data and the cache limit."""
        used = self._call(
            "memory", fit=dataclasses.asdict(fit), environment=harness.MEMORY_ENVIRONMENT
        )
        allowed = used["data"] + used["limit"]
        return Row(
            work=f"peak memory, {fit}",
            ours=f"{used['fit'] / 2**20:.3g} MiB on top",
            other=f"data {used['data'] / 2**20:.3g} MiB, cache limit {fit.cache} MiB",
            ratio=(used["data"] + used["fit"]) / allowed,
            sense="<=",
            bound=fit.goal,
            details=used,
        )

    def cold_start(self) -> Row:
        """The first fit with nothing in Numba's cache: it compiles."""
        fit = self.sizes.fits[0]
        with tempfile.TemporaryDirectory() as empty:
            cold = self._call(
                "fit_ours", fit=dataclasses.asdict(fit), repeats=0,
                environment={"NUMBA_CACHE_DIR": empty},
            )  # fmt: skip
        warm = self.ours(fit)
        return Row(
            work=f"first fit with an empty Numba cache, {fit}",
            ours=seconds(cold["first_cpu"]),
            other=f"the same later {seconds(warm['cpu'])}",
            ratio=cold["first_cpu"] - warm["cpu"],
            unit="s more",
            note=f"with a filled cache {seconds(warm['first_cpu'])}",
            details={"cold": cold, "warm": warm},
        )

    def jobs(self) -> harness.Jobs:
        """Every row by its name."""
        jobs: list[tuple[str, float | None, Callable[[], Row]]] = []
        for fit in self.sizes.fits:
            jobs.append((str(fit), fit.goal, functools.partial(self.fit, fit)))
        for solver, gap, leave_one_out, goal in LEAST_SQUARES:
            name = f"LS-SVM, {'leave-one-out' if leave_one_out else solver}"
            job = functools.partial(self.least_squares, solver, gap, leave_one_out, goal)
            jobs.append((name, goal, job))
        for data, goal in self.sizes.predictions:
            for dtype, wanted in (("float64", goal), ("float32", None)):
                job = functools.partial(self.predict, data, wanted, dtype)
                jobs.append((f"predict, p={data.p}, {dtype}", wanted, job))
        for fit in self.sizes.memory:
            jobs.append((f"memory, {fit}", fit.goal, functools.partial(self.memory, fit)))
        jobs.append(("cold start", None, self.cold_start))
        return [(name, harness.in_time(self.limit, name, goal, job)) for name, goal, job in jobs]


def peer_time(trials: list[dict[str, Any]], gap: float, limit: float) -> tuple[dict[str, Any], str]:
    """The fastest measurement at the loosest tolerance that reached the gap, and a note.

    Where the time was over before any trial ended, the limit is a lower bound of what it needs.
    """
    if not trials:
        nothing = {"cpu": limit, "gap": None, "accuracy": None}
        return nothing, f"the peer did not end in {limit:g} s: the ratio is at least this"
    best = loosest(trials, gap)
    # The trials of a search are single runs; where there are repeated ones those count.
    same = [trial for trial in trials if trial["tol"] == best["tol"]]
    fastest = min(same[1:] or same, key=lambda trial: trial["cpu"])
    note = "" if best["gap"] <= gap else f"the peer reaches {best['gap']:.1e} only"
    return fastest, note


def _measured(measurement: dict[str, Any]) -> str:
    gap, accuracy = measurement["gap"], measurement.get("accuracy")
    words = [] if gap is None else [f"gap {gap:.1e}"]
    words += [] if accuracy is None else [f"accuracy {accuracy:.3f}"]
    return seconds(measurement["cpu"]) + (f" ({', '.join(words)})" if words else "")


def _settings(measurement: dict[str, Any]) -> str:
    if "tol" not in measurement:
        return ""
    return f" at tol={measurement['tol']:.1e}, cache {measurement['cache']} MB"


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows, with Numba's cache filled; data are made when they are first needed."""
    harness.call("benchmarks.kernel:compile_all", {"folder": str(folder)}, limit=options.limit)
    return Run(folder, QUICK if options.quick else FULL, options.repeats, options.limit).jobs()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba"]
    return harness.command("kernel", __doc__, prepare, packages, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
