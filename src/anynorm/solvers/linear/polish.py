"""The exact solution for a guess of which dual variables are free (hinge and absolute losses).

With the others fixed at their bounds, the free margins are exactly 1:

        K_JJ delta + 1 db = (y - A u - b)_J,       sum(delta) = -sum(beta)   (free bias),

K = A A' (+ the variance of a regularised bias), beta = y a.  Variables that leave the box are
fixed at the bound they crossed and fixed ones whose margin has the wrong side are freed
(primal-dual active set method, Hintermüller, Ito and Kunisch 2003) until nothing changes.
"""

from __future__ import annotations

import warnings

import numpy as np
import scipy.linalg

from anynorm.solvers.linear.box import Box
from anynorm.solvers.linear.features import DenseFeatures, SparseFeatures

_LARGEST = 1500
_LARGEST_SINGULAR = 500
_ROUNDS = 25
_ROUNDING = 1e-10


def polish_free_set(
    features: DenseFeatures | SparseFeatures,
    y: np.ndarray,
    box: Box,
    precision: float,
    dual: np.ndarray,
    bias: float,
) -> tuple[np.ndarray, float, np.ndarray] | None:
    """(u, bias, dual) with exact margins on the free set; None where it is too large or unsettled."""
    width = box.upper - box.lower
    side = np.zeros(dual.size, dtype=np.int8)
    side[dual <= box.lower + _ROUNDING * width] = -1
    side[dual >= box.upper - _ROUNDING * width] = 1
    side[width == 0] = -1
    seen: set[bytes] = set()
    for _ in range(_ROUNDS):
        rows = np.flatnonzero(side == 0)
        if rows.size > min(_LARGEST, features.n):
            return None
        dual = np.where(side < 0, box.lower, np.where(side > 0, box.upper, dual))
        solved = _solve_free(features, y, precision, dual, bias, rows)
        if solved is None:
            return None
        u, bias, dual, scores = solved
        if rows.size == 0 and precision == 0.0:
            bias = _middle(side, y, scores)
        changed = _changed_sides(side, box, width, dual, 1.0 - y * (scores + bias))
        if np.array_equal(changed, side):
            return u, bias, np.clip(dual, box.lower, box.upper)
        if changed.tobytes() in seen:
            return None
        seen.add(changed.tobytes())
        side = changed
    return None


def _changed_sides(side, box, width, dual, residual):
    """Which variables sit at a bound after one solve; residual > 0 pulls a dual upwards."""
    out = side.copy()
    free = side == 0
    out[free & (dual < box.lower - _ROUNDING * width)] = -1
    out[free & (dual > box.upper + _ROUNDING * width)] = 1
    out[(side < 0) & (residual > _ROUNDING) & (width > 0)] = 0
    out[(side > 0) & (residual < -_ROUNDING) & (width > 0)] = 0
    return out


def _solve_free(features, y, precision, dual, bias, rows):
    """Two solves, the second of which refines the first; returns (u, bias, dual, scores)."""
    system = _System(features, precision, rows) if rows.size else None
    dual = dual.copy()
    for _ in range(2):
        u = features.adjoint(y * dual)
        if np.isfinite(precision) and precision > 0:
            bias = float(y @ dual) / precision
        scores = features.scores(u)
        if system is None:
            return u, bias, dual, scores
        miss = y[rows] - scores[rows] - bias
        step = system.solve(miss, -float(y @ dual))
        if step is None:
            return None
        dual[rows] += y[rows] * step[0]
        bias += step[1]
    u = features.adjoint(y * dual)
    if np.isfinite(precision) and precision > 0:
        bias = float(y @ dual) / precision
    return u, bias, dual, features.scores(u)


class _System:
    """The bordered system of one free set, scaled to a unit diagonal."""

    def __init__(self, features, precision, rows):
        kernel = features.rows_gram(rows)
        if np.isfinite(precision) and precision > 0:
            kernel += 1.0 / precision
        self.free_bias = precision == 0.0
        size = rows.size + self.free_bias
        matrix = np.zeros((size, size))
        scale = 1.0 / np.sqrt(np.maximum(np.diagonal(kernel), np.finfo(float).tiny))
        scale[np.diagonal(kernel) <= 0] = 1.0
        matrix[: rows.size, : rows.size] = kernel * scale * scale[:, None]
        if self.free_bias:
            border = scale / np.sqrt(scale @ scale / rows.size)
            matrix[-1, :-1] = matrix[:-1, -1] = border
        self.border = np.sqrt(scale @ scale / rows.size)
        self.scale, self.matrix = scale, matrix

    def solve(self, miss, total):
        """(delta, change of the bias); the least change where the solution is not unique."""
        rhs = self.scale * miss
        if self.free_bias:
            rhs = np.append(rhs, total / self.border)
        x = self._solve(rhs)
        if x is None:
            return None
        if self.free_bias:
            return self.scale * x[:-1], float(x[-1]) / self.border
        return self.scale * x, 0.0

    def _solve(self, rhs):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", scipy.linalg.LinAlgWarning)
                return scipy.linalg.solve(self.matrix, rhs, assume_a="sym")
        except (np.linalg.LinAlgError, scipy.linalg.LinAlgWarning):
            if rhs.size > _LARGEST_SINGULAR:
                return None
            return scipy.linalg.lstsq(self.matrix, rhs, cond=1e-13)[0]


def _middle(side, y, scores):
    """The middle of the biases that leave every variable at its bound."""
    edge = y - scores
    # At a lower bound the margin is at least 1, at an upper one at most 1.
    from_below = (side * y) < 0
    low, high = edge[from_below], edge[~from_below]
    if low.size == 0 or high.size == 0:
        return float(low.max() if low.size else high.min())
    return 0.5 * float(low.max() + high.min())
