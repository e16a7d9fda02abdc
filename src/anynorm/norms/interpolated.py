"""Norms between two p-norms: Peetre's K-functionals of Dekel and Singer's budget SVMs.

    K(p, q, t)(v) = min over u + z = v of ||u||_p + t ||z||_q

TopK is K(1, inf, k), TopK2 is K(2, inf, sqrt k) and K12 is K(1, 2, sqrt r).  In each the best
split is by a level: what lies above it goes to one norm, what lies below to the other.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from anynorm.norms import best_bias, projections
from anynorm.norms.dual_sets import BallBox, BudgetBox
from anynorm.norms.norm import (
    Array,
    Norm,
    Weighted,
    checked_positive,
    euclidean,
    magnitudes_of,
    over,
)


class TopK(Weighted, Norm):
    """The sum of the k largest absolute values; a fractional k takes part of the last.

    Examples
    --------
    >>> from anynorm.norms import TopK
    >>> TopK(2).value([1.0, -5.0, 3.0]), TopK(1.5).value([1.0, -5.0, 3.0])
    (8.0, 6.5)
    """

    def __init__(self, k: float, weights: ArrayLike | None = None):
        checked_positive("k", k)
        super().__init__(weights)
        self.k = k

    def value(self, xi: ArrayLike) -> float:
        """Return the sum of the k largest |xi|."""
        return float(self._taken(xi) @ magnitudes_of(xi))

    def dual_value(self, a: ArrayLike) -> float:
        """Return max(max |a|/w, sum |a| / k)."""
        magnitudes = magnitudes_of(a)
        return max(
            float(over(magnitudes, self._w).max(initial=0.0)), float(magnitudes.sum()) / self.k
        )

    def maximiser(self, a: ArrayLike) -> Array:
        magnitudes, w = self._rows(a)
        if (magnitudes[w > 0] / w[w > 0]).max(initial=0.0) >= magnitudes.sum() / self.k:
            return self._corner(a)
        return self._signed(np.full(len(w), 1.0 / self.k), a)

    def subgradient(self, v: ArrayLike) -> Array:
        return np.sign(v) * self._taken(v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        nearest = projections.onto_capped_simplex(magnitudes, radius * w, self.k * radius)
        return self._signed(nearest, a)

    def _taken(self, v: ArrayLike) -> Array:
        """How much of each row's weight is among the k largest."""
        magnitudes, w = self._rows(v)
        order = np.argsort(-magnitudes, kind="stable")
        before = np.cumsum(w[order]) - w[order]
        taken = np.empty(len(w))
        taken[order] = np.clip(self.k - before, 0.0, w[order])
        return taken

    def dual_set(self, C: float, weights: Array, signed: bool) -> BudgetBox:
        """Return the box ``|a| <= C w`` with the budget k C."""
        return BudgetBox(signed, C * weights, self.k * C)

    def bias_interval(self, t: Array, y: Array, one_sided: bool) -> tuple[float, float]:
        """Return the middle of two order statistics; see `Norm.bias_interval`."""
        return best_bias.middle_of_ends(t, y, self._rows(t)[1], self.k, one_sided)


class TopK2(Weighted, Norm):
    """Peetre's K(2, inf, sqrt k): close to, but not, the 2-norm of the k largest values.

    Examples
    --------
    >>> from anynorm.norms import TopK2
    >>> TopK2(2).value([3.0, 4.0])
    5.0
    >>> round(TopK2(1).value([3.0, 4.0]), 12)
    4.0
    """

    def __init__(self, k: float, weights: ArrayLike | None = None):
        checked_positive("k", k)
        super().__init__(weights)
        self.k = k

    def value(self, xi: ArrayLike) -> float:
        """Return K(2, inf, sqrt k) of xi."""
        v, w = self._rows(xi)
        level = projections.excess_level(v, w, self.k)
        return euclidean(np.maximum(v - level, 0.0), w) + math.sqrt(self.k) * level

    def dual_value(self, a: ArrayLike) -> float:
        """Return max(sqrt(sum a^2/w), sum |a| / sqrt k)."""
        magnitudes, w = self._rows(a)
        return max(
            euclidean(over(magnitudes, np.sqrt(w))), float(magnitudes.sum()) / math.sqrt(self.k)
        )

    def maximiser(self, a: ArrayLike) -> Array:
        magnitudes, w = self._rows(a)
        kept = np.where(w > 0, magnitudes, 0.0)
        if euclidean(over(kept, np.sqrt(w))) >= kept.sum() / math.sqrt(self.k):
            return self._direction(a)
        return self._signed(np.full(len(w), 1.0 / math.sqrt(self.k)), a)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        level = projections.excess_level(magnitudes, w, self.k)
        excess = np.maximum(magnitudes - level, 0.0)
        length = euclidean(excess, w)
        if length > 0:
            return self._signed(w * (excess / length), v)
        tied = w * (magnitudes >= level) * (magnitudes > 0)
        total = float(tied.sum())
        return self._signed(tied * (math.sqrt(self.k) / total) if total > 0 else tied, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        total = math.sqrt(self.k) * radius
        return self._signed(projections.onto_ellipsoid_and_simplex(magnitudes, w, radius, total), a)

    def dual_set(self, C: float, weights: Array, signed: bool) -> BallBox:
        """Return the ball of the 2-norm with the budget sqrt(k) C."""
        unbounded = np.full(len(weights), np.inf)
        return BallBox(signed, unbounded, math.sqrt(self.k) * C, weights, C)


class K12(Weighted, Norm):
    """Peetre's K(1, 2, sqrt r), between the 2-norm (small r) and the 1-norm (r >= n).

    Examples
    --------
    >>> from anynorm.norms import K12
    >>> K12(2).value([3.0, 4.0]), K12(1).value([3.0, 4.0])
    (7.0, 5.0)
    """

    def __init__(self, r: float, weights: ArrayLike | None = None):
        checked_positive("r", r)
        super().__init__(weights)
        self.r = r

    def value(self, xi: ArrayLike) -> float:
        """Return K(1, 2, sqrt r) of xi."""
        v, w = self._rows(xi)
        level = projections.saturation_level(v, w, self.r)
        excess = float(w @ np.maximum(v - level, 0.0))
        return excess + math.sqrt(self.r) * euclidean(np.minimum(v, level), w)

    def dual_value(self, a: ArrayLike) -> float:
        """Return max(max |a|/w, sqrt(sum a^2/w / r))."""
        magnitudes, w = self._rows(a)
        return max(
            float(over(magnitudes, w).max(initial=0.0)),
            euclidean(over(magnitudes, np.sqrt(w))) / math.sqrt(self.r),
        )

    def maximiser(self, a: ArrayLike) -> Array:
        magnitudes, w = self._rows(a)
        kept = np.where(w > 0, magnitudes, 0.0)
        length = euclidean(over(kept, np.sqrt(w))) / math.sqrt(self.r)
        if float(over(kept, w).max(initial=0.0)) >= length:
            return self._corner(a)
        return self._direction(a) / math.sqrt(self.r)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        level = projections.saturation_level(magnitudes, w, self.r)
        share = np.minimum(magnitudes / level, 1.0) if level > 0 else (magnitudes > 0)
        return self._signed(w * share, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        length = math.sqrt(self.r) * radius
        return self._signed(projections.onto_ellipsoid(magnitudes, w, length, radius * w), a)

    def dual_set(self, C: float, weights: Array, signed: bool) -> BallBox:
        """Return the ball of the 2-norm, of radius sqrt(r) C, within the box ``|a| <= C w``."""
        return BallBox(signed, C * weights, math.inf, weights, math.sqrt(self.r) * C)
