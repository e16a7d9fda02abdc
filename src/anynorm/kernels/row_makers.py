"""How rows of a kernel matrix are made in float32: one matrix product for many rows.

    [c x, e(x), 1]'[c z, 1, e(z)] = c^2 x'z + e(x) + e(z)

The points carry the numbers c and e of a `ProductKernel`, so that nothing but a function of each
entry is left to do after the product.  Where float32 products would not be accurate (points far
from each other compared to the kernel's width), the products are float64, and other kernels are
evaluated by the `Gram`.

Problems share rows, in an order that is not the same twice: what is in a row must not depend on
the rows that are made together with it.  So products are our own (`product_loops.py`), or sparse,
which are sums over the entries of two rows; and functions of two sets of rows are always asked for
the same sets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design.blocks import ranges
from anynorm.design.limits import PRODUCTS_PER_CALL, VALUES_AT_ONCE
from anynorm.design.threads import run, share
from anynorm.design.watch import look
from anynorm.kernels import ProductKernel
from anynorm.kernels.exponential_rows import PANELS, exponential_rows
from anynorm.kernels.gram import Gram
from anynorm.kernels.kernel import finite, squared_lengths
from anynorm.kernels.precision import precision_of
from anynorm.kernels.product_loops import PANEL, TILE, panels_of, products

Index = NDArray[np.intp]
Finish = Callable[[Any, Index, slice], Any]

_COLUMNS = 512  # of a block: product and function stay in the cache, and its memory is at hand
_DENSE_ENTRIES = 1 << 24  # of a few sparse rows that are made dense, 64 MB
_TOGETHER = 32  # rows that a function is asked for at once


class RowMaker:
    """Makes rows of the kernel matrix of a `Gram`; `exact` ones in float64.

    Attributes
    ----------
    dtype : type
        float32, or float64 where that is asked for, or where the kernel's values are too large or
        too small.
    error : float
        How far an entry may be from the kernel's own value.
    own_bytes : int
        The memory of the maker itself.
    together : int
        How many rows, from a multiple of it on, are to be made at once wherever all rows fit into
        memory; 1 where rows can be made along with any others.
    """

    def __init__(self, gram: Gram, exact: bool) -> None:
        self._gram, kernel = gram, gram.kernel
        self.dtype, self.error, narrow = precision_of(gram, exact)
        self.own_bytes, self.together = 0, 1
        self._products: _DenseProducts | _SparseProducts | None = None
        if narrow:
            points = _Extended(kernel, gram.around_origin(gram.X))
            if points.sparse:
                self._products = _SparseProducts(points, _of_terms(kernel))
            elif kernel.float32_terms_are_exponents:
                self._products = _DenseExponents(points, _of_terms(kernel))
            else:
                self._products = _DenseProducts(points, _of_terms(kernel))
        elif isinstance(kernel, ProductKernel) and not sp.issparse(gram.X):
            plain = np.asarray(gram.around_origin(gram.X), dtype=np.float64)
            finish = _of_products(kernel, squared_lengths(plain))
            self._products = _DenseProducts(_Plain(plain), finish)
        elif not isinstance(kernel, ProductKernel) and not kernel.takes_matrix:
            self.together = _TOGETHER
        if self._products is not None:
            self.own_bytes = self._products.own_bytes

    def prepare(self) -> None:
        """Arrange the points for products, which is for the first rows that are made."""
        if isinstance(self._products, _DenseProducts):
            self._products.prepare()

    def make(self, index: Index, store: Any, slots: Index, together: int = 1) -> None:
        """Put the rows `index` into the slots of the store, so many of them made `together`."""
        if self._products is not None:
            self._products.make(index, store, slots)
            return
        step = together if self.together > 1 else max(1, len(index))
        for part in ranges(len(index), step):
            store[slots[part]] = self._gram.block(index[part], slice(None))


class _DenseProducts:
    """Rows from products of dense points."""

    def __init__(self, points: _Extended | _Plain, finish: Finish) -> None:
        self._swap, self._finish, self._n = points.swap, finish, points.shape[0]
        self._points: _Extended | _Plain | None = points
        count = -(-self._n // PANEL)
        self.own_bytes = count * PANEL * points.shape[1] * np.dtype(points.dtype).itemsize

    def prepare(self) -> None:
        """Make the panels, part after part: of many points that takes a second."""
        if self._points is None:
            return
        points, width = self._points, self._points.shape[1]
        panels = np.empty((-(-self._n // PANEL), width, PANEL), points.dtype)
        step = max(1, VALUES_AT_ONCE // max(1, width) // PANEL)
        for place in ranges(len(panels), step):
            panels[place] = panels_of(points.part(slice(PANEL * place.start, PANEL * place.stop)))
            look()
        self._panels, self._points = panels, None

    def _left(self, index: Index) -> Any:
        """Rows as left factors, a multiple of `TILE` of them."""
        whole = self._panels[index // PANEL, :, index % PANEL]
        left = np.zeros((-(-len(index) // TILE) * TILE, whole.shape[1]), whole.dtype)
        left[: len(index)] = whole[:, self._swap]
        return left

    def make(self, index: Index, store: Any, slots: Index) -> None:
        """Put the rows `index` into the slots of the store."""
        self.prepare()
        left = self._left(index)
        blocks = list(ranges(self._n, _COLUMNS))

        def fill(k: int) -> None:
            columns = blocks[k]
            size = columns.stop - columns.start
            block = np.empty((len(left), -(-size // PANEL) * PANEL), left.dtype)
            products(left, self._panels, columns.start // PANEL, block)
            block = np.ascontiguousarray(block[: len(index), :size])
            store[slots, columns] = self._finish(block, index, columns)

        run(fill, len(blocks))


class _DenseExponents(_DenseProducts):
    """The same for exponentials of float32 products: long tasks without the interpreter."""

    def make(self, index: Index, store: Any, slots: Index) -> None:
        self.prepare()
        left, panels = self._left(index), self._panels
        most = max(1, PRODUCTS_PER_CALL // (PANEL * PANELS * left.size)) * PANELS
        for some in ranges(len(panels), most):
            parts = -(-(some.stop - some.start) // PANELS)
            given = (left, panels, some.start, slots, self._n, store)
            share(exponential_rows, parts, *given)


class _SparseProducts:
    """The same from products of sparse points."""

    def __init__(self, extended: _Extended, finish: Finish) -> None:
        points = extended.part(slice(None))
        self._points, self._swap, self._finish = points, extended.swap, finish
        arrays = points.data, points.indices, points.indptr
        self.own_bytes = sum(int(array.nbytes) for array in arrays)

    def make(self, index: Index, store: Any, slots: Index) -> None:
        few = max(1, _DENSE_ENTRIES // self._points.shape[1])
        for part in ranges(len(index), few):
            left = self._points[index[part]][:, self._swap]
            terms = (self._points @ left.toarray().T).T
            store[slots[part]] = self._finish(terms, index[part], slice(None))


def _of_terms(kernel: Any) -> Finish:
    """What is left to do for float32 terms."""
    return lambda block, rows, columns: kernel.of_float32_terms(block)


def _of_products(kernel: ProductKernel, lengths: Any) -> Finish:
    """What is left to do for products in float64, with the squared lengths of the points."""
    return lambda block, rows, columns: finite(
        kernel.of_products(block, lengths[rows], lengths[columns])
    )


class _Plain:
    """Points as they are; `swap` is the order of columns for the left factor."""

    def __init__(self, points: NDArray[np.float64]) -> None:
        self.shape, self.dtype, self._points = points.shape, points.dtype, points
        self.swap = np.arange(points.shape[1])

    def part(self, place: slice) -> NDArray[np.float64]:
        """Some of the points."""
        return self._points[place]


class _Extended:
    """float32 points with their extra columns; `swap` is their order for the left factor."""

    dtype = np.float32

    def __init__(self, kernel: Any, points: Any) -> None:
        self._scale, extra = kernel.float32_terms(points)
        self._points, self.sparse, p = points, sp.issparse(points), points.shape[1]
        self._columns = [] if extra is None else [np.ones(len(extra)), extra]
        self.swap = np.append(np.arange(p), [] if extra is None else [p + 1, p]).astype(np.intp)
        self.shape = points.shape[0], p + len(self._columns)

    def part(self, place: slice) -> Any:
        """Some of the points."""
        columns = [column[place] for column in self._columns]
        return _joined(self._points[place], self._scale, columns)


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
