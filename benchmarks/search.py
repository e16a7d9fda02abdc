"""SVCCV against a grid search with scikit-learn's SVC, and against TorchKM.

    python -m benchmarks.search [--quick] [--only TEXT] [--repeats 1] [--output FILE]
                                [--threads 1] [--stop-after SECONDS]

* 10 values of C, 5 of gamma, 5 folds, an RBF kernel.  The peer fits and scores every setting in
  every fold as `GridSearchCV` does, fold by fold, each in a process of its own; its times are added
  up.  It runs at a tolerance at which every one of its fits has a relative gap of 1e-3 or less, as
  ours have, and at its default, at which some have not.  Ours includes the fit to all rows.
* 50 values of C, 10 folds, one gamma, against TorchKM on the CPU, where it is installed: at its
  default tolerance, and at one at which its fits to all rows have gaps of 1e-3 or less.  How far
  its objectives are above the optimum is computed from its coefficients, and for the folds from its
  scores at the end of each, relative to lower bounds of ours.  Its time grows with the third power
  of the rows: it is stopped when it has had six times ours and 150 seconds, or after
  `--stop-after` seconds.
  `--threads` gives both sides so many in these rows, which are then timed by the clock, run alone,
  and recorded apart.
"""

import argparse
import dataclasses
import functools
import importlib
import importlib.util
import pathlib
import signal
import sys
import time
from typing import Any, NoReturn

import numpy as np

from benchmarks import harness
from benchmarks.generators import Data
from benchmarks.harness import Row, seconds
from benchmarks.kernel import kernel_problem, true_gap
from benchmarks.peers.kernel import Task

GAP = 1e-3
TOLERANCES = (3e-6, 1e-3)  # the loosest of 1, 3, 10, ... e-6 with all gaps in reach; the default
GOAL = 15.0
N_FOLDS, N_CS, N_GAMMAS = 5, 10, 5
TORCH_FOLDS, TORCH_CS = 10, 50
TORCH_RANGE = (1e-2, 1e2)  # of C
TORCH_TOLERANCES = (1e-5, 1e-11)  # the default; one with gaps of 1e-3 for all of 1000 x 100 rows
TORCH_GOAL, TORCH_PATIENCE = 5.0, 6.0  # times our own time
TORCH_LEAST = 150.0  # seconds that it gets at least: 2000 rows end
TORCH_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # PyTorch's products
BUSY = 10.0  # times that, on the clock: a machine may have other things to do


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The data of a run."""

    grid: Data
    torch: tuple[Data, ...]


FULL = Sizes(
    Data("curved", 5000, 20, 3),
    (Data("digit-like", 2000, 1000, 3), Data("digit-like", 10_000, 1000, 3)),
)
QUICK = Sizes(Data("curved", 600, 20, 3), (Data("digit-like", 300, 100, 3),))


def grid(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The values of C and gamma that both sides try."""
    scale = 1 / (X.shape[1] * X.var())
    return np.geomspace(1e-2, 1e3, N_CS), scale * np.geomspace(1 / 16, 16, N_GAMMAS)


