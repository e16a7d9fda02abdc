"""What every linear classifier does once it has coefficients."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from anynorm.design import Matrix, design_of
from anynorm.estimators._fitting import deadline
from anynorm.estimators.checks.labels import Labelled, validate
from anynorm.estimators.checks.matrices import known_matrix
from anynorm.estimators.checks.parameters import check_parameters


def linear_scores(X: Matrix, coef: Any, intercept: np.ndarray) -> np.ndarray:
    """``X @ coef.T + intercept`` in float64, 1-D where coef has one row."""
    if X.dtype == np.float64 or sp.issparse(coef):
        scores = safe_sparse_dot(X, coef.T, dense_output=True)
    else:
        scores = design_of(X).matvec(coef.T)
    scores = scores + intercept
    return scores.ravel() if scores.shape[1] == 1 else scores


def labels_of(scores: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The label with the highest score; for two classes, the sign decides."""
    best = (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)
    return classes[best]


class LinearClassifier(ClassifierMixin, BaseEstimator):
    """Base class: a fit, and scores and labels from ``coef_`` and ``intercept_``.

    A subclass has its parameters and `_fit_rows`, or a `fit` of its own.
    """

    _kept: ClassVar[tuple[str, ...]] = ("_duals",)  # private, and a part of the fitted state

    time_limit: float | None
    coef_: Any
    intercept_: np.ndarray
    classes_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from.
        y : array-like of shape (n,)
            Their class labels, of two classes or more.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0; None is 1 for all.

        Returns
        -------
        LinearClassifier
            The estimator itself, fitted.

        Raises
        ------
        ValueError
            Where a parameter or the data cannot be used; the message says which and what to do.

        Examples
        --------
        >>> from anynorm import LinearSVC
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
        >>> model = LinearSVC(C=10.0).fit(X, y, sample_weight=[1, 2, 2, 1])
        >>> model.predict([[0.4], [2.6]]).tolist()
        ['low', 'high']
        """
        check_parameters(self)
        end = deadline(self.time_limit)
        return self._fit_rows(validate(self, X, y, sample_weight), end)

    def _fit_rows(self, data: Labelled, end: float | None) -> Self:
        """Solve the problems of checked rows until the deadline, and store what is found."""
        raise NotImplementedError

    def decision_function(self, X: Any) -> np.ndarray:
        """Score the rows of X: how far, and on which side of the hyperplane, they lie.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to score.

        Returns
        -------
        ndarray of shape (n,) or (n, K)
            ``X @ coef_.T + intercept_`` in float64.  For two classes one score per row, above 0
            for ``classes_[1]``; otherwise one column per class.
        """
        check_is_fitted(self)
        return linear_scores(known_matrix(X, self), self.coef_, self.intercept_)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the class labels of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to classify.

        Returns
        -------
        ndarray of shape (n,)
            The label with the highest score.
        """
        return labels_of(self.decision_function(X), self.classes_)

    def sparsify(self) -> Self:
        """Store ``coef_`` as a sparse array; worth it where most coefficients are zero.

        Returns
        -------
        LinearClassifier
            The estimator itself.
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_array(self.coef_)
        return self

    def densify(self) -> Self:
        """Store ``coef_`` as a dense array again.

        Returns
        -------
        LinearClassifier
            The estimator itself.
        """
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            self.coef_ = self.coef_.toarray()
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
