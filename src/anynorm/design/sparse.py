"""X in a CSR or CSC container, with 32- or 64-bit indices, also read-only.

Compiled loops take lists of rows or of columns, so that none are copied.  Rows are walked over in
CSR, chosen columns in CSC; what was not given is made once, when it is first asked for.

Threads share products in parts that depend on the matrix alone.  A product that gathers has a
result for each row of a part, and the same bits as without parts.  One that scatters has a vector
as long as the other side for each part, and these are added up: a few parts at the most.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from anynorm.design.blocks import ranges
from anynorm.design.interface import Array, Design, Matrix, Places, Tile
from anynorm.design.limits import BLOCK_ENTRIES, ENTRIES_PER_TASK, PAIRS_PER_CALL
from anynorm.design.threads import allowed, each, run, share
from anynorm.design.watch import look

if TYPE_CHECKING:
    from anynorm.design.column_block import ColumnBlock, RowReading
    from anynorm.design.views import CentredDesign

Arrays = tuple[Array, Array, Array]

_SPARSE_PACE = 20.0  # a scattered multiplication against one inside BLAS
_GATHERED = 1 << 14  # entries of a part of a compiled loop, some twenty microseconds
_MOST_PARTS = 16  # of a product that scatters
_PER_SUM = 8  # entries of such a part for each number of its sums: these are soon added up


class SparseStorage:
    """A sparse matrix by rows and by columns; shared by all views of it."""

    def __init__(self, given: Matrix) -> None:
        self.given = given
        self._turned: tuple[Matrix, Matrix] | None = None
        self._parts: dict[tuple[str, int, bool], list[tuple[slice, Matrix]]] = {}

    @cached_property
    def by_rows(self) -> Matrix:
        """In CSR."""
        return self.given if self.given.format == "csr" else self.given.tocsr()

    @cached_property
    def by_columns(self) -> Matrix:
        """In CSC."""
        return self.given if self.given.format == "csc" else self.given.tocsc()

    def at_hand(self, *wanted: str) -> Matrix:
        """The matrix "by_rows" or "by_columns", the first of them that is there, else as given."""
        return next((self.__dict__[form] for form in wanted if form in self.__dict__), self.given)

    def transposed(self) -> Matrix:
        """X' as a view, kept: to make one takes longer than a product with a thousand entries."""
        # Columns are gathered, rows scattered: the former is faster where it is there.
        stored = self.at_hand("by_columns", "by_rows")
        if self._turned is None or self._turned[0] is not stored:
            self._turned = stored, stored.T
        return self._turned[1]

    @cached_property
    def row_arrays(self) -> Arrays:
        """The rows as compiled loops take them."""
        return loop_arrays(self.by_rows)

    @cached_property
    def column_arrays(self) -> Arrays:
        """The columns as compiled loops take them."""
        return loop_arrays(self.by_columns)

    @cached_property
    def row_lengths(self) -> Array:
        """How many numbers are stored for each row."""
        return np.diff(self.by_rows.indptr)

    def product(self, v: Array, *, transposed: bool = False) -> Array:
        """X v or X'v, of float64 entries.  Columns are gathered for X'v where they are there."""
        wanted = ("by_columns", "by_rows") if transposed else ("by_rows",)
        stored = self.at_hand(*wanted)
        gathers = (stored.format == "csc") == transposed
        width = stored.shape[transposed] * (v.size // max(1, len(v)))
        count = _gathered_parts(stored) if gathers else _scattered_parts(stored.nnz, width)
        if count == 1 or (gathers and allowed() == 1):
            return np.asarray((self.transposed() if transposed else stored) @ v)
        parts = self._parts_of(stored, count, transposed)
        if gathers:
            return np.concatenate(run(lambda k: parts[k][1] @ v, len(parts)))
        found = each(lambda k: np.asarray(parts[k][1] @ v[parts[k][0]]), len(parts))
        out: Array = next(found)
        for more in found:
            out += more
        return out

    def _parts_of(self, stored: Matrix, count: int, transposed: bool) -> list[tuple[slice, Matrix]]:
        """Views of as many rows or columns each, kept: they take as long to make as to use."""
        key = stored.format, count, transposed
        if key not in self._parts:
            length = len(stored.indptr) - 1
            places = ranges(length, -(-length // count))
            self._parts[key] = [(place, _view(stored, place, transposed)) for place in places]
        return self._parts[key]


def _gathered_parts(stored: Matrix) -> int:
    """How many parts a product has whose results stand side by side."""
    return min(len(stored.indptr) - 1, max(1, int(stored.nnz // ENTRIES_PER_TASK)))


def _scattered_parts(entries: float, width: int) -> int:
    """How many parts a product has that each have sums of their own, of so many numbers."""
    return max(1, min(_MOST_PARTS, int(entries // max(ENTRIES_PER_TASK, _PER_SUM * width))))


def _view(stored: Matrix, places: slice, transposed: bool) -> Matrix:
    """Some rows of a matrix in CSR, or columns of one in CSC, without a copy of their entries."""
    first, last = stored.indptr[places.start], stored.indptr[places.stop]
    count, (n, p), by_rows = places.stop - places.start, stored.shape, stored.format == "csr"
    shape = (count, p) if by_rows else (n, count)
    container = sp.csc_array if by_rows == transposed else sp.csr_array
    part = container(shape[::-1] if transposed else shape, dtype=stored.dtype)
    # Set one by one: the constructor, and with it `.T`, would copy the entries of a part.
    part.indptr = stored.indptr[places.start : places.stop + 1] - first
    part.indices, part.data = stored.indices[first:last], stored.data[first:last]
    return part


def loop_arrays(X: Matrix) -> Arrays:
    """Return indptr as int64, unsigned indices and values: read-only, only indptr a copy.

    Each index type then has one compiled version, and none of them checks for negative positions.
    """
    unsigned = np.uint32 if X.indices.dtype.itemsize == 4 else np.uint64
    arrays = (X.indptr.astype(np.int64), X.indices.view(unsigned), X.data.view())
    for array in arrays:
        array.flags.writeable = False
    return arrays


class SparseDesign(Design):
    """Rows and columns of a sparse matrix."""

    sparse = True

    def __init__(self, storage: SparseStorage, scale: Array | None = None) -> None:
        super().__init__(storage.given.shape, scale)
        self._storage = storage
        self.stored = storage.given

    @property
    def _loops(self) -> Any:
        from anynorm.design import sparse_loops  # imports Numba: only where needed

        return sparse_loops

    @property
    def row_arrays(self) -> Arrays:
        return self._storage.row_arrays

    def scaled(self, scale: Array | None) -> SparseDesign:
        return SparseDesign(self._storage, scale)

    def centred(self, weights: Array | None, centre: bool) -> CentredDesign:
        _ = self._storage.by_columns  # whoever asks for this works on columns
        return super().centred(weights, centre)

    def tiles(self, *, small: bool = True) -> Iterator[Tile]:
        X, every = self._storage.at_hand("by_rows"), slice(None)
        if not small and X.dtype == np.float64:
            yield Tile(every, every, X)
            return
        length, start = len(X.indptr) - 1, 0
        by_columns = X.format == "csc"
        container = sp.csc_array if by_columns else sp.csr_array
        while start < length:
            target = X.indptr[start] + BLOCK_ENTRIES
            stop = max(start + 1, int(np.searchsorted(X.indptr, target, side="right")) - 1)
            first, last = X.indptr[start], X.indptr[stop]
            pointers = X.indptr[start : stop + 1] - first
            shape = (X.shape[0], stop - start) if by_columns else (stop - start, X.shape[1])
            values = np.asarray(X.data[first:last], dtype=np.float64)
            block = container((values, X.indices[first:last], pointers), shape=shape)
            part, start = slice(start, stop), stop
            yield Tile(every, part, block) if by_columns else Tile(part, every, block)

    def matvec(
        self, w: Array, *, rows: Places | None = None, columns: Places | None = None
    ) -> Array:
        w = np.asarray(w, dtype=np.float64)
        if rows is not None and w.ndim == 1:
            out = np.empty(rows.size)
            self._share(self._loops.rows_dot, rows.size, rows, self.to_coef(w), out)
            return out
        if columns is not None and w.ndim == 1:
            from anynorm.design.column_loops import add_columns

            out = np.zeros(self.n)
            coef = w if self.scale is None else self.scale[columns] * w
            add_columns(*self._storage.column_arrays, columns, coef, out)
            return out
        return super().matvec(w, rows=rows, columns=columns)

    def rmatvec(
        self, a: Array, *, rows: Places | None = None, columns: Places | None = None
    ) -> Array:
        a = np.asarray(a, dtype=np.float64)
        if rows is not None and a.ndim == 1:
            return self.to_coef(self._summed(self._loops.add_rows, rows, a))
        if columns is not None and a.ndim == 1:
            from anynorm.design.column_loops import columns_dot

            out = np.empty(columns.size)
            columns_dot(*self._storage.column_arrays, columns, a, out)
            return out if self.scale is None else self.scale[columns] * out
        return super().rmatvec(a, rows=rows, columns=columns)

    def _times(self, w: Array) -> Array:
        wide = self.stored.dtype == np.float64
        return self._storage.product(w) if wide else super()._times(w)

    def _transposed_times(self, a: Array) -> Array:
        wide = self.stored.dtype == np.float64
        return self._storage.product(a, transposed=True) if wide else super()._transposed_times(a)

    def _share(self, function: Any, n_rows: int, *given: Array) -> None:
        """Have threads share a compiled loop with a result for each of so many rows."""
        step = max(1, int(_GATHERED * self.n // max(1.0, self.entries())))
        share(function, -(-n_rows // step), step, *self.row_arrays, *given)

    def _summed(self, function: Any, rows: Places, *given: Array, more: int = 0) -> Array:
        """The sums of a loop over some rows, one for each column and some more."""
        count = _scattered_parts(self.entries(rows), self.p)
        step = -(-max(1, rows.size) // count)
        sums = np.empty((-(-max(1, rows.size) // step), self.p + more))
        share(function, len(sums), step, *self.row_arrays, rows, *given, sums)
        return sums[0] if len(sums) == 1 else sums.sum(axis=0)

    def matvec_by_portions(self, w: Array, portions: list[Array]) -> Array:
        portion_of = np.full(self.p, len(portions), dtype=np.uint8)
        for k, columns in enumerate(portions):
            portion_of[columns] = k
        # The last column collects what belongs to no portion.
        out = np.zeros((self.n, len(portions) + 1))
        self._loops.add_portions(*self.row_arrays, portion_of, self.to_coef(w), out)
        return out[:, :-1]

    def hessian_product(self, rows: Places, weights: Array, w: Array) -> tuple[Array, float]:
        products = self._loops.hessian_products
        out = self._summed(products, rows, weights, self.to_coef(w), more=1)
        return self.to_coef(out[:-1]), float(out[-1])

    def row_norms_squared(self) -> Array:
        if self._storage.at_hand("by_rows").format != "csr" or self.entries() < ENTRIES_PER_TASK:
            return super().row_norms_squared()
        out = np.empty(self.n)
        factors = np.ones(self.p) if self.scale is None else self.scale**2
        self._share(self._loops.row_squares, self.n, factors, out)
        return out

    def column_norms_squared(
        self, weights: Array | None = None, *, rows: Places | None = None
    ) -> Array:
        if rows is None:
            return super().column_norms_squared(weights)
        weights = np.ones(rows.size) if weights is None else weights
        out = self._summed(self._loops.weighted_squares, rows, weights)
        return self.to_coef(self.to_coef(out))

    def take_rows(self, rows: Places) -> SparseDesign:
        return _design(self._storage.at_hand("by_rows")[rows], self.scale)

    def take_columns(self, columns: Places) -> SparseDesign:
        scale = None if self.scale is None else self.scale[columns]
        # In the form that is in use: whoever walks over rows will do so in the part as well.
        return _design(self._storage.at_hand("by_columns", "by_rows")[:, columns], scale)

    def with_rows(self, more: Array) -> SparseDesign:
        return _design(sp.csr_array(sp.vstack([self.stored, more])))

    def beside(self, other: Any) -> SparseDesign:
        return _design(sp.csc_array(sp.hstack([self.stored, other.stored])))

    def divided(self, by: float) -> SparseDesign:
        return _design(self.stored.astype(np.float64) / by)

    def dense_rows(self, rows: Places) -> Array:
        return self._dense(self._storage.by_rows[rows], self.scale)

    def dense_columns(self, columns: Places) -> Array:
        scale = None if self.scale is None else self.scale[columns]
        return self._dense(self._storage.at_hand("by_columns")[:, columns], scale)

    def column(self, j: int) -> Array:
        scale = None if self.scale is None else self.scale[[j]]
        return self._dense(self._storage.by_columns[:, [j]], scale)[:, 0]

    def dense(self) -> Array:
        return self._dense(self.stored, self.scale)

    @staticmethod
    def _dense(part: Matrix, scale: Array | None) -> Array:
        block = part.toarray().astype(np.float64, copy=False)
        return block if scale is None else block * scale

    def entries_at(self, rows: Places, columns: Places) -> Array:
        values = self.stored[rows, columns]
        return np.asarray(values.toarray() if sp.issparse(values) else values, float).ravel()

    def entries(self, rows: Places | None = None) -> float:
        return float(self.stored.nnz if rows is None else self._storage.row_lengths[rows].sum())

    def column_entries(self) -> Array:
        if self.stored.format == "csc":
            return np.diff(self.stored.indptr)
        return np.bincount(self.stored.indices, minlength=self.p)

    def gram_cost(self, rows: Places) -> float:
        return min(_SPARSE_PACE * self._pairs(rows), float(rows.size) * self.p**2)

    def _pairs(self, rows: Places) -> float:
        """Pairs of entries in the same row."""
        return float((self._storage.row_lengths[rows].astype(np.float64) ** 2).sum())

    def _gram(self, rows: Places, weights: Array) -> Array:
        pairs = self._pairs(rows)
        if _SPARSE_PACE * pairs >= float(rows.size) * self.p**2:
            return self._gram_by_blocks(rows, weights, None)
        out = np.zeros((self.p, self.p))
        calls = 1 + int(pairs / PAIRS_PER_CALL)
        for part in np.array_split(np.arange(rows.size), calls):
            self._loops.add_weighted_gram(*self.row_arrays, rows[part], weights[part], out)
            look()
        out += np.tril(out, -1).T
        return out if self.scale is None else out * self.scale[:, None] * self.scale

    def rows_gram(self, rows: Places, others: Places | None = None) -> Array:
        left = self._wide_rows(rows)
        right = (left if others is None else self._wide_rows(others)).T
        out = np.empty((rows.size, right.shape[1]))
        pairs = left.nnz * right.nnz / max(1, self.p)
        step = max(1, int(rows.size * PAIRS_PER_CALL / max(pairs, 1.0)))
        for part in ranges(rows.size, step):
            out[part] = (left[part] @ right).toarray()
            look()
        return out

    def _wide_rows(self, rows: Places) -> Matrix:
        block = self._storage.at_hand("by_rows")[rows].astype(np.float64, copy=False)
        return block if self.scale is None else block @ sp.diags_array(self.scale)

    def columns_gram(
        self, left: Places | None = None, right: Places | None = None, weights: Array | None = None
    ) -> Array:
        first, second = self._wide_columns(left), self._wide_columns(right)
        if weights is not None:
            second = sp.diags_array(weights) @ second
        return (first.T @ second).toarray()

    def _wide_columns(self, columns: Places | None) -> Matrix:
        block = self._storage.by_columns if columns is None else self.take_columns(columns).stored
        block = block.astype(np.float64, copy=False)
        if self.scale is None:
            return block
        return block @ sp.diags_array(self.scale if columns is None else self.scale[columns])

    def row_access(self) -> Arrays:
        X = self._storage.by_rows
        if X.has_canonical_format:
            return self.row_arrays
        X = X.copy()
        X.sum_duplicates()
        return loop_arrays(X)

    def column_block(
        self, columns: Places, rows: Places, root: Array, last: Array | None = None
    ) -> ColumnBlock:
        from anynorm.design.column_block import ColumnBlock
        from anynorm.design.column_loops import gather_columns

        indptr, indices, values = self._storage.column_arrays
        place = np.full(self.n, -1, dtype=np.int32 if self.n < 1 << 31 else np.int64)
        place[rows] = np.arange(rows.size)
        room = int((indptr[columns + 1] - indptr[columns]).sum())
        more = 0 if last is None else rows.size
        out_indptr = np.zeros(columns.size + 1 + (more > 0), dtype=np.int64)
        out_indices = np.empty(room + more + 1, dtype=indices.dtype)  # one more: written, not kept
        out_values = np.empty(room + more + 1)
        squares = np.empty(columns.size)
        gather_columns(
            indptr,
            indices,
            values,
            columns,
            place,
            root,
            out_indptr,
            out_indices,
            out_values,
            squares,
        )
        if last is not None:
            stored = int(out_indptr[columns.size])
            out_indices[stored : stored + more] = np.arange(rows.size)
            out_values[stored : stored + more] = last
            out_indptr[-1] = stored + more
            return ColumnBlock(out_indptr, out_indices, out_values, rows.size)
        block = ColumnBlock(out_indptr, out_indices, out_values, rows.size)
        block.source = self._row_source(columns, rows, root, int(out_indptr[-1]))
        block.squares = squares
        return block

    def _row_source(
        self, columns: Places, rows: Places, root: Array, stored: int
    ) -> RowReading | None:
        """The rows of a column block of so many entries, where X has rows."""
        from anynorm.design.column_block import RowReading, RowsInOrder

        if self._storage.at_hand("by_rows").format != "csr":
            return None

        def chosen() -> RowsInOrder:
            from anynorm.design.column_loops import gather_rows

            place = np.full(self.p, -1, dtype=np.int32 if self.p < 1 << 31 else np.int64)
            place[columns] = np.arange(columns.size)
            starts = np.empty(rows.size + 1, dtype=np.int64)
            places = np.empty(stored + 1, dtype=np.uint32)  # one more: written, not kept
            entries = np.empty(stored + 1, dtype=np.float32)
            gather_rows(*self.row_arrays, rows, root, place, starts, places, entries)
            return RowsInOrder(starts, places, entries)

        return RowReading(self.entries(rows), chosen)


def _design(stored: Matrix, scale: Array | None = None) -> SparseDesign:
    return SparseDesign(SparseStorage(stored), scale)
