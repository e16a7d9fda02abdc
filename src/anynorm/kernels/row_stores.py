"""Where rows of a kernel matrix are kept, and what is done with them there.

`MatrixStore` has all of few points in memory, made and used by NumPy; `HostStore` (`host_store.py`)
some of many, made and used by compiled loops; `DeviceStore` has them on the device of X, made and
used by its library.  All offer to `KernelRows` what touches rows: make some of them, take the small
square of rows and columns or other entries, add a combination of them to the scores.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design.blocks import ranges
from anynorm.design.device import VALUES_AT_A_LAUNCH, dtype_of
from anynorm.design.limits import PRODUCTS_PER_CALL, VALUES_AT_ONCE
from anynorm.design.watch import look
from anynorm.kernels import ProductKernel
from anynorm.kernels.device_gram import DeviceGram, DeviceKernel
from anynorm.kernels.gram import Gram
from anynorm.kernels.precision import precision_of

Index = NDArray[np.intp]
Array = NDArray[np.float64]

FEW_POINTS = 600  # whose matrix, 3 MB, takes less time than Numba to start; beyond, rows are faster


class RowStore(Protocol):
    """What `KernelRows` asks of a store; slots are the places of rows in it.

    Attributes
    ----------
    dtype : dtype
        The type of the entries.
    error : float
        How far an entry may be from the kernel's own value.
    own_bytes : int
        The memory that is needed besides that of the rows.
    together : int
        How many rows, from a multiple of it on, are to be made at once where all of them fit.
    buffer : array
        The memory of the rows, flat.
    in_turn : bool
        Whether what is in a row may depend on those made with it, so that problems that share rows
        have to be solved one after the other to have the same bits in every run.
    speed : float
        About how many times as fast as by one core rows are made and used.
    """

    dtype: np.dtype[Any]
    error: float
    own_bytes: int
    together: int
    buffer: Any
    in_turn: bool
    speed: float

    def open(self, capacity: int, buffer: Any) -> None:
        """Take memory for so many rows, or that of a buffer, and rows of its type."""

    def prepare(self) -> None:
        """Do what is to be done before the first rows are made; a time limit may end it."""

    def make(self, index: Index, slots: Index, together: int) -> None:
        """Put the rows `index` into slots, so many of them made `together`."""

    def square(self, slots: Index, index: Index, known: Array, place: Index) -> Array:
        """Return K[index, index] in float64; ``known[place[i], place[j]]`` need not be read."""

    def add(self, scores: Array, slots: Index, weights: Array) -> None:
        """Add the combination of rows to the scores."""

    def matrix(self, slots: Index | None) -> NDArray[Any]:
        """Return the rows in these slots, or in all: the store's own, or a copy."""

    def exchange(self, some: Index, others: Index) -> bool:
        """Exchange the rows in some slots with those in others; False where they cannot move."""

    def take(self, slots: Index, columns: Index, out: NDArray[Any]) -> None:
        """Put some columns of rows into `out`."""

    def compact(self, slots: Index, columns: Index) -> bool:
        """Move rows and columns (both ascending) to the beginning of the buffer, if that pays."""


def store_of(gram: Gram, exact: bool) -> RowStore:
    """Return a store for the rows of a kernel matrix, where its points are."""
    if isinstance(gram, DeviceGram):
        return DeviceStore(gram, exact)
    if _is_small(gram):
        return MatrixStore(gram)
    from anynorm.kernels.host_store import HostStore  # imports Numba: where there are many points

    return HostStore(gram, exact)


def _is_small(gram: Gram) -> bool:
    """Whether a kernel of the library's own makes the whole matrix in a moment."""
    if gram.n > FEW_POINTS:
        return False
    if gram.X is None:
        return True
    n_products = gram.n**2 * gram.X.shape[1]
    return isinstance(gram.kernel, ProductKernel) and n_products <= PRODUCTS_PER_CALL


