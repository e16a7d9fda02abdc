"""How many held-out rows the points of a path classify correctly, as an exact step function of s.

The scores of a row are linear in s between knots.  It is classified correctly where the score of
its own class is above all others: on every segment that is one interval, whose ends are zeros
of linear functions.  Two classes are the case of scores 0 and d: the label is the second where
d > 0.  So the accuracy of a fold is known for every s from a list of events, and the mean over
folds from their union: no grid.  A single s where two scores touch and part again is no event.

On nearly all segments a row is right, or wrong, all along: that is seen by the signs at the knots,
and only the others are looked at more closely.

Along C a path stays at a knot until the price of the next one is reached, so that the accuracy of
several classes with one C for all is a step function with its steps at the prices of the knots.
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
    s = paths[0].knots.s
    if len(paths) > 1:
        s = np.unique(np.concatenate([path.knots.s for path in paths]))
    start, places, gains = 0.0, [np.empty(0)], [np.empty(0)]
    for rows in row_ranges(X.shape[0], len(s) * (len(paths) + 1)):
        part = X[rows]
        if len(paths) == 1:
            only = paths[0].knots.scores(part)
            scores = np.stack([np.zeros_like(only), only])
        else:
            scores = np.stack([path.knots.scores(part, s) for path in paths])
        begins, where, sign, row = _toggles(s, scores, codes[rows])
        start += float(weights[rows] @ begins)
        places.append(where)
        gains.append(sign * weights[rows][row])
    return Changes(start, np.concatenate(places), np.concatenate(gains), float(weights.sum()))


def price_changes(
    paths: Sequence[SolutionPath], X: Matrix, codes: NDArray[np.intp], weights: Array, least: float
) -> Changes:
    """Return where rows become right or wrong as C, the same for all classes, grows.

    There is a path per class.  The places are log(C / least).
    """
    prices = np.unique(np.concatenate([_prices(path) for path in paths]))
    # of each path its knot below the first price and from each of them on
    at = [knots_at(path, np.append(0.0, prices)) for path in paths]
    start, places, gains = 0.0, [np.empty(0)], [np.empty(0)]
    for rows in row_ranges(X.shape[0], (len(prices) + 1) * (len(paths) + 1)):
        scores = np.stack(
            [path.knots.scores(X[rows])[:, knots] for path, knots in zip(paths, at, strict=True)]
        )
        right = scores.argmax(axis=0) == codes[rows][:, None]
        row, place = np.nonzero(right[:, 1:] != right[:, :-1])
        start += float(weights[rows] @ right[:, 0])
        places.append(np.log(prices[place] / least))
        gains.append(np.where(right[row, place + 1], 1.0, -1.0) * weights[rows][row])
    return Changes(start, np.concatenate(places), np.concatenate(gains), float(weights.sum()))


def _prices(path: SolutionPath) -> Array:
    """The values of C at which a path moves on from a knot."""
    penalties = path.knots.penalties
    return 1.0 / penalties[penalties > 0]


def knots_at(path: SolutionPath, prices: Array) -> NDArray[np.intp]:
    """The knots at which a path is just after these values of C, 0 being before the first."""
    with np.errstate(divide="ignore"):
        penalties = 1.0 / prices
    # 1 / (1 / lambda) may differ from lambda by rounding
    passed = path.knots.penalties * (1 + 4 * np.finfo(np.float64).eps)
    return np.minimum(np.searchsorted(-passed, -penalties, side="right"), len(passed) - 1)


def _toggles(
    s: Array, scores: Array, codes: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], Array, Array, NDArray[np.intp]]:
    """Whether each row begins right; then where rows change, to right (1) or wrong (-1), and which.

    `scores` are by class, row and knot.
    """
    own = np.take_along_axis(scores, codes[None, :, None], axis=0)[0]
    n, n_segments = own.shape[0], own.shape[1] - 1
    right = np.broadcast_to((codes >= 0)[:, None], (n, n_segments)).copy()
    wrong, final = ~right, codes >= 0
    for other, rival in enumerate(scores):
        lead = own - rival
        lead[codes == other] = 1.0
        above, below = lead > 0, lead < 0
        right &= above[:, :-1] & above[:, 1:]
        wrong |= below[:, :-1] & below[:, 1:]
        final &= above[:, -1] | (~below[:, -1] & (codes < other))
    row, segment = np.nonzero(~(right | wrong))
    ends = np.stack([scores[:, row, segment], scores[:, row, segment + 1]])
    low, high = _right_parts(ends, codes[row])
    some = low < high
    opens, closes = right, right.copy()
    opens[row, segment], closes[row, segment] = some & (low == 0), some & (high == 1)
    states = np.column_stack([opens, final])
    rows, knots = np.nonzero(states[:, 1:] != closes)
    where, sign = [s[knots + 1]], [np.where(states[rows, knots + 1], 1.0, -1.0)]
    whose, length = [rows], np.diff(s)
    for inside, share, direction in ((some & (low > 0), low, 1.0), (some & (high < 1), high, -1.0)):
        where.append(s[segment[inside]] + share[inside] * length[segment[inside]])
        sign.append(np.full(int(inside.sum()), direction))
        whose.append(row[inside])
    return states[:, 0], np.concatenate(where), np.concatenate(sign), np.concatenate(whose)


def _right_parts(ends: Array, codes: NDArray[np.intp]) -> tuple[Array, Array]:
    """The part of each segment, as shares of it, on which a row's own class has the highest score.

    `ends` are the scores at both ends of the segments, by end, class and segment.  Where there is
    no such part, low >= high.
    """
    count = len(codes)
    low, high = np.zeros(count), np.ones(count)
    for other in range(ends.shape[1]):
        before, after = ends[:, codes, np.arange(count)] - ends[:, other]
        rising, falling = (before < 0) & (after > 0), (before > 0) & (after < 0)
        zero = np.divide(before, before - after, out=np.zeros(count), where=rising | falling)
        np.maximum(low, np.where(rising, zero, 0.0), out=low)
        np.minimum(high, np.where(falling, zero, 1.0), out=high)
        # of equal scores the first class wins
        tied = (before == 0) & (after == 0) & (codes < other)
        high[(before <= 0) & (after <= 0) & ~tied & (codes != other)] = 0.0
    return low, high


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
