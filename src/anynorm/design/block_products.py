"""Products with a column block, and Gram matrices for one weighting of its rows after another."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from anynorm.design.column_block import ColumnBlock, RowsInOrder
from anynorm.design.interface import Array, Places
from anynorm.design.limits import ENTRIES_PER_CALL, PAIRS_PER_CALL
from anynorm.design.watch import look

# To put the entries in the order of rows takes as long as this many products save: on text of
# 50,000 rows with 2.9 million entries 30 ms against 2.7 ms.
_PRODUCTS_FOR_ROWS = 12
# Where X has rows, they are read anew instead, in the time that products by rows save with so many
# columns: 6 ms for 3.7 million entries, which two products with 20,000 columns save.
_READS_PER_COLUMN = 40
_FLOAT32_SQUARES = 1e-60, 1e60  # of columns: float32 ends at 1e-38 and 3e38


class BlockProducts:
    """``Z w``, ``Z'a`` and ``Z'diag(d) Z`` of a column block Z, for those who ask again and again.

    Dense columns go to BLAS, and sparse rows are multiplied entry by entry.  Columns in the order
    of their number of entries, the fullest first, keep most of these sums in one corner of the Gram
    matrix, which stays in the cache.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design import design_of
    >>> from anynorm.design.block_products import BlockProducts
    >>> design = design_of(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> Z = BlockProducts(design.column_block(np.arange(2), np.arange(2), np.ones(2)))
    >>> Z.matvec(np.ones(2)), Z.rmatvec(np.ones(2))
    (array([3., 7.]), array([4., 6.]))
    >>> Z.normal(np.array([1.0, 0.5]), np.ones(2))
    array([13.5, 20. ])
    >>> np.tril(Z.gram(np.array([1.0, 0.5])))
    array([[ 5.5,  0. ],
           [ 8. , 12. ]])
    >>> np.tril(Z.row_gram(np.array([1.0, 0.5])))
    array([[ 3.,  0.],
           [ 7., 17.]])
    """

    def __init__(self, block: ColumnBlock) -> None:
        self._block, self._every = block, np.arange(block.p)
        indptr, indices, values = block.arrays
        self.entries = int(indptr[-1])
        self._columns = None if indices.size else values.reshape(block.p, block.n)
        self._rows: dict[type, RowsInOrder] = {}
        self._asked = 0

    def matvec(self, w: Array) -> Array:
        """Z w."""
        if self._columns is None:
            return self._block.matvec(w, columns=self._every)
        return w @ self._columns

    def rmatvec(self, a: Array) -> Array:
        """Z'a."""
        if self._columns is None:
            return self._block.rmatvec(a, columns=self._every)
        return self._columns @ a

    def normal(self, weights: Array, w: Array, *, columns: Places | None = None) -> Array:
        """Z'diag(weights) Z w over some or all columns, to the digits of float32 at least.

        Sparse rows are read once, as soon as that pays, and shorter numbers in less time.
        """
        if columns is None:
            columns = self._every
        self._asked += 1
        if self._columns is not None and columns.size == self._block.p:
            return self._columns @ (weights * (w @ self._columns))
        early = self._asked < self._products_for_rows
        if self._columns is not None or early or not self._most_entries(columns):
            image = self._block.matvec(w, columns=columns)
            return self._block.rmatvec(weights * image, columns=columns)
        from anynorm.design.column_loops import add_normal_product

        starts, places, entries = self._by_rows(np.float32 if self._fits_float32 else np.float64)
        coef, out = np.zeros(self._block.p), np.zeros(self._block.p)
        coef[columns] = w
        calls = int(starts[-1] // ENTRIES_PER_CALL) + 1
        cuts = np.searchsorted(starts, starts[-1] * np.arange(calls + 1) / calls)
        cuts[0], cuts[-1] = 0, self._block.n
        for first, last in pairwise(cuts):
            add_normal_product(starts, places, entries, weights, coef, first, last, out)
        return out[columns]

    def gram(self, weights: Array) -> Array:
        """Z'diag(weights) Z in its lower half, Fortran's order; what is above means nothing."""
        if self._columns is not None:
            return dsyrk(1.0, (self._columns * np.sqrt(weights)).T, trans=1, lower=1)
        from anynorm.design.column_loops import add_block_gram

        rows = self._by_rows(np.float64)
        pairs = np.cumsum(np.diff(rows[0]).astype(np.float64) ** 2)
        calls = int(pairs[-1] // PAIRS_PER_CALL) + 1
        cuts = np.searchsorted(pairs, pairs[-1] * np.arange(calls + 1) / calls)
        cuts[-1] = self._block.n
        out = np.zeros((self._block.p, self._block.p))
        for first, last in pairwise(cuts):
            add_block_gram(*rows, weights, first, last, out)
            look()
        return out.T

    def row_gram(self, weights: Array) -> Array:
        """Z diag(weights) Z' in its lower half, Fortran's order; what is above means nothing."""
        roots = np.sqrt(weights)
        if self._columns is not None:
            return dsyrk(1.0, self._columns * roots[:, None], trans=1, lower=1)
        part = self._block.stored() @ sp.diags_array(roots)
        return np.asarray((part @ part.T).toarray(order="F"))

    def _most_entries(self, columns: Places) -> bool:
        """Whether rows, which are read whole, take less time than these columns, read twice."""
        return bool(2 * self._lengths[columns].sum() > self.entries)

    @cached_property
    def _lengths(self) -> Array:
        return np.diff(self._block.arrays[0])

    @cached_property
    def _fits_float32(self) -> bool:
        """Whether no entry that matters to its column is beyond what float32 can say."""
        squares = self._block.column_norms_squared()
        squares = squares[squares > 0]
        least, most = squares.min(initial=1.0), squares.max(initial=1.0)
        return bool(_FLOAT32_SQUARES[0] < least and most < _FLOAT32_SQUARES[1])

    @cached_property
    def _products_for_rows(self) -> float:
        """How many products save as much time as it takes to have the rows."""
        source = self._block.source
        if source is None:
            return _PRODUCTS_FOR_ROWS
        return min(source.read / (_READS_PER_COLUMN * self._block.p), _PRODUCTS_FOR_ROWS)

    def _by_rows(self, kind: type) -> RowsInOrder:
        """The entries row after row, in one precision."""
        if kind not in self._rows:
            source = self._block.source if kind is np.float32 else None
            self._rows[kind] = source.rows() if source else self._turned(kind)
        return self._rows[kind]

    def _turned(self, kind: type) -> RowsInOrder:
        """The entries of the columns in the order of rows."""
        from anynorm.design.column_loops import by_rows  # imports Numba: only where needed

        starts = np.zeros(self._block.n + 1, dtype=np.int64)
        places = np.empty(self.entries, np.uint32)
        entries: Array = np.empty(self.entries, kind)
        by_rows(*self._block.arrays, starts, places, entries)
        return RowsInOrder(starts, places, entries)
