"""The slacks whose dual is a box, perhaps with a budget: what they mean for block SMO.

    slack, constraints          bounds of beta = y a            budget      diagonal
    L1, inequality              0 <= a <= C w                   -           -
    L1, equality                |a| <= C w                      -           -
    SquaredL2, inequality       0 <= a                          -           1/(2 C w)
    TopK(k), inequality         0 <= a <= C w                   k C         -
    TopK(k), equality           |a| <= C w, in two parts        k C         -
    LInf                        as TopK(1) without weights

An a of either sign under a budget is the difference of two variables, one of each sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.rows import KernelRows
from anynorm.norms import L1, LInf, SquaredL2, TopK
from anynorm.problem import Problem
from anynorm.problem.certificate import certify, optimal_bias
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.kernel.near_rows import rows_that_matter
from anynorm.solvers.kernel.polish import polished
from anynorm.solvers.kernel.screened import ScreenedSearch, pays
from anynorm.solvers.kernel.smo import Box, BoxResult, Values, minimise_box

Array = NDArray[np.float64]

_AT_BOUND = 1e-9
BOX_SLACKS = (L1, SquaredL2, TopK, LInf)


def solve_box(
    problem: Problem,
    rows: KernelRows,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    start: Array | None,
    progress: Callable[[Progress], None] | None,
    screening: bool = True,
) -> Solution:
    """Solve a problem whose slack is one of `BOX_SLACKS`; see `solve_kernel`.

    With `screening` large problems are solved for some of their rows at a time.
    """
    beta = None if start is None else problem.y * start
    if screening and start is None and pays(problem):
        search = ScreenedSearch(problem, rows, _minimise, progress)
        few = search.run(tol, max_iter, deadline)
        if few is not None:
            solution = certified(problem, rows, few, tol)
            if few.stopped is not Status.OPTIMAL or solution.status is Status.OPTIMAL:
                return solution
        # A part that was given up at once says little about the whole.
        beta = search.beta if np.isfinite(search.gap) else None
        max_iter -= search.n_iter
    found = _minimise(
        problem, rows, tol=tol, max_iter=max_iter, deadline=deadline, start=beta, progress=progress
    )
    return certified(problem, rows, polished(rows.gram, box_of(problem), found), tol)


def _minimise(
    problem: Problem,
    rows: KernelRows,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    start: Array | None,
    progress: Callable[[Progress], None] | None = None,
) -> BoxResult:
    """Block SMO for the problem, from a beta."""
    return minimise_box(
        rows, box_of(problem), values=values_of(problem), tol=tol,
        zero_primal=problem.zero_primal(), max_iter=max_iter, deadline=deadline, start=start,
        matters=partial(rows_that_matter, problem, rows), progress=progress,
    )  # fmt: skip


def certified(problem: Problem, rows: KernelRows, found: BoxResult, tol: float) -> Solution:
    """The solution with its certificate, at the middle of the optimal biases.

    Scores that matter at that bias are float64; those of the other rows prove that they do not.
    """
    a, scores, exact, bias = problem.y * found.beta, found.scores, found.exact, found.intercept
    while True:
        if not (isinstance(problem.loss.slack, TopK) and _fixes_bias(problem, found.beta)):
            bias = optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)
        missing = rows_that_matter(problem, rows, found.beta, scores, bias) & ~exact
        if not missing.any():
            break
        scores, exact = scores.copy(), exact | missing
        scores[missing] = rows.exact_scores(found.beta, np.flatnonzero(missing))
    stopped = Status.MAX_ITER if found.stopped is Status.OPTIMAL else found.stopped
    certificate = certify(problem, a, bias, a, tol=tol, stopped=stopped, scores=scores)
    return Solution(a, certificate, found.n_iter, coef=a, intercept=bias)


def _fixes_bias(problem: Problem, beta: Array) -> bool:
    """Whether variables of both signs lie between their bounds, so that there is one bias."""
    bound = problem.C * problem.row_weights()
    free = (np.abs(beta) > _AT_BOUND * bound) & (np.abs(beta) < (1 - _AT_BOUND) * bound)
    return bool(np.any(beta[free] > 0) and np.any(beta[free] < 0))


def box_of(problem: Problem, diagonal: Array | None = None) -> Box:
    """The bounds, the linear term, the budget and the diagonal of a problem."""
    slack, C, y = problem.loss.slack, problem.C, problem.y
    weights = problem.row_weights()
    upper, budget = C * weights, np.inf
    if isinstance(slack, SquaredL2):
        with np.errstate(divide="ignore"):
            diagonal = np.where(weights > 0, 1.0 / (2.0 * C * weights), 0.0)
        # a = 2 C w xi, and C w xi^2 is at most the primal value at zero: with a kernel that is not
        # positive semidefinite nothing else would hold the duals.
        upper = 4.0 * np.sqrt(C * weights * problem.zero_primal())
    elif isinstance(slack, LInf):
        upper, budget = np.where(weights > 0, C, 0.0), C
    elif isinstance(slack, TopK):
        budget = slack.k * C
    return bounded(y, upper, budget, diagonal, problem.loss.signed)


def bounded(y: Array, upper: Array, budget: float, diagonal: Array | None, signed: bool) -> Box:
    """|a| <= upper (a >= 0 where it is not signed) and sum |a| <= budget."""
    n, zero = len(y), np.zeros(len(y))
    rows, ones = np.arange(n), np.ones(n)
    if not signed:
        return Box(y, rows, zero, upper, ones, diagonal, budget)
    if not np.isfinite(budget):
        return Box(ones, rows, -upper, upper, y, diagonal)
    return Box(
        np.concatenate([ones, -ones]), np.concatenate([rows, rows]), np.concatenate([zero, zero]),
        np.concatenate([upper, upper]), np.concatenate([y, -y]), diagonal, budget,
    )  # fmt: skip


def values_of(problem: Problem) -> Values:
    """Primal and dual value at beta, K beta and a bias."""
    loss, C, weights, y = problem.loss, problem.C, problem.sample_weight, problem.y

    def values(beta: Array, scores: Array, intercept: float) -> tuple[float, float]:
        square = float(beta @ scores)
        primal = 0.5 * square + problem.loss_at(scores, intercept)
        return primal, loss.dual_gain(y * beta, C, weights) - 0.5 * square

    return values
