"""One Newton step of the regularised problem over the rows J that have curvature.

        (I    + A_J' D A_J) d + A_J' D 1 e = -g
        1' D A_J d + (precision + 1'D1) e  = -h

for the scaled weights (d) and the bias (e); precision is 1/s^2 for a regularised bias of
scale s, 0 for a free one, and infinite where there is none (then e = 0).  The bias is
eliminated exactly.  The rest goes by size to a p x p Cholesky factor, to a |J| x |J| one
(Sherman-Morrison-Woodbury), or to preconditioned conjugate gradients.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from anynorm.solvers.linear.features import DenseFeatures, SparseFeatures

# A factor of at most this order is made directly if that looks cheaper than conjugate gradients.
_LARGEST_FACTOR = 4000
# Conjugate gradients are priced as this many passes over the rows, at a memory-bound pace.
_CG_COST_PER_ENTRY = 3000.0


def newton_step(
    features: DenseFeatures | SparseFeatures,
    rows: np.ndarray,
    weights: np.ndarray,
    gradient: np.ndarray,
    bias_gradient: float,
    precision: float,
    *,
    forcing: float,
) -> tuple[np.ndarray, float]:
    """The step (d, e); `forcing` is the relative residual that conjugate gradients may leave."""
    if rows.size == 0:
        e = -bias_gradient / precision if 0 < precision < np.inf else 0.0
        return -gradient, e
    p, m = features.p, rows.size
    by_columns = features.gram_cost(rows) + p**3 / 3
    by_rows = features.entries(rows) * m + m**3 / 3
    if p > _LARGEST_FACTOR:
        by_columns = np.inf
    if m > _LARGEST_FACTOR:
        by_rows = np.inf
    by_iteration = _CG_COST_PER_ENTRY * (features.entries(rows) + p)
    cheapest = min(by_columns, by_rows, by_iteration)
    if cheapest == by_columns:
        return _by_columns(features, rows, weights, gradient, bias_gradient, precision)
    if cheapest == by_rows:
        return _by_rows(features, rows, weights, gradient, bias_gradient, precision)
    return _by_iteration(features, rows, weights, gradient, bias_gradient, precision, forcing)


def factorise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cholesky factor of a symmetric positive semidefinite matrix, scaled to a unit diagonal.

    Where rounding has cost it its definiteness, the least multiple of the identity that
    restores it is added: the Newton iteration corrects what that changes.
    """
    scale = np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(float).tiny))
    scale = np.where(scale > 1e-150, scale, 1.0)
    scaled = matrix / scale / scale[:, None]
    diagonal = np.diag_indices_from(scaled)
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        scaled[diagonal] = 1.0 + jitter
        factor, info = scipy.linalg.lapack.dpotrf(scaled, lower=1, clean=0, overwrite_a=0)
        if info == 0:
            return factor, scale
    raise np.linalg.LinAlgError("the Newton system is not positive definite: X holds huge values")


def solve_factored(factor: tuple[np.ndarray, np.ndarray], rhs: np.ndarray) -> np.ndarray:
    """Solution for one or several right-hand sides (columns)."""
    lower, scale = factor
    scaled = rhs / (scale if rhs.ndim == 1 else scale[:, None])
    solution, _ = scipy.linalg.lapack.dpotrs(lower, scaled, lower=1)
    solution = solution[:, 0] if rhs.ndim == 1 and solution.ndim == 2 else solution
    return solution / (scale if rhs.ndim == 1 else scale[:, None])


def _by_columns(features, rows, weights, gradient, bias_gradient, precision):
    """Cholesky of I + A_J' D A_J, with the bias eliminated by centring the rows."""
    if np.isinf(precision):
        hessian = features.weighted_gram(rows, weights, None)
        hessian[np.diag_indices_from(hessian)] += 1.0
        return -solve_factored(factorise(hessian), gradient), 0.0
    total = weights.sum()
    center = features.rows_adjoint(rows, weights) / total
    hessian = features.weighted_gram(rows, weights, center)
    hessian[np.diag_indices_from(hessian)] += 1.0
    # What a regularised bias leaves of the mean: T - T^2 / (precision + T).
    left = total * precision / (precision + total)
    if left > 0:
        hessian += left * np.outer(center, center)
    ratio = total / (precision + total)
    d = -solve_factored(factorise(hessian), gradient - ratio * bias_gradient * center)
    return d, -(bias_gradient + total * (center @ d)) / (precision + total)


def _by_rows(features, rows, weights, gradient, bias_gradient, precision):
    """Cholesky of A_J A_J' + D^-1; s = D (A_J d + 1 e) solves (A_J A_J' + D^-1) s = 1 e - A_J g."""
    matrix = features.rows_gram(rows)
    matrix[np.diag_indices_from(matrix)] += 1.0 / weights
    factor = factorise(matrix)
    along = features.rows_dot(rows, gradient)
    if np.isinf(precision):
        s, e = -solve_factored(factor, along), 0.0
    else:
        solved = solve_factored(factor, np.column_stack([along, np.ones(rows.size)]))
        e = (solved[:, 0].sum() - bias_gradient) / (solved[:, 1].sum() + precision)
        s = e * solved[:, 1] - solved[:, 0]
    return -gradient - features.rows_adjoint(rows, s), float(e)


def _by_iteration(features, rows, weights, gradient, bias_gradient, precision, forcing):
    """Conjugate gradients on the bias-free system, preconditioned by its diagonal."""
    total = weights.sum()
    diagonal = 1.0 + features.weighted_squares(rows, weights)
    if np.isinf(precision):
        mean, ratio = np.zeros(features.p), 0.0
    else:
        mean = features.rows_adjoint(rows, weights)
        ratio = 1.0 / (precision + total)
        diagonal = np.maximum(diagonal - ratio * mean**2, 1.0)

    def product(q: np.ndarray) -> np.ndarray:
        along, total_along = features.hessian_product(rows, weights, q)
        return q + along - ratio * total_along * mean

    rhs = -gradient + ratio * bias_gradient * mean
    d = _conjugate_gradients(product, diagonal, rhs, forcing)
    e = 0.0 if np.isinf(precision) else -ratio * (bias_gradient + mean @ d)
    return d, float(e)


def _conjugate_gradients(product, diagonal, rhs, forcing):
    x = np.zeros_like(rhs)
    residual = rhs.copy()
    z = residual / diagonal
    direction = z.copy()
    rho = residual @ z
    goal = (forcing**2) * (residual @ residual)
    for _ in range(500):
        if residual @ residual <= goal or rho <= 0:
            break
        along = product(direction)
        step = rho / (direction @ along)
        x += step * direction
        residual -= step * along
        z = residual / diagonal
        rho, previous = residual @ z, rho
        direction = z + (rho / previous) * direction
    return x
