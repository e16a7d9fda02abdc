"""Sums of exponential kernels in one go: products, exponentials and what they add to the sums.

Blocks of values stay in a core's cache, and a team shares the blocks out.  The order in which
values are added depends on the number of fixed rows alone.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inner_loop, loop
from anynorm.design.team import in_parallel
from anynorm.kernels.exponential_loops import exp_of_products
from anynorm.kernels.product_loops import PANEL, products

ROWS = 48  # of a block, a multiple of `TILE`
SIDE = 240  # a multiple of `ROWS` and of `PANEL`, so that rows are blocks of both
_PANELS = 16  # of a block: 48 x 256 values are 98 kB


@inner_loop
def _values(left, lengths, panels, first, columns, gamma, out):
    """A block of kernel values, from one panel on, whose columns have these squared lengths."""
    products(left, panels, first, out)
    exp_of_products(out, lengths, columns, gamma)


@inner_loop
def _sums_of_some(k, left, lengths, panels, columns, gamma, weights, sums):
    start, stop = k * ROWS, min((k + 1) * ROWS, len(left))
    store = np.empty(ROWS * _PANELS * PANEL, left.dtype)
    for first in range(0, len(panels), _PANELS):
        begin, width = first * PANEL, min(_PANELS, len(panels) - first) * PANEL
        block = store[: (stop - start) * width].reshape((stop - start, width))
        own = columns[begin : begin + width]
        _values(left[start:stop], lengths[start:stop], panels, first, own, gamma, block)
        for i in range(stop - start):
            for c in range(weights.shape[0]):
                part = block.dtype.type(0)
                for j in range(width):
                    part += block[i, j] * weights[c, begin + j]
                sums[start + i, c] += part


@loop
def exponential_sums(team, left, lengths, panels, columns, gamma, weights, sums):
    """Sums of ``exp(-gamma ||x - z_j||^2) w_cj`` for rows x, a multiple of `TILE`, added to `sums`.

    `lengths` and `columns` are squared lengths of the rows and of all that is in the panels, whose
    weights, a row for each of the sums, are zero where a panel is filled up.
    """
    count = (len(left) + ROWS - 1) // ROWS
    given = (left, lengths, panels, columns, gamma, weights, sums)
    in_parallel(team, _sums_of_some, count, given)


@inner_loop
def _sums_of_pair(k, first_pair, side, left, lengths, panels, gamma, weights, parts):
    """What the rows of one block add to the sums of another, and these to those of the first."""
    first, second = 0, first_pair + k  # pairs are (0, 0), (1, 0), (1, 1), (2, 0), ...
    while second > first:
        first += 1
        second -= first
    stop, end = min((first + 1) * side, len(left)), min((second + 1) * side, len(left))
    store = np.empty(ROWS * _PANELS * PANEL, left.dtype)
    mine, others = parts[second], parts[first]
    for i in range(first * side, stop):
        mine[i] = 0.0
    for j in range(second * side, end):
        others[j] = 0.0
    for start in range(first * side, stop, ROWS):
        n_rows = min(ROWS, stop - start)
        for begin in range(second * side, end, _PANELS * PANEL):
            width = min(_PANELS * PANEL, end - begin)
            block = store[: n_rows * width].reshape((n_rows, width))
            rows, columns = slice(start, start + n_rows), slice(begin, begin + width)
            own = lengths[columns]
            _values(left[rows], lengths[rows], panels, begin // PANEL, own, gamma, block)
            for i in range(n_rows):
                part, weight = block.dtype.type(0), weights[start + i]
                for j in range(width):
                    part += block[i, j] * weights[begin + j]
                mine[start + i] += part
                if first != second:
                    for j in range(width):
                        others[begin + j] += block[i, j] * weight


@loop
def sums_of_pairs(team, first, last, side, left, lengths, panels, gamma, weights, parts):
    """The same for the fixed rows themselves, from one pair of blocks of them to another.

    Blocks have `side` rows, a multiple of `SIDE`; ``parts[b]`` is what block b adds to all sums.
    """
    given = (first, side, left, lengths, panels, gamma, weights, parts)
    in_parallel(team, _sums_of_pair, last - first, given)


@inner_loop
def _add_parts(k, side, parts, sums):
    for b in range(len(parts)):
        for i in range(k * side, min((k + 1) * side, sums.size)):
            sums[i] += parts[b, i]


@loop
def add_parts(team, side, parts, sums):
    """Add the parts of all blocks to the sums, in their order."""
    in_parallel(team, _add_parts, len(parts), (side, parts, sums))
