"""Duals in a 2-norm ball, perhaps with a box or a budget: L2, TopK2 and K12 slacks.

        maximise_a   sum(a) - 1/2 a'Qa,    Q = (y y') * K,   y'a = 0,   sum a^2/w <= length^2,

    slack       length         and further
    L2          C              -
    TopK2(k)    C              sum |a| <= sqrt(k) C
    K12(r)      sqrt(r) C      |a| <= C w

With a multiplier mu for the ball the kernel is K + diag(mu/w), and block SMO solves what is left;
pairwise steps on the ball itself can stall.  The length phi(mu) of that solution falls in mu and
1/phi is nearly linear, so the secular equation 1/phi(mu) = 1/length is solved by secants within a
bracket, each solution the start of the next.  ``mu phi`` is the slacks' norm, and
``mu' = mu phi / length`` the first guess.  Where the ball does not bind, a mu with
``mu phi (length - phi)`` below the gap asked for ends the search.

The problem of a fixed mu has the primal loss, for s = (1 - margin)_+ or |1 - margin|,

    L2          sum w s^2 / (2 mu)
    TopK2       min over z >= 0 of  sqrt(k) C z + sum w (s - z)_+^2 / (2 mu)
    K12         sum w s^2 / (2 mu) up to s = mu C, C w (s - mu C / 2) above
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from anynorm.norms.dual_sets import BallBox
from anynorm.problem.certificate import Values
from anynorm.solvers.frame.patience import Patience
from anynorm.solvers.kernel.box_duals import bounded
from anynorm.solvers.kernel.search import KernelSearch
from anynorm.solvers.kernel.smo import BoxResult, ValuesAt, minimise_box

Array = NDArray[np.float64]

_SEARCHES = 60  # multipliers at the most
_IDLE = 4  # multipliers without a tenth of the gap: the brackets then close on rounding
_LOOSE = 1e-2  # the gap to which the first is solved
_INNER = 0.1  # of the gap: how well the problem of one multiplier is solved
_TIGHTEST = 1e-13  # a gap that float64 can still tell
_FARTHEST = 100.0  # times: how far from the last a multiplier may be


def solve_ball(search: KernelSearch) -> None:
    """Solve a problem whose duals are in a ball, perhaps with a box or a budget."""
    _MultiplierSearch(search).run()


class _MultiplierSearch:
    """The search for the multiplier: a bracket, and the last two solutions."""

    def __init__(self, search: KernelSearch) -> None:
        self.search, self.problem, self.rows = search, search.problem, search.rows
        self.best, self.tol = search.best, search.tol
        ball = self.problem.dual_set
        assert isinstance(ball, BallBox)
        self.ball, self.w, self.length, self.budget = ball, ball.weights, ball.length, ball.budget
        # No solution comes near this bound, but an indefinite kernel would go to infinity.
        farthest = _FARTHEST**2 * self.length * np.sqrt(self.w)
        self.boxed = bool(np.isfinite(ball.upper).all())
        self.upper = ball.upper if self.boxed else farthest
        self.low, self.high = 0.0, math.inf
        self.known: list[tuple[float, float]] = []

    def run(self) -> None:
        """Solve for one multiplier after the other until the gap is reached."""
        mu, beta = math.sqrt(float(self.w.sum())) / self.length, self.search.start
        if beta is not None and beta.any():
            mu = self._suggested(beta, mu)
        inner = max(min(_LOOSE, _FARTHEST * self.tol), _INNER * self.tol)
        patience = Patience(_IDLE, 0.9)
        for _ in range(_SEARCHES):
            found = self._at(mu, inner, beta)
            beta, phi = found.beta, self._length_of(found.beta)
            here = self._offer(found, phi)
            gap = self.best.gap
            done = self.best.reached or not self.search.budget.goes_on()
            if done or phi == 0.0 or math.isnan(gap) or patience.is_over(gap):
                return
            # The problem of one multiplier is strongly convex: that bounds the error of phi.
            size = max(abs(here.dual), abs(here.primal))
            error = math.sqrt(2 * max(found.gap, 0.0) * size / mu)
            sure = self._narrow(mu, phi, error)
            tighter = _INNER * gap if sure else min(_INNER * gap, _INNER * inner)
            inner = min(inner, max(tighter, _TIGHTEST))
            mu = self._next(mu, phi)

    def _suggested(self, beta: Array, mu: float) -> float:
        """The multiplier that the slacks of a start imply."""
        scores = self.rows.exact_scores(beta)
        bias = self.problem.best_bias(scores)
        phi = self._length_of(beta)
        slacks = self._slacks(scores, bias)
        size = math.sqrt(float(self.w @ slacks**2))
        return size / phi if size > 0 and phi > 0 else mu

    def _narrow(self, mu: float, phi: float, error: float) -> bool:
        """Narrow the bracket by a length known up to `error`; whether that was possible."""
        if phi - error > self.length:
            self.low = max(self.low, mu)
        elif phi + error < self.length:
            self.high = min(self.high, mu)
        else:
            return False
        return True

    def _next(self, mu: float, phi: float) -> float:
        """The next multiplier: a secant of 1/phi within the bracket."""
        guess = mu * phi / self.length
        if self.known:
            other, length = self.known[-1]
            slope = (1 / phi - 1 / length) / (mu - other) if mu != other else 0.0
            if slope > 0:
                guess = mu + (1 / self.length - 1 / phi) / slope
        self.known.append((mu, phi))
        if phi < self.length:  # from here on the ball need not bind
            size = max(abs(self.best.dual), 1e-300)
            least = 0.1 * self.tol * size / (phi * (self.length - phi))
            guess = max(guess, min(least, 0.5 * mu))
        guess = min(max(guess, mu / _FARTHEST), mu * _FARTHEST)
        if not self.low < guess < self.high:
            guess = math.sqrt(self.low * self.high) if self.low > 0 else 0.1 * self.high
            guess = guess if math.isfinite(guess) else 10 * mu
        return guess

    def _at(self, mu: float, tol: float, start: Array | None) -> BoxResult:
        """The solution for one multiplier."""
        present = self.w > 0
        diagonal = np.divide(mu, self.w, out=np.zeros(len(self.w)), where=present)
        problem = self.problem
        box = bounded(problem.y, self.upper, self.budget, diagonal, self.ball.signed)
        return minimise_box(
            self.rows,
            box,
            values=self._values(mu, diagonal),
            tol=tol,
            budget=self.search.budget,
            start=start,
        )

    def _values(self, mu: float, diagonal: Array) -> ValuesAt:
        """Primal and dual value of the problem of one multiplier."""
        y, nothing = self.problem.y, np.zeros(self.problem.n_rows)
        scale = self._loss(self._slacks(nothing, 0.0), mu)

        def values(beta: Array, scores: Array, bias: float) -> Values:
            square = 0.5 * float(beta @ scores)
            dual = float(y @ beta) - square - 0.5 * float(diagonal @ beta**2)
            return Values(square + self._loss(self._slacks(scores, bias), mu), dual, scale)

        return values

    def _slacks(self, scores: Array, bias: float) -> Array:
        r = 1.0 - self.problem.y * (scores + bias)
        return np.abs(r) if self.ball.signed else np.maximum(r, 0.0)

    def _loss(self, s: Array, mu: float) -> float:
        """The primal loss of one multiplier."""
        if self.boxed:
            flat = np.minimum(s, mu * self.problem.C)
            return float(self.w @ (flat**2 / (2 * mu) + self.problem.C * (s - flat)))
        z = _level(s, self.w, mu * self.budget) if math.isfinite(self.budget) else 0.0
        above = float(self.w @ np.maximum(s - z, 0.0) ** 2) / (2 * mu)
        return above + (self.budget * z if z > 0 else 0.0)

    def _length_of(self, beta: Array) -> float:
        present = self.w > 0
        return math.sqrt(float((beta[present] ** 2 / self.w[present]).sum()))

    def _offer(self, found: BoxResult, phi: float) -> Values:
        """Certify the solution scaled into the ball."""
        problem = self.problem
        scale = min(1.0, self.length / phi) if phi > 0 else 1.0
        a, scores = scale * problem.y * found.beta, scale * found.scores
        bias = problem.best_bias(scores)
        values = problem.values(a, bias, a, scores=scores)
        self.best.replace(values, (a, bias))
        return values


def _level(s: Array, w: Array, total: float) -> float:
    """The z >= 0 with ``sum w (s - z)_+ = total``, or 0 where that sum is less at 0."""
    order = np.argsort(-s, kind="stable")
    s, w = s[order], w[order]
    weight, mass = np.cumsum(w), np.cumsum(w * s)
    filled = mass - weight * s  # the sum at z = s_j
    j = int(np.searchsorted(filled, total, side="right")) - 1
    if j < 0 or weight[j] <= 0:
        return 0.0
    return max((float(mass[j]) - total) / float(weight[j]), 0.0)
