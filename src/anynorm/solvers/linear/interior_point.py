"""Primal-dual interior-point method for the box duals (hinge, absolute and squared hinge losses).

        minimise_a   1/2 ||A'(y a)||^2 + 1/2 sum_i shift_i a_i^2 - sum(a),
                     lower <= a <= upper,   y'a = precision * b

With r = 1 - y (A u + b) the conditions are u = A'(y a), r = shift a + above - below, and the
products below (a - lower) and above (upper - a) all equal to mu, which is driven to 0 by predictor
and corrector steps (Mehrotra 1992).  Eliminating a and the multipliers leaves the Newton system of
this package with the weights 1 / (shift + below / (a - lower) + above / (upper - a)).

Every row keeps some weight, so that directions which no row close to its margin sees are still
controlled: the method of choice where the regulariser is too weak to do that (features of huge
scale, C without effect), at the price of all rows entering each system.
"""

from __future__ import annotations

import numpy as np

from anynorm.design import Design
from anynorm.design.limits import FLOOR
from anynorm.norms.dual_sets import Box
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.linear.newton_system import NewtonSystem
from anynorm.solvers.linear.primal_dual import PrimalDual

_TO_BOUNDARY = 0.995  # of the way to the nearest bound
_FORCING = 1e-8  # relative residual where conjugate gradients have to solve the Newton systems
_STALLED = 5  # steps without `_PROGRESS` that show rounding to be the limit
_PROGRESS = 0.9  # of the best gap, or of the least infeasibility, before which gaps may rise


def solve_interior(
    features: Design,
    y: np.ndarray,
    box: Box,
    precision: float,
    *,
    tol: float,
    budget: Budget,
) -> tuple[PrimalDual, np.ndarray]:
    """A point whose relative gap is about `tol`, or the best one before rounding takes over.

    The second result is its dual with the variables that look bounded put at their bounds.
    """
    at = _Point(features, y, box, precision)
    best, best_gap, least, since = (at.export(), at.snapped()), np.inf, np.inf, 0
    for _ in range(120):  # at the most: `_STALLED` ends it where rounding does
        gap, miss = at.relative_gap(), float(np.linalg.norm(at.gradient))
        since = 0 if gap < _PROGRESS * best_gap or miss < _PROGRESS * least else since + 1
        least = min(least, miss)
        if gap < best_gap:
            best, best_gap = (at.export(), at.snapped()), gap
        if gap <= tol or since > _STALLED or not budget.spend(1):
            break
        try:
            with budget.watched():
                moved = at.step(budget)
        except OutOfTime:
            break
        if not moved:
            break
    return best


