"""What the cross-validated estimators share: weights, scorers, and the table of the scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.metrics import get_scorer


def row_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """One weight per row, None where none were given."""
    if sample_weight is None:
        return None
    return np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)


def scorer_of(scoring: Any) -> Any:
    """The scorer of that name; a callable, or None, is taken as it is."""
    return get_scorer(scoring) if isinstance(scoring, str) else scoring


def standard_error(scores: np.ndarray) -> float:
    """The standard error of the mean over the folds, 0 for a single one."""
    return float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0


def score_columns(scores: np.ndarray, features: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of ``cv_results_`` for scores and numbers of features of shape (m, folds)."""
    mean = scores.mean(axis=1)
    return {
        **{f"split{k}_test_score": column for k, column in enumerate(scores.T)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": rankdata(-np.round(mean, 12), method="min").astype(np.int32),
        "mean_n_features": features.mean(axis=1),
    }
