"""Problems in which no slack pays, where C is so large that rounding drowns the regulariser.

At an optimum without slacks the duals have a sum of at most 2 P, whatever C is: a smaller C whose
dual set holds such duals has the same optimum, and a solver that can tell its digits.  Margins
that miss 1 by their last digit, which C would multiply, are brought there by scaling w and b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anynorm.problem import Problem
from anynorm.problem.certificate import Values
from anynorm.problem.solution import Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent

Array = NDArray[np.float64]

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
    if known.gap <= tol or np.isnan(known.gap) or not problem.loss.one_sided:
        return solution
    if known.status is Status.TIME_LIMIT:  # scores anew would take as long as a certificate
        return solution
    best = Incumbent(problem, tol, budget)
    best.replace(Values(known.primal, known.dual, known.zero_primal), solution)
    clear = _without_slacks(problem, solution)
    if clear is None or _offer(best, clear) > (1 + tol) * known.primal:
        return solution  # slacks do pay
    C = _ENOUGH * best.primal / problem.least_weight()
    while not best.reached and min(problem.C / 2, _MOST * best.primal) > C and budget.goes_on():
        clear = _without_slacks(problem, solve(replace(problem, C=C)))
        if clear is not None:
            _offer(best, clear)
        C *= _GROWTH
    return replace(best.primal_point, certificate=best.certificate(), n_iter=max(1, budget.n_iter))


def _offer(best: Incumbent, clear: Solution) -> float:
    """Offer a point without slacks; return its primal value."""
    values = best.problem.values(clear.coef, clear.intercept, clear.dual)
    best.replace(values, clear)
    return values.primal


def _without_slacks(problem: Problem, solution: Solution) -> Solution | None:
    """The solution scaled until every margin is 1 or more; None where that cannot be."""
    rows, factor = np.flatnonzero(problem.row_weights()), 1.0
    assert solution.coef is not None
    for _ in range(_SCALINGS):
        coef, bias = factor * solution.coef, factor * solution.intercept
        scores = problem.scores(coef)
        least = float((problem.y * (scores + bias))[rows].min())
        if least >= 1.0:
            dual = solution.dual if problem.gram is None else coef
            middle = problem.best_bias(scores) if problem.free_bias else bias
            return replace(solution, coef=coef, intercept=middle, dual=dual)
        if not least > 0:
            return None
        factor *= (1.0 + 2.0 * (1.0 - least)) if least > _NEARLY else 1.0 / least
    return None
