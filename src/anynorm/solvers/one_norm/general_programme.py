"""Large linear programmes of the hinge and the absolute loss by HiGHS, which comes with SciPy.

        maximise_a   sum(a),   lower <= a <= upper,   |Z'a| <= u,   y'a = 0

with Z = diag(y) X.  Where thousands of columns are in use, a factor of their products takes
seconds, and the way to a vertex thousands of pivots with a basis as large.  HiGHS's interior-point
method works on bases that stay sparse (Schork and Gondzio 2020) and ends at a vertex.  The
multipliers of the bounds are w and b.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import scipy.sparse as sp

from anynorm.design.child_process import in_child
from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.one_norm.central_path import suits_central_path

_MANY_ROWS, _MANY_COLUMNS = 2000, 4000  # below, the central path or the simplex method is faster


def solve_general_programme(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    seed: int,
    start: np.ndarray | None,
    progress: Callable[[Progress], None] | None,
) -> Solution:
    """Solve one problem of the hinge or the absolute loss; see `solve_one_norm`.

    All of it is one iteration.  Nothing is drawn at random, and a start is one more dual point.
    HiGHS looks at its clock seldom, so it has a process of its own, which ends at the deadline.
    """
    budget, box = Budget(max_iter, deadline), problem.dual_set
    assert isinstance(box, Box)
    best = Incumbent(problem, tol, budget, progress)
    zero = np.zeros(problem.n_coefs)
    first = np.zeros(problem.n_rows) if start is None else start
    bias = problem.best_bias(np.zeros(problem.n_rows)) if problem.free_bias else 0.0
    best.keep(problem.values(zero, bias, first), (zero, bias), first)
    if budget.spend():
        found = None
        with suppress(OutOfTime), budget.watched():
            found = _multipliers(problem, box)
        if found is not None:
            coef, bias, dual = found
            scores = problem.scores(coef)
            bias = problem.best_bias(scores) if problem.free_bias else bias
            values = problem.values(coef, bias, dual, scores=scores)
            best.offer(values, (coef, bias), dual)
    coef, bias = best.primal_point
    return Solution(best.dual_point, best.certificate(), max(1, budget.n_iter), coef, bias)


def _multipliers(problem: Problem, box: Box) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Coefficients, intercept and duals; None where HiGHS has none."""
    from scipy.optimize import linprog  # half a second that other problems need not wait for

    features = problem.design.with_constant(problem.bias_feature)
    u = np.ones(problem.n_coefs) if problem.penalty_weights is None else problem.penalty_weights
    u = np.append(u, 1.0) if problem.bias_feature else u
    usable = np.flatnonzero(np.isfinite(u))
    block = features.column_block(usable, np.arange(problem.n_rows), problem.y)
    pulls = block.stored().T
    balance = {"A_eq": problem.y[None, :], "b_eq": np.zeros(1)} if problem.free_bias else {}
    found = in_child(
        linprog,
        -np.ones(problem.n_rows),
        A_ub=sp.vstack([pulls, -pulls], format="csc"),
        b_ub=np.tile(u[usable], 2),
        bounds=np.column_stack([box.lower, box.upper]),
        method="highs-ipm",
        **balance,
    )
    if found.x is None or found.ineqlin.marginals is None:
        return None
    above, below = found.ineqlin.marginals.reshape(2, -1)
    coef = np.zeros(features.p)
    coef[usable] = below - above
    return coef[: problem.n_coefs], problem.bias_feature * float(coef[-1]), found.x


def suits_general_programme(problem: Problem, *, tol: float, start: np.ndarray | None) -> bool:
    """Whether X is sparse and thousands of columns may be in use."""
    many = problem.n_rows > _MANY_ROWS and problem.n_coefs > _MANY_COLUMNS
    return many and problem.design.sparse and suits_central_path(problem, tol=tol, start=start)
