"""Rows and columns of X inside machine code, one name for each storage.

`stored_rows` says how X is stored, which code has to know, and lists what it consists of as tables:

    rows        X in C order
    columns     X in Fortran order, as the rows of its transpose
    sparse      indptr, indices and values of a CSR matrix with sorted indices
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from anynorm.design.addresses import Rows

N_TABLES = 3  # that X consists of, at most
_TILE = 1024  # entries of a sum of rows that stay in the first cache


@dataclass(frozen=True)
class StoredRows:
    """How X is stored, for machine code; its tables begin at number `first`."""

    layout: str
    values: Rows
    indptr: Rows
    indices: Rows


def stored_rows(X: Any, first: int) -> tuple[StoredRows, tuple[np.ndarray, ...]]:
    """How X is stored, which is what `Design.row_access` returns, and its tables."""
    if isinstance(X, tuple):
        layout, tables = "sparse", X
    elif X.flags.c_contiguous:
        layout, tables = "rows", (X,) * N_TABLES
    else:
        layout, tables = "columns", (X.T,) * N_TABLES
    indptr, indices, values = (Rows(first + k, table.dtype.name) for k, table in enumerate(tables))
    return StoredRows(layout, values, indptr, indices), tables


def add_rows(X, tables, rows, coefs, count, out, p):
    """Add the sum of coefs[r] * X[rows[r], :] over r < count to the first p entries of out."""
    if X.layout == "rows":
        add_contiguous(X, tables, rows, coefs, count, out, p)
    elif X.layout == "columns":
        for j in range(p):
            values, total = X.values(tables, j), 0.0
            for r in range(count):
                total += coefs[r] * values[rows[r]]
            out[j] += total
    else:
        values, indices = X.values(tables, 0), X.indices(tables, 0)
        indptr = X.indptr(tables, 0)
        for r in range(count):
            c = coefs[r]
            for k in range(indptr[rows[r]], indptr[rows[r] + 1]):
                out[indices[k]] += c * values[k]


def add_contiguous(X, tables, rows, coefs, count, out, p):
    """The same for rows in C order, a tile of `out` after the other."""
    for start in range(0, p, _TILE):
        stop, r = min(start + _TILE, p), 0
        while r + 4 <= count:
            x0, x1 = X.values(tables, rows[r]), X.values(tables, rows[r + 1])
            x2, x3 = X.values(tables, rows[r + 2]), X.values(tables, rows[r + 3])
            c0, c1, c2, c3 = coefs[r], coefs[r + 1], coefs[r + 2], coefs[r + 3]
            for j in range(start, stop):
                out[j] += (c0 * x0[j] + c1 * x1[j]) + (c2 * x2[j] + c3 * x3[j])
            r += 4
        while r < count:
            x0, c0 = X.values(tables, rows[r]), coefs[r]
            for j in range(start, stop):
                out[j] += c0 * x0[j]
            r += 1


def read_column(X, tables, j, out, n):
    """Out = X[:, j], which has n entries."""
    if X.layout == "rows":
        for i in range(n):
            out[i] = X.values(tables, i)[j]
    elif X.layout == "columns":
        values = X.values(tables, j)
        for i in range(n):
            out[i] = values[i]
    else:
        values, indices = X.values(tables, 0), X.indices(tables, 0)
        indptr = X.indptr(tables, 0)
        for i in range(n):
            low, high = indptr[i], indptr[i + 1]
            while low < high:
                middle = (low + high) >> 1
                if indices[middle] < j:
                    low = middle + 1
                else:
                    high = middle
            out[i] = 0.0
            if low < indptr[i + 1] and indices[low] == j:
                out[i] = values[low]
