"""The primal of any cell of the grid, straight from its definition, by CVXPY and Clarabel.

The interpolated norms are written as what they are, ``min ||u|| + t ||z||`` over u + z >= |v|;
nothing here uses a sorted formula, a dual norm or a certificate of the package.
"""

import warnings
from typing import NamedTuple

import cvxpy as cp
import numpy as np

from anynorm.problem import Problem
from tests.references.norm_expression import norm_expression


class Reference(NamedTuple):
    """The reference's primal point, its value, and the multipliers of the margins."""

    coef: np.ndarray
    intercept: float
    value: float
    dual: np.ndarray


def solve_primal(problem: Problem) -> Reference:
    """Solve the problem; for a kernel coef is the dual vector a with f = K (y * a)."""
    n = problem.n_rows
    coef = cp.Variable(problem.n_coefs)
    bias = cp.Variable()
    rules = [] if problem.intercept is not None else [bias == 0]
    regulariser, scores, more = _regulariser(problem, coef, bias)
    xi = cp.Variable(n)
    residual = 1 - cp.multiply(problem.y, scores + bias)
    loss, link, extra = _loss(problem, xi, residual)
    aim = cp.Problem(cp.Minimize(regulariser + loss), [link, *rules, *more, *extra])
    with warnings.catch_warnings():  # 1e-11 is often out of reach, by a little
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        aim.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert aim.status in ("optimal", "optimal_inaccurate"), aim.status
    found = np.asarray(coef.value, dtype=float)
    if problem.gram is not None:
        found = problem.y * found
    if problem.feature_scale is not None:
        found = np.where(problem.feature_scale == 0, 0.0, found)
    if problem.penalty_weights is not None:
        found = np.where(np.isinf(problem.penalty_weights), 0.0, found)
    intercept = 0.0 if problem.intercept is None else float(bias.value)
    return Reference(found, intercept, float(aim.value), np.asarray(link.dual_value, dtype=float))


def _regulariser(problem, coef, bias):
    weight = problem.bias_feature
    if problem.gram is not None:
        K = problem.gram.block(slice(None), slice(None))
        spectrum, basis = np.linalg.eigh((K + K.T) / 2)
        factor = basis * np.sqrt(np.maximum(spectrum, 0.0))
        length = cp.sum_squares(factor.T @ coef) / 2
        extra = cp.square(bias / weight) / 2 if weight else 0
        return length + extra, factor @ (factor.T @ coef), []
    X = problem.X.toarray() if hasattr(problem.X, "toarray") else np.asarray(problem.X)
    X = X.astype(float)
    if problem.regulariser == "l1":
        u = np.ones(X.shape[1]) if problem.penalty_weights is None else problem.penalty_weights
        out = np.flatnonzero(np.isinf(u))
        size = cp.sum(cp.multiply(np.where(np.isinf(u), 0.0, u), cp.abs(coef)))
        extra = cp.abs(bias / weight) if weight else 0
        return size + extra, X @ coef, [coef[out] == 0] if len(out) else []
    v = np.ones(X.shape[1]) if problem.feature_scale is None else problem.feature_scale
    out = np.flatnonzero(v == 0)
    scaled = cp.multiply(np.divide(1.0, v, out=np.zeros(len(v)), where=v != 0), coef)
    extra = cp.square(bias / weight) / 2 if weight else 0
    return cp.sum_squares(scaled) / 2 + extra, X @ coef, [coef[out] == 0] if len(out) else []


def _loss(problem, xi, residual):
    n = problem.n_rows
    w = np.ones(n) if problem.sample_weight is None else problem.sample_weight
    slack = problem.loss.slack
    if slack is None:
        return problem.C * (w @ cp.logistic(xi - 1)), residual - xi == 0, []
    cost, rules = norm_expression(slack, w, xi)
    if problem.loss.constraints == "equality":
        return problem.C * cost, residual - xi == 0, rules
    return problem.C * cost, residual - xi <= 0, [xi >= 0, *rules]
