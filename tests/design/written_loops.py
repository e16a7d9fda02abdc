"""Functions in the part of Python that is translated to machine code, for its tests."""

import math

from anynorm.design.addresses import Length, Rows

FACTOR = 3
table, width = Rows(0), Length(0)
narrow = Rows(1, "float32")
places = Rows(2, "int32")
counts = Rows(3, "uint32")


def collatz(start):
    """Steps to 1: while, if, whole numbers."""
    steps, value = 0, start
    while value != 1:
        half = value >> 1
        value = half if 2 * half == value else 3 * value + 1
        steps += abs(-1)
    return abs(steps)


def above(values, n, least, out):
    """How many are above `least`, which are written to `out`; those after a NaN are left out."""
    count = 0
    for k in range(n):
        if not math.isfinite(values[k]):
            break
        if values[k] <= least:
            continue
        out[count] = FACTOR * values[k]
        count += 1
    return count


def spread(values, first, last):
    """The least and the largest, as a pair."""
    low, high = math.inf, -math.inf
    for k in range(first, last):
        low, high = min(low, values[k]), max(high, values[k])
    return low, high


def spreads(values, n, backwards, out):
    """Pairs from calls, a range that falls, a branch that is known."""
    if backwards is None:
        for k in range(n):
            pair = spread(values, 0, k + 1)
            out[k] = pair[1] - pair[0]
    else:
        for k in range(n - 1, -1, -1):
            low, high = spread(values, k, n)
            out[k] = high - low


def rows_of_tables(tables, sizes):
    """Sums over tables of all kinds of numbers; returns the length of a row."""
    n = width(tables)
    for k in range(2):
        row, small, place, count = (
            table(tables, k),
            narrow(tables, k),
            places(tables, k),
            counts(tables, k),
        )
        for i in range(n):
            row[i] += small[i] + place[i] + count[i]
            small[i], place[i], count[i] = 0.5 * i, -i, i + k
        sizes[k] = math.sqrt(abs(row[0])) if row[0] < 0 or (k == 1 and n > 1) else float(n)
    return n


def of_two_kinds(values):
    """A variable keeps its kind."""
    total = 0
    total += values[0]
    return total


def of_another_sort(values):
    """What is known is known for good."""
    found = None
    if values[0] > 0:
        found = 1.0
    return found


def with_a_list(values):
    """Nothing that is not translated goes by unnoticed."""
    return [2 * value for value in values]
