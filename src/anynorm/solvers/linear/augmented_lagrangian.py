"""Augmented Lagrangian method with semismooth Newton steps, for the hinge and absolute losses.

        minimise_{u, b}   1/2 ||u||^2 + precision/2 b^2 + sum_i max_{a in box_i} a r_i,
                          r = 1 - y (A u + b)

The slacks' cost is replaced by its proximal form around the last dual point, a smooth
piecewise quadratic function, which a few Newton steps minimise; the dual point that belongs to
the minimiser becomes the next centre (the proximal point method on the dual, Rockafellar 1976;
for SVMs Yan and Li 2020).  Margins have the natural scale 1, so that the smoothing width 1/sigma
needs no tuning to the data: high C and badly scaled features cost no more than others.
Only rows within the smoothing width of their margin enter the Newton system.

As soon as few rows are left there, the exact solution for that guess of the free set is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from anynorm.design import Design
from anynorm.design.limits import FLOOR
from anynorm.norms.dual_sets import Box
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.proximal_box import ProximalBox
from anynorm.solvers.linear.newton import Iterate, minimise_smooth
from anynorm.solvers.linear.polish import polish_free_set
from anynorm.solvers.linear.primal_dual import PrimalDual

_FIRST_SIGMA = 0.5  # 1 over the smoothing width, in margins; not critical: 0.2 and 0.75 do as well
_WARM_SIGMA = 8.0  # the same from a start, which has told most rows apart already
_GROWTH = 2.0  # of sigma where the gap falls slowly; 4 made more of the Newton steps short
_FAST = 0.1  # of the last gap: where it falls to this, the present width does
_STALLED = 4  # outer steps without half the gap before the method gives up: rounding, or ties
_INNER_SHARE = 0.1  # of the outer gap: what Newton may leave without spoiling the next centre
_TRY_POLISH_BELOW = 1e-3  # gap from which the free set may be the right one
_TIED = 500  # rows up to which more free duals than unknowns are tried: ties, and costly
_TRY_TIED_BELOW = 1e-6  # gap for that (absolute loss, 398 x 30: 0.03 s instead of 0.7 s)


def solve_augmented(
    features: Design,
    y: np.ndarray,
    box: Box,
    precision: float,
    start: PrimalDual | None,
    *,
    tol: float,
    budget: Budget,
    accept: Callable[[PrimalDual], bool],
) -> PrimalDual:
    """The best point found with the Newton steps and the time of the budget.

    `accept` certifies a candidate.  It is asked where the gap of the iteration is within `tol`
    and for every polished point; the method ends when it agrees.
    """
    sigma = _FIRST_SIGMA if start is None else _WARM_SIGMA
    if start is None:
        start = PrimalDual(np.zeros(features.p), 0.0, np.zeros(features.n))
    u, bias, dual = start.u, start.bias, start.dual
    width, floor = box.upper - box.lower, FLOOR * float(box.upper.sum())
    scores = None
    tried, goal, last, stalled = -1, tol, np.inf, 0
    while True:
        curve = ProximalBox(dual, sigma * width, box.lower, box.upper, features.compiled)
        at = minimise_smooth(
            features,
            y,
            curve,
            precision,
            u,
            bias,
            scores=scores,
            done=_inner_done(curve, precision, floor, goal),
            budget=budget,
        )
        u, bias, dual, scores = at.u, at.bias, at.dual, at.scores
        here = PrimalDual(u, bias, dual)
        gap = _gaps(at, curve, precision, floor)[1]
        if gap <= goal:
            if accept(here):
                return here
            goal *= 0.1
        free = int(np.count_nonzero((dual > box.lower) & (dual < box.upper)))
        # More margins than unknowns cannot all be exact, unless rows are tied.
        plausible = free <= features.p + 1 or (features.n <= _TIED and gap <= _TRY_TIED_BELOW)
        if gap <= _TRY_POLISH_BELOW and free != tried and plausible:
            tried = free
            exact = None
            with suppress(OutOfTime):
                exact = polish_free_set(features, y, box, precision, dual, bias)
            if exact is not None and accept(PrimalDual(*exact)):
                return PrimalDual(*exact)
        # A wide step (large sigma) amplifies the rounding of the margins: widen only where the
        # gap falls slowly, and end where it has ceased to fall.
        stalled = 0 if gap < 0.5 * last else stalled + 1
        if at.crawling or stalled > _STALLED or not budget.spend(0):
            return here
        if gap > _FAST * last:
            sigma *= _GROWTH
        last = min(last, gap)


def _gaps(at: Iterate, curve: ProximalBox, precision: float, floor: float) -> tuple[float, float]:
    """The slacks' part of the gap of the box loss, and the relative gap of the whole."""
    cost, outer = curve.cost_and_gap(at.residual, at.dual)
    bias = 0.5 * precision * at.bias * at.bias if np.isfinite(precision) else 0.0
    primal = 0.5 * float(at.u @ at.u) + bias + cost
    return outer, (outer + at.inner_gap) / max(primal, floor)


def _inner_done(
    curve: ProximalBox, precision: float, floor: float, tol: float
) -> Callable[[Iterate], bool]:
    """Stop where the inner error is a small part of the gap, or the whole gap is small enough."""

    def done(at: Iterate) -> bool:
        outer, gap = _gaps(at, curve, precision, floor)
        return at.inner_gap <= _INNER_SHARE * outer or gap <= tol

    return done
