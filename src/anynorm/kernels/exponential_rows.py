"""Rows of exponential kernels in one go: products, exponentials and the way into their slots."""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import ordered_inner_loop, ordered_loop
from anynorm.design.team import in_parallel
from anynorm.kernels.exponential_loops import exp_in_place_32
from anynorm.kernels.product_loops import PANEL, products

_PANELS = 16  # of a task: 256 columns of 126 rows are 130 kB, which stay in the cache


@ordered_inner_loop
def _some_columns(k, left, panels, first, last, slots, n, store):
    start = first + k * _PANELS
    width = min(_PANELS, last - start) * PANEL
    block = np.empty((left.shape[0], width), np.float32)
    products(left, panels, start, block)
    exp_in_place_32(block)
    begin = start * PANEL
    count = min(width, n - begin)
    for k in range(slots.size):
        row, made = store[slots[k]], block[k]
        for c in range(count):
            row[begin + c] = made[c]


@ordered_loop
def exponential_rows(team, left, panels, first, last, slots, n, store):
    """Put exp of the products of rows with some panels, n columns in all, into slots of a store."""
    count = (last - first + _PANELS - 1) // _PANELS
    in_parallel(team, _some_columns, count, (left, panels, first, last, slots, n, store))
