"""Sums of kernel values, ``sum_j k(x, z_j) w_j``, for any rows x and some fixed rows z_j.

That is what a prediction is, and a product with the kernel matrix.  Kernels of dense rows are
evaluated by a matrix product and in place, in blocks that stay in a core's cache from the product
to the sum; other kernels by the function of two sets of rows that they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import DTypeLike, NDArray
from threadpoolctl import threadpool_limits

from anynorm.design import design_of

Array = NDArray[np.float64]
Block = NDArray[Any]

_CACHED_BYTES = 1 << 18  # of kernel values between their product and their sum
_CACHED_COLUMNS = 256
_BLOCK_ENTRIES = 1 << 20  # of kernel values that a function of two sets of rows gives at once
_ROWS_PER_TASK = 1024
WORTH_COMPILED = 1 << 24  # kernel values from which Numba's own start is paid back


class KernelSums:
    """Sums over the values of ``pairs(rows, columns)``, a function of two sets of rows.

    Parameters
    ----------
    pairs : callable
        Returns the float64 matrix of all pairs.
    columns : dense array or CSR
        The fixed rows z_j.
    name : str
        The kernel's name.
    parameters : dict
        What it depends on: gamma, degree, coef0 and origin, as far as it has them.
    """

    def __init__(
        self,
        pairs: Callable[[Any, Any], Array],
        columns: Any,
        name: str,
        parameters: dict[str, Any],
    ) -> None:
        self._pairs = pairs
        self.columns = columns
        self.width = columns.shape[0]
        self.name = name
        self.parameters = parameters

    def __call__(
        self, X: Any, weights: Block, n_jobs: int | None = None, *, n_values: int = 0
    ) -> Array:
        """Return the sums in float64, for one vector of weights or for the columns of several.

        Where they are part of a larger task, `n_values` says how many kernel values that has.
        """
        out = np.zeros((X.shape[0], *weights.shape[1:]))
        if self.width == 0:
            return out
        X = X.tocsr() if sp.issparse(X) else X
        add = self._adder(max(n_values, X.shape[0] * self.width))
        tasks = list(ranges(X.shape[0], max(_ROWS_PER_TASK, self._step())))
        if len(tasks) == 1 or effective_n_jobs(n_jobs) == 1:
            for rows in tasks:
                add(X[rows], weights, out[rows])
            return out
        with threadpool_limits(1, "blas"):
            Parallel(n_jobs=n_jobs, require="sharedmem")(
                delayed(add)(X[rows], weights, out[rows]) for rows in tasks
            )
        return out

    def _adder(self, n_values: int) -> Callable[[Any, Block, Array], None]:
        """What adds the sums of some rows to `out`, in a task of that many kernel values."""
        return self._add

    def _step(self) -> int:
        """The number of rows of a block."""
        return max(1, _BLOCK_ENTRIES // self.width)

    def _add(self, X: Any, weights: Block, out: Array) -> None:
        for rows in ranges(X.shape[0], self._step()):
            block = _stored_like(X[rows], self.columns)
            out[rows] += self._pairs(block, self.columns) @ weights


class DenseSums(KernelSums):
    """The same for linear, rbf and poly kernels of dense rows, by matrix products.

    Parameters
    ----------
    name : {"linear", "rbf", "poly"}
        The kernel.
    parameters : dict
        Its gamma, degree, coef0 and origin, as far as it has them.
    columns : ndarray of shape (m, p)
        The fixed rows, used without a copy where they have the dtype and there is no origin.
    dtype : dtype
        The precision of the kernel values, float64 or float32; sums of blocks are float64.
    """

    def __init__(
        self, name: str, parameters: dict[str, Any], columns: Any, dtype: DTypeLike = np.float64
    ) -> None:
        self.dtype = np.dtype(dtype)
        self._origin = parameters.get("origin")
        self.columns = self._prepared(columns)
        self.width = len(self.columns)
        self.name = name
        self.parameters = parameters
        self._given = {key: value for key, value in parameters.items() if key != "origin"}
        if "gamma" in self._given:
            self._given["gamma"] = min(parameters["gamma"], float(np.finfo(self.dtype).max))
        self._lengths = squared_lengths(self.columns).astype(self.dtype)

    def widened(self, columns: Any) -> DenseSums:
        """Return the same in float64; `columns` are the fixed rows as they were given."""
        return DenseSums(self.name, self.parameters, columns)

    def among_columns(self, weights: Array, *, n_values: int = 0) -> Array:
        """Return the sums for the fixed rows themselves: each pair is evaluated once."""
        out, width = np.zeros(self.width), min(self.width, _CACHED_COLUMNS)
        finish = self._finisher(max(n_values, self.width**2))
        store = np.empty(width * width, self.dtype)
        weights = weights.astype(self.dtype, copy=False)
        for rows in ranges(self.width, width):
            for start in range(rows.start, self.width, width):
                columns = slice(start, min(start + width, self.width))
                shape = rows.stop - rows.start, columns.stop - columns.start
                values = store[: shape[0] * shape[1]].reshape(shape)
                np.matmul(self.columns[rows], self.columns[columns].T, out=values)
                finish(values, self._lengths[rows], self._lengths[columns], **self._given)
                out[rows] += values @ weights[columns]
                if start > rows.start:
                    out[columns] += weights[rows] @ values
        return out

    def _prepared(self, X: Any) -> Block:
        X = X.toarray() if sp.issparse(X) else np.asarray(X)
        X = X if self._origin is None else X - self._origin
        return np.asarray(X, dtype=self.dtype)

    def _step(self) -> int:
        return max(1, _CACHED_BYTES // self.dtype.itemsize // min(self.width, _CACHED_COLUMNS))

    def _adder(self, n_values: int) -> Callable[[Any, Block, Array], None]:
        return partial(self._add_dense, finish=self._finisher(n_values))

    def _finisher(self, n_values: int) -> Callable[..., Any]:
        """What turns products and squared lengths into kernel values, in place."""
        if self.name == "rbf":
            return _compiled(self.dtype) if n_values >= WORTH_COMPILED else rbf_of_products
        return _poly_or_linear

    def _add_dense(self, X: Any, weights: Block, out: Array, finish: Callable[..., Any]) -> None:
        weights = weights.astype(self.dtype, copy=False)
        width = min(self.width, _CACHED_COLUMNS)
        store = np.empty(min(self._step(), X.shape[0]) * width, self.dtype)
        for rows in ranges(X.shape[0], self._step()):
            block = self._prepared(X[rows])
            lengths = squared_lengths(block).astype(self.dtype)
            for columns in ranges(self.width, width):
                shape = len(block), columns.stop - columns.start
                values = store[: shape[0] * shape[1]].reshape(shape)
                np.matmul(block, self.columns[columns].T, out=values)
                finish(values, lengths, self._lengths[columns], **self._given)
                out[rows] += values @ weights[columns]


def _compiled(dtype: np.dtype[Any]) -> Callable[..., Any]:
    """`rbf_of_products`, in one pass and several times as fast."""
    from anynorm.kernels.exponential_loops import exp_of_products, exp_of_products_32  # loads Numba

    exp = exp_of_products if dtype == np.float64 else exp_of_products_32

    def finish(values: Block, rows: Block, columns: Block, *, gamma: float) -> None:
        if np.isfinite(rows).all() and np.isfinite(columns).all():
            exp(values, rows, columns, dtype.type(gamma))
        else:
            rbf_of_products(values, rows, columns, gamma=gamma)

    return finish


def squared_lengths(X: Any) -> Array:
    """Return ||x||^2 of the rows, less a rounding error, so that equal rows are at distance 0."""
    return design_of(X).row_norms_squared() * (1.0 - 8 * np.finfo(np.float64).eps)


def rbf_of_products(values: Block, rows: Block, columns: Block, *, gamma: float) -> Block:
    """Turn products x'z into ``exp(-gamma ||x - z||^2)``, in place, given squared lengths."""
    values *= -2.0
    values += rows[:, None]
    values += columns
    np.maximum(values, 0.0, out=values)
    with np.errstate(over="ignore", under="ignore"):
        values *= -gamma
        return np.exp(values, out=values)


def poly_of_products(values: Block, *, gamma: float, degree: float, coef0: float) -> Block:
    """Turn products x'z into ``(gamma x'z + coef0)^degree``, in place."""
    values *= gamma
    values += coef0
    return np.power(values, degree, out=values)


def _poly_or_linear(values: Block, rows: Block, columns: Block, **given: Any) -> None:
    """The two kernels that need no lengths."""
    if given:
        poly_of_products(values, **given)


def _stored_like(X: Any, other: Any) -> Any:
    if sp.issparse(X) == sp.issparse(other):
        return X
    return X.toarray() if sp.issparse(X) else sp.csr_array(X)


def ranges(stop: int, step: int) -> Iterator[slice]:
    """Slices of `step` that make up 0..stop."""
    for start in range(0, stop, step):
        yield slice(start, min(start + step, stop))
