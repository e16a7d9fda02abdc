"""Loops over float32 rows of a kernel matrix that are kept in slots."""

from __future__ import annotations

from anynorm.design.compiled import loop

STRIP = 512  # scores of a part, which stay in the nearest cache while rows pass by
ROWS = 16  # of a part of a small square


@loop
def small_square(first, last, store, slots, index, known, place, out):
    """K[index, index], from rows and from entries known; some times `ROWS` of its rows."""
    for i in range(first * ROWS, min(last * ROWS, index.size)):
        row = store[slots[i]]
        for j in range(i + 1):
            if place[i] >= 0 and place[j] >= 0:
                out[i, j] = known[place[i], place[j]]
            else:
                out[i, j] = row[index[j]]
            out[j, i] = out[i, j]


@loop
def add_rows(first, last, store, slots, weights, scores, begin):
    """Scores += sum_k weights_k K[row_k], for some strips from one place on."""
    q = slots.size
    for strip in range(first, last):
        start = begin + strip * STRIP
        stop = min(start + STRIP, scores.size)
        k = 0
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
def compact(store, slots, columns, flat):
    """Some rows and columns of the store (both ascending) one after the other at its beginning."""
    width = columns.size
    for k in range(slots.size):
        row, start = store[slots[k]], k * width
        for c in range(width):
            flat[start + c] = row[columns[c]]


@loop
def take_columns(first, last, store, slots, columns, out):
    """Some columns of some rows."""
    for k in range(first, last):
        row = store[slots[k]]
        for c in range(columns.size):
            out[k, c] = row[columns[c]]
