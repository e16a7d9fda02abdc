"""Compiled steps of the dual over the rows: pairs of variables, or single ones.

        minimise_beta   1/2 beta'H beta - y'beta,     lower <= beta <= upper

with the gradient ``H beta - y`` kept up to date; sum(beta) does not change where pairs move.
"""

from __future__ import annotations

import numpy as np

from anynorm._jit import kernel


@kernel
def move_pairs(matrix, lower, upper, beta, gradient, accuracy, most):
    """Move pairs until the largest violation is below `accuracy`; returns the steps made."""
    n = beta.size
    for step in range(most):
        i, best = -1, -np.inf
        for k in range(n):
            if beta[k] < upper[k] and -gradient[k] > best:
                i, best = k, -gradient[k]
        if i < 0:
            return step
        j, worst, progress = -1, np.inf, 0.0
        for k in range(n):
            if beta[k] > lower[k]:
                worst = min(worst, -gradient[k])
                slope = best + gradient[k]
                if slope > 0:
                    bend = max(matrix[i, i] + matrix[k, k] - 2 * matrix[i, k], 1e-300)
                    if slope * slope / bend > progress:
                        j, progress = k, slope * slope / bend
        if j < 0 or best - worst <= accuracy:
            return step
        bend = max(matrix[i, i] + matrix[j, j] - 2 * matrix[i, j], 1e-300)
        size = min((best + gradient[j]) / bend, upper[i] - beta[i], beta[j] - lower[j])
        beta[i] = upper[i] if size == upper[i] - beta[i] else beta[i] + size
        beta[j] = lower[j] if size == beta[j] - lower[j] else beta[j] - size
        for k in range(n):
            gradient[k] += size * (matrix[i, k] - matrix[j, k])
    return most


@kernel
def move_singles(matrix, lower, upper, beta, gradient, accuracy, most):
    """As `move_pairs`, one variable at a time."""
    n = beta.size
    for step in range(most):
        i, progress, worst = -1, 0.0, 0.0
        for k in range(n):
            if (gradient[k] < 0 and beta[k] < upper[k]) or (gradient[k] > 0 and beta[k] > lower[k]):
                worst = max(worst, abs(gradient[k]))
                gain = gradient[k] * gradient[k] / max(matrix[k, k], 1e-300)
                if gain > progress:
                    i, progress = k, gain
        if i < 0 or worst <= accuracy:
            return step
        target = beta[i] - gradient[i] / max(matrix[i, i], 1e-300)
        target = min(max(target, lower[i]), upper[i])
        size = target - beta[i]
        beta[i] = target
        for k in range(n):
            gradient[k] += size * matrix[i, k]
    return most
