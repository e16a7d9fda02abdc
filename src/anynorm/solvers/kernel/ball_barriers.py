"""Self-concordant barriers of the dual balls of slack norms, for `barrier.py`.

    set                                in the form that the barrier has
    (sum w (|a|/Cw)^q)^(1/q) <= 1      |a_i| / (C w_i) <= v_i^(1/q),  sum w v <= 1
    a'M^-1 a <= C^2                    the same
    e'M^-1 e <= C^2, e >= a >= 0       the same

The first one holds for p-norms of any p: from the box of p = 1 (v^0 = 1) on.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from anynorm.solvers.kernel.barrier import factor

Array = NDArray[np.float64]


class PowerBarrier:
    """The ball of the dual p-norm, for a >= 0 or for a of any sign.

    Every row has ``-log(v^s - |a|/(Cw)) - log v`` with s = 1/q = 1 - 1/p (and -log a), in the
    smooth form ``-log(v^2s - (a/Cw)^2)`` for both signs; the sum of w v adds one more term.
    """

    def __init__(self, p: float, bound: Array, w: Array, y: Array, signed: bool):
        self.power, self.bound, self.w, self.signed = 1.0 - 1.0 / p, bound, w, signed
        self.y = y
        self.degree = 3.0 * len(w) + 1.0

    def start(self) -> tuple[Array, Array]:
        """An inner point."""
        v = np.full(len(self.w), 0.5 / float(self.w.sum()))
        if self.signed:
            return np.zeros(len(v)), v
        top = self.bound * v**self.power
        lighter = min(float(top[self.y > 0].sum()), float(top[self.y < 0].sum()))
        shares = [0.5 * lighter / float(top[self.y == label].sum()) for label in (-1.0, 1.0)]
        return top * np.where(self.y > 0, shares[1], shares[0]), v

    def value(self, a: Array, v: Array) -> float:
        """The barrier, infinite outside."""
        rest = 1.0 - float(self.w @ v)
        if rest <= 0 or np.any(v <= 0):
            return math.inf
        u, x = v**self.power, a / self.bound
        terms = [u - x, u + x if self.signed else x, v]
        if any(float(term.min()) <= 0 for term in terms):
            return math.inf
        return -math.log(rest) - sum(float(np.log(term).sum()) for term in terms)

    def _parts(self, a: Array, v: Array) -> tuple[Array, Array, Array]:
        """The distances to the upper and the lower bound, and the slope of the bound."""
        u, x = v**self.power, a / self.bound
        return u - x, (u + x if self.signed else x), self.power * u / v

    def gradient(self, a: Array, v: Array) -> tuple[Array, Array]:
        """Its derivatives by a and by its own variables."""
        above, below, slope = self._parts(a, v)
        by_v = -slope / above - 1.0 / v + self.w / (1.0 - float(self.w @ v))
        if self.signed:
            by_v -= slope / below
        return (1.0 / above - 1.0 / below) / self.bound, by_v

    def eliminate(self, a: Array, v: Array, matrix: Array) -> DiagonalRest:
        """Add the Hessian that is left to the matrix of a."""
        above, below, slope = self._parts(a, v)
        bend = (1.0 - self.power) * slope / v  # minus the second derivative of v^s
        corner = (1.0 / above**2 + 1.0 / below**2) / self.bound**2
        cross = -slope / above**2 / self.bound
        own = slope**2 / above**2 + bend / above + 1.0 / v**2
        if self.signed:
            cross += slope / below**2 / self.bound
            own += slope**2 / below**2 + bend / below
        side = self.w / (1.0 - float(self.w @ v))
        rest = DiagonalRest(cross, 1.0 / own, side)
        matrix[np.diag_indices_from(matrix)] += corner - cross**2 / own
        pulled = cross / own * side
        matrix += np.outer(rest.share * pulled, pulled)
        return rest


class DiagonalRest:
    """``H_xx`` diagonal plus ``side side'``, ``H_ax`` diagonal."""

    def __init__(self, cross: Array, inverse: Array, side: Array):
        self.cross, self.inverse, self.side = cross, inverse, side
        self.share = 1.0 / (1.0 + float(side @ (inverse * side)))

    def _solve(self, right: Array) -> Array:
        x = self.inverse * right
        return x - self.inverse * self.side * (self.share * float(self.side @ x))

    def pull(self, gradient: Array) -> Array:
        """What the eliminated gradient adds to the system's right-hand side."""
        return self.cross * self._solve(gradient)

    def follow(self, move: Array, gradient: Array) -> Array:
        """The direction of the eliminated variables."""
        return -self._solve(gradient + self.cross * move)


