"""Duals in a box, perhaps with a budget: what they are for block SMO.

    dual set                            bounds of beta = y a            budget      diagonal
    Box, one sign                       0 <= a <= upper                 -           shift
    Box, both signs                     |a| <= upper                    -           shift
    BudgetBox, one sign                 0 <= a <= upper                 budget      -
    BudgetBox, both signs               |a| <= upper, in two parts      budget      -

An a of either sign under a budget is the difference of two variables, one of each sign.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.rows import KernelRows
from anynorm.norms.dual_sets import Box, BudgetBox
from anynorm.problem import Problem
from anynorm.problem.certificate import Values
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.kernel.active_set import exact_optimum
from anynorm.solvers.kernel.candidates import BoxProgram
from anynorm.solvers.kernel.free_steps import FreeSteps
from anynorm.solvers.kernel.near_rows import rows_that_matter
from anynorm.solvers.kernel.screened import ScreenedSearch, pays
from anynorm.solvers.kernel.search import KernelSearch
from anynorm.solvers.kernel.smo import BoxResult, ValuesAt, minimise_box

Array = NDArray[np.float64]

_FAR = 4.0  # times the largest dual that the primal value at zero allows


def solve_box(search: KernelSearch, most: int | None = None) -> None:
    """Block SMO for all rows, of at most so many steps, and the exact optimum if it is small."""
    whole = search.budget
    budget = whole if most is None else Budget(min(most, whole.left), whole.deadline)
    found = minimise(
        search.problem,
        search.rows,
        tol=search.tol,
        budget=budget,
        start=search.start,
        report=search.best.report,
    )
    if most is not None:
        whole.book(budget.n_iter)
    exact = exact_optimum(search.rows.gram, box_of(search.problem), found, search.budget)
    if exact is not None:
        offer(search, exact)
    if exact is None or not search.best.gap <= max(found.gap, 0.0):
        offer(search, found)


def few_rows_decide(search: KernelSearch) -> bool:
    """Whether large problems are worth solving for some of their rows at a time."""
    return search.start is None and pays(search.problem)


def solve_screened(search: KernelSearch) -> None:
    """Block SMO for some rows at a time; what it leaves undone starts the others."""
    screened = ScreenedSearch(search, minimise)
    found = screened.run()
    if found is not None:
        offer(search, found)
    # A part that was given up at once says little about the whole.
    search.start = screened.beta if np.isfinite(screened.gap) else None


def minimise(
    problem: Problem,
    rows: KernelRows,
    *,
    tol: float,
    budget: Budget,
    start: Array | None,
    start_scores: Array | None = None,
    steps: FreeSteps | None = None,
    report: Callable[[Values], None] | None = None,
    rough: bool = False,
) -> BoxResult:
    """Block SMO for a problem, from a beta; the others as in `minimise_box`."""
    return minimise_box(
        rows,
        box_of(problem),
        values=values_of(problem),
        tol=tol,
        budget=budget,
        start=start,
        start_scores=start_scores,
        steps=steps,
        matters=partial(rows_that_matter, problem, rows),
        report=report,
        rough=rough,
    )


def steps_of(problem: Problem, rows: KernelRows) -> FreeSteps | None:
    """Newton steps that problems with other bounds can share; None where C is in the diagonal."""
    box = box_of(problem)
    return FreeSteps(rows, np.empty(0), len(box.sign)) if box.diagonal is None else None


def offer(search: KernelSearch, found: BoxResult) -> None:
    """Certify what was found, at the middle of the optimal biases.

    Scores that matter at that bias are float64; those of the other rows prove that they do not.
    """
    problem, rows = search.problem, search.rows
    a, scores, exact = problem.y * found.beta, found.scores, found.exact
    while True:
        bias = problem.best_bias(scores)
        missing = rows_that_matter(problem, rows, found.beta, scores, bias) & ~exact
        if not missing.any():
            break
        scores, exact = scores.copy(), exact | missing
        scores[missing] = rows.exact_scores(found.beta, np.flatnonzero(missing))
    search.offer(a, bias, scores)


def box_of(problem: Problem) -> BoxProgram:
    """The programme of a problem whose duals are in a box."""
    box = problem.dual_set
    if isinstance(box, BudgetBox):
        return bounded(problem.y, box.upper, box.budget, None, box.signed)
    assert isinstance(box, Box)
    upper = box.upper
    if box.shift.any():
        # 1/2 shift a^2 is at most the primal value at zero: with a kernel that is not positive
        # semidefinite nothing else would hold the duals.
        with np.errstate(divide="ignore", invalid="ignore"):
            farthest = _FAR * np.sqrt(problem.zero_primal() / (2.0 * box.shift))
        upper = np.where(upper > 0, np.fmin(upper, farthest), 0.0)
    return bounded(problem.y, upper, np.inf, box.shift if box.shift.any() else None, box.signed)


def bounded(
    y: Array, upper: Array, budget: float, diagonal: Array | None, signed: bool
) -> BoxProgram:
    """|a| <= upper (a >= 0 where it is not signed) and sum |a| <= budget."""
    n, zero = len(y), np.zeros(len(y))
    rows, ones = np.arange(n), np.ones(n)
    if not signed:
        return BoxProgram(y, rows, zero, upper, ones, diagonal, budget)
    if not np.isfinite(budget):
        return BoxProgram(ones, rows, -upper, upper, y, diagonal)
    return BoxProgram(
        sign=np.concatenate([ones, -ones]),
        row=np.concatenate([rows, rows]),
        lower=np.concatenate([zero, zero]),
        upper=np.concatenate([upper, upper]),
        gain=np.concatenate([y, -y]),
        diagonal=diagonal,
        budget=budget,
    )


def values_of(problem: Problem) -> ValuesAt:
    """Primal and dual value at beta, K beta and a bias."""
    C, y, scale = problem.C, problem.y, problem.zero_primal()
    loss, weights = problem.loss.of_rows(problem.sample_weight)

    def values(beta: Array, scores: Array, intercept: float) -> Values:
        square = float(beta @ scores)
        primal = 0.5 * square + loss.value(1.0 - y * (scores + intercept), C, weights)
        return Values(primal, loss.dual_gain(y * beta, C, weights) - 0.5 * square, scale)

    return values
