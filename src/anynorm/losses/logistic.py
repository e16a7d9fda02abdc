"""The logistic loss, ``C sum w log(1 + exp(r - 1))``: the margin is 1 - r."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, xlog1py, xlogy

from anynorm.design.limits import ROUNDING
from anynorm.losses.curves import Curve, CurveModel
from anynorm.losses.loss import Array, Interval, Loss
from anynorm.norms.dual_sets import CurvedBox

_SAFE_MARGIN = 64.0  # at which an example costs less than 1e-27
_LEAST_CURVATURE = 1e-15  # of the cost: below it a model would divide by nothing


@dataclass(frozen=True)
class LogisticLoss(Loss):
    """The negative log-likelihood of logistic regression.

    Its dual is the entropy of ``a/(C w)``, which lies between 0 and 1.
    """

    name: str = "logistic"
    curvature_bound = 0.25
    sum_over_rows = True

    def value(self, r: ArrayLike, C: float, weights: Array | None = None) -> float:
        costs = np.logaddexp(0.0, np.asarray(r, dtype=np.float64) - 1.0)
        return C * float(costs.sum() if weights is None else weights @ costs)

    def dual_gain(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return the entropy of the dual variables."""
        size = float(np.abs(a).max(initial=0.0))
        bound = np.full(len(a), float(C)) if weights is None else C * weights
        if np.any(a < -ROUNDING * size) or np.any(a > bound * (1 + ROUNDING)):
            return -math.inf
        share = np.divide(a, bound, out=np.zeros(len(a)), where=bound > 0)
        share = np.clip(share, 0.0, 1.0)
        return -float(bound @ (xlogy(share, share) + xlog1py(1.0 - share, -share)))

    def dual_set(self, C: float, weights: Array) -> CurvedBox:
        """Return ``0 <= a <= C w``."""
        return CurvedBox(False, np.zeros(len(weights)), C * weights)

    def curve(self, cost: Array) -> LogisticCurve:
        return LogisticCurve(cost)

    def best_scale(
        self, a: Array, curvature: float, limit: float, C: float, weights: Array | None = None
    ) -> float:
        """Return the t at which the entropy of t*a less ``t^2/2 curvature`` is largest."""
        used = a > 0
        if not used.any():
            return 0.0
        a = a[used]
        share = a / (C if weights is None else C * weights[used])

        def slope_at(t: float, filled: Array) -> float:
            with np.errstate(divide="ignore"):
                logits = np.log(filled) - np.log1p(-np.minimum(filled, 1.0))
                return -float(a @ logits) - t * curvature

        if np.isfinite(limit) and limit > 0 and slope_at(limit, limit * share) >= 0:
            return limit
        low, high = 0.0, limit
        t = min(1.0, limit / 2)
        for _ in range(60):
            filled = t * share
            slope = slope_at(t, filled)
            low, high = (t, high) if slope > 0 else (low, t)
            bend = float(a @ (1.0 / (t * np.maximum(1.0 - filled, 1e-300)))) + curvature
            step = t + slope / bend if bend > 0 else np.inf
            step = step if low < step < high else low + (high - low) / 2
            if abs(step - t) <= 1e-12 * t:
                return step
            t = step
        return t

    def bias_interval(self, scores: Array, y: Array, weights: Array | None = None) -> Interval:
        """Return the root of ``sum w expit(f + b) = weight of the positive class``.

        With one class alone there is no minimum: the point gives every example a margin of 64.
        """
        w = np.ones(len(y)) if weights is None else weights
        scores, y, w = scores[w > 0], y[w > 0], w[w > 0]
        positive, negative = float(w[y > 0].sum()), float(w[y < 0].sum())
        if negative == 0:
            b = _SAFE_MARGIN - float(scores.min(initial=math.inf)) if len(scores) else 0.0
            return b, b
        if positive == 0:
            b = -_SAFE_MARGIN - float(scores.max())
            return b, b
        odds = math.log(positive / negative)
        low, high = odds - float(scores.max()), odds - float(scores.min())
        b = low + (high - low) / 2
        for _ in range(200):
            probability = expit(scores + b)
            excess = float(w[y < 0] @ probability[y < 0] - w[y > 0] @ expit(-scores - b)[y > 0])
            if excess > 0:
                high = b
            else:
                low = b
            curvature = float(w @ (probability * (1.0 - probability)))
            step = b - excess / curvature if curvature > 0 else math.inf
            step = step if low < step < high else low + (high - low) / 2
            if abs(step - b) <= 2e-16 * abs(b) or high - low <= 2e-16 * max(abs(low), abs(high)):
                return step, step
            b = step
        return b, b


@dataclass(frozen=True)
class LogisticCurve(Curve):
    """h(r) = cost * log(1 + exp(r - 1))."""

    def dual(self, residual: Array) -> Array:
        return self.cost * expit(residual - 1.0)

    def curvature(self, residual: Array) -> Array:
        return self.cost * expit(residual - 1.0) * expit(1.0 - residual)

    def model(self, residual: Array, *, far: bool = False) -> CurveModel:
        """Return the second-order model, however flat.

        It pulls an example at a margin of -m < 0 by 1 + exp(m), which soon is far too much.  Where
        it is to hold `far`, that is 2 + m, whose model is nowhere below the loss.
        """
        cost, dual = self.cost, self.dual(residual)
        bend = np.maximum(self.curvature(residual), _LEAST_CURVATURE * cost)
        pull = np.divide(dual, bend, out=np.zeros(cost.size), where=cost > 0)
        if far:
            wrong = (residual > 1.0) & (cost > 0)
            pull[wrong] = np.minimum(pull[wrong], 1.0 + residual[wrong])
            bend[wrong] = dual[wrong] / pull[wrong]
        return CurveModel(bend, pull)
