"""Long tables in parts, so that what is computed for all of them needs little memory."""

from __future__ import annotations

from collections.abc import Iterator

from anynorm.design import limits


def ranges(stop: int, step: int, first: int = 0) -> Iterator[slice]:
    """Slices of `step` that make up first..stop."""
    for start in range(first, stop, step):
        yield slice(start, min(start + step, stop))


def row_ranges(n_rows: int, width: int) -> Iterator[slice]:
    """Slices of rows, for each of which `width` numbers are at work: `VALUES_AT_ONCE` in all."""
    return ranges(n_rows, max(1, limits.VALUES_AT_ONCE // max(width, 1)))
