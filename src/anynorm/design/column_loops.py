"""Compiled loops over the columns of a matrix: dots, sums, compact parts, coordinate descent.

A matrix is (indptr, indices, values): the columns of a CSC matrix with unsigned indices, or, where
`indices` is empty, dense columns one after the other.  All arrays are passed read-only, so that
each storage type has one compiled version.

Entries of sparse columns are counted with unsigned numbers, as `entry_loops.py` explains.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inner_loop, loop
from anynorm.design.entry_loops import gathered_dot, scatter

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@loop
def column_dot(indices, values, start, stop, v):
    """x_j' v."""
    if indices.size > 0:
        return gathered_dot(indices, values, start, stop, v)
    total = 0.0
    for k in range(stop - start):
        total += values[start + k] * v[k]
    return total


@loop
def add_column(indices, values, start, stop, step, v):
    """Add step * x_j to v."""
    if indices.size > 0:
        scatter(indices, values, start, stop, step, v)
    else:
        for k in range(stop - start):
            v[k] += step * values[start + k]


@loop
def columns_dot(indptr, indices, values, columns, v, out):
    """out_k = x_j' v for the k-th of `columns`."""
    for k in range(columns.size):
        j = columns[k]
        out[k] = column_dot(indices, values, indptr[j], indptr[j + 1], v)


@loop
def add_columns(indptr, indices, values, columns, coef, out):
    """Add sum_k coef_k x_j to out, j being the k-th of `columns`."""
    for k in range(columns.size):
        if coef[k] != 0.0:
            j = columns[k]
            add_column(indices, values, indptr[j], indptr[j + 1], coef[k], out)


@loop
def columns_squares(indptr, indices, values, out):
    """out_j = ||x_j||^2 for every column."""
    for j in range(out.size):
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            total += np.float64(values[k]) * values[k]
        out[j] = total


@loop
def gather_columns(
    indptr, indices, values, columns, place, root, out_indptr, out_indices, out_values, squares
):
    """Copy root_i x_ij of the chosen columns, row i going to place_i (left out where negative).

    `squares` are the sums of their squares.
    """
    at = np.uint64(0)
    for k in range(columns.size):
        out_indptr[k] = at
        total = 0.0
        entry, end = np.uint64(indptr[columns[k]]), np.uint64(indptr[columns[k] + 1])
        while entry < end:
            i = indices[entry]
            # Written in any case and kept or not: a branch would be mispredicted half the time.
            out_indices[at] = place[i]
            value, kept = root[i] * values[entry], place[i] >= 0
            out_values[at] = value
            counted = value if kept else 0.0
            total += counted * counted
            at += np.uint64(kept)
            entry += _1
        squares[k] = total
    out_indptr[columns.size] = at


@loop
def gather_rows(indptr, indices, values, rows, root, place, out_starts, out_places, out_values):
    """Copy root_i x_ij of the chosen rows, column j becoming place_j (left out where negative)."""
    at = np.uint64(0)
    for k in range(rows.size):
        out_starts[k] = at
        factor = root[rows[k]]
        entry, end = np.uint64(indptr[rows[k]]), np.uint64(indptr[rows[k] + 1])
        while entry < end:
            j = place[indices[entry]]
            out_places[at] = j
            out_values[at] = factor * values[entry]
            at += np.uint64(j >= 0)
            entry += _1
    out_starts[rows.size] = at


@inner_loop
def _clipped_gathered_dot(indices, values, start, stop, r, floor):
    """The sum of values_k max(r_i, floor), i being the k-th index."""
    first = second = third = fourth = 0.0
    k, end = np.uint64(start), np.uint64(stop)
    while k + _3 < end:
        first += values[k] * max(r[indices[k]], floor)
        second += values[k + _1] * max(r[indices[k + _1]], floor)
        third += values[k + _2] * max(r[indices[k + _2]], floor)
        fourth += values[k + _3] * max(r[indices[k + _3]], floor)
        k += _4
    while k < end:
        first += values[k] * max(r[indices[k]], floor)
        k += _1
    return (first + second) + (third + fourth)


@loop
def clipped_dot(indices, values, start, stop, r, floor):
    """x_j' max(r, floor)."""
    if indices.size > 0:
        return _clipped_gathered_dot(indices, values, start, stop, r, floor)
    total = 0.0
    for k in range(stop - start):
        total += values[start + k] * max(r[k], floor)
    return total


@loop
def descend_columns(indptr, indices, values, order, penalty, curvature, unit, floor, coef, r, keep):
    """Coordinate steps on 1/2 ||max(r, floor)||^2 + sum penalty |coef|, r = start - A coef.

    `keep` says which coordinates are not at rest at zero.  Returns the largest violation of the
    optimality conditions that was met, in `unit`s.
    """
    largest = 0.0
    for position in range(order.size):
        j = order[position]
        start, stop = indptr[j], indptr[j + 1]
        g = clipped_dot(indices, values, start, stop, r, floor)
        old, bend = coef[j], curvature[j]
        point = bend * old + g
        excess = abs(point) - penalty[j]
        new = 0.0
        if excess > 0.0:
            new = excess / bend if point > 0 else -excess / bend
        keep[j] = old != 0.0 or excess > -0.1 * penalty[j]
        if new != old:
            coef[j] = new
            add_column(indices, values, start, stop, old - new, r)
            largest = max(largest, abs(new - old) * bend / unit[j])
    return largest


@loop
def by_rows(indptr, indices, values, starts, columns, entries):
    """The entries of a block row after row, within a row in the order of the columns."""
    p = indptr.size - 1
    for k in range(indptr[p]):
        starts[indices[k] + 1] += 1
    for i in range(starts.size - 1):
        starts[i + 1] += starts[i]
    for j in range(p):
        for k in range(indptr[j], indptr[j + 1]):
            at = starts[indices[k]]
            columns[at], entries[at] = j, values[k]
            starts[indices[k]] = at + 1
    for i in range(starts.size - 1, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0


@loop
def add_block_gram(starts, columns, entries, weights, first, last, out):
    """Add weights_i z_ij z_il to out_jl, j <= l, over the rows from the first to the last."""
    for i in range(first, last):
        for k in range(starts[i], starts[i + 1]):
            t, j = weights[i] * entries[k], columns[k]
            for other in range(k, starts[i + 1]):
                out[j, columns[other]] += t * entries[other]


@loop
def add_normal_product(starts, columns, entries, weights, w, first, last, out):
    """Add weights_i z_i (z_i'w) to out, over the rows from the first to the last."""
    for i in range(first, last):
        if weights[i] != 0.0:
            start, stop = starts[i], starts[i + 1]
            total = weights[i] * gathered_dot(columns, entries, start, stop, w)
            scatter(columns, entries, start, stop, total, out)
