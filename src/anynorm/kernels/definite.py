"""Evidence that a kernel matrix is positive semidefinite, without which no dual value is a bound.

Kernels that are known to be need none.  Of others the whole matrix is factored, up to 10,000 rows,
beyond which its smallest eigenvalue is computed with its error bound (Lanczos).  What rounding of
the entries explains counts as zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

if TYPE_CHECKING:
    from anynorm.kernels.gram import Gram

Array = NDArray[np.float64]

FEW_ROWS = 3000  # a factor of so many takes half a second and 72 MB
SOME_ROWS = 10_000  # and of so many, half of it in memory, 400 MB
_BASIS, _RESTARTS = 60, 200  # of Lanczos: with 20 vectors 400 rows of an rbf kernel did not end
_ACCURACY = 1e-6  # of the largest eigenvalue


def _rounding(values: NDArray[np.floating]) -> float:
    """What entries of this kind are rounded by, relative to the largest eigenvalue."""
    narrow = values.dtype == np.float32 or np.array_equal(values.astype(np.float32), values)
    return 1e-6 if narrow else 1e-10


def is_semidefinite(K: NDArray[np.floating]) -> bool:
    """Return whether a symmetric matrix is positive semidefinite but for rounding, by a factor.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.definite import is_semidefinite
    >>> is_semidefinite(np.ones((3, 3))), is_semidefinite(np.eye(3) - 0.5)
    (True, False)
    """
    rounding = _rounding(np.asarray(K))
    K = np.asarray(K, dtype=np.float64)
    largest = float(np.abs(K).sum(axis=1).max(initial=0.0))
    if largest == 0.0:
        return True
    shifted = (K + K.T) / (2 * largest)
    shifted[np.diag_indices_from(shifted)] += rounding
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def has_factor(gram: Gram, largest: float) -> bool:
    """Return the same for some thousand rows, with half of the matrix in memory.

    `largest` is a bound of its eigenvalues.
    """
    from anynorm.kernels.half_matrix import Factor, HalfMatrix  # which are made of a Gram

    rounding = _rounding(gram.block(slice(0, 1), slice(None)))
    half = HalfMatrix(gram, None, math.inf, lambda: None)
    try:
        Factor(half, np.full(gram.n, rounding * largest), lambda: None)
    except LinAlgError:
        return False
    return True


def seems_semidefinite(times: Callable[[Array], Array], n: int) -> bool:
    """Return the same for a large matrix, known by its products, by its smallest eigenvalue.

    It is judged to a millionth of the largest one.  Lanczos finds an eigenvalue up to its residual;
    that there is none below it is likely, and no proof.
    """
    first = np.random.default_rng(0).normal(size=n)

    def top_of(matvec: Callable[[Array], Array], tol: float) -> tuple[float, Array]:
        operator = LinearOperator((n, n), matvec=matvec, dtype=np.float64)
        size = {"ncv": min(_BASIS, n), "maxiter": _RESTARTS}
        values, vectors = eigsh(operator, k=1, which="LA", tol=tol, v0=first, **size)
        return float(values[0]), vectors[:, 0]

    try:
        largest = 1.1 * top_of(times, 0.01)[0]
        # The largest eigenvalue of largest I - K converges relative to its size, unlike K's least.
        found, vector = top_of(lambda v: largest * v - times(v), _ACCURACY)
    except ArpackError:
        return False
    value = largest - found
    error = float(np.linalg.norm(times(vector) - value * vector))
    return value - error >= -2 * _ACCURACY * largest
