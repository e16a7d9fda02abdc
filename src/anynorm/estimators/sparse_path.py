"""The exact path of the 1-norm SVM as a function of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from anynorm.design.limits import VERIFIED
from anynorm.design.threads import entry_point
from anynorm.estimators._fitting import Report, deadline
from anynorm.estimators._messages import progress_printer, warn
from anynorm.estimators.checks.labels import Labelled, labelled_rows, usable_penalties
from anynorm.estimators.checks.matrices import training_matrix
from anynorm.estimators.checks.parameters import check_values, intercept_kind
from anynorm.estimators.paths.lasso_path import LassoPath
from anynorm.estimators.paths.solution_path import PathInterrupted, SolutionPath
from anynorm.losses import get_loss
from anynorm.problem import Problem


@entry_point
def sparse_svm_path(
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    fit_intercept: bool = True,
    penalty_weights: Any = None,
    max_features: int | None = None,
    max_joints: int | None = None,
    s_max: float | None = None,
    time_limit: float | None = None,
    verbose: int = 0,
) -> SolutionPath:
    r"""Follow all solutions of the 1-norm SVM, from w = 0 to the end, exactly.

    For two classes with labels :math:`y_i = \pm 1`, row weights :math:`c_i` and penalty weights
    :math:`u_j`, the solutions of

    .. math:: \min_{w, b} \sum_i c_i \bigl(1 - y_i (x_i^\top w + b)\bigr)_+
              \quad\text{with}\quad \sum_j u_j |w_j| \le s

    for all :math:`s \ge 0` are piecewise linear in s, and equally the solutions of
    :math:`\sum_j u_j |w_j| + C \cdot \text{loss}` for all C.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n, p)
        The rows to learn from.
    y : array-like of shape (n,)
        Their labels, of two classes.
    sample_weight : array-like of shape (n,), float or None, default=None
        The weights of the rows, at least 0; None is 1 for all.
    fit_intercept : bool, default=True
        Whether to fit an intercept; it is not penalised.
    penalty_weights : array-like of shape (p,) or None, default=None
        The weights of the features in the 1-norm: 0 is never penalised, infinity leaves the
        feature out; None is 1 for all.
    max_features : int or None, default=None
        Stop before more features than that are in use.
    max_joints : int or None, default=None
        Stop after that many joints.
    s_max : float or None, default=None
        Stop at that bound, which is at least 0.
    time_limit : float or None, default=None
        Stop after that many seconds.
    verbose : int, default=0
        1 prints a line for each progress report.

    Returns
    -------
    SolutionPath
        The path; its ``stopped`` says whether it was followed to the end.  A
        ``ConvergenceWarning`` says where a joint has a relative gap above 1e-9.

    Raises
    ------
    ValueError
        Where an argument cannot be used; the message says which and what to do.
    PathInterrupted
        At Ctrl-C; its ``path`` is what was followed so far.

    See Also
    --------
    SparseSVC : One fit, any number of classes, four losses.
    SparseSVCCV : The path with s chosen by cross-validation.

    Examples
    --------
    >>> from anynorm import sparse_svm_path
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> path = sparse_svm_path(X, y)
    >>> path.stopped, path.n_joints == len(path.s)
    ('end', True)
    >>> int(sparse_svm_path(X, y, max_features=5).n_nonzero.max())
    5
    """
    limits = {"max_features": max_features, "max_joints": max_joints, "s_max": s_max}
    given = {"fit_intercept": fit_intercept, "time_limit": time_limit, "verbose": verbose}
    check_values(limits | given)
    end = deadline(time_limit)
    X, names = training_matrix(X, "sparse_svm_path")
    data = labelled_rows(X, y, sample_weight, caller="sparse_svm_path", names=names)
    if len(data.classes) > 2:
        raise ValueError(
            f"y has {len(data.classes)} classes; a path is for two. Use anynorm.SparseSVC or "
            "anynorm.SparseSVCCV, which take any number, or one class against the rest, e.g. "
            f"y == {data.classes.tolist()[0]!r}."
        )
    problem = path_problem(
        data,
        data.signs(0),
        fit_intercept=fit_intercept,
        penalty_weights=usable_penalties(penalty_weights, data),
    )
    progress = progress_printer("sparse_svm_path", verbose, unit="pivot")
    path = followed(
        problem, data.feature_names, data.classes, deadline=end, progress=progress, **limits
    )
    warn_of_gaps([path])
    return path


def path_problem(
    data: Labelled, signs: np.ndarray, *, fit_intercept: bool, penalty_weights: np.ndarray | None
) -> Problem:
    """The 1-norm problem with hinge loss of validated data and labels of -1.0 and +1.0."""
    return Problem(
        y=signs,
        C=1.0,
        loss=get_loss("hinge"),
        X=data.X,
        regulariser="l1",
        sample_weight=data.weights,
        intercept=intercept_kind(fit_intercept, None),
        penalty_weights=penalty_weights,
    )


def followed(
    problem: Problem,
    feature_names: np.ndarray | None,
    classes: np.ndarray | None,
    *,
    progress: Report | None = None,
    **limits: Any,
) -> SolutionPath:
    """The path of a problem; an interruption carries the part that was done."""
    from anynorm.solvers import one_norm  # Numba: for those who fit, not predict

    try:
        record = one_norm.follow_path(problem, progress=progress, **limits)
    except one_norm.RecordInterrupted as interrupted:
        done = SolutionPath(problem, interrupted.record, feature_names, classes)
        raise PathInterrupted(done) from interrupted
    return SolutionPath(problem, record, feature_names, classes)


class GrowingPath:
    """The path of a problem, followed further and further."""

    def __init__(
        self,
        problem: Problem,
        feature_names: np.ndarray | None,
        classes: np.ndarray | None,
        *,
        max_features: int | None,
    ) -> None:
        from anynorm.solvers import one_norm  # Numba: for those who fit, not predict

        self._path = one_norm.PathInProgress(problem, max_features=max_features)
        self._made_of = problem, feature_names, classes

    def follow(self, **limits: Any) -> SolutionPath:
        """Go on to the limits of `PathInProgress.follow`; the path from s = 0."""
        from anynorm.solvers import one_norm

        problem, *names = self._made_of
        try:
            record = self._path.follow(**limits)
        except one_norm.RecordInterrupted as interrupted:
            done = SolutionPath(problem, interrupted.record, *names)
            raise PathInterrupted(done) from interrupted
        return SolutionPath(problem, record, *names)


def warn_of_gaps(paths: Sequence[SolutionPath | LassoPath], tol: float = VERIFIED) -> None:
    """Warn where rounding ended paths early or left joints that are not verified."""
    stuck = sum(path.stopped == "stuck" for path in paths)
    gap = max(float(path.gaps.max()) for path in paths)
    if stuck or gap > tol:
        ended = f"rounding ended {stuck} of {len(paths)} paths before their end; " if stuck else ""
        warn(
            f"{ended}the largest relative gap at a joint is {gap:.1e} (at most {tol:g} is "
            "verified). Each certificate says how far a point is from optimal. Bring the features "
            "to one scale, e.g. with sklearn.preprocessing.StandardScaler."
        )
