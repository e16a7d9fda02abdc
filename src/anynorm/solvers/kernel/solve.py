"""The kernel problems, each by the method that suits its slack.

    minimise over f, b    1/2 ||f||^2 + C N(slack)

L1, SquaredL2 (inequality), TopK, LInf     block SMO
SquaredL2 (equality)                       one linear system
L2, TopK2, K12                             block SMO with a multiplier for the ball
all other norms                            the general solver
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anynorm.norms import SquaredL2
from anynorm.problem import Problem
from anynorm.solution import Progress, Solution
from anynorm.solvers.kernel.ball import BALL_SLACKS, solve_ball
from anynorm.solvers.kernel.box import BOX_SLACKS, solve_box
from anynorm.solvers.kernel.general import solve_general
from anynorm.solvers.kernel.least_squares import solve_least_squares
from anynorm.solvers.kernel.rows import KernelRows

Array = NDArray[np.float64]

MEGABYTE = 1 << 20


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
    >>> from anynorm.gram import Gram
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
    solve = _solver_for(problem)
    return solve(
        problem, rows, tol=tol, max_iter=max_iter, deadline=deadline, start=start, progress=progress
    )


def _solver_for(problem: Problem) -> Callable[..., Solution]:
    slack = problem.loss.slack
    if isinstance(slack, SquaredL2) and problem.loss.signed:
        return solve_least_squares
    if isinstance(slack, BOX_SLACKS):
        return solve_box
    return solve_ball if isinstance(slack, BALL_SLACKS) else solve_general
