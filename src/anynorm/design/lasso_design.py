"""The columns of a Lasso with an intercept and weights, which are never written into a copy.

With row weights v and the weighted means m, the problem of a model with an intercept is the one
without for the columns ``sqrt(v) (x_j - m_j)`` and the target ``sqrt(v) (y - mean)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design import Matrix, column_norms_squared, matvec, rmatvec

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class LassoDesign:
    """Products with ``sqrt(v) (X - 1 m')``; v = 1 and m = 0 where they are None.

    Attributes
    ----------
    means : ndarray of shape (n,) or None
        The columns' weighted means, with an intercept.
    """

    def __init__(self, X: Matrix, weights: Array | None, centre: bool) -> None:
        self.X = X.tocsc() if sp.issparse(X) and X.format != "csc" else X
        self.shape = X.shape
        self._root = None if weights is None else np.sqrt(weights)
        self._weights = np.ones(X.shape[0]) if weights is None else weights
        self.total = float(self._weights.sum())
        self.means = rmatvec(self.X, self._weights) / self.total if centre else None

    def target(self, y: Array) -> tuple[Array, float]:
        """The right-hand side made from y, and y's mean (0 without an intercept)."""
        mean = float(self._weights @ y) / self.total if self.means is not None else 0.0
        return self._weigh(y - mean), mean

    def adjoint(self, v: Array) -> Array:
        """The products of all columns with v."""
        v = self._weigh(v)
        out = rmatvec(self.X, v)
        return out if self.means is None else out - self.means * float(v.sum())

    def adjoint_of_many(self, V: Array) -> Array:
        """The products of all columns with the columns of V, of shape (p, k)."""
        V = V if self._root is None else self._root[:, None] * V
        out = matvec(self.X.T, V)
        if self.means is not None:
            out -= np.outer(self.means, V.sum(axis=0))
        return out

    def combine(self, index: Index, x: Array) -> Array:
        """The sum of the columns `index` with the coefficients x."""
        used = np.flatnonzero(x)
        index, x = index[used], x[used]
        out = matvec(self.X[:, index], x)
        return self._weigh(out if self.means is None else out - float(self.means[index] @ x))

    def norms(self) -> Array:
        """The lengths of the weighted columns before they are centred, which bound rounding."""
        return np.sqrt(column_norms_squared(self.X, self._weights))

    def combine_block(self, block: Any, index: Index, X: Array) -> Array:
        """The sum of a block's columns with the coefficients X, or sums, by columns."""
        out = np.asarray(block @ X)
        if sp.issparse(block) and self.means is not None:
            shift = self.means[index] @ X
            out -= shift if self._root is None else np.multiply.outer(self._root, shift)
        return out

    def dot_block(self, block: Any, index: Index, v: Array) -> Array:
        """The products of a block's columns with v, or with the columns of v."""
        out = np.asarray(block.T @ v)
        if sp.issparse(block) and self.means is not None:
            total = v.sum(axis=0) if self._root is None else self._root @ v
            out -= np.multiply.outer(self.means[index], total)
        return out

    def block_norms(self, block: Any, index: Index) -> Array:
        """The lengths of a block's columns."""
        squares = column_norms_squared(block)
        if sp.issparse(block) and self.means is not None:
            squares = np.maximum(squares - self.total * self.means[index] ** 2, 0.0)
        return np.sqrt(squares)

    def block(self, index: Index) -> Any:
        """The columns `index`: dense and centred, or sparse and only weighted."""
        part = self.X[:, index].astype(np.float64)
        if sp.issparse(part):
            return part if self._root is None else sp.csc_array(part.multiply(self._root[:, None]))
        part = np.asfortranarray(part)
        if self.means is not None:
            part -= self.means[index]
        return part if self._root is None else part * self._root[:, None]

    def dense_block(self, index: Index) -> Array:
        """The columns `index`, dense."""
        block = self.block(index)
        if not sp.issparse(block):
            return np.asarray(block)
        block = block.toarray()
        if self.means is not None:
            shift = np.outer(np.ones(len(block)) if self._root is None else self._root,
                             self.means[index])  # fmt: skip
            block -= shift
        return block

    def gram(self, left: Any, right: Any, left_index: Index, right_index: Index) -> Array:
        """The products of two blocks' columns."""
        product = left.T @ right
        if not sp.issparse(product):
            return np.asarray(product)
        out = product.toarray()
        if self.means is not None:
            out -= self.total * np.outer(self.means[left_index], self.means[right_index])
        return out

    def _weigh(self, v: Array) -> Array:
        return v if self._root is None else self._root * v


def joined(left: Any, right: Any) -> Any:
    """Two blocks side by side."""
    if sp.issparse(left):
        return sp.csc_array(sp.hstack([left, right]))
    out = np.empty((left.shape[0], left.shape[1] + right.shape[1]), order="F")
    out[:, : left.shape[1]] = left
    out[:, left.shape[1] :] = right
    return out
