"""Views of a design: centred and weighted, or with a constant column; X itself is not copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from anynorm.design.dense import DenseDesign
from anynorm.design.interface import Array, Design, Places

if TYPE_CHECKING:
    from anynorm.design.column_block import ColumnBlock


class CentredDesign:
    """``sqrt(d) (X - 1 m')``, for row weights d and means m; d = 1 and m = 0 where they are None.

    The problem of a linear model with an intercept is the one without for these columns and the
    target ``sqrt(d) (y - mean)``.

    Attributes
    ----------
    shape, n, p : (int, int), int, int
        The size.
    total : float
        The sum of the weights.
    means : ndarray of shape (p,) or None
        The columns' weighted means, with an intercept.
    """

    def __init__(self, base: Design, weights: Array | None, means: Array | None) -> None:
        self._base, self._weights, self.means = base, weights, means
        self.shape = self.n, self.p = base.shape
        self._root = None if weights is None else np.sqrt(weights)
        self.total = float(self.n if weights is None else weights.sum())

    @classmethod
    def of(cls, base: Design, weights: Array | None, centre: bool) -> CentredDesign:
        """With the weighted means of the columns, or with none."""
        out = cls(base, weights, None)
        if centre:
            out.means = base.rmatvec(np.ones(base.n) if weights is None else weights) / out.total
        return out

    @property
    def cancellation(self) -> float:
        """What rounding may leave of a column that is constant, of its length."""
        return 1e-7 if self._base.sparse else 1e-13  # sparse columns are not centred themselves

    def target(self, y: Array) -> tuple[Array, float]:
        """The right-hand side made from y, and y's mean (0 without an intercept)."""
        mean = 0.0
        if self.means is not None:
            mean = float(y.sum() if self._weights is None else self._weights @ y) / self.total
        return self._weigh(y - mean), mean

    def matvec(self, w: Array, *, columns: Places | None = None) -> Array:
        """The sum of all or some columns with the coefficients w, or sums, by columns."""
        out = self._base.matvec(w, columns=columns)
        if self.means is not None:
            out -= self._means(columns) @ w
        return self._weigh(out)

    def rmatvec(self, a: Array, *, columns: Places | None = None) -> Array:
        """The products of all or some columns with a, or with the columns of a."""
        a = self._weigh(a)
        out = self._base.rmatvec(a, columns=columns)
        if self.means is not None:
            out -= np.multiply.outer(self._means(columns), a.sum(axis=0))
        return out

    def column_norms_squared(self, *, before: bool = False) -> Array:
        """||x_j||^2 for every column, or what it was before centring, which bounds rounding."""
        squares = self._base.column_norms_squared(self._weights)
        if self.means is None or before:
            return squares
        return np.maximum(squares - self.total * self.means**2, 0.0)

    def columns_gram(self, left: Places | None = None, right: Places | None = None) -> Array:
        """The products of some columns with others; None is all of them."""
        out = self._base.columns_gram(left, right, self._weights)
        if self.means is not None:
            out -= self.total * np.outer(self._means(left), self._means(right))
        return out

    def take_columns(self, columns: Places) -> Design | CentredDesign:
        """The chosen columns: dense ones centred and weighted in float64, sparse ones as a view."""
        if not self._base.sparse:
            return DenseDesign(self.dense_columns(columns))
        means = None if self.means is None else self.means[columns]
        return CentredDesign(self._base.take_columns(columns), self._weights, means)

    def dense_columns(self, columns: Places) -> Array:
        """The chosen columns, dense, one after the other."""
        block = np.asfortranarray(self._base.dense_columns(columns))  # a copy: changed below
        if self.means is not None:
            block -= self.means[columns]
        if self._root is not None:
            block *= self._root[:, None]
        return block

    def dense(self) -> Array:
        """All columns, dense."""
        return self.dense_columns(np.arange(self.p))

    def beside(self, other: Any) -> CentredDesign:
        """These columns and those of another view with the same weights, side by side."""
        means = None if self.means is None else np.append(self.means, other.means)
        return CentredDesign(self._base.beside(other._base), self._weights, means)

    def _means(self, columns: Places | None) -> Array:
        assert self.means is not None
        return self.means if columns is None else self.means[columns]

    def _weigh(self, v: Array) -> Array:
        return v if self._root is None else (self._root * v.T).T


class ConstantColumn:
    """X and a last column of a constant value: a regularised bias as a feature."""

    def __init__(self, base: Design, value: float) -> None:
        self._base, self._value = base, value
        self.n, self.p = base.n, base.p + 1

    def matvec(self, w: Array, *, columns: Places) -> Array:
        """X_K w."""
        inside = columns < self._base.p
        shift = self._value * float(w[~inside].sum())
        return self._base.matvec(w[inside], columns=columns[inside]) + shift

    def rmatvec(self, a: Array) -> Array:
        """X'a."""
        return np.append(self._base.rmatvec(a), self._value * a.sum())

    def column_norms_squared(self, weights: Array) -> Array:
        """sum_i weights_i x_ij^2 for every column."""
        return np.append(self._base.column_norms_squared(weights), self._value**2 * weights.sum())

    def column_block(self, columns: Places, rows: Places, root: Array) -> ColumnBlock:
        """diag(root) X over the chosen columns, ascending, and rows, one by one."""
        inside = columns[columns < self._base.p]
        last = self._value * root[rows] if inside.size < columns.size else None
        return self._base.column_block(inside, rows, root, last)
