"""Newton's method for the smooth losses, from a good start and to the asked or the last digit.

The primal problem is solved as it stands; with a = h'(r) the gap is 1/2 ||u - A'(y a)||^2.  With
many dense rows the first steps are made on a sixteenth of them: the Newton matrix of all rows is
then formed only near the solution, where one or two steps are left.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anynorm.design import Design
from anynorm.losses.curves import Curve
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.newton import Iterate, minimise_smooth
from anynorm.solvers.linear.primal_dual import PrimalDual

_SHARE = 16  # one row of so many makes the sample
_ROWS_PER_COLUMN, _SAMPLE_ENTRIES = 5, 100_000  # a sample has at least so many rows and entries
_SAMPLE_TOL = 1e-4  # of its own problem: further digits are not those of all rows
_EXTRA_STEPS = 10  # beyond tol, at the most, for the last digits


def solve_newton(
    features: Design,
    y: np.ndarray,
    curve: Curve,
    precision: float,
    start: PrimalDual | None,
    *,
    cost: Callable[[np.ndarray], float],
    tol: float,
    exact: bool,
    budget: Budget,
) -> PrimalDual:
    """The minimiser to a relative gap of `tol`; `exact` goes on until rounding stops it."""
    if start is None:
        start = PrimalDual(np.zeros(features.p), 0.0, np.zeros(features.n))
        if not features.sparse:
            start = _from_sample(features, y, curve, precision, start, budget)

    def value(at: Iterate) -> float:
        bias = 0.5 * precision * at.bias * at.bias if np.isfinite(precision) else 0.0
        return 0.5 * float(at.u @ at.u) + bias + cost(at.residual)

    done = _until_rounding(value, tol) if exact else lambda at: at.inner_gap <= tol * value(at)
    at = minimise_smooth(
        features, y, curve, precision, start.u, start.bias, done=done, budget=budget
    )
    return PrimalDual(at.u, at.bias, at.dual)


def _until_rounding(value: Callable[[Iterate], float], tol: float) -> Callable[[Iterate], bool]:
    """Reach `tol`, then go on while each step still takes most of what is left of the gap."""
    left = [np.inf, _EXTRA_STEPS]

    def done(at: Iterate) -> bool:
        gap = at.inner_gap
        if gap > tol * value(at):
            return False
        stalled = gap > 0.1 * left[0]
        left[0] = min(left[0], gap)
        left[1] -= 1
        return gap == 0.0 or stalled or left[1] < 0

    return done


def _from_sample(
    features: Design,
    y: np.ndarray,
    curve: Curve,
    precision: float,
    start: PrimalDual,
    budget: Budget,
) -> PrimalDual:
    """Minimiser over a random sixteenth of the rows, each counted 16 times; `start` if too few."""
    m = features.n // _SHARE
    if m < _ROWS_PER_COLUMN * features.p or m * features.p < _SAMPLE_ENTRIES:
        return start
    rows = np.sort(np.random.default_rng(0).choice(features.n, m, replace=False))
    if abs(y[rows].sum()) == m:
        return start
    sample = features.take_rows(rows)
    part = curve.part(rows, _SHARE)

    def done(at: Iterate) -> bool:
        return at.inner_gap <= _SAMPLE_TOL * float(at.u @ at.u)

    at = minimise_smooth(
        sample, y[rows], part, precision, start.u, start.bias, done=done, budget=budget
    )
    return PrimalDual(at.u, at.bias, start.dual)
