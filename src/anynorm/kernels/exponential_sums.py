"""Sums of exponential kernels in one go: products, exponentials and what they add to the sums.

Blocks of values stay in a core's cache, and threads share the blocks.  The order in which
values are added depends on the number of fixed rows alone.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inner_loop, loop
from anynorm.kernels.exponential_loops import exp_of_products
from anynorm.kernels.kernel import EQUAL_ROWS
from anynorm.kernels.product_loops import PANEL, products

ROWS = 48  # of a block, a multiple of `TILE`
SIDE = 240  # a multiple of `ROWS` and of `PANEL`, so that rows are blocks of both
_PANELS = 16  # of a block: 48 x 256 values are 98 kB


@inner_loop
def _values(left, lengths, panels, first, columns, gamma, out):
    """A block of kernel values, from one panel on, whose columns have these squared lengths."""
    products(left, panels, first, out)
    exp_of_products(out, lengths, columns, gamma)


@loop
def exponential_sums(first, last, n_rows, X, origin, panels, columns, gamma, weights, sums):
    """Sums of ``exp(-gamma ||x - origin - z_j||^2) w_cj`` for rows x of X, `n_rows` in each part.

    These are a multiple of `TILE`.  `columns` are the squared lengths of all that is in the panels,
    whose weights, a row for each of the sums, are zero where a panel is filled up.  Rows whose
    squared length is not finite have sums that are NaN.
    """
    for part in range(first, last):
        start, stop = part * n_rows, min((part + 1) * n_rows, len(X))
        left, lengths = np.zeros((n_rows, X.shape[1]), X.dtype), np.zeros(n_rows, X.dtype)
        for i in range(stop - start):
            length = 0.0
            for j in range(X.shape[1]):
                left[i, j] = X[start + i, j] - origin[j]
                length += np.float64(left[i, j]) * np.float64(left[i, j])
            lengths[i] = length * EQUAL_ROWS
        store = np.empty(n_rows * _PANELS * PANEL, X.dtype)
        for panel in range(0, len(panels), _PANELS):
            begin, width = panel * PANEL, min(_PANELS, len(panels) - panel) * PANEL
            block = store[: n_rows * width].reshape((n_rows, width))
            _values(left, lengths, panels, panel, columns[begin : begin + width], gamma, block)
            for i in range(stop - start):
                for c in range(weights.shape[0]):
                    total = block.dtype.type(0) * lengths[i]  # NaN where it is not finite
                    for j in range(width):
                        total += block[i, j] * weights[c, begin + j]
                    sums[start + i, c] += total


@loop
def sums_of_pairs(first, last, begin, side, left, lengths, panels, gamma, weights, parts):
    """What blocks of fixed rows add to the sums of others, and these to theirs.

    Each pair of blocks, from the pair `begin` on, is a part of the work: (0, 0), (1, 0), (1, 1),
    (2, 0), ...  Blocks have `side` rows, a multiple of `SIDE`; ``parts[b]`` is what block b adds to
    all sums, and weights are zero where panels are filled up.
    """
    for pair in range(begin + first, begin + last):
        one, other = 0, pair
        while other > one:
            one += 1
            other -= one
        stop, end = min((one + 1) * side, len(left)), min((other + 1) * side, len(left))
        store = np.empty(ROWS * _PANELS * PANEL, left.dtype)
        mine, theirs = parts[other], parts[one]
        mine[one * side : stop] = 0.0
        theirs[other * side : end] = 0.0
        for start in range(one * side, stop, ROWS):
            n_rows = min(ROWS, stop - start)
            for column in range(other * side, end, _PANELS * PANEL):
                width = min(_PANELS * PANEL, end - column)
                block = store[: n_rows * width].reshape((n_rows, width))
                rows, columns = slice(start, start + n_rows), slice(column, column + width)
                own = lengths[columns]
                _values(left[rows], lengths[rows], panels, column // PANEL, own, gamma, block)
                for i in range(n_rows):
                    total, weight = block.dtype.type(0), weights[start + i]
                    for j in range(width):
                        total += block[i, j] * weights[column + j]
                    mine[start + i] += total
                    if one != other:
                        for j in range(width):
                            theirs[column + j] += block[i, j] * weight
