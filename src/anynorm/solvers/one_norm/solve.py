"""The 1-norm regularised linear problems, each by the method that suits its loss.

    minimise_{w, b}   sum_j u_j |w_j| + g(1 - y (X w + b))

smooth losses, as squared hinge, logistic, squared    prox-Newton over working sets
hinge, absolute, from some hundred rows on            an interior-point method on growing columns
the same where thousands of columns are in use        HiGHS
hinge, absolute                                       vertices moved by pivots, on growing parts
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from anynorm.design.far_columns import FAR
from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.centring import around_mean
from anynorm.solvers.frame.hard_margin import improved
from anynorm.solvers.frame.methods import Method, methods_for
from anynorm.solvers.one_norm.central_path import solve_along_central_path, suits_central_path
from anynorm.solvers.one_norm.general_programme import (
    solve_general_programme,
    suits_general_programme,
)
from anynorm.solvers.one_norm.linear_programs import solve_linear_programme, suits_vertices
from anynorm.solvers.one_norm.smooth import FAR_FOR_MODELS, solve_smooth

METHODS = (
    Method("prox-Newton over working sets", solve_smooth, needs_curve=True),
    Method("the central path", solve_along_central_path, (Box,), suits=suits_central_path),
    Method("HiGHS", solve_general_programme, (Box,), suits=suits_general_programme),
    Method("the simplex method", solve_linear_programme, (Box,), suits=suits_vertices),
)
"""Tried in this order, by those that can solve a problem and suit it, until the gap is reached."""


def solve_one_norm(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve one binary problem to a relative duality gap of at most `tol`.

    Parameters
    ----------
    problem : Problem
        With the 1-norm regulariser.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        Most iterations of the method.
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    seed : int
        Seed of whatever is drawn at random.
    start : ndarray of shape (n,), optional
        Dual variables of a nearby problem.
    progress : callable, optional
        Called with a `Progress` at every gap that is computed.

    Returns
    -------
    Solution
        Coefficients with exact zeros, intercept, dual variables and the certificate, whose
        status says whether `tol` was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.one_norm import solve_one_norm
    >>> X, y = np.array([[2.0, 0.1], [-2.0, 0.1]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("squared_hinge"), X=X, regulariser="l1")
    >>> solution = solve_one_norm(problem)
    >>> solution.coef.round(4), solution.status.value
    (array([0.4375, 0.    ]), 'optimal')
    """
    methods = methods_for("the 1-norm regulariser", METHODS, problem)
    budget = Budget(max_iter, deadline)

    def solve(part: Problem, start: np.ndarray | None = None) -> Solution:
        found: Solution | None = None
        for method in methods:
            if not method.suits(part, tol=tol, start=start):
                continue
            last = method.solve(
                part,
                tol=tol,
                max_iter=budget.left,
                deadline=budget.deadline,
                seed=seed,
                start=start,
                progress=progress,
            )
            budget.book(last.n_iter)
            if found is None or last.certificate.gap < found.certificate.gap:
                found = last
            if found.status is Status.OPTIMAL or not budget.goes_on():
                break
        assert found is not None
        if found.status is Status.MAX_ITER and budget.stopped is Status.TIME_LIMIT:
            # An earlier method gave up, and time ended the one after it, which came no closer.
            point = found.coef, found.intercept, found.dual
            stopped = certify(part, *point, tol=tol, stopped=Status.TIME_LIMIT)
            found = replace(found, certificate=stopped)
        return found

    def near(part: Problem) -> Solution:
        return improved(solve(part, start), part, tol=tol, budget=budget, solve=solve)

    return around_mean(problem, near, tol=tol, far=FAR_FOR_MODELS if problem.loss.smooth else FAR)
