"""The proximal form of the box losses: smooth, and the nearer to them the larger sigma is.

        h(r) = max_{lower <= a <= upper}   a r - 1/(2 sigma) (a - center)^2

Where X is so large that Numba is at work anyway, sums over the rows are compiled, without a vector
for each operation, and shared by threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anynorm.design.threads import share
from anynorm.losses.curves import Derivatives, Terms

Array = NDArray[np.float64]

_ROWS = 1 << 13  # of a part of a sum: some ten microseconds, and never another number


@dataclass(frozen=True)
class ProximalBox(Derivatives):
    """h of every example; `compiled` says how to add up."""

    center: Array
    sigma: Array
    lower: Array
    upper: Array
    compiled: bool = False

    def dual(self, residual: Array) -> Array:
        """Return h'(r)."""
        return np.clip(self.center + self.sigma * residual, self.lower, self.upper)

    def curvature(self, residual: Array) -> Array:
        """Return h''(r)."""
        free = self.center + self.sigma * residual
        return np.where((free > self.lower) & (free < self.upper), self.sigma, 0.0)

    def totals(self, y: Array, scores: Array, bias: float) -> tuple[float, float, float]:
        """Return the sums of ``y h'``, of ``|h'|`` and of h'' at ``r = 1 - y (scores + bias)``."""
        if not self.compiled:
            return super().totals(y, scores, bias)
        from anynorm.solvers.frame.proximal_loops import totals

        pull, size, bend = self._summed(totals, 3, y, scores, bias)
        return pull, size, bend

    def slope(self, residual: Array, change: Array, step: float) -> float:
        """Return ``change' h'(residual - step change)``."""
        if not self.compiled:
            return super().slope(residual, change, step)
        from anynorm.solvers.frame.proximal_loops import slope

        return self._summed(slope, 1, residual, change, float(step))[0]

    def terms(self, y: Array, scores: Array, bias: float) -> Terms:
        """Return what belongs to ``r = 1 - y (scores + bias)``."""
        if not self.compiled:
            return super().terms(y, scores, bias)
        from anynorm.solvers.frame.proximal_loops import terms

        residual, dual, beta = np.empty((3, len(y)))
        size = self._summed(terms, 1, y, scores, float(bias), residual, dual, beta)[0]
        return Terms(residual, dual, beta, size)

    def curved(self, residual: Array) -> tuple[NDArray[np.intp], Array]:
        """Return the rows with h'' > 0, and h'' of them."""
        if not self.compiled:
            return super().curved(residual)
        from anynorm.solvers.frame.proximal_loops import between

        inside = np.empty(len(residual), dtype=np.bool_)
        self._summed(between, 1, residual, inside)
        rows = np.flatnonzero(inside)
        return rows, self.sigma[rows]

    def cost_and_gap(self, residual: Array, dual: Array) -> tuple[float, float]:
        """Return the loss whose conjugate is the box, and how much `dual` falls short of it."""
        if not self.compiled:
            costs = np.where(residual > 0, self.upper, self.lower) * residual
            return float(costs.sum()), float((costs - dual * residual).sum())
        from anynorm.solvers.frame.proximal_loops import cost_and_gap

        cost, gap = self._summed(cost_and_gap, 2, residual, dual)
        return cost, gap

    def _summed(self, loop: Callable[..., None], count: int, *given: Any) -> list[float]:
        """Sums over all rows, from those of parts that threads have added up."""
        parts = -(-len(self.sigma) // _ROWS)
        sums = np.zeros((parts, count))
        bounds = self.center, self.sigma, self.lower, self.upper
        share(loop, parts, _ROWS, *bounds, *given, sums)
        found: list[float] = sums.sum(axis=0).tolist()
        return found
