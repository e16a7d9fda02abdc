"""Kernel problems with a slack norm that has no structure of its own in the block solver.

        minimise_{f, b, xi}   1/2 ||f||^2 + C N(xi)

    dual set                    method
    PowerBall, plain BallBox    the barrier of the ball (`barrier.py`, `ball_barriers.py`)
    Ellipsoid                   the barrier of an ellipsoid
    any other                   cutting planes from the norm's maximiser (`cutting_planes.py`)

All of them take the whole kernel matrix in float64, and time that grows as n^3: they are meant for
some thousand rows (some hundred for a user's own norm).
"""

from __future__ import annotations

import math
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from anynorm.design.blocks import row_ranges
from anynorm.design.limits import FLOOR
from anynorm.design.watch import look
from anynorm.kernels.rows import KernelRows
from anynorm.norms.dual_sets import AnyBall, BallBox, DualSet, Ellipsoid, PowerBall
from anynorm.problem import Problem
from anynorm.problem.certificate import Values, relative_gap
from anynorm.problem.repair import repair_dual
from anynorm.solvers.frame.budget import OutOfTime
from anynorm.solvers.kernel.ball_barriers import (
    EllipsoidAboveBarrier,
    EllipsoidBarrier,
    PowerBarrier,
)
from anynorm.solvers.kernel.barrier import Barrier, Centre, follow_centre
from anynorm.solvers.kernel.cutting_planes import PlaneSearch
from anynorm.solvers.kernel.search import KernelSearch

Array = NDArray[np.float64]

_LOOK_BELOW = 10.0  # times tol: the gap of the central path from which on the true one is computed
_ROUNDING = 1e-13  # of the objective: a central path cannot be followed further
_ROUNDS = 10_000  # of cutting planes


class Looks:
    """Points of a method with values of its own: certified once these look good enough."""

    def __init__(self, search: KernelSearch) -> None:
        self.search, self.problem = search, search.problem
        self.zero_primal = self.problem.zero_primal()
        self.gap, self.goal = math.inf, 0.5 * search.tol
        self.a, self.bias = np.zeros(self.problem.n_rows), 0.0
        norm, loss = self.problem.loss.slack, self.problem.loss
        assert norm is not None
        # For other norms both the repair and the best bias are long computations.
        self.short = loss.signed or norm.monotone
        self.known = not isinstance(self.problem.dual_set, AnyBall)

    def look(self, a: Array, bias: float, primal: float, dual: float) -> bool:
        """Remember the point if it is the best, report it, and say whether it is good enough.

        It is if its certificate says so; where that one is worse than the values given, by the
        rounding of the repair, a smaller gap is asked for from then on.
        """
        values = Values(primal, dual, self.zero_primal)
        gap = relative_gap(primal, dual)
        if gap < self.gap:
            self.gap, self.a, self.bias = gap, a, bias
        self.search.best.report(values)
        if not gap <= self.goal:
            return False
        self.goal = 0.1 * gap
        self.offer()
        return self.search.best.reached

    def offer(self) -> None:
        """Certify the best point; without the entries that margins above 1 make 0, if it can."""
        problem, a = self.problem, self.a
        if not problem.loss.signed and a.any() and self.mends:
            margins = problem.y * (problem.scores(a) + self.bias)
            small = (margins - 1.0) * float(a.max()) > a
            if self._offer(repair_dual(problem, np.where(small, 0.0, a))):
                return
        self._offer(a)

    def _offer(self, a: Array) -> bool:
        scores = self.problem.scores(a)
        bias = self.problem.best_bias(scores) if self.mends else self.bias
        return self.search.offer(a, bias, scores)

    @property
    def mends(self) -> bool:
        """Whether there are a repair and a best bias that can be computed, and the time for it."""
        return self.short or (self.known and self.search.budget.in_time())

    def goes_on(self) -> bool:
        """Count an iteration; False where another one as long would be too late, or too many."""
        budget, n = self.search.budget, self.problem.n_rows
        budget.book(1)
        return budget.allows_another() and budget.leaves(self.search.rows.gram.cost(n, n))


