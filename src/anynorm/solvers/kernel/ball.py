"""Kernel problems whose dual has an l2 ball: L2, TopK2 and K12 slacks.

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
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.rows import KernelRows
from anynorm.norms import K12, L2, TopK2
from anynorm.problem import Problem
from anynorm.problem.certificate import certify, optimal_bias
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.kernel.box import bounded
from anynorm.solvers.kernel.general import solve_general
from anynorm.solvers.kernel.smo import BoxResult, Values, minimise_box

Array = NDArray[np.float64]

BALL_SLACKS = (L2, TopK2, K12)

_SEARCHES = 60
_LOOSE = 1e-2
_INNER = 0.1  # of the gap: how well the problem of one multiplier is solved
_TIGHTEST = 1e-13
_FARTHEST = 100.0
_GENERAL_ROWS = 500


def solve_ball(
    problem: Problem,
    rows: KernelRows,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    start: Array | None,
    progress: Callable[[Progress], None] | None,
) -> Solution:
    """Solve a problem whose slack is one of `BALL_SLACKS`; see `solve_kernel`."""
    search = _Search(problem, rows, tol, max_iter, deadline, progress)
    solution = search.run(start)
    late = deadline is not None and time.monotonic() >= deadline
    if solution.status is not Status.MAX_ITER or late or search.n_iter >= max_iter:
        return solution
    if problem.n_rows > _GENERAL_ROWS:
        return solution
    other = solve_general(
        problem, rows, tol=tol, max_iter=max_iter, deadline=deadline, start=solution.dual,
        progress=progress,
    )  # fmt: skip
    return other if other.certificate.gap < solution.certificate.gap else solution


class _Search:
    """The search for the multiplier: a bracket, the last two solutions and the best point."""

    def __init__(
        self,
        problem: Problem,
        rows: KernelRows,
        tol: float,
        max_iter: int,
        deadline: float | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.problem, self.rows, self.tol = problem, rows, tol
        self.max_iter, self.deadline, self.progress = max_iter, deadline, progress
        self.began, self.n_iter = time.monotonic(), 0
        self.slack = problem.loss.slack
        self.w = problem.row_weights()
        self.length = problem.C
        # No solution comes near this bound, but an indefinite kernel would go to infinity.
        self.upper = _FARTHEST**2 * self.length * np.sqrt(self.w)
        self.budget = math.inf
        if isinstance(self.slack, K12):
            self.length, self.upper = math.sqrt(self.slack.r) * problem.C, problem.C * self.w
        elif isinstance(self.slack, TopK2):
            self.budget = math.sqrt(self.slack.k) * problem.C
        self.low, self.high = 0.0, math.inf
        self.known: list[tuple[float, float]] = []
        self.best: Solution | None = None

    def run(self, start: Array | None) -> Solution:
        """Solve for one multiplier after the other until the gap is reached."""
        mu = math.sqrt(float(self.w.sum())) / self.length
        beta = None if start is None else self.problem.y * start
        if beta is not None and beta.any():
            mu = self._suggested(beta, mu)
        inner = max(min(_LOOSE, _FARTHEST * self.tol), _INNER * self.tol)
        for _ in range(_SEARCHES):
            found = self._at(mu, inner, beta)
            beta, phi = found.beta, self._length_of(found.beta)
            solution = self._certified(found, phi)
            if self.best is None or solution.certificate.gap < self.best.certificate.gap:
                self.best = solution
            gap = self.best.certificate.gap
            if found.stopped is Status.TIME_LIMIT and self.best.status is Status.MAX_ITER:
                late = replace(self.best.certificate, status=Status.TIME_LIMIT)
                self.best = replace(self.best, certificate=late)
            if self.best.status is not Status.MAX_ITER:
                break
            if self.n_iter >= self.max_iter:
                break
            if phi == 0.0 or math.isnan(gap):
                break
            # The problem of one multiplier is strongly convex: that bounds the error of phi.
            size = max(abs(solution.certificate.dual), abs(solution.certificate.primal))
            error = math.sqrt(2 * max(found.gap, 0.0) * size / mu)
            sure = self._narrow(mu, phi, error)
            tighter = _INNER * gap if sure else min(_INNER * gap, _INNER * inner)
            inner = min(inner, max(tighter, _TIGHTEST))
            mu = self._next(mu, phi)
        assert self.best is not None
        return self.best

    def _suggested(self, beta: Array, mu: float) -> float:
        """The multiplier that the slacks of a start imply."""
        scores = self.rows.exact_scores(beta)
        bias = self._bias(scores)
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
            assert self.best is not None
            size = max(abs(self.best.certificate.dual), 1e-300)
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
        box = bounded(problem.y, self.upper, self.budget, diagonal, problem.loss.signed)
        zero = np.zeros(problem.n_rows)
        found = minimise_box(
            self.rows, box, values=self._values(mu, diagonal), tol=tol,
            zero_primal=self._values(mu, diagonal)(zero, zero, 0.0)[0],
            max_iter=self.max_iter - self.n_iter, deadline=self.deadline, start=start,
        )  # fmt: skip
        self.n_iter += found.n_iter
        return found

    def _values(self, mu: float, diagonal: Array) -> Values:
        """Primal and dual value of the problem of one multiplier."""
        y = self.problem.y

        def values(beta: Array, scores: Array, bias: float) -> tuple[float, float]:
            square = 0.5 * float(beta @ scores)
            dual = float(y @ beta) - square - 0.5 * float(diagonal @ beta**2)
            return square + self._loss(self._slacks(scores, bias), mu), dual

        return values

    def _slacks(self, scores: Array, bias: float) -> Array:
        r = 1.0 - self.problem.y * (scores + bias)
        return np.abs(r) if self.problem.loss.signed else np.maximum(r, 0.0)

    def _loss(self, s: Array, mu: float) -> float:
        """The primal loss of one multiplier."""
        if isinstance(self.slack, K12):
            bend = mu * self.problem.C
            flat = np.minimum(s, bend)
            return float(self.w @ (flat**2 / (2 * mu) + self.problem.C * (s - flat)))
        z = 0.0
        if isinstance(self.slack, TopK2):
            z = _level(s, self.w, mu * self.budget)
        above = float(self.w @ np.maximum(s - z, 0.0) ** 2) / (2 * mu)
        return above + (self.budget * z if z > 0 else 0.0)

    def _length_of(self, beta: Array) -> float:
        present = self.w > 0
        return math.sqrt(float((beta[present] ** 2 / self.w[present]).sum()))

    def _bias(self, scores: Array) -> float:
        problem = self.problem
        return optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)

    def _certified(self, found: BoxResult, phi: float) -> Solution:
        """The solution scaled into the ball, with its certificate."""
        scale = min(1.0, self.length / phi) if phi > 0 else 1.0
        a, scores = scale * self.problem.y * found.beta, scale * found.scores
        bias = self._bias(scores)
        stopped = Status.MAX_ITER if found.stopped is Status.OPTIMAL else found.stopped
        certificate = certify(
            self.problem, a, bias, a, tol=self.tol, stopped=stopped, scores=scores
        )
        if self.progress is not None:
            seconds = time.monotonic() - self.began
            self.progress(
                Progress(
                    self.n_iter, certificate.primal, certificate.dual, certificate.gap, seconds
                )
            )
        return Solution(a, certificate, self.n_iter, coef=a, intercept=bias)


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
