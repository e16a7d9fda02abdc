"""The scaled features A = X V as the Newton steps use them: products, and sums over chosen rows.

V = diag(v) is the walk's feature scale (one by default).  Dense and sparse storage differ here
and nowhere else in the linear solvers.  Nothing of the size of X is ever allocated: sums over
rows run over blocks (dense) or over a row list inside a kernel (sparse).
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.linalg.blas
import scipy.sparse as sp

from anynorm import design
from anynorm.design import Matrix

_BLOCK_ENTRIES = 1 << 16
_BAD_SCALE = 1e4
_CANCELLED = 1e-3
_GRAM_UPDATES = 20
_SPARSE_PACE = 20.0  # a scattered multiplication against one inside BLAS
_GRAM_PER_CALL = 5e7  # a kernel call stays below 0.2 s, so that Ctrl-C is heard


def make_features(X: Matrix, scale: np.ndarray | None) -> DenseFeatures | SparseFeatures:
    """The accessor for this storage; CSC is turned into CSR, because the solvers walk over rows."""
    if sp.issparse(X):
        return SparseFeatures(X if X.format == "csr" else X.tocsr(), scale)
    return DenseFeatures(X, scale)


class _Features:
    """What dense and sparse storage share."""

    def __init__(self, X: Matrix, scale: np.ndarray | None) -> None:
        self.X = X
        self.scale = scale
        self.n, self.p = X.shape
        self._last_gram: tuple[np.ndarray, np.ndarray, int] | None = None

    @cached_property
    def large_columns(self) -> np.ndarray:
        """Columns larger than the usual one by orders of magnitude."""
        squares = design.column_norms_squared(self.X)
        if self.scale is not None:
            squares = squares * self.scale**2
        usual = np.median(squares[squares > 0]) if np.any(squares > 0) else np.inf
        return np.flatnonzero(squares > _BAD_SCALE**2 * usual)

    @property
    def badly_scaled(self) -> bool:
        """Whether there are such columns."""
        return self.large_columns.size > 0

    def rows_matrix(self, rows: np.ndarray) -> np.ndarray:
        """A_J as a dense array, for small J."""
        block = design.take_rows(self.X, rows)
        return self.to_coef(block.toarray() if sp.issparse(block) else block)

    def weighted_gram(
        self, rows: np.ndarray, weights: np.ndarray, center: np.ndarray | None
    ) -> np.ndarray:
        """(A_J - 1 center')' diag(weights) (A_J - 1 center'), p x p; center the weighted mean."""
        gram = self._updated_gram(rows, weights)
        if center is None:
            return gram.copy()
        centred = gram - weights.sum() * np.outer(center, center)
        if np.all(np.diagonal(centred) > _CANCELLED * np.diagonal(gram)):
            return centred
        return self._add_dense_gram(rows, weights, center)

    def _updated_gram(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """A_J' D A_J from the last one by the rows that have changed, where those are few.

        Between two Newton steps few rows enter or leave; what the update loses by rounding is
        corrected by the residual of the true system.
        """
        full = np.zeros(self.n)
        full[rows] = weights
        if self._last_gram is not None:
            gram, last, updates = self._last_gram
            change = full - last
            moved = np.flatnonzero(change)
            if moved.size < 0.5 * rows.size and updates < _GRAM_UPDATES:
                more, less = moved[change[moved] > 0], moved[change[moved] < 0]
                gram = (
                    gram + self._add_gram(more, change[more]) - self._add_gram(less, -change[less])
                )
                self._last_gram = gram, full, updates + 1
                return gram
        gram = self._add_gram(rows, weights)
        self._last_gram = gram, full, 0
        return gram

    def _add_gram(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        return self._add_dense_gram(rows, weights, None)

    def _add_dense_gram(
        self, rows: np.ndarray, weights: np.ndarray, center: np.ndarray | None
    ) -> np.ndarray:
        """The weighted gram matrix by blocks of dense rows."""
        out = np.zeros((self.p, self.p), order="F")
        # Blocks of p/2 rows keep the sum in the processor's hands without much memory.
        step = max(64, self.p // 2, _BLOCK_ENTRIES // max(1, self.p))
        root = np.sqrt(weights)
        for start in range(0, rows.size, step):
            block = self.rows_matrix(rows[start : start + step])
            if center is not None:
                block = block - center
            block = block * root[start : start + step, None]
            out = scipy.linalg.blas.dsyrk(1.0, block.T, beta=1.0, c=out, lower=1, overwrite_c=1)
        out += np.tril(out, -1).T
        return out

    def to_coef(self, u: np.ndarray) -> np.ndarray:
        """Return w = V u, the weights of the features as the user sees them."""
        return u if self.scale is None else self.scale * u

    def scores(self, u: np.ndarray) -> np.ndarray:
        """A u for every row."""
        return design.matvec(self.X, self.to_coef(u))

    def adjoint(self, beta: np.ndarray) -> np.ndarray:
        """A' beta over all rows."""
        return self.to_coef(design.rmatvec(self.X, beta))

    def row_norms_squared(self) -> np.ndarray:
        """||A_i||^2 for every row."""
        return design.row_norms_squared(self.X, None if self.scale is None else self.scale**2)


class DenseFeatures(_Features):
    """Rows of a dense array of any order and float type."""

    sparse = False

    def entries(self, rows: np.ndarray) -> float:
        """How many stored numbers the rows hold."""
        return float(rows.size) * self.p

    def gram_cost(self, rows: np.ndarray) -> float:
        """Multiplications needed for `weighted_gram`."""
        return float(rows.size) * self.p**2

    def rows_gram(self, rows: np.ndarray) -> np.ndarray:
        """A_J A_J', |J| x |J|."""
        out = np.zeros((rows.size, rows.size))
        step = max(1, 4 * _BLOCK_ENTRIES // max(1, rows.size))
        for start in range(0, self.p, step):
            part = slice(start, min(start + step, self.p))
            block = np.asarray(self.X[rows, part], dtype=np.float64)
            if self.scale is not None:
                block = block * self.scale[part]
            out += block @ block.T
        return out

    def rows_dot(self, rows: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A_J u."""
        w = self.to_coef(u)
        if 16 * rows.size > self.n:
            return design.matvec(self.X, w)[rows]
        return self._block(rows) @ w

    def rows_adjoint(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """A_J' beta."""
        if 16 * rows.size > self.n:
            full = np.zeros(self.n)
            full[rows] = beta
            return self.adjoint(full)
        return self.to_coef(self._block(rows).T @ beta)

    def hessian_product(
        self, rows: np.ndarray, weights: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """A_J' (weights * A_J u), and sum(weights * A_J u)."""
        t = weights * self.rows_dot(rows, u)
        return self.rows_adjoint(rows, t), float(t.sum())

    def weighted_squares(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """diag(A_J' diag(weights) A_J)."""
        full = np.zeros(self.n)
        full[rows] = weights
        return self.to_coef(self.to_coef(design.column_norms_squared(self.X, full)))

    def _block(self, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.X[rows], dtype=np.float64)


class SparseFeatures(_Features):
    """Rows of a CSR matrix; the kernels take lists of rows, so that none are copied."""

    sparse = True

    def __init__(self, X: Matrix, scale: np.ndarray | None) -> None:
        from anynorm.design import sparse_loops  # imports numba: only where needed

        super().__init__(X, scale)
        self._loops = sparse_loops
        self.arrays = sparse_loops.csr_arrays(X)
        self._lengths = np.diff(X.indptr)

    def entries(self, rows: np.ndarray) -> float:
        """How many stored numbers the rows hold."""
        return float(self._lengths[rows].sum())

    def gram_cost(self, rows: np.ndarray) -> float:
        """Multiplications needed for `weighted_gram`, in units of a dense one."""
        by_entries = _SPARSE_PACE * float((self._lengths[rows].astype(np.float64) ** 2).sum())
        return min(by_entries, float(rows.size) * self.p**2)

    def _add_gram(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        if self.gram_cost(rows) == float(rows.size) * self.p**2:
            return self._add_dense_gram(rows, weights, None)
        out = np.zeros((self.p, self.p))
        calls = 1 + int((self._lengths[rows].astype(np.float64) ** 2).sum() / _GRAM_PER_CALL)
        for part in np.array_split(np.arange(rows.size), calls):
            self._loops.add_weighted_gram(*self.arrays, rows[part], weights[part], out)
        out += np.tril(out, -1).T
        return out if self.scale is None else out * self.scale[:, None] * self.scale

    def rows_gram(self, rows: np.ndarray) -> np.ndarray:
        """A_J A_J', |J| x |J|."""
        block = design.take_rows(self.X, rows)
        if self.scale is not None:
            block = block @ sp.diags_array(self.scale)
        return (block @ block.T).toarray()

    def rows_dot(self, rows: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A_J u."""
        return self._loops.rows_dot(*self.arrays, rows, self.to_coef(u))

    def rows_adjoint(self, rows: np.ndarray, beta: np.ndarray) -> np.ndarray:
        """A_J' beta."""
        out = np.zeros(self.p)
        self._loops.add_rows(*self.arrays, rows, beta, out)
        return self.to_coef(out)

    def hessian_product(
        self, rows: np.ndarray, weights: np.ndarray, u: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """A_J' (weights * A_J u), and sum(weights * A_J u), in one pass over the rows."""
        out = np.zeros(self.p)
        total = self._loops.add_hessian_product(*self.arrays, rows, weights, self.to_coef(u), out)
        return self.to_coef(out), total

    def weighted_squares(self, rows: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """diag(A_J' diag(weights) A_J)."""
        out = np.zeros(self.p)
        self._loops.add_weighted_squares(*self.arrays, rows, weights, out)
        return self.to_coef(self.to_coef(out))