def has_two_classes(search: KernelSearch) -> bool:
    """Whether there is anything to separate."""
    problem = search.problem
    return len(np.unique(problem.y[problem.row_weights() > 0])) == 2


def has_barrier(search: KernelSearch) -> bool:
    """Whether the duals are in a plain ball, and rows of both classes have weight."""
    ball = search.problem.dual_set
    plain = not isinstance(ball, BallBox) or (
        math.isinf(ball.budget) and not np.isfinite(ball.upper).any()
    )
    return plain and has_two_classes(search)


def solve_by_planes(search: KernelSearch) -> None:
    """Cutting planes, from the best point so far or from the start."""
    problem, looks = search.problem, Looks(search)
    start = search.best.dual_point[0] if search.best.dual_point else None
    if start is None and search.start is not None:
        start = problem.y * search.start
    planes = PlaneSearch(problem, _signed_kernel(search.rows, problem.y), start)
    for _ in range(_ROUNDS):
        answer = planes.between_planes()
        if looks.look(*planes.point(answer)) or not looks.goes_on() or planes.stalled():
            break
        planes.learn(answer)
    if not search.best.reached:
        looks.offer()


def solve_in_barrier(search: KernelSearch) -> None:
    """The barrier method on the rows that have weight."""
    problem, looks = search.problem, Looks(search)
    kept = problem.row_weights() > 0
    y = problem.y[kept]
    if kept.all():
        Q = _signed_kernel(search.rows, y)
    else:
        index = np.flatnonzero(kept)
        K = search.rows.gram.block(index, index)
        Q = (K + K.T) / 2 * y * y[:, None]
    barrier = _barrier_of(problem.dual_set, y, kept)

    def done(centre: Centre) -> bool:
        dual = float(centre.a.sum()) - 0.5 * float(centre.a @ centre.pulled)
        size = max(abs(dual), FLOOR * looks.zero_primal)
        expected, more = barrier.degree / centre.t, looks.goes_on()
        if more and expected > _LOOK_BELOW * search.tol * size:
            return False
        a, scores = np.zeros(len(kept)), np.zeros(len(kept))
        a[kept], scores[kept] = centre.a, y * centre.pulled
        found = looks.look(a, centre.bias, *_values(problem, a, scores, centre.bias))
        return found or not more or expected <= _ROUNDING * size

    with suppress(OutOfTime):
        follow_centre(Q, y, barrier, looks.zero_primal, done=done)
    if not search.best.reached:
        looks.offer()


def _signed_kernel(rows: KernelRows, y: Array) -> Array:
    K = np.empty((rows.n, rows.n))
    for part in row_ranges(rows.n, rows.n):
        K[part] = rows.gram.block(part, slice(None))
        look()
    K *= y
    K *= y[:, None]
    return (K + K.T) / 2


def _values(problem: Problem, a: Array, scores: Array, bias: float) -> tuple[float, float]:
    """Primal and dual value of an inner point (which is feasible)."""
    square = 0.5 * float((problem.y * a) @ scores)
    return square + problem.loss_at(scores, bias), float(a.sum()) - square


def _barrier_of(ball: DualSet, y: Array, kept: NDArray[np.bool_]) -> Barrier:
    """The barrier of a set, for the rows kept."""
    if isinstance(ball, BallBox):
        w = ball.weights[kept]
        return PowerBarrier(2.0, ball.length * w, w, y, ball.signed)
    if isinstance(ball, PowerBall):
        return PowerBarrier(ball.p, ball.bound[kept], ball.weights[kept], y, ball.signed)
    assert isinstance(ball, Ellipsoid)
    if ball.signed:
        return EllipsoidBarrier(ball.M, ball.radius)
    inside = np.where(y > 0, 1.0 / np.count_nonzero(y > 0), 1.0 / np.count_nonzero(y < 0))
    length = math.sqrt(float(inside @ np.linalg.solve(ball.M, inside)))
    return EllipsoidAboveBarrier(ball.M, 0.5 * ball.radius * inside / length, ball.radius)
