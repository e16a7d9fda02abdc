"""Points that other solvers find, and their values: no dual value may lie above one of them.

The solvers see the data centred and of size 1, which leaves the problem the same; their points are
taken back to the data as given and evaluated by `exact`, so that what they promise is not needed.
A solver that fails adds nothing.
"""

from __future__ import annotations

import contextlib
import warnings

import cvxpy as cp
import numpy as np

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss, get_loss
from anynorm.problem import Problem
from tests.adversarial import exact
from tests.adversarial.exact import Exact, exactly
from tests.references import solve_primal

FAILED = (AssertionError, cp.error.SolverError, np.linalg.LinAlgError, ValueError, ArithmeticError)
"""What the solvers and their modelling say where they give up; none of it is ours to judge."""


def _loss(loss) -> Loss:
    if isinstance(loss, str):
        return get_loss(loss)
    slack, equality = loss
    return Loss.from_slack(slack, "equality" if equality else "inequality")


def _power(largest: float) -> float:
    """The power of two next to a number, 1 for 0: dividing by it is exact."""
    return 2.0 ** round(np.log2(largest)) if largest > 0 else 1.0


@contextlib.contextmanager
def _quiet():
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def linear(X, y, C, loss, w, *, bias="free", scales=None, penalties=None) -> list[Exact]:
    """The value of a problem on features; `bias` is "free", None or s."""
    centre = X.mean(axis=0) if bias == "free" else np.zeros(X.shape[1])
    small = np.asarray(exactly(X) - exactly(centre), dtype=np.float64)
    size = _power(float(np.abs(small).max(initial=0.0)))
    one_norm = penalties is not None
    with _quiet():
        try:
            problem = Problem(
                y=y,
                C=C * size if one_norm else C * size**2,
                loss=_loss(loss),
                X=small / size,
                regulariser="l1" if one_norm else "l2",
                sample_weight=w,
                intercept=bias if bias in ("free", None) else bias / size,
                feature_scale=scales,
                penalty_weights=penalties,
            )
            found = solve_primal(problem)
        except FAILED:
            return []
    coef = exactly(found.coef) / size
    s = None if bias in ("free", None) else bias
    moved = Exact(found.intercept) - exactly(centre) @ coef
    value = exact.linear_value(
        X, y, C, loss, w, coef, moved, s=s, scales=scales, penalties=penalties
    )
    return [value] if np.isfinite(value) else []


def kernel(K, y, C, loss, w) -> list[Exact]:
    """The value of a kernel problem with a free bias."""
    middle = K - K.mean(axis=0)
    middle = middle - middle.mean(axis=1)[:, None]
    size = _power(float(np.abs(middle).max(initial=0.0)))
    with _quiet():
        try:
            gram = Gram.precomputed(np.asarray(middle / size, dtype=np.float64))
            weights = None if np.all(w == 1) else w  # which some norms cannot have
            problem = Problem(y=y, C=C * size, loss=_loss(loss), gram=gram, sample_weight=weights)
            found = solve_primal(problem)
        except FAILED:
            return []
    beta = exactly(y * found.coef) / size
    beta = beta - beta.mean()
    value = exact.kernel_value(K, y, C, loss, w, beta, found.intercept - (K @ beta).mean())
    return [value] if np.isfinite(value) else []


def lasso(X, y, w, radius, *, fit_intercept) -> list[Exact]:
    """The least sum of squares of coefficients with a 1-norm of at most `radius`."""
    root = np.sqrt(w)
    centre, mean = np.zeros(X.shape[1]), 0.0
    if fit_intercept:
        centre, mean = w @ X / w.sum(), float(w @ y / w.sum())
    A = root[:, None] * np.asarray(exactly(X) - exactly(centre), dtype=np.float64)
    b = root * (y - mean)
    x = _in_ball(A, b, radius)
    if x is None:
        return []
    intercept = Exact(mean) - exactly(centre) @ x if fit_intercept else Exact(0)
    return [exact.squares(X, y, w, x, intercept)]


def _in_ball(A, b, radius):
    """The x of least ||A x - b|| with ||x||_1 <= radius, or None."""
    size, length = _power(np.abs(A).max(initial=0.0)), _power(np.abs(b).max(initial=0.0))
    x = cp.Variable(A.shape[1])
    aim = cp.Minimize(cp.sum_squares(A / size @ x - b / length))
    if not _solved(cp.Problem(aim, [cp.norm1(x) <= radius * (size / length)])):
        return None
    found = exactly(x.value) * Exact(length / size)
    total = np.abs(found).sum()
    return found * (Exact(radius) / total) if total > radius else found


def hull(A) -> list[Exact]:
    """The least squared norm in the hull of columns."""
    size = _power(float(np.abs(A).max(initial=0.0)))
    x = _on_simplex(lambda x: cp.sum_squares(A / size @ x), A.shape[1])
    return [] if x is None else [exact.square(exactly(A) @ x)]


def hull_of_products(K) -> list[Exact]:
    """The same of points that are known by their products."""
    size = _power(float(np.abs(K).max(initial=0.0)))
    spectrum, basis = np.linalg.eigh((K + K.T) / (2 * size))
    factor = (basis * np.sqrt(np.maximum(spectrum, 0.0))).T
    x = _on_simplex(lambda x: cp.sum_squares(factor @ x), len(K))
    return [] if x is None else [x @ exactly(K) @ x]


def _on_simplex(value, n):
    x = cp.Variable(n, nonneg=True)
    if not _solved(cp.Problem(cp.Minimize(value(x)), [cp.sum(x) == 1])):
        return None
    found = np.maximum(exactly(x.value), 0)
    return found / found.sum()


def combination(K, radius, simplex) -> list[Exact]:
    """The least squared distance of a combination of the points to the last one."""
    size = _power(float(np.abs(K).max(initial=0.0)))
    spectrum, basis = np.linalg.eigh((K + K.T) / (2 * size))
    factor = (basis * np.sqrt(np.maximum(spectrum, 0.0))).T
    if simplex:
        x = _on_simplex(
            lambda x: cp.sum_squares(radius * (factor[:, :-1] @ x) - factor[:, -1]), len(K) - 1
        )
        x = None if x is None else Exact(radius) * x
    else:
        x = _in_ball(factor[:, :-1], factor[:, -1], radius)
    return [] if x is None else [exact.distance(K, x)]


def _solved(problem) -> bool:
    with _quiet():
        try:
            problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        except FAILED:
            return False
    return problem.status in ("optimal", "optimal_inaccurate")
