"""Norms of the slacks as losses: ``C N_w(r_+)`` with inequalities, ``C N_w(r)`` with equalities."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anynorm.design.limits import ROUNDING
from anynorm.losses.curves import Curve, CurveModel
from anynorm.losses.loss import Array, Constraints, Interval, Loss, finite
from anynorm.norms import Norm, SquaredL2, get_norm
from anynorm.norms.best_bias import extremes
from anynorm.norms.dual_sets import DualSet

_FEW = 16  # entries of a parameter that a name may show: a matrix would be written out in full


@dataclass(frozen=True)
class SlackLoss(Loss):
    """The cost of a norm of the slacks; `NormLoss`, or `SquaredLoss` for the squared 2-norm.

    Attributes
    ----------
    name : str
        "hinge", "squared_hinge", "absolute", "squared", or a description of the norm.
    slack : Norm or SquaredL2
        The norm of the slacks.
    constraints : {"inequality", "equality"}
        Whether margins above 1 are free of cost.
    """

    name: str
    slack: Any
    constraints: Constraints = "inequality"

    def __post_init__(self) -> None:
        if self.constraints not in ("inequality", "equality"):
            raise ValueError(
                f"constraints must be 'inequality' or 'equality'; got {self.constraints!r}"
            )

    @property
    def signed(self) -> bool:  # type: ignore[override]
        return self.constraints == "equality"

    @property
    def one_sided(self) -> bool:  # type: ignore[override]
        return self.constraints == "inequality"

    @property
    def sum_over_rows(self) -> bool:  # type: ignore[override]
        return self.slack.sum_over_rows and self.slack.row_weights is None

    def without_weights(self) -> tuple[Loss, Array | None]:
        weights = self.slack.row_weights
        if weights is None:
            return self, None
        return slack_loss(self.slack.unweighted(), self.constraints), weights

    def dual_set(self, C: float, weights: Array) -> DualSet:
        """Return the dual set of the norm."""
        return self.slack.dual_set(C, weights, self.signed)

    def value(self, r: ArrayLike, C: float, weights: Array | None = None) -> float:
        r, slack = np.asarray(r, dtype=np.float64), self.weighted(weights)
        return C * slack.value(slack.cheapest_above(r) if self.one_sided else r)

    def clip_dual(self, a: ArrayLike, C: float, weights: Array | None = None) -> Array:
        """Return a with wrong signs and rows of weight 0 removed."""
        clipped = finite(a) if self.signed else np.maximum(finite(a), 0.0)
        absent = self.weighted(weights).row_weights
        return clipped if absent is None else np.where(absent > 0, clipped, 0.0)

    def bias_interval(self, scores: Array, y: Array, weights: Array | None = None) -> Interval:
        t, slack = y - scores, self.weighted(weights)
        kept = slack.row_weights is None or slack.row_weights > 0
        if not np.all(kept):
            t, y, slack = t[kept], y[kept], slack.for_rows(kept)
        low, high = extremes(t, y, self.one_sided)
        if self.one_sided and high <= low:
            return high, low
        return slack.bias_interval(t, y, self.one_sided)

    def weighted(self, weights: Array | None) -> Any:
        """Return the norm of rows that have these weights, besides its own."""
        return self.slack if weights is None else self.slack.weighted(weights)

    def of_rows(self, weights: Array | None) -> tuple[Loss, Array | None]:
        """Return the loss with the weights in its norm, which is then asked for without them."""
        return self if weights is None else replace(self, slack=self.weighted(weights)), None

    def _wrong_signs(self, a: Array) -> bool:
        size = float(np.abs(a).max(initial=0.0))
        return not self.signed and bool(np.any(a < -ROUNDING * size))


@dataclass(frozen=True)
class NormLoss(SlackLoss):
    """``C N_w`` of the slacks; its dual is a ball: ``N*(a) <= C``."""

    @property
    def bias_falls(self) -> bool:  # type: ignore[override]
        """Whether the best biases fall where a score rises."""
        return self.slack.bias_falls

    def resolve(self, X: Any) -> Loss:
        norm = self.slack.resolve(X)
        return self if norm is self.slack else replace(self, slack=norm)

    def dual_gain(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return ``sum a`` where a is allowed."""
        allowed = not self._wrong_signs(a) and self._dual_size(a, weights) <= C * (1 + ROUNDING)
        return float(a.sum()) if allowed else -math.inf

    def clip_dual(self, a: ArrayLike, C: float, weights: Array | None = None) -> Array:
        clipped = super().clip_dual(a, C, weights)
        return self.weighted(weights).clipped(clipped, C)

    def largest_scale(self, a: Array, C: float, weights: Array | None = None) -> float:
        size = self._dual_size(a, weights)
        return C / size if size > 0 else math.inf

    def best_scale(
        self, a: Array, curvature: float, limit: float, C: float, weights: Array | None = None
    ) -> float:
        """Return the t in [0, limit] with the largest ``t sum(a) - t^2/2 curvature``."""
        return quadratic_scale(float(a.sum()), curvature, limit)

    def _dual_size(self, a: Array, weights: Array | None) -> float:
        """The least N*(e) over the e that a allows."""
        norm = self.weighted(weights)
        if self.one_sided:
            a = norm.cheapest_dual_above(np.maximum(a, 0.0) if not norm.monotone else a)
        return norm.dual_value(a)


