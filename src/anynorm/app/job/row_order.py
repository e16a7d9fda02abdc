"""Whether the rows of a table look as if they came in runs that belong together.

Measurements of one patient, photographs of one scene, conformations of one molecule follow each
other in files, and are alike.  Folds that part them judge a model by rows that it has all but seen.

The statistic: of the rows of each class, in the order of the file, the share whose nearest other
row of the class, by standardised features, is the row before or the row after.  In a random order
of n rows each has a chance of 2 / (n - 1); that all rows of a class stand together changes nothing.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from anynorm.design import Matrix

_FEWEST = 8  # rows of a class, of which fewer say little
_DIRECTIONS = 64  # random ones that stand for all features: distances to about a fifth
_STRETCH, _STRETCHES = 500, 10  # rows in a row that are looked at where there are many
_WHOLE = 2000  # rows up to which all are compared with all
_SHARE = 0.1  # of the rows: fewer neighbours in a row are no reason to speak up
_SURPRISE = 6.0  # standard deviations above chance: once in 100,000 tables


class RowOrder(NamedTuple):
    """The share of rows next to their nearest neighbour, what chance gives, and the verdict."""

    share: float
    by_chance: float
    ordered: bool

    def note(self) -> str:
        """The verdict on ordered rows, in words, with what to do."""
        return (
            f"The rows look ordered: {self.share:.0%} stand next to the row that is most like them "
            f"({self.by_chance:.0%} by chance). If rows belong together, e.g. to one patient, the "
            "error is too good: name what they belong to with --group COLUMN."
        )


def row_order(X: Matrix, y: np.ndarray) -> RowOrder:
    """Compare the order of rows with what they are like.

    Parameters
    ----------
    X : {ndarray, sparse array} of shape (n, p)
        Features of about equal scale.
    y : ndarray of int of shape (n,)
        The rows' classes.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.app.job.row_order import row_order
    >>> rng = np.random.default_rng(0)
    >>> X = np.repeat(rng.normal(size=(20, 5)), 3, axis=0) + 0.1 * rng.normal(size=(60, 5))
    >>> y = np.repeat(np.arange(20) % 2, 3)
    >>> row_order(X, y).ordered
    True
    >>> mixed = rng.permutation(60)
    >>> row_order(X[mixed], y[mixed]).ordered
    False
    """
    n, p = X.shape
    count = min(_STRETCHES, n // _STRETCH)
    starts = [0] if n <= _WHOLE else np.linspace(0, n - _STRETCH, count)
    length = n if n <= _WHOLE else _STRETCH
    rng = np.random.default_rng(0)
    directions = rng.normal(size=(p, _DIRECTIONS)) if p > _DIRECTIONS else np.eye(p)
    near = total = 0
    expected = 0.0
    for start in np.asarray(starts, dtype=np.intp):
        stretch = slice(start, start + length)
        points, classes = np.asarray(X[stretch] @ directions), y[stretch]
        for label in np.unique(classes):
            rows = np.flatnonzero(classes == label)
            if len(rows) >= _FEWEST:
                near += _next_to_nearest(points[rows])
                total += len(rows)
                expected += 2.0  # of n rows two have one neighbour, of n - 1 others, the rest two
    if total == 0:
        return RowOrder(0.0, 0.0, False)
    # Two rows are often each other's nearest, which doubles the variance of the count.
    unlikely = near > expected + _SURPRISE * math.sqrt(2.0 * expected)
    return RowOrder(near / total, expected / total, unlikely and near > _SHARE * total)


def _next_to_nearest(points: np.ndarray) -> int:
    """How many rows have their nearest other row right before or after them."""
    n = len(points)
    lengths = np.einsum("ij,ij->i", points, points)
    count = 0
    for start in range(0, n, _STRETCH):
        rows = np.arange(start, min(start + _STRETCH, n))
        distances = lengths - 2.0 * points[rows] @ points.T
        distances[np.arange(len(rows)), rows] = np.inf
        nearest = distances.argmin(axis=1)
        count += int(np.count_nonzero(np.abs(nearest - rows) == 1))
    return count
