"""Problems far from the origin, solved around the mean of their rows.

Where the bias is free, a shift of the columns changes the bias alone.  Columns whose mean is far
larger than their spread leave few digits to products and sums, and the mean taken off gives them
back.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anynorm.design.far_columns import FAR, far_means
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Solution, Status


def without_means(problem: Problem, far: float) -> tuple[Problem, NDArray[np.float64] | None]:
    """Return a problem with the means of far columns taken off, and these; None if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.frame.centring import without_means
    >>> X, y = np.array([[9.0], [11.0]]), np.array([1.0, -1.0])
    >>> shifted, means = without_means(Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X), far=1.0)
    >>> shifted.design.dense().ravel(), means
    (array([-1.,  1.]), array([10.]))
    """
    means = far_means(problem.design, far) if problem.free_bias else None
    if means is None:
        return problem, None
    return replace(problem, X=problem.design.dense() - means), means


def around_mean(
    problem: Problem, solve: Callable[[Problem], Solution], *, tol: float, far: float = FAR
) -> Solution:
    """Solve a problem, around the mean of its rows where that is far away; certify it as it is.

    Far is a mean of more than `far` times the spread of its column.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.linear import solve_linear
    >>> X, y = np.array([[1e8 + 1], [1e8 - 1], [1e8]]), np.array([1.0, -1.0, -1.0])
    >>> solution = solve_linear(Problem(y=y, C=10.0, loss=get_loss("hinge"), X=X))
    >>> solution.coef.round(6), round(solution.certificate.primal, 6)
    (array([2.]), 2.0)
    """
    shifted, means = without_means(problem, far)
    if means is None:
        return solve(problem)
    found = solve(shifted)
    assert found.coef is not None
    scores = problem.scores(found.coef)
    bias = problem.best_bias(scores)
    reached = found.status in (Status.OPTIMAL, Status.NEGLIGIBLE)
    stopped = Status.MAX_ITER if reached else found.status
    certificate = certify(
        problem, found.coef, bias, found.dual, tol=tol, stopped=stopped, scores=scores
    )
    return replace(found, intercept=bias, certificate=certificate)
