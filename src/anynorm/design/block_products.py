"""Products with a column block, and Gram matrices for one weighting of its rows after another."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from anynorm.design.column_block import ColumnBlock
from anynorm.design.interface import Array
from anynorm.design.limits import ENTRIES_PER_CALL, PAIRS_PER_CALL
from anynorm.design.watch import look


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
        self._columns: Array | None = None
        if not indices.size:
            self._columns = values.reshape(block.p, block.n)
            return
        from anynorm.design.column_loops import by_rows  # imports Numba: only where needed

        starts = np.zeros(block.n + 1, dtype=np.int64)
        self._by_rows = starts, np.empty(indptr[-1], np.uint32), np.empty(indptr[-1])
        by_rows(*block.arrays, *self._by_rows)
        pairs = np.cumsum(np.diff(starts).astype(np.float64) ** 2)
        calls = int(pairs[-1] // PAIRS_PER_CALL) + 1
        self._cuts = np.searchsorted(pairs, pairs[-1] * np.arange(calls + 1) / calls)
        self._cuts[-1] = block.n

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

    def normal(self, weights: Array, w: Array) -> Array:
        """Z'diag(weights) Z w, each row of Z read once."""
        if self._columns is not None:
            return self.rmatvec(weights * self.matvec(w))
        from anynorm.design.column_loops import add_normal_product

        out, starts = np.zeros(self._block.p), self._by_rows[0]
        calls = int(starts[-1] // ENTRIES_PER_CALL) + 1
        cuts = np.searchsorted(starts, starts[-1] * np.arange(calls + 1) / calls)
        cuts[0], cuts[-1] = 0, self._block.n
        for first, last in pairwise(cuts):
            add_normal_product(*self._by_rows, weights, w, first, last, out)
        return out

    def gram(self, weights: Array) -> Array:
        """Z'diag(weights) Z in its lower half, Fortran's order; what is above means nothing."""
        if self._columns is not None:
            return dsyrk(1.0, (self._columns * np.sqrt(weights)).T, trans=1, lower=1)
        from anynorm.design.column_loops import add_block_gram

        out = np.zeros((self._block.p, self._block.p))
        for first, last in pairwise(self._cuts):
            add_block_gram(*self._by_rows, weights, first, last, out)
            look()
        return out.T

    def row_gram(self, weights: Array) -> Array:
        """Z diag(weights) Z' in its lower half, Fortran's order; what is above means nothing."""
        roots = np.sqrt(weights)
        if self._columns is not None:
            return dsyrk(1.0, self._columns * roots[:, None], trans=1, lower=1)
        part = self._block.stored() @ sp.diags_array(roots)
        return np.asarray((part @ part.T).toarray(order="F"))
