"""The 1-norm SVM with its place on the exact path chosen by cross-validation."""

from __future__ import annotations

from typing import Any

from anynorm.estimators._cross_validation import (
    BALANCED,
    Folds,
    SearchedClassifier,
    scorer_of,
)
from anynorm.estimators._docs import documented_like
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._path_search import PathSearch
from anynorm.estimators._probabilities import CalibratedClassifier
from anynorm.estimators.checks.labels import usable_penalties
from anynorm.estimators.sparse_svc import SparseSVC


@documented_like(SparseSVC)
class SparseSVCCV(SearchedClassifier, CalibratedClassifier, LinearClassifier):
    r"""The 1-norm support vector classifier with the bound s chosen by cross-validation.

    On every fold the exact path of

    .. math:: \min_{w, b} \sum_i c_i \bigl(1 - y_i (x_i^\top w + b)\bigr)_+
              \quad\text{with}\quad \sum_j u_j |w_j| \le s

    is followed.  Decision values are linear in s between its knots, so the accuracy on the rows
    that were held out is known for every s: no grid.  The model is the point at the chosen s of
    the path of all rows.

    Parameters
    ----------
    preprocessor : transformer or None, default=None
        What prepares X, e.g. ``StandardScaler()``, or a pipeline of transformers.  A clone is
        fitted to the training rows of each fold, and one more to all rows, with y, and with
        `sample_weight` where its `fit` takes that.  ``coef_`` and all else that counts features
        are then about those that it makes, and a scorer gets prepared rows.
    cv : int, splitter, iterable or None, default=5
        The folds, as in scikit-learn.  An integer, or None for 5, means stratified folds of
        shuffled rows, the same in every fit; where `fit` gets ``groups``, folds that keep the
        groups together.
    scoring : str, callable or None, default=None
        What to maximise.  None, "accuracy" and "balanced_accuracy" are exact for every s.  Any
        other scorer, by name or as a callable ``(estimator, X, y)``, is evaluated at the joints of
        all folds, 2000 of them where there are more.  Where `sample_weight` is given, it counts in
        the score too.
    rule : {"best", "steady", "one_se", "fewest"}, default="best"
        How to choose from the mean scores.  "best": the highest.  "steady": where the score is
        highest on average over a factor of 4 in s (10 in C, see `multiclass`; a quarter of the
        range that was followed where that is less), as a single step of the curve may be high by
        accident.  "one_se": the smallest s (or C) whose score is within one standard error of the
        best.  "fewest": the fewest features, in the mean over the folds, among the scores within
        `score_tolerance` of the best.  At ties the middle of the widest interval, by its factor,
        for "best", and of the leftmost for the others.
    score_tolerance : float or None, default=None
        How far below the best score ``rule="fewest"`` may go.  None: 0.01, or one standard error
        where that is more, so that the folds never use more features than with "one_se".
    max_features : int or None, default=None
        Follow the paths until more features than that would be in use; a path is then taken to
        stay at its last point.  Where the score still rose there, the fit warns.
    multiclass : {"one_C", "one_s", "each"}, default="one_C"
        What the paths of several classes have in common: the price C of the loss, the bound s, or
        nothing.  All are chosen by the score of the whole classifier; "each" begins with one C for
        all and moves class by class while the score rises.
    stop_early : bool, default=True
        Whether to end the search where going on cannot pay: the paths of all folds are followed
        together, C is doubled from stage to stage, and the last is that at which, over the last
        factor of ten in C, every score is more than one standard error below the best, or the best
        is above what came before by less than a quarter of its standard error.  Neither counts
        before the best is one standard error above the score of no features.
    penalty_weights : as in `SparseSVC`
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is not penalised.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, as in `LinearSVC`; "balanced" balances every fold by itself.
    calibration : {"sigmoid", "isotonic"} or None, default=None
        How `predict_proba` follows from the scores: by a sigmoid (Platt's method), or by a
        non-decreasing step function, which wants a thousand rows or more.  It is fitted to
        ``oof_decision_function_``; no probability is 0 or 1.  None: no probabilities.
    tol : float, default=1e-4
        The relative duality gap above which the model warns; a path is exact, so its gaps are
        those of rounding.
    time_limit : float or None, default=None
        The most seconds for everything together, shared evenly by the folds and the model.
    n_jobs : int or None, default=None
        The number of threads that share the folds, then the classes; as in `LinearSVC`.  The result
        does not depend on it.
    verbose : int, default=0
        1 prints a line for each path.

    Attributes
    ----------
    preprocessor_ : transformer
        The `preprocessor` as fitted to all rows; predictions begin with it, and its
        ``get_feature_names_out`` names the features of the model.  Only where there is one.
    s_ : float or ndarray of shape (K,)
        The chosen bound, or those of the classes where there are more than two.
    C_ : float or ndarray of shape (K,)
        The price at which the model solves ``sum u_j |w_j| + C * loss``, per class.  At a joint the
        solution is the same for a range of C, and this is the upper end of it: classes that were
        given one C may have several here.
    path_ : SolutionPath
        The path of all rows, as far as the folds were followed; only for two classes.
    paths_ : list of SolutionPath
        The paths of all rows: one for two classes, otherwise each class against the rest.
    stopped_ : str
        Where and why the search ended early, in words; empty where all paths came to their end.
    best_index_ : int
        The place of the choice in ``cv_results_``.
    best_score_ : float
        Its mean score over the folds.
    cv_results_ : dict of ndarrays
        A row for each interval of s in which no fold's score and no fold's number of features
        changes (for other scorers than accuracy, a row for each joint): ``s_low``, ``s_high``,
        ``param_s`` (the middle), ``params``, ``split0_test_score``, ..., ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, ``mean_n_features``.  Where several classes have
        one C, the intervals are those of C: ``C_low``, ``C_high``, ``param_C``.
    oof_decision_function_ : ndarray of shape (n,) or (n, K)
        The decision values at ``s_`` of each row by the folds that held it out: their mean where
        there are several, NaN where there is none.
    oof_predict_proba_ : ndarray of shape (n, K)
        Probabilities of each row by a calibration that knew nothing of its fold; where there are
        more than ten folds, of its tenth of them.
    calibration_ : dict
        The function that makes probabilities of scores.
    selection_frequency_ : ndarray of shape (p,)
        The share of the folds that use the feature at ``s_``, for at least one class.
    coef_ : ndarray of shape (1, p) or (K, p)
        The coefficients: one row for two classes, one per class otherwise.
    intercept_, classes_ : as in `SparseSVC`
    certificate_ : Certificate
        The certificate of the model for the penalised problems with ``C_``.
    n_iter_ : int
        The most pivots that a path of all rows took.
    n_features_in_, feature_names_in_ : as in `SparseSVC`

    See Also
    --------
    SparseSVC : One C, four losses.
    sparse_svm_path : The path alone.

    Notes
    -----
    The penalty compares coefficients, so features must be of about the same scale:
    ``preprocessor=StandardScaler()`` brings them there inside the folds, as ``anynorm fit`` does,
    and ``MaxAbsScaler()`` leaves sparse ones sparse.  A scaler in a pipeline around this estimator
    is fitted to all rows, those that the folds hold out among them, and scores come out too good.

    Several classes are handled one against the rest, and chosen by the score of the whole
    classifier: its accuracy is an exact step function of s, or of C, too.

    Examples
    --------
    >>> from anynorm import SparseSVCCV
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = SparseSVCCV(rule="fewest", score_tolerance=0.02).fit(X, y)
    >>> print(f"{(model.coef_ != 0).sum()} of 200 features, {model.best_score_:.1%} right")
    4 of 200 features, 94.0% right
    >>> print(model.certificate_)
    optimal: primal 1.759313..., dual 1.759313..., relative gap ... (tol 1e-04)

    Features in other units, scaled inside the folds:

    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> metres = X * np.geomspace(0.01, 100.0, X.shape[1])
    >>> scaled = SparseSVCCV(preprocessor=StandardScaler()).fit(metres, y)
    >>> raw = SparseSVCCV().fit(metres, y)
    >>> print(f"{scaled.best_score_:.1%} right in the folds, {raw.best_score_:.1%} as they are")
    94.0% right in the folds, 61.0% as they are
    """

    _rules = ("best", "steady", "one_se", "fewest")
    penalty = "l1"  # scikit-learn's SelectFromModel then keeps what is not zero

    def __init__(
        self,
        *,
        preprocessor: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        score_tolerance: float | None = None,
        max_features: int | None = None,
        multiclass: str = "one_C",
        stop_early: bool = True,
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        calibration: str | None = None,
        tol: float = 1e-4,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.preprocessor = preprocessor
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.score_tolerance = score_tolerance
        self.max_features = max_features
        self.multiclass = multiclass
        self.stop_early = stop_early
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.calibration = calibration
        self.tol = tol
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _search(
        self, data: Any, y: Any, weights: Any, folds: Folds, kept: Any, began: float
    ) -> None:
        search = PathSearch(
            estimator=self,
            data=data,
            y=y,
            weights=weights,
            penalty_weights=usable_penalties(self.penalty_weights, data),
            folds=folds,
            scorer=_scorer(self.scoring),
            began=began,
            feature_names=data.feature_names,
            kept=kept,
        )
        search.run().keep()


def _scorer(scoring: Any) -> Any:
    """What `PathSearch` takes: the accuracies that it knows by themselves, or a scorer."""
    if isinstance(scoring, str) and scoring in ("accuracy", BALANCED):
        return None if scoring == "accuracy" else BALANCED
    return scorer_of(scoring)
