"""Kernel matrices as block evaluators: rows against rows, never the whole matrix unless given.

Blocks are evaluated in float64 whatever the storage of X, so that a certificate does not
inherit the rounding of a solver that worked in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from anynorm.design import design_of
from anynorm.design.blocks import ranges, row_ranges
from anynorm.design.device_design import DeviceDesign
from anynorm.kernels import (
    RBF,
    FunctionKernel,
    Kernel,
    Linear,
    Poly,
    Precomputed,
    ProductKernel,
    kernel_of,
)
from anynorm.kernels.definite import (
    FEW_ROWS,
    SOME_ROWS,
    has_factor,
    is_semidefinite,
    seems_semidefinite,
)
from anynorm.kernels.kernel import Array, finite
from anynorm.kernels.sums import WORTH_COMPILED, DenseSums, ExponentialSums, KernelSums

_PRODUCTS_PER_COPY = 50.0  # how long an entry of X takes to be copied
_WORTH_HALVING = 512  # columns from which pairs of them are evaluated once only,
_HALVED_ENTRIES = 1 << 22  # if no more than this of X, 32 MB, is taken at once
_SYMMETRY, _NARROW_SYMMETRY = 1e-8, 1e-5  # of the largest entry: rounding of float64, of float32
_PROBED_ROWS = 32  # of X, by which a function is seen not to be symmetric


class Gram:
    """The kernel matrix of the rows of X, evaluated block by block.

    Make one with `make_gram`, or with `Gram.linear`, `Gram.rbf`, `Gram.poly`, `Gram.precomputed`
    or `Gram.from_callable`.

    Parameters
    ----------
    kernel : Kernel
        The kernel, with numbers for all of its parameters.
    X : matrix
        The rows.
    origin : ndarray of shape (p,) or None, default=None
        What is taken off all rows first: around it distances keep their digits.

    Attributes
    ----------
    n : int
        Number of rows.
    X : matrix or None
        The rows; None for a precomputed kernel.
    psd : bool or None
        True and False where it is known whether the kernel is positive semidefinite.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> gram = Gram.linear(np.array([[1.0, 0.0], [1.0, 2.0]]))
    >>> gram.block([0, 1], [1])
    array([[1.],
           [5.]])
    >>> gram.matvec(np.array([1.0, 1.0]))
    array([2., 6.])
    """

    X: Any
    _columns_at_once: ClassVar[int] = 2048  # that are taken out of X, and widened

    def __init__(self, kernel: Kernel, X: Any, origin: Array | None = None) -> None:
        self.kernel = kernel
        self.X = self._rows = self._columns = X
        self.n = X.shape[0]
        self.psd = kernel.psd
        self.origin = origin

    @classmethod
    def of(cls, kernel: Kernel, X: Any) -> Gram:
        """Return the matrix of any kernel, after a check on a few rows where it may be wrong."""
        if kernel.takes_matrix:
            return cls.precomputed(X)
        origin = _origin(X) if kernel.translation_invariant else None
        gram = gram_of(kernel.resolved(X), X, origin)
        if not kernel.symmetric:
            few = np.unique(np.linspace(0, gram.n - 1, min(gram.n, _PROBED_ROWS)).astype(int))
            first, second = few[: len(few) // 2], few[len(few) // 2 :]
            if len(first):
                block, mirrored = gram.block(first, second), gram.block(second, first).T
                _check_symmetric(block, mirrored, _is_narrow(gram.kernel, X))
        return gram

    @classmethod
    def linear(cls, X: Any) -> Gram:
        """Return the kernel x'z."""
        return cls.of(Linear(), X)

    @classmethod
    def rbf(cls, X: Any, gamma: str | float = "scale") -> Gram:
        """Return the kernel ``exp(-gamma ||x - z||^2)``."""
        return cls.of(RBF(gamma), X)

    @classmethod
    def poly(
        cls, X: Any, gamma: str | float = "scale", degree: float = 3, coef0: float = 0.0
    ) -> Gram:
        """Return the kernel ``(gamma x'z + coef0)^degree``."""
        return cls.of(Poly(gamma, degree, coef0), X)

    @classmethod
    def precomputed(cls, K: ArrayLike) -> Gram:
        """Return the kernel whose matrix is K, after checking that K is symmetric and finite."""
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError(
                "a precomputed kernel must be a square matrix, of all rows with all rows; got "
                f"shape {K.shape}. Give kernel(X, X) to fit and kernel(X_new, X) to predict."
            )
        gram = _GivenMatrix(K)
        for rows in row_ranges(gram.n, gram.n):
            mirrored = np.asarray(K[:, rows]).T
            _check_symmetric(gram.block(rows, slice(None)), mirrored, K.dtype == np.float32)
        return gram

    @classmethod
    def from_callable(
        cls, kernel: Callable[[Any, Any], ArrayLike], X: Any, psd: bool | None = None
    ) -> Gram:
        """Return the kernel of a function of two sets of rows, after a check on a few rows."""
        return cls.of(FunctionKernel(kernel, psd), X)

    def block(self, rows: Any, cols: Any) -> Array:
        """Return K[rows, cols] in float64; rows and cols are indices or slices."""
        return self._evaluated(_take(self.X, rows), _take(self.X, cols))

    def points(self) -> Any:
        """Return what `sums` take for all rows of X: X, or a matrix that was given."""
        return self._rows

    def part(self, rows: NDArray[np.intp]) -> Gram:
        """Return the kernel matrix of these rows alone."""
        return Gram(self.kernel, _take(self.X, rows), self.origin)

    def diagonal(self) -> Array:
        """Return the diagonal of K."""
        known = None if self.X is None else self.kernel.diagonal(self.X)
        if known is not None:
            return known
        step = 64  # rows of a block, of which only the diagonal is of use
        parts = [np.diagonal(self.block(rows, rows)) for rows in ranges(self.n, step)]
        return np.concatenate(parts) if parts else np.empty(0)

    def matvec(self, beta: ArrayLike, rows: Any = slice(None), *, compiled: bool = False) -> Array:
        """Return ``(K @ beta)[rows]``, only through the columns where beta is not zero.

        `compiled` is for those who have loaded Numba anyway: few values are then not worth less,
        and some rows no less than all, which are wanted sooner or later.
        """
        beta = np.asarray(beta, dtype=np.float64)
        points = _take(self._rows, rows)
        used = np.flatnonzero(beta)
        if self.kernel.is_inner_product:
            if 2 * len(used) >= len(beta):  # a copy of most rows takes longer than the others do
                w = design_of(self._columns).rmatvec(beta)
            else:
                w = design_of(_take(self._columns, used)).rmatvec(beta[used])
            return finite(design_of(points).matvec(w))
        out, others = np.zeros(points.shape[0]), slice(None)
        n_values = max((self.n if compiled else len(out)) * len(used), WORTH_COMPILED * compiled)
        small = self.X is not None and len(used) * self.X.shape[1] <= _HALVED_ENTRIES
        if small and len(used) >= _WORTH_HALVING:
            own, sums = np.arange(self.n)[rows], self.sums(used)
            if isinstance(sums, DenseSums) and np.array_equal(own[beta[own] != 0], used):
                others = beta[own] == 0
                out[~others] = sums.among_columns(beta[used], n_values=n_values)
        for start in range(0, len(used), self._columns_at_once):
            part = used[start : start + self._columns_at_once]
            out[others] += self.sums(part)(points[others], beta[part], n_values=n_values)
        return finite(out)

    def matmat(self, betas: ArrayLike) -> Array:
        """Return ``K @ betas`` for the columns of a matrix: each value of K is evaluated once.

        It is for those who have loaded Numba anyway, as `matvec` with `compiled`.
        """
        betas = np.asarray(betas, dtype=np.float64)
        used = np.flatnonzero(betas.any(axis=1))
        if self.kernel.is_inner_product:
            w = design_of(_take(self._columns, used)).rmatvec(betas[used])
            return finite(design_of(self._rows).matvec(w))
        out = np.zeros((self.n, betas.shape[1]))
        for start in range(0, len(used), self._columns_at_once):
            part = used[start : start + self._columns_at_once]
            out += self.sums(part)(self._rows, betas[part], n_values=WORTH_COMPILED)
        return finite(out)

    def cost(self, n_rows: int, n_columns: int) -> float:
        """What sums over so many columns cost for so many rows, in multiplications inside BLAS."""
        width = 1.0 if self.X is None else design_of(self.X).entries() / max(1, self.n)
        moved = _PRODUCTS_PER_COPY * (n_rows + n_columns) * width
        return moved if self.kernel.is_inner_product else moved + n_rows * n_columns * width

    def sums(self, cols: Any, dtype: DTypeLike = np.float64) -> KernelSums:
        """Return what sums kernel values of any rows over the rows `cols` of X.

        With a dtype of float32, the values of kernels of products of dense rows are float32.  For
        a precomputed kernel the rows are those of its matrix, new rows by rows of X.

        Examples
        --------
        >>> import numpy as np
        >>> from anynorm.kernels.gram import Gram
        >>> sums = Gram.linear(np.array([[1.0, 0.0], [1.0, 2.0]])).sums([0, 1])
        >>> sums(np.array([[3.0, 1.0]]), np.array([1.0, -1.0]))
        array([-2.])
        """
        columns = _take(self._columns, cols)
        if isinstance(self.kernel, ProductKernel) and not sp.issparse(columns):
            kind = ExponentialSums if isinstance(self.kernel, RBF) else DenseSums
            return kind(self.kernel, columns, dtype, self.origin)
        return KernelSums(self.kernel, columns)

    def cross(self, X_new: Any, cols: Any = slice(None)) -> Array:
        """Return the kernel of new rows against the rows `cols` of X.

        For a precomputed kernel X_new is that matrix itself, new rows by rows of X.
        """
        return self._evaluated(X_new, _take(self._columns, cols))

    def predict(self, X_new: Any, beta: ArrayLike) -> Array:
        """Return f at new rows, ``cross(X_new) @ beta``, block by block."""
        beta = np.asarray(beta, dtype=np.float64)
        used = np.flatnonzero(beta)
        return finite(self.sums(used)(X_new, beta[used]))

    @cached_property
    def semidefinite(self) -> bool:
        """Whether K is known, or shown by its numbers, to be positive semidefinite."""
        if self.psd is not None:
            return self.psd
        if self.n <= FEW_ROWS:
            return is_semidefinite(self.block(slice(None), slice(None)))
        diagonal = self.diagonal()
        if float(diagonal.min()) < 0:
            return False
        if self.n <= SOME_ROWS:  # the eigenvalues of a semidefinite matrix add up to its diagonal
            return has_factor(self, float(diagonal.sum()))
        return seems_semidefinite(self.matvec, self.n)

    def float32_error(self) -> float:
        """Return the relative error of entries that come from float32 products of rows.

        It is inf where there are no such products.
        """
        return np.inf if self.X is None else self.kernel.float32_error(self.around_origin(self.X))

    def around_origin(self, X: Any) -> Any:
        """Return rows less the origin, dense and in float64 where there is one."""
        if self.origin is None:
            return X
        return (X.toarray() if sp.issparse(X) else np.asarray(X)) - self.origin

    def _evaluated(self, A: Any, B: Any) -> Array:
        return self.kernel.checked_pairs(self.around_origin(A), self.around_origin(B))


