"""What solvers ask of X, with the sums over tiles and blocks of rows that every storage shares."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from anynorm.design.blocks import ranges
from anynorm.design.limits import BLOCK_ENTRIES, PRODUCTS_PER_CALL, PRODUCTS_PER_TASK
from anynorm.design.scatter import Scatter
from anynorm.design.threads import each
from anynorm.design.unlocked import add_square
from anynorm.design.watch import look

if TYPE_CHECKING:
    from anynorm.design.column_block import ColumnBlock
    from anynorm.design.views import CentredDesign, ConstantColumn

Matrix: TypeAlias = Any
"""A dense 2-D array or a scipy CSR/CSC container, as users give it."""

Array: TypeAlias = np.ndarray
"""Numbers: coefficients, weights of rows, dense parts."""

Places: TypeAlias = np.ndarray
"""Which rows or columns: integers, as `np.flatnonzero` gives them."""


_BAD_SCALE = 1e4  # columns are large from this multiple of the usual length on
_CANCELLED = 1e-3  # of a diagonal entry: what centring may leave before it is done row by row
_PARTIAL_SUMS = 1 << 23  # entries of Gram matrices that threads make at once: 64 MB
_MOST_PARTS = 64  # of a Gram matrix: enough for 16 threads, as one of them adds them up
_GRAM_UPDATES = 20  # of a Gram matrix in a row, before it is summed anew to remove rounding


class Tile(NamedTuple):
    """A piece of X in float64: entries (dense or sparse), and what rows and columns they are of."""

    rows: slice
    columns: slice
    entries: Any

    def squares(self) -> Any:
        """The squared entries, of the same kind."""
        return self.entries.power(2) if hasattr(self.entries, "power") else self.entries**2


class Design(ABC):
    """A matrix of n rows and p columns, each column times its `scale` (None is 1).

    Attributes
    ----------
    shape, n, p : (int, int), int, int
        The size.
    scale : ndarray of shape (p,) or None
        The factors of the columns.
    sparse : bool
        Whether only entries that are not zero are stored, so that rows are walked over one by one
        rather than multiplied in blocks.
    stored : matrix
        What was given; for those who hand X to others.
    compiled : bool
        Whether X is so large that loops over its rows are compiled, whatever Numba's start costs.
    """

    sparse: bool
    compiled: bool = False
    stored: Matrix

    def __init__(self, shape: tuple[int, int], scale: Array | None) -> None:
        self.shape = self.n, self.p = int(shape[0]), int(shape[1])
        self.scale = scale
        self._last_gram: tuple[Array, Array, int] | None = None

    # ------------------------------------------------------------ what a storage brings

    @abstractmethod
    def tiles(self, *, small: bool = True) -> Iterator[Tile]:
        """The matrix before scaling, in float64; `small` tiles may be copied, others are views."""

    @abstractmethod
    def take_rows(self, rows: Places) -> Design:
        """The chosen rows, stored like X."""

    @abstractmethod
    def take_columns(self, columns: Places) -> Design:
        """The chosen columns, stored like X."""

    @abstractmethod
    def dense_rows(self, rows: Places) -> Array:
        """X_J as a dense array in float64."""

    @abstractmethod
    def dense_columns(self, columns: Places) -> Array:
        """X_K, (n, |K|), as a dense array in float64."""

    @abstractmethod
    def scaled(self, scale: Array | None) -> Design:
        """A view whose columns are the stored ones times `scale`."""

    @abstractmethod
    def entries_at(self, rows: Places, columns: Places) -> Array:
        """The stored entries at (rows[k], columns[k])."""

    @abstractmethod
    def entries(self, rows: Places | None = None) -> float:
        """How many numbers are stored, or how many the rows hold."""

    @abstractmethod
    def column_entries(self) -> Array:
        """How many numbers are stored for each column."""

    @abstractmethod
    def gram_cost(self, rows: Places) -> float:
        """Multiplications needed for `weighted_gram`, in units of one inside BLAS."""

    # ------------------------------------------------------------ products

    def to_coef(self, u: Array) -> Array:
        """V u: from weights of the scaled columns to those of the stored ones."""
        return u if self.scale is None else (self.scale * u.T).T

    def from_coef(self, coef: Array) -> Array:
        """From weights of the stored columns to those of the scaled ones, 0 where the scale is."""
        if self.scale is None:
            return coef
        return np.divide(coef, self.scale, out=np.zeros_like(coef), where=self.scale > 0)

    def as_block(self) -> Design:
        """The same, one of many that are asked again and again: loops are sooner compiled."""
        return self

    def matvec(
        self, w: Array, *, rows: Places | None = None, columns: Places | None = None
    ) -> Array:
        """X w; X_J w for some rows, X_K w for as many entries of w as there are columns in K."""
        w = self.to_coef(_spread(np.asarray(w, dtype=np.float64), columns, self.p))
        out = self._times(w)
        return out if rows is None else out[rows]

    def rmatvec(
        self, a: Array, *, rows: Places | None = None, columns: Places | None = None
    ) -> Array:
        """X'a; X_J'a for as many entries of a as there are rows in J, X_K'a for some columns."""
        a = _spread(np.asarray(a, dtype=np.float64), rows, self.n)
        out = self.to_coef(self._transposed_times(a))
        return out if columns is None else out[columns]

    def _times(self, w: Array) -> Array:
        """X w before scaling."""
        products = ((t.rows, t.entries @ w[t.columns]) for t in self.tiles(small=False))
        return _summed(products, (self.n, *w.shape[1:]))

    def _transposed_times(self, a: Array) -> Array:
        """X'a before scaling."""
        products = ((t.columns, t.entries.T @ a[t.rows]) for t in self.tiles(small=False))
        return _summed(products, (self.p, *a.shape[1:]))

    def matvec_by_portions(self, w: Array, portions: list[Array]) -> Array:
        """X_K w_K for every portion K of the columns, as the columns of one array."""
        chosen = np.zeros((self.p, len(portions)))
        for k, columns in enumerate(portions):
            chosen[columns, k] = w[columns]
        return self.matvec(chosen)

    def rmatvec_sizes(self, a: Array, columns: Places) -> Array:
        """``sum_i |x_ij a_i|`` for some columns: the rounding of `rmatvec` is a share of it."""
        out, a = np.empty(columns.size), np.abs(a)
        step = max(1, BLOCK_ENTRIES // max(1, self.n))
        for start in range(0, columns.size, step):
            block = self.dense_columns(columns[start : start + step])
            out[start : start + step] = np.abs(block).T @ a
        return out

    def hessian_product(self, rows: Places, weights: Array, w: Array) -> tuple[Array, float]:
        """X_J' (weights * X_J w), and sum(weights * X_J w)."""
        t = weights * self.matvec(w, rows=rows)
        return self.rmatvec(t, rows=rows), float(t.sum())

    # ------------------------------------------------------------ norms and Gram matrices

    def row_norms_squared(self) -> Array:
        """||x_i||^2 for every row."""
        out = np.zeros(self.n)
        factors = np.ones(self.p) if self.scale is None else self.scale**2
        for tile in self.tiles():
            out[tile.rows] += tile.squares() @ factors[tile.columns]
        return out

    def column_norms_squared(
        self, weights: Array | None = None, *, rows: Places | None = None
    ) -> Array:
        """sum_i weights_i x_ij^2 for every column, over all or some rows."""
        if weights is None:
            weights = np.ones(self.n if rows is None else rows.size)
        full = _spread(weights, rows, self.n)
        out = np.zeros(self.p)
        for tile in self.tiles():
            out[tile.columns] += full[tile.rows] @ tile.squares()
        return self.to_coef(self.to_coef(out))

    def weighted_gram(self, rows: Places, weights: Array, center: Array | None = None) -> Array:
        """(X_J - 1 center')' diag(weights) (X_J - 1 center'), p x p; center the weighted mean."""
        gram = self._updated_gram(rows, weights)
        if center is None:
            return gram.copy()
        return self._centred_gram(gram, rows, weights, center)

    def scatter(self, rows: Places, weights: Array) -> Scatter:
        """The weight, the mean and the centred Gram matrix of some rows, which add up."""
        total = float(weights.sum())
        if total == 0.0:
            return Scatter(0.0, np.zeros(self.p), np.zeros((self.p, self.p)))
        mean = self.rmatvec(weights, rows=rows) / total
        gram = self._gram(rows, weights)
        return Scatter(total, mean, self._centred_gram(gram, rows, weights, mean))

    def _centred_gram(self, gram: Array, rows: Places, weights: Array, center: Array) -> Array:
        """What centring leaves of a Gram matrix; row by row where that is next to nothing."""
        centred = gram - weights.sum() * np.outer(center, center)
        squares = np.diagonal(gram)
        if np.all((np.diagonal(centred) > _CANCELLED * squares) | (squares == 0)):
            return centred
        return self._gram_by_blocks(rows, weights, center)

    def _updated_gram(self, rows: Places, weights: Array) -> Array:
        """X_J' D X_J from the last one by the rows that have changed, where those are few.

        Between two Newton steps few rows enter or leave; what the update loses by rounding is
        corrected by the residual of the true system.
        """
        full = _spread(weights, rows, self.n)
        if self._last_gram is not None:
            gram, last, updates = self._last_gram
            change = full - last
            moved = np.flatnonzero(change)
            if moved.size < 0.5 * rows.size and updates < _GRAM_UPDATES:
                more, less = moved[change[moved] > 0], moved[change[moved] < 0]
                gram = gram + self._gram(more, change[more]) - self._gram(less, -change[less])
                self._last_gram = gram, full, updates + 1
                return gram
        gram = self._gram(rows, weights)
        self._last_gram = gram, full, 0
        return gram

    def _gram(self, rows: Places, weights: Array) -> Array:
        return self._gram_by_blocks(rows, weights, None)

    def _gram_by_blocks(self, rows: Places, weights: Array, center: Array | None) -> Array:
        """The weighted Gram matrix by blocks of dense rows, some blocks to a thread."""
        square, root = max(1, self.p**2), np.sqrt(weights)
        most = min(_MOST_PARTS, max(1, _PARTIAL_SUMS // square))
        least = max(PRODUCTS_PER_TASK // square, -(-rows.size // most))
        parts = list(ranges(rows.size, max(1, least)))
        if len(parts) == 1:
            return self._gram_in_place(rows, root, center)
        step = max(64, 2 * self.p, BLOCK_ENTRIES // max(1, self.p))
        step = max(16, min(step, 2 * PRODUCTS_PER_CALL // square))

        def gram_of(k: int) -> Array:
            out = np.zeros((self.p, self.p))
            for place in ranges(parts[k].stop, step, parts[k].start):
                block = self._weighted_rows(rows[place], root[place], center)
                out += block.T @ block  # which lets other threads run, as a sum in place does not
                look()
            return out

        gram = np.zeros((self.p, self.p))
        for part in each(gram_of, len(parts)):
            gram += part
        return gram

    def _gram_in_place(self, rows: Places, root: Array, center: Array | None) -> Array:
        """The same by one thread, with no second matrix of its size."""
        out = np.zeros((self.p, self.p), order="F")
        # Blocks of p/2 rows keep the sum in the processor's hands without much memory.
        step = max(64, self.p // 2, BLOCK_ENTRIES // max(1, self.p))
        step = max(16, min(step, 2 * PRODUCTS_PER_CALL // max(1, self.p**2)))
        for place in ranges(rows.size if self.p else 0, step):
            block = self._weighted_rows(rows[place], root[place], center)
            add_square(out, np.asfortranarray(block.T))
            look()
        out += np.tril(out, -1).T
        return out

    def _weighted_rows(self, rows: Places, root: Array, center: Array | None) -> Array:
        block = self.dense_rows(rows)
        if center is not None:
            block = block - center
        return block * root[:, None]

    def rows_gram(self, rows: Places, others: Places | None = None) -> Array:
        """X_J X_J', |J| x |J|, or the products of some rows with others."""
        out = np.zeros((rows.size, rows.size if others is None else others.size))
        step = max(1, 4 * BLOCK_ENTRIES // max(1, rows.size))
        for start in range(0, self.p, step):
            part = slice(start, min(start + step, self.p))
            left = self._dense_tile(rows, part)
            out += left @ (left if others is None else self._dense_tile(others, part)).T
            look()
        return out

    def columns_gram(
        self, left: Places | None = None, right: Places | None = None, weights: Array | None = None
    ) -> Array:
        """X_K' D X_L for two choices of columns; None is all of them, D = 1 by default."""
        if left is None and right is None:
            return self._gram(np.arange(self.n), np.ones(self.n) if weights is None else weights)
        if right is None:
            return self.columns_gram(None, left, weights).T
        if left is not None:
            return self._pair_gram(left, right, weights)
        out = np.empty((self.p, right.size))
        step = max(16, PRODUCTS_PER_CALL // max(1, self.n * self.p))
        for start in range(0, right.size, step):
            block = self.dense_columns(right[start : start + step])
            if weights is not None:
                block = weights[:, None] * block
            out[:, start : start + step] = self.rmatvec(block)
            look()
        return out

    def _pair_gram(self, left: Places, right: Places, weights: Array | None) -> Array:
        """X_K' D X_L for columns that are all at hand at once."""
        other = self.dense_columns(right)
        if weights is not None:
            other = weights[:, None] * other
        return self.dense_columns(left).T @ other

    def _dense_tile(self, rows: Places, columns: slice | Places) -> Array:
        """Some rows over some columns, dense."""
        return self.dense_rows(rows)[:, columns]

    # ------------------------------------------------------------ parts and descriptions

    def with_rows(self, more: Array) -> Design:
        """X with dense rows below it, without a scale."""
        return self._in_memory(np.vstack([self.dense(), more]))

    def rows_and(self, rows: Places, more: Array) -> Design:
        """The chosen rows with dense rows below them, without a scale."""
        return self.take_rows(rows).with_rows(more)

    def beside(self, other: Any) -> Design:
        """The columns of X and of a design of the same kind, side by side, without a scale."""
        out = np.empty((self.n, self.p + other.p), order="F")
        out[:, : self.p], out[:, self.p :] = self.dense(), other.dense()
        return self._in_memory(out)

    def divided(self, by: float) -> Design:
        """A copy in float64, every entry divided by a number, of a design without a scale."""
        return self._in_memory(self.dense() / by)

    @staticmethod
    def _in_memory(X: Array) -> Design:
        from anynorm.design.dense import DenseDesign

        return DenseDesign(X)

    def largest_entry(self) -> float:
        """The largest absolute entry before scaling."""
        sizes = (float(abs(tile.entries).max()) for tile in self.tiles() if tile.entries.size)
        return max(sizes, default=0.0)

    def take(self, rows: Places, columns: Places) -> Design:
        """Some rows over some columns, both ascending; dense rows are contiguous."""
        part = self if rows.size == self.n else self.take_rows(rows)
        return part if columns.size == self.p else part.take_columns(columns)

    def thin(self) -> Design:
        """The same matrix, stored sparsely where nearly all of it is zero."""
        return self

    def dense(self) -> Array:
        """X as a dense array in float64, in the order in which it is stored where that is dense."""
        return self.dense_rows(np.arange(self.n))

    def row(self, i: int) -> Array:
        """Row i, dense; for those who ask for many, one after the other."""
        return self.dense_rows(np.array([i]))[0]

    def column(self, j: int) -> Array:
        """Column j, dense; for those who ask for many, one after the other."""
        return self.dense_columns(np.array([j]))[:, 0]

    def dense_transposed(self) -> Array:
        """X' before scaling, dense in float64, rows contiguous; not a copy where X has it so."""
        return np.ascontiguousarray(self.dense().T)

    @cached_property
    def large_columns(self) -> Array:
        """Columns larger than the usual one by orders of magnitude."""
        squares = self.column_norms_squared()
        usual = np.median(squares[squares > 0]) if np.any(squares > 0) else np.inf
        return np.flatnonzero(squares > _BAD_SCALE**2 * usual)

    # ------------------------------------------------------------ what compiled loops walk over

    @property
    def row_arrays(self) -> tuple[Array, Array, Array]:
        """(indptr, indices, values) of the rows before scaling, where these are `sparse`."""
        raise TypeError("the rows of this design are not stored sparsely")

    def row_access(self) -> Any:
        """X as `row_access` reads it: contiguous and read-only."""
        X = self.dense().view()
        X.flags.writeable = False
        return X

    def column_block(
        self, columns: Places, rows: Places, root: Array, last: Array | None = None
    ) -> ColumnBlock:
        """diag(root) X over the chosen columns and rows, and a `last` column, one by one."""
        from anynorm.design.column_block import ColumnBlock

        more = 0 if last is None else 1
        block = np.empty((rows.size, columns.size + more), order="F")
        step = max(1, BLOCK_ENTRIES // max(1, rows.size))
        for start in range(0, columns.size, step):
            chosen = columns[start : start + step]
            block[:, start : start + chosen.size] = self._dense_tile(rows, chosen)
        block *= root[rows, None]
        if last is not None:
            block[:, -1] = last
        indptr = rows.size * np.arange(columns.size + more + 1)
        return ColumnBlock(indptr, np.empty(0, np.uint32), block.ravel(order="F"), rows.size)

    # ------------------------------------------------------------ views

    def centred(self, weights: Array | None, centre: bool) -> CentredDesign:
        """sqrt(weights) (X - 1 m'), m the weighted means or 0; of a design without a scale."""
        from anynorm.design.views import CentredDesign

        return CentredDesign.of(self, weights, centre)

    def with_constant(self, value: float) -> Design | ConstantColumn:
        """X with a last column of this value, X itself where it is 0."""
        from anynorm.design.views import ConstantColumn

        return ConstantColumn(self, value) if value else self


def _spread(values: Array, places: Places | None, length: int) -> Array:
    """Values at their places among zeros; all of them are there where places is None."""
    if places is None:
        return values
    out = np.zeros((length, *values.shape[1:]))
    out[places] = values
    return out


def _summed(parts: Iterator[tuple[slice, Any]], shape: tuple[int, ...]) -> Array:
    """The sum of parts at their places; a first one that is as large as the sum is not copied."""
    out = None
    for place, part in parts:
        if out is None and part.shape == shape:
            out = np.asarray(part)
        else:
            out = np.zeros(shape) if out is None else out
            out[place] += part
    return np.zeros(shape) if out is None else out
