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

if TYPE_CHECKING:
    from anynorm.problem.svm import Problem

Array = NDArray[np.float64]


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
    for _ in range(2):
        up, down = float(np.abs(a[positive]).sum()), float(np.abs(a[~positive]).sum())
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
