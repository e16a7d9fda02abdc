"""Rows of a kernel matrix in memory, made and used by compiled loops."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anynorm.design.blocks import ranges
from anynorm.design.limits import STEPS_PER_CALL
from anynorm.design.threads import share
from anynorm.kernels.gram import Gram
from anynorm.kernels.row_loops import ROWS, STRIP, add_rows, compact, small_square, take_columns
from anynorm.kernels.row_makers import RowMaker

Index = NDArray[np.intp]
Array = NDArray[np.float64]


class HostStore:
    """Some rows, within a limit of memory."""

    in_turn, speed = False, 1.0

    def __init__(self, gram: Gram, exact: bool) -> None:
        self._n, self._maker = gram.n, RowMaker(gram, exact)
        self.dtype, self.error = np.dtype(self._maker.dtype), self._maker.error
        self.own_bytes, self.together = self._maker.own_bytes, self._maker.together

    def open(self, capacity: int, buffer: Any) -> None:
        """Take memory for so many rows, or that of a buffer."""
        self.buffer = np.empty(capacity * self._n, self.dtype) if buffer is None else buffer
        self.dtype = self.buffer.dtype
        self._rows = self.buffer[: capacity * self._n].reshape(capacity, self._n)

    def prepare(self) -> None:
        """Arrange the points."""
        self._maker.prepare()

    def make(self, index: Index, slots: Index, together: int) -> None:
        """Put the rows `index` into slots."""
        self._maker.make(index, self._rows, slots, together)

    def square(self, slots: Index, index: Index, known: Array, place: Index) -> Array:
        """Return K[index, index]."""
        square = np.empty((len(index), len(index)))
        parts = -(-len(index) // ROWS)
        share(small_square, parts, self._rows, slots, index, known, place, square)
        return square

    def add(self, scores: Array, slots: Index, weights: Array) -> None:
        """Add the combination of rows to the scores."""
        most = max(1, STEPS_PER_CALL // max(1, len(slots)) // STRIP) * STRIP
        for part in ranges(self._n, most):
            strips = -(-(part.stop - part.start) // STRIP)
            share(add_rows, strips, self._rows, slots, weights, scores, part.start)

    def matrix(self, slots: Index | None) -> NDArray[Any]:
        """Return all rows, or a copy of some."""
        return self._rows if slots is None else self._rows.take(slots, axis=0)

    def exchange(self, some: Index, others: Index) -> bool:
        """Exchange the rows in some slots with those in others."""
        rows = self._rows
        for part in ranges(len(some), ROWS):
            first, second = some[part], others[part]
            rows[first], rows[second] = rows[second], rows[first]
        return True

    def take(self, slots: Index, columns: Index, out: NDArray[Any]) -> None:
        """Put some columns of rows into `out`."""
        share(take_columns, len(slots), self._rows, slots, columns, out)

    def compact(self, slots: Index, columns: Index) -> bool:
        """Move rows and columns to the beginning of the buffer."""
        compact(self._rows, slots, columns, self.buffer)
        return True
