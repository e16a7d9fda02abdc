"""The p-norms of the slacks, and the squared 2-norm."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from anynorm.norms import best_bias, projections
from anynorm.norms.dual_sets import BallBox, Box, BudgetBox, DualSet, PowerBall
from anynorm.norms.norm import Array, Norm, Weighted, euclidean, is_real, magnitudes_of, over


class SquaredL2(Weighted):
    """The squared 2-norm, ``sum xi^2``: not a norm, but a cell of the same grid.

    Examples
    --------
    >>> from anynorm.norms import SquaredL2
    >>> SquaredL2().value([3.0, 4.0])
    25.0
    """

    monotone = True
    bias_falls = True
    sum_over_rows = True

    def value(self, xi: ArrayLike) -> float:
        """Return ``sum w xi^2``."""
        v = magnitudes_of(xi)
        return float(v @ v) if self._w is None else float(self._w @ np.square(v))

    def conjugate(self, a: ArrayLike) -> float:
        """Return ``sup_v a'v - value(v) = sum a^2 / (4 w)``."""
        magnitudes = magnitudes_of(a)
        return float(magnitudes @ over(magnitudes, self._w)) / 4

    def cheapest_above(self, r: Array) -> Array:
        """Return max(r, 0)."""
        return np.maximum(r, 0.0)

    def dual_set(self, C: float, weights: Array, signed: bool) -> Box:
        """Return ``a >= 0`` or all a, with ``1/2 a^2/(2 C w)`` in the objective."""
        cost = C * weights
        shift = np.divide(0.5, cost, out=np.zeros_like(cost), where=cost > 0)
        return Box.of(np.where(cost > 0, np.inf, 0.0), signed, shift)

    def bias_interval(self, t: Array, y: Array, one_sided: bool) -> tuple[float, float]:
        """Return the one best bias, a mean of the rows that cost; see `Norm.bias_interval`."""
        return best_bias.mean_of_costing(t, y, self._rows(t)[1], one_sided)


class L1(Weighted, Norm):
    """The 1-norm, ``sum |xi|``.

    Examples
    --------
    >>> from anynorm.norms import L1
    >>> L1().value([1.0, -2.0]), L1().dual_value([1.0, -2.0])
    (3.0, 2.0)
    """

    bias_falls = True
    sum_over_rows = True

    def value(self, xi: ArrayLike) -> float:
        """Return sum w|xi|."""
        v = magnitudes_of(xi)
        return float(v.sum() if self._w is None else self._w @ v)

    def dual_value(self, a: ArrayLike) -> float:
        """Return max |a|/w."""
        return float(over(magnitudes_of(a), self._w).max(initial=0.0))

    def maximiser(self, a: ArrayLike) -> Array:
        return self._corner(a)

    def subgradient(self, v: ArrayLike) -> Array:
        return np.sign(v) * self._rows(v)[1]

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        bound = radius * self._rows(a)[1]
        return np.clip(np.asarray(a, dtype=np.float64), -bound, bound)

    def clipped(self, a: Array, radius: float) -> Array:
        """Return the point of N* <= radius nearest to a."""
        return self.project_dual(a, radius)

    def dual_set(self, C: float, weights: Array, signed: bool) -> Box:
        """Return the box ``|a| <= C w``."""
        return Box.of(C * weights, signed)

    def bias_interval(self, t: Array, y: Array, one_sided: bool) -> tuple[float, float]:
        """Return the interval between two order statistics; see `Norm.bias_interval`."""
        return best_bias.order_statistics(t, y, self._rows(t)[1], one_sided)


