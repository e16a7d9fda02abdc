"""Semismooth Newton method for a 2-norm regularised sum of smooth functions of the residuals.

        minimise_{u, b}   F = 1/2 ||u||^2 + precision/2 b^2 + sum_i h_i(r_i),    r = 1 - y (A u + b)

h_i is convex with a Lipschitz derivative (squared hinge, squared, logistic, and the proximal
form of the box losses), so a = h'(r) is a dual point, and the distance to the optimum is at most
1/2 ||u - A'(y a)||^2 because the bias is kept at its exact minimiser.  Each step solves the
Newton system over the rows with h'' > 0 and minimises F exactly along it; for piecewise
quadratic h the method ends after finitely many steps (Keerthi and DeCoste 2005; Qi and Sun 1993).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anynorm.design import Design
from anynorm.losses.bias import balanced_bias
from anynorm.losses.curves import Derivatives
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.linear.newton_system import NewtonSystem

_ROUNDING = 1e-15  # of the terms of F: a gain below it cannot be seen in F
_IDLE_STEPS = 3  # of such gain that may still sharpen u
_PATIENCE = 40  # steps without half the inner gap: the system is too badly conditioned
_SHORT = 0.01  # share of a Newton step that counts as short
_SHORT_STEPS = 8  # in a row: the method crawls, and another one takes over


@dataclass
class Iterate:
    """Where the method stands: u, b, the scores A u, and what follows from them.

    `size` is that of F's terms, against which rounding is measured.
    """

    u: np.ndarray
    bias: float
    scores: np.ndarray
    residual: np.ndarray
    dual: np.ndarray
    dual_u: np.ndarray
    size: float
    crawling: bool = False

    @property
    def inner_gap(self) -> float:
        """Bound on how far F is above its minimum (given the exact bias)."""
        miss = self.u - self.dual_u
        return 0.5 * float(miss @ miss)


def minimise_smooth(
    features: Design,
    y: np.ndarray,
    curve: Derivatives,
    precision: float,
    u: np.ndarray,
    bias: float,
    *,
    scores: np.ndarray | None = None,
    done: Callable[[Iterate], bool],
    budget: Budget,
) -> Iterate:
    """Newton steps from (u, bias) until `done` says so or F stands still.

    The iterate says if it was crawling: many tiny steps in a row, because the rows with curvature
    do not see what stops them.
    """
    scores = features.matvec(u) if scores is None else scores
    idle, smallest, since, short = 0, np.inf, 0, 0
    while True:
        bias = balanced_bias(curve, y, scores, bias, precision)
        residual, dual, beta, size = curve.terms(y, scores, bias)
        dual_u = features.rmatvec(beta)
        at = Iterate(u, bias, scores, residual, dual, dual_u, float(u @ u) + size)
        if done(at) or since > _PATIENCE or not budget.spend(1):
            return at
        gap = at.inner_gap
        smallest, since = (gap, 0) if gap < 0.5 * smallest else (smallest, since + 1)
        rows, curvature = curve.curved(residual)
        gradient = u - dual_u
        bias_gradient = 0.0 if np.isinf(precision) else precision * bias - float(beta.sum())
        forcing = min(0.1, np.sqrt(np.linalg.norm(gradient) / (1.0 + np.linalg.norm(u))))
        try:
            with budget.watched():
                system = NewtonSystem(features, rows, curvature, precision, budget, forcing=forcing)
                d, e = system.solve(gradient, bias_gradient)
        except OutOfTime:
            return at
        del system, curvature, rows  # large where most rows take part
        along = features.matvec(d)
        step, slope = _line_search(y, curve, precision, at, d, e, along)
        # The slope is minus twice what the step can gain; below rounding a few steps may still
        # sharpen u, but F no longer tells.
        idle = idle + 1 if -slope <= _ROUNDING * at.size else 0
        if step == 0.0 or idle > _IDLE_STEPS:
            return at
        short = short + 1 if step < _SHORT else 0
        if short > _SHORT_STEPS:
            at.crawling = True
            return at
        along *= step
        along += scores
        u, bias, scores = u + step * d, bias + step * e, along


def _line_search(y, curve, precision, at, d, e, along):
    """Return t >= 0 where dF/dt has nearly vanished (false position), and dF/dt at 0."""
    change = along + e
    change *= y
    linear, quadratic = float(at.u @ d), float(d @ d)
    if np.isfinite(precision):
        linear += precision * at.bias * e
        quadratic += precision * e * e

    def slope(t: float) -> float:
        return linear + t * quadratic - curve.slope(at.residual, change, t)

    first = slope(0.0)
    if not first < 0.0:
        return 0.0, first
    low, low_slope, high, high_slope = 0.0, first, np.inf, np.inf
    t = 1.0
    for trial in range(60):
        here = slope(t)
        if abs(here) <= 0.1 * abs(first):
            return t, first
        if here < 0:
            low, low_slope = t, here
        else:
            high, high_slope = t, here
        if np.isinf(high):
            t *= 4.0
        elif trial % 3 == 2:
            t = 0.5 * (low + high)
        else:
            t = low + (high - low) * (-low_slope) / (high_slope - low_slope)
    return low, first
