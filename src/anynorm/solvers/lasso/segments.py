"""From joint to joint of the Lasso's path, for columns that are at hand.

        minimise_x   1/2 ||A x - b||^2 + lambda ||x||_1

With c = A'(b - A x), the columns in use have c_j = lambda sign(x_j), all others |c_j| <= lambda.
As lambda falls by gamma, x moves by gamma d and c by -gamma G d, G = A'A.  A segment ends where
another column reaches |c_j| = lambda or a coefficient 0.

At a joint the set E of columns with |c_j| = lambda may be larger than those in use: ties, columns
that just reached 0, repeated columns.  The direction is then the solution of a small problem,

        minimise_d   1/2 d'G d - s'd    over d on E,   s_j d_j >= 0 where x_j = 0,      s = sign(c),

whatever the order of the events (Osborne, Presnell, Turlach 2000), found by the active set method
for non-negative least squares (Lawson and Hanson 1974), every step of which lowers the value: there
is no cycling.  A column that depends on those in use has the gradient 0 there and stays out.
"""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from anynorm.design.limits import DEPENDENT
from anynorm.solvers.frame import factor_loops
from anynorm.solvers.lasso.working_columns import WorkingColumns

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_GAIN = 1e-10  # relative gradients below this are zero
_ACCURATE, _REFINED = 1e-13, 3  # of linear systems, and in how many steps at most
_EPS = float(np.finfo(np.float64).eps)
_NOISE = 16 * _EPS  # some last digits, for a product whose terms add up to its reach


class Event(enum.Enum):
    """What ends a segment."""

    JOINT = enum.auto()
    END = enum.auto()
    RADIUS = enum.auto()


class Rounding:
    """What rounding leaves uncertain of c, for columns of given lengths and ||b||."""

    def __init__(self, norms: Array, length: float) -> None:
        self.norms, self.length = norms, length
        self.shortest = float(norms[norms > 0].min(initial=np.inf))

    def noise(self, index: Index, x: Array) -> Array:
        """The uncertainty of all c at coefficients x."""
        return _NOISE * self.norms * self._reach(index, x)

    def least(self, index: Index, x: Array) -> float:
        """The lambda that cannot be told from 0 at coefficients x."""
        return 16 * _NOISE * self.shortest * self._reach(index, x)

    def _reach(self, index: Index, x: Array) -> float:
        return max(self.length, float(np.abs(x) @ self.norms[index]))


