"""The Lasso in a ball with its radius chosen by cross-validation, exactly."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.model_selection import KFold, check_cv
from sklearn.utils.validation import _num_samples

from anynorm.design import Matrix
from anynorm.design.blocks import row_ranges
from anynorm.design.threads import entry_point
from anynorm.estimators._cross_validation import FOLDS, Folds, SlicedFolds, standard_error
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import keep
from anynorm.estimators._messages import warn_if_not_converged
from anynorm.estimators._prepared_folds import PreparedEstimator, PreparedRows
from anynorm.estimators.checks.labels import usable_targets, usable_weights
from anynorm.estimators.checks.parameters import check_parameters, one_of
from anynorm.estimators.constrained_lasso import ConstrainedLasso
from anynorm.estimators.paths.lasso_path import LassoPath


@documented_like(ConstrainedLasso)
class ConstrainedLassoCV(PreparedEstimator, ConstrainedLasso):
    r"""Least squares with the bound on the 1-norm chosen by cross-validation, without a grid.

    On every fold the exact path of `ConstrainedLasso` is followed.  Predictions are linear in the
    radius between its joints, so the mean squared error of the rows that were held out is a
    quadratic there, and its lowest point over all radii is known exactly.  The model is the point
    at that radius of the path of all rows.

    Parameters
    ----------
    preprocessor : transformer or None, default=None
        What prepares X, e.g. ``StandardScaler()``, or a pipeline of transformers.  A clone is
        fitted to the training rows of each fold, and one more to all rows, with y, and with
        `sample_weight` where its `fit` takes that.  ``coef_`` is then about the features that
        it makes.
    cv : int, splitter, iterable or None, default=5
        The folds, as in scikit-learn.  An integer, or None for 5, means folds of shuffled rows, the
        same in every fit.
    rule : {"best", "one_se"}, default="best"
        "best": the radius of the lowest error.  "one_se": the smallest radius at which a joint's
        error is within one standard error of it.
    max_features : int or None, default=None
        Follow the paths until more features than that would be in use.
    fit_intercept, tol : as in `ConstrainedLasso`
    max_iter : int, default=1000
        Not used by paths, which take as many joints as there are; kept for `path`.
    time_limit : float or None, default=None
        The most seconds for everything together, shared evenly by the folds and the model.
    verbose : int, default=0
        1 prints a line for each joint.

    Attributes
    ----------
    preprocessor_ : transformer
        The `preprocessor` as fitted to all rows; predictions begin with it, and its
        ``get_feature_names_out`` names the features of the model.  Only where there is one.
    radius_ : float
        The chosen bound.
    path_ : LassoPath
        The path of all rows.
    best_score_ : float
        The mean squared error at ``radius_``, over the folds, with a minus sign.
    cv_results_ : dict of ndarrays
        A row for each joint of a fold, and for the choice: ``param_radius``,
        ``split0_test_score``, ..., ``mean_test_score``, ``std_test_score``.
    coef_, intercept_, alpha_, certificate_ : as in `ConstrainedLasso`
    n_iter_ : int
        The joints of the path of all rows.
    n_features_in_, feature_names_in_ : as in `ConstrainedLasso`

    See Also
    --------
    sklearn.linear_model.LassoCV : A grid of penalties.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from anynorm import ConstrainedLassoCV
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = ConstrainedLassoCV().fit(X, y)
    >>> int((model.coef_ != 0).sum()), round(model.score(X, y), 2)
    (8, 0.51)
    """

    _rules: ClassVar[tuple[str, ...]] = ("best", "one_se")

    def __init__(
        self,
        *,
        preprocessor: Any = None,
        cv: Any = 5,
        rule: str = "best",
        max_features: int | None = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        time_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.preprocessor = preprocessor
        self.cv = cv
        self.rule = rule
        self.max_features = max_features
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.verbose = verbose

    @entry_point
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Choose the radius and fit the regressor.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from.
        y : array-like of shape (n,)
            Their targets.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0, in the fits and in the errors; None is 1 for all.

        Returns
        -------
        ConstrainedLassoCV
            The fitted estimator.
        """
        check_parameters(self, rule=one_of(self._rules))
        rows = None if self.preprocessor is None else self._prepared(X, y, sample_weight)
        X, y, weights, names = self._checked(X if rows is None else rows.matrix, y, sample_weight)
        cv = FOLDS if self.cv is None else self.cv
        if isinstance(cv, int | np.integer):
            cv = KFold(int(cv), shuffle=True, random_state=0)
        splits = list(check_cv(cv, y).split(np.zeros(len(y)), y))
        folds: Folds = SlicedFolds(X, splits) if rows is None else rows.folds(splits)
        follower = ConstrainedLasso(
            fit_intercept=self.fit_intercept,
            tol=self.tol,
            time_limit=None if self.time_limit is None else self.time_limit / (len(splits) + 1),
            verbose=self.verbose,
        )

        def followed(X: Matrix, part: Any) -> LassoPath:
            given = None if weights is None else weights[part]
            return follower.path(X, y[part], given, max_features=self.max_features)

        curve = _ErrorCurve.of(
            [followed(folds.train(k), train) for k, (train, _) in enumerate(splits)],
            [(folds.test(k), y[test], None if weights is None else weights[test])
             for k, (_, test) in enumerate(splits)],
        )  # fmt: skip
        radius = curve.choose(self.rule)
        path = followed(X, slice(None))
        radius = min(radius, float(path.radii[-1]))
        coef, intercept = path.coef_at(radius=radius)
        certificate = path.certificate_at(radius=radius, tol=float(self.tol))
        fitted = {
            "coef_": coef,
            "intercept_": intercept,
            "radius_": radius,
            "alpha_": float(np.interp(radius, path.radii, path.alphas)),
            "path_": path,
            "best_score_": -float(curve.at(radius).mean()),
            "cv_results_": curve.results(radius),
            "certificate_": certificate,
            "n_iter_": path.n_joints,
            "n_features_in_": len(coef),
        }
        if rows is not None:
            fitted |= rows.attributes
            names = fitted.pop("feature_names_in_")
        keep(self, fitted, names)
        warn_if_not_converged(certificate, path.n_joints, np.inf, may_vanish=True)
        return self

    def _prepared(self, X: Any, y: Any, sample_weight: Any) -> PreparedRows:
        """All rows, with what the preprocessor makes of them."""
        n = _num_samples(X)
        y = usable_targets(y, n, type(self).__name__)
        return PreparedRows.of(self, X, y, usable_weights(sample_weight, n))


