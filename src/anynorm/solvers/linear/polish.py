"""The exact solution for a guess of which dual variables are free (box and squared losses).

With the others fixed at their bounds, the residuals of the free ones are r = shift a:

        (K_JJ + shift) delta + 1 db = (y - A u - b - shift beta)_J,
        sum(delta) = -sum(beta)                                       (free bias),

K = A A' (+ the variance of a regularised bias), beta = y a.  Variables that leave the box are
fixed at the bound they crossed and fixed ones whose margin has the wrong side are freed
(primal-dual active set method, Hintermüller, Ito and Kunisch 2003) until nothing changes.
K is factorised through a QR factor of A_J', so that its condition is not squared.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from anynorm.design import Design
from anynorm.norms.dual_sets import Box

_LARGEST = 2500  # free rows: a factor of 5e9 multiplications, half a second
_LARGEST_SINGULAR = 500  # free rows: least squares by singular values cost far more than a factor
_LARGEST_QR = 2_000_000  # entries of A_J' and R: beyond, the faster Cholesky of A_J A_J' has to do
_RIDGE = 1e-11  # of the largest diagonal entry: just enough for a Cholesky factor of a singular K
_TIED, _TIES_PER_COLUMN = (
    20,
    2,
)  # free rows beyond the unknowns that ties may explain
_ROUNDING = 1e-10  # of a bound, and of a margin: what is as good as there


def polish_free_set(
    features: Design,
    y: np.ndarray,
    box: Box,
    precision: float,
    dual: np.ndarray,
    bias: float,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """Return (u, bias, dual) with exact margins on the free set; None if large or unsettled."""
    size = np.maximum(np.abs(dual), np.where(np.isfinite(box.upper), box.upper, 0.0))
    margin = _ROUNDING * size
    side = np.zeros(dual.size, dtype=np.int8)
    side[dual <= box.lower + margin] = -1
    side[dual >= box.upper - margin] = 1
    side[box.upper == box.lower] = -1
    most = features.n if box.shift.any() else _TIED + _TIES_PER_COLUMN * (features.p + 1)
    seen: set[bytes] = set()
    for _ in range(25):  # a good guess needs a few changes, a bad one does not settle
        rows = np.flatnonzero(side == 0)
        # Far more exact margins than unknowns: not this free set, however many rows are tied.
        if rows.size > min(_LARGEST, most):
            return None
        dual = np.where(side < 0, box.lower, np.where(side > 0, box.upper, dual))
        solved = _solve_free(features, y, box.shift, precision, dual, bias, rows)
        if solved is None:
            return None
        u, bias, dual, scores = solved
        if rows.size == 0 and precision == 0.0:
            bias = _middle(side, y, scores)
        pull = 1.0 - y * (scores + bias) - box.shift * dual
        changed = _changed_sides(side, box, margin, dual, pull)
        if np.array_equal(changed, side):
            return u, bias, np.clip(dual, box.lower, box.upper)
        if changed.tobytes() in seen:
            return None
        seen.add(changed.tobytes())
        side = changed
    return None


def _changed_sides(side, box, margin, dual, pull):
    """Which variables sit at a bound after one solve; pull > 0 is one upwards."""
    out = side.copy()
    free, movable = side == 0, box.upper > box.lower
    out[free & (dual < box.lower - margin)] = -1
    out[free & (dual > box.upper + margin)] = 1
    out[(side < 0) & (pull > _ROUNDING) & movable] = 0
    out[(side > 0) & (pull < -_ROUNDING) & movable] = 0
    return out


def _solve_free(features, y, shift, precision, dual, bias, rows):
    """Solve, refine by the true residual, and return (u, bias, dual, scores)."""
    regularised = 0 < precision < np.inf
    system = _FreeSystem(features, shift, precision, rows) if rows.size else None
    dual = dual.copy()
    left = 0 if system is None else system.solves
    while True:
        u = features.rmatvec(y * dual)
        if regularised:
            bias = float(y @ dual) / precision
        scores = features.matvec(u)
        if system is None or left == 0:
            break
        left -= 1
        beta = y * dual
        miss = (y - scores - bias - shift * beta)[rows]
        step = system.solve(miss, -float(beta.sum()))
        if step is None:
            return None
        dual[rows] += y[rows] * step[0]
        bias += step[1]
    return u, bias, dual, scores


class _FreeSystem:
    """The system of one free set, factorised."""

    def __init__(self, features, shift, precision, rows):
        self.free_bias = precision == 0.0
        extra = 1.0 / precision if 0 < precision < np.inf else 0.0
        if rows.size * (features.p + rows.size) <= _LARGEST_QR:
            self.factor = _qr_factor(features.dense_rows(rows), shift[rows], extra)
        else:
            self.factor = _cholesky_factor(features.rows_gram(rows), shift[rows], extra)
        self.kernel, self.solves = None, 2
        if self.factor is None:
            kernel = features.rows_gram(rows) + np.diag(shift[rows]) + extra
            if rows.size <= _LARGEST_SINGULAR:
                self.kernel = kernel
            else:  # repeated solves with a slightly larger diagonal tend to the least change
                ridge = np.full(rows.size, _RIDGE * float(np.diagonal(kernel).max(initial=0.0)))
                self.factor = _cholesky_factor(kernel, ridge, 0.0, smallest=0.0)
                self.solves = 6

    def solve(self, miss, total):
        """(delta, change of the bias); the least change where the solution is not unique."""
        if self.factor is None:
            return None if self.kernel is None else self._least_change(miss, total)
        delta = self._apply(miss)
        if not self.free_bias:
            return delta, 0.0
        ones = self._apply(np.ones(miss.size))
        change = float((delta.sum() - total) / ones.sum())
        return delta - change * ones, change

    def _apply(self, rhs):
        upper, scale = self.factor
        half = scipy.linalg.solve_triangular(upper, scale * rhs, trans="T", check_finite=False)
        return scale * scipy.linalg.solve_triangular(upper, half, check_finite=False)

    def _least_change(self, miss, total):
        assert self.kernel is not None
        size = float(np.sqrt(np.diagonal(self.kernel).max(initial=0.0))) or 1.0
        matrix, rhs = self.kernel / size**2, miss / size**2
        if self.free_bias:
            border = np.ones((miss.size, 1))
            matrix = np.block([[matrix, border], [border.T, np.zeros((1, 1))]])
            rhs = np.append(rhs, total)
        x = scipy.linalg.lstsq(matrix, rhs, cond=1e-13, check_finite=False)[0]
        return (x[:-1], float(x[-1]) * size**2) if self.free_bias else (x, 0.0)


def _qr_factor(matrix, shift, extra):
    """R with R'R = K + shift + extra 11', scaled to a unit diagonal; None where K is singular."""
    parts = [matrix.T]
    if shift.any():
        parts.append(np.diag(np.sqrt(shift)))
    if extra:
        parts.append(np.full((1, matrix.shape[0]), np.sqrt(extra)))
    tall = np.vstack(parts)
    if tall.shape[0] < tall.shape[1]:
        return None
    norms = np.sqrt((tall**2).sum(axis=0))
    if not norms.all():
        return None
    # Rows in falling order of size: the factor is then accurate for badly scaled features too.
    tall = tall[np.argsort(-np.abs(tall).max(axis=1))] / norms
    upper = scipy.linalg.qr(tall, mode="r", overwrite_a=True, check_finite=False)[0]
    upper = upper[: tall.shape[1]]
    diagonal = np.abs(np.diagonal(upper))
    return None if diagonal.min() <= 1e-13 * diagonal.max() else (upper, 1.0 / norms)


def _cholesky_factor(kernel, shift, extra, smallest=1e-6):
    """As `_qr_factor`, from K itself; None where a pivot falls below `smallest`."""
    kernel = kernel + np.diag(shift) + extra
    diagonal = np.diagonal(kernel)
    if not np.all(diagonal > 0):
        return None
    scale = 1.0 / np.sqrt(diagonal)
    try:
        upper = scipy.linalg.cholesky(kernel * scale * scale[:, None], check_finite=False)
    except np.linalg.LinAlgError:
        return None
    return None if np.diagonal(upper).min() <= smallest else (upper, scale)


def _middle(side, y, scores):
    """The middle of the biases that leave every variable at its bound."""
    edge = y - scores
    # At a lower bound the margin is at least 1, at an upper one at most 1.
    from_below = (side * y) < 0
    low, high = edge[from_below], edge[~from_below]
    if low.size == 0 or high.size == 0:
        return float(low.max() if low.size else high.min())
    return 0.5 * float(low.max() + high.min())
