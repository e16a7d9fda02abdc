"""The walk from the 2-norm to the 1-norm around any estimator with coefficients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.sparsefuncs import inplace_column_scale, min_max_axis
from sklearn.utils.validation import check_is_fitted

from anynorm.design import Matrix
from anynorm.design.threads import entry_point
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import keep
from anynorm.estimators._notebook import SummarisedEstimator
from anynorm.estimators.checks.labels import one_column
from anynorm.estimators.checks.matrices import known_matrix, training_matrix
from anynorm.estimators.checks.parameters import check_parameters
from anynorm.estimators.linear_svc import LinearSVC

_PRUNED_SHARE = 1e-4  # of all coefficients' reach: what those left out may have together


class BlackBoxRound(NamedTuple):
    """One round of `Reweighted`: ``coef`` in the units of X, ``intercept``, ``n_nonzero``."""

    coef: np.ndarray
    intercept: Any
    n_nonzero: int


def _has(method: str) -> Callable[[Any], bool]:
    """Whether the wrapped estimator has a method; scikit-learn's way to say so."""

    def check(self: Any) -> bool:
        getattr(getattr(self, "estimator_", self.estimator), method)
        return True

    return check


@documented_like(LinearSVC)
class Reweighted(SummarisedEstimator, MetaEstimatorMixin, BaseEstimator):
    r"""The walk from the 2-norm to the 1-norm around any 2-norm penalised estimator.

    Round 1 fits a clone of the estimator; each further round fits another one on features
    weighted by :math:`\sqrt{|u_j|}`, where u are the coefficients of the round before in the
    units of X.  If the estimator minimises :math:`\tfrac{a}{2}\|w\|^2 + E(w)`, the rounds lower
    :math:`a\|u\|_1 + E(u)`: ``Ridge(alpha)`` walks to ``Lasso(alpha / n)``, ``LogisticRegression``
    to its 1-norm variant.

    Parameters
    ----------
    estimator : estimator
        A classifier for two classes or a regressor for one target, with ``coef_`` after `fit`.
    n_rounds : int, default=3
        The number of rounds; 1 is the estimator alone.
    prune : bool, default=True
        Whether to set the smallest coefficients to exact zeros after each round but the first, and
        to leave those features out of all further rounds.  The loss is not known here, so sizes
        decide: with :math:`s_j = |u_j| \max_i |x_{ij}|` those go whose :math:`s_j` together are at
        most 1e-4 of the sum of all; no score changes by more than that share of the largest
        possible one.

    Attributes
    ----------
    coef_ : ndarray, of the shape that the estimator has
        The coefficients in the units of X; pruned ones are exactly zero.
    intercept_ : float or ndarray
        The estimator's intercept, 0 where it has none.
    estimator_ : estimator
        The clone of the last round, fitted on ``X * weights_``.
    weights_ : ndarray of shape (p,)
        The weights of the features in the last round; 0 for pruned ones.
    history_ : list of BlackBoxRound
        One record per round: ``coef``, ``intercept``, ``n_nonzero``.
    certificate_ : Certificate
        The estimator's own of the last round, for the problem with weighted features; only where
        it has one, as the classifiers of anynorm have.
    n_iter_ : int
        The number of rounds.
    classes_ : ndarray of shape (2,)
        The class labels, where the estimator is a classifier.
    n_features_in_, feature_names_in_ : as in `LinearSVC`

    See Also
    --------
    ReweightedSVC : The same inside our own solver: no copies of X, warm starts, certificates.

    Notes
    -----
    A black box needs its features rescaled, so each round makes one rescaled copy of X.  An
    intercept that the estimator penalises is not re-weighted.  Several classes:
    ``OneVsRestClassifier(Reweighted(estimator))``.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from anynorm import Reweighted
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = Reweighted(LogisticRegression(C=0.3), n_rounds=8).fit(X, y)
    >>> [record.n_nonzero for record in model.history_][0], int((model.coef_ != 0).sum()) < 100
    (200, True)
    >>> model.predict_proba(X).shape
    (100, 2)
    """

    def __init__(self, estimator: Any, *, n_rounds: int = 3, prune: bool = True) -> None:
        self.estimator = estimator
        self.n_rounds = n_rounds
        self.prune = prune

    @entry_point
    def fit(self, X: Any, y: Any, **params: Any) -> Self:
        """Fit the estimator once per round.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from.
        y : array-like of shape (n,)
            Their labels or targets.
        **params : dict
            Further arguments of the estimator's `fit`, e.g. ``sample_weight``; where metadata
            routing is on, those that it has requested.

        Returns
        -------
        Reweighted
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a parameter or the data cannot be used, where the estimator has no ``coef_``, or
            more than one row of it.
        """
        check_parameters(self)
        if getattr(self.estimator, "preprocessor", None) is not None:
            raise ValueError(
                "estimator must not have a preprocessor of its own, which would undo the weights "
                "of the features. Put it before Reweighted, in a pipeline."
            )
        if get_config().get("enable_metadata_routing"):
            params = process_routing(self, "fit", **params).estimator.fit
        X, names = training_matrix(X, type(self).__name__)
        y = self._one_target(y)
        reach = _largest_entries(X)
        weights: np.ndarray | None = None
        history: list[BlackBoxRound] = []
        for number in range(int(self.n_rounds)):
            if number:
                coef = history[-1].coef.ravel()
                kept = _keep(coef, reach) if self.prune else True
                weights = np.sqrt(np.abs(np.where(kept, coef, 0.0)))
            model = clone(self.estimator).fit(_weighted(X, weights), y, **params)
            coef = _coefficients(model, X.shape[1])
            if weights is not None:
                coef = coef * weights
                if self.prune:
                    coef = np.where(_keep(coef.ravel(), reach), coef, 0.0)
            intercept = getattr(model, "intercept_", 0.0)
            history.append(BlackBoxRound(coef, intercept, int(np.count_nonzero(coef))))
        if weights is not None:
            weights = np.where(history[-1].coef.ravel() != 0, weights, 0.0)
        self._store(model, history, weights, names)
        return self

    def _one_target(self, y: Any) -> Any:
        """Check that y is one target of at most two classes; a single column becomes 1-D."""
        if y is None or sp.issparse(y):
            return y  # the estimator says what it thinks of that
        y = np.asarray(y)
        if y.ndim == 2 and y.shape[1] == 1:
            y = one_column(y)
        if is_classifier(self.estimator) and type_of_target(y) == "multiclass":
            raise ValueError(
                "Only binary classification is supported. The type of the target is multiclass. "
                "Give each class a walk of its own: sklearn.multiclass.OneVsRestClassifier("
                f"{type(self).__name__}(...))."
            )
        return y

    def _store(
        self,
        model: Any,
        history: list[BlackBoxRound],
        weights: np.ndarray | None,
        names: np.ndarray | None,
    ) -> None:
        last = history[-1]
        p = last.coef.size
        fitted = {
            "coef_": last.coef,
            "intercept_": last.intercept,
            "estimator_": model,
            "weights_": np.ones(p) if weights is None else weights,
            "history_": history,
            "n_iter_": len(history),
            "n_features_in_": p,
        }
        if hasattr(model, "certificate_"):
            fitted["certificate_"] = model.certificate_
        if hasattr(model, "classes_"):
            fitted["classes_"] = model.classes_
        keep(self, fitted, names)

    def _prepared(self, X: Any) -> Matrix:
        check_is_fitted(self)
        X = known_matrix(X, self)
        return X if np.all(self.weights_ == 1.0) else _weighted(X, self.weights_)

    @available_if(_has("predict"))
    def predict(self, X: Any) -> np.ndarray:
        """Predict with the last round's estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to predict.

        Returns
        -------
        ndarray of shape (n,)
            What the estimator's `predict` gives for ``X * weights_``.
        """
        X = self._prepared(X)
        return self.estimator_.predict(X)

    @available_if(_has("decision_function"))
    def decision_function(self, X: Any) -> np.ndarray:
        """Score the rows of X with the last round's estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to score.

        Returns
        -------
        ndarray of shape (n,)
            ``X @ coef_ + intercept_``.
        """
        X = self._prepared(X)
        return self.estimator_.decision_function(X)

    @available_if(_has("predict_proba"))
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities of the classes, by the last round's estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to predict.

        Returns
        -------
        ndarray of shape (n, 2)
            One column per class.
        """
        X = self._prepared(X)
        return self.estimator_.predict_proba(X)

    @available_if(_has("predict_log_proba"))
    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of the probabilities of the classes, by the last round's estimator.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to predict.

        Returns
        -------
        ndarray of shape (n, 2)
            One column per class.
        """
        X = self._prepared(X)
        return self.estimator_.predict_log_proba(X)

    @available_if(_has("score"))
    def score(self, X: Any, y: Any, **params: Any) -> float:
        """Score of the last round's estimator: accuracy for classifiers, R^2 for regressors.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to predict.
        y : array-like of shape (n,)
            Their labels or targets.
        **params : dict
            Further arguments of the estimator's `score`, e.g. ``sample_weight``.

        Returns
        -------
        float
            The score.
        """
        if get_config().get("enable_metadata_routing"):
            params = process_routing(self, "score", **params).estimator.score
        X = self._prepared(X)
        return float(self.estimator_.score(X, y, **params))

    def get_metadata_routing(self) -> MetadataRouter:
        """Say which arguments of `fit` and `score` go to the estimator.

        Returns
        -------
        MetadataRouter
            The routing.
        """
        mapping = MethodMapping().add(caller="fit", callee="fit")
        mapping.add(caller="score", callee="score")
        return MetadataRouter(owner=self).add(estimator=self.estimator, method_mapping=mapping)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.target_tags = inner.target_tags
        tags.non_deterministic = inner.non_deterministic
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.target_tags.multi_output = False
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
            tags.classifier_tags.multi_label = False
        return tags


