"""Rows of the kernel matrix on demand: what a block solver needs of it, and nothing else.

Few operations are all that touches n-long rows of K: `load` some of them, take the small `square`
of those rows and columns or other `entries`, and `add` a combination of them to the scores.
Where rows are, in memory or on a device, is a matter of the store (`row_stores.py`).

Rows are float32, made by matrix products many at a time, and kept within a limit of bytes; those
not used for the longest time make room.  The whole matrix of few points is kept, in float64, as
nobody misses its memory.  Scores are float64.

Problems that share rows are solved in any order, or at the same time: nothing here that a problem
can see depends on what others have loaded.  On a device they take turns (`in_turn`): its products
are not the same bits in any company.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anynorm.design.blocks import ranges
from anynorm.design.device import dtype_of
from anynorm.design.watch import look
from anynorm.kernels.gram import Gram
from anynorm.kernels.row_stores import MatrixStore, store_of

Index = NDArray[np.intp]
Array = NDArray[np.float64]

_LEAST_ROWS = 64  # for each problem, however small the limit
_FEW_POINTS = 300  # up to which float64 rows cost next to nothing
_AT_A_TIME = 256  # rows that are made in one piece where all are wanted
_LITTLE_BYTES = 1 << 24  # that nobody misses, whatever the limit


def distinct(index: Index) -> Index:
    """Return the different numbers among some, ascending: of few, sooner than by `numpy.unique`.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.rows import distinct
    >>> distinct(np.array([3, 1, 3]))
    array([1, 3])
    """
    index = np.sort(index)
    new = np.ones(len(index), dtype=bool)
    np.not_equal(index[1:], index[:-1], out=new[1:])
    return index[new]


class KernelRows:
    """float32 rows of a kernel matrix, at most `max_bytes` of them, shared by several problems.

    A few rows are kept in any case.  `sharers` says how many problems there are, `holders` how many
    of them may hold rows at the same time; `exact` rows are float64.  A flat `buffer` is used
    instead of new memory, and so is a `spare` one if it is of the rows' type.

    Attributes
    ----------
    n : int
        The number of rows and columns.
    capacity, block_rows : int
        How many rows fit, and how many of them one problem may hold (not by the holders: it must
        be the same for any number of threads).
    entry_error : float
        How far entries of the rows may be from those of the kernel.
    buffer : array
        Their memory, which those of another kernel may have afterwards.
    in_turn : bool
        Whether problems that share these rows are to be solved one after the other.
    speed : float
        About how many times as fast as by one core rows are made and used.
    """

    def __init__(
        self,
        gram: Gram,
        max_bytes: int,
        *,
        sharers: int = 1,
        holders: int = 1,
        exact: bool = False,
        buffer: Any = None,
        spare: Any = None,
    ) -> None:
        self.gram, self.n, self._sharers = gram, gram.n, sharers
        exact = exact or self.n <= _FEW_POINTS
        self._store, self._max_bytes = store_of(gram, exact), int(max_bytes)
        self.entry_error = self._store.error
        row_bytes = self.n * self._store.dtype.itemsize
        fits = (int(max_bytes) - self._store.own_bytes) // max(1, row_bytes)
        if spare is not None and dtype_of(spare) == self._store.dtype:
            buffer = spare
        if isinstance(self._store, MatrixStore):  # small blocks are best for those who share rows
            fits = self.n
        elif buffer is not None:
            fits = buffer.shape[0] // self.n
        self.block_rows = int(min(self.n, max(fits // sharers, _LEAST_ROWS)))
        self.capacity = int(min(self.n, max(fits, self.block_rows * holders)))
        self._together = self._store.together if fits >= self.n else 1
        self._store.open(self.capacity, buffer)
        self.buffer = self._store.buffer
        self.in_turn, self.speed = self._store.in_turn, self._store.speed
        self._slot_of = np.full(self.n, -1, np.intp)
        self._row_in = np.full(self.capacity, -1, np.intp)
        self._used = np.zeros(self.capacity, np.int64)
        self._pins = np.zeros(self.capacity, np.int32)
        self._clock, self._n_filled, self._lock = 0, 0, threading.Lock()
        self._by_age, self._age = np.empty(0, np.intp), 0

    def in_float64(self) -> KernelRows:
        """The same kernel with float64 rows, for one problem alone."""
        return KernelRows(self.gram, self._max_bytes, exact=True)

    def for_part(self, gram: Gram) -> KernelRows:
        """Rows of the kernel of a part, in memory of their own: the share of one problem."""
        return KernelRows(gram, self._max_bytes // self._sharers)

    def can_shrink(self) -> bool:
        """Whether `shrunk` may be called: rows of one problem alone, and made from points."""
        fast = not self.are_exact or isinstance(self._store, MatrixStore)
        return self._sharers == 1 and self.gram.X is not None and fast

    def shrunk(self, kept: Index) -> KernelRows:
        """The kernel of the rows kept (ascending), in the same memory; what was loaded goes along.

        These rows here may be forgotten.  The shrunk ones must not be used once others are loaded.
        """
        own = np.full(self.n, -1, np.intp)
        own[kept] = np.arange(len(kept))
        slots = np.flatnonzero(own[self._row_in[: self._n_filled]] >= 0)
        names = own[self._row_in[slots]]
        part = KernelRows(self.gram.part(kept), 0, exact=self.are_exact, buffer=self.buffer)
        if isinstance(part._store, MatrixStore):
            if isinstance(self._store, MatrixStore):
                part._store.take_over(self._store, kept)
            return part
        if self._store.compact(slots, kept):
            part._row_in[: len(slots)], part._slot_of[names] = names, np.arange(len(slots))
            part._n_filled = len(slots)
        self._slot_of[:], self._row_in[:], self._n_filled = -1, -1, 0
        self._by_age = self._by_age[:0]
        return part

    @property
    def are_exact(self) -> bool:
        """Whether the rows are float64."""
        return bool(self._store.dtype == np.float64)

    def load(self, index: Index) -> Index:
        """Return the slots of these rows, which stay theirs until `release`."""
        with self._lock:
            self._clock += 1
            held = self._slot_of[index]
            missing = distinct(index[held < 0])
            held = held[held >= 0]
            self._used[held] = self._clock
            self._pins[held] += 1  # once for a row, however often it is there
            if len(missing):
                self._place(self._with_companions(missing))
                self._pins[self._slot_of[missing]] = 1
            return self._slot_of[index]

    def release(self, slots: Index) -> None:
        """Let go of loaded rows."""
        with self._lock:
            self._pins[slots] -= 1

    def _with_companions(self, missing: Index) -> Index:
        """Rows with those that are made together with them, for which there is room."""
        size = self._together
        if size == 1:
            return missing
        firsts = np.unique(missing // size) * size
        rows = (firsts[:, None] + np.arange(size)).ravel()
        return rows[rows < self.n]

    def _place(self, missing: Index) -> None:
        self._store.prepare()  # which a time limit may end, before anything is changed here
        slots = self._free_slots(len(missing))
        if len(slots) < len(missing):
            raise MemoryError(
                "too few kernel rows fit into the cache for the problems solved at once; raise "
                "cache_size or lower n_jobs"
            )
        gone = self._row_in[slots]
        self._slot_of[gone[gone >= 0]] = -1
        self._store.make(missing, slots, self._together)
        self._row_in[slots], self._slot_of[missing] = missing, slots
        self._used[slots] = self._clock

    def _free_slots(self, count: int) -> Index:
        """Slots that were never used, and then those that nobody holds, the oldest first."""
        fresh = np.arange(self._n_filled, min(self._n_filled + count, self.capacity))
        self._n_filled += len(fresh)
        slots = [fresh, self._oldest(count - len(fresh))]
        missing = count - len(fresh) - len(slots[1])
        if missing:
            idle = np.flatnonzero(self._pins[: self._n_filled - len(fresh)] == 0)
            idle = np.setdiff1d(idle, slots[1], assume_unique=True)
            self._by_age, self._age = idle[np.argsort(self._used[idle])], self._clock
            slots.append(self._oldest(missing))
        return np.concatenate(slots)

    def _oldest(self, count: int) -> Index:
        """The next slots of those put in order before, but for those used or held since."""
        for reach in (2 * count, len(self._by_age)):
            some = self._by_age[:reach]
            good = np.flatnonzero((self._used[some] <= self._age) & (self._pins[some] == 0))
            if len(good) >= count:
                self._by_age = self._by_age[good[count - 1] + 1 if count else 0 :]
                return some[good[:count]]
        self._by_age = some[:0]
        return some[good]

    def square(self, slots: Index, index: Index, known: Array, place: Index) -> Array:
        """Return K[index, index] of loaded rows, in float64.

        ``known[place[i], place[j]]`` are entries known from before; a place of -1 has none.
        """
        return self._store.square(slots, index, known, place)

    def add(self, scores: Array, slots: Index, weights: Array) -> None:
        """Add the combination of loaded rows to the scores."""
        self._store.add(scores, slots, weights)

    def add_any(self, scores: Array, index: Index, weights: Array) -> None:
        """Add the combination of any rows, loaded part after part, to the scores."""
        for part, slots in self._loaded_parts(index):
            self.add(scores, slots, weights[part])

    def _loaded_parts(self, index: Index) -> Iterator[tuple[slice, Index]]:
        """Parts of any rows with their slots, which are theirs until the next part."""
        for start in range(0, len(index), self.block_rows):
            part = slice(start, start + self.block_rows)
            slots = self.load(index[part])
            try:
                yield part, slots
            finally:
                self.release(slots)

    def entries(self, index: Index, columns: Index, kind: Any) -> NDArray[Any]:
        """Return ``K[index, columns]`` as an array of a kind, from the rows `index`.

        Entries asked for in float64 come from the kernel itself.
        """
        if kind == np.float64 and not self.are_exact:
            return self.gram.block(index, columns)
        out = np.empty((len(index), len(columns)), kind)
        for part, slots in self._loaded_parts(index):
            self._store.take(slots, columns, out[part])
        return out

    @property
    def all_fit(self) -> bool:
        """Whether there is room for all rows."""
        return self.capacity >= self.n

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the rows."""
        return self._store.dtype

    @property
    def matrix_bytes(self) -> int:
        """What `matrix` takes on top of the rows, if it copies them."""
        return 0 if self._sharers == 1 else self.n**2 * self.dtype.itemsize

    def matrix(self, first: Index) -> tuple[NDArray[Any], Index]:
        """Return all rows, which must fit, in the type that they have, and which row each one is.

        The rows `first` are in the first places.  None is copied where one problem alone has them;
        then they are good until rows are `shrunk`.
        """
        for part in ranges(self.n, _AT_A_TIME):  # whoever watches may end it in between
            look()
            self.release(self.load(np.arange(part.start, part.stop)))
        slots = self.load(np.arange(self.n))
        try:
            if self._sharers == 1 and self._bring_to_front(slots[first]):
                return self._store.matrix(None), self._row_in.copy()
            order = np.concatenate([first, np.delete(np.arange(self.n), first)])
            return self._store.matrix(slots[order]), order
        finally:
            self.release(slots)

    def _bring_to_front(self, slots: Index) -> bool:
        """Exchange rows so that those in some slots are in the first ones, if they can move."""
        count = len(slots)
        later = slots[slots >= count]
        early = np.setdiff1d(np.arange(count), slots)
        if not self._store.exchange(early, later):
            return False
        self._row_in[early], self._row_in[later] = self._row_in[later], self._row_in[early]
        self._slot_of[self._row_in] = np.arange(self.n)
        return True

    def room_for(self, n_bytes: int) -> bool:
        """Whether so much memory on top of the rows is little, or within a tenth of the limit."""
        used = self._n_filled if self._sharers == 1 else self.capacity
        filled = used * self._store.dtype.itemsize * self.n
        return n_bytes <= max(1.1 * self._max_bytes - filled, _LITTLE_BYTES)

    def exact_scores(self, beta: Array, rows: Index | slice = slice(None)) -> Array:
        """Return ``(K @ beta)[rows]`` in float64, from the kernel itself.

        Beta may be a matrix, where all rows are asked for.
        """
        if isinstance(self._store, MatrixStore):
            with self._lock:
                self._store.prepare()
            return self._store.scores(beta, rows)
        if beta.ndim == 2:
            return self.gram.matmat(beta)
        return self.gram.matvec(beta, rows, compiled=True)