class _GivenMatrix(Gram):
    """A kernel matrix that was given: places of rows stand for the rows that nobody knows."""

    def __init__(self, K: NDArray[Any]) -> None:
        super().__init__(Precomputed(), np.arange(len(K)))
        self._rows, self.X = K, None

    def block(self, rows: Any, cols: Any) -> Array:
        """Return K[rows, cols] in float64."""
        entries = self._rows[np.ix_(self._columns[rows], self._columns[cols])]
        return finite(np.asarray(entries, dtype=np.float64))

    def part(self, rows: NDArray[np.intp]) -> Gram:
        """Return the matrix of these rows and columns."""
        return _GivenMatrix(self._rows[np.ix_(rows, rows)])

    def cross(self, X_new: Any, cols: Any = slice(None)) -> Array:
        """Return the columns `cols` of a matrix of new rows by rows of X."""
        K = np.asarray(X_new)
        if K.ndim != 2 or K.shape[1] != self.n:
            raise ValueError(
                f"a precomputed kernel of new rows must have {self.n} columns, one for each "
                f"row it was fitted on; got shape {K.shape}"
            )
        return super().cross(K, cols)


def gram_of(kernel: Kernel, X: Any, origin: Array | None) -> Gram:
    """Return the matrix of a kernel with all its numbers, unchecked, where the rows are."""
    if not isinstance(X, DeviceDesign):
        return Gram(kernel, X, origin)
    from anynorm.kernels.device_gram import DeviceGram  # which is a Gram

    return DeviceGram(kernel, X, origin)


