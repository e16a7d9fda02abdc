"""One Newton step of the regularised problem over the rows J that have curvature.

        (I    + A_J' D A_J) d + A_J' D 1 e = -g
        1' D A_J d + (precision + 1'D1) e  = -h

for the scaled weights (d) and the bias (e); precision is 1/s^2 for a regularised bias of
scale s, 0 for a free one, and infinite where there is none (then e = 0).  The bias is
eliminated exactly.  The rest goes by size to a p x p Cholesky factor, to a |J| x |J| one
(Sherman-Morrison-Woodbury), or to preconditioned conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
import scipy.linalg

from anynorm.design import Design
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.long_factor import lower_factor

# A factor of at most this order is made directly if that looks cheaper than conjugate gradients.
_LARGEST_FACTOR = 4000
# Conjugate gradients are priced as this many passes over the rows, at a memory-bound pace.
_CG_COST_PER_ENTRY = 3000.0


class NewtonSystem:
    """The system of one set of rows and weights, ready for several right-hand sides.

    Conjugate gradients leave a relative residual of `forcing`; `direct` avoids them where a factor
    of either side can be made at all, and in the time that is left.
    """

    def __init__(
        self,
        features: Design,
        rows: np.ndarray,
        weights: np.ndarray,
        precision: float,
        budget: Budget,
        *,
        forcing: float,
        direct: bool = False,
    ) -> None:
        self.features, self.rows, self.weights = features, rows, weights
        self.precision, self.budget = precision, budget
        self.forcing, self.direct = forcing, direct
        self._solve = self._choose()

    def solve(self, gradient: np.ndarray, bias_gradient: float) -> tuple[np.ndarray, float]:
        """The step (d, e)."""
        return self._solve(gradient, bias_gradient)

    def _choose(self) -> Callable[[np.ndarray, float], tuple[np.ndarray, float]]:
        """Factorise on the smaller side, or iterate, whichever is cheapest."""
        features, rows = self.features, self.rows
        if rows.size == 0:
            return self._without_rows
        p, m = features.p, rows.size
        by_columns = features.gram_cost(rows) + p**3 / 3 if p <= _LARGEST_FACTOR else np.inf
        by_rows = features.entries(rows) * m + m**3 / 3 if m <= _LARGEST_FACTOR else np.inf
        if p <= _LARGEST_FACTOR and features.large_columns.size:
            by_rows = np.inf  # only the p x p matrix can be freed of the columns' scales
        by_iteration = _CG_COST_PER_ENTRY * (features.entries(rows) + p)
        if not self.budget.affords(min(by_columns, by_rows)):
            return self._by_iteration()  # which has some answer, however soon it is ended
        if self.direct and min(by_columns, by_rows) < np.inf:
            by_iteration = np.inf
        cheapest = min(by_columns, by_rows, by_iteration)
        if cheapest == by_columns:
            return self._by_columns()
        return self._by_rows() if cheapest == by_rows else self._by_iteration()

    def _without_rows(self, gradient, bias_gradient):
        precision = self.precision
        return -gradient, -bias_gradient / precision if 0 < precision < np.inf else 0.0

    def _by_columns(self):
        """Cholesky of I + A_J' D A_J, with the bias eliminated by centring the rows."""
        features, rows, weights, precision = self.features, self.rows, self.weights, self.precision
        total = weights.sum()
        has_bias = np.isfinite(precision)
        center = self._sums / total if has_bias else None
        hessian = features.weighted_gram(rows, weights, center)
        hessian[np.diag_indices_from(hessian)] += 1.0
        # What a regularised bias leaves of the mean: T - T^2 / (precision + T).
        left = total * precision / (precision + total) if has_bias else 0.0
        if center is not None and left > 0:
            hessian += left * np.outer(center, center)
        factor = factorise(hessian)
        product = self._product()

        def solve(gradient, bias_gradient):
            if not has_bias:
                return refined(product, factor, -gradient), 0.0
            ratio = total / (precision + total)
            d = refined(product, factor, ratio * bias_gradient * center - gradient)
            return d, float(-(bias_gradient + total * (center @ d)) / (precision + total))

        return solve

    def _by_rows(self):
        """Cholesky of A_J A_J' + D^-1; s = D (A_J d + 1 e) solves (.) s = 1 e - A_J g."""
        features, rows, weights, precision = self.features, self.rows, self.weights, self.precision
        matrix = features.rows_gram(rows)
        matrix[np.diag_indices_from(matrix)] += 1.0 / weights
        factor = factorise(matrix)

        def product(s):
            return features.matvec(features.rmatvec(s, rows=rows), rows=rows) + s / weights

        def solve(gradient, bias_gradient):
            s, e = -refined(product, factor, features.matvec(gradient, rows=rows)), 0.0
            if np.isfinite(precision):
                ones = refined(product, factor, np.ones(rows.size))
                e = -(s.sum() + bias_gradient) / (ones.sum() + precision)
                s = s + e * ones
            return -gradient - features.rmatvec(s, rows=rows), float(e)

        return solve

    def _by_iteration(self):
        """Conjugate gradients on the bias-free system, preconditioned by its diagonal."""
        features, rows, weights, precision = self.features, self.rows, self.weights, self.precision
        diagonal = 1.0 + features.column_norms_squared(weights, rows=rows)
        product = self._product()
        if np.isinf(precision):
            return lambda gradient, _: (
                conjugate_gradients(product, diagonal, -gradient, self.forcing, self.budget),
                0.0,
            )
        mean, ratio = self._sums, 1.0 / (precision + weights.sum())
        diagonal = np.maximum(diagonal - ratio * mean**2, 1.0)

        def solve(gradient, bias_gradient):
            rhs = ratio * bias_gradient * mean - gradient
            d = conjugate_gradients(product, diagonal, rhs, self.forcing, self.budget)
            return d, float(-ratio * (bias_gradient + mean @ d))

        return solve

    @cached_property
    def _sums(self) -> np.ndarray:
        """A_J' D 1."""
        return self.features.rmatvec(self.weights, rows=self.rows)

    def _product(self):
        """Return the map q -> (I + A_J' D A_J) q with the bias eliminated."""
        features, rows, weights = self.features, self.rows, self.weights
        if np.isinf(self.precision):
            return lambda q: q + features.hessian_product(rows, weights, q)[0]
        mean, ratio = self._sums, 1.0 / (self.precision + weights.sum())

        def product(q):
            along, total = features.hessian_product(rows, weights, q)
            return q + along - ratio * total * mean

        return product


