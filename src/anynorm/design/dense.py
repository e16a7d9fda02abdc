"""X in a dense array: of any order, float32 or float64, perhaps a read-only memory map.

float64 goes straight to BLAS; float32 is widened a block at a time, so that sums are accumulated in
float64 and memory stays that of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from anynorm.design.blocks import ranges
from anynorm.design.interface import Array, Design, Places, Tile
from anynorm.design.limits import BLOCK_ENTRIES, ENTRIES_PER_TASK, PRODUCTS_PER_CALL
from anynorm.design.threads import each, share
from anynorm.design.watch import look

if TYPE_CHECKING:
    from anynorm.design.column_block import ColumnBlock

# Copying one of so many rows, or columns, is faster than a product with all of them.
_FEW_ROWS = 16
_FEW_VECTORS = 4  # that a compiled loop is called for one after the other
_WORTH_CHOOSING = 0.8  # of the rows: where fewer have a factor, as of duals, others are not read
_WORTH_COMPILED = 1 << 26  # entries of X, half a gigabyte, for which Numba's start is paid back
_WORTH_IN_BLOCKS = 1 << 22  # entries of one of many blocks
_THIN = 0.2  # of the entries: sparse products of rows take as long as BLAS's with all of them
_ROWS_TO_TURN = 256  # at a time into columns, from the cache
_FEW_COLUMNS = {True: 4, False: 12}  # by whether the columns are contiguous


class DenseDesign(Design):
    """Rows and columns of a dense array."""

    sparse = False

    def __init__(self, X: Array, scale: Array | None = None, part_of: DenseDesign | None = None):
        super().__init__(X.shape, scale)
        self.stored = X
        # Loops over rows are compiled where X, or what it is a part of, is worth Numba's start.
        self.compiled = X.size >= _WORTH_COMPILED or (part_of is not None and part_of.compiled)
        self._by_columns = X.flags.f_contiguous and not X.flags.c_contiguous

    def scaled(self, scale: Array | None) -> DenseDesign:
        return DenseDesign(self.stored, scale, self)

    def as_block(self) -> DenseDesign:
        self.compiled = self.compiled or self.stored.size >= _WORTH_IN_BLOCKS
        return self

    def tiles(self, *, small: bool = True) -> Iterator[Tile]:
        X, every = self.stored, slice(None)
        if not small and X.dtype == np.float64:
            yield Tile(every, every, X)
            return
        axis = 1 if self._by_columns else 0
        step = max(1, BLOCK_ENTRIES // max(1, X.shape[1 - axis]))
        for start in range(0, X.shape[axis], step):
            part = slice(start, min(start + step, X.shape[axis]))
            block = np.asarray(X[:, part] if axis else X[part], dtype=np.float64)
            yield Tile(every, part, block) if axis else Tile(part, every, block)

    def matvec(
        self, w: Array, *, rows: Places | None = None, columns: Places | None = None
    ) -> Array:
        if rows is not None and self._share_of(rows) and w.ndim == 1 and columns is None:
            from anynorm.design.dense_loops import times_of

            out = np.empty(rows.size)
            self._share(times_of, rows.size, rows, self.to_coef(w), out)
            return out
        if rows is not None and _FEW_ROWS * rows.size <= self.n:
            return _wide(self.stored[rows]) @ self.to_coef(np.asarray(w, dtype=np.float64))
        if columns is not None and self._few(columns):
            return self.dense_columns(columns) @ w
        return super().matvec(w, rows=rows, columns=columns)

    def rmatvec(
        self, a: Array, *, rows: Places | None = None, columns: Places | None = None
    ) -> Array:
        if rows is not None and self._share_of(rows) and a.ndim == 1 and columns is None:
            return self.to_coef(self._sum_of(rows, a))
        if rows is not None and _FEW_ROWS * rows.size <= self.n:
            return self.to_coef(_wide(self.stored[rows]).T @ a)
        if columns is not None and self._few(columns):
            return self.dense_columns(columns).T @ a
        return super().rmatvec(a, rows=rows, columns=columns)

    def hessian_product(self, rows: Places, weights: Array, w: Array) -> tuple[Array, float]:
        if not self._share_of(rows):
            return super().hessian_product(rows, weights, w)
        from anynorm.design.dense_loops import hessian_times_of

        sums = self._sums(rows.size, self.p + 1)
        self._share(hessian_times_of, rows.size, rows, weights, self.to_coef(w), sums)
        total = sums.sum(axis=0)
        return self.to_coef(total[:-1]), float(total[-1])

    def _share_of(self, rows: Places) -> bool:
        """Whether a loop over some rows is compiled, and worth being shared."""
        return self._many_rows and rows.size * self.p >= ENTRIES_PER_TASK

    @cached_property
    def _parts(self) -> list[tuple[slice, slice]]:
        """Rows and columns of the parts that threads multiply, along the longer side of X."""
        every, width = slice(None), min(self.shape)
        if self.n * self.p < 2 * ENTRIES_PER_TASK:
            return [(every, every)]
        places = ranges(max(self.shape), max(1, ENTRIES_PER_TASK // width))
        return [(place, every) if self.n >= self.p else (every, place) for place in places]

    def _part(self, place: tuple[slice, slice]) -> DenseDesign:
        return DenseDesign(self.stored[place])  # a task of a thread

    def _times(self, w: Array) -> Array:
        if self._many_rows and w.ndim == 2 and w.shape[1] <= _FEW_VECTORS:
            return np.column_stack([self._times(v) for v in np.ascontiguousarray(w.T)])
        if self._many_rows and w.ndim == 1:
            from anynorm.design.dense_loops import times

            out = np.empty(self.n)
            self._share(times, self.n, w, out)
            return out
        parts = self._parts
        if len(parts) == 1:
            return super()._times(w)
        tiles = each(lambda k: self._part(parts[k])._times(w[parts[k][1]]), len(parts))
        return np.concatenate(list(tiles)) if self.n >= self.p else sum(tiles, start=next(tiles))

    def _transposed_times(self, a: Array) -> Array:
        if self._many_rows and a.ndim == 2 and a.shape[1] <= _FEW_VECTORS:
            return np.column_stack([self._transposed_times(v) for v in np.ascontiguousarray(a.T)])
        if self._many_rows and a.ndim == 1:
            from anynorm.design.dense_loops import transposed_times

            used = np.flatnonzero(a)
            if used.size <= _WORTH_CHOOSING * self.n:
                return self._sum_of(used, a[used])
            sums = self._sums(self.n, self.p)
            self._share(transposed_times, self.n, a, sums)
            return sums.sum(axis=0)
        parts = self._parts
        if len(parts) == 1:
            return super()._transposed_times(a)
        tiles = each(lambda k: self._part(parts[k])._transposed_times(a[parts[k][0]]), len(parts))
        return sum(tiles, start=next(tiles)) if self.n >= self.p else np.concatenate(list(tiles))

    def _sum_of(self, rows: Places, a: Array) -> Array:
        """X_J'a before scaling."""
        from anynorm.design.dense_loops import transposed_times_of

        sums = self._sums(rows.size, self.p)
        self._share(transposed_times_of, rows.size, rows, a, sums)
        return np.asarray(sums.sum(axis=0))

    @property
    def _many_rows(self) -> bool:
        """Whether loops over rows are compiled, and worth being shared."""
        big = self.compiled and self.stored.size >= ENTRIES_PER_TASK
        return big and self.stored.flags.c_contiguous

    def row_norms_squared(self) -> Array:
        if not self._many_rows:
            return super().row_norms_squared()
        from anynorm.design.dense_loops import row_squares

        out, factors = np.empty(self.n), np.ones(self.p) if self.scale is None else self.scale**2
        self._share(row_squares, self.n, factors, out)
        return out

    def _sums(self, n_rows: int, width: int) -> Array:
        """A place for the sums of each part of so many rows."""
        from anynorm.design.dense_loops import rows_of_part

        return np.empty((-(-n_rows // rows_of_part(self.p)), width))

    def _share(self, function: Any, n_rows: int, *given: Any) -> None:
        """Have threads share a compiled loop over so many rows."""
        from anynorm.design.dense_loops import rows_of_part

        step = rows_of_part(self.p)
        share(function, -(-n_rows // step), step, self.row_access(), *given)

    def _few(self, columns: Places) -> bool:
        return _FEW_COLUMNS[self._by_columns] * columns.size < self.p

    def column_norms_squared(
        self, weights: Array | None = None, *, rows: Places | None = None
    ) -> Array:
        if weights is None and rows is None and self.stored.dtype == np.float64:
            places = list(ranges(self.n, max(1, ENTRIES_PER_TASK // max(1, self.p))))
            squares = each(lambda k: _column_squares(self.stored[places[k]]), len(places))
            return self.to_coef(self.to_coef(sum(squares, start=np.zeros(self.p))))
        return super().column_norms_squared(weights, rows=rows)

    def take_rows(self, rows: Places) -> DenseDesign:
        return DenseDesign(self._rows(rows), self.scale, self)

    def rows_and(self, rows: Places, more: Array) -> Design:
        if self.scale is not None or self.stored.dtype != np.float64:
            return super().rows_and(rows, more)
        return DenseDesign(self._rows(rows, more), None, self)

    def _rows(self, rows: Places, more: Array | None = None) -> Array:
        """Some rows as they are stored, and then perhaps some more."""
        more = self.stored[:0] if more is None else more
        if not self._many_rows or rows.size * self.p < ENTRIES_PER_TASK:
            return np.vstack([self.stored[rows], more]) if len(more) else self.stored[rows]
        from anynorm.design.dense_loops import copy_rows

        out = np.empty((rows.size + len(more), self.p), self.stored.dtype)
        self._share(copy_rows, rows.size, rows, out)
        out[rows.size :] = more
        return out

    def take_columns(self, columns: Places) -> DenseDesign:
        # In the order of X: plain indexing of rows would give the columns one after the other.
        X, scale = self.stored, None if self.scale is None else self.scale[columns]
        part = X.T[columns].T if self._by_columns else np.take(X, columns, axis=1)
        return DenseDesign(part, scale, self)

    def take(self, rows: Places, columns: Places) -> DenseDesign:
        if rows.size == self.n and columns.size == self.p:
            return self
        scale = None if self.scale is None else self.scale[columns]
        part = self.stored if rows.size == self.n else self._rows(rows)
        part = np.take(part, columns, axis=1) if columns.size < self.p else part
        return DenseDesign(part, scale, self)

    def thin(self) -> Design:
        if np.count_nonzero(self.stored) > _THIN * self.stored.size:
            return self
        import scipy.sparse as sp

        from anynorm.design.sparse import SparseDesign, SparseStorage

        return SparseDesign(SparseStorage(sp.csr_array(self.stored)), self.scale)

    def dense_rows(self, rows: Places) -> Array:
        block = _wide(self.stored[rows])
        return block if self.scale is None else block * self.scale

    def dense_columns(self, columns: Places) -> Array:
        block = _wide(self.stored[:, columns])
        return block if self.scale is None else block * self.scale[columns]

    def dense(self) -> Array:
        return _wide(self.stored) if self.scale is None else self.stored * self.scale

    def dense_transposed(self) -> Array:
        if self.stored.flags.f_contiguous:
            return _wide(self.stored.T)
        out = np.empty((self.p, self.n))
        for start in range(0, self.n, _ROWS_TO_TURN):
            rows = slice(start, start + _ROWS_TO_TURN)
            out[:, rows] = self.stored[rows].T
        return out

    def entries_at(self, rows: Places, columns: Places) -> Array:
        return _wide(self.stored[rows, columns])

    def entries(self, rows: Places | None = None) -> float:
        return float(self.n if rows is None else rows.size) * self.p

    def column_entries(self) -> Array:
        return np.full(self.p, self.n)

    def gram_cost(self, rows: Places) -> float:
        return float(rows.size) * self.p**2

    def _dense_tile(self, rows: Places, columns: slice | Places) -> Array:
        where = np.ix_(rows, columns) if isinstance(columns, np.ndarray) else (rows, columns)
        block = _wide(self.stored[where])
        return block if self.scale is None else block * self.scale[columns]

    def column_block(
        self, columns: Places, rows: Places, root: Array, last: Array | None = None
    ) -> ColumnBlock:
        if not self._by_columns or self.stored.dtype != np.float64:
            return super().column_block(columns, rows, root, last)
        from anynorm.design.column_block import ColumnBlock

        # Each column is read where it lies: a fifth of the time of turning rows into columns.
        block = np.empty((columns.size + (last is not None), rows.size))
        factor = root[rows]
        for k, column in enumerate(columns.tolist()):
            np.take(self.stored[:, column], rows, out=block[k], mode="clip")
            block[k] *= factor if self.scale is None else factor * self.scale[column]
        if last is not None:
            block[-1] = last
        indptr = rows.size * np.arange(len(block) + 1)
        return ColumnBlock(indptr, np.empty(0, np.uint32), block.ravel(), rows.size)

    def _pair_gram(self, left: Places, right: Places, weights: Array | None) -> Array:
        if right.size > left.size:
            return self._pair_gram(right, left, weights).T
        other = self._some_columns(right)
        if weights is not None:
            other = weights[:, None] * other
        step = max(16, PRODUCTS_PER_CALL // max(other.size, 1))
        if left is right and weights is None:
            return _square(other, step)
        if step >= left.size:
            return self._some_columns(left).T @ other
        out = np.empty((left.size, right.size))
        for k in range(0, left.size, step):
            out[k : k + step] = self._some_columns(left[k : k + step]).T @ other
            look()
        return out

    def _some_columns(self, columns: Places) -> Array:
        """Some columns, dense; a view where that is possible."""
        if columns.size and self.scale is None and bool((np.diff(columns) == 1).all()):
            return _wide(self.stored[:, columns[0] : columns[-1] + 1])
        return self.dense_columns(columns)

    def row_access(self) -> Array:
        X = self.stored
        if not (X.flags.c_contiguous or X.flags.f_contiguous):
            X = np.ascontiguousarray(X)
        X = X.view()
        X.flags.writeable = False
        return X


def _square(block: Array, step: int) -> Array:
    """block'block, half of it computed, `step` columns at a time."""
    size = block.shape[1]
    if step >= size:
        return block.T @ block
    out = np.empty((size, size))
    for k in range(0, size, step):
        part = slice(k, k + step)
        out[part, : k + step] = block[:, part].T @ block[:, : k + step]
        out[:k, part] = out[part, :k].T
        look()
    return out


def _column_squares(X: Array) -> Array:
    return np.einsum("ij,ij->j", X, X)  # one pass, no tile


def _wide(block: Array) -> Array:
    return np.asarray(block, dtype=np.float64)
