"""Blocks of kernel values: how many are made at once, and the slices that they are made by."""

from __future__ import annotations

from collections.abc import Iterator

# Kernel values that a function of two sets of rows gives at once: 8 MB of float64, and a few times
# that for its own intermediate results.  More does not make it faster.
VALUES_AT_ONCE = 1 << 20


def ranges(stop: int, step: int) -> Iterator[slice]:
    """Slices of `step` that make up 0..stop."""
    for start in range(0, stop, step):
        yield slice(start, min(start + step, stop))


def row_ranges(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, each of which has `VALUES_AT_ONCE` values with `width` others."""
    return ranges(n_rows, max(1, VALUES_AT_ONCE // max(width, 1)))
