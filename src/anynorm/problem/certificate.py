"""Certificates: how far a solution can be from the optimum, computed apart from any solver.

The primal value P comes from (coef, intercept) alone, the dual value D from the dual variables
alone, after a repair that makes any vector feasible:

1. wrong signs, rows of weight 0 and what lies outside a box are removed;
2. with a free bias and beta = y * a, the heavier sign of beta is scaled down until
   sum(beta) = 0, which keeps a in every monotone ball;
3. columns that are never penalised get X_j'beta = 0 by the smallest relative change of a;
4. a is scaled by the t that maximises the dual objective among the allowed ones.

P - D >= 0 bounds the distance of both from the optimum.  ``gap`` is relative to
``max(|P|, |D|, 1e-10 P(0))``, P(0) being the primal at zero, so that an optimum of 0 can be
certified too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.losses.bias import optimal_bias, optimal_bias_interval
from anynorm.norms import SquaredL2
from anynorm.problem import Problem
from anynorm.problem.solution import Status, worst

Array = NDArray[np.float64]

__all__ = [
    "Certificate",
    "certify",
    "optimal_bias",
    "optimal_bias_interval",
    "relative_gap",
    "repair_dual",
]


@dataclass(frozen=True)
class Certificate:
    """Primal value, dual value and relative gap of a solution.

    Attributes
    ----------
    primal, dual : float
        Objective values; the optimum lies between them.
    gap : float
        ``(primal - dual) / max(|primal|, |dual|, 1e-10 * zero_primal)``; NaN where no
        certificate is possible.
    status : Status
        OPTIMAL where the gap is at most tol.
    tol : float
        The gap asked for.
    zero_primal : float
        The primal value at zero coefficients.
    per_class : tuple of Certificate
        The binary problems' certificates of a multiclass fit.

    Examples
    --------
    >>> from anynorm.problem.certificate import Certificate
    >>> from anynorm.problem.solution import Status
    >>> print(Certificate(1.0, 0.5, 0.5, Status.MAX_ITER, 1e-4))
    max_iter: primal 1, dual 0.5, relative gap 5.0e-01 (tol 1e-04)
    """

    primal: float
    dual: float
    gap: float
    status: Status
    tol: float
    zero_primal: float = 0.0
    per_class: tuple[Certificate, ...] = ()

    @classmethod
    def combine(cls, certificates: Sequence[Certificate]) -> Certificate:
        """Return one certificate for several problems: sums, and the worst status.

        Examples
        --------
        >>> from anynorm.problem.certificate import Certificate
        >>> from anynorm.problem.solution import Status
        >>> parts = [Certificate(1.0, 1.0, 0.0, Status.OPTIMAL, 1e-4),
        ...          Certificate(3.0, 2.0, 1 / 3, Status.MAX_ITER, 1e-4)]
        >>> whole = Certificate.combine(parts)
        >>> whole.primal, whole.dual, whole.gap, whole.status.value
        (4.0, 3.0, 0.25, 'max_iter')
        """
        parts = tuple(certificates)
        if len(parts) == 1:
            return parts[0]
        primal = math.fsum(part.primal for part in parts)
        dual = math.fsum(part.dual for part in parts)
        zero_primal = math.fsum(part.zero_primal for part in parts)
        unknown = any(math.isnan(part.gap) for part in parts)
        return cls(
            primal=primal,
            dual=dual,
            gap=math.nan if unknown else relative_gap(primal, dual, zero_primal),
            status=worst(part.status for part in parts),
            tol=max((part.tol for part in parts), default=0.0),
            zero_primal=zero_primal,
            per_class=parts,
        )

    def __str__(self) -> str:
        return (
            f"{self.status}: primal {self.primal:.10g}, dual {self.dual:.10g}, "
            f"relative gap {self.gap:.1e} (tol {self.tol:.0e})"
        )


def relative_gap(primal: float, dual: float, zero_primal: float) -> float:
    """Return ``(P - D) / max(|P|, |D|, 1e-10 P(0))``, with 0/0 = 0.

    A difference below zero that rounding explains (1e-12 of the primal) counts as zero.

    Examples
    --------
    >>> from anynorm.problem.certificate import relative_gap
    >>> relative_gap(2.0, 1.0, zero_primal=10.0)
    0.5
    >>> relative_gap(0.0, 0.0, zero_primal=0.0)
    0.0
    """
    if math.isnan(primal) or math.isnan(dual):
        return math.nan
    if math.isinf(primal) or math.isinf(dual):
        return math.inf
    difference = primal - dual
    if -1e-12 * abs(primal) <= difference <= 0:
        return 0.0
    return difference / max(abs(primal), abs(dual), 1e-10 * zero_primal)


def repair_dual(problem: Problem, a: ArrayLike) -> Array:
    """Return a feasible dual vector made from any a, scaled to the best dual value.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.problem.certificate import repair_dual
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> X, y = np.array([[1.0], [-1.0], [-1.0]]), np.array([1.0, -1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    >>> repair_dual(problem, np.array([1.0, 1.0, -3.0]))
    array([0.5, 0.5, 0. ])
    """
    return _repair(problem, a).a


def certify(
    problem: Problem,
    coef: Array,
    intercept: float,
    dual: ArrayLike,
    *,
    tol: float,
    stopped: Status = Status.MAX_ITER,
    scores: Array | None = None,
) -> Certificate:
    """Return the certificate of a solution.

    Parameters
    ----------
    problem : Problem
        What was to be solved.
    coef, intercept : ndarray, float
        The primal point (for a kernel coef is a, with f = K (y * a)).
    dual : ndarray of shape (n,)
        Any dual vector; it is repaired first.
    tol : float
        The relative gap that counts as optimal.
    stopped : Status
        The status where the gap is larger than tol.
    scores : ndarray of shape (n,), optional
        ``problem.scores(coef)`` where it is at hand, to save one product.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.problem.certificate import certify
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    >>> print(certify(problem, np.array([1.0]), 0.0, np.array([0.5, 0.5]), tol=1e-6))
    optimal: primal 0.5, dual 0.5, relative gap 0.0e+00 (tol 1e-06)
    """
    coef = np.asarray(coef, dtype=np.float64)
    scores = problem.scores(coef) if scores is None else scores
    primal = problem.objective(coef, intercept, scores=scores)
    repaired = _repair(problem, dual, known=(coef, scores))
    zero_primal = problem.zero_primal()
    if problem.gram is not None and not _weak_duality(problem, repaired, coef, scores):
        return Certificate(primal, repaired.value, math.nan, Status.UNCERTIFIED, tol, zero_primal)
    gap = relative_gap(primal, repaired.value, zero_primal)
    status = Status.OPTIMAL if abs(gap) <= tol else stopped
    return Certificate(primal, repaired.value, gap, status, tol, zero_primal)


class _Repaired(NamedTuple):
    """A feasible dual vector, its dual value and its part ``beta'K beta`` of it."""

    a: Array
    value: float
    curvature: float


def _repair(problem: Problem, a: ArrayLike, known: tuple[Array, Array] | None = None) -> _Repaired:
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
    if loss.slack is None:
        scale = _logistic_scale(a, C, weights, curvature, limit)
    else:
        scale = _quadratic_scale(problem, a, curvature, limit)
    repaired, curvature = scale * a, scale**2 * curvature
    value = loss.dual_gain(repaired, C, weights) - 0.5 * curvature
    return _Repaired(repaired, value, curvature) if value > 0 else _Repaired(0 * a, 0.0, 0.0)


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


def _quadratic_scale(problem: Problem, a: Array, curvature: float, limit: float) -> float:
    """The t in [0, limit] with the largest ``t sum(a) - t^2/2 (curvature + the conjugate's)``."""
    total = float(a.sum())
    slack = problem.loss.slack
    if isinstance(slack, SquaredL2):
        weighted = slack if problem.sample_weight is None else slack.weighted(problem.sample_weight)
        curvature += 2 * weighted.conjugate(a) / problem.C
    if total <= 0:
        return 0.0
    best = total / curvature if curvature > 0 else math.inf
    scale = min(best, limit)
    return scale if math.isfinite(scale) else 0.0


def _logistic_scale(
    a: Array, C: float, weights: Array | None, curvature: float, limit: float
) -> float:
    """The t at which the entropy of t*a less ``t^2/2 curvature`` is largest, by Newton's method."""
    used = a > 0
    if not used.any():
        return 0.0
    a = a[used]
    share = a / (C if weights is None else C * weights[used])
    low, high = 0.0, limit
    t = min(1.0, limit / 2)
    for _ in range(60):
        filled = t * share
        with np.errstate(divide="ignore"):
            logits = np.log(filled) - np.log1p(-np.minimum(filled, 1.0))
            slope = -float(a @ logits) - t * curvature
        low, high = (t, high) if slope > 0 else (low, t)
        bend = float(a @ (1.0 / (t * np.maximum(1.0 - filled, 1e-300)))) + curvature
        step = t + slope / bend if bend > 0 else np.inf
        step = step if low < step < high else low + (high - low) / 2
        if abs(step - t) <= 1e-12 * t:
            return step
        t = step
    return t


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


def _weak_duality(problem: Problem, repaired: _Repaired, coef: Array, scores: Array) -> bool:
    """Whether the kernel can be positive semidefinite, by what these two vectors show."""
    gram = problem.gram
    assert gram is not None
    diagonal = gram.diagonal()
    if gram.psd is False or np.any(diagonal < 0):
        return False
    lengths = np.sqrt(diagonal)
    for a, square in (
        (coef, float((problem.y * coef) @ scores)),
        (repaired.a, repaired.curvature),
    ):
        if square < -1e-9 * float(np.abs(a) @ lengths) ** 2:
            return False
    return True