def _coefficients(model: Any, p: int) -> np.ndarray:
    """``coef_`` as a dense array of one row, or the error that says what is wrong with it."""
    name = type(model).__name__
    coef = getattr(model, "coef_", None)
    if coef is None:
        raise ValueError(
            f"{name} has no coef_ after fit; Reweighted needs a linear estimator, e.g. "
            "sklearn.linear_model.LogisticRegression(), with scalers in a pipeline around both."
        )
    coef = np.asarray(coef.toarray() if sp.issparse(coef) else coef, dtype=np.float64)
    if coef.shape not in ((p,), (1, p)):
        raise ValueError(
            f"{name} has a coef_ of shape {coef.shape}; Reweighted walks with one vector of {p} "
            "coefficients. For several classes use sklearn.multiclass.OneVsRestClassifier("
            "Reweighted(...)), for several targets sklearn.multioutput.MultiOutputRegressor."
        )
    return coef


def _weighted(X: Matrix, weights: np.ndarray | None) -> Matrix:
    """X with its columns multiplied by the weights, in the dtype of X; X itself for None."""
    if weights is None:
        return X
    weights = weights.astype(X.dtype)
    if not sp.issparse(X):
        return X * weights
    X = X.copy()
    inplace_column_scale(X, weights)
    return X


def _largest_entries(X: Matrix) -> np.ndarray:
    """The largest absolute value of every column."""
    low, high = min_max_axis(X, axis=0) if sp.issparse(X) else (X.min(axis=0), X.max(axis=0))
    return np.maximum(np.abs(low), np.abs(high)).astype(np.float64)


def _keep(coef: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """All coefficients but the smallest, whose reach together is negligible."""
    sizes = np.abs(coef) * reach
    order = np.argsort(sizes, kind="stable")
    running = np.cumsum(sizes[order])
    keep = sizes > 0
    keep[order[running <= _PRUNED_SHARE * running[-1]]] = False
    return keep
