"""The bridge between the Lasso and the SVM against the solvers of both worlds.

    python -m benchmarks.bridge [--quick] [--only TEXT] [--repeats 5] [--output FILE]

* The point of least norm in a convex hull, against libsvm's one-class SVM with nu = 1/n, which is
  the same problem, and against scipy's non-negative least squares with a heavy row for the sum.
  A peer runs at the loosest setting that reaches the gap wanted, or at the one with the smallest
  gap where none does.  The gap comes from the coefficients alone, scaled to the sum 1.
* The Lasso, ConstrainedLasso at the radius that belongs to a share of the largest penalty against
  the penalised solvers at that penalty.  A peer's gap is that of the ball its coefficients just
  reach.  The ratio is to the fastest of them all.  Where celer or skglm is not installed there is
  no ratio and no goal.
* The SVM with squared slack on data with few support vectors, some rows at a time with the others
  screened, against the same block SMO on all rows at once, both to the same certified gap.
* The sublinear SVM: the share of the entries that it reads, at half the size too, and how often its
  margin, computed afterwards, is within eps of the planted one.
"""

import argparse
import dataclasses
import functools
import importlib
import importlib.util
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from benchmarks import generators, harness
from benchmarks.harness import Row, seconds, setting

HULL_GAP, HULL_GOAL = 1e-9, 3.0
HULL_PEERS = ("OneClassSVM", "scipy nnls")
# Gaussian points; 50,000 of them in R^50 have 0 in their hull unless they are shifted far.
HULLS = {
    "2000 points in R^500": (2000, 500, 0.15),
    "50,000 points in R^50": (50_000, 50, 0.8),
    "50,000 points in R^50 around 0": (50_000, 50, 0.15),
    "500 points in R^20,000": (500, 20_000, 0.15),
}
LASSO_GAP = 1e-6
LASSO_PEERS = {"celer": "celer", "skglm": "skglm", "scikit-learn": "sklearn.linear_model"}
# Data, rows, columns, the largest penalty over the one to use, and the ratio to reach.
LASSOS = {
    "dense 1000 x 20,000, lambda_max / 20": ("dense", 1000, 20_000, 20, 1.0),
    "dense 1000 x 20,000, lambda_max / 100": ("dense", 1000, 20_000, 100, 1.5),
    "text-like 50,000 x 50,000, lambda_max / 20": ("text", 50_000, 50_000, 20, 1.0),
}
QUICK_LASSOS = {"dense 100 x 500, lambda_max / 20": ("dense", 100, 500, 20, 1.0)}
QUICK_HULLS = {"200 points in R^50": (200, 50, 0.2), "500 points in R^5 around 0": (500, 5, 0.1)}
SCREENING_GAP, SCREENING_GOAL = 1e-4, 3.0
# Rows, columns, room between the classes, kernel, gamma and C: about 1 % support vectors or fewer.
# A linear kernel of few features is solved over the features, without this search.
SCREENINGS = {
    "rbf, 52,000 x 4": (52_000, 4, 0.2, "rbf", 0.3, 100.0),
    "rbf, 100,000 x 3": (100_000, 3, 0.15, "rbf", 0.5, 1000.0),
}
QUICK_SCREENINGS = {"linear, 10,000 x 5": (10_000, 5, 0.5, "linear", None, 10.0)}
MARGIN, EPS = 0.5, 0.2
READ_GOAL, MET_GOAL = 10.0, 0.95  # per cent of the entries; 19 of 20 seeds
SUBLINEAR, QUICK_SUBLINEAR = (20_000, 20), (2000, 3)  # n = d, and seeds


# ---------------------------------------------------------------- what runs in fresh processes


def hull_ours(n: int, d: int, shift: float, repeats: int) -> dict[str, Any]:
    """Time min_norm_point."""
    from anynorm import min_norm_point

    A = generators.hull(n, d, shift=shift)
    timing, solution = harness.timed(lambda: min_norm_point(A, tol=HULL_GAP), repeats=repeats)
    used = int(np.count_nonzero(solution.x))
    return {**dataclasses.asdict(timing), "gap": hull_gap(A, solution.x), "used": used}


def hull_peer(
    peer: str, n: int, d: int, shift: float, repeats: int, gap: float
) -> Iterator[dict[str, Any]]:
    """Look for the loosest setting of a peer that reaches the gap; its timing last."""
    A = generators.hull(n, d, shift=shift)
    solve, dial = {
        "OneClassSVM": (_one_class, (1e-3, 1e-5, 1e-7, 1e-8, 1e-9)),
        "scipy nnls": (_non_negative, (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)),
    }[peer]
    yield from harness.loosest(
        lambda tol: solve(A, tol), lambda x: hull_gap(A, x), dial, gap, repeats
    )


