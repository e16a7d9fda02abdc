"""The kernel problems, each by the method that suits its slack.

    minimise over f, b    1/2 ||f||^2 + C N(slack)

L1, SquaredL2 (inequality), TopK, LInf     block SMO; with a linear kernel of fewer features than
                                           rows the first two are solved over the features
SquaredL2 (equality)                       one linear system
L2, TopK2, K12                             block SMO with a multiplier for the ball
all other norms                            the general solver
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.rows import KernelRows
from anynorm.norms import L1, SquaredL2
from anynorm.problem import Problem
from anynorm.problem.certificate import certify, optimal_bias
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.kernel.ball import BALL_SLACKS, solve_ball
from anynorm.solvers.kernel.box import BOX_SLACKS, solve_box
from anynorm.solvers.kernel.general import solve_general
from anynorm.solvers.kernel.least_squares import solve_least_squares
from anynorm.solvers.linear import solve_linear

Array = NDArray[np.float64]

MEGABYTE = 1 << 20
_MANY_ROWS, _MOST_ITERATIONS = 200, 10_000
_SHARE = 0.1  # of tol: the gap over the features, whose primal point is better than the duals'


def solve_kernel(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 100_000_000,
    deadline: float | None = None,
    rows: KernelRows | None = None,
    cache_size: float = 500.0,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve one binary kernel problem to a relative duality gap of at most `tol`.

    Parameters
    ----------
    problem : Problem
        With a gram and a free bias.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        Most iterations of the method (steps of pairs, for block SMO).
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    rows : KernelRows, optional
        The kernel's rows, where several problems share them.
    cache_size : float
        The megabytes for rows where none are given.
    start : ndarray of shape (n,), optional
        Dual variables of a nearby problem.
    progress : callable, optional
        Called with a `Progress` at every gap that is computed.

    Returns
    -------
    Solution
        The duals, also as `coef`, the intercept and the certificate, whose status says whether
        `tol` was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.kernel import solve_kernel
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), gram=Gram.linear(X))
    >>> solution = solve_kernel(problem)
    >>> solution.dual, solution.intercept, solution.status.value
    (array([0.5, 0.5]), 0.0, 'optimal')
    """
    if problem.gram is None or not problem.free_bias or problem.loss.slack is None:
        raise ValueError("a kernel problem needs a gram, a free intercept and a norm of the slacks")
    if rows is None:
        rows = KernelRows(problem.gram, int(cache_size * MEGABYTE))
    if start is None and _has_few_features(problem):
        found = _solved_by_features(problem, tol, max_iter, deadline, progress)
        if found.status is Status.OPTIMAL or found.status is Status.TIME_LIMIT:
            return found
        start, max_iter = found.dual, max_iter - found.n_iter
    solve = _solver_for(problem)
    return solve(
        problem, rows, tol=tol, max_iter=max_iter, deadline=deadline, start=start, progress=progress
    )


def _has_few_features(problem: Problem) -> bool:
    """Whether the kernel is that of features, fewer than the rows, and block SMO would crawl."""
    gram = problem.gram
    assert gram is not None
    if (
        not gram.kernel.is_inner_product
        or gram.X is None
        or not isinstance(problem.loss.slack, (L1, SquaredL2))
    ):
        return False
    return gram.n >= _MANY_ROWS and gram.X.shape[1] < gram.n


def _solved_by_features(
    problem: Problem,
    tol: float,
    max_iter: int,
    deadline: float | None,
    progress: Callable[[Progress], None] | None,
) -> Solution:
    """Solve a problem with a linear kernel over the features; its duals are what is wanted.

    The gap is that of the kernel's problem at these duals.
    """
    assert problem.gram is not None
    y, C, weights = problem.y, problem.C, problem.sample_weight
    over_features = Problem(y=y, C=C, loss=problem.loss, X=problem.gram.X, sample_weight=weights)
    found = solve_linear(
        over_features, tol=_SHARE * tol, max_iter=min(max_iter, _MOST_ITERATIONS),
        deadline=deadline, progress=progress,
    )  # fmt: skip
    scores = problem.gram.matvec(y * found.dual)
    bias = optimal_bias(problem.loss, scores, y, C, weights)
    stopped = Status.MAX_ITER if found.status is Status.OPTIMAL else found.status
    certificate = certify(
        problem, found.dual, bias, found.dual, tol=tol, stopped=stopped, scores=scores
    )
    return Solution(found.dual, certificate, found.n_iter, coef=found.dual, intercept=bias)


def _solver_for(problem: Problem) -> Callable[..., Solution]:
    slack = problem.loss.slack
    if isinstance(slack, SquaredL2) and problem.loss.signed:
        return solve_least_squares
    if isinstance(slack, BOX_SLACKS):
        return solve_box
    return solve_ball if isinstance(slack, BALL_SLACKS) else solve_general
