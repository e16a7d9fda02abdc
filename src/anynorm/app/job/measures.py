"""How wrong predictions are, with a standard error: error, balanced error, 1 - AUC.

Every measure is a mean of contributions of rows: its value comes with each row's influence, the
first-order change of the value by that row.  The influences of independent rows add up to the
variance; rows of one group are not independent, so theirs are summed first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from anynorm.estimators._ordered_labels import places_of

MEASURES = {"error": "error", "balanced": "balanced error", "auc": "1 - AUC"}
"""What is reported for each way of scoring."""

SCORERS = {"error": None, "balanced": "balanced_accuracy", "auc": "roc_auc"}
"""What scikit-learn calls them: a saved model says with these names how it was chosen."""

CALIBRATION = "sigmoid"
"""How probabilities follow from scores: two numbers, which the smallest tables can tell."""

_NORMAL = 1.959963984540054  # the 97.5 % point of the normal distribution


@dataclass(frozen=True)
class Estimate:
    """An error of predictions for rows that a model had no part in.

    Attributes
    ----------
    measure : str
        One of the values of `MEASURES`.
    value, standard_error : float
        The estimate and its standard error.
    low, high : float
        A 95 % interval (Wilson's for the error of independent rows).
    n_rows : int
        The number of rows.
    """

    measure: str
    value: float
    standard_error: float
    low: float
    high: float
    n_rows: int


def predicted(scores: np.ndarray) -> np.ndarray:
    """The class of each row, as its place, from scores of shape (n,) or (n, K)."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def estimate(
    scoring: str,
    y: np.ndarray,
    scores: np.ndarray,
    parts: list[np.ndarray],
    groups: np.ndarray | None = None,
) -> Estimate:
    """Return the error of held-out rows, of which y are the classes as places.

    `parts` are the rows that each model was asked about: scores of different models are not
    compared.  Rows of one group are not independent.
    """
    value, influence = _MEASURED[scoring](y, scores, parts)
    clusters = influence if groups is None else _sums(influence, groups)
    count = len(clusters)
    variance = float(clusters @ clusters) * (count / (count - 1) if count > 1 else 1.0)
    error = float(np.sqrt(variance))
    low, high = interval(scoring, value, error, None if groups is not None else len(y))
    return Estimate(MEASURES[scoring], value, error, low, high, len(y))


def interval(scoring: str, value: float, error: float, n: int | None) -> tuple[float, float]:
    """A 95 % interval of a measure; Wilson's for the error of n independent rows."""
    if scoring == "error" and n is not None:
        return _wilson(value, n)
    return max(0.0, value - _NORMAL * error), min(1.0, value + _NORMAL * error)


def blind_error(scoring: str, y: np.ndarray) -> float:
    """The error of always predicting the most frequent class: the baseline of any model."""
    counts = np.bincount(y)
    if scoring == "error":
        return 1.0 - float(counts.max()) / len(y)
    return 1.0 - 1.0 / np.count_nonzero(counts) if scoring == "balanced" else 0.5


def score(scoring: str, y: np.ndarray, scores: np.ndarray) -> float:
    """One minus the measure, for choosing."""
    if scoring == "auc" and scores.ndim == 1:  # searches ask for it thousands of times
        positive = y == 1
        above, below = int(positive.sum()), int((~positive).sum())
        if not above or not below:
            return np.nan
        ranks = float(rankdata(scores)[positive].sum())
        return (ranks - above * (above + 1) / 2) / (above * below)
    return 1.0 - _MEASURED[scoring](y, scores, [np.arange(len(y))])[0]


def scorer(scoring: str, classes: np.ndarray) -> Callable[[Any, Any, np.ndarray], float] | None:
    """A scorer for searches, as scikit-learn calls them; None for the error, which they know."""
    if scoring == "error":
        return None

    def one_minus_measure(estimator: Any, X: Any, y: np.ndarray) -> float:
        return score(scoring, places_of(y, classes), all_classes(estimator, X, classes))

    return one_minus_measure


def all_classes(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Decision values with a column per class, -inf for those a model has not seen; 1-D for two."""
    found = estimator.decision_function(X)
    if len(classes) == 2:
        return found
    scores = np.full((X.shape[0], len(classes)), -np.inf)
    if found.ndim == 1:
        found = np.column_stack([-found, found])
    scores[:, places_of(estimator.classes_, classes)] = found
    return scores


def all_probabilities(estimator: Any, X: Any, classes: np.ndarray) -> np.ndarray:
    """Probabilities with a column per class, 0 for those a model has not seen."""
    found = np.zeros((X.shape[0], len(classes)))
    found[:, places_of(estimator.classes_, classes)] = estimator.predict_proba(X)
    return found


def _error(y: np.ndarray, scores: np.ndarray, _: Any) -> tuple[float, np.ndarray]:
    wrong = (predicted(scores) != y).astype(np.float64)
    return float(wrong.mean()), (wrong - wrong.mean()) / len(y)


def _balanced(y: np.ndarray, scores: np.ndarray, _: Any) -> tuple[float, np.ndarray]:
    wrong = (predicted(scores) != y).astype(np.float64)
    present, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    errors = np.bincount(codes, weights=wrong) / counts
    influence = (wrong - errors[codes]) / (counts[codes] * len(present))
    return float(errors.mean()), influence


def _one_minus_auc(
    y: np.ndarray, scores: np.ndarray, parts: list[np.ndarray]
) -> tuple[float, np.ndarray]:
    """The mean over the parts and the classes against the rest (DeLong's components)."""
    columns = {1: scores} if scores.ndim == 1 else dict(enumerate(scores.T))
    cases = [
        (rows, column[rows], y[rows] == label)
        for rows in parts
        for label, column in columns.items()
        if len(np.unique(y[rows] == label)) == 2
    ]
    influence, total = np.zeros(len(y)), 0.0
    for rows, values, positive in cases:
        n_positive, n_negative = int(positive.sum()), int((~positive).sum())
        ranks, inside = rankdata(values), np.empty(len(rows))
        inside[positive] = rankdata(values[positive])
        inside[~positive] = rankdata(values[~positive])
        beaten = ranks - inside  # rows of the other class below, ties counted by half
        share = np.where(positive, beaten / n_negative, 1.0 - beaten / n_positive)
        auc = float(share[positive].mean())
        total += 1.0 - auc
        influence[rows] -= (share - auc) / np.where(positive, n_positive, n_negative)
    if not cases:
        return np.nan, influence
    return total / len(cases), influence / len(cases)


def _sums(influence: np.ndarray, groups: np.ndarray) -> np.ndarray:
    _, codes = np.unique(groups, return_inverse=True)
    return np.bincount(codes, weights=influence)


def _wilson(share: float, n: int) -> tuple[float, float]:
    z = _NORMAL**2 / n
    centre, half = share + z / 2, np.sqrt(z * (share * (1.0 - share) + z / 4))
    return max(0.0, float((centre - half) / (1 + z))), min(1.0, float((centre + half) / (1 + z)))


_MEASURED = {"error": _error, "balanced": _balanced, "auc": _one_minus_auc}
