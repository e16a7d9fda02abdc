"""The lower half of a kernel matrix in block columns, and its Cholesky factor in the same place.

Block column k holds the rows from its diagonal block down, row by row in memory, so that every
part that a product or an update needs is contiguous.  n^2/2 entries are kept, where LAPACK's
in-place factor needs n^2, and all the work is done by matrix products that return to Python
within a fraction of a second.

    factor      L_kk = chol(A_kk),  A_ik <- A_ik L_kk^-T,  A_ij <- A_ij - L_ik L_jk'   (j > k)
    inverse     diag((L L')^-1)_j = ||L^-1 e_j||^2, a block of columns e_j at a time
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf

from anynorm.design.blocks import ranges
from anynorm.design.device import Memory
from anynorm.design.threads import each, run
from anynorm.kernels.device_gram import DeviceGram, DeviceMatrix
from anynorm.kernels.gram import Gram

Array = NDArray[np.float64]

WIDTH = 256  # of a block column
_TALL = 1024  # rows of a tile: tiles stay in the cache while they are made and used


class HalfMatrix:
    """K[kept, kept], half of it, in memory as far as the limit allows.

    The rows and columns `kept` are all where it is None.  Block columns beyond `max_bytes` are
    evaluated at each use.  `tick` is called between pieces of work; it may raise.

    Attributes
    ----------
    n : int
        The number of rows.
    dtype : type
        float64 where that fits, else float32; 0 bytes store nothing.
    exact : bool
        Whether products are those of the float64 kernel.
    place : Memory
        Where columns are.
    """

    place = Memory()

    def __init__(
        self, gram: Gram, kept: NDArray[np.intp] | None, max_bytes: float, tick: Callable[[], None]
    ) -> None:
        self._gram, self._kept, self._tick = gram, kept, tick
        self.n = gram.n if kept is None else len(kept)
        self.starts = range(0, self.n, WIDTH)
        self.dtype: Any = np.float64 if fits_in_full(self.n, max_bytes) else np.float32
        self.panels: list[NDArray[Any] | None] = []
        for start in self.starts:
            size = self._width(start) * (self.n - start) * np.dtype(self.dtype).itemsize
            max_bytes -= size
            self.panels.append(self._made(start) if max_bytes >= 0 else None)
        stored = all(panel is not None for panel in self.panels)
        self.complete = stored and self.dtype == np.float64
        self.exact = self.complete or not any(panel is not None for panel in self.panels)

    def block(self, rows: slice, columns: slice | NDArray[np.intp]) -> Array:
        """Return a block of the kernel, evaluated in float64."""
        if self._kept is None:
            return self._gram.block(rows, columns)
        return self._gram.block(self._kept[rows], self._kept[columns])

    def columns(self, index: NDArray[np.intp]) -> Array:
        """Return whole columns of the kernel, evaluated in float64."""
        out = np.empty((self.n, len(index)))
        for start in range(0, self.n, _TALL):
            rows = slice(start, min(start + _TALL, self.n))
            out[rows] = self.block(rows, index)
            self._tick()
        return out

    def product(self, B: Array) -> Array:
        """Return K @ B for the columns of B, through one half of K."""
        out = np.zeros_like(B)

        def part_of(k: int) -> Array:
            """What block column k and its mirror image add to the rows from its own on."""
            start, part = self.starts[k], np.zeros((self.n - self.starts[k], *B.shape[1:]))
            for rows, columns, tile in self._tiles(k):
                part[rows.start - start : rows.stop - start] += tile @ B[columns]
                if rows.start != columns.start:
                    part[: columns.stop - start] += tile.T @ B[rows]
            return part

        for start, part in zip(self.starts, each(part_of, len(self.starts)), strict=True):
            out[start:] += part
        return out

    def _width(self, start: int) -> int:
        return min(WIDTH, self.n - start)

    def _row_tiles(self, start: int) -> Iterator[slice]:
        """The diagonal block's rows, then the others."""
        below = start + self._width(start)
        yield slice(start, below)
        for first in range(below, self.n, _TALL):
            yield slice(first, min(first + _TALL, self.n))

    def _made(self, start: int) -> NDArray[Any]:
        panel = np.empty((self.n - start, self._width(start)), self.dtype)
        tiles = list(self._row_tiles(start))

        def make(k: int) -> None:
            rows = tiles[k]
            tile = self.block(rows, slice(start, start + panel.shape[1]))
            panel[rows.start - start : rows.stop - start] = tile
            self._tick()

        run(make, len(tiles))
        return panel

    def _tiles(self, k: int) -> Iterator[tuple[slice, slice, Array]]:
        """The tiles of a block column."""
        wide = np.empty((_TALL, WIDTH))  # one buffer: fresh memory costs more than the copy
        start, panel = self.starts[k], self.panels[k]
        columns = slice(start, start + self._width(start))
        for rows in self._row_tiles(start):
            if panel is None:
                tile = self.block(rows, columns)
            else:
                tile = panel[rows.start - start : rows.stop - start]
                if tile.dtype != np.float64:
                    narrow, tile = tile, wide[: len(tile), : tile.shape[1]]
                    np.copyto(tile, narrow)
            yield rows, columns, tile
            self._tick()


