r"""The Lasso in the space of a kernel (Jaggi 2014, problem (7)).

        minimise   || sum_i x_i psi(A_i) - psi(b) ||^2   over ||x||_1 <= r or the simplex times r

where :math:`k(u, v) = \langle\psi(u), \psi(v)\rangle`.  It is the SVM of the points
``+-r psi(A_i) - psi(b)`` (``+`` alone for the simplex), whose products are

        s_i s_j r^2 k(A_i, A_j) - s_i r k(A_i, b) - s_j r k(A_j, b) + k(b, b).

The *columns* of A are lifted, and b with them: the combination is to come near to psi(b) itself.
Kernel regression lifts the rows instead; that is another problem (`anynorm.SVC`, kernel ridge).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.design import design_of
from anynorm.design.checks import finite_matrix, finite_vector, positive
from anynorm.kernels.gram import make_gram
from anynorm.problem.solution import Solution
from anynorm.solvers.simplex.min_norm import min_norm_point

Array = NDArray[np.float64]

__all__ = ["kernel_lasso"]


def kernel_lasso(
    A: Any,
    b: ArrayLike | None = None,
    *,
    kernel: Any = "rbf",
    radius: float = 1.0,
    simplex: bool = False,
    degree: float = 3,
    gamma: Any = "scale",
    coef0: float = 0.0,
    tol: float = 1e-9,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    verbose: int = 0,
) -> Solution:
    """Combine few columns of A so that they come near to b in the space of a kernel.

    Parameters
    ----------
    A : {array-like, sparse matrix} of shape (d, n), or (n + 1, n + 1) for a precomputed kernel
        The columns to combine.  For "precomputed", the kernel values of the columns and, last, b.
    b : array-like of shape (d,)
        What they are to come near to; left out for a precomputed kernel.
    kernel : {"rbf", "linear", "poly", "precomputed"} or callable, default="rbf"
        The kernel; a callable takes two sets of columns, as rows, and returns the matrix of values.
    radius : float, default=1.0
        The largest 1-norm of the coefficients, or their sum for the simplex.
    simplex : bool, default=False
        Whether the coefficients are to be at least 0 with the sum `radius`, rather than any with at
        most this 1-norm.
    degree, gamma, coef0 : float, {"scale", "auto"} or float, float
        The parameters of the kernels, as in `anynorm.SVC`; the rows of X there are the columns of A
        and b here.
    tol : float, default=1e-9
        The relative duality gap to reach.
    max_iter, time_limit, verbose : int, float or None, int
        As in `anynorm.min_norm_point`.

    Returns
    -------
    Solution
        ``coef`` are the n coefficients, ``x`` the point of the simplex of the equivalent SVM (2n
        entries, or n), and ``certificate`` has the squared distance as its primal value.

    Warns
    -----
    ConvergenceWarning
        Where tol is not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm import kernel_lasso
    >>> A, b = np.array([[0.0, 1.0, 5.0], [0.0, 0.0, 5.0]]), np.array([0.5, 0.0])
    >>> kernel_lasso(A, b, kernel="rbf", gamma=1.0).coef.round(3)
    array([0.5, 0.5, 0. ])
    """
    radius = positive(radius, "radius")
    K = _kernel_matrix(A, b, kernel, gamma=gamma, degree=degree, coef0=coef0)
    signs = np.ones(len(K) - 1)
    if not simplex:
        signs = np.concatenate([signs, -signs])
    found = min_norm_point(
        _products(K, radius * signs),
        kernel_matrix=True,
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        verbose=verbose,
    )
    x = found.x
    assert x is not None
    coef = radius * (signs * x).reshape(-1, len(K) - 1).sum(axis=0)
    return Solution(
        dual=found.dual, certificate=found.certificate, n_iter=found.n_iter, coef=coef, x=x
    )


def _kernel_matrix(A: Any, b: Any, kernel: Any, **parameters: Any) -> Array:
    """The kernel values of all columns of A and, last, b."""
    A = finite_matrix(A, "A")
    if isinstance(kernel, str) and kernel == "precomputed":
        if b is not None:
            raise ValueError(
                "b must be left out for a precomputed kernel: A has its kernel values in the last "
                "row and column."
            )
        if min(A.shape) < 2:
            raise ValueError("a precomputed kernel needs a column and b at least: 2 rows.")
        points = design_of(A).dense()
    else:
        b = finite_vector(b, "b", A.shape[0], "row of A")
        points = design_of(A).transposed().with_rows(b[None, :]).stored
    return make_gram(points, kernel, **parameters).block(slice(None), slice(None))


def _products(K: Array, scale: Array) -> Array:
    """The products of the points ``scale_i psi(A_i) - psi(b)``, A_i repeated in turn."""
    n = len(K) - 1
    column = np.arange(len(scale)) % n
    along = scale * K[column, n]
    out = K[np.ix_(column, column)] * np.multiply.outer(scale, scale)
    out -= along[:, None]
    out -= along
    return (out + out.T) / 2 + K[n, n]
