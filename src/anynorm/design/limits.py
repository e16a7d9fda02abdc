"""Limits of memory, of time without an answer and of rounding that mean the same everywhere.

What is a matter of one method, or needs another value there, stands with that method.
"""

from __future__ import annotations

# Memory: how much is at work at a time, whatever the size of the data.
MEGABYTE = 1 << 20  # bytes, the unit of `cache_size`
CACHED_BYTES = 1 << 18  # made and used at once: stays in a core's cache with what it is made from
BLOCK_ENTRIES = 1 << 16  # numbers of a tile of X: half a megabyte stays in a core's second cache
VALUES_AT_ONCE = 1 << 20  # numbers of an intermediate table: 8 MB; more does not make it faster

# Time: what one call may do that Python cannot interrupt, so that Ctrl-C and time limits are heard:
# meant to be 0.2 s at most.  Measured on one core in 2026: 0.03 s, 0.4 s (a Gram matrix of 50 MB,
# which no cache holds), 0.04 s and 0.1 s.
ENTRIES_PER_CALL = 20_000_000  # of X, read once by a compiled loop
PAIRS_PER_CALL = 50_000_000  # of entries of one row, multiplied and added to a Gram matrix
STEPS_PER_CALL = 100_000_000  # numbers of a dense matrix that a compiled loop adds up in order
PRODUCTS_PER_CALL = 1 << 31  # multiplications inside BLAS

# Threads: the least work that is worth handing to another one, a few times what that costs.
ENTRIES_PER_TASK = 1 << 18  # of X, or of kernel rows, read once: 0.1 ms and more
PRODUCTS_PER_TASK = 1 << 24  # multiplications inside BLAS: 0.5 ms

# Rounding, relative to the numbers that are added up.
ROUNDING = 1e-12  # what a bound may be exceeded by and two sums differ by: 5000 last digits
FLOAT32_ROUNDING = 6e-8  # half the distance of float32 numbers at 1
DEPENDENT = 1e-13  # of the diagonal: a pivot below it is what rounding left of a zero
VERIFIED = 1e-9  # the gap at a joint of an exact path that rounding alone explains
FLOOR = 1e-10  # of the primal value at zero: what is below may be called negligible, not optimal
