"""The kernel x'z."""

from __future__ import annotations

from typing import Any

from anynorm.design import design_of
from anynorm.kernels.kernel import Array, Block, ProductKernel, product_rounding, products


class Linear(ProductKernel):
    """The kernel ``x'z``.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels import Linear
    >>> Linear().pairs(np.eye(2), np.array([[3.0, 4.0]]))
    array([[3.],
           [4.]])
    """

    name = "linear"
    psd = True
    is_inner_product = True

    def of_products(self, values: Block, rows: Any, columns: Any) -> Block:
        """Return the products as they are."""
        return values

    def pairs(self, A: Any, B: Any) -> Array:
        """Return the products of all pairs."""
        return products(A, B)

    def diagonal(self, X: Any) -> Array:
        """Return the squared lengths."""
        return design_of(X).row_norms_squared()

    def float32_error(self, X: Any) -> float:
        """Return the rounding error of a product."""
        return product_rounding(X)

    def of_float32_terms(self, terms: Any) -> Any:
        """Return the terms as they are."""
        return terms

    def onnx(self, graph: Any, rows: str, points: Any) -> str:
        """Add the matrix product."""
        return graph.node("MatMul", rows, graph.constant(points.T))
