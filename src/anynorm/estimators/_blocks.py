"""Long tables in parts, so that what is computed for all of them needs little memory."""

from __future__ import annotations

from collections.abc import Iterator

BLOCK_ENTRIES = 1 << 20  # numbers at a time, 8 MB in float64


def blocks(count: int, width: int) -> Iterator[slice]:
    """Slices of `count` rows, for each of which `width` numbers are at work."""
    step = max(1, BLOCK_ENTRIES // max(1, width))
    for start in range(0, count, step):
        yield slice(start, start + step)
