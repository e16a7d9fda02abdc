"""Kernel support vector classification with the kernel, C and gamma chosen in one fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from anynorm.estimators._cross_validation import Folds, SearchedClassifier, grid_of_C, scorer_of
from anynorm.estimators._docs import documented_like
from anynorm.estimators._kernel_candidates import ENDS_OF_C, given_budgets, given_kernels
from anynorm.estimators._kernel_grid import KernelGrid
from anynorm.estimators._kernel_model import KernelClassifier, check_given_matrix
from anynorm.estimators._probabilities import CalibratedClassifier
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.checks.parameters import (
    Rule,
    check_parameters,
    is_count_or_share,
    is_grid,
    one_of,
)
from anynorm.estimators.svc import SVC
from anynorm.kernels import KERNELS, is_kernel, takes_matrix
from anynorm.losses import Loss
from anynorm.losses.loss import Constraints
from anynorm.norms import Norm, SquaredL2, TopK, TopK2

_BUDGET_NORMS: dict[str, Callable[[float], Norm]] = {"l1": TopK, "l2": TopK2}


def _are_kernels(value: Any) -> bool:
    kernels = given_kernels(value)
    alone = len(kernels) == 1 or not any(map(takes_matrix, filter(is_kernel, kernels)))
    return bool(kernels) and all(map(is_kernel, kernels)) and alone


def _are_budgets(value: Any) -> bool:
    budgets = given_budgets(value)
    return value is None or (bool(budgets) and all(map(is_count_or_share, budgets)))


_OWN_RULES: dict[str, Rule] = {
    "Cs": (
        is_grid,
        "an integer of at least 1 (that many values from 0.01 to 1000) or a 1-D array of positive, "
        "finite numbers",
    ),
    "kernel": (
        _are_kernels,
        f"one of {', '.join(map(repr, KERNELS))}, a kernel of anynorm.kernels, a function of two "
        "sets of rows, or a list of these ('precomputed' goes alone)",
    ),
    "budget": (
        _are_budgets,
        "None, at least 1 (an integer, a count), in (0, 1] (a float, a share of the weight), or a "
        "list of these",
    ),
}
"""What parameters may be that other estimators have as well."""


@documented_like(SVC)
class SVCCV(SearchedClassifier, CalibratedClassifier, KernelClassifier):
    r"""`SVC` with the kernel, gamma, C and perhaps a budget chosen by cross-validation, in one fit.

    The kernel matrix of each gamma is computed once and serves all folds and all C; each C starts
    from the solution of the last one, and every fit is certified.  The scores of the rows that the
    folds hold out give probabilities, without further fits.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        The values of C to try; an integer means that many, evenly spaced in the logarithm, from
        0.01 to 1000.
    gammas : int or array-like of {"scale", "auto"} or float, default=5
        The values of gamma to try with "rbf" and "poly", which have one; an integer means that
        many, evenly spaced in the logarithm, from a sixteenth to 16 times "scale".  Those that
        depend on the data are the same for all folds.
    preprocessor : transformer or None, default=None
        What prepares X, e.g. ``StandardScaler()``, or a pipeline of transformers.  A clone is
        fitted to the training rows of each fold, and one more to all rows, with y, and with
        `sample_weight` where its `fit` takes that.  Folds then have a kernel matrix each, where
        otherwise they share one; ``support_vectors_`` are prepared rows, and a scorer gets such.
    cv : int, splitter, iterable or None, default=5
        The folds, as in scikit-learn.  An integer, or None for 5, means stratified folds of
        shuffled rows, the same in every fit; where `fit` gets ``groups``, folds that keep the
        groups together.
    scoring : str, callable or None, default=None
        What to maximise: a scorer's name or a callable ``(estimator, X, y)``; None is accuracy.
        Where `sample_weight` is given, it counts in the score too.
    rule : {"best", "one_se", "fewest"}, default="best"
        How to choose from the mean scores.  "best": the highest.  "one_se": the simplest within one
        standard error of the best.  "fewest": the fewest support vectors, in the mean over the
        folds, among the scores within `score_tolerance` of the best.  Of what is as good, the
        simplest: the smaller budget, then the smaller C, the kernel that was named first, the
        smaller gamma.
    score_tolerance : float or None, default=0.01
        How far below the best score ``rule="fewest"`` may go; None as in `SparseSVCCV`.
    stop_early : bool, default=True
        Whether to leave out the other folds of a setting that would not be chosen if it were
        perfect there.  It never changes the choice, and is done for ``rule="best"`` and "fewest"
        with scores that are at most 1 by definition: accuracy, "balanced_accuracy", "roc_auc",
        "f1", "f1_macro".
    slack : as in `SVC`
    constraints : as in `SVC`
    budget : None, int, float or list of these, default=None
        Budgets to try, as in `BudgetSVC`: the slacks then cost the sum of the B largest, and
        `slack` must be "l1" or "l2".
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel, callable, or list, default="rbf"
        As in `SVC`; kernels of a list are all tried.
    degree, coef0, class_weight : as in `SVC`
    calibration : {"sigmoid", "isotonic"} or None, default=None
        How `predict_proba` follows from the scores: by a sigmoid (Platt's method), or by a
        non-decreasing step function, which wants a thousand rows or more.  It is fitted to
        ``oof_decision_function_``; no probability is 0 or 1.  None: no probabilities.
    tol : float, default=1e-3
        The relative duality gap ``(primal - dual) / max(|primal|, |dual|)`` that every fit is to
        reach.
    max_iter : int, default=100_000_000
        The most iterations per binary problem.
    time_limit : float or None, default=None
        The most seconds for everything together.  Settings that there is no time for are left out.
    cache_size : as in `SVC`
    n_jobs : int or None, default=None
        The number of threads that share the folds, then the rows of each.  The result does not
        depend on it.
    verbose : int, default=0
        1 prints a line for each kernel, 2 adds the certificates of the model.

    Attributes
    ----------
    preprocessor_ : transformer
        The `preprocessor` as fitted to all rows; predictions begin with it, and its
        ``get_feature_names_out`` names their features.  Only where there is one.
    C_ : float
        The chosen C.
    gamma_ : float
        The chosen gamma, where the chosen kernel has one that is searched.
    budget_ : int or float
        The chosen budget, where there are any.
    kernel_ : str, Kernel or callable
        The chosen kernel, as it was given.
    best_params_ : dict
        What was chosen, by name.
    best_index_ : int
        The place of the choice in the table.
    best_score_ : float
        Its mean score over the folds.
    cv_results_ : dict of ndarrays
        The table: ``param_kernel`` (where there are several), ``param_gamma``, ``param_budget``,
        ``param_C``, ``params``, ``split0_test_score``, ..., ``mean_test_score``,
        ``std_test_score``, ``rank_test_score``, ``mean_n_support``, the certified gaps
        (``split0_gap``, ..., ``max_gap``) and statuses (``split0_status``, ...), and
        ``mean_fit_time``, an even share of the time of the settings that were fitted together.  A
        setting that was left out has the status "skipped" and the score NaN.
    oof_decision_function_ : ndarray of shape (n,) or (n, K)
        The decision values of each row by the folds that held it out: their mean where there are
        several, NaN where there is none.
    oof_predict_proba_ : ndarray of shape (n, K)
        Probabilities of each row by a calibration that knew nothing of its fold; where there are
        more than ten folds, of its tenth of them.
    calibration_ : dict
        The function that makes probabilities of scores.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_ : as in `SVC`
    certificate_, n_iter_, n_features_in_, feature_names_in_ : as in `SVC`

    See Also
    --------
    SVC : One kernel, one C.
    BudgetSVC : One budget.
    sklearn.model_selection.GridSearchCV : Fits every setting and fold from scratch.

    Notes
    -----
    Kernels compare features, which should be of about the same scale: `preprocessor` scales them
    inside the folds, while a scaler in a pipeline around this estimator has seen the rows that the
    folds hold out.

    Decision values of all settings are kept until the choice is made: 8 bytes for each row, setting
    and class.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from anynorm import SVCCV
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = SVCCV([0.1, 1.0, 10.0], gammas=[0.5, 2.0, 8.0], calibration="sigmoid")
    >>> model = model.fit(X, y)
    >>> print(f"C = {model.C_:g}, gamma = {model.gamma_:g}: {model.best_score_:.1%} right")
    C = 10, gamma = 2: 96.5% right
    >>> print(f"largest gap of a fit {model.cv_results_['max_gap'].max():.0e}, tol {model.tol:g}")
    largest gap of a fit ..., tol 0.001
    >>> model.predict_proba([[0.0, 1.0], [1.0, -0.5]]).argmax(axis=1)
    array([0, 1])
    """

    _rules = ("best", "one_se", "fewest")

    def __init__(
        self,
        Cs: Any = 10,
        *,
        gammas: Any = 5,
        preprocessor: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        score_tolerance: float | None = 0.01,
        stop_early: bool = True,
        slack: str | Norm | SquaredL2 = "l1",
        constraints: Constraints = "inequality",
        budget: Any = None,
        kernel: Any = "rbf",
        degree: float = 3,
        coef0: float = 0.0,
        class_weight: Any = None,
        calibration: str | None = None,
        tol: float = 1e-3,
        max_iter: int = 100_000_000,
        time_limit: float | None = None,
        cache_size: float = 500,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.preprocessor = preprocessor
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.score_tolerance = score_tolerance
        self.stop_early = stop_early
        self.slack = slack
        self.constraints = constraints
        self.budget = budget
        self.kernel = kernel
        self.degree = degree
        self.coef0 = coef0
        self.class_weight = class_weight
        self.calibration = calibration
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check(self) -> None:
        slacks = {} if self.budget is None else {"slack": one_of(_BUDGET_NORMS)}
        check_parameters(self, rule=one_of(self._rules), **_OWN_RULES, **slacks)
        if self.preprocessor is not None and self._takes_matrix():
            raise ValueError(
                "preprocessor must be None with kernel='precomputed': what X holds are kernel "
                "values, and nothing is left to prepare. Prepare the rows before their kernel."
            )

    def _largest_C(self) -> float:
        return float(grid_of_C(self.Cs, *ENDS_OF_C)[-1])

    def _search(
        self,
        data: Labelled,
        y: np.ndarray,
        weights: np.ndarray | None,
        folds: Folds,
        kept: Mapping[str, Any],
        began: float,
    ) -> None:
        for kernel in given_kernels(self.kernel):
            check_given_matrix(kernel, data.X)
        end = None if self.time_limit is None else began + float(self.time_limit)
        scorer = None if self.scoring == "accuracy" else scorer_of(self.scoring)
        KernelGrid(self, data, y, weights, folds, scorer, end, kept=kept).fit()

    def _loss_for(self, budget: float | None, data: Labelled) -> Loss:
        """What the slacks of these rows cost."""
        if budget is None:
            return Loss.from_slack(self.slack, self.constraints)
        if isinstance(budget, float | np.floating):
            budget *= data.X.shape[0] if data.weights is None else float(data.weights.sum())
        return Loss.from_slack(_BUDGET_NORMS[str(self.slack)](float(budget)), self.constraints)

    def _used_kernel(self) -> Any:
        return getattr(self, "kernel_", None) or given_kernels(self.kernel)[0]

    def _takes_matrix(self) -> bool:
        return any(takes_matrix(kernel) for kernel in given_kernels(self.kernel))
