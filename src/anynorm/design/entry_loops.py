"""Compiled loops over the entries of one sparse row or column: what longer loops are made of.

Entries are counted with unsigned numbers, as a signed one could mean a place from the end, and dots
have four sums, which do not wait for each other: together they take half the time or less.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inner_loop

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@inner_loop
def gathered_dot(indices, values, start, stop, v):
    """The sum of values_k v_i, i being the k-th index."""
    first = second = third = fourth = 0.0
    k, end = np.uint64(start), np.uint64(stop)
    while k + _3 < end:
        first += values[k] * v[indices[k]]
        second += values[k + _1] * v[indices[k + _1]]
        third += values[k + _2] * v[indices[k + _2]]
        fourth += values[k + _3] * v[indices[k + _3]]
        k += _4
    while k < end:
        first += values[k] * v[indices[k]]
        k += _1
    return (first + second) + (third + fourth)


@inner_loop
def scatter(indices, values, start, stop, step, v):
    """Add step * values_k to v_i, i being the k-th index."""
    k, end = np.uint64(start), np.uint64(stop)
    while k < end:
        v[indices[k]] += step * values[k]
        k += _1
