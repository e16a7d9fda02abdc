"""How rows of a kernel matrix are made in float32: one matrix product for many rows.

    linear    x'z                        rbf     exp([c x, -g|x|^2, 1]'[c z, 1, -g|z|^2]),  c^2 = 2g
    poly      ([c x, e, 1]'[c z, 1, e])^k ,  c^2 = g,  2e = coef0

The points carry such extra columns, so that nothing but a function of each entry is left to do
after the product.  Where float32 products would not be accurate (points far from each other
compared to the kernel's width), and for other kernels, the rows come from the `Gram` in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design import design_of
from anynorm.kernels.exponential_loops import exp_in_place_32
from anynorm.kernels.gram import Gram

Index = NDArray[np.intp]
Rows = NDArray[np.float32]

ROUNDING = 6e-8  # of float32
_SMALLEST = 1e-30
ACCURATE = 1e-4  # relative error of an entry that products may have
_COLUMNS = 2048  # of a block: product and function stay in the cache
_DENSE_ENTRIES = 1 << 24  # a few sparse rows are made dense up to this size


class RowMaker:
    """Makes rows of the kernel matrix of a `Gram`.

    Parameters
    ----------
    gram : Gram
        The kernel and its points.
    exact : bool
        Whether to make them as the Gram does, in float64.

    Attributes
    ----------
    dtype : type
        float32, or float64 where that is asked for, or where the kernel's values are too large or
        too small.
    error : float
        How far an entry may be from the kernel's own value.
    own_bytes : int
        The memory of the maker itself.
    """

    def __init__(self, gram: Gram, exact: bool) -> None:
        self._gram = gram
        size = float(np.abs(gram.diagonal()).max(initial=0.0))
        fits = not exact and (size == 0 or _SMALLEST <= size <= 1 / _SMALLEST)
        self.dtype: Any = np.float32 if fits else np.float64
        self.error, self.own_bytes = (ROUNDING * size if fits else 0.0), 0
        self._products: Callable[[Index, Any, Index], None] | None = None
        relative = product_error(gram)
        if fits and relative <= ACCURATE:
            self.error = relative * size
            self._points, self._swap = _extended(gram)
            self._products = self._sparse if sp.issparse(self._points) else self._dense
            self.own_bytes = _bytes(self._points)

    def make(self, index: Index, store: Any, slots: Index) -> None:
        """Put the rows `index` into the slots of the store."""
        if self._products is None:
            store[slots] = self._gram.block(index, slice(None))
        else:
            self._products(index, store, slots)

    def _dense(self, index: Index, store: Rows, slots: Index) -> None:
        left = self._points[index][:, self._swap]
        for start in range(0, len(self._points), _COLUMNS):
            block = left @ self._points[start : start + _COLUMNS].T
            store[slots, start : start + _COLUMNS] = self._finished(block)

    def _sparse(self, index: Index, store: Rows, slots: Index) -> None:
        few = max(1, _DENSE_ENTRIES // self._points.shape[1])
        for start in range(0, len(index), few):
            part = slice(start, start + few)
            left = self._points[index[part]][:, self._swap]
            store[slots[part]] = self._finished((self._points @ left.toarray().T).T)

    def _finished(self, values: Rows) -> Rows:
        """The kernel's function of the products, in place."""
        if self._gram.name == "rbf":
            exp_in_place_32(values)
            return values
        if self._gram.name == "poly":
            return _power(values, self._gram.parameters["degree"])
        return values


def _power(values: Rows, degree: float) -> Rows:
    if not float(degree).is_integer() or degree < 1:
        return np.power(values, np.float32(degree))
    out = values.copy()
    for _ in range(int(degree) - 1):
        out *= values
    return out


def product_error(gram: Gram) -> float:
    """The relative error of entries that come from float32 products; inf where there are none."""
    if gram.name in ("precomputed", "callable"):
        return np.inf
    assert gram.X is not None
    terms = ROUNDING * (4.0 + np.sqrt(gram.X.shape[1]))
    if gram.name == "rbf":
        reach = float(design_of(_centred(gram)).row_norms_squared().max(initial=0.0))
        return 4.0 * gram.parameters["gamma"] * reach * terms + 4.0 * ROUNDING
    return terms * max(1.0, abs(gram.parameters.get("degree", 1.0)))


def _centred(gram: Gram) -> Any:
    origin = gram.parameters.get("origin")
    return gram.X if origin is None else np.asarray(gram.X) - origin


def _extended(gram: Gram) -> tuple[Any, Index]:
    """The points with their extra columns, and the order of columns for the left factor."""
    points = _centred(gram)
    p = points.shape[1]
    order = np.arange(p)
    if gram.name == "linear":
        return _joined(points, 1.0, []), order
    if gram.name == "poly":
        gamma, coef0 = gram.parameters["gamma"], gram.parameters["coef0"]
        ones = np.ones(points.shape[0])
        # 1'coef0 + coef0'1 with halves: the order of the two columns is turned round.
        extended = _joined(points, np.sqrt(gamma), [ones, 0.5 * coef0 * ones])
        return extended, np.append(order, [p + 1, p])
    gamma = gram.parameters["gamma"]
    lengths = -gamma * design_of(points).row_norms_squared()
    extended = _joined(points, np.sqrt(2.0 * gamma), [np.ones(len(lengths)), lengths])
    return extended, np.append(order, [p + 1, p])


def _joined(points: Any, scale: float, columns: list[Any]) -> Any:
    """Scaled points and further columns in float32."""
    if sp.issparse(points):
        scaled = (points * scale).tocsr().astype(np.float32)
        return sp.hstack([scaled, *(c.astype(np.float32)[:, None] for c in columns)], format="csr")
    out = np.empty((len(points), points.shape[1] + len(columns)), np.float32)
    np.multiply(points, scale, out=out[:, : points.shape[1]], casting="same_kind")
    for k, column in enumerate(columns):
        out[:, points.shape[1] + k] = column
    return out


def _bytes(points: Any) -> int:
    if sp.issparse(points):
        return int(points.data.nbytes + points.indices.nbytes + points.indptr.nbytes)
    return int(points.nbytes)
