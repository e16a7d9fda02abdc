"""Loops over float32 rows of a kernel matrix that are kept in slots."""

from __future__ import annotations

from anynorm.design.compiled import loop

STRIP = 256  # scores of a part: threads share them in such parts
TOGETHER = 4  # parts that stay in the nearest cache while rows pass by, in longer stretches
ROWS = 8  # of a part of a small square, as many as are in a line of a cache


@loop
def small_square(first, last, store, slots, index, known, place, out):
    """K[index, index], from rows and from entries known; some times `ROWS` of its rows."""
    for part in range(first, last):
        begin, end = part * ROWS, min((part + 1) * ROWS, index.size)
        for i in range(begin, end):
            row, own = store[slots[i]], place[i]
            for j in range(i + 1):
                if own >= 0 and place[j] >= 0:
                    out[i, j] = known[own, place[j]]
                else:
                    out[i, j] = row[index[j]]
        for j in range(end):  # the other half, some neighbours at a time
            for i in range(max(begin, j + 1), end):
                out[j, i] = out[i, j]


@loop
def add_rows(first, last, store, slots, weights, scores, begin):
    """Scores += sum_k weights_k K[row_k], for some strips from one place on."""
    q, end = slots.size, min(begin + last * STRIP, scores.size)
    for start in range(begin + first * STRIP, end, TOGETHER * STRIP):
        stop = min(start + TOGETHER * STRIP, end)
        k = 0
        while k + 8 <= q:  # scores are read and written once for so many rows
            a, b, c, d = (
                store[slots[k]],
                store[slots[k + 1]],
                store[slots[k + 2]],
                store[slots[k + 3]],
            )
            e, f, g, h = (
                store[slots[k + 4]],
                store[slots[k + 5]],
                store[slots[k + 6]],
                store[slots[k + 7]],
            )
            w = weights[k : k + 8]
            wa, wb, wc, wd, we, wf, wg, wh = w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]
            for i in range(start, stop):
                scores[i] += (wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i]) + (
                    we * e[i] + wf * f[i] + wg * g[i] + wh * h[i]
                )
            k += 8
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
