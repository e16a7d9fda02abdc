"""Which method is tried on rows that live apart, and the certificate of what it finds.

    p x p matrices fit a worker     Newton's method or the augmented Lagrangian method on their sums
    sparse rows, a box dual         coordinate descent on every part's rows (CoCoA)
    otherwise                       Newton's method by conjugate gradients, a round for each product

Newton's methods begin on every 256th and every 16th row: what all rows are asked for then are a few
last steps.  Where a worker is lost, its rows are read again by another one, their duals begin anew,
and the method goes on from where it was.
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
from anynorm.solvers.linear.chunked.chunked_newton import (
    Position,
    RemoteNewton,
    Widths,
    sampled,
    solve_kinks,
    solve_smooth,
)
from anynorm.solvers.linear.chunked.cocoa import SharedDual, descend_apart, pulled_back

_LARGEST_FACTOR = 4000  # columns up to which p x p matrices are summed, as in newton_system.py
_MATRICES = 6  # of p x p numbers that a worker may hold at once: a block's, the sum, their making
_SHARE = 0.25  # of a worker's memory that these may take
_STRIDES = (256, 16)  # one row of so many makes a sample
_ROWS_PER_COLUMN, _SAMPLE_ENTRIES = 5, 100_000  # a sample has at least so many rows and entries
_SAMPLE_TOL = {False: 1e-2, True: 1e-4}  # of a sample, with kinks and smooth
_COLD, _WARM = 0.2, 8.0  # 1 over the width of the smoothing, in margins, without and with a start
_CERTAIN = 0.5  # of tol: the gap by the methods' own estimate at which a certificate is asked for
_TRIES = 6  # certificates, each at a tenth of the last goal


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


def _offer(problem: ChunkedProblem, best: Incumbent, coef: np.ndarray, bias: float) -> bool:
    """Certify a point, with the dual variables that are beside the rows now."""
    return best.offer(problem.values(coef, bias), (coef, bias), None)


def _descend(problem: ChunkedProblem, best: Incumbent, seed: int) -> None:
    shared = SharedDual(np.zeros(problem.n_coefs))

    def check(at: SharedDual) -> bool:
        return _offer(problem, best, at.coef, at.bias)

    while True:
        try:
            descend_apart(
                problem, shared, tol=_CERTAIN * best.tol, seed=seed, budget=best.budget, check=check
            )
            if best.primal_point is None or not best.reached:
                check(shared)
            return
        except RowsLost:
            bias, shared = shared.bias, pulled_back(problem)
            shared.bias = bias


def _newton(
    problem: ChunkedProblem, best: Incumbent, start: tuple[np.ndarray, float] | None
) -> None:
    v = problem.scale()
    at = (np.zeros(problem.n_coefs), 0.0)
    if start is not None:
        at = np.divide(start[0], v, out=np.zeros(len(v)), where=v > 0), start[1]
    matrix, smooth = _by_matrices(problem), problem.terms.loss.smooth
    sigma = _COLD if start is None else _WARM
    whole = RemoteNewton(problem, problem.terms, best.budget, matrix=matrix)
    stages = [whole]
    if start is None:
        stages = [
            RemoteNewton(problem, sampled(problem.terms, k), best.budget, matrix=matrix)
            for k in _strides(problem)
        ] + stages
    goal = _CERTAIN * best.tol
    tries = 0
    while stages:
        newton = stages[0]
        wanted = goal if newton is whole else _SAMPLE_TOL[smooth]
        try:
            found = _minimised(newton, at, wanted, sigma)
            at, sigma = (found.u, found.bias), _WARM
            if newton is not whole:
                stages.pop(0)
                continue
            tries += 1
            if _offer(problem, best, v * found.u, found.bias) or tries >= _TRIES:
                return
            if not best.budget.goes_on():
                return
            goal *= 0.1
        except RowsLost:
            at = newton.where if newton.where is not None else at


def _minimised(
    newton: RemoteNewton, at: tuple[np.ndarray, float], goal: float, sigma: float
) -> Position:
    if newton.terms.loss.smooth:
        return solve_smooth(newton, *at, goal)
    return solve_kinks(newton, *at, goal, Widths(sigma))


def _strides(problem: ChunkedProblem) -> list[int]:
    """The samples that are large enough to tell something about all rows."""
    n, p = problem.crew.shape
    return [k for k in _STRIDES if n // k >= _ROWS_PER_COLUMN * p and n // k * p >= _SAMPLE_ENTRIES]
