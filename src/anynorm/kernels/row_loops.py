"""Loops over float32 rows of a kernel matrix that are kept in slots."""

from __future__ import annotations

from anynorm.design.compiled import inner_loop, loop
from anynorm.design.team import in_parallel

STRIP = 512  # scores of a task, which stay in the nearest cache while rows pass by
_ROWS = 16  # of a task, a small part of their entries


@inner_loop
def _some_of_square(k, store, slots, index, known, place, out):
    for i in range(k * _ROWS, min((k + 1) * _ROWS, index.size)):
        row = store[slots[i]]
        for j in range(i + 1):
            if place[i] >= 0 and place[j] >= 0:
                out[i, j] = known[place[i], place[j]]
            else:
                out[i, j] = row[index[j]]
            out[j, i] = out[i, j]


@loop
def small_square(team, store, slots, index, known, place, out):
    """K[index, index], from rows and from entries known."""
    count = (index.size + _ROWS - 1) // _ROWS
    in_parallel(team, _some_of_square, count, (store, slots, index, known, place, out))


@inner_loop
def _add_to_strip(k, store, slots, weights, scores, first, last):
    start = first + k * STRIP
    stop, q, k = min(start + STRIP, last), slots.size, 0
    while k + 4 <= q:
        a, b, c, d = (
            store[slots[k]],
            store[slots[k + 1]],
            store[slots[k + 2]],
            store[slots[k + 3]],
        )
        wa, wb, wc, wd = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for i in range(start, stop):
            scores[i] += wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i]
        k += 4
    while k < q:
        a, wa = store[slots[k]], weights[k]
        for i in range(start, stop):
            scores[i] += wa * a[i]
        k += 1


@loop
def add_rows(team, store, slots, weights, scores, first, last):
    """Scores += sum_k weights_k K[row_k] from one place to another."""
    count = (last - first + STRIP - 1) // STRIP
    in_parallel(team, _add_to_strip, count, (store, slots, weights, scores, first, last))


@loop
def compact(store, slots, columns, flat):
    """Some rows and columns of the store (both ascending) one after the other at its beginning."""
    width = columns.size
    for k in range(slots.size):
        row, start = store[slots[k]], k * width
        for c in range(width):
            flat[start + c] = row[columns[c]]


@loop
def take_columns(store, slots, columns, out):
    """Some columns of rows."""
    for k in range(slots.size):
        row = store[slots[k]]
        for c in range(columns.size):
            out[k, c] = row[columns[c]]
