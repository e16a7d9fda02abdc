"""The features by columns: what the solvers of the 1-norm problems need of X.

A regularised bias is one more column of a constant value.  Sparse X is kept by columns (CSR is
copied once), dense X stays as it is: products go to BLAS, and only working columns are copied.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from anynorm import design
from anynorm.design import Matrix
from anynorm.design.column_loops import (
    add_columns,
    columns_dot,
    columns_squares,
    descend_columns,
    gather_columns,
)
from anynorm.design.sparse_loops import csr_arrays

if TYPE_CHECKING:
    from anynorm.solvers.one_norm.model import Model

_ENTRIES_PER_CALL = 2e7

Arrays = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass
class Part:
    """Columns of diag(root) X over the rows with root > 0, dense or sparse."""

    arrays: Arrays
    n_rows: int

    @property
    def sparse(self) -> bool:
        """Whether only entries that are not zero are stored."""
        return self.arrays[1].size > 0

    def dot(self, columns: np.ndarray, v: np.ndarray) -> np.ndarray:
        """x_j'v for the chosen columns."""
        out = np.empty(columns.size)
        for piece in self._pieces(columns):
            columns_dot(*self.arrays, columns[piece], v, out[piece])
        return out

    def combine(self, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """The sum of coef_j x_j over the chosen columns."""
        out = np.zeros(self.n_rows)
        for piece in self._pieces(columns):
            add_columns(*self.arrays, columns[piece], coef[piece], out)
        return out

    def squares(self) -> np.ndarray:
        """||x_j||^2 for every column."""
        out = np.empty(len(self.arrays[0]) - 1)
        columns_squares(*self.arrays, out)
        return out

    def block(self, columns: np.ndarray) -> np.ndarray:
        """The chosen columns as a dense array."""
        indptr, indices, values = self.arrays
        if not self.sparse:
            return values.reshape(-1, self.n_rows)[columns].T
        stored = sp.csc_array((values, indices, indptr), shape=(self.n_rows, indptr.size - 1))
        return stored[:, columns].toarray()

    def descend(self, order: np.ndarray, model: Model) -> float:
        """One pass of coordinate descent; returns the largest violation."""
        largest = 0.0
        for piece in self._pieces(order):
            found = descend_columns(
                *self.arrays, order[piece], model.penalty, model.curvature, model.unit,
                model.floor, model.coef, model.residual, model.keep,
            )  # fmt: skip
            largest = max(largest, found)
        return largest

    def _pieces(self, columns: np.ndarray) -> Iterator[slice]:
        """Slices of `columns` that one kernel call goes through in well under 0.2 s."""
        stored = max(1.0, self.arrays[0][-1] / max(1, len(self.arrays[0]) - 1)) * columns.size
        step = max(1, int(columns.size * _ENTRIES_PER_CALL / max(stored, 1.0)))
        for start in range(0, columns.size, step):
            yield slice(start, start + step)


def read_only(*arrays: np.ndarray) -> Arrays:
    """Views that cannot be written to: kernels are compiled for these alone."""
    views = tuple(array.view() for array in arrays)
    for view in views:
        view.flags.writeable = False
    return views  # type: ignore[return-value]


class Columns:
    """X and, where `constant` is not zero, a last column of that value."""

    def __init__(self, X: Matrix, constant: float) -> None:
        self.X = X if not sp.issparse(X) or X.format == "csc" else X.tocsc()
        self.constant = constant
        self.n, self.features = X.shape
        self.p = self.features + (constant != 0)
        self.sparse = bool(sp.issparse(X))
        if self.sparse:
            self.arrays = csr_arrays(self.X)

    def adjoint(self, beta: np.ndarray) -> np.ndarray:
        """X' beta."""
        pulled = design.rmatvec(self.X, beta)
        return np.append(pulled, self.constant * beta.sum()) if self.constant else pulled

    def squares(self, weights: np.ndarray) -> np.ndarray:
        """sum_i weights_i x_ij^2 for every column."""
        squares = design.column_norms_squared(self.X, weights)
        return np.append(squares, self.constant**2 * weights.sum()) if self.constant else squares

    def combine(self, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
        """X_J coef."""
        inside = columns < self.features
        shift = self.constant * float(coef[~inside].sum())
        columns, coef = columns[inside], coef[inside]
        if self.sparse:
            out = np.full(self.n, shift)
            add_columns(*self.arrays, columns, coef, out)
            return out
        if 4 * columns.size < self.features:
            return design.matvec(self.X[:, columns], coef) + shift
        full = np.zeros(self.features)
        full[columns] = coef
        return design.matvec(self.X, full) + shift

    def part(self, columns: np.ndarray, rows: np.ndarray, root: np.ndarray) -> Part:
        """diag(root) X over the chosen columns and rows, in float64."""
        inside = columns[columns < self.features]
        extra = self.constant * root[rows] if inside.size < columns.size else None
        if self.sparse:
            return self._sparse_part(inside, rows, root, extra)
        block = np.empty((rows.size, columns.size), order="F")
        step = max(1, (1 << 16) // max(1, rows.size))
        for start in range(0, inside.size, step):
            chosen = inside[start : start + step]
            block[:, start : start + chosen.size] = self.X[np.ix_(rows, chosen)]
        block *= root[rows, None]
        if extra is not None:
            block[:, -1] = extra
        indptr = rows.size * np.arange(columns.size + 1)
        arrays = read_only(indptr, np.empty(0, np.uint32), block.ravel(order="F"))
        return Part(arrays, rows.size)

    def _sparse_part(
        self, columns: np.ndarray, rows: np.ndarray, root: np.ndarray, extra: np.ndarray | None
    ) -> Part:
        indptr, indices, values = self.arrays
        place = np.full(self.n, -1, dtype=np.int32 if self.n < 1 << 31 else np.int64)
        place[rows] = np.arange(rows.size)
        room = int((indptr[columns + 1] - indptr[columns]).sum())
        more = 0 if extra is None else rows.size
        out_indptr = np.zeros(columns.size + 1 + (more > 0), dtype=np.int64)
        out_indices = np.empty(room + more + 1, dtype=indices.dtype)  # one more: written, not kept
        out_values = np.empty(room + more + 1)
        gather_columns(
            indptr, indices, values, columns, place, root, out_indptr, out_indices, out_values
        )
        if extra is not None:
            stored = int(out_indptr[columns.size])
            out_indices[stored : stored + more] = np.arange(rows.size)
            out_values[stored : stored + more] = extra
            out_indptr[-1] = stored + more
        return Part(read_only(out_indptr, out_indices, out_values), rows.size)
