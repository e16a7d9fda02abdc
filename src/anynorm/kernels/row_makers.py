"""How rows of a kernel matrix are made in float32: one matrix product for many rows.

    [c x, e(x), 1]'[c z, 1, e(z)] = c^2 x'z + e(x) + e(z)

The points carry the numbers c and e of a `ProductKernel`, so that nothing but a function of each
entry is left to do after the product.  Where float32 products would not be accurate (points far
from each other compared to the kernel's width), and for other kernels, the rows come from the
`Gram` in float64.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design.limits import FLOAT32_ROUNDING
from anynorm.kernels.gram import Gram

Index = NDArray[np.intp]
Rows = NDArray[np.float32]

_SMALLEST = 1e-30  # the least entry, and 1 over it the largest, that float32 has digits for
ACCURATE = 1e-4  # relative error of an entry that products may have
_COLUMNS = 2048  # of a block: product and function stay in the cache
_DENSE_ENTRIES = 1 << 24  # of a few sparse rows that are made dense, 64 MB


class RowMaker:
    """Makes rows of the kernel matrix of a `Gram`; `exact` ones as that does, in float64.

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
        self.error, self.own_bytes = (FLOAT32_ROUNDING * size if fits else 0.0), 0
        self._products: Callable[[Index, Any, Index], None] | None = None
        if fits and (relative := gram.float32_error()) <= ACCURATE:
            self.error = relative * size
            self._kernel: Any = gram.kernel
            self._points, self._swap = _extended(self._kernel, gram.around_origin(gram.X))
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
            store[slots, start : start + _COLUMNS] = self._kernel.of_float32_terms(block)

    def _sparse(self, index: Index, store: Rows, slots: Index) -> None:
        few = max(1, _DENSE_ENTRIES // self._points.shape[1])
        for start in range(0, len(index), few):
            part = slice(start, start + few)
            left = self._points[index[part]][:, self._swap]
            store[slots[part]] = self._kernel.of_float32_terms((self._points @ left.toarray().T).T)


def _extended(kernel: Any, points: Any) -> tuple[Any, Index]:
    """The points with their extra columns, and the order of columns for the left factor."""
    scale, extra = kernel.float32_terms(points)
    p = points.shape[1]
    order = np.arange(p)
    if extra is None:
        return _joined(points, scale, []), order
    return _joined(points, scale, [np.ones(len(extra)), extra]), np.append(order, [p + 1, p])


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
