r"""The Lasso in the space of a kernel (Jaggi 2014, problem (7)).

        minimise   || sum_i x_i psi(A_i) - psi(b) ||^2   over ||x||_1 <= r or the simplex times r

where :math:`k(u, v) = \langle\psi(u), \psi(v)\rangle`.  It is the SVM of the points
``+-r psi(A_i) - psi(b)`` (``+`` alone for the simplex), whose products are

        s_i s_j r^2 k(A_i, A_j) - s_i r k(A_i, b) - s_j r k(A_j, b) + k(b, b).

The *columns* of A are lifted, and b with them: the combination is to come near to psi(b) itself.
Kernel regression lifts the rows instead; that is another problem (`anynorm.SVC`, kernel ridge).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anynorm.design.points import KernelPoints
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.simplex.min_norm import solve_min_norm

Array = NDArray[np.float64]


def solve_kernel_lasso(
    K: Array,
    *,
    radius: float,
    simplex: bool,
    tol: float = 1e-9,
    max_iter: int = 10_000,
    deadline: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Combine the columns to come near to b, given the kernel values of the columns and, last, b.

    With `simplex` the coefficients are at least 0 and have the sum `radius`.  `coef` of the
    solution are these, `x` is the point of the simplex of the equivalent SVM.
    """
    signs = np.ones(len(K) - 1)
    if not simplex:
        signs = np.concatenate([signs, -signs])
    found = solve_min_norm(
        KernelPoints(_products(K, radius * signs)),
        tol=tol,
        max_iter=max_iter,
        deadline=deadline,
        progress=progress,
    )
    assert found.x is not None
    coef = radius * (signs * found.x).reshape(-1, len(K) - 1).sum(axis=0)
    return replace(found, coef=coef)


def _products(K: Array, scale: Array) -> Array:
    """The products of the points ``scale_i psi(A_i) - psi(b)``, A_i repeated in turn."""
    n = len(K) - 1
    column = np.arange(len(scale)) % n
    along = scale * K[column, n]
    out = K[np.ix_(column, column)] * np.multiply.outer(scale, scale)
    out -= along[:, None]
    out -= along
    out = (out + out.T) / 2 + K[n, n]
    np.fill_diagonal(out, np.maximum(out.diagonal(), 0.0))  # a length of 0 may be rounded below it
    return out
