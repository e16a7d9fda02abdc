"""X on a device: products, norms and Gram matrices are made there, in float64, block by block.

Vectors come from NumPy and go back to it.  What a method wants to see of X itself, some rows or
columns, is copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from anynorm.design.blocks import ranges
from anynorm.design.device import VALUES_AT_A_LAUNCH, DeviceArray, DevicePlace, dtype_of, to_host
from anynorm.design.interface import Array, Design, Places, Tile
from anynorm.design.watch import look


class DeviceDesign(Design):
    """Rows and columns of a dense array on a device.

    Examples
    --------
    >>> import array_api_strict
    >>> import numpy as np
    >>> from anynorm.design import design_of
    >>> X = design_of(array_api_strict.asarray([[1.0, 2.0], [3.0, 4.0]]))
    >>> X.matvec(np.ones(2)), X[np.array([1])].dense()
    (array([3., 7.]), array([[3., 4.]]))
    """

    sparse = False

    def __init__(
        self, X: DeviceArray, scale: Array | None = None, place: DevicePlace | None = None
    ) -> None:
        super().__init__(X.shape, scale)
        self.place = DevicePlace.of(X) if place is None else place
        self.stored, self.dtype = X, dtype_of(X)

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, rows: Any) -> DeviceDesign:
        return DeviceDesign(self.place.rows(self.stored, rows), self.scale, self.place)

    def shifted(self, origin: Array) -> DeviceDesign:
        """A copy in float64, less a row."""
        return DeviceDesign(self.wide() - self.place.put(origin), self.scale, self.place)

    def wide(self, rows: Any = slice(None)) -> DeviceArray:
        """Some rows before scaling in float64, where they are."""
        return self.place.astype(self.place.rows(self.stored, rows), np.float64)

    def variance(self, weights: Array | None) -> float:
        """The variance of all entries, rows counted as often as they weigh."""
        w = np.ones(self.n) if weights is None else weights
        size = float(w.sum()) * self.p
        mean = float(self.rmatvec(w).sum()) / size
        xp, total = self.place.xp, 0.0
        for part in self._parts(self.n):
            squares = xp.sum((self.wide(part) - mean) ** 2, axis=1)
            total += float(xp.sum(squares * self.place.put(w[part])))
        return total / size

    def _parts(self, n_rows: int) -> Iterator[slice]:
        for part in ranges(n_rows, max(1, VALUES_AT_A_LAUNCH // max(1, self.p))):
            look()
            yield part

    def _scaled_rows(self, rows: Any, center: Array | None = None) -> DeviceArray:
        block = self.wide(rows)
        if self.scale is not None:
            block = block * self.place.put(self.scale)
        return block if center is None else block - self.place.put(center)

    # ------------------------------------------------------------ what a storage brings

    def tiles(self, *, small: bool = True) -> Iterator[Tile]:
        for part in self._parts(self.n):
            yield Tile(part, slice(None), to_host(self.wide(part)))

    def take_rows(self, rows: Places) -> DeviceDesign:
        return self[rows]

    def take_columns(self, columns: Places) -> DeviceDesign:
        scale = None if self.scale is None else self.scale[columns]
        return DeviceDesign(self.place.columns(self.stored, columns), scale, self.place)

    def scaled(self, scale: Array | None) -> DeviceDesign:
        return DeviceDesign(self.stored, scale, self.place)

    def dense_rows(self, rows: Places) -> Array:
        return to_host(self._scaled_rows(rows))

    def dense_columns(self, columns: Places) -> Array:
        block = to_host(self.place.columns(self.stored, columns)).astype(np.float64)
        return block if self.scale is None else block * self.scale[columns]

    def entries_at(self, rows: Places, columns: Places) -> Array:
        return to_host(self.place.entries(self.stored, rows, columns)).astype(np.float64)

    def entries(self, rows: Places | None = None) -> float:
        return float(self.n if rows is None else rows.size) * self.p

    def column_entries(self) -> Array:
        return np.full(self.p, self.n)

    def gram_cost(self, rows: Places) -> float:
        return float(rows.size) * self.p**2

    # ------------------------------------------------------------ products, where X is

    def _times(self, w: Array) -> Array:
        xp, own = self.place.xp, self.place.put(w)
        parts = [xp.matmul(self.wide(part), own) for part in self._parts(self.n)]
        return to_host(xp.concat(parts)) if parts else np.zeros((0, *w.shape[1:]))

    def _transposed_times(self, a: Array) -> Array:
        out: Any = np.zeros((self.p, *a.shape[1:]))
        own, total = self.place.put(a), None
        for part in self._parts(self.n):
            product = self.place.xp.matmul(self.wide(part).T, own[part, ...])
            total = product if total is None else total + product
        return out if total is None else to_host(total)

    def row_norms_squared(self) -> Array:
        xp = self.place.xp
        parts = [xp.sum(self._scaled_rows(part) ** 2, axis=1) for part in self._parts(self.n)]
        return to_host(xp.concat(parts)) if parts else np.zeros(0)

    def column_norms_squared(
        self, weights: Array | None = None, *, rows: Places | None = None
    ) -> Array:
        every = np.arange(self.n) if rows is None else rows
        weights = np.ones(every.size) if weights is None else weights
        out = np.zeros(self.p)
        for part in self._parts(every.size):
            squares = self._scaled_rows(every[part]) ** 2
            out += to_host(self.place.xp.matmul(self.place.put(weights[part]), squares))
        return out

    def divided(self, by: float) -> DeviceDesign:
        return DeviceDesign(self.wide() / by, None, self.place)

    def largest_entry(self) -> float:
        xp = self.place.xp
        return max((float(xp.max(xp.abs(self.wide(p)))) for p in self._parts(self.n)), default=0.0)

    def _gram_by_blocks(self, rows: Places, weights: Array, center: Array | None) -> Array:
        total, root = None, np.sqrt(weights)
        for part in self._parts(rows.size):
            block = self._scaled_rows(rows[part], center) * self.place.put(root[part])[:, None]
            product = self.place.xp.matmul(block.T, block)
            total = product if total is None else total + product
        return np.zeros((self.p, self.p)) if total is None else to_host(total)

    def rows_gram(self, rows: Places, others: Places | None = None) -> Array:
        left = self._scaled_rows(rows)
        right = left if others is None else self._scaled_rows(others)
        return to_host(self.place.xp.matmul(left, right.T))

    def columns_gram(
        self, left: Places | None = None, right: Places | None = None, weights: Array | None = None
    ) -> Array:
        out: Any = 0.0
        for part in self._parts(self.n):
            block = self._scaled_rows(part)
            other = block if weights is None else block * self.place.put(weights[part])[:, None]
            block = block if left is None else self.place.columns(block, left)
            other = other if right is None else self.place.columns(other, right)
            out = out + to_host(self.place.xp.matmul(block.T, other))
        return out
