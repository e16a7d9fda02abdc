"""The bridge between the Lasso and the SVM against the solvers of both worlds.

    python -m benchmarks.bridge [--quick] [--only TEXT] [--repeats 5] [--output FILE]

* The point of least norm in a convex hull, against libsvm's one-class SVM with nu = 1/n, which is
  the same problem, and against scipy's non-negative least squares with a heavy row for the sum.
  A peer runs at the loosest setting that reaches the gap wanted, or at the one with the smallest
  gap where none does.  The gap comes from the coefficients alone, scaled to the sum 1.
"""

import argparse
import dataclasses
import functools
import pathlib
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks import generators, harness
from benchmarks.harness import Row, seconds

HULL_GAP, HULL_GOAL = 1e-9, 3.0
HULL_PEERS = ("OneClassSVM", "scipy nnls")
# Gaussian points; 50,000 of them in R^50 have 0 in their hull unless they are shifted far.
HULLS = {
    "2000 points in R^500": (2000, 500, 0.15),
    "50,000 points in R^50": (50_000, 50, 0.8),
    "50,000 points in R^50 around 0": (50_000, 50, 0.15),
    "500 points in R^20,000": (500, 20_000, 0.15),
}
QUICK_HULLS = {"200 points in R^50": (200, 50, 0.2), "500 points in R^5 around 0": (500, 5, 0.1)}


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
    from anynorm.certificate import relative_gap

    x = np.maximum(x, 0.0)
    w = A @ (x / x.sum())
    primal, lowest = float(w @ w), float((A.T @ w).min())
    dual = lowest**2 / primal if lowest > 0 else 0.0
    return relative_gap(primal, dual, float(np.einsum("ij,ij->j", A, A).max()))


# ---------------------------------------------------------------- the rows


class Run:
    """One run of the benchmark."""

    def __init__(self, repeats: int, limit: float, *, quick: bool) -> None:
        self.repeats, self.limit, self.quick = repeats, limit, quick

    def hull(self, title: str, n: int, d: int, shift: float) -> Row:
        """The point of least norm, against the fastest peer."""
        size = {"n": n, "d": d, "shift": shift, "repeats": self.repeats}
        ours = harness.call("benchmarks.bridge:hull_ours", size, limit=self.limit)
        peers: dict[str, dict[str, Any]] = {}
        for peer in HULL_PEERS:
            arguments = {**size, "peer": peer, "gap": HULL_GAP}
            trials = harness.call_each("benchmarks.bridge:hull_peer", arguments, limit=self.limit)
            if trials:
                enough = [trial for trial in trials if trial["gap"] <= HULL_GAP]
                peers[peer] = enough[-1] if enough else min(trials, key=lambda t: t["gap"])
        notes = [
            f"{peer} reaches {trial['gap']:.1e} only"
            for peer, trial in peers.items()
            if trial["gap"] > HULL_GAP
        ]
        notes += [f"{peer}: none in {self.limit:g} s" for peer in HULL_PEERS if peer not in peers]
        others = ", ".join(f"{peer} {_measured(trial)}" for peer, trial in peers.items())
        fastest = min((trial["cpu"] for trial in peers.values()), default=None)
        reached = ours["gap"] <= HULL_GAP and fastest is not None
        return Row(
            work=f"least norm in a hull, {title}, gap {HULL_GAP:g}",
            ours=_measured(ours),
            other=others,
            ratio=fastest / ours["cpu"] if reached else None,
            bound=HULL_GOAL,
            note="; ".join([f"{ours['used']} points in use", *notes]),
            details={"ours": ours, **peers},
        )

    def jobs(self) -> list[tuple[str, Callable[[], Row]]]:
        """Every row by its name."""
        hulls = QUICK_HULLS if self.quick else HULLS
        return [(f"hull, {t}", functools.partial(self.hull, t, *size)) for t, size in hulls.items()]


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
