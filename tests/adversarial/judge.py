"""What a certificate claims of a point, and what is wrong with it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from anynorm.problem.solution import Status, worst
from tests.adversarial.exact import Exact

SHARE = 0.1  # of tol: what rounding may add to a gap, or take from it
UNSEEN = 1e-14  # of the value at zero, next to which float64 sees nothing smaller

ENDED = dict.fromkeys(Status, "stopped") | {
    Status.OPTIMAL: "certified",
    Status.NEGLIGIBLE: "negligible",
    Status.UNCERTIFIED: "uncertified",
}


@dataclass(frozen=True)
class Claim:
    """A certificate with the value of its point, computed apart from the package.

    Attributes
    ----------
    certificate : Certificate
        What is claimed.
    primal : longdouble
        The value of the point.
    known : callable
        Returns values of other points; asked for only where something is claimed.
    definite : bool
        Whether there can be a claim: not for kernels that are indefinite.
    feasible : bool
        Whether the point satisfies the constraints.
    blur : longdouble
        What rounding the scores to float64 can add to the value.
    meant : bool
        Whether this is what was to be solved; other certificates are true or false, no more.
    """

    certificate: Any
    primal: Exact
    known: Callable[[], Sequence[Exact]]
    definite: bool = True
    feasible: bool = True
    blur: Exact | float = 0.0
    meant: bool = True

    @property
    def claims(self) -> bool:
        """Whether the point is said to be optimal."""
        return self.certificate.status == Status.OPTIMAL


def complaints(claim: Claim, *, blurred: bool = False) -> list[str]:
    """What is false, or is so for one who sees scores in float64; nothing without a claim."""
    if not claim.claims:
        return []
    stated = claim.certificate
    if not claim.definite:
        return ["optimal, of a kernel that is indefinite"]
    if not claim.feasible:
        return ["the point is not feasible"]
    primal, dual, gap, tol = stated.primal, stated.dual, stated.gap, stated.tol
    if not all(map(math.isfinite, (primal, dual, gap))):
        return [f"primal {primal:g}, dual {dual:g}, gap {gap:g}"]
    unseen = Exact(UNSEEN) * Exact(stated.zero_primal) + Exact(claim.blur if blurred else 0.0)
    asked = Exact(tol) * Exact(max(abs(primal), abs(dual)))
    found = []
    if not abs(Exact(primal) - claim.primal) <= asked + unseen:
        found.append(f"primal {primal:.12g} stated, {float(claim.primal):.12g} computed")
    if (
        gap > tol
        or not max(Exact(primal), claim.primal) - Exact(dual) <= asked + SHARE * asked + unseen
    ):
        found.append(f"gap {gap:.2g} stated, {float(claim.primal):.12g} and {dual:.12g} computed")
    best = min([claim.primal, *claim.known()])
    if Exact(dual) > best + SHARE * asked + unseen:
        found.append(f"dual {dual:.12g} stated, but a point has {float(best):.12g}")
    return found


def tally_of(claims: Sequence[Claim]) -> str:
    """How a fit ended, by its worst certificate."""
    return ENDED[worst(claim.certificate.status for claim in claims if claim.meant)]
