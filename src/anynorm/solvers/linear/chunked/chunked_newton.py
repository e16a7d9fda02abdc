"""Newton's method over rows that live apart for the 2-norm regulariser.

        minimise_{u, b}   1/2 ||u||^2 + precision/2 b^2 + sum_i h_i(1 - y_i (x_i'V u + b))

A step is that of `newton.py`: by a factor of the summed matrix, or by conjugate gradients with a
round for each product.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.crew import Sums
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.rounds_apart.beside_rows import curvature_product
from anynorm.solvers.frame.rounds_apart.remote_newton import Position, RemoteNewton
from anynorm.solvers.linear.newton_system import (
    conjugate_gradients,
    factorise,
    solve_factored,
)

# A smooth loss has curvature in nearly all rows.  A matrix of some takes a few rounds more, which
# cost more than they save where the rows are few, or are read anew in every round.
_ROWS_PER_COLUMN = 80  # of which a matrix is made, at the least
_COLUMNS_AS_LONG = 25  # that take as long with the matrix as with all other products of a look
_LONG = 5e8  # multiplications of a part for the matrix of all its rows: worth a few rounds


class SquaredNewton(RemoteNewton):
    """Newton's method with R = 1/2 ||u||^2 + precision/2 b^2."""

    def __init__(
        self, problem: ChunkedProblem, terms: RowTerms, budget: Budget, *, matrix: bool
    ) -> None:
        super().__init__(problem, terms, budget, matrix=matrix)
        self.precision = problem.precision
        (n, p), crew = problem.crew.shape, problem.crew
        rows = n // terms.stride
        if terms.loss.smooth and crew.held and rows * p**2 >= _LONG * crew.n_parts:
            self.thin = max(1, min(rows // (_ROWS_PER_COLUMN * p), p // _COLUMNS_AS_LONG))

    def position(self, u: np.ndarray, bias: float, seen: Sums) -> Position:
        """The gap is that of a strongly convex function: half the squared gradient."""
        bias_gradient, bend = self._gradient_of_bias(bias, seen), 0.0
        gradient, cost = u - self.v * seen.pulled, 0.0
        if np.isfinite(self.precision):
            bend = self.precision + (seen.scatter.total if self.matrix else seen.curved)
            cost = 0.5 * self.precision * bias * bias
        inner = 0.5 * float(gradient @ gradient)
        inner += 0.5 * bias_gradient * bias_gradient / bend if bend > 0 else 0.0
        return Position(u, bias, seen, inner, 0.5 * float(u @ u) + cost + seen.loss)

    def _gradient_of_bias(self, bias: float, seen: Sums) -> float:
        return self.precision * bias - seen.balance if np.isfinite(self.precision) else 0.0

    def slopes_of_regulariser(
        self, at: Position, d: np.ndarray, e: float, steps: np.ndarray
    ) -> np.ndarray:
        """Straight lines."""
        linear, quadratic = float(at.u @ d), float(d @ d)
        if np.isfinite(self.precision):
            linear += self.precision * at.bias * e
            quadratic += self.precision * e * e
        return linear + steps * quadratic

    def direction(self, at: Position, sigma: float) -> tuple[np.ndarray, float]:
        """The Newton step, the bias eliminated as in `NewtonSystem`."""
        precision, v = self.precision, self.v
        g, h = at.u - v * at.seen.pulled, self._gradient_of_bias(at.bias, at.seen)
        has_bias = np.isfinite(precision)
        total = self.curved(at)
        if total == 0.0:
            return -g, -h / precision if 0 < precision < np.inf else 0.0
        left = precision + total
        mean = v * (at.seen.scatter.mean if self.matrix else at.seen.mean / total)
        rhs = (total / left) * h * mean - g if has_bias else -g
        if self.matrix:
            matrix = v[:, None] * at.seen.scatter.matrix * v
            matrix += (total * precision / left if has_bias else total) * np.outer(mean, mean)
            matrix[np.diag_indices_from(matrix)] += 1.0
            d = solve_factored(factorise(matrix), rhs)
        else:
            ratio = 1.0 / left if has_bias else 0.0
            d = self._by_iteration(at, g, rhs, total * mean, ratio)
        return d, float(-(h + total * (mean @ d)) / left) if has_bias else 0.0

    def _by_iteration(
        self, at: Position, g: np.ndarray, rhs: np.ndarray, sums: np.ndarray, ratio: float
    ) -> np.ndarray:
        """Conjugate gradients, a round for each product."""
        v = self.v

        def product(q: np.ndarray) -> np.ndarray:
            seen = self.problem.crew.ask(curvature_product, (self.terms, v * q))
            return q + v * seen.along - ratio * seen.total * sums

        diagonal = np.maximum(1.0 + v**2 * at.seen.diagonal - ratio * sums**2, 1.0)
        size = np.linalg.norm(g) / (1.0 + np.linalg.norm(at.u))
        return conjugate_gradients(product, diagonal, rhs, min(0.1, np.sqrt(size)), self.budget)
