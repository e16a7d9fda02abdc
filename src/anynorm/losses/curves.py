"""Smooth losses as Newton's method sees them: derivatives of each example's cost h(r)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_LEAST_SHARE = 1e-3  # of the largest curvature, in a model: where h is straight, steps stay finite


class Terms(NamedTuple):
    """Residuals, their duals a = h'(r), y a, and the sum of ``|a r|``."""

    residual: Array
    dual: Array
    beta: Array
    size: float


class Derivatives(ABC):
    """What a Newton step needs of a sum of functions of the residuals."""

    @abstractmethod
    def dual(self, residual: Array) -> Array:
        """Return h'(r), the dual variables that belong to the residuals."""

    @abstractmethod
    def curvature(self, residual: Array) -> Array:
        """Return h''(r)."""

    def totals(self, y: Array, scores: Array, bias: float) -> tuple[float, float, float]:
        """Return the sums of ``y h'``, of ``|h'|`` and of h'' at ``r = 1 - y (scores + bias)``."""
        residual = 1.0 - y * (scores + bias)
        dual = self.dual(residual)
        return float(y @ dual), float(np.abs(dual).sum()), float(self.curvature(residual).sum())

    def slope(self, residual: Array, change: Array, step: float) -> float:
        """Return ``change' h'(residual - step change)``."""
        return float(change @ self.dual(residual - step * change))

    def terms(self, y: Array, scores: Array, bias: float) -> Terms:
        """Return what belongs to ``r = 1 - y (scores + bias)``."""
        residual = 1.0 - y * (scores + bias)
        dual = self.dual(residual)
        return Terms(residual, dual, y * dual, float(np.abs(dual) @ np.abs(residual)))

    def curved(self, residual: Array) -> tuple[NDArray[np.intp], Array]:
        """Return the rows with h'' > 0, and h'' of them."""
        curvature = self.curvature(residual)
        rows = np.flatnonzero(curvature > 0)
        return rows, curvature[rows]


@dataclass(frozen=True)
class Curve(Derivatives):
    """h' and h'' of every example as functions of its residual.

    Attributes
    ----------
    cost : ndarray of shape (n,)
        C times the weight of each example, in proportion to which h is.
    """

    cost: Array

    def model(self, residual: Array, *, far: bool = False) -> CurveModel:
        """Return a quadratic model of h near the residuals.

        `far` asks for one that holds for long steps, as they are taken far from the optimum.
        """
        bend = self.curvature(residual)
        bend = np.maximum(bend, _LEAST_SHARE * bend.max(initial=0.0))
        bend = np.where(bend > 0, bend, self.cost)
        pull = np.divide(self.dual(residual), bend, out=np.zeros(bend.size), where=self.cost > 0)
        return CurveModel(bend, pull)

    def part(self, rows: NDArray[np.intp], times: float) -> Self:
        """Return the curve of these rows, each counted `times` times."""
        return replace(self, cost=self.cost[rows] * times)


@dataclass(frozen=True)
class CurveModel:
    """``h(r - d) = 1/2 bend max(pull - d, floor)^2`` but for a constant.

    Attributes
    ----------
    bend, pull : ndarray of shape (n,)
        Where pull is 0 nothing costs; h' is bend times pull.
    floor : float
        0 for a one-sided cost, minus infinity for a parabola.
    """

    bend: Array
    pull: Array
    floor: float = -np.inf
