"""The point of least norm in a convex hull, as a function of data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.design.checks import finite_vector
from anynorm.design.device import to_host
from anynorm.design.points import as_points
from anynorm.design.threads import entry_point
from anynorm.estimators._fitting import deadline
from anynorm.estimators._messages import progress_printer, warn_if_not_converged
from anynorm.estimators.checks.devices import device_points, followed, is_elsewhere
from anynorm.estimators.checks.parameters import check_values
from anynorm.problem.solution import Solution


@entry_point
def min_norm_point(
    A: Any,
    *,
    kernel_matrix: bool = False,
    tol: float = 1e-9,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    start: ArrayLike | None = None,
    verbose: int = 0,
) -> Solution:
    r"""Find the point of least norm in the convex hull of some points, the columns of A.

    That is :math:`\min \|Ax\|^2` over the simplex, :math:`x \ge 0`, :math:`\sum_i x_i = 1`: the
    hard-margin SVM without a bias.  Soft margins, the one-class SVM and the Lasso take this form
    through `anynorm.reductions`.

    Parameters
    ----------
    A : {array-like, sparse matrix} of shape (d, n), or points
        The n points, as columns, perhaps on a device.  Points of `anynorm.reductions` (or anything
        with the attributes d and n and the methods dot, combine, columns, norms_squared and
        products) need not be stored.
    kernel_matrix : bool, default=False
        Whether A is instead the n x n matrix of products of the points, a kernel matrix.
        Its entries are rounded: a squared norm below 4 eps of the largest one counts as 0.
    tol : float, default=1e-9
        The relative duality gap to reach.
    max_iter : int, default=10_000
        The most major steps of Wolfe's method.
    time_limit : float or None, default=None
        Stop after that many seconds.
    start : array-like of shape (n,) or None, default=None
        Where to start: numbers of at least 0, which are scaled to the sum 1, such as the ``x`` of a
        similar problem.
    verbose : int, default=0
        1 prints a line for each progress report.

    Returns
    -------
    Solution
        ``x`` are the coefficients and ``dual`` is the point w = A x (x for a kernel matrix).
        ``certificate`` has the primal value ||A x||^2, the dual value
        ``max(0, min_i A_i'w / ||w||)^2`` and their relative gap.  Where 0 is in the hull, the
        dual value is 0, the primal value what rounding leaves of it, and the status
        `Status.NEGLIGIBLE`.

    Warns
    -----
    ConvergenceWarning
        Where tol is not reached.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm import min_norm_point
    >>> A = np.array([[1.0, 3.0, 2.0], [2.0, 0.0, 5.0]])
    >>> solution = min_norm_point(A)
    >>> solution.x, solution.dual
    (array([0.75, 0.25, 0.  ]), array([1.5, 1.5]))
    >>> print(solution.certificate)
    optimal: primal 4.5, dual 4.5, relative gap ... (tol 1e-09)

    The origin between two points:

    >>> print(min_norm_point(np.array([[-1.0, 1.0]])).certificate)
    negligible: primal ..., dual 0, relative gap ... (tol 1e-09)
    """
    limits = {"tol": tol, "max_iter": max_iter, "time_limit": time_limit}
    check_values(limits | {"verbose": verbose})
    end = deadline(time_limit)
    if is_elsewhere(A):
        A = device_points(A, "min_norm_point", kernel_matrix=kernel_matrix)
    points = as_points(A, kernel_matrix=kernel_matrix)
    first = None if start is None else _usable_start(to_host(start), points.n)
    from anynorm.solvers.simplex import solve_min_norm  # Numba: for those who solve

    solution = solve_min_norm(
        points,
        tol=float(tol),
        max_iter=int(max_iter),
        deadline=end,
        start=first,
        progress=progress_printer("min_norm_point", verbose),
    )
    warn_if_not_converged(
        solution.certificate,
        solution.n_iter,
        max_iter,
        found="point",
        rescale="scale the rows of A alike",
        may_vanish=True,
    )
    return replace(solution, **followed({"x": solution.x, "dual": solution.dual}, A))


def _usable_start(start: ArrayLike, n: int) -> NDArray[np.float64]:
    x = finite_vector(start, "start", n, "point")
    if x.min() < 0 or not x.max() > 0:
        raise ValueError("start must hold numbers of at least 0, not all of them 0.")
    x = x / x.max()
    return x / x.sum()
