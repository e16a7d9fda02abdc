"""Compiled loops over the rows of a CSR matrix: dots, sums, and one epoch of dual descent.

Every loop takes (indptr, indices, values) as `anynorm.design.sparse.loop_arrays` returns them.
Entries are counted with unsigned numbers, as `entry_loops.py` explains.  Loops that begin with
(first, last, step) are for threads to share: part k has `step` rows from
``k * step`` on, and sums of its own, as two threads must not add to the same number.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import loop
from anynorm.design.entry_loops import gathered_dot, scatter

_1 = np.uint64(1)


@loop
def rows_dot(first, last, step, indptr, indices, values, rows, w, out):
    """X_J w."""
    for r in range(first * step, min(last * step, rows.size)):
        i = rows[r]
        out[r] = gathered_dot(indices, values, indptr[i], indptr[i + 1], w)


@loop
def row_squares(first, last, step, indptr, indices, values, factors, out):
    """The sum of factor_j x_ij^2 for every row."""
    for i in range(first * step, min(last * step, out.size)):
        k, end, total = np.uint64(indptr[i]), np.uint64(indptr[i + 1]), 0.0
        while k < end:
            total += factors[indices[k]] * (np.float64(values[k]) * values[k])
            k += _1
        out[i] = total


@loop
def add_rows(first, last, step, indptr, indices, values, rows, beta, sums):
    """X_J' beta of each part."""
    for k in range(first, last):
        own = sums[k]
        own[:] = 0.0
        for r in range(k * step, min((k + 1) * step, rows.size)):
            i = rows[r]
            scatter(indices, values, indptr[i], indptr[i + 1], beta[r], own)


@loop
def hessian_products(first, last, step, indptr, indices, values, rows, weights, w, sums):
    """X_J' (weights * X_J w) of each part in one pass, and at the end sum(weights * X_J w)."""
    for k in range(first, last):
        own, total = sums[k], 0.0
        own[:] = 0.0
        for r in range(k * step, min((k + 1) * step, rows.size)):
            start, stop = indptr[rows[r]], indptr[rows[r] + 1]
            t = weights[r] * gathered_dot(indices, values, start, stop, w)
            scatter(indices, values, start, stop, t, own)
            total += t
        own[-1] = total


@loop
def weighted_squares(first, last, step, indptr, indices, values, rows, weights, sums):
    """The sum of weights_i x_ij^2 of each part."""
    for k in range(first, last):
        own = sums[k]
        own[:] = 0.0
        for r in range(k * step, min((k + 1) * step, rows.size)):
            e, end = np.uint64(indptr[rows[r]]), np.uint64(indptr[rows[r] + 1])
            while e < end:
                own[indices[e]] += weights[r] * np.float64(values[e]) * values[e]
                e += _1


@loop
def add_weighted_gram(indptr, indices, values, rows, weights, out):
    """Lower triangle of out += X_J' diag(weights) X_J; indices within a row in any order."""
    for r in range(rows.size):
        start, stop = np.uint64(indptr[rows[r]]), np.uint64(indptr[rows[r] + 1])
        k = start
        while k < stop:
            t, other = weights[r] * values[k], start
            while other < stop:
                if indices[other] <= indices[k]:
                    out[indices[k], indices[other]] += t * values[other]
                other += _1
            k += _1


@loop
def add_portions(indptr, indices, values, portion_of, w, out):
    """out_ik += sum of x_ij w_j over the columns j of portion k."""
    for i in range(indptr.size - 1):
        k, end = np.uint64(indptr[i]), np.uint64(indptr[i + 1])
        while k < end:
            j = indices[k]
            out[i, portion_of[j]] += values[k] * w[j]
            k += _1


@loop
def add_scaled_row(indices, values, start, stop, step, scale, w):
    """Add step * scale * x_i to w, entry by entry."""
    k, end = np.uint64(start), np.uint64(stop)
    while k < end:
        w[indices[k]] += step * values[k] * scale[indices[k]]
        k += _1


@loop
def gap_share(gradient, dual, lower, upper, shift):
    """What one example adds to primal - dual, given the gradient of its dual coordinate."""
    if shift > 0:
        residual = shift * dual - gradient
        best = min(max(residual / shift, lower), upper)
        if lower < best < upper:
            return gradient * gradient / (2 * shift)
        return (best - dual) * (residual - 0.5 * shift * (best + dual))
    if gradient < 0:
        return (dual - upper) * gradient
    return (dual - lower) * gradient


@loop
def descend(
    indptr, indices, values, y, lower, upper, shift, curvature, scale, order,
    dual, w, bias, thresholds, relaxation, keep, found,
):  # fmt: skip
    """Dual coordinate steps over the rows in `order`; w and bias = (value, variance) follow.

    Steps are over-relaxed.  An example at a bound whose gradient points outwards beyond
    `thresholds` is dropped (`keep` becomes False).  `found` collects (smallest, largest projected
    gradient, gap).  `scale` has the factors of steps of w, one for all of it, or none.
    """
    scaled = scale.size > 1
    factor = scale[0] if scale.size == 1 else 1.0
    for position in range(order.size):
        i = order[position]
        start, stop = indptr[i], indptr[i + 1]
        a = dual[i]
        g = y[i] * (gathered_dot(indices, values, start, stop, w) + bias[0]) - 1.0 + shift[i] * a
        found[2] += gap_share(g, a, lower[i], upper[i], shift[i])
        projected = g
        if a == lower[i]:
            keep[i] = g <= thresholds[1]
            projected = min(g, 0.0)
        elif a == upper[i]:
            keep[i] = g >= thresholds[0]
            projected = max(g, 0.0)
        found[0] = min(found[0], projected)
        found[1] = max(found[1], projected)
        if projected == 0.0 or not keep[i]:
            continue
        new = min(max(a - relaxation * g / curvature[i], lower[i]), upper[i])
        if new != a:
            dual[i] = new
            step = (new - a) * y[i]
            bias[0] += bias[1] * step
            if scaled:
                add_scaled_row(indices, values, start, stop, step, scale, w)
            else:
                scatter(indices, values, start, stop, factor * step, w)
