"""The Lasso with a bound on the 1-norm of the coefficients: a regressor, and its path."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from anynorm.design import Matrix, design_of
from anynorm.design.threads import entry_point
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import deadline, keep, limits
from anynorm.estimators._linear_model import linear_scores
from anynorm.estimators._messages import progress_printer, say, warn, warn_if_not_converged
from anynorm.estimators._notebook import SummarisedEstimator
from anynorm.estimators.checks.labels import usable_targets, usable_weights
from anynorm.estimators.checks.matrices import check_squares, known_matrix, training_matrix
from anynorm.estimators.checks.parameters import check_parameters, check_values
from anynorm.estimators.linear_svc import LinearSVC
from anynorm.estimators.paths.lasso_path import LassoPath
from anynorm.estimators.sparse_path import warn_of_gaps

_USELESS = 1 / 200  # of the best feature's own coefficient: a smaller radius fits nothing


@documented_like(LinearSVC)
class ConstrainedLasso(SummarisedEstimator, RegressorMixin, BaseEstimator):
    r"""Least squares with a bound on the 1-norm of the coefficients, certified.

    With row weights :math:`v_i` it minimises

    .. math:: \sum_i v_i (y_i - w^\top x_i - b)^2 \quad\text{subject to}\quad \|w\|_1 \le r

    over the coefficients w and the intercept b, which is not bounded.  It is the Lasso in its first
    form; ``sklearn.linear_model.Lasso`` with the penalty ``alpha_`` has the same solution.

    Parameters
    ----------
    radius : float or None, default=None
        The largest 1-norm r of the coefficients.  None is the coefficient that the feature of the
        highest correlation with y would have alone: it grows with y and shrinks with X, as all
        radii of use do.  A radius of less than a two-hundredth of that warns.
    fit_intercept : as in `LinearSVC`
    tol : float, default=1e-6
        The relative duality gap to reach.
    max_iter : int, default=1000
        The most working sets of columns.
    time_limit : as in `LinearSVC`
    verbose : int, default=0
        0 is silent, 1 prints a line for each working set, 2 adds the certificate.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        The coefficients, most of them exactly zero.
    intercept_ : float
        The intercept.
    radius_ : float
        The bound that was used.
    alpha_ : float
        The penalty at which scikit-learn's Lasso has these coefficients; 0 where the bound does not
        matter.
    certificate_ : Certificate
        The sum of squares, a lower bound on it, and the relative gap between them, computed apart
        from the solver.
    n_iter_ : int
        The working sets used.
    n_features_in_, feature_names_in_ : as in `LinearSVC`

    See Also
    --------
    anynorm.reductions.lasso_to_svm : the same problem as an SVM.
    anynorm.kernel_lasso : the Lasso for columns in the space of a kernel.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from anynorm import ConstrainedLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ConstrainedLasso(radius=500.0).fit(X, y)
    >>> model.coef_.round(1)
    array([  0. ,   0. , 280.1,   0. ,   0. ,   0. ,   0. ,   0. , 219.9,
             0. ])
    >>> print(model.certificate_)
    optimal: primal 1867991.4..., dual 1867991.4..., relative gap ... (tol 1e-06)
    """

    coef_: np.ndarray
    intercept_: float

    def __init__(
        self,
        radius: float | None = None,
        *,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.radius = radius
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    @entry_point
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0; None is 1 for all.

        Returns
        -------
        ConstrainedLasso
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a parameter or the data cannot be used; the message says which and what to do.

        Examples
        --------
        >>> from anynorm import ConstrainedLasso
        >>> model = ConstrainedLasso(radius=0.5).fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
        >>> model.coef_, model.intercept_
        (array([0.5]), 1.5)
        """
        check_parameters(self)
        end = deadline(self.time_limit)
        X, y, weights, names = self._checked(X, y, sample_weight)
        from anynorm.reductions import lasso_by_svm
        from anynorm.solvers.lasso.ball import LassoBall  # Numba: for those who fit, not predict

        design = design_of(X).centred(weights, bool(self.fit_intercept))
        target, mean = design.target(y)
        ball = LassoBall(design, target, lasso_by_svm)
        radius = self._radius(design, target)
        solution = ball.solve(
            radius,
            **limits(self, end),
            progress=progress_printer(type(self).__name__, self.verbose, unit="working set"),
        )
        coef = np.asarray(solution.coef)
        used = np.flatnonzero(coef)
        residual = target - design.matvec(coef[used], columns=used)
        top = float(np.abs(design.rmatvec(residual)).max(initial=0.0))
        fitted = {
            "coef_": coef,
            "intercept_": mean if design.means is None else mean - float(design.means @ coef),
            "radius_": radius,
            "alpha_": top / design.total if top > 1e-9 * ball.first_penalty else 0.0,
            "certificate_": solution.certificate,
            "n_iter_": solution.n_iter,
            "n_features_in_": len(coef),
        }
        keep(self, fitted, names)
        if self.verbose >= 2:
            say(f"{type(self).__name__}: {solution.certificate}")
        warn_if_not_converged(solution.certificate, solution.n_iter, self.max_iter, may_vanish=True)
        return self

    def _radius(self, design: Any, target: np.ndarray) -> float:
        """The bound that is asked for, or the coefficient of the best feature by itself."""
        lengths = design.column_norms_squared()
        products = np.abs(design.rmatvec(target))
        best = int(np.argmax(products**2 / np.where(lengths > 0, lengths, np.inf)))
        usual = float(products[best] / lengths[best]) if products[best] > 0 else 1.0
        if self.radius is None:
            return usual
        radius = float(self.radius)
        if radius < _USELESS * usual:
            warn(
                f"radius={radius:g} leaves next to nothing of any coefficient: the feature of the "
                f"highest correlation with y would have {usual:.3g} alone. Use a radius of that "
                "size, radius=None, or scale y.",
                UserWarning,
            )
        return radius

    @entry_point
    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of the rows of X.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows.

        Returns
        -------
        ndarray of shape (n,)
            ``X @ coef_ + intercept_``.
        """
        check_is_fitted(self)
        X = self._rows(X)
        return linear_scores(X, np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_))

    def _rows(self, X: Any) -> Matrix:
        """The rows of X as the model knows them."""
        return known_matrix(X, self)

    def path(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        max_features: int | None = None,
        max_joints: int | None = None,
        radius_max: float | None = None,
    ) -> LassoPath:
        """Follow all solutions from w = 0 to least squares, exactly.

        They are piecewise linear in the radius, which is not that of the estimator here; nor is
        the estimator fitted.

        Parameters
        ----------
        X, y, sample_weight : array-likes
            As in `fit`.
        max_features : int or None, default=None
            Stop before more features than that are in use.
        max_joints : int or None, default=None
            Stop after that many joints.
        radius_max : float or None, default=None
            Stop at that radius.

        Returns
        -------
        LassoPath
            The path; its ``stopped`` says whether it was followed to the end.  A
            ``ConvergenceWarning`` says where a joint has a relative gap above `tol`.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from anynorm import ConstrainedLasso
        >>> X, y = load_diabetes(return_X_y=True)
        >>> path = ConstrainedLasso().path(X, y)
        >>> path.n_joints, path.n_nonzero
        (13, array([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  9,  9, 10]))
        >>> [int((path.coef_at(radius=r)[0] != 0).sum()) for r in (100.0, 500.0, 2000.0)]
        [2, 2, 8]
        """
        check_parameters(self)
        limits: dict[str, Any] = {
            "max_features": max_features,
            "max_joints": max_joints,
            "radius_max": radius_max,
        }
        check_values(limits)
        X, y, weights, names = self._checked(X, y, sample_weight)
        from anynorm.solvers.lasso.homotopy import follow_lasso

        design = design_of(X).centred(weights, bool(self.fit_intercept))
        record = follow_lasso(
            design,
            design.target(y)[0],
            deadline=deadline(self.time_limit),
            progress=progress_printer(type(self).__name__, self.verbose, unit="joint"),
            **limits,
        )
        path = LassoPath(record, design, y, names)
        warn_of_gaps([path], float(self.tol))
        return path

    def _checked(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, ...]:
        """X, y and the weights, checked, and the names of the features."""
        X, names = training_matrix(X, type(self).__name__)
        y = usable_targets(y, X.shape[0], type(self).__name__)
        for values, name in ((X, "X"), (y, "y")):
            check_squares(values, name)
        return X, y, usable_weights(sample_weight, X.shape[0]), names

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