def make_gram(
    X: Any,
    kernel: Any = "rbf",
    *,
    gamma: str | float = "scale",
    degree: float = 3,
    coef0: float = 0.0,
) -> Gram:
    """Return the kernel matrix of X, by what `kernel_of` knows: a name, a function, a `Kernel`."""
    return Gram.of(kernel_of(kernel, gamma=gamma, degree=degree, coef0=coef0), X)


def _take(X: Any, rows: Any) -> Any:
    """Some rows; X itself where that is all of them, as a copy may take half a second."""
    if sp.issparse(X) and X.format == "csc":
        X = X.tocsr()
    if not isinstance(rows, slice):
        every = np.arange(X.shape[0])
        rows = every[rows]  # masks become numbers
        if np.array_equal(rows, every):
            return X
    return X[rows]


def _origin(X: Any) -> Array | None:
    """The mean row, which distances are computed around; None where 0 serves as well."""
    if sp.issparse(X):
        return None
    if isinstance(X, DeviceDesign):
        mean = X.rmatvec(np.full(X.n, 1.0 / X.n))
    else:
        mean = np.asarray(X).mean(axis=0, dtype=np.float64)
    square = float(mean @ mean)
    spread = float(design_of(X).row_norms_squared().mean()) - square
    return None if square <= spread else mean


def _is_narrow(kernel: Kernel, X: Any) -> bool:
    """Whether a kernel's values have the digits of float32: its rows have, or it makes them so."""
    if X.dtype == np.float32:
        return True
    if isinstance(X, DeviceDesign):
        return False
    return bool(getattr(kernel.pairs(X[:1], X[:1]), "dtype", None) == np.float32)


def _check_symmetric(block: Array, mirrored: NDArray[Any], narrow: bool) -> None:
    size = max(float(np.abs(block).max(initial=0.0)), 1e-300)
    allowed = _NARROW_SYMMETRY if narrow else _SYMMETRY
    if float(np.abs(block - mirrored).max(initial=0.0)) > allowed * size:
        raise ValueError(
            "the kernel is not symmetric: k(x, z) and k(z, x) differ. "
            "A matrix K that is meant to be symmetric becomes so by (K + K.T) / 2."
        )
