"""Problems in which no slack pays, where C is so large that rounding drowns the regulariser.

At an optimum without slacks the duals have a sum of at most 2 P, whatever C is: a smaller C whose
dual set holds such duals has the same optimum, and a solver that can tell its digits.  Margins
that miss 1 by their last digit, which C would multiply, are brought there by scaling w and b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from anynorm.problem import Problem
from anynorm.problem.certificate import Values, certificate_of, doubt
from anynorm.problem.solution import Solution, Status
from anynorm.solvers.frame.budget import Budget

_ENOUGH = 4.0  # times P, for C: twice what the sum of the duals may be
_GROWTH = 1000.0  # where that was not enough, as for squared slacks, which never vanish
_MOST = 1e10  # times P: beyond, the digits end
_NEARLY = 1 - 1e-9  # a margin that misses 1 by rounding, which the next scaling has as well
_SCALINGS = 5  # until the last margin is 1, each by what the rounding of the one before left


def improved(
    solution: Solution,
    problem: Problem,
    *,
    tol: float,
    budget: Budget,
    solve: Callable[[Problem], Solution],
) -> Solution:
    """Return a solution again or a better one, where it missed `tol` and no slack pays.

    `solve` solves the same problem with another C, from the same budget.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.linear import solve_linear
    >>> X, y = np.array([[1.0, 0.3], [-1.0, 0.1], [3.0, 0.2]]), np.array([1.0, -1.0, 1.0])
    >>> solution = solve_linear(Problem(y=y, C=1e20, loss=get_loss("hinge"), X=X))
    >>> round(solution.certificate.primal, 6), solution.status.value
    (0.49505, 'optimal')
    """
    known = solution.certificate
    if known.status is Status.OPTIMAL or np.isnan(known.gap) or not problem.loss.one_sided:
        return solution
    if known.status is Status.TIME_LIMIT:  # scores anew would take as long as a certificate
        return solution
    best = _Candidate.of(problem, solution)
    clear = _without_slacks(problem, solution)
    if clear is None or clear.values.primal > (1 + tol) * known.primal:
        return solution  # slacks do pay
    best = min(best, clear, key=_Candidate.doubt)
    C = _ENOUGH * best.values.primal / problem.least_weight()
    while not best.certified(tol) and budget.goes_on():
        if min(problem.C / 2, _MOST * best.values.primal) <= C:
            break
        clear = _without_slacks(problem, solve(replace(problem, C=C)))
        best = best if clear is None else min(best, clear, key=_Candidate.doubt)
        C *= _GROWTH
    certificate = certificate_of(best.values, tol, budget.stopped)
    return replace(best.solution, certificate=certificate, n_iter=max(1, budget.n_iter))


class _Candidate(NamedTuple):
    """A solution and its values in the problem as it was given."""

    solution: Solution
    values: Values

    @classmethod
    def of(cls, problem: Problem, solution: Solution) -> _Candidate:
        assert solution.coef is not None
        return cls(solution, problem.values(solution.coef, solution.intercept, solution.dual))

    def doubt(self) -> float:
        return doubt(self.values)

    def certified(self, tol: float) -> bool:
        return certificate_of(self.values, tol).status is Status.OPTIMAL


def _without_slacks(problem: Problem, solution: Solution) -> _Candidate | None:
    """The solution scaled until every margin is 1 or more, certainly; None where that cannot be."""
    rows, factor = np.flatnonzero(problem.row_weights()), 1.0
    assert solution.coef is not None
    for _ in range(_SCALINGS):
        coef, bias = factor * solution.coef, factor * solution.intercept
        scores = problem.scores(coef)
        safe = problem.y * (scores + bias) - 2.0 * problem.score_errors(coef, bias, scores)
        least = float(safe[rows].min())
        if least >= 1.0:
            dual = coef if solution.dual is solution.coef else solution.dual
            middle = problem.best_bias(scores) if problem.free_bias else bias
            scaled = replace(solution, coef=coef, intercept=middle, dual=dual)
            return _Candidate.of(problem, scaled)
        if not least > 0:
            return None
        factor *= (1.0 + 2.0 * (1.0 - least)) if least > _NEARLY else 1.0 / least
    return None
