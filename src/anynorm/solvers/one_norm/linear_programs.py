"""Single fits of the hinge and the absolute loss, which are linear programmes.

        minimise_{w, b}   sum_j u_j |w_j| + C sum_i c_i (1 - y_i (x_i'w + b))_+

The path, followed from w = 0 to lambda = 1/C, ends in a vertex with its duals: an exact solution.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from anynorm.certificate import certify, optimal_bias
from anynorm.problem import Problem
from anynorm.solution import Progress, Solution, Status
from anynorm.solvers.one_norm.exact_path import PathRecord, follow_path


def solve_linear_programme(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    seed: int,
    start: np.ndarray | None,
    progress: Callable[[Progress], None] | None,
) -> Solution:
    """Solve one problem of the hinge or the absolute loss; see `solve_one_norm`."""
    kept = None if problem.sample_weight is None else problem.sample_weight > 0
    inner = problem
    if kept is not None and not kept.all():
        assert problem.sample_weight is not None
        inner = replace(
            problem, X=problem.X[kept], y=problem.y[kept], sample_weight=problem.sample_weight[kept]
        )
    record = follow_path(inner, penalty_min=1.0 / problem.C, deadline=deadline, progress=progress)
    coef, dual = last_point(inner, record)
    if kept is not None and not kept.all():
        whole = np.zeros(problem.n_rows)
        whole[kept] = dual
        dual = whole
    scores = problem.scores(coef)
    bias = record.intercepts[-1]
    if problem.free_bias:
        bias = optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)
    late = deadline is not None and time.monotonic() >= deadline
    certificate = certify(
        problem, coef, bias, problem.C * dual, tol=tol, scores=scores,
        stopped=Status.TIME_LIMIT if late else Status.MAX_ITER,
    )  # fmt: skip
    return Solution(problem.C * dual, certificate, max(1, record.n_pivots), coef, float(bias))


def last_point(problem: Problem, record: PathRecord) -> tuple[np.ndarray, np.ndarray]:
    """The coefficients of a record's last knot and its duals in [low, c]."""
    coef = np.zeros(problem.n_coefs)
    knot = slice(record.indptr[-2], record.indptr[-1])
    coef[record.indices[knot]] = record.data[knot]
    cost = np.ones(problem.n_rows) if problem.sample_weight is None else problem.sample_weight
    residual = 1.0 - problem.y * (problem.scores(coef) + record.intercepts[-1])
    dual = np.where(residual > 0, cost, -cost if problem.loss.signed else 0.0)
    rows = slice(record.dual_indptr[-2], record.dual_indptr[-1])
    dual[record.dual_rows[rows]] = record.dual_values[rows]
    return coef, dual
