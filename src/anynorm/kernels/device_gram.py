"""Kernel matrices of rows that live on a device: blocks and sums of their values are made there.

A kernel of products is a matrix product and a function of each entry.  In float32 the points carry
the numbers c and e of a `ProductKernel` with them, as those of `row_makers.py`,

    [c x, e(x), 1]'[c z, 1, e(z)] = c^2 x'z + e(x) + e(z) ,

so that nothing but that function is left to do after the product: each further step would read and
write all values once more, which takes as long as the product of a hundred features.  In float64
distances are as accurate as those of NumPy's rows.  A kernel that is a function of two sets of rows
is given arrays of the device's library, and returns one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anynorm.design.blocks import ranges
from anynorm.design.device import VALUES_AT_A_LAUNCH, DeviceArray, DevicePlace, library_of
from anynorm.design.device_design import DeviceDesign
from anynorm.design.watch import look
from anynorm.kernels.gram import Gram
from anynorm.kernels.kernel import (
    ACCURATE,
    EQUAL_ROWS,
    Array,
    Block,
    Kernel,
    ProductKernel,
    finite,
)
from anynorm.kernels.sums import KernelSums

_COLUMNS = 1 << 14  # fixed rows of a block, beyond which its sums are float64


class DevicePoints(NamedTuple):
    """Points as left and right factors of products, and their squared lengths or None."""

    left: DeviceArray
    right: DeviceArray
    lengths: DeviceArray | None

    def part(self, place: DevicePlace, rows: Any) -> DevicePoints:
        """Some of the points."""
        left = place.rows(self.left, rows)
        right = left if self.right is self.left else place.rows(self.right, rows)
        if self.lengths is None:
            return DevicePoints(left, right, None)
        own = (
            self.lengths[rows]
            if isinstance(rows, slice)
            else place.xp.take(self.lengths, place.put(rows, np.int64), axis=0)
        )
        return DevicePoints(left, right, own)


class DeviceKernel:
    """A kernel's values on a device, in one precision.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    place : DevicePlace
        Where the rows are.
    dtype : float32 or float64
        The precision; kernels that are no functions of products are float64 anyway.
    origin : ndarray or None
        What is taken off all rows.
    """

    def __init__(
        self, kernel: Kernel, place: DevicePlace, dtype: DTypeLike, origin: Array | None
    ) -> None:
        self.kernel: Any = kernel
        self.place, self.origin = place, origin
        self._of_products = isinstance(kernel, ProductKernel)
        self.dtype = np.dtype(dtype if self._of_products else np.float64)

    def points(self, X: DeviceDesign) -> DevicePoints:
        """Return rows ready for products."""
        X = X if self.origin is None else X.shifted(self.origin)
        place, xp = self.place, self.place.xp
        if not self._of_products:
            return DevicePoints(X.stored, X.stored, None)
        if self.dtype == np.float64:
            wide = X.wide()
            return DevicePoints(wide, wide, xp.sum(wide * wide, axis=1) * float(EQUAL_ROWS))
        scale, extra = self.kernel.float32_terms(X)
        narrow = place.astype(X.stored * float(scale), np.float32)
        if extra is None:
            return DevicePoints(narrow, narrow, None)
        e = place.put(extra, np.float32)[:, None]
        one = xp.ones_like(e)
        left, right = xp.concat([narrow, e, one], axis=1), xp.concat([narrow, one, e], axis=1)
        return DevicePoints(left, right, None)

    def values(self, left: DevicePoints, right: DevicePoints) -> DeviceArray:
        """Return the kernel of all pairs, where they are."""
        if not self._of_products:
            return self._pairs(left.left, right.right)
        block = self.place.xp.matmul(left.left, right.right.T)
        if left.lengths is None:
            return self.kernel.of_float32_terms(block)
        return self.kernel.of_products(block, left.lengths, right.lengths)

    def _pairs(self, A: DeviceArray, B: DeviceArray) -> DeviceArray:
        """What a function of two sets of rows says, checked."""
        name, shape = self.kernel.name, (A.shape[0], B.shape[0])
        try:
            given = self.kernel.pairs(A, B)
        except (TypeError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"the {name} kernel could not be evaluated for arrays of {self.place}: {error}. "
                "Use functions of that library in it, or give X as a NumPy array."
            ) from error
        if library_of(given) is None or tuple(given.shape) != shape:
            raise ValueError(
                f"the {name} kernel must return an array of {self.place} with one number for each "
                f"pair, of shape {shape}; got {type(given).__name__} of shape "
                f"{tuple(np.shape(given))}"
            )
        return self.place.astype(given, np.float64)


class DeviceSums(KernelSums):
    """Sums of kernel values over fixed rows on a device; those of other rows are copied there.

    Kernel values are of the dtype, sums of more than some thousand of them float64.
    """

    place: DevicePlace

    def __init__(
        self,
        kernel: Kernel,
        columns: DeviceDesign,
        dtype: DTypeLike = np.float64,
        origin: Array | None = None,
    ) -> None:
        super().__init__(kernel, columns)
        self.place, self.origin = columns.place, origin
        self.narrows = isinstance(kernel, ProductKernel)
        self._values = DeviceKernel(kernel, columns.place, dtype, origin)
        self.dtype, self._right = self._values.dtype, self._values.points(columns)

    def __call__(self, X: Any, weights: Block, *, n_values: int = 0) -> Array:
        """Return the sums in float64, as NumPy's, for a vector of weights or several as columns."""
        place, xp = self.place, self.place.xp
        X = X if isinstance(X, DeviceDesign) else DeviceDesign(place.put(X), None, place)
        flat = weights.reshape(self.width, -1)
        parts = list(ranges(self.width, _COLUMNS))
        own = [place.put(flat[columns], self.dtype) for columns in parts]
        right = [self._right.part(place, columns) for columns in parts]
        step = max(1, VALUES_AT_A_LAUNCH // max(1, min(self.width, _COLUMNS)))
        out = []
        for some in ranges(X.n, max(step, VALUES_AT_A_LAUNCH // max(1, X.p))):
            left = self._values.points(X[some])
            for rows in ranges(some.stop - some.start, step):
                look()
                total = place.zeros((rows.stop - rows.start, flat.shape[1]))
                few = left.part(place, rows)
                for k in range(len(parts)):
                    sums = xp.matmul(self._values.values(few, right[k]), own[k])
                    total = total + place.astype(sums, np.float64)
                out.append(total)
        scores = place.host(xp.concat(out)) if out else np.zeros((0, flat.shape[1]))
        return scores.reshape(X.n, *weights.shape[1:])

    def in_memory(self) -> KernelSums:
        """Return the same over rows in memory."""
        points = self.place.host(self.columns.stored)
        return Gram(self.kernel, points, self.origin).sums(slice(None), self.dtype)


class DeviceGram(Gram):
    """The kernel matrix of rows on a device."""

    X: DeviceDesign
    _columns_at_once = 1 << 17  # sums are made in blocks of their own

    def cost(self, n_rows: int, n_columns: int) -> float:
        """What sums cost, in multiplications by one core that take as long."""
        return super().cost(n_rows, n_columns) / self.X.place.speed

    def around_origin(self, X: Any) -> Any:
        """Return rows less the origin, in float64 where there is one."""
        return X if self.origin is None else X.shifted(self.origin)

    def sums(self, cols: Any, dtype: DTypeLike = np.float64) -> KernelSums:
        """Return what sums kernel values of any rows over the rows `cols` of X."""
        return DeviceSums(self.kernel, self.X[cols], dtype, self.origin)

    def part(self, rows: Any) -> Gram:
        """Return the kernel matrix of these rows alone."""
        return DeviceGram(self.kernel, self.X[rows], self.origin)

    def _evaluated(self, A: Any, B: Any) -> Array:
        """The kernel of all pairs as NumPy's numbers, some rows at a time."""
        place = self.X.place
        A = A if isinstance(A, DeviceDesign) else DeviceDesign(place.put(A), None, place)
        values = DeviceKernel(self.kernel, place, np.float64, self.origin)
        left, right = values.points(A), values.points(B)
        step = max(1, VALUES_AT_A_LAUNCH // max(1, B.n))
        out = np.empty((A.n, B.n))
        for rows in ranges(A.n, step):
            look()
            out[rows] = place.host(values.values(left.part(place, rows), right))
        return finite(out)


class DeviceMatrix:
    """K[kept, kept] for products with it, where its rows are: the `HalfMatrix` of a device.

    With 0 bytes products are those of the float64 kernel.  Otherwise entries are float32 where that
    is accurate, those of the first rows kept within the limit of bytes, the others made for each
    product, which on a device takes little more time than reading them.  `tick` is called between
    pieces of work; it may raise.

    Attributes
    ----------
    n : int
        The number of rows.
    place : DevicePlace
        Where they are.
    complete : bool
        False: nothing here is a float64 matrix that could be factored.
    """

    complete = False

    def __init__(
        self,
        gram: DeviceGram,
        kept: NDArray[np.intp] | None,
        max_bytes: float,
        tick: Callable[[], None],
    ) -> None:
        gram = gram if kept is None else DeviceGram(gram.kernel, gram.X[kept], gram.origin)
        self.n, self.place, self._tick = gram.n, gram.X.place, tick
        narrow = max_bytes != 0 and gram.float32_error() <= ACCURATE
        kind = np.float32 if narrow else np.float64
        self._values = DeviceKernel(gram.kernel, self.place, kind, gram.origin)
        self._points = self._values.points(gram.X)
        self._exact = DeviceKernel(gram.kernel, self.place, np.float64, gram.origin)
        self._gram, self._kept = gram, []
        self._parts = list(ranges(self.n, max(1, VALUES_AT_A_LAUNCH // self.n)))
        for rows in self._parts if narrow else []:
            max_bytes -= (rows.stop - rows.start) * self.n * self._values.dtype.itemsize
            if max_bytes < 0:
                break
            tick()
            self._kept.append(self._made(rows))

    def _made(self, rows: slice) -> DeviceArray:
        return self._values.values(self._points.part(self.place, rows), self._points)

    def columns(self, index: NDArray[np.intp]) -> DeviceArray:
        """Return whole columns of the kernel in float64, where they are."""
        right = self._exact.points(self._gram.X[index])
        parts = []
        for rows in ranges(self.n, max(1, VALUES_AT_A_LAUNCH // max(1, len(index)))):
            self._tick()
            parts.append(self._exact.values(self._exact.points(self._gram.X[rows]), right))
        return self.place.xp.concat(parts)

    def product(self, B: Array) -> Array:
        """Return K @ B for the columns of B, summed in float64."""
        place, out = self.place, np.empty_like(B)
        own = place.put(B)
        for k, rows in enumerate(self._parts):
            self._tick()
            block = self._kept[k] if k < len(self._kept) else self._made(rows)
            out[rows] = place.host(place.xp.matmul(place.astype(block, np.float64), own))
        return out
