"""Certificates: how far a solution can be from the optimum, computed apart from any solver.

Every problem evaluates a point of its own kind: the primal value P from the primal point alone,
the dual value D from the dual variables alone, after a repair that makes any vector feasible
(`anynorm.problem.repair`).  P - D >= 0 bounds the distance of both from the optimum.  ``gap`` is
relative to ``max(|P|, |D|)``.  An optimum of all but 0, which rounding keeps from a small relative
gap, is `Status.NEGLIGIBLE`: P - D is small beside P(0), the primal at zero, and not beside P.

This is the only module that makes a `Certificate`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from anynorm.design.limits import FLOOR, ROUNDING
from anynorm.problem.solution import Status, worst


class Values(NamedTuple):
    """What a problem says about a point.

    Attributes
    ----------
    primal, dual : float
        The optimum lies between them, where they are certain.
    scale : float
        The size of the problem, such as the primal value at zero.
    certain : bool
        False where there is no weak duality, as with a kernel that is not positive semidefinite.
    rounding : float
        What rounding may have added to the two, or taken from them.
    """

    primal: float
    dual: float
    scale: float
    certain: bool = True
    rounding: float = 0.0


class Certifiable(Protocol):
    """A problem that can evaluate its points."""

    def values(self, *point: Any, **known: Any) -> Values:
        """Return the primal and dual value at a point."""


@dataclass(frozen=True)
class Certificate:
    """Primal value, dual value and relative gap of a solution.

    Attributes
    ----------
    primal, dual : float
        Objective values; the optimum lies between them.
    gap : float
        ``(primal - dual) / max(|primal|, |dual|)``; NaN where no certificate is possible.
    status : Status
        OPTIMAL where the gap is at most tol and rounding cannot hide more; NEGLIGIBLE where that
        is not so, but primal - dual is at most ``tol * 1e-10 * zero_primal``, or no larger than
        what rounding may hide; otherwise why the solver stopped.
    tol : float
        The gap asked for.
    zero_primal : float
        The primal value at zero coefficients.
    per_class : tuple of Certificate
        The binary problems' certificates of a multiclass fit.

    Examples
    --------
    >>> from anynorm.problem.certificate import Certificate
    >>> from anynorm.problem.solution import Status
    >>> print(Certificate(1.0, 0.5, 0.5, Status.MAX_ITER, 1e-4))
    max_iter: primal 1, dual 0.5, relative gap 5.0e-01 (tol 1e-04)
    """

    primal: float
    dual: float
    gap: float
    status: Status
    tol: float
    zero_primal: float = 0.0
    per_class: tuple[Certificate, ...] = ()

    @classmethod
    def combine(cls, certificates: Sequence[Certificate]) -> Certificate:
        """Return one certificate for several problems: sums, and the worst status.

        Examples
        --------
        >>> from anynorm.problem.certificate import Certificate
        >>> from anynorm.problem.solution import Status
        >>> parts = [Certificate(1.0, 1.0, 0.0, Status.OPTIMAL, 1e-4),
        ...          Certificate(3.0, 2.0, 1 / 3, Status.MAX_ITER, 1e-4)]
        >>> whole = Certificate.combine(parts)
        >>> whole.primal, whole.dual, whole.gap, whole.status.value
        (4.0, 3.0, 0.25, 'max_iter')
        """
        parts = tuple(certificates)
        if len(parts) == 1:
            return parts[0]
        primal = math.fsum(part.primal for part in parts)
        dual = math.fsum(part.dual for part in parts)
        unknown = any(math.isnan(part.gap) for part in parts)
        return cls(
            primal=primal,
            dual=dual,
            gap=math.nan if unknown else relative_gap(primal, dual),
            status=worst(part.status for part in parts),
            tol=max((part.tol for part in parts), default=0.0),
            zero_primal=math.fsum(part.zero_primal for part in parts),
            per_class=parts,
        )

    @property
    def gap_at_scale(self) -> float:
        """The gap relative to ``max(|primal|, |dual|, 1e-10 * zero_primal)``.

        It is what is asked of points along a path that ends at an optimum of 0.
        """
        size = max(abs(self.primal), abs(self.dual), FLOOR * self.zero_primal)
        return self.gap * max(abs(self.primal), abs(self.dual)) / size if size > 0 else self.gap

    def __str__(self) -> str:
        return (
            f"{self.status}: primal {self.primal:.10g}, dual {self.dual:.10g}, "
            f"relative gap {self.gap:.1e} (tol {self.tol:.0e})"
        )


def relative_gap(primal: float, dual: float) -> float:
    """Return ``(P - D) / max(|P|, |D|)``, with 0/0 = 0.

    A difference below zero that rounding explains (1e-12 of the primal) counts as zero.
    """
    if math.isnan(primal) or math.isnan(dual):
        return math.nan
    if math.isinf(primal) or math.isinf(dual):
        return math.inf
    difference = primal - dual
    if -ROUNDING * abs(primal) <= difference <= 0:
        return 0.0
    return difference / max(abs(primal), abs(dual))


def doubt(values: Values) -> float:
    """Return the relative gap and what rounding may add to it, without bound where both are 0.

    Examples
    --------
    >>> from anynorm.problem.certificate import Values, doubt
    >>> doubt(Values(primal=2.0, dual=1.0, scale=2.0, rounding=0.5))
    0.75
    """
    primal, dual, _, _, rounding = values
    size = max(abs(primal), abs(dual))
    if size == 0.0:
        return math.inf if rounding > 0 else 0.0
    return relative_gap(primal, dual) + rounding / size


def certify(
    problem: Certifiable,
    *point: Any,
    tol: float,
    stopped: Status = Status.MAX_ITER,
    **known: Any,
) -> Certificate:
    """Return the certificate of a point.

    Parameters
    ----------
    problem : Problem, LassoProblem or HullProblem
        What was to be solved.
    *point : arrays and numbers
        What its `values` takes: coef, intercept and dual for a `Problem` (for a kernel coef is a,
        with f = K (y * a)).  Any dual vector will do; it is repaired first.
    tol : float
        The relative gap that counts as optimal.
    stopped : Status
        The status where the gap is larger than tol.
    **known : arrays
        What is at hand and need not be computed again, such as ``scores=problem.scores(coef)``.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.problem.certificate import certify
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    >>> print(certify(problem, np.array([1.0]), 0.0, np.array([0.5, 0.5]), tol=1e-6))
    optimal: primal 0.5, dual 0.5, relative gap 0.0e+00 (tol 1e-06)
    """
    return certificate_of(problem.values(*point, **known), tol, stopped)


def certificate_of(values: Values, tol: float, stopped: Status = Status.MAX_ITER) -> Certificate:
    """Return the certificate of values that a problem has computed at a point."""
    primal, dual, scale, certain, rounding = values
    if not certain:
        return Certificate(primal, dual, math.nan, Status.UNCERTIFIED, tol, scale)
    gap = relative_gap(primal, dual)
    if abs(gap) <= tol and rounding <= tol * max(abs(primal), abs(dual)):
        status = Status.OPTIMAL
    elif abs(primal - dual) <= max(tol * FLOOR * scale, rounding):
        status = Status.NEGLIGIBLE
    else:
        status = stopped
    return Certificate(primal, dual, gap, status, tol, scale)


def joint_certificate(certificates: Sequence[Certificate]) -> Certificate:
    """Return one certificate for the binary problems of a fit, with the parts in ``per_class``."""
    return replace(Certificate.combine(certificates), per_class=tuple(certificates))