def _one_class(A: np.ndarray, tol: float) -> np.ndarray:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import OneClassSVM

    n = A.shape[1]
    model = OneClassSVM(kernel="linear", nu=1 / n, tol=tol, cache_size=500, max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(A.T)
    x = np.zeros(n)
    x[model.support_] = model.dual_coef_.ravel()
    return x


def _non_negative(A: np.ndarray, tol: float) -> np.ndarray:
    """The sum comes from a row of weight 1/tol."""
    from scipy.optimize import nnls

    heavy = np.full(A.shape[1], 1 / tol)
    x: np.ndarray = nnls(np.vstack([A, heavy]), np.r_[np.zeros(A.shape[0]), 1 / tol])[0]
    return x


def hull_gap(A: np.ndarray, x: np.ndarray) -> float:
    """The relative gap of coefficients, made feasible first."""
    from anynorm.problem.certificate import relative_gap

    x = np.maximum(x, 0.0)
    w = A @ (x / x.sum())
    primal, lowest = float(w @ w), float((A.T @ w).min())
    dual = lowest**2 / primal if lowest > 0 else 0.0
    return relative_gap(primal, dual)


def lasso_data(kind: str, n: int, p: int, share: float) -> tuple[Any, np.ndarray, float]:
    """The columns, the target and the penalty, in scikit-learn's scale."""
    if kind == "dense":
        X, y = generators.dense_regression(n, p)
    else:
        X, y = generators.sparse_text(n, p)
        X = X.tocsc()
    return X, y, float(np.abs(X.T @ y).max()) / n / share


def lasso_ours(kind: str, n: int, p: int, share: float, repeats: int) -> dict[str, Any]:
    """Time ConstrainedLasso, at the radius of scikit-learn's solution."""
    from anynorm import ConstrainedLasso

    X, y, penalty = lasso_data(kind, n, p, share)
    radius = float(np.abs(_penalised("scikit-learn", X, y, penalty, 1e-6)).sum())
    model = ConstrainedLasso(radius, fit_intercept=False, tol=LASSO_GAP)
    timing, _ = harness.timed(lambda: model.fit(X, y), repeats=repeats)
    used = int(np.count_nonzero(model.coef_))
    gap = lasso_gap(X, y, model.coef_)
    return {**dataclasses.asdict(timing), "gap": gap, "used": used, "radius": radius}


def lasso_peer(
    peer: str, kind: str, n: int, p: int, share: float, repeats: int, gap: float
) -> Iterator[dict[str, Any]]:
    """Look for the loosest tolerance of a peer that reaches the gap; its timing last."""
    X, y, penalty = lasso_data(kind, n, p, share)
    yield from harness.loosest(
        lambda tol: _penalised(peer, X, y, penalty, tol),
        lambda coef: lasso_gap(X, y, coef),
        (1e-4, 1e-6, 1e-8, 1e-10),
        gap,
        repeats,
    )


def _penalised(peer: str, X: Any, y: np.ndarray, penalty: float, tol: float) -> np.ndarray:
    Lasso = importlib.import_module(LASSO_PEERS[peer]).Lasso
    model = Lasso(penalty, fit_intercept=False, tol=tol)
    if peer == "scikit-learn":
        model.set_params(max_iter=100_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        coef: np.ndarray = model.fit(X, y).coef_
    return coef


def lasso_gap(X: Any, y: np.ndarray, coef: np.ndarray) -> float:
    """The relative gap of coefficients, in the ball that they just reach."""
    from anynorm.problem.certificate import relative_gap

    residual = y - X @ coef
    primal = float(residual @ residual)
    reach = float(np.abs(coef).sum()) * float(np.abs(X.T @ residual).max())
    margin = float(residual @ y) - reach
    dual = margin**2 / primal if margin > 0 else 0.0
    return relative_gap(primal, dual)


def screening_ours(
    n: int, p: int, apart: float, kernel: str, gamma: float, C: float, on: bool, repeats: int
) -> dict[str, Any]:
    """Time the SVM with squared slack, with or without screening."""
    from anynorm.design.threads import entry_point
    from anynorm.kernels.gram import make_gram
    from anynorm.kernels.rows import KernelRows
    from anynorm.losses import get_loss
    from anynorm.problem import Problem
    from anynorm.solvers.kernel import METHODS, solve_kernel
    from anynorm.solvers.kernel.box_duals import solve_screened

    X, y = generators.two_sides(n, p, apart=apart, curved=kernel == "rbf")
    gram = make_gram(X, kernel, **({"gamma": gamma} if kernel == "rbf" else {}))
    problem = Problem(y=y, C=C, loss=get_loss("squared_hinge"), gram=gram)

    @entry_point  # with the threads that an estimator's fit has
    def work() -> Any:
        methods = [method for method in METHODS if on or method.solve is not solve_screened]
        rows = KernelRows(gram, 500 << 20)
        return solve_kernel(problem, rows=rows, tol=SCREENING_GAP, methods=methods)

    timing, found = harness.timed(work, repeats=repeats)
    share = np.count_nonzero(found.dual) / n
    return {**dataclasses.asdict(timing), "gap": found.certificate.gap, "share": share}


def sublinear(n: int, seeds: int) -> dict[str, Any]:
    """What the sublinear SVM reads at the size n and at half of it, and the margins it finds."""
    from anynorm import sublinear_svm

    half = sublinear_svm(generators.planted_margin(n // 2, MARGIN), eps=EPS)
    A = generators.planted_margin(n, MARGIN)
    found = [sublinear_svm(A, eps=EPS, random_state=seed) for seed in range(seeds)]
    directions = np.array([solution.direction for solution in found], dtype=np.float32)
    return {
        "share": max(solution.entries_read for solution in found) / n**2,
        "half": half.entries_read / (n // 2) ** 2,
        "margins": (directions @ A).min(axis=1).tolist(),
    }


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark."""

    def __init__(self, repeats: int, limit: float, *, quick: bool) -> None:
        self.repeats, self.limit, self.quick = repeats, limit, quick

    def hull(self, title: str, n: int, d: int, shift: float) -> Row:
        """The point of least norm, against the fastest peer."""
        size = {"n": n, "d": d, "shift": shift, "repeats": self.repeats}
        ours = harness.call("benchmarks.bridge:hull_ours", size, limit=self.limit)
        peers = self._peers("benchmarks.bridge:hull_peer", HULL_PEERS, size, HULL_GAP)
        work = f"least norm in a hull, {title}, gap {HULL_GAP:g}"
        note = f"{ours['used']} points in use"
        return self._row(work, note, ours, peers, HULL_PEERS, HULL_GAP, HULL_GOAL)

    def lasso(self, title: str, kind: str, n: int, p: int, share: float, goal: float) -> Row:
        """The Lasso, against the fastest of the penalised solvers."""
        size = {"kind": kind, "n": n, "p": p, "share": share, "repeats": self.repeats}
        ours = harness.call("benchmarks.bridge:lasso_ours", size, limit=self.limit)
        names = [name for name, home in LASSO_PEERS.items() if _installed(home)]
        peers = self._peers("benchmarks.bridge:lasso_peer", names, size, LASSO_GAP)
        note = f"{ours['used']} columns in use"
        missing = [name for name in LASSO_PEERS if name not in names]
        note += f"; not installed: {', '.join(missing)}" if missing else ""
        work = f"Lasso, {title}, gap {LASSO_GAP:g}"
        row = self._row(work, note, ours, peers, names, LASSO_GAP, goal)
        return dataclasses.replace(row, ratio=None, bound=None) if missing else row

    def screening(self, title: str, *size: Any) -> Row:
        """Squared slack with screening, against the same without."""
        names = ("n", "p", "apart", "kernel", "gamma", "C")
        arguments = {**dict(zip(names, size, strict=True)), "repeats": self.repeats}
        on, off = (
            harness.call(
                "benchmarks.bridge:screening_ours", {**arguments, "on": on}, limit=self.limit
            )
            for on in (True, False)
        )
        reached = max(on["gap"], off["gap"]) <= SCREENING_GAP
        return Row(
            work=f"squared slack, {title}, screening, gap {SCREENING_GAP:g}",
            ours=_measured(on),
            other=f"without {_measured(off)}",
            ratio=off["cpu"] / on["cpu"] if reached else None,
            bound=SCREENING_GOAL,
            note=f"{on['share']:.2%} support vectors",
            details={"on": on, "off": off},
        )

    @functools.cached_property
    def _sublinear(self) -> dict[str, Any]:
        n, seeds = QUICK_SUBLINEAR if self.quick else SUBLINEAR
        size = {"n": n, "seeds": seeds}
        found = harness.call("benchmarks.bridge:sublinear", size, limit=self.limit)
        return {**size, **found}

    def sublinear(self, what: str) -> Row:
        """The sublinear SVM: what it reads, whether that share falls, how often margins are met."""
        found = self._sublinear
        n, share, half, margins = found["n"], found["share"], found["half"], found["margins"]
        met = sum(margin >= MARGIN - EPS for margin in margins)
        row = Row(
            work=f"sublinear SVM, n = d = {n:,}, eps {EPS:g}: {what}",
            ours=f"{share:.3g} of the entries",
            other="all entries once",
            ratio=100 * share,
            sense="<=",
            bound=READ_GOAL,
            unit="%",
            details=found,
        )
        if what == "falling":
            other = f"{half:.3g} at n = d = {n // 2:,}"
            return dataclasses.replace(row, other=other, ratio=share / half, bound=1.0, unit="x")
        if what == "margin":
            return dataclasses.replace(
                row, ours=f"at least {min(margins):.3f}", other=f"{MARGIN:g} is there",
                ratio=met / len(margins), sense=">=", bound=MET_GOAL, unit="of the seeds",
                note=f"{MARGIN - EPS:g} met by {met} of {len(margins)}",
            )  # fmt: skip
        return row

    def _peers(
        self, function: str, names: Iterable[str], size: dict[str, Any], gap: float
    ) -> dict[str, dict[str, Any]]:
        """Each peer's last trial that reached the gap, or the one with the smallest gap."""
        found: dict[str, dict[str, Any]] = {}
        for name in names:
            arguments = {**size, "peer": name, "gap": gap}
            trials = harness.call_each(function, arguments, limit=self.limit)
            if trials:
                enough = [trial for trial in trials if trial["gap"] <= gap]
                found[name] = enough[-1] if enough else min(trials, key=lambda t: t["gap"])
        return found

    def _row(
        self,
        work: str,
        note: str,
        ours: dict[str, Any],
        peers: dict[str, dict[str, Any]],
        names: Iterable[str],
        gap: float,
        goal: float | None,
    ) -> Row:
        """The row of a comparison; the ratio is to the fastest peer."""
        notes = [
            f"{peer} reaches {trial['gap']:.1e} only"
            for peer, trial in peers.items()
            if trial["gap"] > gap
        ]
        notes += [f"{peer}: none in {self.limit:g} s" for peer in names if peer not in peers]
        others = ", ".join(
            f"{peer}{setting(trial)} {_measured(trial)}" for peer, trial in peers.items()
        )
        fastest = min((trial["cpu"] for trial in peers.values()), default=None)
        reached = ours["gap"] <= gap and fastest is not None
        return Row(
            work=work,
            ours=_measured(ours),
            other=others,
            ratio=fastest / ours["cpu"] if reached else None,
            bound=goal,
            note="; ".join([note, *notes]),
            details={"ours": ours, **peers},
        )

    def jobs(self) -> list[tuple[str, Callable[[], Row]]]:
        """Every row by its name."""
        hulls = QUICK_HULLS if self.quick else HULLS
        lassos = QUICK_LASSOS if self.quick else LASSOS
        return [
            *((f"hull, {t}", functools.partial(self.hull, t, *size)) for t, size in hulls.items()),
            *((f"lasso, {t}", functools.partial(self.lasso, t, *c)) for t, c in lassos.items()),
            *(
                (f"screening, {t}", functools.partial(self.screening, t, *c))
                for t, c in (QUICK_SCREENINGS if self.quick else SCREENINGS).items()
            ),
            *(
                (f"sublinear, {what}", functools.partial(self.sublinear, what))
                for what in ("entries read", "falling", "margin")
            ),
        ]


def _installed(module: str) -> bool:
    return importlib.util.find_spec(module.partition(".")[0]) is not None


def _measured(measurement: dict[str, Any]) -> str:
    return f"{seconds(measurement['cpu'])} (gap {measurement['gap']:.1e})"


def prepare(folder: pathlib.Path, options: argparse.Namespace) -> harness.Jobs:
    """The rows; each process makes its data."""
    return Run(options.repeats, options.limit, quick=options.quick).jobs()


def main(arguments: list[str] | None = None) -> list[Row]:
    """Run the rows asked for."""
    packages = ["numpy", "scipy", "scikit-learn", "numba"]
    return harness.command("bridge", __doc__, prepare, packages, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
