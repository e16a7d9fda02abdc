"""The least squares SVM: squared slacks of equality constraints, with leave-one-out scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import labels_of, limits, warm_starts
from anynorm.estimators._kernel_model import KernelClassifier, kernel_rows
from anynorm.estimators._messages import classes_printer
from anynorm.estimators.checks.labels import Labelled, usable_weights
from anynorm.estimators.checks.parameters import check_parameters, one_of
from anynorm.estimators.svc import SVC
from anynorm.losses import Loss, get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Solution


@documented_like(SVC)
class LeastSquaresSVC(KernelClassifier):
    r"""Least squares support vector classifier: a linear system, with exact leave-one-out scores.

    For two classes, with labels :math:`y_i = \pm 1` and row weights :math:`v_i`, it minimises

    .. math:: \tfrac12 \|f\|^2 + C \sum_i v_i \xi_i^2, \qquad y_i (f(x_i) + b) = 1 - \xi_i

    over the functions :math:`f` of the kernel and the intercept :math:`b`, which is not
    penalised.  More classes are handled one against the rest; they share one factorisation.

    Parameters
    ----------
    C : float, default=1.0
        The price of the squared slacks; the larger, the closer the fit to the training data.
        (Papers that write ``gamma / 2`` for it are met by halving their gamma.)
    kernel, degree, gamma, coef0, class_weight : as in `SVC`
    solver : {"auto", "cholesky", "cg"}, default="auto"
        How the system is solved: "cholesky" by a factor, in ``4 * n**2`` bytes whatever
        `cache_size` is, to the last digits; "cg" by preconditioned conjugate gradients, to `tol`,
        with as many kernel values kept as `cache_size` allows.  "auto" takes a factor for up to
        1500 rows or where leave-one-out scores are asked for; for more rows it begins with
        conjugate gradients, and changes to a factor where that is faster and there is memory.
    leave_one_out : bool, default=False
        Whether to compute the leave-one-out scores, for about the price of a second factor.
    tol : as in `SVC`
    max_iter : int, default=10_000
        The most iterations.
    time_limit : as in `SVC`
    cache_size : float, default=500
        The megabytes for kernel values.
    warm_start : bool, default=False
        Start from the previous fit's dual variables where there are some of the same shape, as
        when only `C` or the weights have changed.  Of use to conjugate gradients; a factor is as
        quick without.
    n_jobs, verbose : as in `SVC`

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        The rows with dual variables other than zero, class after class: here nearly all rows.
    support_vectors_, n_support_, dual_coef_ : as in `SVC`
    intercept_ : ndarray of shape (1,) or (K,)
        The intercepts.
    classes_ : as in `SVC`
    certificate_ : Certificate
        The primal and dual values and the relative gap between them, computed apart from the
        solver; summed over the classes, with the parts in ``certificate_.per_class``.
    loo_decision_function_ : ndarray of shape (n,) or (n, K)
        Where `leave_one_out` is set: the score of each training row by the model that is fitted
        without it (with the same gamma and class weights).
    loo_error_, loo_score_ : float
        The share of training rows, by their `sample_weight`, whose label those scores miss and
        meet.
    n_iter_ : int
        The iterations taken, 1 for a factor.
    n_features_in_, feature_names_in_ : as in `SVC`

    See Also
    --------
    anynorm.LinearSVC : ``loss="squared"`` for linear models of many rows.

    Notes
    -----
    With ``kernel="rbf"`` and dense X nothing but the lower half of the kernel matrix is ever
    evaluated or kept.  A row of weight 2 is the same as that row given twice, and leaving it out
    leaves both out.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from anynorm import LeastSquaresSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LeastSquaresSVC(C=10.0, leave_one_out=True).fit(X, y)
    >>> model.predict(X[::60])
    array([0, 1, 2])
    >>> round(model.loo_error_, 3)
    0.02
    >>> model.loo_decision_function_.shape
    (150, 3)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        class_weight: Any = None,
        solver: str = "auto",
        leave_one_out: bool = False,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        cache_size: float = 500,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.class_weight = class_weight
        self.solver = solver
        self.leave_one_out = leave_one_out
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check(self) -> None:
        check_parameters(self, solver=one_of(("auto", "cholesky", "cg")))
        if self.leave_one_out and self.solver == "cg":
            raise ValueError(
                "leave_one_out=True needs a factor of the whole matrix, which solver='cg' does not "
                "make. Use solver='cholesky' or solver='auto'."
            )

    def _loss(self, data: Labelled) -> Loss:
        return get_loss("squared")

    def _solved(
        self, problems: Sequence[Problem], data: Labelled, end: float | None, sample_weight: Any
    ) -> tuple[Sequence[Solution], Mapping[str, Any]]:
        from anynorm.solvers.kernel.least_squares import fit_least_squares

        found = fit_least_squares(
            problems,
            kernel_rows(self, problems[0].gram, 1),
            **limits(self, end),
            starts=warm_starts(self, data),
            progress=classes_printer(self, data),
            method=self.solver,  # type: ignore[arg-type]
            leave_out=bool(self.leave_one_out),
        )
        scores = found.left_out
        return found.solutions, {} if scores is None else _left_out(data, scores, sample_weight)


def _left_out(data: Labelled, scores: np.ndarray, sample_weight: Any) -> dict[str, Any]:
    """The attributes that leave-one-out scores give."""
    if scores.shape[1] == 1:
        scores = scores.ravel()
    weights = usable_weights(sample_weight, len(scores))
    wrong = labels_of(scores, np.arange(len(data.classes))) != data.codes
    present = data.codes >= 0
    error = float(np.average(wrong[present], weights=None if weights is None else weights[present]))
    if np.isnan(scores).any():
        error = float("nan")
    return {
        "loo_decision_function_": scores,
        "loo_error_": error,
        "loo_score_": 1.0 - error,
    }