class _ErrorCurve:
    """Mean squared errors of the folds at radii, and quadratics between them.

    With residuals a and b at neighbouring radii those at a share t of the way are (1 - t) a + t b,
    and the mean square (1 - t)^2 aa + 2 t (1 - t) ab + t^2 bb.
    """

    def __init__(self, radii: np.ndarray, squares: np.ndarray, products: np.ndarray) -> None:
        self.radii, self.squares, self.products = radii, squares, products

    @classmethod
    def of(cls, paths: list[LassoPath], held_out: list[tuple[Any, Any, Any]]) -> _ErrorCurve:
        """Of the paths of the folds, and the rows that each held out with targets and weights."""
        radii = np.unique(np.concatenate([path.radii for path in paths]))
        squares = np.zeros((len(radii), len(paths)))
        products = np.zeros((len(radii) - 1, len(paths)))
        for fold, (path, (X, y, weights)) in enumerate(zip(paths, held_out, strict=True)):
            weights = np.ones(len(y)) if weights is None else weights
            share = weights / weights.sum() if weights.sum() > 0 else weights
            for part in row_ranges(len(y), len(radii)):
                residuals = y[part, None] - path.predict(X[part], radii)
                squares[:, fold] += share[part] @ residuals**2
                products[:, fold] += share[part] @ (residuals[:, :-1] * residuals[:, 1:])
        return cls(radii, squares, products)

    def at(self, radius: float) -> np.ndarray:
        """The errors of the folds at a radius."""
        if len(self.radii) == 1 or radius >= self.radii[-1]:
            return self.squares[-1]
        k = int(np.searchsorted(self.radii, radius, side="right")) - 1
        t = (radius - self.radii[k]) / (self.radii[k + 1] - self.radii[k])
        between = 2 * t * (1 - t) * self.products[k]
        return (1 - t) ** 2 * self.squares[k] + between + t**2 * self.squares[k + 1]

    def choose(self, rule: str) -> float:
        """The radius of the lowest mean error, or the smallest that is nearly as good."""
        mean, products = self.squares.mean(axis=1), self.products.mean(axis=1)
        bend = mean[:-1] - 2 * products + mean[1:]
        t = np.clip((mean[:-1] - products) / np.where(bend > 0, bend, np.inf), 0.0, 1.0)
        inside = (1 - t) ** 2 * mean[:-1] + 2 * t * (1 - t) * products + t**2 * mean[1:]
        places = np.concatenate([self.radii, self.radii[:-1] + t * np.diff(self.radii)])
        best = float(places[np.concatenate([mean, inside]).argmin()])
        if rule == "best":
            return best
        found = self.at(best)
        return float(self.radii[mean <= found.mean() + standard_error(found)].min(initial=best))

    def results(self, radius: float) -> dict[str, np.ndarray]:
        """The table of the errors at all joints and at the choice."""
        radii = np.unique(np.append(self.radii, radius))
        scores = -np.array([self.at(each) for each in radii])
        columns = {f"split{k}_test_score": column for k, column in enumerate(scores.T)}
        return {
            "param_radius": radii,
            **columns,
            "mean_test_score": scores.mean(axis=1),
            "std_test_score": scores.std(axis=1),
        }
