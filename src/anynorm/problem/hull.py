"""The point of least norm in the hull of some points, and its lower bounds.

    minimise over x    ||A x||^2    where   x >= 0,  sum(x) = 1

Every w gives the lower bound ``max(0, min_i A_i'w / ||w||)^2``, the margin of w; it is the optimum
at the best w = A x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anynorm.problem.certificate import Values

Array = NDArray[np.float64]

_INDEFINITE = 1e-8  # of the largest squared length: x'Kx below minus that is no rounding


@dataclass(frozen=True)
class HullProblem:
    """Some points, by what values are measured against.

    Attributes
    ----------
    scale : float
        The largest squared length of a point.
    rounding : float
        A squared norm below it cannot be told from zero.
    """

    scale: float
    rounding: float = 0.0

    def values(self, x: Array, inner: Array) -> Values:
        """Return the values at x, from the products ``A_i'w`` of all points with w = A x.

        Points that are proved to be of no use may have infinite products.
        """
        used = np.flatnonzero(x)
        square, lowest = float(x[used] @ inner[used]), float(inner.min())
        primal = max(square, 0.0)
        # The bound cannot exceed the norm: what is above is rounding.
        dual = min(lowest * (lowest / primal), primal) if lowest > 0 and primal > 0 else 0.0
        certain = square >= -_INDEFINITE * self.scale
        return Values(primal, dual, self.scale, certain, self.rounding)

    def values_of_margin(self, norm: float, margin: float) -> Values:
        """Return the values of a point of the hull of some norm and of a vector of some margin."""
        return Values(norm**2, max(0.0, margin) ** 2, self.scale)

    def rescaled(self, factor: float, values: Values) -> Values:
        """Return the values for points that are `factor` times as long.

        In two steps, so that the square of the factor need not be a number.
        """
        primal, dual, scale = (factor * (factor * value) for value in values[:3])
        rounding = factor * (factor * values.rounding)
        return Values(primal, dual, scale, values.certain, rounding)
