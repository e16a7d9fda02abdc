"""How a solver on the simplex sees the points, the columns of a d x n matrix A.

Solvers only ask for products, so the columns may be those of a `Design`, of a kernel matrix
``K = A'A`` whose A nobody knows, or not stored at all (the lazy points of `anynorm.reductions`).
"""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design import Design, design_of
from anynorm.design.checks import Array, finite_matrix
from anynorm.design.device_design import DeviceDesign

Index = NDArray[np.intp]


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


class MatrixPoints:
    """Points that are the columns of a matrix A, however that is stored."""

    def __init__(self, A: Design) -> None:
        self.A = A
        self.d, self.n = A.shape

    def dot(self, w: Array) -> Array:
        return self.A.rmatvec(w)

    def combine(self, x: Array) -> Array:
        """Return A x, from the columns that x uses."""
        used = np.flatnonzero(x)
        return self.A.matvec(x[used], columns=used)

    def columns(self, index: Index) -> Array:
        return self.A.dense_columns(index)

    def norms_squared(self) -> Array:
        return self.A.column_norms_squared()

    def products(self, index: Index) -> Array:
        return self.A.columns_gram(None, index)

    def kernel(self, rows: Any = None, cols: Any = None) -> Array:
        """Return the products of the points `rows` with the points `cols`; None is all."""
        return self.A.columns_gram(rows, cols)

    def subset(self, index: Index) -> MatrixPoints:
        """Return some of the points."""
        return MatrixPoints(self.A.take_columns(index))

    def largest_entry(self) -> float:
        return self.A.largest_entry()

    def divided(self, scale: float) -> MatrixPoints:
        return MatrixPoints(self.A.divided(scale))


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
            return design_of(self.K[used]).rmatvec(w[used])
        return design_of(self.K).matvec(w)

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
        return KernelPoints(self.K / np.float64(scale) / scale)


def as_points(A: Any, *, kernel_matrix: bool = False) -> Points:
    """Return the points that a user gave: a matrix of columns, a kernel matrix, or points."""
    if isinstance(A, Points):
        return A
    name = "the kernel matrix A" if kernel_matrix else "A"
    if isinstance(A, DeviceDesign) and not kernel_matrix:
        return MatrixPoints(A)
    A = finite_matrix(A, name)
    if not kernel_matrix:
        return MatrixPoints(design_of(A))
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
    if math.isfinite(size) and not math.isfinite(size**2 * points.d if size < 1e154 else math.inf):
        raise ValueError(
            f"A has entries up to {size:.0e}, and squared lengths that float64 cannot hold. Divide "
            "it by a number first, e.g. by np.abs(A).max()."
        )
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
