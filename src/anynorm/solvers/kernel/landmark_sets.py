"""Sets of rows that others would span f by: k-means, and the 1-norm path on a dictionary.

`strict_budget.py` compares them with what `span_search.py` finds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.gram import Gram
from anynorm.kernels.landmarks import Landmarks
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.path_record import PathRecord

Array = NDArray[np.float64]
Index = NDArray[np.intp]
FollowPath = Callable[..., PathRecord]

_ROUNDS = 10  # of k-means: more hardly move the centres
_MORE_ROWS = 100  # than there are centres, whose span stands for the space of the kernel
_CENTRES = 1000  # more of them make k-means take longer than what it is compared with
_PATH_ROWS = 1000  # of the data, for a path
_DICTIONARY = 400  # columns of it; a budget above half of them is not for a path
_JOINTS = 10  # for each row of the budget: rows come and go on a path


def kmeans_rows(gram: Gram, count: int, random: np.random.Generator) -> Index:
    """Return the rows nearest to the centres of k-means in the space of the kernel.

    The first centres are drawn with probabilities by their squared distances from those before
    (Arthur and Vassilvitskii 2007); the others are looked for in the span of these and some rows.
    """
    if count > _CENTRES:
        return np.empty(0, dtype=np.intp)
    seeds = _spread_rows(gram, count, random)
    more = random.permutation(gram.n)[:_MORE_ROWS]
    Z = Landmarks.of(gram, np.union1d(seeds, more)).design().dense()
    centres = Z[seeds]
    for _ in range(_ROUNDS):
        nearest = _nearest(centres, Z, axis=0)
        sizes = np.bincount(nearest, minlength=len(centres))
        sums = np.zeros_like(centres)
        np.add.at(sums, nearest, Z)
        kept = sizes > 0
        centres[kept] = sums[kept] / sizes[kept, None]
    return np.unique(_nearest(centres, Z, axis=1))


def path_rows(
    problems: Sequence[Problem], count: int, random: np.random.Generator, follow: FollowPath
) -> Index:
    """Return the rows whose kernel functions the 1-norm SVM uses when it has `count` of them.

    They are chosen from a part of the rows.  Problems that share the rows have equal parts of them.
    """
    gram = problems[0].gram
    assert gram is not None
    each = count // len(problems)
    if each < 1 or 2 * count > _DICTIONARY:
        return np.empty(0, dtype=np.intp)
    rows = np.sort(random.permutation(gram.n)[:_PATH_ROWS])
    columns = np.sort(random.permutation(rows)[:_DICTIONARY])
    K = gram.block(rows, columns)
    found: set[int] = set()
    for problem in problems:
        weights = None if problem.sample_weight is None else problem.sample_weight[rows]
        y = problem.y[rows]
        if (y == y[0]).all():
            continue
        record = follow(
            Problem(
                y=y, C=1.0, loss=get_loss("hinge"), X=K, regulariser="l1", sample_weight=weights
            ),
            max_features=each,
            max_joints=_JOINTS * each,
        )
        used = record.indices[record.indptr[-2] : record.indptr[-1]]
        found.update(columns[used].tolist())
    return np.array(sorted(found), dtype=np.intp)


def _spread_rows(gram: Gram, count: int, random: np.random.Generator) -> Index:
    """Rows that are far from each other, drawn one after the other."""
    diagonal = gram.diagonal()
    rows = [int(random.integers(gram.n))]
    far = np.full(gram.n, np.inf)
    while len(rows) < min(count, gram.n):
        last = rows[-1]
        distance = diagonal + diagonal[last] - 2.0 * gram.block(slice(None), [last])[:, 0]
        far = np.minimum(far, np.maximum(distance, 0.0))
        far[rows] = 0.0
        total = np.cumsum(far)
        if not total[-1] > 0:
            break
        rows.append(int(np.searchsorted(total, random.random() * total[-1], side="right")))
    return np.array(rows, dtype=np.intp)


def _nearest(centres: Array, Z: Array, axis: int) -> Index:
    """The nearest centre of each row (axis 0), or the nearest row of each centre (axis 1)."""
    squares = (centres**2).sum(axis=1)[:, None] - 2.0 * centres @ Z.T + (Z**2).sum(axis=1)
    return squares.argmin(axis=axis)
