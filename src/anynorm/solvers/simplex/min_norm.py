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
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design.points import KernelPoints, Points, gram, scaled
from anynorm.problem.certificate import Certificate, relative_gap
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.screening import Ball
from anynorm.solvers.simplex.corral import Corral
from anynorm.solvers.simplex.pairwise import pairwise_block

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_WORKING = 8000  # the most points whose products with each other are kept
_FIRST = 400  # the most points to begin with
_ALL_AT_ONCE = 2000  # so many points or fewer in a space of far more dimensions are all taken
_GUESS = 1000  # more points than that are asked for a guess, where they know one
_STALLS = 3  # rounds without progress that show rounding to be the limit
_BLOCK_STALLS = 100
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
    search = _Search(points, norms, tol, max_iter, deadline, progress)
    state = search.run(start, max_working)
    w = scale * points.combine(state.x)
    certificate = Certificate(
        scale * (scale * state.primal),
        scale * (scale * state.dual),
        math.nan if search.indefinite else state.gap,
        search.status(state),
        tol,
        scale * (scale * search.zero_primal),
    )
    return Solution(w, certificate, search.n_iter, x=state.x)


class State(NamedTuple):
    """A point of the simplex with the products ``A_i'w`` and what they say about it."""

    x: Array
    inner: Array
    primal: float
    dual: float
    gap: float


class _Search:
    """The search for the least norm, with its limits."""

    def __init__(
        self,
        points: Points,
        norms: Array,
        tol: float,
        max_iter: int,
        deadline: float | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.points, self.tol, self.max_iter, self.progress = points, tol, max_iter, progress
        self.deadline = math.inf if deadline is None else deadline
        self.norms, self.zero_primal = norms, float(norms.max())
        self.floor = 1e-10 * self.zero_primal
        # The entries of a kernel matrix are rounded: a smaller x'Kx cannot be told from zero.
        known = 4 * np.finfo(np.float64).eps if isinstance(points, KernelPoints) else 0.0
        self.rounding = known * self.zero_primal
        self.n_iter, self.began = 0, time.monotonic()
        self.indefinite = self.late = False
        self.alive: Index | None = None
        self.view, self.looks = points, 0

    def run(self, start: Array | None, max_working: int) -> State:
        """Return the best point found."""
        if start is None and self.points.n > _GUESS and hasattr(self.points, "guess"):
            start = self.points.guess(self.deadline)
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
            self.n_iter += corral.descend(
                _SHARE * self.tol, self.max_iter - self.n_iter, self.deadline
            )
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

    def _in_blocks(self, state: State, size: int) -> State:
        """Go on from a point that uses more points than can be at work."""
        self.alive = None
        best, stalls = state, 0
        while best.gap > self.tol and stalls < _BLOCK_STALLS and self._goes_on():
            self.n_iter += 1
            aim = (_SHARE * self.tol, self.floor, self.deadline)
            state = self.look(pairwise_block(self.points, state.x, state.inner, size, *aim))
            # The primal value settles long before the gap does.
            stalls = 0 if state.gap < 0.9 * best.gap else stalls + 1
            best = state if state.gap < best.gap else best
        return best

    def look(self, x: Array) -> State:
        """The products ``A_i'w`` of the points that are not proved unused, and the gap."""
        w = self.points.combine(x)
        inner = self.points.dot(w) if self.alive is None else np.full(self.points.n, np.inf)
        if self.alive is not None:
            inner[self.alive] = self.view.dot(w)
        used = np.flatnonzero(x)
        primal, lowest = float(x[used] @ inner[used]), float(inner.min())
        self.indefinite |= primal < -1e-8 * self.zero_primal
        primal = primal if primal > self.rounding else 0.0
        # The bound cannot exceed the norm: what is above is rounding.
        dual = min(lowest * (lowest / primal), primal) if lowest > 0 and primal > 0 else 0.0
        state = State(x, inner, primal, dual, relative_gap(primal, dual, self.zero_primal))
        if self.progress is not None:
            seconds = time.monotonic() - self.began
            self.progress(Progress(self.n_iter, primal, dual, state.gap, seconds))
        return state

    def status(self, state: State) -> Status:
        """How the search ended."""
        if self.indefinite:
            return Status.UNCERTIFIED
        if state.gap <= self.tol:
            return Status.OPTIMAL
        return Status.TIME_LIMIT if self.late else Status.MAX_ITER

    def _goes_on(self) -> bool:
        self.late = time.monotonic() >= self.deadline
        return not (self.late or self.indefinite or self.n_iter >= self.max_iter)

    def _certified(self, state: State) -> State:
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

    def _choose(self, corral: Corral, working: Index, state: State, max_working: int) -> Index:
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

    def _screen(self, state: State, working: Index) -> None:
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
