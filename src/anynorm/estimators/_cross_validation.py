"""What the cross-validated estimators share: folds, weights, scorers, the table of the scores."""

from __future__ import annotations

import numbers
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.metrics import get_scorer
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold, check_cv
from sklearn.utils import check_consistent_length, column_or_1d
from sklearn.utils.validation import _num_samples

from anynorm.design import Matrix
from anynorm.design.threads import entry_point
from anynorm.estimators._fitting import Report
from anynorm.estimators._prepared_folds import PreparedEstimator, PreparedRows, Split
from anynorm.estimators.checks.chunks import lives_apart
from anynorm.estimators.checks.devices import from_device
from anynorm.estimators.checks.labels import (
    Labelled,
    labelled,
    usable_labels,
    usable_weights,
    validate,
)
from anynorm.estimators.checks.parameters import check_parameters, one_of

NEVER = -1.0
"""The score of a class that a fold has learnt nothing of."""

FOLDS = 5  # where cv is None, as in scikit-learn
BALANCED = "balanced_accuracy"  # the scorer that is an accuracy with other weights
_TOLERANCE = 0.01  # of the score: what fewer features may cost, a percent
_SEED = 0  # of the shuffled folds that a number means: a search gives the same result every time


class Folds(Protocol):
    """Where the rows of the folds come from.

    Attributes
    ----------
    splits : list of (ndarray, ndarray)
        The rows to learn from and those held out, fold by fold.
    """

    splits: list[Split]

    def train(self, fold: int) -> Matrix:
        """The rows to learn from."""

    def test(self, fold: int) -> Matrix:
        """The rows that are held out, by rows where they are sparse."""

    def places(self, fold: int) -> np.ndarray | None:
        """Where the fold's features are among those of all rows; None: both are the same."""


class SlicedFolds:
    """Rows of one matrix."""

    def __init__(self, X: Matrix, splits: list[Split]) -> None:
        self.rows = X.tocsr() if sp.issparse(X) else X
        self.splits = splits

    def train(self, fold: int) -> Matrix:
        """The rows to learn from."""
        return self.rows[self.splits[fold][0]]

    def test(self, fold: int) -> Matrix:
        """The rows that are held out."""
        return self.rows[self.splits[fold][1]]

    def places(self, fold: int) -> np.ndarray | None:
        """None: the features of all folds are the same."""
        return None


