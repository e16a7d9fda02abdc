"""Sums of kernel values, ``sum_j k(x, z_j) w_j``, for any rows x and some fixed rows z_j.

That is what a prediction is, and a product with the kernel matrix.  Kernels of products of dense
rows are evaluated by a matrix product and in place, in blocks that stay in a core's cache from the
product to the sum; other kernels by the function of two sets of rows that they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike, NDArray

from anynorm.design import limits
from anynorm.design.blocks import ranges
from anynorm.design.device import DevicePlace
from anynorm.design.threads import allowed, each, run, share
from anynorm.design.watch import look
from anynorm.kernels.kernel import Array, Kernel, ProductKernel, squared_lengths, within

Block = NDArray[Any]

_CACHED_COLUMNS = 256  # fixed rows that such a block is made with
_ROWS_PER_TASK = 1024  # of a thread, and so the same blocks for any number of threads
_FEATURES, _MOST_ROWS = 64, 4  # so many ask for more rows of a task, up to so many times as many
_MOST_BLOCKS = 64  # of rows, pairs of which are evaluated together; each has a part of all sums
WORTH_COMPILED = 1 << 24  # kernel values from which Numba's own start is paid back


class KernelSums:
    """Sums over the values of a kernel, by its function of two sets of rows; z_j are `columns`.

    Attributes
    ----------
    origin : ndarray or None
        What is taken off all rows first.
    dtype : dtype
        The precision of the kernel values.
    place : DevicePlace or None
        The device where the columns are, None for memory.
    narrows : bool
        Whether kernel values may be float32.
    """

    origin: Array | None = None
    dtype: np.dtype[Any] = np.dtype(np.float64)
    place: DevicePlace | None = None
    narrows: bool = False

    def __init__(self, kernel: Kernel, columns: Any) -> None:
        self.kernel: Any = kernel
        self.columns = columns
        self.width = columns.shape[0]

    def __call__(self, X: Any, weights: Block, *, n_values: int = 0) -> Array:
        """Return the sums in float64, for one vector of weights or for the columns of several.

        Where they are part of a larger task, `n_values` says how many kernel values that has.
        """
        out = np.zeros((X.shape[0], *weights.shape[1:]))
        if self.width == 0:
            return out
        X = X.tocsr() if sp.issparse(X) else X
        n_values = max(n_values, X.shape[0] * self.width)
        tasks = list(ranges(X.shape[0], max(_ROWS_PER_TASK, self._step())))

        def add(k: int) -> None:
            self._add(X[tasks[k]], weights, out[tasks[k]], n_values)

        run(add, len(tasks))
        return out

    def _step(self) -> int:
        """The number of rows of a block."""
        return max(1, limits.VALUES_AT_ONCE // self.width)

    def _add(self, X: Any, weights: Block, out: Array, n_values: int) -> None:
        """Add the sums of some rows to `out`, in a task of that many kernel values."""
        for rows in ranges(X.shape[0], self._step()):
            block = _stored_like(X[rows], self.columns)
            out[rows] += self.kernel.checked_pairs(block, self.columns) @ weights


class DenseSums(KernelSums):
    """The same for kernels of products of dense rows, by matrix products.

    The fixed rows are used without a copy where they have the dtype, float64 or float32, and there
    is no origin.  Sums of blocks are float64.
    """

    narrows = True

    def __init__(
        self,
        kernel: ProductKernel,
        columns: Any,
        dtype: DTypeLike = np.float64,
        origin: Array | None = None,
    ) -> None:
        self.dtype, self.origin = np.dtype(dtype), origin
        super().__init__(kernel, self._prepared(columns))
        self._lengths = squared_lengths(self.columns).astype(self.dtype)

    def among_columns(self, weights: Array, *, n_values: int = 0) -> Array:
        """Return the sums for the fixed rows themselves: each pair is evaluated once."""
        out, width = np.zeros(self.width), min(self.width, _CACHED_COLUMNS)
        finish = self._finisher(max(n_values, self.width**2))
        weights = weights.astype(self.dtype, copy=False)
        blocks = list(ranges(self.width, width))

        def row_of_blocks(k: int) -> Array:
            """What the blocks from the diagonal on, and their mirror images, add to the sums."""
            rows, part = blocks[k], np.zeros(self.width - blocks[k].start)
            store = np.empty(width * width, self.dtype)
            for columns in blocks[k:]:
                shape = rows.stop - rows.start, columns.stop - columns.start
                values = store[: shape[0] * shape[1]].reshape(shape)
                np.matmul(self.columns[rows], self.columns[columns].T, out=values)
                values = finish(values, self._lengths[rows], self._lengths[columns])
                part[: shape[0]] += values @ weights[columns]
                if columns != rows:
                    own = slice(columns.start - rows.start, columns.stop - rows.start)
                    part[own] += weights[rows] @ values
            return part

        for rows, part in zip(blocks, each(row_of_blocks, len(blocks)), strict=True):
            out[rows.start :] += part
        return out

    def _prepared(self, X: Any) -> Block:
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        X = X if self.origin is None else X - self.origin
        return np.asarray(X, dtype=self.dtype)

    def _step(self) -> int:
        return max(
            1, limits.CACHED_BYTES // self.dtype.itemsize // min(self.width, _CACHED_COLUMNS)
        )

    def _finisher(self, n_values: int) -> Callable[..., Block]:
        """What turns products and squared lengths into kernel values."""
        many = n_values >= WORTH_COMPILED
        return self.kernel.of_many_products if many else self.kernel.of_products

    def _add(self, X: Any, weights: Block, out: Array, n_values: int) -> None:
        finish, weights = self._finisher(n_values), weights.astype(self.dtype, copy=False)
        width = min(self.width, _CACHED_COLUMNS)
        store = np.empty(min(self._step(), X.shape[0]) * width, self.dtype)
        for rows in ranges(X.shape[0], self._step()):
            block = self._prepared(X[rows])
            lengths = squared_lengths(block).astype(self.dtype)
            for columns in ranges(self.width, width):
                shape = len(block), columns.stop - columns.start
                values = store[: shape[0] * shape[1]].reshape(shape)
                np.matmul(block, self.columns[columns].T, out=values)
                values = finish(values, lengths, self._lengths[columns])
                out[rows] += values @ weights[columns]


class ExponentialSums(DenseSums):
    """The same for ``exp(-gamma ||x - z||^2)``, many values of which come from compiled code."""

    def __call__(self, X: Any, weights: Block, *, n_values: int = 0) -> Array:
        """Return the sums in float64, for one vector of weights or for the columns of several."""
        if not self._worth(max(n_values, X.shape[0] * self.width)):
            return super().__call__(X, weights, n_values=n_values)
        from anynorm.kernels.exponential_sums import ROWS, exponential_sums

        panels, columns = self._panels()
        own = np.zeros((weights[:1].size, columns.size), self.dtype)
        own[:, : self.width] = weights.reshape(self.width, -1).T
        out = np.zeros((X.shape[0], len(own)))
        p = X.shape[1]
        at_once = allowed() * limits.PRODUCTS_PER_CALL // (columns.size * p)
        n_rows = ROWS * min(max(p // _FEATURES, 1), _MOST_ROWS)  # the panels are read so often less
        X, origin = X.tocsr() if sp.issparse(X) else X, np.zeros(p)
        as_it_is = not sp.issparse(X) and X.dtype == self.dtype and X.flags.c_contiguous
        if not as_it_is:
            at_once = min(at_once, limits.VALUES_AT_ONCE // p)
        elif self.origin is not None:
            origin = self.origin
        for rows in ranges(X.shape[0], max(1, at_once // n_rows) * n_rows):
            look()
            block = X[rows] if as_it_is else self._prepared(X[rows])
            given = (n_rows, block, origin, panels, columns, self._gamma, own, out[rows])
            share(exponential_sums, -(-len(block) // n_rows), *given)
        if np.isnan(out).any():  # beyond the range of the dtype
            return super().__call__(X, weights, n_values=n_values)
        return out.reshape(X.shape[0], *weights.shape[1:])

    def among_columns(self, weights: Array, *, n_values: int = 0) -> Array:
        """Return the sums for the fixed rows themselves: each pair is evaluated once."""
        if not self._worth(max(n_values, self.width**2)):
            return super().among_columns(weights, n_values=n_values)
        from anynorm.kernels.exponential_sums import SIDE, sums_of_pairs

        panels, lengths = self._panels()
        own = np.zeros(lengths.size, self.dtype)
        own[: self.width] = weights
        left, _ = _filled(self.columns, SIDE)
        side = -(-len(left) // (SIDE * _MOST_BLOCKS)) * SIDE
        count = -(-len(left) // side)
        parts = np.empty((count, len(left)))
        at_once = max(1, allowed() * limits.PRODUCTS_PER_CALL // (side**2 * (left.shape[1] + 1)))
        for pairs in ranges(count * (count + 1) // 2, at_once):
            look()
            given = (pairs.start, side, left, lengths, panels, self._gamma, own, parts)
            share(sums_of_pairs, pairs.stop - pairs.start, *given)
        return np.asarray(parts.sum(axis=0)[: self.width])

    def _worth(self, n_values: int) -> bool:
        many = self.width > 0 and n_values > WORTH_COMPILED
        return many and bool(np.isfinite(self._lengths).all())

    @property
    def _gamma(self) -> Any:
        return self.dtype.type(within(self.kernel.gamma, self.dtype))

    def _panels(self) -> tuple[Block, Block]:
        """The fixed rows as panels, filled up, and their squared lengths."""
        from anynorm.kernels.exponential_sums import SIDE
        from anynorm.kernels.product_loops import panels_of

        columns, lengths = _filled(self.columns, SIDE)
        return panels_of(columns), lengths


def _filled(X: Block, multiple: int) -> tuple[Block, Block]:
    """Rows with rows of zeros up to a multiple, and their squared lengths."""
    out = np.zeros((-(-len(X) // multiple) * multiple, X.shape[1]), X.dtype)
    out[: len(X)] = X
    return out, squared_lengths(out).astype(X.dtype)


def _stored_like(X: Any, other: Any) -> Any:
    if sp.issparse(X) == sp.issparse(other):
        return X
    return X.toarray() if sp.issparse(X) else sp.csr_array(X)
