"""Probabilities from scores: calibrated on rows that a model had no part in, or those of its loss.

    sigmoid     1 / (1 + exp(slope f + offset))                     (Platt)
    isotonic    the non-decreasing step function that fits best     (Zadrozny, Elkan)

Both by scikit-learn's own tools, each class against the rest; those of several classes are divided
by their sum, as in `sklearn.calibration.CalibratedClassifierCV`.  Both fit Platt's targets,
(k + 1) / (k + 2) for the k rows of a class and 1 / (m + 2) for the m others: those are what to
expect of a new row where all seen so far agreed.  With targets 1 and 0, as scikit-learn has them
for the step function, a single row beyond the last step makes the log loss infinite.  A
cross-validated estimator has the scores of every row by a model that did not learn from it:
nothing is fitted again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from anynorm.estimators.checks.chunks import by_blocks
from anynorm.estimators.checks.devices import to_device
from anynorm.losses import get_loss
from anynorm.losses.logistic import LogisticLoss

RELIABILITY_BINS = 10  # of a curve: tenths of the rows
_MOST_PARTS = 10  # of the folds, for the probabilities of rows that had no part in a calibration


def _has_probabilities(estimator: Any) -> bool:
    reason = estimator._why_no_probabilities()
    if reason is not None:
        raise AttributeError(f"{type(estimator).__name__} has no predict_proba: {reason}")
    return True


class ProbableClassifier:
    """Base class: `predict_proba` from the scores."""

    def _why_no_probabilities(self) -> str | None:
        """None where there are probabilities, otherwise why there are none and what to do."""
        raise NotImplementedError

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        """The probabilities of the classes, before they are divided by their sum.

        Of shape (n, 1), those of ``classes_[1]``, for two classes, otherwise (n, K).
        """
        raise NotImplementedError

    @available_if(_has_probabilities)
    @by_blocks
    @to_device
    def predict_proba(self, X: Any) -> np.ndarray:
        """Estimate the probabilities of the classes for the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows, as for `predict`.

        Returns
        -------
        ndarray of shape (n, K)
            A column for each class, in the order of ``classes_``; rows sum to 1.  `predict` goes
            by the scores, so that its label need not be the most probable one.
        """
        check_is_fitted(self)
        return summed_to_one(self._probabilities(_columns(self.decision_function(X))))  # type: ignore[attr-defined]

    @available_if(_has_probabilities)
    @by_blocks
    @to_device
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Estimate the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows, as for `predict`.

        Returns
        -------
        ndarray of shape (n, K)
            The logarithm of what `predict_proba` returns, -inf where that is 0.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))


class CalibratedClassifier(ProbableClassifier):
    """Base class of cross-validated estimators: probabilities by their out-of-fold scores."""

    calibration: str | None
    calibration_: dict[str, Any]

    def _why_no_probabilities(self) -> str | None:
        if self.calibration is None:
            return "calibration=None asks for none. Use calibration='sigmoid' or 'isotonic'."
        if hasattr(self, "classes_") and not hasattr(self, "calibration_"):
            return "it was fitted with calibration=None. Fit it again."
        return None

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        return calibrated(self.calibration_, scores)


class LogisticClassifier(ProbableClassifier):
    """Base class of classifiers with a loss: probabilities where that is the logistic one."""

    loss: Any

    def _why_no_probabilities(self) -> str | None:
        if isinstance(get_loss(self.loss), LogisticLoss):
            return None
        return (
            f"loss={self.loss!r} says nothing about them. Use loss='logistic', or calibrate the "
            "scores, e.g. with sklearn.calibration.CalibratedClassifierCV."
        )

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        return expit(scores)


def _columns(scores: np.ndarray) -> np.ndarray:
    return scores[:, None] if scores.ndim == 1 else scores


def summed_to_one(parts: np.ndarray) -> np.ndarray:
    """Probabilities of all classes: of two from that of the second, of more by their sum.

    Where all of several are 0, each class is as probable as the others.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._probabilities import summed_to_one
    >>> summed_to_one(np.array([[0.75]])), summed_to_one(np.array([[0.3, 0.3, 0.0]]))
    (array([[0.25, 0.75]]), array([[0.5, 0.5, 0. ]]))
    """
    if parts.shape[1] == 1:
        return np.hstack([1.0 - parts, parts])
    total = parts.sum(axis=1, keepdims=True)
    even = np.full_like(parts, 1.0 / parts.shape[1])
    return np.divide(parts, total, out=even, where=total > 0)


def calibrated(calibration: dict[str, Any], scores: np.ndarray) -> np.ndarray:
    """What a calibration makes of scores, column by column."""
    if calibration["method"] == "sigmoid":
        return expit(-(calibration["slope"] * scores + calibration["offset"]))
    steps = zip(scores.T, calibration["scores"], calibration["probabilities"], strict=True)
    return np.column_stack([np.interp(column, x, p) for column, x, p in steps])


def calibration_of(
    method: str, scores: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> dict[str, Any]:
    """Fit a calibration.

    Parameters
    ----------
    method : {"sigmoid", "isotonic"}
        What kind of function.
    scores : ndarray of shape (n, 1) or (n, K)
        Decision values of rows by models that did not learn from them.
    codes : ndarray of shape (n,)
        The places of the rows' labels among the classes.
    weights : ndarray of shape (n,) or None
        The rows' weights.

    Returns
    -------
    dict
        ``slope`` and ``offset`` of shape (1,) or (K,), or lists of the ``scores`` and
        ``probabilities`` at the corners of the step functions; and the ``method``.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._probabilities import calibrated, calibration_of
    >>> scores, codes = np.array([[-2.0], [-1.0], [0.5], [2.0]]), np.array([0, 0, 1, 1])
    >>> found = calibration_of("isotonic", scores, codes, None)
    >>> calibrated(found, scores).ravel()
    array([0.25, 0.25, 0.75, 0.75])
    """
    labels = [1] if scores.shape[1] == 1 else range(scores.shape[1])
    targets = [(codes == label).astype(np.float64) for label in labels]
    columns = zip(scores.T, targets, strict=True)
    if method == "sigmoid":
        from sklearn.calibration import _SigmoidCalibration

        fits = [_SigmoidCalibration().fit(f, target, weights) for f, target in columns]
        return {
            "method": method,
            "slope": np.array([float(fit.a_) for fit in fits]),
            "offset": np.array([float(fit.b_) for fit in fits]),
        }
    from sklearn.isotonic import IsotonicRegression

    steps = [
        IsotonicRegression(out_of_bounds="clip").fit(f, _platt_targets(target, weights), weights)
        for f, target in columns
    ]
    return {
        "method": method,
        "scores": [np.asarray(fit.X_thresholds_, dtype=np.float64) for fit in steps],
        "probabilities": [np.asarray(fit.y_thresholds_, dtype=np.float64) for fit in steps],
    }


def _platt_targets(of_class: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """What a step function is fitted to: nearly 1 for the rows of a class, nearly 0 for others."""
    inside = float(np.sum(of_class if weights is None else of_class * weights))
    outside = (len(of_class) if weights is None else float(weights.sum())) - inside
    return np.where(of_class > 0, (inside + 1.0) / (inside + 2.0), 1.0 / (outside + 2.0))


class Reliability(NamedTuple):
    """What came to pass beside what was said: a point for each bin of equally many rows.

    Attributes
    ----------
    predicted, observed : ndarray of shape (bins,)
        The mean probability that was said, and the share of the rows that are of the class.
    counts : ndarray of shape (bins,)
        The rows of each bin.
    """

    predicted: np.ndarray
    observed: np.ndarray
    counts: np.ndarray


def reliability(
    of_class: np.ndarray, probabilities: np.ndarray, n_bins: int = RELIABILITY_BINS
) -> Reliability:
    """Compare probabilities of a class with whether rows are of it; NaN is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._probabilities import reliability
    >>> found = reliability(np.array([0, 0, 1, 1]), np.array([0.1, 0.3, 0.6, 0.8]), n_bins=2)
    >>> found.predicted.round(2), found.observed
    (array([0.2, 0.7]), array([0., 1.]))
    """
    known = np.flatnonzero(~np.isnan(probabilities))
    order = known[np.argsort(probabilities[known], kind="stable")]
    bins = [rows for rows in np.array_split(order, max(1, min(n_bins, len(order)))) if len(rows)]
    return Reliability(
        np.array([probabilities[rows].mean() for rows in bins]),
        np.array([float(np.mean(of_class[rows])) for rows in bins]),
        np.array([len(rows) for rows in bins]),
    )


def brier_score(codes: np.ndarray, probabilities: np.ndarray) -> float:
    """The mean squared error of probabilities of shape (n, K); of two classes that of the second.

    Rows of NaN are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._probabilities import brier_score
    >>> brier_score(np.array([0, 1]), np.array([[0.5, 0.5], [0.0, 1.0]]))
    0.125
    """
    known = ~np.isnan(probabilities).any(axis=1)
    errors = (probabilities - np.eye(probabilities.shape[1])[codes])[known] ** 2
    return float(errors[:, 1].mean() if errors.shape[1] == 2 else errors.sum(axis=1).mean())


def calibration_attributes(
    method: str | None,
    scores: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
    held_out: Sequence[np.ndarray],
) -> dict[str, Any]:
    """What a cross-validated estimator keeps for its probabilities; nothing where it has none.

    Parameters
    ----------
    method : {"sigmoid", "isotonic"} or None
        The `calibration` of the estimator.
    scores, codes, weights : as in `calibration_of`
        Scores of shape (n,) are those of two classes; rows whose scores are NaN do not count.
    held_out : sequence of ndarray
        The rows that the folds hold out: probabilities of rows are estimated by a calibration that
        knows nothing of their fold, and not of all others either where there are many.
    """
    if method is None:
        return {}
    scores = _columns(scores)
    known = ~np.isnan(scores).any(axis=1) & (codes >= 0)
    if weights is not None:
        known &= weights > 0

    def fitted(rows: np.ndarray) -> dict[str, Any]:
        return calibration_of(
            method, scores[rows], codes[rows], None if weights is None else weights[rows]
        )

    whole = fitted(np.flatnonzero(known))
    parts = np.full(len(scores), -1)
    for number, rows in enumerate(held_out):
        parts[rows] = number % _MOST_PARTS
    found = np.full(scores.shape, np.nan)
    for part in np.unique(parts[known]):
        rows, others = known & (parts == part), np.flatnonzero(known & (parts != part))
        both = all(len(np.unique(codes[others] == label)) == 2 for label in np.unique(codes[known]))
        found[rows] = calibrated(fitted(others) if both else whole, scores[rows])
    return {"calibration_": whole, "oof_predict_proba_": summed_to_one(found)}