class MatrixStore:
    """All rows of few points, in float64: one product of matrices, and no compiled loop."""

    in_turn, speed, error, own_bytes = False, 1.0, 0.0, 0
    dtype = np.dtype(np.float64)

    def __init__(self, gram: Gram) -> None:
        self._gram, self.together, self.buffer = gram, gram.n, None
        self._rows = np.empty((0, gram.n))

    def open(self, capacity: int, buffer: Any) -> None:
        """Take no memory: the matrix brings its own."""

    def prepare(self) -> None:
        """Make the matrix, symmetric to the last bit."""
        if not len(self._rows):
            gram, X = self._gram, self._gram.X
            if sp.issparse(X) and X.shape[0] * X.shape[1] <= VALUES_AT_ONCE:
                gram = Gram(gram.kernel, X.toarray(), gram.origin)  # the very digits of dense rows
            K = gram.block(slice(None), slice(None))
            self._rows = np.maximum(K, K.T)

    def take_over(self, other: MatrixStore, kept: Index) -> None:
        """Take the rows and columns kept of another matrix."""
        self._rows = other._rows.take(kept, axis=0).take(kept, axis=1)

    def make(self, index: Index, slots: Index, together: int) -> None:
        """Leave rows, which are all there, in their places."""
        assert np.array_equal(index, slots)

    def square(self, slots: Index, index: Index, known: Array, place: Index) -> Array:
        """Return K[index, index]."""
        return np.asarray(self._rows.take(slots, axis=0).take(index, axis=1))

    def add(self, scores: Array, slots: Index, weights: Array) -> None:
        """Add the combination of rows to the scores."""
        # All of the matrix is read in less time than some of its rows are copied.
        scores += self._rows @ np.bincount(slots, weights, len(self._rows))

    def matrix(self, slots: Index | None) -> NDArray[Any]:
        """Return all rows, or a copy of some."""
        return self._rows if slots is None else self._rows.take(slots, axis=0)

    def exchange(self, some: Index, others: Index) -> bool:
        """Move nothing: rows are in their places."""
        return False

    def take(self, slots: Index, columns: Index, out: NDArray[Any]) -> None:
        """Put some columns of rows into `out`."""
        out[:] = self._rows.take(slots, axis=0).take(columns, axis=1)

    def compact(self, slots: Index, columns: Index) -> bool:
        """Move nothing: there is one matrix."""
        return False

    def scores(self, beta: Array, rows: Index | slice) -> Array:
        """Return ``(K @ beta)[rows]``, for a vector or for the columns of a matrix."""
        return np.asarray((self._rows @ beta)[rows])  # a copy of rows would take longer


class DeviceStore:
    """Rows on a device; scores, weights and squares come from NumPy and go back to it."""

    together = 1
    in_turn = True

    def __init__(self, gram: DeviceGram, exact: bool) -> None:
        self._gram, self._n, self._place = gram, gram.n, gram.X.place
        self.speed = self._place.speed
        dtype, self.error, narrow = precision_of(gram, exact)
        self.dtype = np.dtype(dtype)
        kind = np.float32 if narrow else np.float64
        self._values = DeviceKernel(gram.kernel, self._place, kind, gram.origin)
        self._points: Any = None
        width = gram.X.p + 2
        self.own_bytes = 2 * gram.n * width * self._values.dtype.itemsize

    def open(self, capacity: int, buffer: Any) -> None:
        """Take memory for so many rows, or that of a buffer."""
        n_bytes = capacity * self._n * self.dtype.itemsize
        if buffer is None:
            remedy = "Lower cache_size, or free memory of that device."
            with self._place.room_for(n_bytes, "the rows of the kernel matrix", remedy):
                buffer = self._place.empty(capacity * self._n, self.dtype)
        self.buffer, self.dtype = buffer, dtype_of(buffer)
        self._rows = self._place.xp.reshape(buffer[: capacity * self._n], (capacity, self._n))

    def prepare(self) -> None:
        """Arrange the points for products."""
        if self._points is None:
            self._points = self._values.points(self._gram.X)

    def make(self, index: Index, slots: Index, together: int) -> None:
        """Put the rows `index` into slots."""
        self.prepare()
        for some in ranges(len(index), max(1, 4 * VALUES_AT_A_LAUNCH // self._n)):
            look()
            left = self._points.part(self._place, index[some])
            block = self._values.values(left, self._points)
            self._place.put_rows(self._rows, slots[some], self._place.astype(block, self.dtype))

    def square(self, slots: Index, index: Index, known: Array, place: Index) -> Array:
        """Return K[index, index], symmetric to the last bit."""
        found = self._place.entries(self._rows, slots[:, None], index[None, :])
        lower = np.tril(self._place.host(found).astype(np.float64))
        return lower + np.tril(lower, -1).T

    def add(self, scores: Array, slots: Index, weights: Array) -> None:
        """Add the combination of rows to the scores, summed in float64."""
        for some in ranges(len(slots), max(1, 4 * VALUES_AT_A_LAUNCH // self._n)):
            rows = self._place.astype(self._place.rows(self._rows, slots[some]), np.float64)
            sums = self._place.xp.matmul(self._place.put(weights[some]), rows)
            scores += self._place.host(sums)

    def matrix(self, slots: Index | None) -> NDArray[Any]:
        """Return a copy of rows in memory."""
        rows = self._rows if slots is None else self._place.rows(self._rows, slots)
        return np.asarray(self._place.host(rows))

    def exchange(self, some: Index, others: Index) -> bool:
        """Move nothing: rows are copied from the device in any order."""
        return False

    def take(self, slots: Index, columns: Index, out: NDArray[Any]) -> None:
        """Put some columns of rows into `out`."""
        for some in ranges(len(slots), max(1, VALUES_AT_A_LAUNCH // max(1, len(columns)))):
            places = slots[some][:, None], columns[None, :]
            out[some] = self._place.host(self._place.entries(self._rows, *places))

    def compact(self, slots: Index, columns: Index) -> bool:
        """Move nothing: rows of fewer points are made in less time than moved."""
        return False