def splits(y: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The folds of both sides."""
    from sklearn.model_selection import StratifiedKFold

    folds = StratifiedKFold(count, shuffle=True, random_state=0)
    return list(folds.split(np.zeros((len(y), 1)), y))


# ---------------------------------------------------------------- what runs in fresh processes


def search_ours(folder: str, data: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Time SVCCV; the table of its scores."""
    from anynorm import SVCCV

    X, y = Data(**data).load(folder)
    Cs, gammas = grid(X)
    model = SVCCV(Cs, gammas=gammas, cv=splits(y, N_FOLDS), tol=GAP)
    timing, fitted = harness.timed(lambda: model.fit(X, y), repeats=repeats, budget=60.0)
    table = fitted.cv_results_
    return {
        **dataclasses.asdict(timing),
        "choice": [float(fitted.C_), float(fitted.gamma_)],
        "score": fitted.best_score_,
        "gap": float(np.nanmax(table["max_gap"])),
        "left_out": int(np.isnan(table["mean_test_score"]).sum()),
    }


def search_peer(folder: str, data: dict[str, Any], fold: int, tol: float) -> dict[str, Any]:
    """Time fits and scores of all settings in one fold; the gaps are computed apart."""
    from sklearn.svm import SVC

    X, y = Data(**data).load(folder)
    train, test = splits(y, N_FOLDS)[fold]
    Cs, gammas = grid(X)
    cpu, scores, gaps = 0.0, [], []
    for C in Cs:
        for gamma in gammas:
            began = time.process_time()
            model = SVC(C=C, gamma=gamma, tol=tol).fit(X[train], y[train])
            scores.append(float(model.score(X[test], y[test])))
            cpu += time.process_time() - began
            dual = np.zeros(len(train))
            dual[model.support_] = model.dual_coef_[0] * y[train][model.support_]
            problem = kernel_problem(X[train], y[train], Task(C, gamma), "SVC")
            gaps.append(true_gap(problem, dual, float(model.intercept_[0])))
    return {"cpu": cpu, "scores": scores, "gap": max(gaps)}


def torch_ours(folder: str, data: dict[str, Any], repeats: int, threads: int) -> dict[str, Any]:
    """Time SVCCV with one gamma."""
    from anynorm import SVCCV

    X, y, gamma = torch_task(folder, data)
    model = SVCCV(
        torch_Cs(), gammas=[gamma], cv=splits(y, TORCH_FOLDS), tol=GAP, stop_early=False,
        n_jobs=threads,
    )  # fmt: skip
    timing, fitted = harness.timed(lambda: model.fit(X, y), repeats=repeats, budget=60.0)
    gap = float(fitted.cv_results_["max_gap"].max())
    return {**dataclasses.asdict(timing), "gap": gap, "score": fitted.best_score_}


def torch_task(folder: str, data: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, float]:
    """The rows and their labels, and the width of the kernel."""
    X, y = Data(**data).load(folder)
    return X, y, float(1 / (X.shape[1] * X.var()))


def torch_Cs() -> np.ndarray:
    """The values of C that are compared with TorchKM."""
    return np.geomspace(*TORCH_RANGE, TORCH_CS)


def torch_peer(
    folder: str, data: dict[str, Any], tol: float, patience: float, threads: int
) -> dict[str, Any]:
    """Time TorchKM on the CPU, and keep what its objectives are made of in the folder.

    It is stopped after so many seconds, of CPU or with several threads on the clock, at the end of
    the operation that it is in.
    """
    TorchKMSVC = importlib.import_module("torchkm.estimators").TorchKMSVC
    importlib.import_module("torch").set_num_threads(threads)
    X, y, gamma = torch_task(folder, data)
    foldid = np.empty(len(y), dtype=np.int64)
    for number, (_, test) in enumerate(splits(y, TORCH_FOLDS)):
        foldid[test] = number + 1
    # its kernel is exp(-2 sigma ||x - z||^2)
    model = TorchKMSVC(
        kernel="rbf", Cs=torch_Cs()[::-1].copy(), nC=TORCH_CS, cv=TORCH_FOLDS, foldid=foldid,
        device="cpu", rbf_sigma=gamma / 2, store_path=True, max_iter=10_000_000, tol=tol,
    )  # fmt: skip
    ends = _fold_ends()
    clock, timer, sign = time.process_time, signal.ITIMER_PROF, signal.SIGPROF
    if threads > 1:
        clock, timer, sign = time.perf_counter, signal.ITIMER_REAL, signal.SIGALRM
    signal.signal(sign, _stop)
    signal.setitimer(timer, patience)
    began = clock()
    try:
        model.fit(X, y)
    except TimeoutError:
        return {"time": clock() - began}
    finally:
        signal.setitimer(timer, 0.0)
    found = {"time": clock() - began, "score": 1.0 - float(np.min(model.cv_mis_))}
    path = np.asarray(model.alpmat_path_, dtype=np.float64)
    np.savez(
        pathlib.Path(folder) / "torchkm.npz",
        biases=path[0], betas=path[1:],
        left_out=np.array([end[0] for end in ends], dtype=np.int64),
        lambdas=np.array([end[1] for end in ends]),
        squares=np.array([end[2] for end in ends]),
        scores=np.array([end[3] for end in ends]).reshape(len(ends), len(y)),
    )  # fmt: skip
    return found


def _fold_ends() -> list[tuple[int, float, float, np.ndarray]]:
    """What TorchKM's fits of folds end at, filled while it runs: it keeps none of that itself.

    Each of its rounds for a fold, and so the last one, ends with a search for the intercept, which
    is given K beta and beta'K beta.  Of these, and of the labels, those held out 0, we keep the
    last ones: a row that was held out, the factor of its regulariser, beta'K beta, and K beta.
    """
    solver = importlib.import_module("torchkm.cvksvm").cvksvm
    search, ends = solver.golden_section_search, {}
    kept: list[tuple[int, float, float, np.ndarray]] = []

    def watched(
        self: Any, lmin: float, lmax: float, nobs: int, ka: Any, aka: Any, y: Any, lam: float
    ) -> Any:
        held = np.flatnonzero(y.numpy() == 0)
        if len(held):
            key = (int(held[0]), float(lam))
            if key not in ends:
                ends[key] = len(kept)
                kept.append((*key, 0.0, np.empty(0)))
            kept[ends[key]] = (*key, float(aka), ka.numpy().copy())
        return search(self, lmin, lmax, nobs, ka, aka, y, lam)

    solver.golden_section_search = watched
    return kept


def torch_excess(folder: str, data: dict[str, Any], threads: int) -> dict[str, Any]:
    """How far TorchKM's objectives are above lower bounds: for all rows by C, and in the folds.

    The bounds are up to a tenth of the gap below the optima: so much is held against it at most.
    """
    from sklearn.metrics.pairwise import rbf_kernel

    from anynorm.design.threads import Threads

    X, y, gamma = torch_task(folder, data)
    Cs = torch_Cs()
    found = np.load(pathlib.Path(folder) / "torchkm.npz")
    scores = np.empty_like(found["betas"])
    for start in range(0, len(y), 1000):
        part = slice(start, start + 1000)
        scores[part] = rbf_kernel(X[part], X, gamma=gamma) @ found["betas"]
    with Threads(threads):
        bounds = lower_bounds(X, y, gamma)
    folds = {int(test.min()): fold for fold, (_, test) in enumerate(splits(y, TORCH_FOLDS))}
    whole = [
        _objective(y, Cs[-1 - k], float(found["betas"][:, k] @ scores[:, k]), scores[:, k],
                   float(found["biases"][k])) / bounds[-1][-1 - k] - 1.0
        for k in range(TORCH_CS)
    ]  # fmt: skip
    of_folds = []
    for row, factor, square, own in zip(
        found["left_out"], found["lambdas"], found["squares"], found["scores"], strict=True
    ):
        fold, k = folds[int(row)], int(np.abs(np.log(Cs * 2 * factor * len(y))).argmin())
        train = splits(y, TORCH_FOLDS)[fold][0]
        of_folds.append(
            _objective(y[train], Cs[k], float(square), own[train]) / bounds[fold][k] - 1.0
        )
    return {"excess": whole[::-1], "fold_excess": of_folds}


def lower_bounds(X: np.ndarray, y: np.ndarray, gamma: float) -> list[list[float]]:
    """Dual values to a tenth of the gap, by C, for each fold and at last for all rows."""
    from anynorm.kernels.gram import Gram
    from anynorm.kernels.rows import KernelRows
    from anynorm.losses import get_loss
    from anynorm.problem import Problem
    from anynorm.solvers.kernel import Chain, Limits, solve_family

    gram, chains = Gram.rbf(X, gamma), []
    for train, _ in [*splits(y, TORCH_FOLDS), (np.arange(len(y)), None)]:
        weights = np.zeros(len(y))
        weights[train] = 1.0
        chains.append(
            Chain([
                Problem(y=y, C=C, loss=get_loss("hinge"), gram=gram, sample_weight=weights)
                for C in torch_Cs()
            ])
        )  # fmt: skip
    limits = Limits(tol=0.1 * GAP, max_iter=100_000_000, deadline=None)
    solved = solve_family(chains, gram, KernelRows(gram, 1 << 30, sharers=len(chains)), limits)
    return [[member.solution.certificate.dual for member in members] for members in solved]


def _objective(
    y: np.ndarray, C: float, square: float, scores: np.ndarray, bias: float | None = None
) -> float:
    """The primal value of a function of this squared norm, with the bias given or a better one."""
    from anynorm.losses import get_loss
    from anynorm.losses.bias import optimal_bias

    best = optimal_bias(get_loss("hinge"), scores, y, C)
    sums = [np.maximum(0.0, 1.0 - y * (scores + b)).sum() for b in (best, bias) if b is not None]
    return 0.5 * square + C * float(min(sums))


def _stop(signum: int, frame: Any) -> NoReturn:
    raise TimeoutError


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark, with its data in a folder."""

    def __init__(
        self,
        folder: pathlib.Path,
        sizes: Sizes,
        repeats: int,
        limit: float,
        *,
        threads: int = 1,
        stop_after: float | None = None,
    ) -> None:
        self.folder, self.sizes = str(folder), sizes
        self.repeats, self.limit = repeats, limit
        self.threads, self.stop_after = threads, stop_after
        self.ours = functools.cache(self._ours)
        self.torch_ours = functools.cache(self._torch_ours)

    def _call(self, function: str, data: Data, **more: Any) -> Any:
        given = {"folder": self.folder, "data": dataclasses.asdict(data), **more}
        return harness.call(f"benchmarks.search:{function}", given, limit=self.limit)

    def _ours(self) -> dict[str, Any]:
        found: dict[str, Any] = self._call("search_ours", self.sizes.grid, repeats=self.repeats)
        return found

    def against_scikit_learn(self, tol: float) -> Row:
        """The whole search against that of scikit-learn at one tolerance."""
        mine, data = self.ours(), self.sizes.grid
        folds = [self._call("search_peer", data, fold=fold, tol=tol) for fold in range(N_FOLDS)]
        cpu, gap = sum(fold["cpu"] for fold in folds), max(fold["gap"] for fold in folds)
        X, _ = data.load(self.folder)
        Cs, gammas = grid(X)
        mean = np.mean([fold["scores"] for fold in folds], axis=0)
        best = int(mean.argmax())
        choice = [float(Cs[best // N_GAMMAS]), float(gammas[best % N_GAMMAS])]
        same = bool(np.allclose(choice, mine["choice"]))
        equal = tol != TOLERANCES[-1]
        return Row(
            work=f"search, {data}, {N_CS} C x {N_GAMMAS} gamma x {N_FOLDS} folds",
            ours=_measured(mine),
            other=f"SVC at tol={tol:.0e} {seconds(cpu)} "
            f"(gaps up to {gap:.1e}, score {mean.max():.4f})",
            ratio=cpu / mine["cpu"] if same else None,
            bound=GOAL if equal else None,
            note=("same choice" if same else f"another choice: {choice}, ours {mine['choice']}")
            + f"; {mine['left_out']} settings left out as hopeless after two folds",
            details={"ours": mine, "scikit-learn": folds},
        )

    def _torch_ours(self, data: Data) -> dict[str, Any]:
        found: dict[str, Any] = self._call(
            "torch_ours", data, repeats=self.repeats, threads=self.threads
        )
        return {**found, "time": found["cpu" if self.threads == 1 else "wall"]}

    def against_torchkm(self, data: Data, tol: float) -> Row:
        """Many values of C with one kernel against TorchKM on the CPU."""
        mine, threads = self.torch_ours(data), {"threads": self.threads}
        patience = self.stop_after or max(TORCH_LEAST, TORCH_PATIENCE * mine["time"])
        given = {"folder": self.folder, "data": dataclasses.asdict(data), **threads}
        variables = dict.fromkeys(TORCH_THREADS, str(self.threads))
        theirs = harness.call(
            "benchmarks.search:torch_peer", {**given, "tol": tol, "patience": patience},
            limit=max(self.limit, BUSY * patience), environment=variables,
        )  # fmt: skip
        if "score" in theirs:
            theirs |= harness.call(
                "benchmarks.search:torch_excess", given, limit=self.limit, environment=variables
            )
        score = f"(score {theirs['score']:.4f})" if "score" in theirs else "(stopped)"
        return Row(
            work=f"search, {data}, {TORCH_CS} C x {TORCH_FOLDS} folds",
            ours=_measured(mine),
            other=f"TorchKM at tol={tol:.0e} on the CPU {seconds(theirs['time'])} {score}",
            ratio=theirs["time"] / mine["time"],
            bound=TORCH_GOAL,
            note=_torch_note(theirs),
            details={"ours": mine, "TorchKM": theirs},
        )

    def jobs(self) -> harness.Jobs:
        """Every row by its name; with several threads those whose peer has threads."""
        jobs: list[tuple[str, float | None, Any]] = [
            (f"scikit-learn at tol={tol:.0e}", GOAL if tol != TOLERANCES[-1] else None,
             functools.partial(self.against_scikit_learn, tol))
            for tol in TOLERANCES
            if self.threads == 1
        ]  # fmt: skip
        if importlib.util.find_spec("torchkm") is not None:
            jobs += [
                (f"TorchKM {data} at tol={tol:.0e}", TORCH_GOAL,
                 functools.partial(self.against_torchkm, data, tol))
                for data in self.sizes.torch
                for tol in TORCH_TOLERANCES
            ]  # fmt: skip
        return [(name, harness.in_time(self.limit, name, goal, job)) for name, goal, job in jobs]


def _torch_note(theirs: dict[str, Any]) -> str:
    if "score" not in theirs:
        return "TorchKM had not ended: at least this ratio"
    excess, folds = np.array(theirs["excess"]), np.array(theirs["fold_excess"])
    return "TorchKM's objectives above the optimum: " + "; ".join(
        f"{what} {part.min():.1e} to {part.max():.1e}, "
        f"{np.count_nonzero(part <= GAP)} of {part.size} within {GAP:.0e}"
        for what, part in (("for all rows", excess), ("in the folds", folds))
        if part.size
    )


def _measured(mine: dict[str, Any]) -> str:
    words = f"gaps up to {mine['gap']:.1e}, score {mine['score']:.4f}"
    return f"{seconds(mine.get('time', mine['cpu']))} ({words})"


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows; data are made when they are first needed."""
    sizes = QUICK if options.quick else FULL
    return Run(
        folder, sizes, min(options.repeats, 2), options.limit,
        threads=options.threads, stop_after=options.stop_after,
    ).jobs()  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    """What the rows against TorchKM can be asked for."""
    parser.add_argument(
        "--threads", type=int, default=1, help="of both sides: the rows against TorchKM alone"
    )
    parser.add_argument("--stop-after", type=float, help="seconds of TorchKM, instead of 6 of ours")


def clock(options: argparse.Namespace) -> str:
    """What the rows are timed by."""
    several = options.threads > 1
    return f"wall seconds, {options.threads} threads each side" if several else harness.ONE_THREAD


def record_as(options: argparse.Namespace) -> str:
    """Rows with several threads do not take the place of those with one."""
    return "search_threads" if options.threads > 1 else "search"


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba"]
    return harness.command(
        "search", __doc__, prepare, packages, arguments,
        clock=clock, add_options=add_options, record_as=record_as,
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