class SearchedClassifier(PreparedEstimator):
    """What classifiers that choose by cross-validation share: the way of their fit."""

    cv: Any
    _rules: ClassVar[tuple[str, ...]]
    _takes_chunks: ClassVar[bool] = False

    @entry_point
    @from_device
    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose by cross-validation, then fit to all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from; where there is a `preprocessor`, whatever that takes.
        y : array-like of shape (n,)
            Their class labels, of two classes or more.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0; None is 1 for all.
        groups : array-like of shape (n,) or None, default=None
            What each row belongs to, e.g. a patient: rows of one group are never on both sides of
            a fold where `cv` is an integer or None, or a splitter such as `GroupKFold`.

        Returns
        -------
        SearchedClassifier
            The estimator itself, fitted.

        Raises
        ------
        ValueError
            Where a parameter or the data cannot be used; the message says which and what to do.
        """
        self._check()
        began = time.monotonic()
        if self._takes_chunks and lives_apart(X):
            self._search_apart(X, y, sample_weight, groups, began)
            return self
        C = self._largest_C()
        rows = None if self.preprocessor is None else self._prepared(X, y, sample_weight)
        if rows is None:
            data = validate(self, X, y, sample_weight, C=C)
        else:
            data = labelled(self, rows.matrix, rows.y, sample_weight, rows.names, C=C)
        labels = column_or_1d(y)
        weights = row_weights(sample_weight, len(labels))
        splits = splits_of(self.cv, labels, groups)
        folds = SlicedFolds(data.X, splits) if rows is None else rows.folds(splits)
        kept = {} if rows is None else rows.attributes
        self._search(data, labels, weights, folds, kept, began)
        return self

    def _search_apart(self, X: Any, y: Any, sample_weight: Any, groups: Any, began: float) -> None:
        """The same for rows that live apart, where the class `_takes_chunks`."""
        raise NotImplementedError

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> PreparedRows:
        """All rows, with what the preprocessor makes of them."""
        n = _num_samples(X)
        labels = usable_labels(y, n, type(self).__name__)
        return PreparedRows.of(self, X, labels, usable_weights(sample_weight, n))

    def _check(self) -> None:
        """Raise where a parameter cannot be used."""
        check_parameters(self, rule=one_of(self._rules))

    def _largest_C(self) -> float:
        """The largest C that is fitted."""
        return 1.0

    def _search(
        self,
        data: Labelled,
        y: np.ndarray,
        weights: np.ndarray | None,
        folds: Folds,
        kept: Mapping[str, Any],
        began: float,
    ) -> None:
        """Choose, fit to all rows and store; the time limit counts from `began`.

        `kept` has attributes that the estimator is to have beside those of the search.
        """
        raise NotImplementedError


@dataclass
class TableSearch:
    """A search that fits all of a table in every fold, and then the choice to all rows.

    The `cv`, `scoring` and `time_limit` of the estimator are not looked at.  `weights` are without
    those of the classes; a `scorer` of None is the accuracy.  `report` is called with the progress
    of every fit, `on_fit` with the gap of every fit of a fold when it is done.  `kept` has
    attributes that the estimator gets beside those of the search.
    """

    estimator: Any
    data: Labelled
    y: np.ndarray
    weights: np.ndarray | None
    folds: Folds
    scorer: Any
    end: float | None
    report: Report | None = None
    on_fit: Callable[[float], None] | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)

    def weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        """The weights of some rows."""
        return None if self.weights is None else self.weights[rows]

    def without_listeners(self) -> Self:
        """The same for workers elsewhere: who is told of progress, and the clock, are here."""
        quiet = clone(self.estimator).set_params(verbose=0)
        return replace(self, estimator=quiet, report=None, on_fit=None, kept={}, end=None)


def grid_of_C(Cs: Any, least: float, most: float) -> np.ndarray:
    """The values of C that the parameter `Cs` asks for, ascending; a number says how many.

    Examples
    --------
    >>> from anynorm.estimators._cross_validation import grid_of_C
    >>> grid_of_C(3, 0.01, 100.0), grid_of_C([2, 1], 0.01, 100.0)
    (array([1.e-02, 1.e+00, 1.e+02]), array([1., 2.]))
    """
    if np.ndim(Cs):
        return np.unique(np.asarray(Cs, dtype=np.float64))
    return np.geomspace(least, most, int(Cs)) if int(Cs) > 1 else np.ones(1)


def splits_of(cv: Any, y: np.ndarray, groups: Any) -> list[Split]:
    """The folds of a `cv` parameter: as scikit-learn has them, but shuffled, and groups together.

    Rows often come in runs, of one patient or of one day; folds that are runs too hold out what
    nothing was learnt about.  The folds of a number are always the same; a splitter makes others.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._cross_validation import splits_of
    >>> y, groups = np.tile([0, 1], 6), np.arange(12) // 2
    >>> sorted(g for _, test in splits_of(3, y, groups) for g in set(groups[test].tolist()))
    [0, 1, 2, 3, 4, 5]
    """
    if groups is not None:
        groups = column_or_1d(groups)
        check_consistent_length(y, groups)
    if cv is None or isinstance(cv, numbers.Integral):
        cv = FOLDS if cv is None else int(cv)
        kind = StratifiedKFold if groups is None else StratifiedGroupKFold
        if groups is not None and len(np.unique(groups)) < cv:
            raise ValueError(
                f"cv={cv} needs at least {cv} groups, one to hold out in each fold; groups has "
                f"{len(np.unique(groups))}. Use fewer folds."
            )
        cv = kind(cv, shuffle=True, random_state=_SEED)
    return list(check_cv(cv, y, classifier=True).split(np.zeros(len(y)), y, groups))


def row_weights(sample_weight: Any, n: int) -> np.ndarray | None:
    """One weight per row, None where none were given."""
    if sample_weight is None:
        return None
    return np.broadcast_to(np.asarray(sample_weight, dtype=np.float64), n)


def scorer_of(scoring: Any) -> Any:
    """The scorer of that name; a callable, or None, is taken as it is."""
    return get_scorer(scoring) if isinstance(scoring, str) else scoring


def mean_held_out(splits: list[Split], parts: list[np.ndarray], n: int) -> np.ndarray:
    """Decision values of n rows, from those of each fold for the rows that it held out.

    That is the mean where several folds held a row out, NaN where none did.
    """
    total, count = np.zeros((n, *parts[0].shape[1:])), np.zeros(n)
    for (_, test), scores in zip(splits, parts, strict=True):
        total[test] += scores
        count[test] += 1
    count = count.reshape(n, *[1] * (total.ndim - 1))
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)


def balanced_weights(y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Weights by which every class that has any counts the same: an accuracy is then balanced."""
    _, codes = np.unique(y, return_inverse=True)
    total = np.bincount(codes, weights)
    present = total > 0
    return weights / np.where(present, total, 1.0)[codes] / np.count_nonzero(present)


def tolerance_of(given: float | None, best: np.ndarray) -> float:
    """How far below the best score ``rule="fewest"`` may go; None: 0.01, or one standard error."""
    return max(_TOLERANCE, standard_error(best)) if given is None else float(given)


def standard_error(scores: np.ndarray) -> float:
    """The standard error of the mean over the folds, 0 for a single one."""
    return float(scores.std(ddof=1) / np.sqrt(len(scores))) if len(scores) > 1 else 0.0


def score_columns(
    scores: np.ndarray, sizes: np.ndarray, size: str = "n_features"
) -> dict[str, np.ndarray]:
    """The columns of ``cv_results_`` for scores and numbers of features of shape (m, folds).

    A score of NaN, of what was left out, ranks last; `size` says what is counted.
    """
    mean = scores.mean(axis=1)
    known = np.where(np.isnan(mean), -np.inf, np.round(mean, 12))
    return {
        **{f"split{k}_test_score": column for k, column in enumerate(scores.T)},
        "mean_test_score": mean,
        "std_test_score": scores.std(axis=1),
        "rank_test_score": rankdata(-known, method="min").astype(np.int32),
        f"mean_{size}": sizes.mean(axis=1),
    }
