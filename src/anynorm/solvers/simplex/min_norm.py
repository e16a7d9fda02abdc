"""The point of least norm in the convex hull of some points.

        minimise  ||A x||^2   over the simplex, x >= 0, sum(x) = 1

The points are the columns of A.  With w = A x, no point of the hull is nearer to 0 than
``min_i A_i'w / ||w||``, whose square is the dual value, and at the optimum all points that x uses
have ``A_i'w = ||w||^2``, the others no less.

Wolfe's method (`corral.py`) solves the problem for some working points.  Those of all points that
lie lowest, ``A_i'w`` least, join them until none is below ``||w||^2``.  Points that the gap proves
unused are left out of these comparisons, and come back for the certificate.  Where more points are
in use than there is memory for their products, `pairwise.py` goes on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design.points import KernelPoints, Points, gram, scaled
from anynorm.kernels.definite import is_semidefinite
from anynorm.problem import HullProblem
from anynorm.problem.certificate import certificate_of, relative_gap
from anynorm.problem.solution import Progress, Solution
from anynorm.screening import Ball
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.simplex.corral import Corral
from anynorm.solvers.simplex.pairwise import pairwise_block

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_WORKING = 8000  # the most points whose products with each other are kept
_FIRST = 400  # the most points to begin with
_ALL_AT_ONCE = 2000  # so many points or fewer in a space of far more dimensions are all taken
_GUESS = 1000  # more points than that are asked for a guess, where they know one
_STALLS = 3  # rounds without progress that show rounding to be the limit
_BLOCK_STALLS = 100  # blocks without a tenth of the gap: blocks are small steps, so many of them
_SHARE = 0.1  # of the gap wanted, for the problem of the working points


def solve_min_norm(
    points: Points,
    *,
    tol: float = 1e-9,
    max_iter: int = 10_000,
    deadline: float | None = None,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
    max_working: int = _WORKING,
) -> Solution:
    """Find the point of least norm in the hull of `points`, to a relative gap of `tol`.

    `start` is a point of the simplex, `deadline` a moment of `time.monotonic`, `max_working` the
    most points whose products with each other are kept.
    """
    points, norms, scale = scaled(points)
    budget = Budget(max_iter, deadline)
    search = HullSearch(points, norms, tol, budget, progress)
    found = search.run(start, max_working)
    values = search.problem.values(found.x, found.inner)
    shown = not isinstance(points, KernelPoints) or is_semidefinite(points.K)
    values = values._replace(certain=values.certain and shown and not search.indefinite)
    certificate = certificate_of(search.problem.rescaled(scale, values), tol, budget.stopped)
    w = scale * points.combine(found.x)
    return Solution(w, certificate, budget.n_iter, x=found.x)


class HullPoint(NamedTuple):
    """A point of the simplex with the products ``A_i'w`` and what they say about it."""

    x: Array
    inner: Array
    primal: float
    dual: float
    gap: float


