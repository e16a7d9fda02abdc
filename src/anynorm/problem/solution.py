"""What a solver hands back: coefficients, dual variables, a status and a certificate."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from anynorm.problem.certificate import Certificate


class Status(enum.StrEnum):
    """How a fit ended; the order of definition is the order of severity.

    Attributes
    ----------
    OPTIMAL
        The relative duality gap is at most tol.
    NEGLIGIBLE
        That cannot be said, but what is left between the primal and the dual value is next to
        nothing: no more than rounding may hide in float64, or tol * 1e-10 of the objective at zero.
        The optimum is 0 or that small, or tol asks for digits that are not there.
    MAX_ITER
        The solver stopped before, by max_iter or because no method came closer.
    TIME_LIMIT
        Time was up.
    UNCERTIFIED
        No bound is known, as for a kernel that is not shown to be positive semidefinite.

    Examples
    --------
    >>> from anynorm.problem.solution import Status
    >>> Status.OPTIMAL
    <Status.OPTIMAL: 'optimal'>
    >>> Status("time_limit") is Status.TIME_LIMIT
    True
    """

    OPTIMAL = "optimal"
    NEGLIGIBLE = "negligible"
    MAX_ITER = "max_iter"
    TIME_LIMIT = "time_limit"
    UNCERTIFIED = "uncertified"


def worst(statuses: Iterable[Status]) -> Status:
    """Return the most severe of some statuses (`Status.OPTIMAL` for none)."""
    severity = list(Status)
    return max(statuses, key=severity.index, default=Status.OPTIMAL)


class Progress(NamedTuple):
    """One report of a running solver."""

    iteration: int
    primal: float
    dual: float
    gap: float
    seconds: float


@dataclass(frozen=True)
class Solution:
    """A solved problem.

    Attributes
    ----------
    dual : ndarray of shape (n,)
        The dual variables ``a`` (not ``y * a``).
    certificate : Certificate
        Primal value, dual value and relative gap, computed apart from the solver.
    n_iter : int
        Iterations used.
    coef : ndarray of shape (p,), optional
        The coefficients of a problem on features.
    intercept : float
        The bias, 0 where the problem has none.
    x : ndarray, optional
        The point found, for the problems on the simplex.
    """

    dual: NDArray[np.float64]
    certificate: Certificate
    n_iter: int
    coef: NDArray[np.float64] | None = None
    intercept: float = 0.0
    x: NDArray[np.float64] | None = None

    @property
    def status(self) -> Status:
        """The certificate's status."""
        return self.certificate.status
