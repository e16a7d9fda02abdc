"""What every linear classifier does once it has coefficients."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted

from anynorm.design import Matrix, design_of
from anynorm.design.device import to_host
from anynorm.design.device_design import DeviceDesign
from anynorm.design.threads import entry_point
from anynorm.estimators._fitting import FittedClassifier
from anynorm.estimators.checks.chunks import ChunkedLabelled, by_blocks, chunked, lives_apart
from anynorm.estimators.checks.devices import to_device
from anynorm.estimators.checks.labels import Labelled, validate
from anynorm.losses import Loss, get_loss


def linear_scores(X: Matrix, coef: Any, intercept: np.ndarray) -> np.ndarray:
    """``X @ coef.T + intercept`` in float64, 1-D where coef has one row."""
    if sp.issparse(coef) and isinstance(X, DeviceDesign):
        coef = coef.toarray()
    if sp.issparse(coef):
        scores = safe_sparse_dot(X, coef.T, dense_output=True)
    else:
        scores = design_of(X).matvec(coef.T)
    scores = scores + intercept
    return scores.ravel() if scores.shape[1] == 1 else scores


class LinearClassifier(FittedClassifier):
    """Base class: scores from ``coef_`` and ``intercept_``.

    A subclass has its parameters and `_fit_rows`, or a `fit` of its own.
    """

    _takes_chunks: ClassVar[bool] = False

    loss: str | Loss
    coef_: Any

    def _fit(self, X: Any, y: Any, sample_weight: Any, end: float | None) -> Self:
        if self._takes_chunks and lives_apart(X):
            data = chunked(self, X, y, sample_weight, get_loss(self.loss))
            try:
                return self._fit_chunks(data, end)
            finally:
                data.X.close()
        return self._fit_rows(validate(self, X, y, sample_weight), end)

    def _fit_chunks(self, data: ChunkedLabelled, end: float | None) -> Self:
        """The same for rows that live apart, where the class `_takes_chunks`."""
        raise NotImplementedError

    def _fit_rows(self, data: Labelled, end: float | None) -> Self:
        """Solve the problems of checked rows until the deadline, and store what is found."""
        raise NotImplementedError

    @by_blocks
    @to_device
    @entry_point
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
        coef, intercept = to_host(self.coef_), to_host(self.intercept_)
        return linear_scores(self._rows(X), coef, intercept)

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
