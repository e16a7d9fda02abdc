"""Evidence that a kernel matrix is positive semidefinite, without which no dual value is a bound.

Kernels that are known to be need none.  Of others the whole matrix is factored, where there are
few rows, or its smallest eigenvalue is computed with its error bound (Lanczos).  What rounding of
the entries explains counts as zero.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cholesky
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

Array = NDArray[np.float64]

FEW_ROWS = 3000  # a factor of so many takes half a second and 72 MB
_ROUNDING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}  # of the largest row sum
_STEPS, _ACCURACY = 200, 1e-6  # of Lanczos: products with the matrix, and of the largest row sum


def is_semidefinite(K: NDArray[np.floating]) -> bool:
    """Return whether a symmetric matrix is positive semidefinite but for rounding, by a factor.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.definite import is_semidefinite
    >>> is_semidefinite(np.ones((3, 3))), is_semidefinite(np.eye(3) - 0.5)
    (True, False)
    """
    K = np.asarray(K)
    narrow = K.dtype == np.float32 or np.array_equal(K.astype(np.float32), K)
    K = np.asarray(K, dtype=np.float64)
    largest = float(np.abs(K).sum(axis=1).max(initial=0.0))
    if largest == 0.0:
        return True
    shifted = (K + K.T) / (2 * largest)
    shifted[np.diag_indices_from(shifted)] += _ROUNDING[np.dtype(np.float32 if narrow else float)]
    try:
        cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return False
    return True


def seems_semidefinite(times: Callable[[Array], Array], n: int, largest: float) -> bool:
    """Return the same for a large matrix, known by its products, by its smallest eigenvalue.

    `largest` is a bound of its eigenvalues.  Lanczos finds one up to its residual; that
    there is none below it is likely, and no proof.
    """
    # The largest eigenvalue of largest I - K converges relative to its size, the smallest of K not.
    operator = LinearOperator((n, n), matvec=lambda v: largest * v - times(v), dtype=np.float64)
    first = np.random.default_rng(0).normal(size=n)
    try:
        found, vectors = eigsh(operator, k=1, which="LA", tol=_ACCURACY, maxiter=_STEPS, v0=first)
    except ArpackError:
        return False
    value, vector = largest - float(found[0]), vectors[:, 0]
    error = float(np.linalg.norm(times(vector) - value * vector))
    return value - error >= -2 * _ACCURACY * largest
