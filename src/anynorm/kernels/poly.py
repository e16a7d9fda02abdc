"""The polynomial kernel ``(gamma x'z + coef0)^degree``."""

from __future__ import annotations

from typing import Any

import numpy as np

from anynorm.design.device import dtype_of, power
from anynorm.kernels.kernel import (
    Array,
    Block,
    ProductKernel,
    product_rounding,
    products,
    within,
)


class Poly(ProductKernel):
    """The kernel ``(gamma x'z + coef0)^degree``.

    Parameters
    ----------
    gamma : {"scale", "auto"} or float, default="scale"
        The factor: ``1 / (p * X.var())``, ``1 / p`` or a number of at least 0.
    degree : float, default=3
        The degree.
    coef0 : float, default=0.0
        The constant.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels import Poly
    >>> Poly(gamma=1.0, degree=2, coef0=1.0).pairs(np.eye(2)[:1], np.eye(2))
    array([[4., 1.]])
    """

    name = "poly"

    def __init__(self, gamma: Any = "scale", degree: float = 3, coef0: float = 0.0) -> None:
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        # Powers and sums of products are known to be semidefinite, others are not.
        known = coef0 >= 0 and float(degree).is_integer() and degree >= 0
        self.psd = True if known else None

    def of_products(self, values: Block, rows: Any, columns: Any) -> Block:
        """Return the power, in place."""
        values *= within(self.gamma, dtype_of(values))
        values += self.coef0
        return power(values, self.degree)

    def pairs(self, A: Any, B: Any) -> Array:
        """Return the matrix of all pairs; no lengths are needed."""
        return self.of_products(products(A, B), None, None)

    def float32_error(self, X: Any) -> float:
        """Return the rounding error of a product, to the power of the degree."""
        return product_rounding(X) * max(1.0, abs(self.degree))

    def float32_terms(self, points: Any) -> tuple[float, Array | None]:
        """Return what makes the bases: ``c^2 = gamma``, ``e(x) = coef0 / 2``."""
        return np.sqrt(self.gamma), np.full(points.shape[0], 0.5 * self.coef0)

    def of_float32_terms(self, terms: Any) -> Any:
        """Return the power; a few products are faster than a logarithm."""
        if not float(self.degree).is_integer() or self.degree < 1:
            return power(terms, np.float32(self.degree).item())
        if self.degree == 1:
            return terms
        out = terms * terms
        for _ in range(int(self.degree) - 2):
            out *= terms
        return out

    def onnx(self, graph: Any, rows: str, points: Any) -> str:
        """Add the product and its power; gamma goes into the points."""
        values = graph.node("MatMul", rows, graph.constant(float(self.gamma) * points.T))
        values = graph.node("Add", values, graph.constant(float(self.coef0)))
        return graph.node("Pow", values, graph.constant(float(self.degree)))
