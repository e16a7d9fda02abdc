"""A point of the simplex for the SVM with squared slacks, by way of its primal problem.

        minimise_w   1/2 ||w||^2 + C sum_i max(0, 1 - z_i'w)^2,      z_i = y_i (x_i, offset)

The least norm of the points ``(z_i, e_i / sqrt(2C))`` is the same problem: x is proportional to
``a_i = 2C max(0, 1 - z_i'w)``.  Where thousands of points are in use, w has far fewer unknowns than
a factor of their products.  The solver of linear SVMs finds it nearly, and Newton's steps for the
points in use, ``(I + 2C Z_S'Z_S) w = 2C Z_S'1``, to the last digits.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, cg

from anynorm.design import Design
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.linear.solve import solve_linear

Array = NDArray[np.float64]

_NEARLY = 1e-10  # the gap of the linear SVM
_STEPS = 20  # of Newton at most
_FACTOR = 500  # features up to which a step is by a factor, not by conjugate gradients


def squared_slack_duals(
    X: Design, signs: Array, C: float, offset: float | None, deadline: float
) -> Array:
    """The dual variables a of the SVM with squared slacks, nearly to the last digit."""
    problem = Problem(y=signs, C=C, loss=get_loss("squared_hinge"), X=X, intercept=offset)
    found = solve_linear(problem, tol=_NEARLY, deadline=None if math.isinf(deadline) else deadline)
    assert found.coef is not None
    w, bias = found.coef, found.intercept
    used = np.empty(0, dtype=np.intp)
    for _ in range(_STEPS):
        slacks = np.maximum(0.0, 1.0 - signs * (X.matvec(w) + bias))
        now = np.flatnonzero(slacks)
        if np.array_equal(now, used):
            break
        used = now
        w, bias = _newton(X.take_rows(used), signs[used], C, offset or 0.0, w, bias)
    return 2 * C * slacks


def _newton(
    X: Design, signs: Array, C: float, offset: float, w: Array, bias: float
) -> tuple[Array, float]:
    """The optimum where exactly these rows have a slack, as a step from (w, bias)."""
    p = X.p

    def forward(v: Array) -> Array:
        return signs * (X.matvec(v[:p]) + offset * v[p])

    def adjoint(a: Array) -> Array:
        return np.append(X.rmatvec(signs * a), offset * float(signs @ a))

    here = np.append(w, bias / offset if offset else 0.0)
    slope = here - 2 * C * adjoint(1.0 - forward(here))
    if p <= _FACTOR:
        Z = np.column_stack([X.dense(), np.full(len(signs), offset)])
        step = cho_solve(cho_factor(np.eye(p + 1) + 2 * C * (Z.T @ Z)), slope)
    else:
        diagonal = 1 + 2 * C * np.append(X.column_norms_squared(), offset**2 * len(signs))
        system = LinearOperator(
            (p + 1, p + 1), matvec=lambda v: v + 2 * C * adjoint(forward(v)), dtype=np.float64
        )
        scaling = LinearOperator((p + 1, p + 1), matvec=lambda v: v / diagonal, dtype=np.float64)
        # What 300 steps of conjugate gradients leave is for the next Newton step.
        step, _ = cg(system, slope, rtol=1e-10, maxiter=300, M=scaling)
    here = here - step
    return here[:p], offset * float(here[p])
