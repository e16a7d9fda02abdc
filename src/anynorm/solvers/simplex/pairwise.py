"""Pairwise Frank-Wolfe steps in blocks, for more points in use than their products fit in memory.

        minimise  ||A x||^2   over the simplex

A pairwise step (Lacoste-Julien and Jaggi 2015) moves weight from the highest point in use to the
lowest of all.  Here a block of the lowest and the highest points shares out its weight m at once.
With the rest of w fixed,

        w = rest + m sum_i z_i A_i = sum_i z_i (m A_i + rest),      z in the simplex,

which is a problem of the same kind for the points ``m A_i + rest`` of the block, and solved as such
(`corral.py`).  Every block lowers ``||w||``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anynorm.design.points import Points, gram
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.simplex.corral import Corral

Array = NDArray[np.float64]
Index = NDArray[np.intp]


def pairwise_block(
    points: Points, x: Array, inner: Array, size: int, tol: float, floor: float, budget: Budget
) -> Array:
    """Share out anew the weights of a block of `size` points, where ``inner = A'A x``."""
    block = _block(x, inner, size)
    weights = x[block]
    mass, primal = float(weights.sum()), float(x @ inner)
    G = gram(points, block, block)
    with_rest = inner[block] - G @ weights
    rest_squared = primal - 2 * float(weights @ inner[block]) + float(weights @ (G @ weights))
    G = mass * (mass * G + with_rest[:, None] + with_rest) + max(rest_squared, 0.0)

    corral = Corral(float(np.median(G.diagonal())), floor)
    corral.extend(G)
    corral.begin(weights / mass)
    if len(corral.S) == np.count_nonzero(weights):
        corral.g = mass * inner[block] + (primal - float(weights @ inner[block]))
    corral.descend(tol, Budget(size, budget.deadline))
    x = x.copy()
    x[block] = mass * corral.x
    return x / x.sum()


def _block(x: Array, inner: Array, size: int) -> Index:
    """The lowest points, and the highest ones in use, as many of these as of those."""
    half = min(size // 2, len(x))
    lowest = np.argpartition(inner, half - 1)[:half]
    height = np.where(x > 0, inner, -np.inf)
    height[lowest] = -np.inf
    used = min(half, int(np.count_nonzero(height > -np.inf)))
    highest = np.argpartition(-height, max(used - 1, 0))[:used]
    return np.sort(np.concatenate([lowest, highest]))