@dataclass(frozen=True)
class SquaredLoss(SlackLoss):
    """``C sum w r_+^2`` or ``C sum w r^2``: the squared hinge and least squares."""

    curvature_bound = 2.0
    quadratic_dual = True

    def dual_gain(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return ``sum a - a^2/(4 C w)``."""
        if self._wrong_signs(a):
            return -math.inf
        return float(a.sum()) - self.weighted(weights).conjugate(a) / C

    def largest_scale(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return infinity: every a of the right signs is allowed."""
        return math.inf

    def best_scale(
        self, a: Array, curvature: float, limit: float, C: float, weights: Array | None = None
    ) -> float:
        """Return the t in [0, limit] with the largest dual value."""
        curvature += 2 * self.weighted(weights).conjugate(a) / C
        return quadratic_scale(float(a.sum()), curvature, limit)

    def curve(self, cost: Array) -> Curve:
        return SquaredHingeCurve(cost) if self.one_sided else SquaredCurve(cost)


@dataclass(frozen=True)
class SquaredHingeCurve(Curve):
    """h(r) = cost * max(r, 0)^2."""

    def dual(self, residual: Array) -> Array:
        return 2.0 * self.cost * np.maximum(residual, 0.0)

    def curvature(self, residual: Array) -> Array:
        return np.where(residual > 0, 2.0 * self.cost, 0.0)

    def model(self, residual: Array, *, far: bool = False) -> CurveModel:
        """Return the loss itself."""
        return CurveModel(2.0 * self.cost, residual, floor=0.0)


@dataclass(frozen=True)
class SquaredCurve(Curve):
    """h(r) = cost * r^2."""

    def dual(self, residual: Array) -> Array:
        return 2.0 * self.cost * residual

    def curvature(self, residual: Array) -> Array:
        return 2.0 * self.cost

    def model(self, residual: Array, *, far: bool = False) -> CurveModel:
        """Return the loss itself."""
        return CurveModel(2.0 * self.cost, residual)


def quadratic_scale(total: float, curvature: float, limit: float) -> float:
    """Return the t in [0, limit] with the largest ``t total - t^2/2 curvature``."""
    if total <= 0:
        return 0.0
    scale = min(total / curvature if curvature > 0 else math.inf, limit)
    return scale if math.isfinite(scale) else 0.0


def slack_loss(slack: str | Norm | SquaredL2, constraints: Constraints) -> SlackLoss:
    """Return the loss of a slack norm and a kind of constraints; see `Loss.from_slack`."""
    from anynorm.losses import LOSSES

    norm = get_norm(slack)
    for loss in LOSSES.values():
        if isinstance(loss, SlackLoss) and (loss.slack, loss.constraints) == (norm, constraints):
            return loss
    large = any(np.size(value) > _FEW for value in norm.get_params().values())
    name = f"{type(norm).__name__ if large else repr(norm)} {constraints}"
    return (SquaredLoss if isinstance(norm, SquaredL2) else NormLoss)(name, norm, constraints)
