"""Functions in the span of some rows, and these as features.

    f(x) = sum_{j in J} beta_j k(x_j, x),      K_JJ = L L',      z(x) = L^-1 k(J, x)

has the length ||f|| = ||w|| for f(x) = z(x)'w and w = L'beta.  So a kernel problem over the span of
the rows J is a linear problem over the |J| features z, whose coefficients give beta = L^-T w
(Nystroem's features; Williams and Seeger 2001).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpstrf

from anynorm.design.blocks import ranges, row_ranges
from anynorm.design.dense import DenseDesign
from anynorm.design.interface import Array, Design, Places, Tile
from anynorm.design.threads import each
from anynorm.kernels.gram import Gram
from anynorm.kernels.sums import KernelSums

# Of the diagonal: a row nearer to the span than 1e-5 of its length would need weights of 1e5 and
# more, whose sums have few digits in float32.
LEAST_PIVOT = 1e-10
_ROWS_AT_ONCE = 4096  # whose features a thread makes at a time


class Landmarks:
    """Rows whose kernel functions span what f may be.

    Attributes
    ----------
    rows : ndarray of int
        The rows J, in the order of the factor.
    lower : ndarray of shape (|J|, |J|)
        The factor L.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.kernels.landmarks import Landmarks
    >>> gram = Gram.linear(np.array([[2.0, 0.0], [2.0, 0.0], [1.0, 1.0]]))
    >>> landmarks = Landmarks.of(gram, np.array([0, 1, 2]))
    >>> landmarks.rows.tolist()                     # the second row is the first again
    [0, 2]
    >>> Z = landmarks.features(np.arange(3))
    >>> np.allclose(Z @ Z.T, gram.block(slice(None), slice(None)))
    True
    """

    def __init__(self, gram: Gram, rows: Places, lower: Array) -> None:
        self.gram, self.rows, self.lower = gram, rows, lower
        self.sums: KernelSums = gram.sums(rows)

    @classmethod
    def of(cls, gram: Gram, rows: Places) -> Landmarks:
        """Return some rows, without those that are in the span of the others."""
        K = gram.block(rows, rows)
        lengths = np.sqrt(np.maximum(np.diagonal(K), 0.0))
        used = np.flatnonzero(lengths > 0)
        lengths, K = lengths[used], K[np.ix_(used, used)]
        lower, order, rank, _ = dpstrf(K / np.outer(lengths, lengths), LEAST_PIVOT, lower=1)
        order = order[:rank] - 1
        lower = np.tril(lower[:rank, :rank]) * lengths[order, None]
        return cls(gram, rows[used[order]], lower)

    @classmethod
    def in_order(cls, gram: Gram, rows: Places) -> Landmarks:
        """Return rows, none in the span of those before it, so that the first give the first
        features.

        Examples
        --------
        >>> import numpy as np
        >>> from anynorm.kernels.gram import Gram
        >>> from anynorm.kernels.landmarks import Landmarks
        >>> gram = Gram.rbf(np.array([[0.0], [1.0], [3.0]]), 1.0)
        >>> few, more = (Landmarks.in_order(gram, np.arange(m)) for m in (1, 2))
        >>> Z, Z_more = few.features(np.arange(3)), more.features(np.arange(3))
        >>> np.allclose(Z, Z_more[:, :1])
        True
        """
        lower = scipy.linalg.cholesky(gram.block(rows, rows), lower=True)
        return cls(gram, rows, lower)

    @classmethod
    def spanning(cls, gram: Gram, error: float, most: int) -> tuple[Landmarks, Array] | None:
        """Return few rows whose span all others are in, and the features of all rows.

        The rows are the pivots of a Cholesky factor of K, at each step that of the largest rest of
        the diagonal (Harbrecht, Peters and Schneider 2012).  K - Z Z' is semidefinite with no
        entry beyond `error`; None where `most` rows do not do.

        Examples
        --------
        >>> import numpy as np
        >>> from anynorm.kernels.gram import Gram
        >>> from anynorm.kernels.landmarks import Landmarks
        >>> gram = Gram.poly(np.array([[1.0], [2.0], [3.0], [4.0]]), gamma=1.0, degree=2)
        >>> landmarks, Z = Landmarks.spanning(gram, error=1e-12, most=3)
        >>> landmarks.rows.tolist(), Z.round(9).ravel().tolist()
        ([3], [1.0, 4.0, 9.0, 16.0])
        """
        rest = gram.diagonal().copy()
        Z, rows = np.zeros((gram.n, most), order="F"), np.empty(most, dtype=np.intp)
        for rank in range(most + 1):
            pivot = int(np.argmax(rest))
            if rest[pivot] <= error:
                Z, rows = np.ascontiguousarray(Z[:, :rank]), rows[:rank]
                return cls(gram, rows, np.tril(Z[rows])), Z
            if rank == most:
                break
            column = gram.block(slice(None), [pivot])[:, 0] - Z[:, :rank] @ Z[pivot, :rank]
            Z[:, rank], rows[rank] = column / np.sqrt(rest[pivot]), pivot
            rest -= Z[:, rank] ** 2
            rest[pivot] = 0.0  # less what rounding left: no row is taken twice
        return None

    def weights(self, coef: Array) -> Array:
        """Return beta, the weights of the rows' kernel functions, of coefficients of features."""
        return self.solve_lower(coef, transposed=True)

    def values(self, rows: Places) -> Array:
        """Return the kernel values of some rows with these."""
        return self.gram.block(rows, self.rows)

    def features(self, rows: Places) -> Array:
        """Return the features of some rows."""
        return self._turned(self.values(rows))

    def alone(self) -> Landmarks:
        """Return the same without all other rows, to be sent to where these are."""
        return Landmarks(self.gram.part(self.rows), np.arange(len(self.rows)), self.lower)

    def features_of(self, X: Any) -> Array:
        """Return the features of rows that the gram has not."""
        return self.sums(X, self.solve_lower(np.eye(len(self.rows)), transposed=True))

    def design(self, memory: float = np.inf) -> Design:
        """Return the features of all rows, computed anew each time beyond `memory` bytes."""
        n, p = self.gram.n, len(self.rows)
        lazy = LandmarkDesign(self)
        if 8 * n * p > memory:
            return lazy
        out = np.empty((n, p))
        for tile in lazy.tiles():
            out[tile.rows] = tile.entries
        return DenseDesign(out)

    def solve_lower(self, right: Array, *, transposed: bool = False) -> Array:
        """Return what the inverse of the factor, or of its transpose, makes of the columns."""
        if not len(self.lower):  # for which SciPy has no solution until 1.14
            return right
        solved: Array = scipy.linalg.solve_triangular(
            self.lower, right, lower=True, trans=int(transposed), check_finite=False
        )
        return solved

    def _turned(self, K: Array) -> Array:
        return self.solve_lower(K.T).T


