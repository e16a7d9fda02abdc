"""The least norm over the simplex of a few points whose products are at hand.

        minimise  1/2 x'G x   over x >= 0, sum(x) = 1,      G = A'A

by Wolfe's method (1976, Finding the nearest point in a polytope).  The corral S holds affinely
independent points, and a triangular factor of ``H = G_SS + t 11'``, which is positive definite for
these (even where 0 is in their affine hull) and as good as G for steps that keep the sum.  A major
step lets points with ``A_i'w < ||w||^2`` enter S, a minor one goes to the least norm in the affine
hull of S.  Two things differ from the book:

* Several points enter at a time, twice as many as stayed the last time, and all that come out
  negative are thrown out at once until none is.  That point counts if it is nearer to 0 than the
  last; otherwise the book's steps, which stop at the boundary, are taken, and if these lead nowhere
  one point enters at a time.
* Steps start from gradients that the caller knows exactly, so that repeated calls remove the
  rounding of G.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dtrtrs

from anynorm.design.limits import DEPENDENT
from anynorm.solvers.frame import factor_loops
from anynorm.solvers.frame.budget import Budget

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_NEGATIVE = -1e-8  # squared lengths below this share of a sum's terms are not
_BLOCK = 512  # rows of the factor that are made at a time


class Corral:
    """Working points with their products, the current x, and the factor of those in the corral."""

    def __init__(self, shift: float, floor: float) -> None:
        self.shift, self.floor = shift, floor
        self.m = self.size = 0
        self.indefinite = False
        self.pace = 16
        self.G, self.R = np.empty((0, 0)), np.empty((0, 0))
        self.x, self.g = np.empty(0), np.empty(0)
        self.S: Index = np.empty(0, dtype=np.intp)

    # ---------------------------------------------------------------- the working points

    def extend(self, products: Array) -> None:
        """Add working points, whose products with all the points, old and new, are given."""
        k, m = products.shape[0], products.shape[1]
        if m > len(self.G):
            self.G = _enlarged(self.G, self.m, m)
        old = m - k
        self.G[old:m, :m] = products
        self.G[:old, old:m] = products[:, :old].T
        self.x = np.concatenate([self.x, np.zeros(k)])
        self.m = m

    def keep(self, kept: Index) -> None:
        """Leave out all working points but `kept` (ascending), none of which is in the corral."""
        self.G[: len(kept), : len(kept)] = self.G[np.ix_(kept, kept)]
        place = np.full(self.m, -1, dtype=np.intp)
        place[kept] = np.arange(len(kept))
        self.S = place[self.S]
        self.x, self.g, self.m = self.x[kept], self.g[kept], len(kept)

    def begin(self, x: Array) -> None:
        """Start at x, or at a point with the same support where that is affinely dependent."""
        used = np.flatnonzero(x > 0)
        if not self._factorise(used):
            self.S, self.size = used[:0], 0
            for i in used:
                self._append(int(i))
        self.x = np.zeros(self.m)
        self.x[self.S] = x[self.S] / x[self.S].sum()
        self.g = self._gradient(self.S, self.x[self.S])

    # ---------------------------------------------------------------- the method

    def descend(self, tol: float, budget: Budget) -> None:
        """Go on until no working point promises a relative decrease above tol.

        `self.g` has to be the gradient G x, as exact as the caller can say.
        """
        self._settle(budget)
        value, several = self.value(), True
        while budget.spend():
            short = value - self.g
            short[self.S] = 0.0
            wanted = np.flatnonzero(short > tol * max(value, self.floor))
            if not len(wanted):
                return
            wanted = wanted[np.argsort(-short[wanted], kind="stable")]
            entering = wanted[: min(self.pace, max(4, self.size)) if several else 1]
            self._enter(entering)
            self._settle(budget)
            self.pace = max(1, 2 * int(np.isin(entering, self.S).sum()))
            before, value = value, self.value()
            if not value < before - 0.1 * tol * max(value, self.floor):
                if not several:
                    return
                several = False
            else:
                several = True

    def value(self) -> float:
        """The squared norm, x'G x."""
        return max(0.0, float(self.x @ self.g[: self.m]))

    def _settle(self, budget: Budget) -> None:
        """Go to the least norm in the affine hull of a part of the corral."""
        leap = True
        while budget.in_time():
            step = self._direction(self.g, 0.0)
            here = self.x[self.S]
            if (here + step).min() >= 0:
                self._move(step, 1.0)
                return
            if leap:
                leap = False
                if self._leap(here + step):
                    return
                continue
            falling = step < 0
            ratios = here[falling] / -step[falling]
            length = float(ratios.min())
            self._move(step, length)
            out = np.flatnonzero(falling)[ratios <= length]
            self.x[self.S[out]] = 0.0
            self._throw_out(out)

    def _leap(self, target: Array) -> bool:
        """Throw out what is negative until nothing is; False, and back, if nothing is gained.

        Differences from x are computed, not new points, for the digits of the gradient.
        """
        before, g = self.S, self.g.copy()
        for _ in range(20):  # of throwing points out; then one at a time, by Wolfe's own step
            stay = target > 0
            if not stay.any():
                break
            out = self.S[~stay]
            factor_loops.combine_rows(self.G, out, -self.x[out], self.m, g)
            self._throw_out(np.flatnonzero(~stay))
            here = self.x[self.S]
            step = self._direction(g, 1.0 - float(here.sum()))
            target = here + step
            if target.min() >= 0:
                factor_loops.combine_rows(self.G, self.S, step, self.m, g)
                if float(target @ g[self.S]) < self.value():
                    self.x[:] = 0.0
                    self.x[self.S] = target
                    self.g = g
                    return True
                break
        self._restore(before)
        return False

    def _restore(self, S: Index) -> None:
        """Have a corral back that there was before."""
        if not self._factorise(S):
            self.S, self.size = S[:0], 0
            for i in S[np.argsort(-self.x[S], kind="stable")]:
                self._append(int(i))

    def _direction(self, g: Array, total: float) -> Array:
        """The step of a given sum to the least norm, where the gradient is g."""
        inner, ones = g[self.S], np.ones(self.size)
        inner -= inner.mean()
        factor_loops.solve(self.R, self.size, inner)
        factor_loops.solve(self.R, self.size, ones)
        return ones * ((total + inner.sum()) / ones.sum()) - inner

    def _move(self, step: Array, length: float) -> None:
        if length > 0:
            self.x[self.S] += length * step
            factor_loops.combine_rows(self.G, self.S, length * step, self.m, self.g)

    def _gradient(self, index: Index, x: Array) -> Array:
        out = np.zeros(self.m)
        factor_loops.combine_rows(self.G, index, x, self.m, out)
        return out

    # ---------------------------------------------------------------- entering and leaving

    def _enter(self, points: Index) -> None:
        """Let points enter the corral, those that depend on it by way of an exchange."""
        if len(points) > 2 + self.size // 64 and self._factorise(np.concatenate([self.S, points])):
            return
        for i in points:
            if not self._append(int(i)):
                self._exchange(int(i))

    def _append(self, i: int) -> bool:
        """Append a point to the corral; False if it depends on those that are there."""
        if self.size == len(self.R):
            self.R = _enlarged(self.R, self.size, self.size + 1)
        self._column = self.G[self.S, i] + self.shift
        diagonal = self.G[i, i] + self.shift
        least = DEPENDENT * diagonal
        pivot = factor_loops.append(self.R, self.size, self._column, diagonal, least)
        if pivot <= least:
            # v = (-column, 1) has v'H v = pivot, so that v'G v can be negative in earnest.
            square = pivot - self.shift * (1.0 - float(self._column.sum())) ** 2
            size = (1.0 + float(np.abs(self._column).sum())) ** 2 * diagonal
            self.indefinite |= square < _NEGATIVE * size
            return False
        self.S, self.size = np.append(self.S, i), self.size + 1
        return True

    def _exchange(self, i: int) -> None:
        """Move weight to point i from the points that it is a combination of; the first one leaves.

        `self._column` has the coefficients of that combination.
        """
        share = self._column / self._column.sum()
        slope = self.g[i] - float(share @ self.g[self.S])
        giving = share > 1e-12
        if not slope < 0 or not giving.any():
            return
        ratios = self.x[self.S[giving]] / share[giving]
        length = float(ratios.min())
        x, g, S = self.x.copy(), self.g.copy(), self.S
        before = self.value()
        self._move(-share, length)
        self.x[i] += length
        self.g += length * self.G[i, : self.m]
        out = np.flatnonzero(giving)[ratios <= length]
        self.x[S[out]] = 0.0
        self._throw_out(out)
        if self.value() > before or not self._append(i):
            self.x, self.g = x, g
            self._restore(S)

    def _throw_out(self, places: Index) -> None:
        if len(places) > 2 + self.size // 64 and self._factorise(np.delete(self.S, places)):
            return
        for place in places[::-1]:
            factor_loops.remove(self.R, self.size, place)
            self.size -= 1
        self.S = np.delete(self.S, places)

    def _factorise(self, S: Index) -> bool:
        """Take S for the corral, with a new factor; False, and nothing done, if it is dependent."""
        H = self.G[np.ix_(S, S)]
        H += self.shift
        least = DEPENDENT * H.diagonal()
        if not _cholesky(H) or not (H.diagonal() ** 2 > least).all():
            return False
        self.S, self.size = S, len(S)
        if self.size > len(self.R):
            self.R = _enlarged(self.R, 0, self.size)
        self.R[: self.size, : self.size] = H
        return True


def _enlarged(matrix: Array, used: int, needed: int) -> Array:
    """A matrix with some room to grow, and the same entries in its used part."""
    room = max(64, needed + needed // 4)
    out = np.empty((room, room))
    out[:used, :used] = matrix[:used, :used]
    return out


def _cholesky(H: Array) -> bool:
    """Put R with R'R = H into the upper triangle of H, in parts that leave room for Ctrl-C."""
    for start in range(0, len(H), _BLOCK):
        stop = min(start + _BLOCK, len(H))
        row = H[start:stop, start:]
        if start:
            row -= H[:start, start:stop].T @ H[:start, start:]
        # LAPACK reads the rows as columns: the lower triangle for it is the upper one here.
        L, failed = dpotrf(row[:, : stop - start].T.copy(order="F"), lower=1, clean=0)
        if failed:
            return False
        row[:, : stop - start] = L.T
        if stop < len(H):
            row[:, stop - start :] = dtrtrs(L, row[:, stop - start :], lower=1)[0]
    return True
