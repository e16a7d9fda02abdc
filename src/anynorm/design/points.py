"""How a solver on the simplex sees the points, the columns of a d x n matrix A.

Solvers only ask for products, so the columns may be stored densely, sparsely, as a kernel matrix
``K = A'A`` whose A nobody knows, or not at all (the lazy points of `anynorm.reductions`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design import Matrix, column_norms_squared, matvec, rmatvec
from anynorm.design.checks import finite_matrix

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_PRODUCTS = 1 << 31  # multiplications that take no more than a moment


@runtime_checkable
class Points(Protocol):
    """What a solver asks of n points in d dimensions."""

    d: int
    n: int

    def dot(self, w: Array) -> Array:
        """Return A'w, of shape (n,)."""

    def combine(self, x: Array) -> Array:
        """Return w = A x, of shape (d,)."""

    def columns(self, index: Index) -> Array:
        """Return the points `index` as the columns of a dense matrix."""

    def norms_squared(self) -> Array:
        """Return the squared lengths of the points."""

    def products(self, index: Index) -> Array:
        """Return A'A[:, index], of shape (n, k)."""


@runtime_checkable
class Scalable(Protocol):
    """What is asked of points besides, where their squared lengths leave float64."""

    def largest_entry(self) -> float:
        """Return the largest absolute entry, or a number of its size."""

    def divided(self, scale: float) -> Points:
        """Return the points divided by `scale`."""


class _StoredPoints(ABC):
    """Points that are the columns of a matrix."""

    def __init__(self, A: Matrix) -> None:
        self.A = A
        self.d, self.n = A.shape

    def dot(self, w: Array) -> Array:
        """Return A'w."""
        return rmatvec(self.A, w)

    def combine(self, x: Array) -> Array:
        """Return A x, from the columns that x uses where they are few."""
        used = np.flatnonzero(x)
        if 12 * len(used) < self.n:
            return self.columns(used) @ x[used]
        return matvec(self.A, x)

    @abstractmethod
    def columns(self, index: Index) -> Array:
        """Return the points `index` as the columns of a dense matrix."""

    def norms_squared(self) -> Array:
        """Return the squared lengths of the points."""
        return column_norms_squared(self.A)

    def products(self, index: Index) -> Array:
        """Return A'A[:, index]."""
        return self.kernel(None, index)

    @abstractmethod
    def kernel(self, rows: Any = None, cols: Any = None) -> Array:
        """Return the products of the points `rows` with the points `cols`; None is all."""

    def largest_entry(self) -> float:
        """Return the largest absolute entry of A."""
        return float(max(self.A.max(), -self.A.min())) if self.A.size else 0.0


class DensePoints(_StoredPoints):
    """Points that are the columns of a dense array, float64 or float32, in any order."""

    def columns(self, index: Index) -> Array:
        """Return the points `index` as the columns of a dense matrix."""
        return self.A[:, index].astype(np.float64, copy=False)

    def norms_squared(self) -> Array:
        """Return the squared lengths of the points."""
        if self.A.dtype == np.float64:
            return np.einsum("ij,ij->j", self.A, self.A)
        return super().norms_squared()

    def kernel(self, rows: Any = None, cols: Any = None) -> Array:
        """Return the products of the points `rows` with the points `cols`; None is all."""
        left = np.arange(self.n) if rows is None else rows
        right = np.arange(self.n) if cols is None else cols
        return _in_parts(self, left, right)

    def subset(self, index: Index) -> DensePoints:
        """Return some of the points."""
        return DensePoints(np.ascontiguousarray(self.A[:, index]))

    def divided(self, scale: float) -> DensePoints:
        """Return the points divided by `scale`."""
        return DensePoints(self.A / np.float64(scale))


class SparsePoints(_StoredPoints):
    """Points that are the columns of a sparse matrix."""

    def __init__(self, A: Matrix) -> None:
        super().__init__(A if A.format == "csc" else A.tocsc())

    def columns(self, index: Index) -> Array:
        """Return the points `index` as the columns of a dense matrix."""
        return self.A[:, index].toarray().astype(np.float64, copy=False)

    def combine(self, x: Array) -> Array:
        """Return A x."""
        return matvec(self.A, x)

    def kernel(self, rows: Any = None, cols: Any = None) -> Array:
        """Return the products of the points `rows` with the points `cols`; None is all."""
        left = self.A if rows is None else self.A[:, rows]
        right = self.A if cols is None else self.A[:, cols]
        left, right = (part.astype(np.float64, copy=False) for part in (left, right))
        return np.asarray((left.T @ right).toarray())

    def subset(self, index: Index) -> SparsePoints:
        """Return some of the points."""
        return SparsePoints(self.A[:, index])

    def divided(self, scale: float) -> SparsePoints:
        """Return the points divided by `scale`."""
        return SparsePoints(self.A.astype(np.float64) / scale)