class LandmarkDesign(Design):
    """The features of all rows, made of kernel values whenever they are asked for.

    Products are made of kernel values as they are: Z w = K_nJ (L^-T w), without features.
    """

    sparse = False

    def __init__(self, landmarks: Landmarks, scale: Array | None = None) -> None:
        self.landmarks = landmarks
        super().__init__((landmarks.gram.n, len(landmarks.rows)), scale)
        self.stored = self

    def tiles(self, *, small: bool = True) -> Iterator[Tile]:
        """Features of blocks of rows."""
        parts = list(row_ranges(self.n, self.p))

        def features(k: int) -> Array:
            return self.landmarks.features(np.arange(parts[k].start, parts[k].stop))

        for part, entries in zip(parts, each(features, len(parts)), strict=True):
            yield Tile(part, slice(None), entries)

    def _times(self, w: Array) -> Array:
        gram, sums = self.landmarks.gram, self.landmarks.sums
        return sums(gram.points(), self.landmarks.weights(w), n_values=self.n * self.p)

    def _transposed_times(self, a: Array) -> Array:
        parts = list(ranges(self.n, _ROWS_AT_ONCE))
        landmarks = self.landmarks

        def product(k: int) -> Array:
            rows = np.flatnonzero(a[parts[k]] if a.ndim == 1 else a[parts[k]].any(axis=1))
            rows += parts[k].start
            return landmarks.values(rows).T @ a[rows]

        total = sum(each(product, len(parts)), start=np.zeros((self.p, *a.shape[1:])))
        return landmarks.solve_lower(total)

    def take_rows(self, rows: Places) -> DenseDesign:
        """The features of some rows, stored."""
        out = np.empty((len(rows), self.p))
        for part in row_ranges(len(rows), self.p):
            out[part] = self.landmarks.features(rows[part])
        return DenseDesign(out, self.scale)

    def take_columns(self, columns: Places) -> DenseDesign:
        """Some features of all rows, stored."""
        return DenseDesign(self.dense_columns(columns))

    def dense_rows(self, rows: Places) -> Array:
        """The features of some rows."""
        return self.take_rows(rows).dense()

    def dense_columns(self, columns: Places) -> Array:
        """Some features of all rows."""
        unit = np.zeros((self.p, len(columns)))
        unit[columns, np.arange(len(columns))] = 1.0
        return self.matvec(unit)

    def scaled(self, scale: Array | None) -> LandmarkDesign:
        """A view whose features are multiplied by `scale`."""
        return LandmarkDesign(self.landmarks, scale)

    def entries_at(self, rows: Places, columns: Places) -> Array:
        """Features of rows, one each."""
        return self.landmarks.features(rows)[np.arange(len(rows)), columns]

    def entries(self, rows: Places | None = None) -> float:
        """How many features rows have together."""
        return float(self.n if rows is None else rows.size) * self.p

    def column_entries(self) -> Array:
        """How many rows each feature has."""
        return np.full(self.p, self.n)

    def gram_cost(self, rows: Places) -> float:
        """Multiplications needed for `weighted_gram`."""
        return float(rows.size) * self.p**2
