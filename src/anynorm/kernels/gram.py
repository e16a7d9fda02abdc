"""Kernels as block evaluators: rows against rows, never the whole matrix unless it was given.

    linear        x'z
    rbf           exp(-gamma ||x - z||^2)
    poly          (gamma x'z + coef0)^degree
    precomputed   the matrix K itself
    callable      kernel(A, B) -> the matrix of all pairs

Blocks are evaluated in float64 whatever the storage of X, so that a certificate does not
inherit the rounding of a solver that worked in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from anynorm.design import design_of
from anynorm.kernels.sums import (
    WORTH_COMPILED,
    DenseSums,
    KernelSums,
    poly_of_products,
    ranges,
    rbf_of_products,
    squared_lengths,
)

Array = NDArray[np.float64]
Kernel = Callable[[Any, Any], ArrayLike]

_BLOCK_ENTRIES = 1 << 21
_CACHED_ENTRIES = 1 << 15
_COLUMNS = 2048  # that are taken out of X, and widened, at once
_WORTH_HALVING = 512  # columns from which pairs of them are evaluated once only,
_HALVED_ENTRIES = 1 << 22  # if no more than this of X is taken at once
_SYMMETRY = {np.dtype(np.float32): 1e-5}
_WIDE_SYMMETRY = 1e-8
_PROBED_ROWS = 32


class Gram:
    """The kernel matrix of the rows of X, evaluated block by block.

    Make one with `Gram.linear`, `Gram.rbf`, `Gram.poly`, `Gram.precomputed` or
    `Gram.from_callable`, or by name with `make_gram`.

    Attributes
    ----------
    n : int
        Number of rows.
    X : matrix or None
        The rows; None for a precomputed kernel.
    psd : bool or None
        True and False where it is known whether the kernel is positive semidefinite.
    parameters : dict
        What a named kernel depends on: gamma, degree, coef0, and the origin that distances are
        computed around.

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

    def __init__(self, pairs: Kernel, X: Any, n: int, psd: bool | None, name: str):
        self._pairs = pairs
        self._points = X
        self.X = None if name == "precomputed" else X
        self.n = n
        self.psd = psd
        self.name = name
        self.parameters = dict(pairs.keywords) if isinstance(pairs, partial) else {}

    @classmethod
    def linear(cls, X: Any) -> Gram:
        """Return the kernel x'z."""
        return cls(_products, X, X.shape[0], True, "linear")

    @classmethod
    def rbf(cls, X: Any, gamma: str | float = "scale") -> Gram:
        """Return the kernel ``exp(-gamma ||x - z||^2)``."""
        value = resolve_gamma(gamma, X)
        pairs = partial(_rbf, gamma=value, origin=_origin(X))
        return cls(pairs, X, X.shape[0], True, "rbf")

    @classmethod
    def poly(
        cls, X: Any, gamma: str | float = "scale", degree: float = 3, coef0: float = 0.0
    ) -> Gram:
        """Return the kernel ``(gamma x'z + coef0)^degree``."""
        value = resolve_gamma(gamma, X)
        pairs = partial(_poly, gamma=value, degree=degree, coef0=coef0)
        known = True if coef0 >= 0 and float(degree).is_integer() and degree >= 0 else None
        return cls(pairs, X, X.shape[0], known, "poly")

    @classmethod
    def precomputed(cls, K: ArrayLike) -> Gram:
        """Return the kernel whose matrix is K, after checking that K is symmetric and finite."""
        K = np.asarray(K)
        if K.ndim != 2 or K.shape[0] != K.shape[1]:
            raise ValueError(
                "a precomputed kernel must be a square matrix, of all rows with all rows; got "
                f"shape {K.shape}. Give kernel(X, X) to fit and kernel(X_new, X) to predict."
            )
        gram = cls(partial(_look_up, K=K), np.arange(len(K)), len(K), None, "precomputed")
        for rows in gram.row_blocks():
            _check_symmetric(gram.block(rows, slice(None)), np.asarray(K[:, rows]).T)
        return gram

    @classmethod
    def from_callable(cls, kernel: Kernel, X: Any, psd: bool | None = None) -> Gram:
        """Return the kernel of a function of two sets of rows, after a check on a few rows."""
        gram = cls(kernel, X, X.shape[0], psd, "callable")
        few = np.unique(np.linspace(0, gram.n - 1, min(gram.n, _PROBED_ROWS)).astype(int))
        first, second = few[: len(few) // 2], few[len(few) // 2 :]
        if len(first):
            _check_symmetric(gram.block(first, second), gram.block(second, first).T)
        return gram

    @classmethod
    def restored(cls, name: str, points: Any, parameters: dict[str, Any]) -> Gram:
        """Return a named kernel of some rows with the `parameters` that it had for more rows.

        For a precomputed kernel the points are places of its rows, and only `sums` is of use.
        """
        pairs = _NAMED_PAIRS[name]
        given = partial(pairs, **parameters) if parameters else pairs
        return cls(given, points, points.shape[0], None, name)

    def block(self, rows: Any, cols: Any) -> Array:
        """Return K[rows, cols] in float64; rows and cols are indices or slices."""
        return self._evaluated(_take(self._points, rows), _take(self._points, cols))

    def part(self, rows: NDArray[np.intp]) -> Gram:
        """Return the kernel matrix of these rows alone."""
        points, pairs = _take(self._points, rows), self._pairs
        if self.name == "precomputed":
            points = np.arange(len(rows))
            pairs = partial(_look_up, K=self.parameters["K"][np.ix_(rows, rows)])
        return Gram(pairs, points, len(rows), self.psd, self.name)

    def row_blocks(self, width: int | None = None) -> Iterator[slice]:
        """Slices of rows whose blocks against `width` columns (all by default) stay small."""
        step = max(1, _BLOCK_ENTRIES // max(width or self.n, 1))
        for start in range(0, self.n, step):
            yield slice(start, min(start + step, self.n))

    def diagonal(self) -> Array:
        """Return the diagonal of K."""
        if self.name == "linear":
            return design_of(self._points).row_norms_squared()
        if self.name == "rbf":
            return np.ones(self.n)
        step = 64
        parts = [
            np.diagonal(self.block(slice(i, i + step), slice(i, i + step)))
            for i in range(0, self.n, step)
        ]
        return np.concatenate(parts) if parts else np.empty(0)

    def matvec(self, beta: ArrayLike, rows: Any = slice(None), *, compiled: bool = False) -> Array:
        """Return ``(K @ beta)[rows]``, only through the columns where beta is not zero.

        `compiled` is for those who have loaded Numba anyway: few values are then not worth less.
        """
        beta = np.asarray(beta, dtype=np.float64)
        points = _take(self.parameters.get("K", self._points), rows)
        used = np.flatnonzero(beta)
        if self.name == "linear":
            w = design_of(_take(self._points, used)).rmatvec(beta[used])
            return _finite(design_of(points).matvec(w))
        out, others = np.zeros(points.shape[0]), slice(None)
        n_values = WORTH_COMPILED if compiled else len(out) * len(used)
        small = self.X is not None and len(used) * self.X.shape[1] <= _HALVED_ENTRIES
        if small and len(used) >= _WORTH_HALVING:
            own, sums = np.arange(self.n)[rows], self.sums(used)
            if isinstance(sums, DenseSums) and np.array_equal(own[beta[own] != 0], used):
                others = beta[own] == 0
                out[~others] = sums.among_columns(beta[used], n_values=n_values)
        for start in range(0, len(used), _COLUMNS):
            part = used[start : start + _COLUMNS]
            out[others] += self.sums(part)(points[others], beta[part], n_values=n_values)
        return _finite(out)

    def sums(self, cols: Any, dtype: DTypeLike = np.float64) -> KernelSums:
        """Return what sums kernel values of any rows over the rows `cols` of X.

        With a dtype of float32, the values of named kernels of dense rows are float32.  For a
        precomputed kernel the rows are those of its matrix, new rows by rows of X.

        Examples
        --------
        >>> import numpy as np
        >>> from anynorm.kernels.gram import Gram
        >>> sums = Gram.linear(np.array([[1.0, 0.0], [1.0, 2.0]])).sums([0, 1])
        >>> sums(np.array([[3.0, 1.0]]), np.array([1.0, -1.0]))
        array([-2.])
        """
        columns = _take(self._points, cols)
        if self.name in ("linear", "rbf", "poly") and not sp.issparse(columns):
            return DenseSums(self.name, self.parameters, columns, dtype)
        if self.name == "precomputed":
            return KernelSums(_entries, columns, self.name, {})
        return KernelSums(self._evaluated, columns, self.name, self.parameters)

    def cross(self, X_new: Any, cols: Any = slice(None)) -> Array:
        """Return the kernel of new rows against the rows `cols` of X.

        For a precomputed kernel X_new is that matrix itself, new rows by rows of X.
        """
        if self.name == "precomputed":
            K = np.asarray(X_new)
            if K.ndim != 2 or K.shape[1] != self.n:
                raise ValueError(
                    f"a precomputed kernel of new rows must have {self.n} columns, one for each "
                    f"row it was fitted on; got shape {K.shape}"
                )
            return _finite(np.asarray(K[:, cols], dtype=np.float64))
        return self._evaluated(X_new, _take(self._points, cols))

    def predict(self, X_new: Any, beta: ArrayLike) -> Array:
        """Return f at new rows, ``cross(X_new) @ beta``, block by block."""
        beta = np.asarray(beta, dtype=np.float64)
        used = np.flatnonzero(beta)
        return _finite(self.sums(used)(X_new, beta[used]))

    def is_psd(self, max_rows: int = 2000) -> bool | None:
        """Whether K is positive semidefinite up to rounding, by its eigenvalues.

        None where that is not known beforehand and there are more than max_rows rows.
        """
        if self.psd is not None or self.n > max_rows:
            return self.psd
        K = self.block(slice(None), slice(None))
        spectrum = np.linalg.eigvalsh((K + K.T) / 2)
        return bool(spectrum[0] >= -1e-10 * max(spectrum[-1], 0.0)) if self.n else True

    def _evaluated(self, A: Any, B: Any) -> Array:
        shape = (np.shape(A)[0], np.shape(B)[0])
        try:
            values = np.asarray(self._pairs(A, B), dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the {self.name} kernel could not be evaluated: {error}") from error
        if values.shape != shape:
            raise ValueError(
                f"the {self.name} kernel must return one number for each pair, a matrix of shape "
                f"{shape}; got shape {values.shape}"
            )
        return _finite(values)


def make_gram(
    X: Any,
    kernel: str | Kernel = "rbf",
    *,
    gamma: str | float = "scale",
    degree: float = 3,
    coef0: float = 0.0,
) -> Gram:
    """Return the kernel matrix of X by the kernel's name, or by a function of two sets of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import make_gram
    >>> make_gram(np.eye(2), "poly", gamma=1.0, degree=2, coef0=1.0).block([0], [0, 1])
    array([[4., 1.]])
    """
    if callable(kernel):
        return Gram.from_callable(kernel, X)
    if kernel == "linear":
        return Gram.linear(X)
    if kernel == "rbf":
        return Gram.rbf(X, gamma)
    if kernel == "poly":
        return Gram.poly(X, gamma, degree, coef0)
    if kernel == "precomputed":
        return Gram.precomputed(X)
    raise ValueError(
        "kernel must be 'linear', 'rbf', 'poly', 'precomputed' or a function of two sets of rows; "
        f"got {kernel!r}"
    )


def resolve_gamma(gamma: str | float, X: Any, weights: Array | None = None) -> float:
    """Return gamma as a number: "scale" is 1 / (p Var(X)), "auto" is 1 / p.

    The variance is that of all entries, rows counted as often as they weigh.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import resolve_gamma
    >>> resolve_gamma("scale", np.array([[0.0, 2.0], [2.0, 0.0]]))
    0.5
    """
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        variance = _variance(X, weights)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if isinstance(gamma, str) or not 0 <= gamma < np.inf:
        raise ValueError(f"gamma must be 'scale', 'auto' or a number of at least 0; got {gamma!r}")
    return float(gamma)


def _variance(X: Any, weights: Array | None) -> float:
    """The variance of all entries, zeros of a sparse X included."""
    if weights is None and not sp.issparse(X) and X.size <= _BLOCK_ENTRIES:
        return float(np.var(X, dtype=np.float64))
    w = np.ones(X.shape[0]) if weights is None else weights
    size = float(w.sum()) * X.shape[1]
    mean = float(design_of(X).rmatvec(w).sum()) / size
    if not sp.issparse(X):
        step = max(1, _CACHED_ENTRIES // X.shape[1])  # rows that stay in the cache
        parts = ((X[rows] - mean, w[rows]) for rows in ranges(X.shape[0], step))
        return float(sum(u @ np.einsum("ij,ij->i", d, d) for d, u in parts)) / size
    rows = X.tocsr()
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(rows.indptr))
    stored = float(w[row_of] @ np.square(rows.data.astype(np.float64) - mean))
    return (stored + (size - float(w @ np.diff(rows.indptr))) * mean**2) / size


def _take(X: Any, rows: Any) -> Any:
    if sp.issparse(X) and X.format == "csc":
        X = X.tocsr()
    return X[rows]


def _origin(X: Any) -> Array | None:
    """The mean row, which distances are computed around; None where 0 serves as well."""
    if sp.issparse(X):
        return None
    mean = np.asarray(X).mean(axis=0, dtype=np.float64)
    square = float(mean @ mean)
    spread = float(design_of(X).row_norms_squared().mean()) - square
    return None if square <= spread else mean


def _products(A: Any, B: Any) -> Array:
    A, B = A.astype(np.float64, copy=False), B.astype(np.float64, copy=False)
    product = A @ B.T
    return np.asarray(product.toarray() if sp.issparse(product) else product)


def _rbf(A: Any, B: Any, gamma: float, origin: Array | None) -> Array:
    if origin is not None:
        A, B = np.asarray(A) - origin, np.asarray(B) - origin
    values = _products(A, B)
    return rbf_of_products(values, squared_lengths(A), squared_lengths(B), gamma=gamma)


def _poly(A: Any, B: Any, gamma: float, degree: float, coef0: float) -> Array:
    return poly_of_products(_products(A, B), gamma=gamma, degree=degree, coef0=coef0)


def _look_up(A: Any, B: Any, K: NDArray[Any]) -> NDArray[Any]:
    return K[np.ix_(A, B)]


_NAMED_PAIRS: dict[str, Callable[..., Any]] = {
    "linear": _products,
    "rbf": _rbf,
    "poly": _poly,
    "precomputed": _look_up,
}


def _entries(K: Any, columns: Any) -> Array:
    return np.asarray(K[:, columns], dtype=np.float64)


def _finite(values: Array) -> Array:
    if not np.all(np.isfinite(values)):
        raise ValueError("the kernel has NaN or infinite values; check the data and the kernel")
    return values


def _check_symmetric(block: Array, mirrored: NDArray[Any]) -> None:
    size = max(float(np.abs(block).max(initial=0.0)), 1e-300)
    allowed = _SYMMETRY.get(mirrored.dtype, _WIDE_SYMMETRY)
    if float(np.abs(block - mirrored).max(initial=0.0)) > allowed * size:
        raise ValueError(
            "the kernel is not symmetric: k(x, z) and k(z, x) differ. "
            "A matrix K that is meant to be symmetric becomes so by (K + K.T) / 2."
        )
