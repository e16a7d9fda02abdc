"""The Lasso in a ball, and its lower bounds.

    minimise over x    ||A x - b||^2    where   ||x||_1 <= r

Every vector t gives the lower bound ``max(0, t'b - r ||A't||_inf)^2 / ||t||^2``, the margin of the
equivalent SVM (`anynorm.reductions`); it is the optimum at t = b - A x for the best x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anynorm.problem.certificate import Values

if TYPE_CHECKING:
    from anynorm.design.views import CentredDesign

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LassoProblem:
    """One Lasso.

    Attributes
    ----------
    design : CentredDesign
        The columns, centred and weighted.
    b : ndarray
        What the columns are to come near to.
    radius : float
        The largest 1-norm of the coefficients.
    """

    design: CentredDesign
    b: Array
    radius: float

    def values(self, coef: Array, dual: Array) -> Values:
        """Return ``||A x - b||^2`` from the coefficients alone, the bound from the dual alone."""
        index = np.flatnonzero(coef)
        residual = self.b - self.design.matvec(coef[index], columns=index)
        top = float(np.abs(self.design.rmatvec(dual)).max(initial=0.0))
        return self.values_of(residual, dual, top)

    def values_of(self, residual: Array, dual: Array, top: float) -> Values:
        """Return the same where the residual and ``||A' dual||_inf`` are at hand."""
        primal, scale = float(residual @ residual), float(self.b @ self.b)
        return Values(primal, self.bound(dual, top), scale)

    def bound(self, dual: Array, top: float) -> float:
        """Return the lower bound that a dual vector gives, `top` being its largest product."""
        length = float(np.linalg.norm(dual))
        margin = float(dual @ self.b) - self.radius * top
        return (margin / length) ** 2 if margin > 0 and length > 0 else 0.0
