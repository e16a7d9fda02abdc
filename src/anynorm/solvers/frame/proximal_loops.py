"""Compiled sums over the rows of the proximal box losses (`proximal_box.py`), for threads to share.

Each function adds up parts of `step` rows, one row of `sums` for each.
"""

from __future__ import annotations

from anynorm.design.compiled import loop


@loop
def totals(first, last, step, center, sigma, lower, upper, y, scores, bias, sums):
    """Of y h', |h'| and h'' at the residuals 1 - y (scores + bias)."""
    for k in range(first, last):
        pull, size, bend = 0.0, 0.0, 0.0
        for i in range(k * step, min((k + 1) * step, y.size)):
            free = center[i] + sigma[i] * (1.0 - y[i] * (scores[i] + bias))
            dual = min(max(free, lower[i]), upper[i])
            pull += y[i] * dual
            size += abs(dual)
            bend += sigma[i] if dual == free and lower[i] < free < upper[i] else 0.0
        sums[k, 0], sums[k, 1], sums[k, 2] = pull, size, bend


@loop
def terms(
    first, last, step, center, sigma, lower, upper, y, scores, bias, residual, dual, beta, sums
):
    """Residuals 1 - y (scores + bias), their duals and y times these; of |dual residual|."""
    for k in range(first, last):
        size = 0.0
        for i in range(k * step, min((k + 1) * step, y.size)):
            r = 1.0 - y[i] * (scores[i] + bias)
            a = min(max(center[i] + sigma[i] * r, lower[i]), upper[i])
            residual[i], dual[i], beta[i] = r, a, y[i] * a
            size += abs(a * r)
        sums[k, 0] = size


@loop
def between(first, last, step, center, sigma, lower, upper, residual, inside, sums):
    """Whether the duals of residuals are between their bounds; how many are."""
    for k in range(first, last):
        count = 0
        for i in range(k * step, min((k + 1) * step, residual.size)):
            free = center[i] + sigma[i] * residual[i]
            inside[i] = (free > lower[i]) & (free < upper[i])
            count += inside[i]
        sums[k, 0] = count


@loop
def slope(first, last, step, center, sigma, lower, upper, residual, change, t, sums):
    """Of change h' at the residuals after a step of length t."""
    for k in range(first, last):
        total = 0.0
        for i in range(k * step, min((k + 1) * step, change.size)):
            free = center[i] + sigma[i] * (residual[i] - t * change[i])
            total += change[i] * min(max(free, lower[i]), upper[i])
        sums[k, 0] = total


@loop
def cost_and_gap(first, last, step, center, sigma, lower, upper, residual, dual, sums):
    """Of max_a a r, and of what the duals fall short of it."""
    for k in range(first, last):
        cost, gap = 0.0, 0.0
        for i in range(k * step, min((k + 1) * step, dual.size)):
            best = (upper[i] if residual[i] > 0 else lower[i]) * residual[i]
            cost += best
            gap += best - dual[i] * residual[i]
        sums[k, 0], sums[k, 1] = cost, gap
