"""The Lasso with a bound on the 1-norm of the coefficients: a regressor, and its path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from anynorm.certificate import Certificate
from anynorm.estimators._fitting import deadline, joint_certificate, warn_if_not_converged
from anynorm.estimators._linear_model import linear_scores
from anynorm.estimators._parameters import check_parameters
from anynorm.estimators._validation import (
    usable_targets,
    usable_weights,
    validate_features,
    validate_matrix,
)
from anynorm.solution import Progress, Solution

_N_RADII = 50


@dataclass(frozen=True)
class LassoPath:
    """The solutions of a Lasso for several radii.

    Attributes
    ----------
    radii : ndarray of shape (k,)
        The bounds on the 1-norm, rising.
    coefs : sparse array of shape (k, p)
        The coefficients, a row for each radius.
    intercepts : ndarray of shape (k,)
        The intercepts.
    certificates : tuple of Certificate
        What each solution is certified for; ``primal`` is the sum of squares.
    """

    radii: np.ndarray
    coefs: Any
    intercepts: np.ndarray
    certificates: tuple[Certificate, ...]


class ConstrainedLasso(RegressorMixin, BaseEstimator):
    r"""Least squares with a bound on the 1-norm of the coefficients, certified.

    With row weights :math:`v_i` it minimises

    .. math:: \sum_i v_i (y_i - w^\top x_i - b)^2 \quad\text{subject to}\quad \|w\|_1 \le r

    over the coefficients w and the intercept b, which is not bounded.  It is the Lasso in its first
    form; ``sklearn.linear_model.Lasso`` with the penalty ``alpha_`` has the same solution.

    Parameters
    ----------
    radius : float, default=1.0
        The largest 1-norm r of the coefficients.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    tol : float, default=1e-6
        The relative duality gap to reach.
    max_iter : int, default=1000
        The most working sets of columns.
    time_limit : float or None, default=None
        The most seconds for the whole fit; what was reached by then is kept.
    verbose : int, default=0
        0 is silent, 1 prints a line for each working set, 2 adds the certificate.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
        The coefficients, most of them exactly zero.
    intercept_ : float
        The intercept.
    alpha_ : float
        The penalty at which scikit-learn's Lasso has these coefficients; 0 where the bound does not
        matter.
    certificate_ : Certificate
        The sum of squares, a lower bound on it, and the relative gap between them, computed apart
        from the solver.
    n_iter_ : int
        The working sets used.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (p,)
        The names of the features, where X was a frame with string column names.

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
    >>> model.certificate_.gap <= 1e-6
    True
    """

    coef_: np.ndarray
    intercept_: float

    def __init__(
        self,
        radius: float = 1.0,
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
        ball, names = self._ball(X, y, sample_weight)
        solution = self._solve(ball, float(self.radius), deadline(self.time_limit))
        return self._store(ball, solution, names)

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
        X = validate_features(self, X)
        return linear_scores(X, np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_))

    def path(self, X: Any, y: Any, radii: Any = None, sample_weight: Any = None) -> LassoPath:
        """Solve the problem for several radii, each solution starting the next.

        The estimator itself is not fitted.

        Parameters
        ----------
        X, y, sample_weight : array-likes
            As in `fit`.
        radii : array-like of positive numbers or None, default=None
            The radii; None is 50 of equal distance up to `radius`.

        Returns
        -------
        LassoPath
            The radii, coefficients, intercepts and certificates.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from anynorm import ConstrainedLasso
        >>> X, y = load_diabetes(return_X_y=True)
        >>> path = ConstrainedLasso().path(X, y, radii=[100.0, 500.0, 2000.0])
        >>> [row.nnz for row in path.coefs]
        [2, 2, 8]
        """
        check_parameters(self)
        radii = self._radii(radii)
        ball, _ = self._ball(X, y, sample_weight)
        end = deadline(self.time_limit)
        solutions = [self._solve(ball, radius, end) for radius in radii.tolist()]
        return self._collect(ball, radii, solutions)

    def _radii(self, radii: Any) -> np.ndarray:
        if radii is None:
            return float(self.radius) * np.arange(1, _N_RADII + 1) / _N_RADII
        try:
            radii = np.unique(np.asarray(radii, dtype=np.float64))
        except (TypeError, ValueError):
            radii = np.empty(0)
        if not (radii.size and radii[0] > 0 and np.isfinite(radii).all()):
            raise ValueError("radii must be a 1-D array of positive, finite numbers.")
        return radii

    def _ball(self, X: Any, y: Any, sample_weight: Any) -> tuple[_FittedBall, Any]:
        X, names = validate_matrix(self, X)
        y = usable_targets(self, y, X.shape[0])
        weights = usable_weights(sample_weight, X.shape[0])
        return _FittedBall(X, y, weights, bool(self.fit_intercept)), names

    def _solve(self, ball: _FittedBall, radius: float, end: float | None) -> Solution:
        return ball.ball.solve(
            radius,
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            deadline=end,
            progress=_print if self.verbose else None,
        )

    def _store(self, ball: _FittedBall, solution: Solution, names: Any) -> Self:
        coef, intercept = ball.model(solution)
        fitted = {
            "coef_": coef,
            "intercept_": intercept,
            "alpha_": ball.alpha(solution),
            "certificate_": solution.certificate,
            "n_iter_": solution.n_iter,
            "n_features_in_": len(coef),
        }
        if names is not None:
            fitted["feature_names_in_"] = names
        state = {k: v for k, v in vars(self).items() if not k.endswith("_")}
        self.__dict__ = state | fitted
        self._report([solution])
        return self

    def _collect(
        self, ball: _FittedBall, radii: np.ndarray, solutions: list[Solution]
    ) -> LassoPath:
        models = [ball.model(solution) for solution in solutions]
        self._report(solutions)
        return LassoPath(
            radii,
            sp.csr_array(np.array([coef for coef, _ in models])),
            np.array([intercept for _, intercept in models]),
            tuple(solution.certificate for solution in solutions),
        )

    def _report(self, solutions: list[Solution]) -> None:
        """Print the certificates where asked for; warn of the solution with the largest gap."""
        if self.verbose >= 2:
            for solution in solutions:
                print(f"{type(self).__name__}: {solution.certificate}", flush=True)
        worst = max(solutions, key=lambda solution: solution.certificate.gap)
        warn_if_not_converged(joint_certificate([worst]), worst.n_iter, self.max_iter)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class _FittedBall:
    """A `LassoBall` for a model with an intercept and weights."""

    def __init__(self, X: Any, y: np.ndarray, weights: np.ndarray | None, centre: bool) -> None:
        from anynorm.solvers.one_norm.lasso_ball import LassoBall
        from anynorm.solvers.one_norm.lasso_design import LassoDesign

        self.design = LassoDesign(X, weights, centre)
        self.target, self.mean = self.design.target(y)
        self.ball = LassoBall(self.design, self.target)

    def model(self, solution: Solution) -> tuple[np.ndarray, float]:
        """The coefficients and the intercept of a solution."""
        coef = solution.coef
        assert coef is not None
        means = self.design.means
        return coef, self.mean if means is None else self.mean - float(means @ coef)

    def alpha(self, solution: Solution) -> float:
        """The penalty per unit of weight, as in scikit-learn, of a solution."""
        coef = solution.coef
        assert coef is not None
        residual = self.target - self.design.combine(np.arange(len(coef)), coef)
        top = float(np.abs(self.design.adjoint(residual)).max(initial=0.0))
        return top / self.design.total if top > 1e-9 * self.ball.first_penalty else 0.0


def _print(state: Progress) -> None:
    print(
        f"ConstrainedLasso: working set {state.iteration}, primal {state.primal:.8g}, "
        f"dual {state.dual:.8g}, gap {state.gap:.2e}, {state.seconds:.2f} s",
        flush=True,
    )
