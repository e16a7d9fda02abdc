"""The exact path of the 1-norm SVM as an object: every solution from w = 0 to the end.

    minimise over w, b    sum_i c_i (1 - y_i (x_i'w + b))_+    where   sum_j u_j |w_j| <= s

The solutions are piecewise linear in s: the path is known by its knots, the s at which the slope
of (w, b) or the multiplier lambda of the constraint changes, and by straight lines in between.
On the segment that leaves knot k all points solve the penalised problem with lambda_k = 1/C, and
the dual variables of knot k prove it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from anynorm.design import Matrix
from anynorm.design.limits import FLOOR, ROUNDING, VERIFIED
from anynorm.design.threads import entry_point
from anynorm.estimators.checks.places import (
    at_least_zero,
    feature_count,
    only_one,
    places_on_path,
)
from anynorm.estimators.paths.piecewise import Array, PiecewiseLine, frozen, scores_along
from anynorm.problem import Problem
from anynorm.problem.certificate import (
    Certificate,
    Values,
    certificate_of,
    certify,
)
from anynorm.problem.path_record import PathRecord
from anynorm.problem.solution import Solution

_ROUNDING = 1e-14  # of a row's cost: what the knots' arithmetic leaves of a zero


class PathInterrupted(KeyboardInterrupt):
    """Ctrl-C while a path was followed; what was done so far is not lost.

    Attributes
    ----------
    path : SolutionPath
        The path as far as it was followed.

    Examples
    --------
    >>> from anynorm import PathInterrupted, sparse_svm_path
    >>> def follow(X, y):
    ...     try:
    ...         return sparse_svm_path(X, y)
    ...     except PathInterrupted as interrupt:      # Ctrl-C
    ...         return interrupt.path
    >>> follow([[-1.0], [1.0]], [0, 1]).n_joints
    2
    """

    def __init__(self, path: SolutionPath) -> None:
        super().__init__(f"interrupted at s = {path.s[-1]:g} after {path.n_joints} joints")
        self.path = path


class SolutionPath:
    r"""The solutions of the 1-norm SVM for every bound s, exactly.

    Made by `sparse_svm_path`.  With row weights :math:`c_i` and penalty weights :math:`u_j` the
    solution of

    .. math:: \min_{w, b} \sum_i c_i \bigl(1 - y_i (x_i^\top w + b)\bigr)_+
              \quad\text{with}\quad \sum_j u_j |w_j| \le s

    is piecewise linear in s.  A joint is an s at which the slope of (w, b) changes, s = 0 or the
    end of the path.

    Attributes
    ----------
    s : ndarray of shape (n_joints,)
        The joints, strictly increasing from 0.
    penalties : ndarray of shape (n_joints,)
        The penalty ``lambda = 1/C`` on the segment that leaves each joint; the last is 0 where
        the path was followed to its end.
    coefs : CSR array of shape (n_joints, p)
        The coefficients at the joints.
    intercepts : ndarray of shape (n_joints,)
        The intercepts at the joints; where several are optimal, the middle of their interval.
        Between joints the intercept runs straight, through optimal ones.
    losses : ndarray of shape (n_joints,)
        The sum of the weighted hinge losses at the joints.
    n_nonzero : ndarray of shape (n_joints,)
        The number of features in use at the joints.
    gaps : ndarray of shape (n_joints,)
        The duality gaps that were verified when the path was followed, relative to the objective,
        or to 1e-10 of that at zero where it is smaller: a path may end at an optimum of 0.
    n_joints : int
        The number of joints.
    n_pivots : int
        The number of pivots that it took to follow the path.
    stopped : str
        "end", or what stopped the path before: "max_features", "max_joints", "s_max",
        "penalty_min", "time_limit", "interrupted", or "stuck" where rounding left no way on.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (p,)
        The names of the features, where X was a frame with string column names.
    classes_ : ndarray of shape (2,)
        The class labels; a positive decision value speaks for the second.

    See Also
    --------
    sparse_svm_path : Follows the path.
    SparseSVCCV : Chooses s by cross-validation.

    Notes
    -----
    The path refers to the data it was made from, without a copy, for `certificate_at`.  A pickle
    leaves the data out: it holds the coefficients alone, and a certificate is then the one that
    was recorded when the path was followed.

    Examples
    --------
    >>> from anynorm import sparse_svm_path
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> path = sparse_svm_path(X, y)
    >>> coef, intercept = path.coef_at(n_features=4)
    >>> int((coef != 0).sum())
    4
    >>> print(path.certificate_at(s=path.s[5]))
    optimal: primal 1.317..., dual 1.317..., relative gap ... (tol 1e-09)
    """

    def __init__(
        self,
        problem: Problem,
        record: PathRecord,
        feature_names: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> None:
        weights = problem.sample_weight
        total = float(problem.n_rows) if weights is None else float(weights.sum())
        self._set(record, problem.n_coefs, total, feature_names, classes)
        self._problem: Problem | None = problem

    @classmethod
    def from_record(
        cls,
        record: PathRecord,
        *,
        n_features: int,
        total_weight: float,
        feature_names: ArrayLike | None = None,
        classes: ArrayLike | None = None,
    ) -> SolutionPath:
        """Return a path without its data, as `detached` does, from what was recorded.

        Parameters
        ----------
        record : PathRecord
            The knots.
        n_features : int
            The number of features.
        total_weight : float
            The sum of the rows' weights.
        feature_names, classes : array-like or None, default=None
            The names of the features and the class labels, where they are known.
        """
        path = cls.__new__(cls)
        path._set(record, n_features, total_weight, feature_names, classes)
        path._problem = None
        return path

    def _set(
        self, record: PathRecord, p: int, total_weight: float, names: Any, classes: Any
    ) -> None:
        self._total_weight = total_weight
        self.n_features_in_ = p
        if names is not None:
            self.feature_names_in_ = np.asarray(names)
        if classes is not None:
            self.classes_ = np.asarray(classes)
        self._record = record
        joint = np.asarray(record.joint, dtype=bool)
        self.s = frozen(record.s[joint])
        self.penalties = frozen(record.penalties[joint])
        self.intercepts = frozen(record.intercepts[joint])
        self.losses = frozen(record.losses[joint])
        self.gaps = frozen(record.gaps[joint])
        self.n_nonzero = frozen(np.diff(record.indptr)[joint])
        self.n_joints = len(self.s)
        self.n_pivots = int(record.n_pivots)
        self.stopped = str(record.stopped)

    @cached_property
    def knots(self) -> Knots:
        """The path at every s at which its slope or its penalty changes."""
        return Knots(self._record, self.n_features_in_)

    @property
    def coefs(self) -> sp.csr_array:
        """The coefficients at the joints, sparse."""
        return self.knots.coefs[np.flatnonzero(self._record.joint)]

    def coef_at(
        self, *, s: float | None = None, C: float | None = None, n_features: int | None = None
    ) -> tuple[Array, float]:
        """Return the solution at one place of the path, given in one of three ways.

        Parameters
        ----------
        s : float
            The bound on the weighted 1-norm, at least 0.  Beyond the end of the path the
            solution is that of the end; of a path that stopped before its end nothing more is
            known, which is an error, here and for C.
        C : float
            The price of the loss in ``sum u_j |w_j| + C * loss``, above 0.  Where the solutions
            of a whole segment are optimal, the one with the smallest s.
        n_features : int
            The last point of the path that uses at most that many features.

        Returns
        -------
        coef : ndarray of shape (p,)
            The coefficients.
        intercept : float
            The intercept.

        Examples
        --------
        >>> from anynorm import sparse_svm_path
        >>> path = sparse_svm_path([[-1.0], [1.0]], [0, 1])
        >>> path.coef_at(s=0.5)
        (array([0.5]), 0.0)
        >>> path.coef_at(C=0.25), path.coef_at(C=10.0)
        ((array([0.]), 0.0), (array([1.]), 0.0))
        >>> path.coef_at(n_features=0)
        (array([0.]), 0.0)
        """
        return self.knots.solution(self._place(s, C, n_features))

    def _place(self, s: Any, C: Any = None, n_features: Any = None) -> float:
        """The place on the path that is asked for, in one of three ways."""
        only_one({"s": s, "C": C, "n_features": n_features})
        if C is not None:
            return self._s_of_price(C)
        if n_features is not None:
            return self._s_of_count(n_features)
        place = at_least_zero(s, "s")
        if place > self.s[-1] * (1 + ROUNDING):
            self._refuse_beyond(f"s = {place:g}", f"s = {self.s[-1]:.6g}")
        return place

    def _s_of_price(self, C: Any) -> float:
        """The smallest s that is optimal for C."""
        price = at_least_zero(C, "C")
        if price == 0:
            raise ValueError("C must be a number above 0; got 0.")
        knots = self.knots
        penalty = (1.0 + 4 * np.finfo(float).eps) / price  # so that 1 / (1 / lambda) is lambda
        place = int(np.sum(knots.penalties > penalty))
        if place == len(knots.s):
            self._refuse_beyond(f"C = {price:g}", f"C = {knots.price(place - 1):.6g}")
        return float(knots.s[min(place, len(knots.s) - 1)])

    def _refuse_beyond(self, asked: str, reached: str) -> None:
        """Raise where the path was not followed to its end: nothing is known of what comes then."""
        if self.stopped != "end":
            raise ValueError(
                f"{asked} is beyond {reached}, up to which this path was followed (it stopped at "
                f"{self.stopped}). Follow it further with sparse_svm_path, or ask for less."
            )

    def _s_of_count(self, n_features: Any) -> float:
        """The last s with at most that many features."""
        n_features = feature_count(n_features)
        counts = np.diff(self.knots.coefs.indptr)
        few = np.flatnonzero(counts <= n_features)
        if not len(few):
            raise ValueError(
                f"n_features must be at least {counts.min()}, the number of features without a "
                f"penalty; got {n_features}."
            )
        return float(self.knots.s[few[-1]])  # between knots there are as many or more

    @entry_point
    def decision_function(self, X: Any, s: float | ArrayLike | None = None) -> Array:
        """Score the rows of X along the path.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to score.
        s : float, array-like of shape (m,) or None, default=None
            One place of the path or many; None takes all the joints.  Beyond the end of the
            path the scores are those of the end.

        Returns
        -------
        ndarray of shape (n,) or (n, m)
            ``X @ coef + intercept`` in float64, with a column per place where there are many.

        Examples
        --------
        >>> from anynorm import sparse_svm_path
        >>> path = sparse_svm_path([[-1.0], [1.0]], [0, 1])
        >>> path.decision_function([[2.0], [3.0]], s=[0.25, 0.5])
        array([[0.5 , 1.  ],
               [0.75, 1.5 ]])
        """
        if s is not None:
            self._place(float(places_on_path(s, "s").max(initial=0.0)))
        return scores_along(self, self.knots, X, "s", self.s if s is None else s)

    @entry_point
    def certificate_at(
        self,
        s: float | None = None,
        *,
        C: float | None = None,
        n_features: int | None = None,
        tol: float = VERIFIED,
    ) -> Certificate:
        """Certify the solution at one place for the penalised problem that it solves.

        All points of a segment solve ``sum u_j |w_j| + C * loss`` with the C of that segment.

        Parameters
        ----------
        s, C, n_features : float, float, int
            The place, in one of the three ways of `coef_at`; beyond the end of the path it is the
            end, which is certified for the last segment.
        tol : float, default=1e-9
            The relative gap that counts as optimal.

        Returns
        -------
        Certificate
            Primal and dual value and the relative gap, computed anew from the data.

        Examples
        --------
        >>> from anynorm import sparse_svm_path
        >>> path = sparse_svm_path([[-1.0], [1.0]], [0, 1])
        >>> print(path.certificate_at(s=0.5))
        optimal: primal 1, dual 1, relative gap 0.0e+00 (tol 1e-09)
        """
        place = self._place(s, C, n_features)
        if self._problem is None:
            return self._recorded_certificate(place, tol)
        return self.solution_at(place, tol=tol).certificate

    def solution_at(self, s: float, *, tol: float = VERIFIED) -> Solution:
        """Return coefficients, dual variables and certificate at s; needs the data.

        Parameters
        ----------
        s : float
            The place, at least 0.
        tol : float, default=1e-9
            The relative gap that counts as optimal.

        Returns
        -------
        Solution
            Of the penalised problem that the solution at s solves.
        """
        place = self._place(s)
        if self._problem is None:
            raise ValueError(
                "this path was stored without its data, from which a solution is certified. "
                "Follow it again with sparse_svm_path."
            )
        segment = self.knots.segment(place)
        problem = replace(self._problem, C=self.knots.price(segment))
        coef, intercept = self.knots.solution(place)
        dual = self._dual(problem, segment)
        certificate = certify(problem, coef, intercept, dual, tol=tol)
        return Solution(dual, certificate, self.n_pivots, coef, intercept)

    def _dual(self, problem: Problem, knot: int) -> Array:
        """The dual variables of the segment that leaves a knot, from those of rows with margin 1.

        They are the same for all its points.  In its middle a row has margin 1 only where it has
        it all along, so that rounding takes no side.
        """
        record = self._record
        coef, intercept = self.knots.solution(float(record.s[knot : knot + 2].mean()))
        margins = problem.y * (problem.scores(coef) + intercept)
        weights = np.ones(len(margins)) if problem.sample_weight is None else problem.sample_weight
        dual = np.where(margins < 1.0, weights, 0.0)
        part = slice(record.dual_indptr[knot], record.dual_indptr[knot + 1])
        dual[record.dual_rows[part]] = record.dual_values[part]
        # what rounding left of a zero could upset the repair of free columns, which is relative
        return problem.C * np.where(dual > _ROUNDING * weights, dual, 0.0)

    def _recorded_certificate(self, s: float, tol: float) -> Certificate:
        """What was verified at the knot before s when the path was followed."""
        knot = self.knots.segment(s)
        C, gap = self.knots.price(knot), float(self._record.gaps[knot])
        primal = float(self._record.s[knot] + C * self._record.losses[knot])
        zero = C * self._total_weight
        dual = primal - gap * max(primal, FLOOR * zero)  # as gaps at joints are measured
        return certificate_of(Values(primal, dual, zero), tol)

    def plot(self, *, ax: Any = None, **line: Any) -> Any:
        """Draw the coefficients against s.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; None makes a new figure.
        **line : dict
            Further arguments of `PathDisplay.from_path`, e.g. ``log=True``, ``linewidth=2``.

        Returns
        -------
        PathDisplay
            The display, drawn.
        """
        from anynorm.plotting import PathDisplay

        return PathDisplay.from_path(self, ax=ax, **line)

    def training_rows(self) -> tuple[Matrix, NDArray[np.bool_]] | None:
        """Return the rows that the path was made from.

        Returns
        -------
        tuple of (matrix, ndarray of bool) or None
            The rows, and whether each is of the second class; None where the path was stored
            without its data.
        """
        if self._problem is None:
            return None
        return self._problem.X, np.asarray(self._problem.y) > 0

    def _repr_html_(self) -> str:
        from anynorm.app.report import path_html

        return path_html(self)

    def detached(self) -> SolutionPath:
        """Return the same path without a reference to its data, as a pickle stores it.

        Returns
        -------
        SolutionPath
            Its certificates are those that were recorded when the path was followed.
        """
        path = object.__new__(SolutionPath)
        path.__dict__.update(self.__getstate__())
        return path

    def __getstate__(self) -> dict[str, Any]:
        state = {name: value for name, value in vars(self).items() if name != "knots"}
        return state | {"_problem": None}

    def __repr__(self) -> str:
        return (
            f"SolutionPath(n_joints={self.n_joints}, s from 0 to {self.s[-1]:.6g}, penalty from "
            f"{self.penalties[0]:.6g} to {self.penalties[-1]:.6g}, up to {self.n_nonzero.max()} of "
            f"{self.n_features_in_} features, stopped={self.stopped!r})"
        )


class Knots(PiecewiseLine):
    """The path at its knots, and straight lines between them.

    Attributes
    ----------
    penalties : ndarray of shape (K,)
        The penalty of the segment that leaves each knot.
    losses, gaps : ndarray of shape (K,)
        The sums of the weighted hinge losses, and the relative gaps that were verified.
    """

    def __init__(self, record: PathRecord, p: int) -> None:
        shape = (len(record.s), p)
        coefs = sp.csr_array((record.data, record.indices, record.indptr), shape=shape)
        super().__init__(record.s, coefs, record.intercepts)
        self.penalties, self.losses, self.gaps = record.penalties, record.losses, record.gaps

    def segment(self, s: float) -> int:
        """The knot whose penalty and duals prove the solution at s to be optimal."""
        return int(self.place(np.array([s]))[0][0])

    def price(self, knot: int) -> float:
        """1 / lambda on the segment that leaves a knot; 1 where lambda is 0, as any would do."""
        penalty = float(self.penalties[knot])
        return 1.0 / penalty if penalty > 0 else 1.0


def used_features(paths: Sequence[SolutionPath], s: Array) -> sp.csr_array:
    """Which features have a coefficient in at least one of some paths: stored entries by s."""
    used = [path.knots.mixing(s) @ abs(path.knots.coefs) for path in paths]
    total = used[0]
    for more in used[1:]:
        total = total + more
    return total
