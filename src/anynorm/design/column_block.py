"""Chosen columns over chosen rows, kept one after the other for compiled loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from anynorm.design.interface import Array, Places
from anynorm.design.limits import ENTRIES_PER_CALL


class RowsInOrder(NamedTuple):
    """The entries of a block row after row: where rows start, their columns and values."""

    starts: Array
    places: Array
    entries: Array


class RowReading(NamedTuple):
    """A matrix that has its rows at hand: how many entries are to be read, and who reads them."""

    read: float
    rows: Callable[[], RowsInOrder]  # in float32


class ColumnBlock:
    """A part of a design, weighted by rows, in float64; dense where `indices` is empty.

    Attributes
    ----------
    arrays : (ndarray, ndarray, ndarray)
        indptr, indices and values as `column_loops` takes them: read-only, since the loops are
        compiled for such alone.
    n, p : int
        The number of rows and of columns.
    source : RowReading or None
        What has the same entries by rows, where there is such.
    squares : ndarray of shape (p,) or None
        ||x_j||^2, where it is known.
    """

    def __init__(self, indptr: Array, indices: Array, values: Array, n: int) -> None:
        self.arrays = indptr.view(), indices.view(), values.view()
        for array in self.arrays:
            array.flags.writeable = False
        self.n, self.p = n, indptr.size - 1
        self.source: RowReading | None = None
        self.squares: Array | None = None

    def matvec(self, coef: Array, *, columns: Places) -> Array:
        """The sum of coef_j x_j over the chosen columns."""
        from anynorm.design.column_loops import add_columns  # imports Numba: only where needed

        out = np.zeros(self.n)
        for piece in self.pieces(columns):
            add_columns(*self.arrays, columns[piece], coef[piece], out)
        return out

    def rmatvec(self, a: Array, *, columns: Places) -> Array:
        """x_j'a for the chosen columns."""
        from anynorm.design.column_loops import columns_dot

        out = np.empty(columns.size)
        for piece in self.pieces(columns):
            columns_dot(*self.arrays, columns[piece], a, out[piece])
        return out

    def column_norms_squared(self) -> Array:
        """||x_j||^2 for every column."""
        if self.squares is not None:
            return self.squares.copy()
        from anynorm.design.column_loops import columns_squares

        out = np.empty(self.p)
        columns_squares(*self.arrays, out)
        return out

    def dense_columns(self, columns: Places) -> Array:
        """The chosen columns as a dense array."""
        _, indices, values = self.arrays
        if not indices.size:
            return values.reshape(self.p, self.n)[columns].T
        return self.stored()[:, columns].toarray()

    def stored(self) -> sp.csc_array:
        """All columns as SciPy has them."""
        indptr, indices, values = self.arrays
        if not indices.size:
            return sp.csc_array(values.reshape(self.p, self.n).T)
        size = indptr[-1]
        return sp.csc_array((values[:size], indices[:size], indptr), shape=(self.n, self.p))

    def pieces(self, columns: Places) -> Iterator[slice]:
        """Slices of `columns` that one call of a loop goes through in a moment."""
        stored = max(1.0, self.arrays[0][-1] / max(1, self.p)) * columns.size
        step = max(1, int(columns.size * ENTRIES_PER_CALL / max(stored, 1.0)))
        for start in range(0, columns.size, step):
            yield slice(start, start + step)
