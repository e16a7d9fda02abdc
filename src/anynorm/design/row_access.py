"""Rows and columns of X inside compiled code, one name for each storage.

X is what `Design.row_access` returns: a dense array (C or Fortran order) or the tuple (indptr,
indices, values) of a CSR matrix with sorted indices.  The choice is made when a loop is compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from anynorm.design.compiled import overload, types


def add_rows(X: Any, rows: Any, coefs: Any, count: Any, out: Any) -> None:
    """Add the sum of coefs[r] * X[rows[r], :] over r < count to the first p entries of out."""
    raise TypeError("for compiled code only")


def read_column(X: Any, j: Any, out: Any) -> None:
    """Out = X[:, j]."""
    raise TypeError("for compiled code only")


@overload(add_rows)
def _add_rows(X, rows, coefs, count, out):
    if isinstance(X, types.Array) and X.layout == "C":

        def add_contiguous(X, rows, coefs, count, out):
            p = X.shape[1]
            for start in range(0, p, 1024):  # a tile of `out` stays in the first cache
                stop = min(start + 1024, p)
                r = 0
                while r + 4 <= count:
                    i0, i1, i2, i3 = rows[r], rows[r + 1], rows[r + 2], rows[r + 3]
                    c0, c1, c2, c3 = coefs[r], coefs[r + 1], coefs[r + 2], coefs[r + 3]
                    for j in range(start, stop):
                        out[j] += (c0 * X[i0, j] + c1 * X[i1, j]) + (c2 * X[i2, j] + c3 * X[i3, j])
                    r += 4
                while r < count:
                    i0, c0 = rows[r], coefs[r]
                    for j in range(start, stop):
                        out[j] += c0 * X[i0, j]
                    r += 1

        return add_contiguous
    if isinstance(X, types.Array):

        def add_by_columns(X, rows, coefs, count, out):
            weights = np.zeros(X.shape[0])
            for r in range(count):
                weights[rows[r]] += coefs[r]
            for j in range(X.shape[1]):
                total = 0.0
                for i in range(X.shape[0]):
                    total += weights[i] * X[i, j]
                out[j] += total

        return add_by_columns

    def add_sparse(X, rows, coefs, count, out):
        indptr, indices, values = X
        for r in range(count):
            i, c = rows[r], coefs[r]
            for k in range(indptr[i], indptr[i + 1]):
                out[indices[k]] += c * values[k]

    return add_sparse


@overload(read_column)
def _read_column(X, j, out):
    if isinstance(X, types.Array):

        def read_dense(X, j, out):
            for i in range(X.shape[0]):
                out[i] = X[i, j]

        return read_dense

    def read_sparse(X, j, out):
        indptr, indices, values = X
        for i in range(out.size):
            low, high = indptr[i], indptr[i + 1]
            while low < high:
                middle = (low + high) // 2
                if indices[middle] < j:
                    low = middle + 1
                else:
                    high = middle
            found = low < indptr[i + 1] and indices[low] == j
            out[i] = values[low] if found else 0.0

    return read_sparse