def factorise(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cholesky factor of a symmetric positive semidefinite matrix, scaled to a unit diagonal.

    Where rounding has cost it its definiteness, the least multiple of the identity that
    restores it is added: the Newton iteration corrects what that changes.
    """
    scale = np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(float).tiny))
    scale = np.where(scale > 1e-150, scale, 1.0)
    scaled = np.asfortranarray(matrix / scale / scale[:, None])
    diagonal = np.diag_indices_from(scaled)
    for jitter in (0.0, 1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4):
        scaled[diagonal] = 1.0 + jitter
        factor = lower_factor(scaled)
        if factor is not None:
            return factor, scale
    raise np.linalg.LinAlgError("the Newton system is not positive definite: X holds huge values")


def solve_factored(factor: tuple[np.ndarray, np.ndarray], rhs: np.ndarray) -> np.ndarray:
    """Solution for one or several right-hand sides (columns)."""
    lower, scale = factor
    scaled = rhs / (scale if rhs.ndim == 1 else scale[:, None])
    solution, _ = scipy.linalg.lapack.dpotrs(lower, scaled, lower=1)
    solution = solution[:, 0] if rhs.ndim == 1 and solution.ndim == 2 else solution
    return solution / (scale if rhs.ndim == 1 else scale[:, None])


def refined(product, factor, rhs):
    """The solution by a factor, corrected by the residual of the true system while that helps."""
    x = solve_factored(factor, rhs)
    left = np.linalg.norm(rhs)
    for _ in range(3):  # at the most: each has to halve the residual
        residual = rhs - product(x)
        size = np.linalg.norm(residual)
        # A residual below 1e-10 does no harm to a Newton step.
        if not 1e-10 * np.linalg.norm(rhs) < size < 0.5 * left:
            break
        x = x + solve_factored(factor, residual)
        left = size
    return x


def conjugate_gradients(product, diagonal, rhs, forcing, budget):
    """The solution to a relative residual of `forcing`, preconditioned by the diagonal."""
    x = np.zeros_like(rhs)
    residual = rhs.copy()
    z = residual / diagonal
    direction = z.copy()
    rho = residual @ z
    goal = (forcing**2) * (residual @ residual)
    for _ in range(500):
        if residual @ residual <= goal or rho <= 0 or not budget.in_time():
            break
        along = product(direction)
        step = rho / (direction @ along)
        x += step * direction
        residual -= step * along
        z = residual / diagonal
        rho, previous = residual @ z, rho
        direction *= rho / previous
        direction += z
    return x
