"""Few rows and many dense columns: the dual over the rows alone.

        minimise_beta   1/2 beta'H beta - y'beta, l <= beta <= u,  sum(beta) = 0 for a free bias

with beta = y a and H = A A' + shift (+ s^2 for a regularised bias), an n x n matrix that is small
here.  Pairs of variables are moved by second-order selection (Fan, Chen and Lin 2005), single ones
where the bias is not free; w = V^2 X'beta and the certificate come from X itself.  Where the gap
is not reached in a few passes, the caller's other methods go on from the dual point found.
"""

from __future__ import annotations

import time

import numpy as np
import scipy.sparse as sp

from anynorm import design
from anynorm.certificate import certify, optimal_bias, relative_gap
from anynorm.problem import Problem
from anynorm.solution import Solution
from anynorm.solvers.linear.box import box_of
from anynorm.solvers.linear.features import DenseFeatures

_MOST_ROWS = 500
_COLUMNS_PER_ROW = 4
_LOSSES = ("hinge", "absolute", "squared_hinge")
_SMALLEST_TOL = 1e-8
_PASSES = 200
_ROUNDING = 1e-13


def few_rows_suit(problem: Problem, tol: float) -> bool:
    """Whether the problem has the shape, the storage and the loss for this method."""
    n, p = problem.X.shape
    few = n <= _MOST_ROWS and _COLUMNS_PER_ROW * n <= p and not sp.issparse(problem.X)
    return few and problem.loss.name in _LOSSES and tol >= _SMALLEST_TOL


def solve_few_rows(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    start: np.ndarray | None,
) -> Solution:
    """The solution with its certificate, which may miss `tol`; n steps count as an iteration."""
    from anynorm.solvers.linear.pair_kernels import move_pairs, move_singles

    n, y = problem.n_rows, problem.y
    features = DenseFeatures(problem.X, problem.feature_scale)
    weights = problem.sample_weight
    box = box_of(problem.loss, problem.C * (np.ones(n) if weights is None else weights))
    scaled = features.to_coef(np.asarray(problem.X, dtype=np.float64))
    matrix = scaled @ scaled.T + np.diag(box.shift) + problem.bias_feature**2
    lower = np.where(y > 0, box.lower, -box.upper)
    upper = np.where(y > 0, box.upper, -box.lower)
    dual = np.zeros(n) if start is None else start
    beta = np.clip(y * dual, lower, upper)
    if problem.free_bias:
        beta = _balanced(beta)
    gradient = matrix @ beta - y
    move = move_pairs if problem.free_bias else move_singles
    accuracy, steps, most = tol, 0, min(_PASSES, max_iter) * n
    while True:
        steps += move(matrix, lower, upper, beta, gradient, accuracy, max(most - steps, 1))
        gap = _gap(problem, box.shift, gradient, beta)
        late = deadline is not None and time.monotonic() >= deadline
        if gap <= 0.5 * tol or steps >= most or late or accuracy < _ROUNDING:
            break
        accuracy *= min(0.1, 0.2 * tol / gap)
    return _certified(problem, features, y * beta, tol, -(-steps // n))


def _gap(problem: Problem, shift: np.ndarray, gradient: np.ndarray, beta: np.ndarray) -> float:
    """The relative gap as the n x n matrix has it; a regularised bias is part of the scores."""
    y, dual = problem.y, problem.y * beta
    scores = gradient + y - shift * beta
    bias = 0.0
    if problem.free_bias:
        bias = optimal_bias(problem.loss, scores, y, problem.C, problem.sample_weight)
    square = float(beta @ scores)
    primal = 0.5 * square + problem.loss_at(scores, bias)
    gain = problem.loss.dual_gain(dual, problem.C, problem.sample_weight)
    return relative_gap(primal, gain - 0.5 * square, problem.zero_primal())


def _balanced(beta: np.ndarray) -> np.ndarray:
    """Beta with the heavier sign scaled down until the sum is zero."""
    up, down = beta[beta > 0].sum(), -beta[beta < 0].sum()
    if up > down:
        return np.where(beta > 0, beta * (down / up), beta)
    return np.where(beta < 0, beta * (up / down), beta) if down > up else beta


def _certified(
    problem: Problem, features: DenseFeatures, dual: np.ndarray, tol: float, n_iter: int
) -> Solution:
    coef = features.to_coef(features.adjoint(problem.y * dual))
    scores = design.matvec(problem.X, coef)
    if problem.free_bias:
        bias = optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)
    else:
        bias = problem.bias_feature**2 * float(problem.y @ dual)
    certificate = certify(problem, coef, bias, dual, tol=tol, scores=scores)
    return Solution(dual, certificate, max(1, n_iter), coef, bias)
