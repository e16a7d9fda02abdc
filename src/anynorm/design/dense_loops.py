"""Compiled loops over the rows of a dense X, for threads to share.

X is stored row after row, in float64 or float32; sums are float64.  A part of the work is a fixed
number of rows (`rows_of_part`), so that sums depend on the data alone.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import loop

_ENTRIES = 1 << 16  # of X that a part reads, some ten microseconds


def rows_of_part(p: int) -> int:
    """How many rows of p entries a part has."""
    return max(1, _ENTRIES // max(1, p))


@loop
def times(first, last, step, X, w, out):
    """X w."""
    for i in range(first * step, min(last * step, X.shape[0])):
        row, total = X[i], 0.0
        for j in range(w.size):
            total += row[j] * w[j]
        out[i] = total


@loop
def transposed_times(first, last, step, X, a, sums):
    """X'a of each part."""
    for k in range(first, last):
        own, i, stop = sums[k], k * step, min((k + 1) * step, X.shape[0])
        own[:] = 0.0
        while i + 4 <= stop:
            r, s, t, u = X[i], X[i + 1], X[i + 2], X[i + 3]
            a_r, a_s, a_t, a_u = a[i], a[i + 1], a[i + 2], a[i + 3]
            for j in range(own.size):
                own[j] += a_r * r[j] + a_s * s[j] + a_t * t[j] + a_u * u[j]
            i += 4
        while i < stop:
            r, a_r = X[i], a[i]
            for j in range(own.size):
                own[j] += a_r * r[j]
            i += 1


@loop
def times_of(first, last, step, X, rows, w, out):
    """X_J w."""
    for i in range(first * step, min(last * step, rows.size)):
        row, total = X[rows[i]], 0.0
        for j in range(w.size):
            total += row[j] * w[j]
        out[i] = total


@loop
def transposed_times_of(first, last, step, X, rows, a, sums):
    """X_J'a of each part."""
    for k in range(first, last):
        own, i, stop = sums[k], k * step, min((k + 1) * step, rows.size)
        own[:] = 0.0
        while i + 2 <= stop:
            r, s, a_r, a_s = X[rows[i]], X[rows[i + 1]], a[i], a[i + 1]
            for j in range(own.size):
                own[j] += a_r * r[j] + a_s * s[j]
            i += 2
        if i < stop:
            r, a_r = X[rows[i]], a[i]
            for j in range(own.size):
                own[j] += a_r * r[j]


@loop
def hessian_times_of(first, last, step, X, rows, weights, w, sums):
    """X_J' (weights * X_J w) of each part, and at the end of each row the sum of that vector."""
    p = w.size
    for k in range(first, last):
        own, total = sums[k], 0.0
        own[:] = 0.0
        for i in range(k * step, min((k + 1) * step, rows.size)):
            row, score = X[rows[i]], 0.0
            for j in range(p):
                score += row[j] * w[j]
            score *= weights[i]
            for j in range(p):
                own[j] += score * row[j]
            total += score
        own[p] = total


@loop
def row_squares(first, last, step, X, factors, out):
    """sum_j factors_j x_ij^2 for every row."""
    for i in range(first * step, min(last * step, X.shape[0])):
        row, total = X[i], 0.0
        for j in range(factors.size):
            total += np.float64(row[j]) * np.float64(row[j]) * factors[j]
        out[i] = total


@loop
def copy_rows(first, last, step, X, rows, out):
    """Some rows of X."""
    for i in range(first * step, min(last * step, rows.size)):
        row, own = X[rows[i]], out[i]
        for j in range(row.size):
            own[j] = row[j]
