"""The cheapest slacks above given ones, for norms that are not monotone.

With inequality constraints the slacks of margins m cost

    G(r) = min N(xi)  over  xi >= r, xi >= 0,         r = 1 - m,

and the multipliers a >= 0 are allowed when some e >= a has N*(e) <= C.  A monotone norm has
xi = r_+ and e = a; others need a small optimisation.  Any xi and any e give a rigorous bound,
so nothing here can make a certificate wrong, only weak.  A Mahalanobis norm leads to a
quadratic programme with signs, solved by block principal pivoting (Portugal, Judice and
Vicente 1994), which that norm asks for by itself; any other norm to a linear programme whose
columns are made on demand by the norm's maximiser.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import linprog, nnls

from anynorm.norms.norm import Array, Norm

_ROUNDS = 300  # of points or planes at the most; the best so far stands then
_ACCURACY = 1e-9  # relative: where the bounds from above and below meet


def smallest_above(norm: Norm, r: Array) -> Array:
    """Return xi >= r with N(xi) as small as it can be made, for r >= 0."""
    return _column_generation(norm, r)[0]


def smallest_above_with_bias(norm: Norm, r: Array, y: Array) -> tuple[Array, float]:
    """Return (xi, b) with xi >= max(r - y b, 0) and N(xi) as small as it can be made."""
    xi, b = _column_generation(norm, r, y)
    return np.maximum(xi, r - y * b), b


def smallest_dual_above(norm: Norm, a: Array) -> Array:
    """Return e >= a with N*(e) as small as it can be made, for a >= 0."""
    return _cutting_planes(norm, a)


def nonnegative_minimiser(M: Array, q: Array) -> Array:
    """Minimise ``1/2 z'Mz + q'z`` over z >= 0 for a positive definite M.

    Block principal pivoting: all rows of wrong sign change sides at once while that lowers
    their number, one at a time otherwise; scipy's nnls where even that does not end.
    """
    n = len(q)
    free = np.zeros(n, dtype=bool)
    fewest, patience = n + 1, 3
    for _ in range(10 * n + 20):
        z, gradient = np.zeros(n), q.copy()
        if free.any():
            z[free] = cho_solve(cho_factor(M[np.ix_(free, free)]), -q[free])
            gradient = q + M @ z
        scale = 1e-13 * (np.abs(M) @ np.abs(z) + np.abs(q))
        wrong = np.where(free, z < 0, gradient < -scale)
        count = int(np.count_nonzero(wrong))
        if count == 0:
            return z
        if count < fewest:
            fewest, patience = count, 3
            free ^= wrong
        elif patience > 0:
            patience -= 1
            free ^= wrong
        else:
            free[np.flatnonzero(wrong)[-1]] ^= True
    factor = np.linalg.cholesky(M)
    return np.asarray(nnls(factor.T, -np.linalg.solve(factor, q))[0])


def _column_generation(norm: Norm, r: Array, y: Array | None = None) -> tuple[Array, float]:
    """Minimise N(xi) over xi >= r - y b, xi >= 0 (b = 0 without y).

    xi is a non-negative combination of points of the unit ball; the multipliers of the linear
    programme name the next point through the norm's maximiser and give a lower bound.
    """
    n = len(r)
    best = np.maximum(r, 0.0)
    least, bias = norm.value(best), 0.0
    units = np.eye(n)
    points = [best / least, *(row / norm.value(row) for row in units)] if least > 0 else []
    shift = np.zeros((n, 1)) if y is None else y[:, None]
    for _ in range(_ROUNDS if points else 0):
        V = np.array(points).T
        rows = np.block([[V, shift], [V, np.zeros((n, 1))]])
        answer = linprog(
            np.append(np.ones(len(points)), 0.0),
            A_ub=-rows,
            b_ub=np.concatenate([-r, np.zeros(n)]),
            bounds=[(0, None)] * len(points) + [(None, None)],
        )
        if answer.status != 0:
            break
        b = float(answer.x[-1]) if y is not None else 0.0
        xi = np.maximum(V @ answer.x[:-1], np.maximum(r - (0.0 if y is None else y * b), 0.0))
        if norm.value(xi) < least:
            least, best, bias = norm.value(xi), xi, b
        multipliers = -np.asarray(answer.ineqlin.marginals)
        price = multipliers[:n] + multipliers[n:]
        bound = float(multipliers[:n] @ r) / max(1.0, norm.dual_value(price))
        if least - bound <= _ACCURACY * least:
            break
        points.append(np.asarray(norm.maximiser(price), dtype=np.float64))
    return best, bias


def _cutting_planes(norm: Norm, a: Array) -> Array:
    """Minimise N*(e) over e >= a; the maximiser at each e found is the next plane v'e."""
    n = len(a)
    best, least = a, norm.dual_value(a)
    reach = np.array([least * norm.value(row) for row in np.eye(n)])
    bounds = [(low, max(low, high)) for low, high in zip(a, reach, strict=True)]
    planes = [np.asarray(norm.maximiser(a), dtype=np.float64)]
    for _ in range(_ROUNDS):
        answer = linprog(
            np.append(np.zeros(n), 1.0),
            A_ub=np.hstack([np.array(planes), -np.ones((len(planes), 1))]),
            b_ub=np.zeros(len(planes)),
            bounds=[*bounds, (0.0, math.inf)],
        )
        if answer.status != 0:
            break
        e = np.maximum(answer.x[:-1], a)
        value = norm.dual_value(e)
        if value < least:
            best, least = e, value
        if least - float(answer.x[-1]) <= _ACCURACY * least:
            break
        planes.append(np.asarray(norm.maximiser(e), dtype=np.float64))
    return best