class HullSearch:
    """The search for the least norm, with its limits."""

    def __init__(
        self,
        points: Points,
        norms: Array,
        tol: float,
        budget: Budget,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.points, self.tol, self.budget = points, tol, budget
        self.norms, self.zero_primal = norms, float(norms.max())
        # The entries of a kernel matrix are rounded, and so are those of w = A x.
        digits = 4 * np.finfo(np.float64).eps
        known = digits if isinstance(points, KernelPoints) else digits**2
        self.problem = HullProblem(self.zero_primal, known * self.zero_primal)
        self.floor = self.problem.rounding
        self.best = Incumbent(self.problem, tol, budget, progress)
        self.indefinite = False
        self.alive: Index | None = None
        self.view, self.looks = points, 0

    def run(self, start: Array | None, max_working: int) -> HullPoint:
        """Return the best point found."""
        if start is None and self.points.n > _GUESS and hasattr(self.points, "guess"):
            start = self.points.guess(self.budget.deadline)
            state = self.look(start)
            if state.gap <= self.tol or not self._goes_on():
                return state
        if start is not None and np.count_nonzero(start) > max_working // 2:
            return self._in_blocks(self.look(start), max_working)
        working, x = self._first(start)
        corral = Corral(self._shift(working), self.floor)
        corral.extend(gram(self.points, working, working))
        corral.begin(x)
        best, stalls = None, 0
        while True:
            corral.descend(_SHARE * self.tol, self.budget)
            self.indefinite |= corral.indefinite
            x = np.zeros(self.points.n)
            x[working] = corral.x
            state = self.look(x)
            progress = (
                best is None
                or state.primal < (1 - 1e-13) * best.primal
                or state.gap < 0.9 * best.gap
            )
            stalls = 0 if progress else stalls + 1
            if best is None or state.gap < best.gap:
                best = state
            if best.gap <= self.tol or stalls >= _STALLS or not self._goes_on():
                return best if self.alive is None else self._certified(best)
            if corral.size > 0.8 * max_working:
                return self._in_blocks(state, max_working)
            self._screen(state, working)
            working = self._choose(corral, working, state, max_working)

    def _in_blocks(self, state: HullPoint, size: int) -> HullPoint:
        """Go on from a point that uses more points than can be at work."""
        self.alive = None
        best, stalls = state, 0
        while best.gap > self.tol and stalls < _BLOCK_STALLS and self._goes_on():
            self.budget.book(1)
            aim = (_SHARE * self.tol, self.floor, self.budget)
            state = self.look(pairwise_block(self.points, state.x, state.inner, size, *aim))
            # The primal value settles long before the gap does.
            stalls = 0 if state.gap < 0.9 * best.gap else stalls + 1
            best = state if state.gap < best.gap else best
        return best

    def look(self, x: Array) -> HullPoint:
        """The products ``A_i'w`` of the points that are not proved unused, and the gap."""
        w = self.points.combine(x)
        inner = self.points.dot(w) if self.alive is None else np.full(self.points.n, np.inf)
        if self.alive is not None:
            inner[self.alive] = self.view.dot(w)
        values = self.problem.values(x, inner)
        self.indefinite |= not values.certain
        self.best.report(values)
        gap = 0.0 if values.primal <= values.rounding else relative_gap(values.primal, values.dual)
        return HullPoint(x, inner, values.primal, values.dual, gap)

    def _goes_on(self) -> bool:
        return not self.indefinite and self.budget.goes_on()

    def _certified(self, state: HullPoint) -> HullPoint:
        """The same point, compared with all points."""
        self.alive = None
        return self.look(state.x)

    def _first(self, start: Array | None) -> tuple[Index, Array]:
        """Working points to begin with, and a point of their hull."""
        n, d = self.points.n, self.points.d
        if start is not None:
            working = np.flatnonzero(start)
            return working, start[working]
        shortest = int(self.norms.argmin())
        if self.norms[shortest] <= self.tol * self.floor:
            return np.array([shortest]), np.ones(1)
        few = n <= _ALL_AT_ONCE and n <= d // 4
        size = n if few else min(n, max(50, min(d // 2, _FIRST)))
        if size == n:
            working = np.arange(n)
        else:
            inner = self.points.dot(self.points.combine(np.full(n, 1.0 / n)))
            working = np.argpartition(inner, size - 1)[:size]
        x = np.zeros(size)
        x[self.norms[working].argmin()] = 1.0
        return working, x

    def _shift(self, working: Index) -> float:
        """A typical squared length, for the corral's factor."""
        typical = float(np.median(self.norms[working]))
        return typical if typical > 0 else max(self.zero_primal, 1.0)

    def _choose(self, corral: Corral, working: Index, state: HullPoint, max_working: int) -> Index:
        """Let the lowest points join the working ones, and the highest leave where they are many.

        The corral gets the exact products of its points with w.
        """
        corral.g = state.inner[working]
        limit = min(9 * max_working // 10, 3 * corral.size + 200)
        if len(working) > limit:
            rank = corral.g.copy()
            rank[corral.S] = -np.inf
            count = max(limit // 2, corral.size)
            kept = np.sort(np.argpartition(rank, count - 1)[:count])
            corral.keep(kept)
            working = working[kept]
        short = state.primal - state.inner
        short[working] = 0.0
        joining = np.flatnonzero(short > _SHARE * self.tol * max(state.primal, self.floor))
        many = len(joining) > 2 * corral.size
        room = max(20, corral.size if many else corral.size // 2)
        room = min(room, max_working - len(working))
        if len(joining) > room:
            joining = joining[np.argpartition(-short[joining], room)[:room]]
        if len(joining):
            working = np.concatenate([working, joining])
            corral.extend(gram(self.points, joining, working))
            corral.g = state.inner[working]
        return working

    def _screen(self, state: HullPoint, working: Index) -> None:
        """Leave out of further comparisons what the gap proves unused, where that pays.

        The best w* of the hull has ``w'w* >= ||w*||^2``, so that ``||w - w*||^2 <= P - D``, and
        the points in use have ``(A_i - w)'w* <= 0``.
        """
        self.looks += 1
        subset = getattr(self.points, "subset", None)
        if subset is None or self.looks < 3 or not state.dual > 0:
            return
        alive = np.arange(self.points.n) if self.alive is None else self.alive
        inner = state.inner[alive]
        radius = math.sqrt(max(state.primal - state.dual, 0.0)) + 1e-7 * math.sqrt(state.primal)
        distance = np.sqrt(np.maximum(self.norms[alive] - 2 * inner + state.primal, 0.0))
        ball = Ball(inner - state.primal, distance, radius)
        possible = ball.centre <= ball.reach()
        possible[np.isin(alive, working)] = True
        if 4 * np.count_nonzero(possible) <= len(alive):
            self.alive = alive[possible]
            self.view = subset(self.alive)
