"""From a few rows to all of them: the stages of Newton's method over rows that live apart.

The first solution is that of a few rows, no more numbers than a round may bring; then every 16th
row is asked; what all rows are asked for are a few last steps.  Where a worker is lost, its rows
are read again by another one, their duals begin anew, and the method goes on from where it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anynorm.design import stacked
from anynorm.design.crew import RowsLost
from anynorm.problem import Problem
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.rounds_apart.beside_rows import few_rows
from anynorm.solvers.frame.rounds_apart.remote_newton import (
    RemoteNewton,
    Widths,
    sampled,
    solve_kinks,
    solve_smooth,
)

_STRIDE = 16  # one row of so many makes a sample
_ROWS_PER_COLUMN, _SAMPLE_ENTRIES = 5, 100_000  # a sample has at least so many rows and entries
SAMPLE_TOL = {False: 1e-2, True: 1e-4}  # of a sample, with kinks and smooth
# 1 over the width of the smoothing, in margins: without a start, from one of few rows, from most.
_COLD, _SOLVED, _WARM = 0.2, 2.0, 8.0
_CERTAIN = 0.5  # of tol: the gap by the methods' own estimate at which a certificate is asked for
_TRIES = 6  # certificates, each at a tenth of the last goal

Point = tuple[np.ndarray, float]


def solve_in_stages(
    problem: ChunkedProblem,
    best: Incumbent,
    start: Point | None,
    few: Callable[[], Point | None],
    newton: Callable[[RowTerms], RemoteNewton],
) -> None:
    """Offer points to `best` until it has its gap.

    `few` gives a start in the scaled coefficients where there is none, or None; `newton` makes the
    method for all rows or a sample.
    """
    terms = problem.terms
    at, sigma = (np.zeros(problem.n_coefs), 0.0), _COLD
    if start is not None:
        at, sigma = (problem.scaled_coef(start[0]), start[1]), _WARM
    elif (found := few()) is not None:
        at, sigma = found, _SOLVED
    if start is None and _sample_tells(problem):
        goal = SAMPLE_TOL[terms.loss.smooth]
        at, sigma = _minimised(newton(sampled(terms, _STRIDE)), at, goal, sigma), _WARM
    whole, goal = newton(terms), _CERTAIN * best.tol
    for _ in range(_TRIES):
        at = _minimised(whole, at, goal, sigma)
        try:
            if certified(problem, best, problem.scale() * at[0], at[1]):
                return
        except RowsLost:
            continue
        if not best.budget.goes_on():
            return
        goal, sigma = 0.1 * goal, _WARM


def problem_of_few(problem: ChunkedProblem, most: int, **regulariser: Any) -> Problem | None:
    """The problem of at most so many rows of every part, None where they are of one class.

    `regulariser` has the pieces of `Problem` that say what is penalised.
    """
    seen = problem.crew.ask(few_rows, (problem.terms, most))
    y, weights = np.concatenate(seen.y), np.concatenate(seen.weights)
    if len({*y[weights > 0]}) < 2:
        return None
    return Problem(
        y=y,
        C=problem.terms.C,
        loss=problem.terms.loss,
        X=stacked(seen.X),
        sample_weight=weights,
        intercept=problem.intercept,
        **regulariser,
    )


def certified(problem: ChunkedProblem, best: Incumbent, coef: np.ndarray, bias: float) -> bool:
    """Offer a point with the dual variables that are beside the rows now; whether it is enough."""
    return best.offer(problem.values(coef, bias), (coef, bias), None)


def _minimised(newton: RemoteNewton, at: Point, goal: float, sigma: float) -> Point:
    """The scaled coefficients and the bias at a gap of `goal`, however many workers are lost."""
    while True:
        try:
            if newton.terms.loss.smooth:
                found = solve_smooth(newton, *at, goal)
            else:
                found = solve_kinks(newton, *at, goal, Widths(sigma))
            return found.u, found.bias
        except RowsLost:
            at = at if newton.where is None else newton.where


def _sample_tells(problem: ChunkedProblem) -> bool:
    """Whether the sample is large enough to tell something about all rows."""
    n, p = problem.crew.shape
    m = n // _STRIDE
    return m >= _ROWS_PER_COLUMN * p and m * p >= _SAMPLE_ENTRIES
