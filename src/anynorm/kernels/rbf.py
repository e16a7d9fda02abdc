"""The Gaussian kernel ``exp(-gamma ||x - z||^2)``."""

from __future__ import annotations

from typing import Any

import numpy as np

from anynorm.design import design_of
from anynorm.design.device import dtype_of, exponential
from anynorm.kernels.kernel import Array, Block, DistanceKernel, within


class RBF(DistanceKernel):
    """The kernel ``exp(-gamma ||x - z||^2)``.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        The width: ``1 / (p * X.var())``, ``1 / p`` or a number of at least 0.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels import RBF
    >>> RBF(gamma=0.5).pairs(np.zeros((1, 1)), np.array([[0.0], [2.0]])).round(3)
    array([[1.   , 0.135]])
    """

    name = "rbf"
    float32_terms_are_exponents = True
    psd = True

    def __init__(self, gamma: Any = "scale") -> None:
        self.gamma = gamma

    @property
    def steepness(self) -> float:  # type: ignore[override]
        """Gamma."""
        return self.gamma

    def of_distances(self, squares: Block) -> Block:
        """Return the exponential, in place."""
        with np.errstate(over="ignore", under="ignore"):
            squares *= -within(self.gamma, dtype_of(squares))
            return exponential(squares)

    def of_many_products(self, values: Block, rows: Any, columns: Any) -> Block:
        """Return the values in one pass and several times as fast, in place."""
        from anynorm.kernels.exponential_loops import exp_of_products

        if not (np.isfinite(rows).all() and np.isfinite(columns).all()):
            return self.of_products(values, rows, columns)
        exp_of_products(values, rows, columns, values.dtype.type(within(self.gamma, values.dtype)))
        return values

    def float32_terms(self, points: Any) -> tuple[float, Array | None]:
        """Return what makes the exponents: ``c^2 = 2 gamma``, ``e(x) = -gamma ||x||^2``."""
        return np.sqrt(2.0 * self.gamma), -self.gamma * design_of(points).row_norms_squared()

    def of_float32_terms(self, terms: Any) -> Any:
        """Return the exponential, in place."""
        if not isinstance(terms, np.ndarray):
            return exponential(terms)
        from anynorm.kernels.exponential_loops import exp_in_place_32

        exp_in_place_32(terms)
        return terms

    def onnx(self, graph: Any, rows: str, points: Any) -> str:
        """Add the distances and their exponential."""
        squares = self.onnx_distances(graph, rows, points)
        return graph.node("Exp", graph.node("Mul", squares, graph.constant(-float(self.gamma))))
