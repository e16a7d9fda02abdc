"""Products with the matrix of features, in float64 whatever its storage, without copying it.

X is a dense array (any order, float32 or float64, perhaps a read-only memory map) or a
scipy CSR/CSC container (int32 or int64 indices).  float64 storage goes straight to BLAS or
to scipy's sparse products; float32 storage is widened a block at a time, so that sums are
accumulated in float64 and memory stays that of the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

Matrix: TypeAlias = Any
"""A dense 2-D array or a scipy CSR/CSC container."""

_BLOCK_ENTRIES = 1 << 16


def matvec(X: Matrix, w: np.ndarray) -> np.ndarray:
    """X @ w in float64, for a vector or the columns of a matrix."""
    w = np.asarray(w, dtype=np.float64)
    if X.dtype == np.float64:
        return np.asarray(X @ w)
    out = np.zeros((X.shape[0], *w.shape[1:]))
    for part, block in _wide_blocks(X):
        if _by_columns(X):
            out += block @ w[part]
        else:
            out[part] = block @ w
    return out


def rmatvec(X: Matrix, a: np.ndarray) -> np.ndarray:
    """X.T @ a in float64."""
    a = np.asarray(a, dtype=np.float64)
    if X.dtype == np.float64:
        return np.asarray(X.T @ a)
    out = np.zeros(X.shape[1])
    for part, block in _wide_blocks(X):
        if _by_columns(X):
            out[part] = block.T @ a
        else:
            out += block.T @ a[part]
    return out


def row_norms_squared(X: Matrix, column_weights: np.ndarray | None = None) -> np.ndarray:
    """sum_j c_j x_ij^2 for every row, with c = 1 by default."""
    out = np.zeros(X.shape[0])
    for part, block in _wide_blocks(X):
        c = column_weights
        if _by_columns(X):
            out += _squared(block) @ (np.ones(block.shape[1]) if c is None else c[part])
        else:
            out[part] = _squared(block) @ (np.ones(block.shape[1]) if c is None else c)
    return out


def column_norms_squared(X: Matrix, row_weights: np.ndarray | None = None) -> np.ndarray:
    """sum_i d_i x_ij^2 for every column, with d = 1 by default."""
    out = np.zeros(X.shape[1])
    for part, block in _wide_blocks(X):
        d = row_weights
        if _by_columns(X):
            out[part] = (np.ones(block.shape[0]) if d is None else d) @ _squared(block)
        else:
            out += (np.ones(block.shape[0]) if d is None else d[part]) @ _squared(block)
    return out


def take_rows(X: Matrix, rows: np.ndarray) -> Matrix:
    """The chosen rows as a float64 matrix of the same kind (CSC gives CSR)."""
    part = X[rows]
    if sp.issparse(part):
        part = part.tocsr()
    return part.astype(np.float64, copy=False)


def _by_columns(X: Matrix) -> bool:
    """Whether blocks of columns, not of rows, are contiguous in memory."""
    if sp.issparse(X):
        return X.format == "csc"
    return X.flags.f_contiguous and not X.flags.c_contiguous


def _wide_blocks(X: Matrix) -> Iterator[tuple[slice, Matrix]]:
    """Blocks along the contiguous axis as float64; a slice of that axis goes with each."""
    if sp.issparse(X):
        yield from _sparse_blocks(X)
        return
    axis = 1 if _by_columns(X) else 0
    step = max(1, _BLOCK_ENTRIES // max(1, X.shape[1 - axis]))
    for start in range(0, X.shape[axis], step):
        part = slice(start, min(start + step, X.shape[axis]))
        block = X[:, part] if axis else X[part]
        yield part, np.asarray(block, dtype=np.float64)


def _sparse_blocks(X: Matrix) -> Iterator[tuple[slice, Matrix]]:
    length = len(X.indptr) - 1
    container = sp.csc_array if X.format == "csc" else sp.csr_array
    start = 0
    while start < length:
        target = X.indptr[start] + _BLOCK_ENTRIES
        stop = max(start + 1, int(np.searchsorted(X.indptr, target, side="right")) - 1)
        first, last = X.indptr[start], X.indptr[stop]
        pointers = X.indptr[start : stop + 1] - first
        shape = (X.shape[0], stop - start) if X.format == "csc" else (stop - start, X.shape[1])
        values = np.asarray(X.data[first:last], dtype=np.float64)
        yield slice(start, stop), container((values, X.indices[first:last], pointers), shape=shape)
        start = stop


def _squared(block: Matrix) -> Matrix:
    if sp.issparse(block):
        return type(block)((block.data**2, block.indices, block.indptr), shape=block.shape)
    return block * block
