"""Columns far from zero: their means leave few digits to what is told apart by products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anynorm.design.interface import Design

FAR = 1000.0  # times the spread: a mean that costs three digits; most tables have none such
_PROBED_ROWS, _PROBED_ENTRIES = 1000, 1 << 18  # by which columns are judged: 2 MB at the most
_MOST_ENTRIES = 1 << 27  # of X: a gigabyte, which a centred copy takes


def far_means(design: Design, far: float = FAR) -> NDArray[np.float64] | None:
    """Return the means of far columns, 0 for others; None where there are none, or X is sparse.

    Far is a mean of more than `far` times the spread of its column.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design import design_of
    >>> from anynorm.design.far_columns import far_means
    >>> far_means(design_of(np.array([[1.0, 1e6], [3.0, 1e6 + 2]])))
    array([      0., 1000001.])
    >>> far_means(design_of(np.eye(2))) is None
    True
    """
    if design.sparse or design.n * design.p > _MOST_ENTRIES:
        return None
    count = max(2, min(_PROBED_ROWS, _PROBED_ENTRIES // max(design.p, 1)))
    few = design.dense_rows(np.unique(np.linspace(0, design.n - 1, count).astype(np.intp)))
    moved = np.abs(few.mean(axis=0)) > far * few.std(axis=0)
    if not moved.any():
        return None
    means = design.rmatvec(np.full(design.n, 1.0 / design.n))
    return np.where(moved, means, 0.0)