class KernelPoints:
    """Points of which only the products are known, ``K = A'A``.

    A vector w = A x is represented by x, so that d is n, and ``dot(combine(x))`` is ``K x``.
    """

    def __init__(self, K: Any) -> None:
        self.K = K
        self.d = self.n = K.shape[0]

    def dot(self, w: Array) -> Array:
        """Return ``K x`` for w = x."""
        used = np.flatnonzero(w)
        if 4 * len(used) < self.n:
            return matvec(self.K[used].T, w[used])
        return matvec(self.K, w)

    def combine(self, x: Array) -> Array:
        """Return x, which stands for A x."""
        return np.asarray(x, dtype=np.float64)

    def columns(self, index: Index) -> Array:
        """Return unit vectors, which stand for the points `index`."""
        out = np.zeros((self.n, len(index)))
        out[index, np.arange(len(index))] = 1.0
        return out

    def norms_squared(self) -> Array:
        """Return the diagonal of K."""
        return np.asarray(self.K.diagonal(), dtype=np.float64)

    def products(self, index: Index) -> Array:
        """Return ``K[:, index]``."""
        return self.kernel(None, index)

    def kernel(self, rows: Any = None, cols: Any = None) -> Array:
        """Return ``K[rows, cols]``."""
        rows = np.arange(self.n) if rows is None else rows
        cols = np.arange(self.n) if cols is None else cols
        return self.K[np.ix_(rows, cols)].astype(np.float64, copy=False)

    def largest_entry(self) -> float:
        """Return the largest length of a point."""
        return math.sqrt(float(self.K.diagonal().max()))

    def divided(self, scale: float) -> KernelPoints:
        """Return the points divided by `scale`."""
        return KernelPoints(self.K / np.float64(scale) / scale)


def as_points(A: Any, *, kernel_matrix: bool = False) -> Points:
    """Return the points that a user gave: a matrix of columns, a kernel matrix, or points."""
    if isinstance(A, Points):
        return A
    name = "the kernel matrix A" if kernel_matrix else "A"
    A = finite_matrix(A, name)
    if not kernel_matrix:
        return SparsePoints(A) if sp.issparse(A) else DensePoints(A)
    if sp.issparse(A):
        raise ValueError("the kernel matrix A must be dense; use A.toarray().")
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"the kernel matrix A must be square; got the shape {A.shape}.")
    size = float(np.abs(A).max())
    if float(np.abs(A - A.T).max()) > 1e-6 * size:
        raise ValueError("the kernel matrix A must be symmetric; use (A + A.T) / 2.")
    if float(A.diagonal().min()) < 0:
        raise ValueError(
            "the kernel matrix A has a negative entry on its diagonal, which holds squared "
            "lengths; it must be positive semidefinite."
        )
    return KernelPoints(A)


def scaled(points: Points) -> tuple[Points, Array, float]:
    """Return the points divided by a number, their squared lengths, and the number.

    The number is 1 but for lengths whose squares float64 cannot hold.
    """
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        norms = points.norms_squared()
    longest = float(norms.max())
    if 1e-200 < longest < 1e200:
        return points, norms, 1.0
    if not isinstance(points, Scalable):
        if not math.isfinite(longest):
            raise ValueError("the points have NaN or infinite lengths. Scale them to finite ones.")
        return points, norms, 1.0
    size = points.largest_entry()
    if size == 0:
        return points, norms, 1.0
    if not math.isfinite(size):
        raise ValueError("the points have entries beyond float64. Scale them to finite ones.")
    scale = 2.0 ** round(math.log2(size))
    points = points.divided(scale)
    return points, points.norms_squared(), scale


def gram(points: Points, rows: Index, cols: Index) -> Array:
    """The products of some points with others."""
    if hasattr(points, "kernel"):
        return np.asarray(points.kernel(rows, cols))
    return points.columns(rows).T @ points.columns(cols)


def _in_parts(points: DensePoints, rows: Index, cols: Index) -> Array:
    """The products of some points, in parts that leave room for Ctrl-C."""
    if len(cols) > len(rows):
        return _in_parts(points, cols, rows).T
    if len(cols) == points.n and points.A.dtype == np.float64 and (np.diff(cols) == 1).all():
        right = points.A
    else:
        right = points.columns(cols)
    step = max(16, _PRODUCTS // max(right.size, 1))
    if rows is not cols:
        parts = [points.columns(rows[k : k + step]).T @ right for k in range(0, len(rows), step)]
        return np.concatenate(parts) if parts else np.empty((0, len(cols)))
    if step >= len(rows):
        return right.T @ right
    out = np.empty((len(rows), len(rows)))
    for k in range(0, len(rows), step):
        part = slice(k, k + step)
        out[part, : k + step] = right[:, part].T @ right[:, : k + step]
        out[:k, part] = out[part, :k].T
    return out