def matrix_of(
    gram: Gram, kept: NDArray[np.intp] | None, max_bytes: float, tick: Callable[[], None]
) -> HalfMatrix | DeviceMatrix:
    """Return a kernel matrix for products with it and for columns of it, where its rows are."""
    kind: Any = DeviceMatrix if isinstance(gram, DeviceGram) else HalfMatrix
    return kind(gram, kept, max_bytes, tick)


def fits_in_full(n: int, max_bytes: float) -> bool:
    """Whether half of an n x n matrix of float64 fits."""
    return 4.0 * n * (n + WIDTH) <= max_bytes


class Factor:
    """The Cholesky factor of ``K + diag(d)``, from a complete `HalfMatrix` in float64.

    Unless it is to `keep`, the matrix is gone: its memory is used.  A LinAlgError says that it is
    not positive definite, as far as rounding can tell.
    """

    def __init__(
        self, half: HalfMatrix, diagonal: Array, tick: Callable[[], None], *, keep: bool = False
    ) -> None:
        assert half.complete
        self.n, self.starts, self._tick = half.n, half.starts, tick
        panels = [panel for panel in half.panels if panel is not None]
        self._panels: list[Array] = [panel.copy() for panel in panels] if keep else panels
        if not keep:
            half.panels.clear()
        for k, panel in enumerate(self._panels):
            width, start = panel.shape[1], self.starts[k]
            panel[np.arange(width), np.arange(width)] += diagonal[start : start + width]
        for k in range(len(self._panels)):
            self._eliminate(k)

    def _eliminate(self, k: int) -> None:
        panel = self._panels[k]
        width = panel.shape[1]
        upper, info = dpotrf(panel[:width].T, lower=0)
        if info != 0:
            raise LinAlgError("the matrix is not positive definite")
        panel[:width] = upper.T
        below = panel[width:]
        if len(below):
            dtrsm(1.0, upper, below.T, trans_a=1, overwrite_b=1)
        self._tick()

        def subtract(j: int) -> None:
            other = self._panels[k + 1 + j]
            rest = below[self.starts[k + 1 + j] - self.starts[k] - width :]
            _subtract(rest[: other.shape[1]], rest, other)
            self._tick()

        run(subtract, len(self._panels) - k - 1)

    def solve(self, B: Array) -> Array:
        """Return ``(K + diag(d))^-1 B``."""
        B = np.array(B)
        parts = [slice(s, s + p.shape[1]) for s, p in zip(self.starts, self._panels, strict=True)]
        for part, panel in zip(parts, self._panels, strict=True):
            upper, below = panel[: panel.shape[1]].T, panel[panel.shape[1] :]
            B[part] = dtrsm(1.0, upper, B[part], trans_a=1)
            B[part.stop :] -= below @ B[part]
        for part, panel in zip(reversed(parts), reversed(self._panels), strict=True):
            upper, below = panel[: panel.shape[1]].T, panel[panel.shape[1] :]
            B[part] = dtrsm(1.0, upper, B[part] - below.T @ B[part.stop :])
        return B

    def inverse_diagonal(self) -> Array:
        """Return the diagonal of ``(K + diag(d))^-1``."""
        return np.concatenate([self._column_lengths(k) for k in range(len(self._panels))])

    def _column_lengths(self, k: int) -> Array:
        """||L^-1 e_j||^2 for the columns j of block k, by forward substitution."""
        width = self._panels[k].shape[1]
        W = np.zeros((self.n - self.starts[k], width))
        W[:width] = np.eye(width)
        lengths = np.zeros(width)
        rest = W
        for panel in self._panels[k:]:
            step = panel.shape[1]
            solved = dtrsm(1.0, panel[:step].T, rest[:step], trans_a=1)
            lengths += np.einsum("ij,ij->j", solved, solved)
            rest = rest[step:]
            if len(rest):
                _subtract(np.ascontiguousarray(solved.T), panel[step:], rest)
            self._tick()
        return lengths


def _subtract(left: Array, right: Array, out: Array) -> None:
    """``out -= right @ left.T`` in place, by a product that lets other threads run."""
    for rows in ranges(len(out), _TALL):
        out[rows] -= right[rows] @ left.T
