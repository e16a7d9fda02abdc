"""The exact path of the Lasso as an object: every solution from w = 0 to least squares.

    minimise over w, b    sum_i v_i (y_i - x_i'w - b)^2    where   ||w||_1 <= r

The solutions are piecewise linear in r, and so is the penalty that belongs to each of them.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from anynorm.design.threads import entry_point
from anynorm.estimators._docs import documented_like
from anynorm.estimators.checks.places import at_least_zero, feature_count, only_one
from anynorm.estimators.paths.piecewise import Array, PiecewiseLine, frozen, scores_along
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.problem import LassoProblem
from anynorm.problem.certificate import Certificate, certify

if TYPE_CHECKING:
    from anynorm.design.views import CentredDesign
    from anynorm.solvers.lasso.homotopy import LassoRecord


@documented_like(SolutionPath)
class LassoPath:
    r"""The solutions of the Lasso for every radius, exactly.

    Made by `ConstrainedLasso.path`.  With row weights :math:`v_i` the solution of

    .. math:: \min_{w, b} \sum_i v_i (y_i - w^\top x_i - b)^2
              \quad\text{with}\quad \|w\|_1 \le r

    is piecewise linear in the radius r.  A joint is a radius at which its slope changes, 0, or the
    end of the path.

    Attributes
    ----------
    radii : ndarray of shape (n_joints,)
        The joints, strictly increasing from 0.
    alphas : ndarray of shape (n_joints,)
        The penalties at the joints, in the scale of ``sklearn.linear_model.Lasso``: falling, to 0
        at the end of the path, and linear in between.
    coefs : CSR array of shape (n_joints, p)
        The coefficients at the joints.
    intercepts : ndarray of shape (n_joints,)
        The intercepts at the joints.
    certificates : tuple of Certificate
        What each joint was certified for when the path was followed; ``primal`` is the sum of
        squares.
    gaps : ndarray of shape (n_joints,)
        Their duality gaps, relative to the objective, or to 1e-10 of that at zero where it is
        smaller: the path ends at an optimum of 0.
    n_nonzero, n_joints : as in `SolutionPath`
    stopped : str
        "end", or what stopped the path before: "max_features", "max_joints", "radius_max",
        "time_limit", or "stuck" where rounding left no way on.
    n_features_in_, feature_names_in_ : as in `SolutionPath`

    Notes
    -----
    The path refers to the data it was made from, without a copy, for `certificate_at`.  A pickle
    leaves the data out.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from anynorm import ConstrainedLasso
    >>> X, y = load_diabetes(return_X_y=True)
    >>> path = ConstrainedLasso().path(X, y)
    >>> path
    LassoPath(n_joints=13, radius from 0 to 3460, up to 10 of 10 features, stopped='end')
    >>> coef, intercept = path.coef_at(radius=500.0)
    >>> coef.nonzero()[0], round(intercept, 3)
    (array([2, 8]), 152.133)
    >>> print(path.certificate_at(radius=500.0))
    optimal: primal 1867991.415, dual 1867991.415, relative gap ... (tol 1e-09)
    """

    def __init__(
        self,
        record: LassoRecord,
        design: CentredDesign,
        y: Array,
        feature_names: ArrayLike | None = None,
    ) -> None:
        self._design: CentredDesign | None = design
        self._target, mean = design.target(y)
        means = design.means
        self.radii = frozen(record.radii)
        self.alphas = frozen(record.penalties / design.total)
        self.coefs = record.coefs
        shift = 0.0 if means is None else np.asarray(self.coefs @ means)
        self.intercepts = frozen(np.full(len(self.radii), mean) - shift)
        self.certificates = record.certificates
        self.gaps = frozen(np.array([known.gap_at_scale for known in self.certificates]))
        self.n_nonzero = frozen(np.diff(self.coefs.indptr))
        self.n_joints = len(self.radii)
        self.stopped = record.stopped
        self.n_features_in_ = design.shape[1]
        if feature_names is not None:
            self.feature_names_in_ = np.asarray(feature_names)

    @cached_property
    def _knots(self) -> PiecewiseLine:
        return PiecewiseLine(self.radii, self.coefs, self.intercepts)

    def coef_at(
        self,
        *,
        radius: float | None = None,
        alpha: float | None = None,
        n_features: int | None = None,
    ) -> tuple[Array, float]:
        """Return the solution at one place of the path, given in one of three ways.

        Beyond the end of the path it is that of the end.

        Parameters
        ----------
        radius : float
            The bound on the 1-norm, at least 0.
        alpha : float
            The penalty in the scale of ``sklearn.linear_model.Lasso``, at least 0.
        n_features : int
            The last joint of the path up to which at most that many features are in use.

        Returns
        -------
        coef : ndarray of shape (p,)
            The coefficients.
        intercept : float
            The intercept.

        Examples
        --------
        >>> from anynorm import ConstrainedLasso
        >>> path = ConstrainedLasso().path([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
        >>> path.coef_at(radius=0.5), path.coef_at(n_features=0)
        ((array([0.5]), 1.5), (array([0.]), 2.0))
        >>> path.coef_at(alpha=0.0)
        (array([1.]), 1.0)
        """
        only_one({"radius": radius, "alpha": alpha, "n_features": n_features})
        if alpha is not None:
            penalty = at_least_zero(alpha, "alpha")
            radius = float(np.interp(-penalty, -self.alphas, self.radii))
        elif n_features is not None:
            radius = self._radius_of_count(n_features)
        return self._knots.solution(at_least_zero(radius, "radius"))

    def _radius_of_count(self, n_features: Any) -> float:
        """The last joint before which no more features than that are in use."""
        n_features = feature_count(n_features)
        used = (abs(self.coefs[:-1]) + abs(self.coefs[1:])).tocsr()  # on the segments
        more = np.flatnonzero(np.diff(used.indptr) > n_features)
        return float(self.radii[more[0] if len(more) else -1])

    @entry_point
    def predict(self, X: Any, radius: float | ArrayLike | None = None) -> Array:
        """Predict the targets of the rows of X along the path.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows.
        radius : float, array-like of shape (m,) or None, default=None
            One place of the path or many; None takes all the joints.

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            ``X @ coef + intercept``, with a column per place where there are many.

        Examples
        --------
        >>> from anynorm import ConstrainedLasso
        >>> path = ConstrainedLasso().path([[0.0], [1.0], [2.0]], [1.0, 2.0, 3.0])
        >>> path.predict([[4.0]], radius=[0.0, 0.5, 1.0])
        array([[2. , 3.5, 5. ]])
        """
        places = self.radii if radius is None else radius
        return scores_along(self, self._knots, X, "radius", places)

    @entry_point
    def certificate_at(self, radius: float, *, tol: float = 1e-9) -> Certificate:
        """Certify the solution at a radius; the data are needed for it.

        Parameters
        ----------
        radius : float
            The place, at least 0.  Beyond the end of the path the solution of the end is certified
            for this radius, which says whether there is a better one.
        tol : float, default=1e-9
            The relative gap that counts as optimal.

        Returns
        -------
        Certificate
            Sum of squares, lower bound and relative gap, computed anew from the data.
        """
        place = at_least_zero(radius, "radius")
        if self._design is None:
            raise ValueError(
                "this path was stored without its data, from which a solution is certified. "
                "Follow it again with ConstrainedLasso.path."
            )
        coef, _ = self._knots.solution(place)
        used = np.flatnonzero(coef)
        residual = self._target - self._design.matvec(coef[used], columns=used)
        problem = LassoProblem(self._design, self._target, place)
        return certify(problem, coef, residual, tol=tol)

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "_knots"}
        return state | {"_design": None, "_target": None}

    def __repr__(self) -> str:
        return (
            f"LassoPath(n_joints={self.n_joints}, radius from 0 to {self.radii[-1]:.4g}, up to "
            f"{self.n_nonzero.max()} of {self.n_features_in_} features, stopped={self.stopped!r})"
        )