class EllipsoidBarrier:
    """The set ``a'M^-1 a <= C^2``, for a of any sign: one logarithm, no variables of its own."""

    degree = 2.0

    def __init__(self, M: Array, C: float):
        self.inverse = np.linalg.inv(M)
        self.inverse = (self.inverse + self.inverse.T) / 2
        self.square = C**2

    def start(self) -> tuple[Array, Array]:
        """An inner point."""
        return np.zeros(len(self.inverse)), np.empty(0)

    def _room(self, a: Array) -> tuple[Array, float]:
        half = self.inverse @ a
        return half, self.square - float(a @ half)

    def value(self, a: Array, x: Array) -> float:
        """The barrier, infinite outside."""
        room = self._room(a)[1]
        return -math.log(room) if room > 0 else math.inf

    def gradient(self, a: Array, x: Array) -> tuple[Array, Array]:
        """Its derivatives by a and by its own variables."""
        half, room = self._room(a)
        return 2 * half / room, x

    def eliminate(self, a: Array, x: Array, matrix: Array) -> NoRest:
        """Add the Hessian that is left to the matrix of a."""
        half, room = self._room(a)
        matrix += self.inverse * (2 / room)
        matrix += np.outer(half * (4 / room**2), half)
        return NoRest()


class NoRest:
    """Nothing was eliminated."""

    def pull(self, gradient: Array) -> Array:
        """What the eliminated gradient adds to the system's right-hand side."""
        return np.zeros(1)

    def follow(self, move: Array, gradient: Array) -> Array:
        """The direction of the eliminated variables."""
        return gradient


class EllipsoidAboveBarrier:
    """The set ``e'M^-1 e <= C^2, e >= a >= 0``.

    With ``D = diag(1/(e-a)^2)`` and S the curvature of the ellipsoid's logarithm the eliminated
    Hessian is ``diag(1/a^2) + G^-1``, ``G = D^-1 + S^-1``, and S^-1 is M up to rank one.  That
    logarithm counts n times: a single one would be lost among those of the n rows.
    """

    def __init__(self, M: Array, inside: Array, C: float):
        self.M, self.root, self.square = M, np.linalg.cholesky(M), C**2
        self.inside = inside
        self.weight = float(len(M))
        self.degree = 2.0 * len(M) + 2.0 * self.weight

    def start(self) -> tuple[Array, Array]:
        """An inner point."""
        return 0.5 * self.inside, self.inside.copy()

    def _room(self, e: Array) -> tuple[Array, float]:
        half = scipy.linalg.solve_triangular(self.root, e, lower=True, check_finite=False)
        return half, self.square - float(half @ half)

    def value(self, a: Array, e: Array) -> float:
        """The barrier, infinite outside."""
        gap, room = e - a, self._room(e)[1]
        if room <= 0 or float(gap.min()) <= 0 or float(a.min()) <= 0:
            return math.inf
        return -self.weight * math.log(room) - float(np.log(gap).sum()) - float(np.log(a).sum())

    def gradient(self, a: Array, e: Array) -> tuple[Array, Array]:
        """Its derivatives by a and by its own variables."""
        half, room = self._room(e)
        back = scipy.linalg.solve_triangular(
            self.root, half, lower=True, trans=1, check_finite=False
        )
        pressure = 1.0 / (e - a)
        return pressure - 1.0 / a, 2 * self.weight * back / room - pressure

    def eliminate(self, a: Array, e: Array, matrix: Array) -> EllipsoidRest:
        """Add the Hessian that is left to the matrix of a."""
        room = self._room(e)[1]
        rest = EllipsoidRest(self.M, e, np.square(e - a), room, self.square, self.weight)
        matrix += rest.inverse
        matrix[np.diag_indices_from(matrix)] += 1.0 / a**2
        return rest


class EllipsoidRest:
    """The inverse of G, and e in terms of a."""

    def __init__(
        self, M: Array, e: Array, squares: Array, room: float, square: float, weight: float
    ):
        self.squares = squares
        G = (room / 2) * M - np.outer(e * (room / (2 * square - room)), e)
        G /= weight
        G[np.diag_indices_from(G)] += squares
        root = factor(G)
        if root is None:
            raise np.linalg.LinAlgError("the eliminated matrix is singular")
        self.inverse = scipy.linalg.lapack.dpotri(root, lower=1)[0]
        self.inverse = np.tril(self.inverse) + np.tril(self.inverse, -1).T

    def pull(self, gradient: Array) -> Array:
        """What the eliminated gradient adds to the system's right-hand side."""
        return self.inverse @ (self.squares * gradient) - gradient

    def follow(self, move: Array, gradient: Array) -> Array:
        """The direction of the eliminated variables."""
        h = self.squares * gradient - move
        return self.squares * (self.inverse @ h) - h
