"""What a followed path consists of: arrays, apart from the solver, so that a reader needs none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class PathRecord:
    """The knots of a path: where the slope of (w, b) or lambda changes, s = 0, and the end.

    Attributes
    ----------
    s : ndarray of shape (K,)
        The weighted 1-norm of the coefficients, rising from 0.
    penalties : ndarray of shape (K,)
        Lambda on the segment that leaves the knot, falling; 0 at the end of the path.
    indptr, indices, data : ndarray
        The coefficients at the knots as a CSR matrix of K rows.
    intercepts, losses : ndarray of shape (K,)
        The bias, in the middle of the optimal interval, and ``sum_i c_i (1 - m_i)_+``.
    joint : ndarray of bool of shape (K,)
        Where the slope of (w, b) changes; elsewhere only lambda does.
    dual_indptr, dual_rows, dual_values : ndarray
        For each knot the duals at lambda = penalties of the rows with margin 1, and perhaps some
        more; other rows have c_i (margin below 1) or their lower bound (above).
    gaps : ndarray of shape (K,)
        The relative duality gap of each knot at the lambda of the segments that touch it.
    stopped : str
        "end", "max_features", "max_joints", "s_max", "penalty_min", "time_limit", "interrupted",
        or "stuck" where rounding left no pivot to make.
    n_pivots : int
        How many pivots were made.
    """

    s: np.ndarray
    penalties: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray
    intercepts: np.ndarray
    losses: np.ndarray
    joint: np.ndarray
    dual_indptr: np.ndarray
    dual_rows: np.ndarray
    dual_values: np.ndarray
    gaps: np.ndarray
    stopped: str
    n_pivots: int

    def shifted(self, means: np.ndarray) -> PathRecord:
        """Return the record for columns that are larger by their means: other biases."""
        knots = np.repeat(np.arange(len(self.s)), np.diff(self.indptr))
        moved = np.bincount(knots, self.data * means[self.indices], len(self.s))
        return replace(self, intercepts=self.intercepts - moved)


def compacted(columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different columns, ascending, and the places of the given ones among them.

    >>> import numpy as np
    >>> from anynorm.problem.path_record import compacted
    >>> used, places = compacted(np.array([7, 2, 7]))
    >>> used.tolist(), places.tolist()
    ([2, 7], [1, 0, 1])
    """
    found = np.bincount(columns) > 0  # no sorting, as in numpy.unique: most occur at every knot
    return np.flatnonzero(found), (np.cumsum(found) - 1)[columns]
