"""How many held-out rows the points of a path classify correctly, as an exact step function of s.

The scores of a row are linear in s between knots.  It is classified correctly where the score of
its own class is above all others: on every segment that is one interval, whose ends are zeros
of linear functions.  Two classes are the case of scores 0 and d: the label is the second where
d > 0.  So the accuracy of a fold is known for every s from a list of events, and the mean over
folds from their union: no grid.  A single s where two scores touch and part again is no event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anynorm.design import Matrix
from anynorm.design.blocks import row_ranges
from anynorm.design.limits import ROUNDING
from anynorm.estimators.paths.solution_path import SolutionPath

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Changes:
    """The weight of the rows that are classified correctly, from s = 0 to the end.

    Attributes
    ----------
    start : float
        The weight just after s = 0.
    s, gains : ndarray
        Where the weight changes, and by how much.
    total : float
        The weight of all rows.
    """

    start: float
    s: Array
    gains: Array
    total: float


def accuracy_changes(
    paths: Sequence[SolutionPath], X: Matrix, codes: NDArray[np.intp], weights: Array
) -> Changes:
    """Return where rows become right or wrong as s grows.

    There is one path for two classes, otherwise one per class.  `codes` are the places of the rows'
    labels among the classes; -1 is a label that no class has.
    """
    s = np.unique(np.concatenate([path.knots.s for path in paths]))
    start, places, gains = 0.0, [np.empty(0)], [np.empty(0)]
    for rows in row_ranges(X.shape[0], len(s) * (len(paths) + 1)):
        scores = [path.knots.scores(X[rows], s) for path in paths]
        if len(paths) == 1:
            scores.insert(0, np.zeros_like(scores[0]))
        low, high, final = _right_intervals(np.stack(scores), codes[rows])
        begins, where, sign, row = _toggles(s, low, high, final)
        start += float(weights[rows] @ begins)
        places.append(where)
        gains.append(sign * weights[rows][row])
    return Changes(start, np.concatenate(places), np.concatenate(gains), float(weights.sum()))


def _right_intervals(
    scores: Array, codes: NDArray[np.intp]
) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Where on each segment, as shares of it, a row's own class has the highest score.

    `scores` are by class, row and knot.  Returns the ends (n, knots - 1) of the parts, low >= high
    where there is none, and whether each row is right at the last knot.
    """
    _, n, n_knots = scores.shape
    own = np.take_along_axis(scores, codes[None, :, None], axis=0)[0]
    low, high = np.zeros((n, n_knots - 1)), np.ones((n, n_knots - 1))
    final = codes >= 0
    for other, rival in enumerate(scores):
        lead = own - rival
        lead[codes == other] = 1.0
        first = (codes < other)[:, None]  # of equal scores the first class wins
        before, after = lead[:, :-1], lead[:, 1:]
        rising, falling = (before < 0) & (after > 0), (before > 0) & (after < 0)
        zero = np.divide(before, before - after, out=np.zeros_like(low), where=rising | falling)
        np.maximum(low, np.where(rising, zero, 0.0), out=low)
        np.minimum(high, np.where(falling, zero, 1.0), out=high)
        tied = (before == 0) & (after == 0)
        never = (before <= 0) & (after <= 0) & ~(tied & first)
        high[never] = 0.0
        final &= (lead[:, -1] > 0) | ((lead[:, -1] == 0) & first[:, 0])
    high[codes < 0] = 0.0
    return low, high, final


def _toggles(
    s: Array, low: Array, high: Array, final: NDArray[np.bool_]
) -> tuple[NDArray[np.bool_], Array, Array, NDArray[np.intp]]:
    """Whether each row begins right; then where rows change, to right (1) or wrong (-1), and which.

    `low`, `high` and `final` are those of `_right_intervals`.
    """
    some = low < high
    opens, closes = some & (low == 0), some & (high == 1)
    states = np.column_stack([opens, final])
    jump = states[:, 1:].astype(np.int8) - closes.astype(np.int8)
    rows, knots = np.nonzero(jump)
    where, sign, row = [s[knots + 1]], [jump[rows, knots].astype(np.float64)], [rows]
    length = np.diff(s)
    for inside, share, direction in ((some & (low > 0), low, 1.0), (some & (high < 1), high, -1.0)):
        rows, segments = np.nonzero(inside)
        where.append(s[segments] + share[rows, segments] * length[segments])
        sign.append(np.full(len(rows), direction))
        row.append(rows)
    return states[:, 0], np.concatenate(where), np.concatenate(sign), np.concatenate(row)


def accuracy_table(folds: Sequence[Changes], places: Array, end: float) -> tuple[Array, Array]:
    """Return the m + 1 edges from 0 to `end`, and the accuracies (m, folds) between them.

    The line is divided at `places` besides: the knots, where features come and go.  The accuracy
    stays the same after the last change.
    """
    s = np.concatenate([places, *(part.s for part in folds)])
    gains = np.concatenate([np.zeros(len(places)), *(part.gains for part in folds)])
    sizes = [len(part.s) for part in folds]
    fold = np.concatenate([np.zeros(len(places), np.intp), np.repeat(np.arange(len(folds)), sizes)])
    order = np.argsort(s, kind="stable")
    order = order[s[order] < end * (1 - ROUNDING)]
    s, fold, gains = s[order], fold[order], gains[order]
    # places that differ by rounding are one; those at 0 change the accuracy at its beginning
    group = np.cumsum(np.diff(s, prepend=0.0) > ROUNDING * end)
    changes = np.zeros((int(group.max(initial=0)) + 1, len(folds)))
    np.add.at(changes, (group, fold), gains)
    changes[0] += [part.start for part in folds]
    edges = np.zeros(len(changes) + 1)
    edges[group] = s
    edges[0], edges[-1] = 0.0, end
    return edges, np.cumsum(changes, axis=0) / np.array([part.total for part in folds])
