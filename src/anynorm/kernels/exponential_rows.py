"""Rows of exponential kernels in one go: products, exponentials and the way into their slots."""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import ordered_loop
from anynorm.kernels.exponential_loops import exp_in_place_32
from anynorm.kernels.product_loops import PANEL, products

PANELS = 16  # of a part: 256 columns of 256 rows are 260 kB, which stay in the cache


@ordered_loop
def exponential_rows(first, last, left, panels, begin, slots, n, store):
    """Put exp of the products of rows with some panels, n columns in all, into slots of a store.

    The first part is that of the panel `begin`.
    """
    for part in range(first, last):
        start = begin + part * PANELS
        width = min(PANELS, len(panels) - start) * PANEL
        block = np.empty((left.shape[0], width), np.float32)
        products(left, panels, start, block)
        exp_in_place_32(block)
        column = start * PANEL
        count = min(width, n - column)
        for k in range(slots.size):
            row, made = store[slots[k]], block[k]
            for c in range(count):
                row[column + c] = made[c]
