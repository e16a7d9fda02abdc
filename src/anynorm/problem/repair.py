"""The repair of dual variables: any vector made feasible, and scaled to its best dual value.

1. wrong signs, rows of weight 0 and what lies outside a box are removed;
2. with a free bias and beta = y * a, the heavier sign of beta is scaled down until
   sum(beta) = 0, which keeps a in every monotone ball;
3. columns that are never penalised get X_j'beta = 0 by the smallest relative change of a;
4. a is scaled by the t that maximises the dual objective among the allowed ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.design.threads import by_rows

if TYPE_CHECKING:
    from anynorm.problem.svm import Problem

Array = NDArray[np.float64]
Places = NDArray[np.intp]

_RELIEFS, _FEW_COLUMNS = 4, 32  # rounds of moving columns inside their bounds, and how many at most
_LAST_DIGITS = 1e-15  # of a pull, relative to the sum of its terms: nine of the last bit


def repair_dual(problem: Problem, a: ArrayLike) -> Array:
    """Return a feasible dual vector made from any a, scaled to the best dual value.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.problem.repair import repair_dual
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> X, y = np.array([[1.0], [-1.0], [-1.0]]), np.array([1.0, -1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    >>> repair_dual(problem, np.array([1.0, 1.0, -3.0]))
    array([0.5, 0.5, 0. ])
    """
    return repaired(problem, a).a


def relieved_dual(problem: Problem, a: ArrayLike) -> Array:
    """Return a, changed where few columns pull a little harder than their penalty lets them.

    Of the 1-norm alone.  Columns of a huge scale are the reason: their pull is decided by the last
    digits of a.  To scale all of a down, as a repair does, costs as much as they are beyond their
    bounds; to move them inside, by more than rounding takes back, costs next to nothing, as their
    coefficients are tiny.  The change is in proportion to the entries of a.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.problem.repair import relieved_dual
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> X, y = np.array([[1e6], [-1e6], [3e6]]), np.array([1.0, -1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("logistic"), X=X, regulariser="l1")
    >>> a = relieved_dual(problem, np.array([0.5, 0.25, 0.250002]))
    >>> bool(abs(problem.pull_back(a)[0]) <= 1.0), np.round(a, 4)
    (True, array([0.5 , 0.25, 0.25]))
    """
    a = np.asarray(a, dtype=np.float64)
    given, pressing = a, np.empty(0, np.intp)
    u = np.ones(problem.n_coefs) if problem.penalty_weights is None else problem.penalty_weights
    for _ in range(_RELIEFS):
        pulled = problem.pull_back(a)
        beyond = np.flatnonzero((np.abs(pulled) > u) & (u > 0))
        pressing = np.union1d(pressing, beyond)
        if not len(beyond) or len(pressing) > _FEW_COLUMNS:
            break
        a = _moved_inside(problem, a, pressing, pulled[pressing], u[pressing])
    return given if len(pressing) > _FEW_COLUMNS else a


def _moved_inside(problem: Problem, a: Array, columns: Places, pulled: Array, u: Array) -> Array:
    """Bring the pulls of some columns into their bounds, and keep the balance of a free bias."""
    scale = 1.0 if problem.feature_scale is None else problem.feature_scale[columns]
    signed = problem.y[:, None] * problem.design.dense_columns(columns) * scale
    room = np.abs(a)
    digits = _LAST_DIGITS * (room @ np.abs(signed))  # what rounding may make of a pull
    most = np.maximum(u - digits, 0.0)
    excess = pulled - np.clip(pulled, -most, most)
    if problem.free_bias:
        signed = np.column_stack([signed, problem.y])
        excess = np.append(excess, problem.y @ a)
    sizes = np.abs(signed).max(axis=0)
    signed, excess = signed / sizes, excess / sizes
    system = signed.T @ (room[:, None] * signed)
    return np.asarray(a - room * (signed @ np.linalg.lstsq(system, excess, rcond=1e-14)[0]))


class Repaired(NamedTuple):
    """A feasible dual vector, its dual value and its part ``beta'K beta`` of it."""

    a: Array
    value: float
    curvature: float


def repaired(problem: Problem, a: ArrayLike, known: tuple[Array, Array] | None = None) -> Repaired:
    """The repaired dual vector; `known` is a kernel's (a, K (y * a)) where it is at hand."""
    loss, C, weights = problem.loss, problem.C, problem.sample_weight
    a = loss.clip_dual(a, C, weights)
    if problem.free_bias:
        a = _balance(problem.y, a)
    if problem.penalty_weights is not None and np.any(problem.penalty_weights == 0):
        a = _release_columns(problem, a)
    if problem.gram is not None and known is not None and _all_but_equal(a, known[0]):
        pulled = known[1]
    else:
        pulled = problem.pull_back(a)
    limit = loss.largest_scale(a, C, weights)
    pressure = problem.pressure(a, pulled)
    limit = min(limit, 1.0 / pressure) if pressure > 0 else limit
    curvature = problem.curvature(a, pulled)
    scale = loss.best_scale(a, curvature, limit, C, weights)
    a, curvature = scale * a, scale**2 * curvature
    value = loss.dual_gain(a, C, weights) - 0.5 * curvature
    return Repaired(a, value, curvature) if value > 0 else Repaired(0 * a, 0.0, 0.0)


def _all_but_equal(a: Array, other: Array) -> bool:
    """Whether two vectors differ by rounding alone, so that K times the one serves the other."""
    return bool(np.abs(a - other).sum() <= 1e-14 * np.abs(other).sum())


def _balance(y: Array, a: Array) -> Array:
    """Scale the heavier sign of y * a down until the sum is zero; twice, for the rounding."""
    positive = y * a > 0

    def sizes(rows: slice) -> tuple[float, float]:
        own, up = np.abs(a[rows]), positive[rows]
        return float(own[up].sum()), float(own[~up].sum())

    for _ in range(2):
        up, down = (sum(sides) for sides in zip(*by_rows(sizes, len(a)), strict=True))
        if up > down:
            a = np.where(positive, a * (down / up), a)
        elif down > up:
            a = np.where(positive, a, a * (up / down))
    return a


def _release_columns(problem: Problem, a: Array) -> Array:
    """Change a, in proportion to its entries, until never penalised columns have X_j'beta = 0.

    These columns act as further free biases.  Entries that would change sign are set to zero and
    the rest is tried again; a = 0, which is always feasible, where that leads nowhere.
    """
    u = problem.penalty_weights
    assert u is not None
    columns = problem.design.dense_columns(np.flatnonzero(u == 0))
    if problem.free_bias:
        columns = np.column_stack([columns, np.ones(len(a))])
    sizes = np.abs(columns).max(axis=0, initial=0.0)
    signed = problem.y[:, None] * columns[:, sizes > 0] / sizes[sizes > 0]
    for _ in range(20):
        for _ in range(2):
            room = np.abs(a)
            system = signed.T @ (room[:, None] * signed)
            a = a - room * (signed @ np.linalg.lstsq(system, signed.T @ a, rcond=1e-14)[0])
        if not problem.loss.signed:
            a = np.where(a < 0, 0.0, a)
        residue = np.abs(signed.T @ a)
        if np.all(residue <= 1e-13 * (np.abs(signed).T @ np.abs(a))):
            return a
    return np.zeros(len(a))
