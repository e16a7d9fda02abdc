"""Errors and scores from counts of who was taken for whom, where rows are too many to keep.

``confusion[i, j]`` counts the rows of class i that were taken for class j.
"""

from __future__ import annotations

import numpy as np

from anynorm.app.job.measures import MEASURES, Estimate, interval


def score_of(scoring: str, confusion: np.ndarray) -> float:
    """One minus the measure, for choosing."""
    return 1.0 - _measured(scoring, confusion)[0]


def estimate_of(scoring: str, confusion: np.ndarray) -> Estimate:
    """The error of held-out rows with its standard error, as `measures.estimate` has it.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.app.apart.counts import estimate_of
    >>> found = estimate_of("balanced", np.array([[90, 10], [3, 7]]))
    >>> found.value, round(found.standard_error, 4)
    (0.2, 0.0743)
    """
    value, variance = _measured(scoring, confusion)
    n = int(confusion.sum())
    error = float(np.sqrt(variance * (n / (n - 1) if n > 1 else 1.0)))
    low, high = interval(scoring, value, error, n)
    return Estimate(MEASURES[scoring], value, error, low, high, n)


def blind_error_of(scoring: str, counts: np.ndarray) -> float:
    """The error of always predicting the most frequent class, given how many rows each has."""
    if scoring == "error":
        return 1.0 - float(counts.max()) / float(counts.sum())
    return 1.0 - 1.0 / np.count_nonzero(counts)


def _measured(scoring: str, confusion: np.ndarray) -> tuple[float, float]:
    """The measure, and the sum of the squared influences of all rows."""
    counts = confusion.sum(axis=1)
    present = counts > 0
    wrong = 1.0 - np.diagonal(confusion)[present] / counts[present]  # of every class
    if scoring == "error":
        share = float(wrong @ counts[present]) / float(counts.sum())
        return share, share * (1.0 - share) / float(counts.sum())
    spread = wrong * (1.0 - wrong) / counts[present]
    return float(wrong.mean()), float(spread.sum()) / int(present.sum()) ** 2
