"""The 1-norm SVM with its place on the exact path chosen by cross-validation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import check_cv
from sklearn.utils import column_or_1d

from anynorm.design import Matrix
from anynorm.estimators._choice import Curve
from anynorm.estimators._cross_validation import row_weights, scorer_of
from anynorm.estimators._fitting import Report, run_all, store_linear
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._parameters import check_parameters, one_of
from anynorm.estimators._validation import Data, labelled, validate, validate_penalties
from anynorm.estimators.sparse_path import followed, path_problem, warn_of_gaps
from anynorm.path import SolutionPath, used_features
from anynorm.path_accuracy import Changes, accuracy_changes, accuracy_table

_BLOCK_ENTRIES = 1 << 20


class SparseSVCCV(LinearClassifier):
    r"""The 1-norm support vector classifier with the bound s chosen by cross-validation.

    On every fold the exact path of

    .. math:: \min_{w, b} \sum_i c_i \bigl(1 - y_i (x_i^\top w + b)\bigr)_+
              \quad\text{with}\quad \sum_j u_j |w_j| \le s

    is followed.  Decision values are linear in s between its knots, so the accuracy on the rows
    that were held out is known for every s: no grid.  The model is the point at the chosen s of
    the path of all rows.

    Parameters
    ----------
    cv : int, splitter, iterable or None, default=5
        The folds, as in scikit-learn; an integer means stratified folds.
    scoring : str, callable or None, default=None
        What to maximise.  None and "accuracy" are exact for every s.  Any other scorer, by name
        or as a callable ``(estimator, X, y)``, is evaluated at the joints of all folds.  Where
        `sample_weight` is given, it counts in the score too.
    rule : {"best", "one_se", "fewest"}, default="best"
        How to choose from the mean scores.  "best": the highest.  "one_se": the smallest s whose
        score is within one standard error of the best.  "fewest": the fewest features, in the
        mean over the folds, among the scores within `score_tolerance` of the best.  At ties the
        middle of the leftmost interval.
    score_tolerance : float, default=0.01
        How far below the best score ``rule="fewest"`` may go.
    max_features : int or None, default=None
        Follow the paths until more features than that would be in use; a path is then taken to
        stay at its last point.
    penalty_weights : array-like of shape (p,) or None, default=None
        The weights :math:`u_j`: 0 is never penalised, infinity leaves the feature out; None is 1
        for all.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in `LinearSVC`; "balanced" balances every fold by itself.
    tol : float, default=1e-4
        The relative duality gap above which the model warns; a path is exact, so its gaps are
        those of rounding.
    time_limit : float or None, default=None
        The most seconds for everything together, shared evenly by the folds and the model.
    n_jobs : int or None, default=None
        The number of threads that share the folds, then the classes.  The result does not depend
        on it.
    verbose : int, default=0
        1 prints a line for each path.

    Attributes
    ----------
    s_ : float or ndarray of shape (K,)
        The chosen bound; one value, repeated for each class where there are more than two.
    C_ : float or ndarray of shape (K,)
        The price at which the model solves ``sum u_j |w_j| + C * loss``, per class.
    path_ : SolutionPath
        The path of all rows; only for two classes.
    paths_ : list of SolutionPath
        The paths of all rows: one for two classes, otherwise each class against the rest.
    best_index_ : int
        The place of the choice in ``cv_results_``.
    best_score_ : float
        Its mean score over the folds.
    cv_results_ : dict of ndarrays
        A row for each interval of s in which no fold's score and no fold's number of features
        changes (for other scorers than accuracy, a row for each joint): ``s_low``, ``s_high``,
        ``param_s`` (the middle), ``params``, ``split0_test_score``, ..., ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, ``mean_n_features``.
    oof_decision_function_ : ndarray of shape (n,) or (n, K)
        The decision values at ``s_`` of each row by the folds that held it out: their mean where
        there are several, NaN where there is none.
    selection_frequency_ : ndarray of shape (p,)
        The share of the folds that use the feature at ``s_``, for at least one class.
    coef_ : ndarray of shape (1, p) or (K, p)
        The coefficients: one row for two classes, one per class otherwise.
    intercept_ : ndarray of shape (1,) or (K,)
        The intercepts.  Where several are optimal, the middle of their interval.
    classes_ : ndarray of shape (K,)
        The class labels, sorted.
    certificate_ : Certificate
        The certificate of the model for the penalised problems with ``C_``.
    n_iter_ : int
        The most pivots that a path of all rows took.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (p,)
        The names of the features, where X was a frame with string column names.

    See Also
    --------
    SparseSVC : One C, four losses.
    sparse_svm_path : The path alone.

    Notes
    -----
    Several classes are handled one against the rest with one s for all, which is chosen by the
    score of the whole classifier: its accuracy is an exact step function too.

    Examples
    --------
    >>> from anynorm import SparseSVCCV
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = SparseSVCCV(rule="fewest", score_tolerance=0.02).fit(X, y)
    >>> int((model.coef_ != 0).sum()) < 15
    True
    >>> model.certificate_.gap <= 1e-9
    True
    """

    penalty = "l1"  # scikit-learn's SelectFromModel then keeps what is not zero

    def __init__(
        self,
        *,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        score_tolerance: float = 0.01,
        max_features: int | None = None,
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-4,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.score_tolerance = score_tolerance
        self.max_features = max_features
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Self:
        """Choose s by cross-validation, then take that point of the path of all rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from.
        y : array-like of shape (n,)
            Their class labels, of two classes or more.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0; None is 1 for all.
        groups : array-like of shape (n,) or None, default=None
            Groups of rows that a splitter such as `GroupKFold` keeps together.

        Returns
        -------
        SparseSVCCV
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a parameter or the data cannot be used; the message says which and what to do.
        """
        check_parameters(self, rule=one_of(("best", "one_se", "fewest")))
        began = time.monotonic()
        data = validate(self, X, y, sample_weight)
        search = _Search(
            self, data, column_or_1d(y), row_weights(sample_weight, len(data.codes)),
            validate_penalties(self.penalty_weights, data), began,
        )  # fmt: skip
        folds = search.follow_folds(groups)
        paths = search.follow_all_rows()
        curve = search.curve(folds)
        index, s = curve.choose(self.rule, float(self.score_tolerance))
        solutions = [path.solution_at(s, tol=float(self.tol)) for path in paths]
        prices = [path.knots.price(path.knots.segment(s)) for path in paths]
        several = len(paths) > 1
        found: dict[str, Any] = {
            "s_": np.full(len(paths), s) if several else s,
            "C_": np.array(prices) if several else prices[0],
            "paths_": paths,
            "best_index_": index,
            "best_score_": float(curve.scores[index].mean()),
            "cv_results_": curve.results(),
            "oof_decision_function_": search.held_out_scores(folds, s),
            "selection_frequency_": search.selection_frequency(folds, s),
        }
        if not several:
            found["path_"] = paths[0]
        store_linear(self, data, solutions, found)
        _warn_of_time(folds, paths, s)
        warn_of_gaps([path for fold in folds for path in fold.paths] + paths)
        return self


@dataclass(frozen=True)
class _Fold:
    """The paths of one fold, and what they say about the rows that were held out."""

    paths: list[SolutionPath]
    test: np.ndarray
    changes: Changes


@dataclass
class _Search:
    """The paths of all folds and their scores."""

    estimator: SparseSVCCV
    data: Data
    y: np.ndarray
    weights: np.ndarray | None
    penalty_weights: np.ndarray | None
    began: float

    def follow_folds(self, groups: Any) -> list[_Fold]:
        """Follow the paths of every fold."""
        X = self.data.X
        self.rows = X.tocsr() if sp.issparse(X) else X
        splitter = check_cv(self.estimator.cv, self.y, classifier=True)
        self.splits = list(splitter.split(np.zeros(len(self.y)), self.y, groups))

        def follow(fold: int, progress: Report | None) -> _Fold:
            train, test = self.splits[fold]
            weights = None if self.weights is None else self.weights[train]
            data = labelled(self.estimator, self.rows[train], self.y[train], weights)
            paths = [
                self._follow(data, self.data.codes[train], k, fold, progress).detached()
                for k in range(self.data.n_problems)
            ]
            return _Fold(paths, test, self._changes(paths, test, fold))

        return run_all(len(self.splits), follow, n_jobs=self.estimator.n_jobs, report=None)

    def follow_all_rows(self) -> list[SolutionPath]:
        """Follow the path of every class on all rows."""

        def follow(index: int, progress: Report | None) -> SolutionPath:
            return self._follow(self.data, self.data.codes, index, None, progress)

        return run_all(self.data.n_problems, follow, n_jobs=self.estimator.n_jobs, report=None)

    def _follow(
        self, data: Data, codes: np.ndarray, index: int, fold: int | None, progress: Report | None
    ) -> SolutionPath:
        """The path of binary problem `index` on the rows of `data`; `fold` None means all rows."""
        signs = np.where(codes == self.data.positive(index), 1.0, -1.0)
        estimator, began = self.estimator, time.monotonic()
        problem = path_problem(
            data, signs, fit_intercept=estimator.fit_intercept, penalty_weights=self.penalty_weights
        )
        binary = self.data.n_problems == 1
        path = followed(
            problem,
            self.data.feature_names,
            self.data.classes if binary else None,
            max_features=estimator.max_features,
            deadline=self._deadline(fold),
            progress=progress,
        )
        if estimator.verbose:
            where = "all rows" if fold is None else f"fold {fold + 1} of {len(self.splits)}"
            label = "" if binary else f", class {self.data.classes.tolist()[index]!r}"
            print(
                f"{type(estimator).__name__}: {where}{label}: {path.n_joints} joints to "
                f"s = {path.s[-1]:.4g}, up to {path.n_nonzero.max()} features, "
                f"{time.monotonic() - began:.2f} s",
                flush=True,
            )
        return path

    def _deadline(self, fold: int | None) -> float | None:
        """When the paths of a fold must end: every fold and the model get an even share."""
        limit = self.estimator.time_limit
        if limit is None:
            return None
        share = 1.0 if fold is None else (fold + 1) / (len(self.splits) + 1)
        return self.began + float(limit) * share

    def _changes(self, paths: Sequence[SolutionPath], test: np.ndarray, fold: int) -> Changes:
        weights = np.ones(len(test)) if self.weights is None else self.weights[test]
        if not weights.any():
            raise ValueError(
                f"sample_weight is zero for all rows that fold {fold + 1} of cv holds out. Use "
                "fewer folds, or folds that spread the rows of positive weight."
            )
        return accuracy_changes(paths, self.rows[test], self.data.codes[test], weights)

    def curve(self, folds: Sequence[_Fold]) -> Curve:
        """The scores along s: on intervals for the accuracy, else at the joints."""
        paths = [path for fold in folds for path in fold.paths]
        end = max(path.s[-1] for path in paths)
        end = min([end, *(path.s[-1] for path in paths if path.stopped == "time_limit")])
        if self.estimator.scoring in (None, "accuracy"):
            places = np.unique(np.concatenate([path.knots.s for path in paths]))
            edges, scores = accuracy_table([fold.changes for fold in folds], places, end)
            middles = edges[:-1] + np.diff(edges) / 2
            return Curve(edges[:-1], edges[1:], scores, _counts(folds, middles)).joined()
        joints = np.unique(np.concatenate([path.s for path in paths]))
        joints = joints[joints <= end]
        scores = np.column_stack([self._scores(fold, joints) for fold in folds])
        if not np.isfinite(scores).all():
            raise ValueError(
                "scoring gives no finite number for some fold. Choose another, or folds that hold "
                "out rows of every class."
            )
        return Curve(joints, joints, scores, _counts(folds, joints))

    def _scores(self, fold: _Fold, joints: np.ndarray) -> np.ndarray:
        """What the scorer says about a fold at every joint."""
        scorer = scorer_of(self.estimator.scoring)
        X, y = self.rows[fold.test], self.y[fold.test]
        given = {} if self.weights is None else {"sample_weight": self.weights[fold.test]}
        step = max(1, _BLOCK_ENTRIES // (X.shape[0] * len(fold.paths)))
        found = np.empty(len(joints))
        for start in range(0, len(joints), step):
            part = joints[start : start + step]
            scores = np.stack([path.knots.scores(X, part) for path in fold.paths], axis=2)
            for k, s in enumerate(part):
                stage = _Stage(fold.paths, s, self.data.classes, X, scores[:, k])
                found[start + k] = scorer(stage, X, y, **given)
        return found

    def held_out_scores(self, folds: Sequence[_Fold], s: float) -> np.ndarray:
        """The decision values of all rows by the folds that held them out."""
        total, count = np.zeros((len(self.y), len(folds[0].paths))), np.zeros((len(self.y), 1))
        for fold in folds:
            X = self.rows[fold.test]
            total[fold.test] += np.hstack(
                [path.knots.scores(X, np.array([s])) for path in fold.paths]
            )
            count[fold.test] += 1
        mean = np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
        return mean[:, 0] if mean.shape[1] == 1 else mean

    def selection_frequency(self, folds: Sequence[_Fold], s: float) -> np.ndarray:
        """The share of the folds that use each feature."""
        place = np.array([s])
        used = [used_features(fold.paths, place).toarray()[0] > 0 for fold in folds]
        return np.mean(used, axis=0)


class _Stage(LinearClassifier):
    """A point of a fold's paths as a fitted classifier, for scorers."""

    def __init__(
        self,
        paths: Sequence[SolutionPath],
        s: float,
        classes: np.ndarray,
        known: Matrix,
        scores: np.ndarray,
    ) -> None:
        points = [path.knots.solution(s) for path in paths]
        self.coef_ = np.array([coef for coef, _ in points])
        self.intercept_ = np.array([intercept for _, intercept in points])
        self.classes_ = classes
        self.n_features_in_ = self.coef_.shape[1]
        self._known, self._scores = known, scores

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of X, which are at hand for the rows that were held out."""
        if X is not self._known:
            return super().decision_function(X)
        return self._scores[:, 0] if self._scores.shape[1] == 1 else self._scores


def _counts(folds: Sequence[_Fold], s: np.ndarray) -> np.ndarray:
    """The numbers of features that the folds use at every s."""
    counts = np.empty((len(s), len(folds)))
    for column, fold in enumerate(folds):
        widest = max(int(path.n_nonzero.max()) for path in fold.paths) * len(fold.paths)
        step = max(1, _BLOCK_ENTRIES // max(1, widest))
        for start in range(0, len(s), step):
            used = used_features(fold.paths, s[start : start + step])
            counts[start : start + step, column] = np.diff(used.indptr)
    return counts


def _warn_of_time(folds: Sequence[_Fold], paths: Sequence[SolutionPath], s: float) -> None:
    """Warn where time_limit cut a path short."""
    short = [path for fold in folds for path in fold.paths if path.stopped == "time_limit"]
    if short:
        warnings.warn(
            f"time_limit ended {len(short)} paths of the folds, the first at s = "
            f"{min(path.s[-1] for path in short):.3g}; s was chosen up to there. Raise time_limit, "
            "or set max_features.",
            ConvergenceWarning,
            stacklevel=3,
        )
    if any(path.stopped == "time_limit" and path.s[-1] < s for path in paths):
        warnings.warn(
            f"time_limit ended the path of all rows before the chosen s = {s:.3g}; the model is "
            "the last point that was reached. Raise time_limit, or set max_features.",
            ConvergenceWarning,
            stacklevel=3,
        )
