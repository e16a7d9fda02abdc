"""The dual point of badly scaled data, corrected along the few columns of huge scale.

A column of scale 1e12 asks for A_j'(y a) = u_j, a sum of huge terms that cancel almost completely:
an error in the last digits of a spoils the dual value.  The least change of the free variables
that restores these few equations (and y'a = 0 for a free bias) costs one small least-squares
problem.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from anynorm.design import Design
from anynorm.norms.dual_sets import Box, CurvedBox

_MOST_COLUMNS = 50  # of huge scale: the least-squares problem stays small


def straighten_dual(
    features: Design,
    y: np.ndarray,
    box: Box | CurvedBox,
    free_bias: bool,
    u: np.ndarray,
    dual: np.ndarray,
) -> np.ndarray | None:
    """The corrected dual, or None where there are too many such columns or nothing is free."""
    columns, lower, upper = features.large_columns, box.lower, box.upper
    size = np.maximum(np.abs(dual), np.where(np.isfinite(upper), upper, 0.0))
    rows = np.flatnonzero((dual > lower + 1e-9 * size) & (dual < upper - 1e-9 * size))
    if not 0 < columns.size <= min(_MOST_COLUMNS, rows.size):
        return None
    block = features.dense_columns(columns)
    target = u[columns]
    if free_bias:
        block = np.column_stack([block, np.ones(y.size)])
        target = np.append(target, 0.0)
    norms = np.sqrt((block[rows] ** 2).sum(axis=0))
    norms[norms == 0] = 1.0
    free = (block[rows] / norms).T
    out = dual.copy()
    for _ in range(3):  # as clipping to the box may break the equations again
        miss = (target - block.T @ (y * out)) / norms
        change = scipy.linalg.lstsq(free, miss, check_finite=False)[0]
        out[rows] = np.clip(out[rows] + y[rows] * change, lower[rows], upper[rows])
    return out