class Segments:
    """The path of some columns from a given joint on.

    Attributes
    ----------
    x, pull : ndarray of shape (m,)
        The coefficients and c.
    penalty : float
        Lambda.
    """

    def __init__(
        self, columns: WorkingColumns, rounding: Rounding, shortest: Array, tie: float
    ) -> None:
        self.columns, self.block = columns, columns.block
        self.rounding, self.tie = rounding, tie
        self.norms = np.sqrt(columns.block.column_norms_squared())
        self.usable = self.norms > shortest[columns.index]
        self.S: Index = np.empty(0, dtype=np.intp)
        self.R = np.empty((64, 64))

    def begin(self, x: Array, pull: Array, penalty: float) -> None:
        """Start at a joint, with what rounding left of c_j = lambda sign(x_j) put right."""
        self.x, self.pull, self.penalty = x.copy(), pull.copy(), penalty
        for j in np.flatnonzero(x):
            if not self._append(int(j)):
                self.x[j] = 0.0
        if len(self.S):
            signs = np.sign(self.x[self.S])
            step = self._solve(self.pull[self.S] - penalty * signs)
            kept = (self.x[self.S] + step) * signs > 0
            step = np.where(kept, step, 0.0)
            self.x[self.S] += step
            self.pull -= self.block.rmatvec(self.block.matvec(step, columns=self.S))
            self._remove(np.flatnonzero(~kept))

    # ---------------------------------------------------------------- the direction at a joint

    def turn(self) -> None:
        """Find the direction of the segment that leaves the present joint."""
        signs = np.sign(self.pull)
        self.signs = signs
        noise = self.rounding.noise(self.columns.index[self.S], self.x[self.S])
        noise = noise[self.columns.index]
        tied = np.abs(self.pull) >= self.penalty - self.tie * self.penalty - noise
        tied &= self.usable
        free = np.zeros(len(signs), dtype=bool)
        free[self.S] = True
        d = np.zeros(len(signs))
        d[self.S] = self._solve(signs[self.S])
        waiting = tied & ~free
        while True:
            self.slope = self.block.rmatvec(self.block.matvec(d[self.S], columns=self.S))
            self.limit = _GAIN + 64 * _EPS * self.norms * float(np.abs(d) @ self.norms)
            gain = np.where(waiting, 1.0 - signs * self.slope - self.limit, 0.0)
            j = int(gain.argmax()) if len(gain) else 0
            if not len(gain) or not gain[j] > 0:
                break
            waiting[j] = False
            if self._append(j) and self._improve(d, signs, free):
                waiting |= tied & ~free
                waiting[self.S] = False
                waiting[j] = False
        self.d, self.tied = d[self.S], tied

    def _improve(self, d: Array, signs: Array, free: NDArray[np.bool_]) -> bool:
        """Lawson and Hanson's inner loop; False where the column that came last has to go again."""
        last = int(self.S[-1])
        while True:
            target, here = self._solve(signs[self.S]), d[self.S]
            wrong = ~free[self.S] & (target * signs[self.S] <= 0)
            if not wrong.any():
                d[self.S] = target
                return True
            room = np.abs(here[wrong])
            ratios = room / np.maximum(room + np.abs(target[wrong]), np.finfo(np.float64).tiny)
            share = float(ratios.min())
            d[self.S] = here + share * (target - here)
            out = np.flatnonzero(wrong)[ratios <= share]
            gone = self.S[out]
            d[gone] = 0.0
            self._remove(out)
            if last in gone:
                if len(self.S):
                    constrained = ~free[self.S]
                    target = self._solve(signs[self.S])
                    if not (constrained & (target * signs[self.S] <= 0)).any():
                        d[self.S] = target
                return False

    # ---------------------------------------------------------------- along a segment

    def step(self, radius_max: float) -> Event:
        """Go to the end of the segment."""
        lengths = self._lengths()
        here = self.x[self.S]
        falling = np.sign(here) * self.d < 0
        leaving = np.full(len(here), np.inf)
        leaving[falling] = -here[falling] / self.d[falling]
        length = min(float(lengths.min(initial=np.inf)), float(leaving.min(initial=np.inf)))
        event = Event.JOINT
        target = here + self.penalty * self.d
        if length >= self.penalty - self.rounding.least(self.columns.index[self.S], target):
            length, event = self.penalty, Event.END
        speed = float(self.signs[self.S] @ self.d)
        room = radius_max - float(np.abs(here).sum())
        if length * speed >= room:
            length, event = max(0.0, room / speed), Event.RADIUS
        tied = leaving <= length + self.tie * self.penalty
        self.x[self.S] = np.where(tied, 0.0, here + length * self.d)
        self.pull -= length * self.slope
        self.penalty = max(0.0, self.penalty - length)
        self.pull[self.S] = self.penalty * self.signs[self.S]
        self._remove(np.flatnonzero(tied))
        return event

    def _lengths(self) -> Array:
        """How far it is until each column outside reaches lambda."""
        outside = self.usable.copy()
        outside[self.S] = False
        lengths = np.full(len(outside), np.inf)
        for sign in (1.0, -1.0):
            closing = 1.0 - sign * self.slope
            coming = outside & (closing > self.limit) & ~(self.tied & (self.signs == sign))
            found = (self.penalty - sign * self.pull[coming]) / closing[coming]
            lengths[coming] = np.minimum(lengths[coming], np.maximum(found, 0.0))
        return lengths

    # ---------------------------------------------------------------- the factor of G_SS

    def _solve(self, right: Array) -> Array:
        """``G_SS^-1`` times a vector, with what rounding took from it put right."""
        found, left = np.zeros(len(right)), right
        size = float(np.abs(right).max(initial=0.0))
        for _ in range(_REFINED):
            more = left.copy()
            factor_loops.solve(self.R, len(more), more)
            found += more
            image = self.block.matvec(found, columns=self.S)
            left = right - self.block.rmatvec(image, columns=self.S)
            if not float(np.abs(left).max(initial=0.0)) > _ACCURATE * size:
                break
        return found

    def _append(self, j: int) -> bool:
        """Let a column come into use; False where it depends on those that are."""
        size = len(self.S)
        if size == len(self.R):
            R = np.empty((2 * size, 2 * size))
            R[:size, :size] = self.R
            self.R = R
        image = self.block.matvec(np.ones(1), columns=np.array([j]))
        column = self.block.rmatvec(image, columns=self.S)
        diagonal = float(self.norms[j]) ** 2
        least = DEPENDENT * diagonal
        if not factor_loops.append(self.R, size, column, diagonal, least) > least:
            return False
        self.S = np.append(self.S, j)
        return True

    def _remove(self, places: Index) -> None:
        for place in places[::-1]:
            factor_loops.remove(self.R, len(self.S), place)
            self.S = np.delete(self.S, place)
