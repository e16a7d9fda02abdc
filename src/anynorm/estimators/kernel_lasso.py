"""The Lasso in the space of a kernel, as a function of data."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from anynorm.design.checks import Array, finite_matrix, finite_vector
from anynorm.design.threads import entry_point
from anynorm.estimators._fitting import deadline
from anynorm.estimators._messages import progress_printer, warn_if_not_converged
from anynorm.estimators.checks.parameters import check_values
from anynorm.kernels import takes_matrix
from anynorm.kernels.gram import make_gram
from anynorm.problem.solution import Solution

_ROUNDING = 8 * np.finfo(np.float64).eps  # of a sum of three products


@entry_point
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
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable, default="rbf"
        The kernel; a `anynorm.kernels.Kernel` has its own parameters, a callable takes two sets of
        columns, as rows, and returns the matrix of values.
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
    of_kernel = {"kernel": kernel, "gamma": gamma, "degree": degree, "coef0": coef0}
    limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
    check_values(of_kernel | limits | {"radius": radius, "verbose": verbose})
    end = deadline(time_limit)
    K = _kernel_matrix(A, b, **of_kernel)
    _check_distances(K, float(radius), simplex)
    from anynorm.solvers.simplex import solve_kernel_lasso  # Numba: for those who solve

    solution = solve_kernel_lasso(
        K,
        radius=float(radius),
        simplex=bool(simplex),
        tol=float(tol),
        max_iter=int(max_iter),
        deadline=end,
        progress=progress_printer("kernel_lasso", verbose),
    )
    warn_if_not_converged(
        solution.certificate,
        solution.n_iter,
        max_iter,
        found="combination",
        rescale="scale the rows of A alike",
        may_vanish=True,
    )
    return solution


def _kernel_matrix(A: Any, b: Any, *, kernel: Any, **parameters: Any) -> Array:
    """The kernel values of all columns of A and, last, b."""
    A = finite_matrix(A, "A")
    if takes_matrix(kernel):
        if b is not None:
            raise ValueError(
                "b must be left out for a precomputed kernel: A has its kernel values in the last "
                "row and column."
            )
        if min(A.shape) < 2:
            raise ValueError("a precomputed kernel needs a column and b at least: 2 rows.")
        points = A.toarray() if sp.issparse(A) else A
    else:
        b = finite_vector(b, "b", A.shape[0], "row of A")
        rows = A.T
        stack = sp.vstack([rows, b[None, :]]) if sp.issparse(A) else np.vstack([rows, b])
        points = sp.csr_array(stack) if sp.issparse(A) else stack
    return make_gram(points, kernel, **parameters).block(slice(None), slice(None))


def _check_distances(K: Array, radius: float, simplex: bool) -> None:
    """Raise where a corner of the feasible set has a negative squared distance to psi(b)."""
    squares = radius**2 * np.diagonal(K)[:-1] + K[-1, -1]
    along = 2 * radius * K[:-1, -1]
    distances = squares - (along if simplex else np.abs(along))
    worst = int(distances.argmin())
    if distances[worst] < -_ROUNDING * float(np.abs(along).max()):
        raise ValueError(
            f"the kernel is not positive semidefinite: the squared distance of column {worst} of "
            f"A, times the radius, to b is {distances[worst]:.3g}. Check the kernel, or add to its "
            "diagonal."
        )
