"""Where the dual variables of a loss may be: what solvers need to know of it, and no more.

    set           constraints on a, and what the dual objective has beside sum(a)
    Box           lower <= a <= upper,  minus 1/2 shift a^2
    CurvedBox     lower <= a <= upper,  minus some other curved function of each a_i
    BudgetBox     |a| <= upper,  sum |a| <= budget
    BallBox       |a| <= upper,  sum |a| <= budget,  sum a^2/w <= length^2
    PowerBall     sum w (|a|/(C w))^q <= 1
    Ellipsoid     a'M^-1 a <= C^2
    AnyBall       N*(a) <= C for a norm that is known by its values and maximisers alone

Where `signed` is False the constraints are inequalities: a >= 0, and a is allowed if some e >= a
is (for norms that are not monotone).  A norm or a loss says which set is its own; a solver says
which sets it can handle.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from anynorm.norms.norm import Norm

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class DualSet:
    """Base class.

    Attributes
    ----------
    signed : bool
        Whether a may be negative.
    """

    signed: bool

    def slopes(self, a: Array, near: NDArray[np.bool_]) -> Array:
        """Return how steeply the loss may rise or fall where its dual variables are a.

        Rows that are `near` a kink may be on either side of it.
        """
        return np.abs(a)


@dataclass(frozen=True, eq=False)
class CurvedBox(DualSet):
    """Bounds of the dual variables, one by one; the rest is in the loss's curve."""

    lower: Array
    upper: Array


@dataclass(frozen=True, eq=False)
class Box(DualSet):
    """Bounds of the dual variables, and the diagonal that a squared slack adds."""

    lower: Array
    upper: Array
    shift: Array

    @classmethod
    def of(cls, upper: Array, signed: bool, shift: Array | None = None) -> Box:
        """Return ``|a| <= upper``, with a >= 0 where it is not signed."""
        lower = -upper if signed else np.zeros_like(upper)
        return cls(signed, lower, upper, np.zeros_like(upper) if shift is None else shift)

    def part(self, rows: NDArray[np.intp]) -> Box:
        """Return the box of some rows."""
        return Box(self.signed, self.lower[rows], self.upper[rows], self.shift[rows])

    def slopes(self, a: Array, near: NDArray[np.bool_]) -> Array:
        """Return the dual variables, at a kink the steeper of its two sides."""
        return np.where(near & (self.shift == 0), self.upper, np.abs(a))

    def costs(self, residual: Array) -> Array:
        """Return what each residual costs: the largest ``a r - 1/2 shift a^2`` in the box."""
        at = np.where(residual > 0, self.upper, self.lower)
        curved = self.shift > 0
        inside = np.divide(residual, self.shift, out=np.zeros_like(residual), where=curved)
        at = np.where(curved, np.clip(inside, self.lower, self.upper), at)
        return at * (residual - 0.5 * self.shift * at)

    def cost(self, residual: Array) -> float:
        """Return the loss whose conjugate is the box."""
        return float(self.costs(residual).sum())


@dataclass(frozen=True, eq=False)
class BudgetBox(DualSet):
    """Bounds of the dual variables and of their sum."""

    upper: Array
    budget: float

    def slopes(self, a: Array, near: NDArray[np.bool_]) -> Array:
        """Return the dual variables, at a kink the steeper of its two sides."""
        return np.where(near, self.upper, np.abs(a))


@dataclass(frozen=True, eq=False)
class BallBox(DualSet):
    """A weighted 2-norm ball, perhaps with bounds or a budget (infinite where there are none)."""

    upper: Array
    budget: float
    weights: Array
    length: float


@dataclass(frozen=True, eq=False)
class PowerBall(DualSet):
    """The dual ball of the p-norm of the slacks, ``bound = C w``."""

    p: float
    bound: Array
    weights: Array


@dataclass(frozen=True, eq=False)
class Ellipsoid(DualSet):
    """The dual ball of a Mahalanobis norm."""

    M: Array
    radius: float


@dataclass(frozen=True, eq=False)
class AnyBall(DualSet):
    """The ball ``N*(a) <= radius`` of a norm that says no more about itself."""

    norm: Norm
    radius: float
