"""Which method is tried on rows that live apart, and the certificate of what it finds.

    p x p matrices fit a worker     Newton's method or the augmented Lagrangian method on their sums
    sparse rows, a box dual         coordinate descent on every part's rows (CoCoA)
    otherwise                       Newton's method by conjugate gradients, a round for each product

Newton's methods go from a few rows to all of them (`stages.py`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anynorm.design.crew import RowsLost
from anynorm.norms.dual_sets import Box
from anynorm.problem.chunked import ChunkedProblem
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.rounds_apart.stages import (
    SAMPLE_TOL,
    certified,
    problem_of_few,
    solve_in_stages,
)
from anynorm.solvers.linear.chunked.chunked_newton import SquaredNewton
from anynorm.solvers.linear.chunked.cocoa import SharedDual, descend_apart
from anynorm.solvers.linear.solve import solve_linear

_LARGEST_FACTOR = 4000  # columns up to which p x p matrices are summed, as in newton_system.py
_MATRICES = 6  # of p x p numbers that a worker may hold at once: a block's, the sum, their making
_SHARE = 0.25  # of a worker's memory that these may take
_FEW_ROWS, _FEW_ENTRIES = 3, 2_000_000  # per column, and in all: what a part sends of its own rows


def solve_chunked(
    problem: ChunkedProblem,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: tuple[np.ndarray, float] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve a problem whose rows live apart to a relative duality gap of `tol`.

    `start` has coefficients and a bias to begin from; other arguments are as in `solve_linear`.
    The dual variables stay beside their rows, and are not in the solution.
    """
    budget = Budget(max_iter, deadline)
    best = Incumbent(problem, tol, budget, progress)
    if _by_descent(problem):
        _descend(problem, best, seed)
    else:
        _newton(problem, best, start)
    coef, bias = best.primal_point
    return Solution(
        np.empty(0), best.certificate(), max(1, budget.n_iter), coef=coef, intercept=bias
    )


def _by_matrices(problem: ChunkedProblem) -> bool:
    p = problem.n_coefs
    return p <= _LARGEST_FACTOR and _MATRICES * 8.0 * p**2 <= _SHARE * problem.crew.room()


def _by_descent(problem: ChunkedProblem) -> bool:
    dual_set = problem.terms.loss.dual_set(problem.terms.C, np.ones(1))
    return isinstance(dual_set, Box) and problem.crew.sparse and not _by_matrices(problem)


def _descend(problem: ChunkedProblem, best: Incumbent, seed: int) -> None:
    shared = SharedDual(np.zeros(problem.n_coefs))

    def check(at: SharedDual) -> float:
        certified(problem, best, at.coef, at.bias)
        return best.gap

    while True:
        try:
            descend_apart(problem, shared, tol=best.tol, seed=seed, budget=best.budget, check=check)
            if best.primal_point is None or not best.reached:
                check(shared)
            return
        except RowsLost:
            continue  # from the duals that are left, and the bias


def _newton(
    problem: ChunkedProblem, best: Incumbent, start: tuple[np.ndarray, float] | None
) -> None:
    matrix, budget = _by_matrices(problem), best.budget
    solve_in_stages(
        problem,
        best,
        start,
        few=lambda: _of_few(problem, budget) if matrix else None,
        newton=lambda terms: SquaredNewton(problem, terms, budget, matrix=matrix),
    )


def _of_few(problem: ChunkedProblem, budget: Budget) -> tuple[np.ndarray, float] | None:
    """The scaled solution of a few rows of every part, None where all or too few would be sent."""
    n, p = problem.crew.shape
    most, parts = min(_FEW_ROWS * p, _FEW_ENTRIES // max(1, p)), problem.crew.n_parts
    if most * parts < 2 * p or most * parts > n // 2:
        return None
    few = problem_of_few(problem, most, feature_scale=problem.feature_scale)
    if few is None:
        return None
    solution = solve_linear(
        few,
        tol=SAMPLE_TOL[problem.terms.loss.smooth],
        max_iter=max(1, budget.left),
        deadline=budget.deadline,
    )
    assert solution.coef is not None
    return problem.scaled_coef(solution.coef), solution.intercept
