"""A triangular factor R'R = H of a small matrix whose rows and columns come and go.

R lies in the upper triangle of a larger array, by rows, so that solving and rotating run along
memory.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inner_loop, loop


@inner_loop
def _forward(R, s, b):
    """B <- R^-T b."""
    for k in range(s):
        value = b[k] / R[k, k]
        b[k] = value
        row = R[k]
        for i in range(k + 1, s):
            b[i] -= value * row[i]


@inner_loop
def _backward(R, s, b):
    """B <- R^-1 b."""
    for k in range(s - 1, -1, -1):
        row = R[k]
        total = b[k]
        for i in range(k + 1, s):
            total -= row[i] * b[i]
        b[k] = total / row[k]


@loop
def solve(R, s, b):
    """B <- (R'R)^-1 b."""
    _forward(R, s, b)
    _backward(R, s, b)


@loop
def append(R, s, column, diagonal, least):
    """Append a row and column of H to the factor; returns the pivot.

    A pivot of at most `least` leaves the factor as it was, with ``H^-1 column`` in `column`.
    """
    _forward(R, s, column)
    pivot = diagonal
    for i in range(s):
        pivot -= column[i] * column[i]
    if pivot <= least:
        _backward(R, s, column)
        return pivot
    for i in range(s):
        R[i, s] = column[i]
    R[s, s] = np.sqrt(pivot)
    return pivot


@loop
def remove(R, s, place):
    """Remove a row and column of H from the factor, by rotations."""
    for k in range(place + 1):
        row = R[k]
        for i in range(place, s - 1):
            row[i] = row[i + 1]
    for k in range(place + 1, s):
        row = R[k]
        for i in range(k - 1, s - 1):
            row[i] = row[i + 1]
    # Row k of the shifted factor has an entry left of its diagonal, in row k + 1.
    for k in range(place, s - 1):
        upper, lower = R[k], R[k + 1]
        a, b = upper[k], lower[k]
        length = np.hypot(a, b)
        c, q = a / length, b / length
        for i in range(k, s - 1):
            u, v = upper[i], lower[i]
            upper[i] = c * u + q * v
            lower[i] = c * v - q * u


@loop
def combine_rows(G, index, weights, width, out):
    """Out += sum_k weights_k G[index_k]."""
    for k in range(index.size):
        row, weight = G[index[k]], weights[k]
        for i in range(width):
            out[i] += weight * row[i]