class _Point:
    """The iterate: u, b, a, and the multipliers of both bounds."""

    def __init__(self, features, y, box, precision):
        self.features, self.y, self.precision = features, y, precision
        self.rows = np.flatnonzero(box.upper > box.lower)
        self.box = box.part(self.rows)
        self.lower, self.upper, self.shift = self.box.lower, self.box.upper, self.box.shift
        self.label = y[self.rows]
        self.u, self.bias = np.zeros(features.p), 0.0
        self.scores = np.zeros(features.n)
        # Without an upper bound a = 1 / shift, the dual of a slack of 1, sets the scale.
        self.bounded = np.isfinite(self.upper)
        reach = np.divide(1.0, self.shift, out=self.upper - self.lower, where=~self.bounded)
        share = np.full(self.rows.size, 0.5)
        if precision == 0.0 and np.any(self.lower >= 0):
            share = _balanced(self.label, reach)
        self.below = np.ones(self.rows.size)
        self.above = np.where(self.bounded, 2.0, 0.0)
        self.from_lower = share * reach
        self.to_upper = np.where(self.bounded, (1.0 - share) * reach, np.inf)
        self.reach = reach
        self._measure()

    def _measure(self) -> None:
        """Residuals of the three conditions and the mean product mu."""
        self.dual = self.lower + self.from_lower
        beta = np.zeros(self.y.size)
        beta[self.rows] = self.label * self.dual
        self.gradient = self.u - self.features.rmatvec(beta)
        self.bias_gradient = 0.0
        if np.isfinite(self.precision):
            self.bias_gradient = self.precision * self.bias - float(beta.sum())
        self.residual = 1.0 - self.label * (self.scores[self.rows] + self.bias)
        self.miss = self.residual - self.shift * self.dual - (self.above - self.below)
        self.mu = self._mean_product(self.below, self.above, self.from_lower, self.to_upper)

    def _mean_product(
        self, below: np.ndarray, above: np.ndarray, from_lower: np.ndarray, to_upper: np.ndarray
    ) -> float:
        total = below @ from_lower + above[self.bounded] @ to_upper[self.bounded]
        return float(total) / (self.rows.size + np.count_nonzero(self.bounded))

    def relative_gap(self) -> float:
        """Products, infeasibility and bias error against the primal value."""
        r, a = self.residual, self.dual
        cost = self.box.costs(r)
        primal = 0.5 * float(self.u @ self.u) + float(cost.sum())
        slack = float((cost - a * r + 0.5 * self.shift * a**2).sum())
        inner = 0.5 * float(self.gradient @ self.gradient) + abs(self.bias_gradient)
        return (slack + inner) / max(primal, FLOOR * float(self.reach.sum()))

    def step(self, budget: Budget) -> bool:
        """Predictor, then corrector; False where no step can be made."""
        weights = 1.0 / (self.shift + self.below / self.from_lower + self.above / self.to_upper)
        system = NewtonSystem(
            self.features, self.rows, weights, self.precision, budget, forcing=_FORCING, direct=True
        )
        plain = self._direction(system, weights, 0.0, None)
        size = self._longest(plain)
        reached = self._mean_product(
            self.below + size * plain.below,
            self.above + size * plain.above,
            self.from_lower + size * plain.dual,
            self.to_upper - size * plain.dual,
        )
        centring = (reached / self.mu) ** 3
        move = self._direction(system, weights, centring * self.mu, plain)
        size = min(1.0, _TO_BOUNDARY * self._longest(move, 1e300))
        if not size > 1e-12:
            return False
        self.u = self.u + size * move.u
        self.bias += size * move.bias
        self.scores = self.scores + size * self.features.matvec(move.u)
        self.from_lower = self.from_lower + size * move.dual
        self.to_upper = self.to_upper - size * move.dual
        self.below = self.below + size * move.below
        self.above = self.above + size * move.above
        self._measure()
        return True

    def _direction(self, system, weights, target, predicted):
        """The Newton direction towards products of `target`, second order where predicted."""
        low, high = target / self.from_lower, target / self.to_upper
        if predicted is not None:
            low = low - predicted.below * predicted.dual / self.from_lower
            high = high + predicted.above * predicted.dual / self.to_upper
        pull = weights * (self.miss - (high - self.above) + (low - self.below))
        pulled = self.features.rmatvec(self.label * pull, rows=self.rows)
        d, e = system.solve(self.gradient - pulled, self.bias_gradient - float(self.label @ pull))
        along = self.features.matvec(d, rows=self.rows) + e
        dual = pull - weights * self.label * along
        below = low - self.below - self.below * dual / self.from_lower
        above = high - self.above + self.above * dual / self.to_upper
        return _Move(d, e, dual, below, above)

    def _longest(self, move, most=1.0):
        """The longest step that keeps every distance and multiplier positive."""
        longest = most
        for value, change in (
            (self.from_lower, move.dual),
            (self.to_upper, -move.dual),
            (self.below, move.below),
            (self.above, move.above),
        ):
            falling = change < 0
            if falling.any():
                longest = min(longest, float((-value[falling] / change[falling]).min()))
        return longest

    def export(self) -> PrimalDual:
        """The point in the form all methods share."""
        dual = np.zeros(self.y.size)
        dual[self.rows] = self.dual
        return PrimalDual(self.u, self.bias, dual)

    def snapped(self) -> np.ndarray:
        """The dual with every variable at the bound whose multiplier outweighs its distance."""
        width = self.reach
        dual = np.zeros(self.y.size)
        dual[self.rows] = np.where(self.below * width > self.from_lower, self.lower, self.dual)
        at_upper = self.bounded & (self.above * width > self.to_upper)
        dual[self.rows] = np.where(at_upper, self.upper, dual[self.rows])
        return dual


class _Move:
    """A direction in all variables."""

    def __init__(self, u, bias, dual, below, above):
        self.u, self.bias, self.dual, self.below, self.above = u, bias, dual, below, above


def _balanced(label, upper):
    """Shares of the upper bounds in (0, 1/2] with equal sums over both classes."""
    plus, minus = upper[label > 0].sum(), upper[label < 0].sum()
    least = 0.5 * min(plus, minus)
    return np.where(label > 0, least / plus, least / minus)