class L2(Weighted, Norm):
    """The 2-norm ``sqrt(sum xi^2)``, not squared; see `SquaredL2` for the squared one.

    Examples
    --------
    >>> from anynorm.norms import L2
    >>> L2().value([3.0, 4.0]), L2().dual_value([3.0, 4.0])
    (5.0, 5.0)
    """

    bias_falls = True

    def value(self, xi: ArrayLike) -> float:
        """Return sqrt(sum w xi^2)."""
        return euclidean(magnitudes_of(xi), self._w)

    def dual_value(self, a: ArrayLike) -> float:
        """Return sqrt(sum a^2/w)."""
        magnitudes, w = self._rows(a)
        return euclidean(over(magnitudes, np.sqrt(w)))

    def maximiser(self, a: ArrayLike) -> Array:
        return self._direction(a)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        length = euclidean(magnitudes, w)
        return self._signed(w * (magnitudes / length) if length > 0 else magnitudes, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        return self._signed(projections.onto_ellipsoid(magnitudes, w, radius), a)

    def dual_set(self, C: float, weights: Array, signed: bool) -> BallBox:
        """Return the ball ``sum a^2/w <= C^2``."""
        return BallBox(signed, np.full(len(weights), np.inf), math.inf, weights, C)

    def bias_interval(self, t: Array, y: Array, one_sided: bool) -> tuple[float, float]:
        """Return the one best bias, that of the squared norm; see `Norm.bias_interval`."""
        return best_bias.mean_of_costing(t, y, self._rows(t)[1], one_sided)


class LInf(Weighted, Norm):
    """The largest absolute value, ``max |xi|``; weights only say which rows exist.

    Examples
    --------
    >>> from anynorm.norms import LInf
    >>> LInf().value([1.0, -2.0]), LInf().dual_value([1.0, -2.0])
    (2.0, 3.0)
    """

    bias_falls = True

    def value(self, xi: ArrayLike) -> float:
        """Return max |xi|."""
        v, w = self._rows(xi)
        return float(v[w > 0].max(initial=0.0))

    def dual_value(self, a: ArrayLike) -> float:
        """Return sum |a|."""
        magnitudes, w = self._rows(a)
        return math.inf if np.any(magnitudes[w == 0] > 0) else float(magnitudes.sum())

    def maximiser(self, a: ArrayLike) -> Array:
        return self._signed(np.ones(len(np.asarray(a))), a) * (np.asarray(a) != 0)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        a = np.zeros(len(magnitudes))
        if len(a):
            a[int(np.argmax(np.where(w > 0, magnitudes, -1.0)))] = 1.0
        return self._signed(a, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        bound = np.where(w > 0, math.inf, 0.0)
        return self._signed(projections.onto_capped_simplex(magnitudes, bound, radius), a)

    def dual_set(self, C: float, weights: Array, signed: bool) -> BudgetBox:
        """Return the ball ``sum |a| <= C`` of the rows that have weight."""
        return BudgetBox(signed, np.where(weights > 0, C, 0.0), C)

    def bias_interval(self, t: Array, y: Array, one_sided: bool) -> tuple[float, float]:
        """Return the middle of the two extreme breakpoints; see `Norm.bias_interval`."""
        low, high = best_bias.extremes(t, y, one_sided)
        middle = low + (high - low) / 2
        return middle, middle


class Lp(Weighted, Norm):
    """The p-norm ``(sum |xi|^p)^(1/p)`` for a finite p of at least 1.

    Examples
    --------
    >>> from anynorm.norms import Lp
    >>> Lp(2).value([3.0, 4.0])
    5.0
    """

    def __init__(self, p: float, weights: ArrayLike | None = None):
        if not (is_real(p) and 1 <= p < math.inf):
            raise ValueError(f"p must be a finite number of at least 1; got {p!r} (see LInf)")
        super().__init__(weights)
        self.p = p

    def value(self, xi: ArrayLike) -> float:
        """Return (sum w|xi|^p)^(1/p)."""
        v, w = self._rows(xi)
        v, w = v[w > 0], w[w > 0]  # the others may be beyond any power
        top = float(v.max(initial=0.0))
        if top == 0.0 or not math.isfinite(top):
            return top
        return top * float(w @ (v / top) ** self.p) ** (1 / self.p)

    def dual_value(self, a: ArrayLike) -> float:
        """Return (sum |a|^q w^(1-q))^(1/q)."""
        if self.p == 1:
            return L1(self.weights).dual_value(a)
        magnitudes, w = self._rows(a)
        ratio = over(magnitudes, w)
        top = float(ratio.max(initial=0.0))
        if top == 0.0 or not math.isfinite(top):
            return top
        q = self.p / (self.p - 1)
        return top * float(w @ (ratio / top) ** q) ** (1 / q)

    def maximiser(self, a: ArrayLike) -> Array:
        if self.p == 1:
            return self._corner(a)
        magnitudes, w = self._rows(a)
        ratio = np.divide(magnitudes, w, out=np.zeros(len(w)), where=w > 0)
        top = float(ratio.max(initial=0.0))
        v = (ratio / top) ** (1 / (self.p - 1)) if top > 0 else ratio
        length = self.value(v)
        return self._signed(v / length if length > 0 else v, a)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        length = self.value(v)
        scaled = magnitudes / length if length > 0 else magnitudes
        return np.sign(v) * w * np.where(w > 0, scaled, 0.0) ** (self.p - 1)

    def project_dual(self, a: ArrayLike, radius: float) -> Array | None:
        """Return the nearest point of N* <= radius for p = 1 and p = 2, None otherwise."""
        if self.p not in (1, 2):
            return None
        same: Norm = L1(self.weights) if self.p == 1 else L2(self.weights)
        return same.project_dual(a, radius)

    def dual_set(self, C: float, weights: Array, signed: bool) -> DualSet:
        """Return the ball of the dual norm."""
        return PowerBall(signed, self.p, C * weights, weights)
