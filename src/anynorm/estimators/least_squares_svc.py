"""The least squares SVM: squared slacks of equality constraints, with leave-one-out scores."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from anynorm.estimators._fitting import deadline, printer
from anynorm.estimators._kernel_model import (
    KernelClassifier,
    kernel_problems,
    kernel_rows,
    store_kernel,
    validate_kernel,
)
from anynorm.estimators._linear_model import labels_of
from anynorm.estimators._parameters import check_parameters, one_of
from anynorm.estimators._validation import Data, usable_weights
from anynorm.losses import get_loss

_LEFT_OUT = ("loo_decision_function_", "loo_error_", "loo_score_")


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
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable, default="rbf"
        The kernel; "precomputed" takes the matrix of its values as X, a `anynorm.kernels.Kernel`
        has its own parameters, a callable returns the matrix for two sets of rows.
    degree : float, default=3
        The degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        The coefficient of "rbf" and "poly": ``1 / (p * X.var())``, ``1 / p``, or a number.
    coef0 : float, default=0.0
        The constant term of "poly".
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; they multiply the weights of the rows with that label.
    solver : {"auto", "cholesky", "cg"}, default="auto"
        How the system is solved: "cholesky" by a factor, in ``4 * n**2`` bytes whatever
        `cache_size` is, to the last digits; "cg" by preconditioned conjugate gradients, to `tol`,
        with as many kernel values kept as `cache_size` allows.  "auto" takes a factor for up to
        1500 rows or where leave-one-out scores are asked for; for more rows it begins with
        conjugate gradients, and changes to a factor where that is faster and there is memory.
    leave_one_out : bool, default=False
        Whether to compute the leave-one-out scores, for about the price of a second factor.
    tol : float, default=1e-4
        The relative duality gap to reach.
    max_iter : int, default=10_000
        The most iterations.
    time_limit : float or None, default=None
        The most seconds for the whole fit; what was reached by then is kept.
    cache_size : float, default=500
        The megabytes for kernel values.
    n_jobs : int or None, default=None
        The number of threads of a prediction.  (A fit uses the threads of the linear algebra
        library.)
    verbose : int, default=0
        0 is silent, 1 prints a line for each progress report, 2 adds the data's description and
        the certificates.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        The rows with dual variables other than zero, class after class: here nearly all rows.
    support_vectors_ : matrix of shape (n_SV, p)
        Those rows; empty for a precomputed kernel.
    n_support_ : ndarray of shape (K,)
        How many of them each class has.
    dual_coef_ : ndarray of shape (1 or K, n_SV)
        Their labels times their dual variables.
    intercept_ : ndarray of shape (1,) or (K,)
        The intercepts.
    classes_ : ndarray of shape (K,)
        The class labels, sorted.
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
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (p,)
        The names of the features, where X was a frame with string column names.

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
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p), or (n, n) for a precomputed kernel
            The rows to learn from.
        y : array-like of shape (n,)
            Their class labels, of two classes or more.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0; None is 1 for all.

        Returns
        -------
        LeastSquaresSVC
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a parameter or the data cannot be used; the message says which and what to do.

        Examples
        --------
        >>> from anynorm import LeastSquaresSVC
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
        >>> model = LeastSquaresSVC(kernel="linear").fit(X, y, sample_weight=[1, 2, 2, 1])
        >>> model.predict([[0.4], [2.6]]).tolist()
        ['low', 'high']
        """
        _check(self)
        end = deadline(self.time_limit)
        data, gram = validate_kernel(self, X, y, sample_weight)
        from anynorm.solvers.kernel.least_squares import fit_least_squares

        found = fit_least_squares(
            kernel_problems(self, data, gram, get_loss("squared")),
            kernel_rows(self, gram, 1),
            tol=float(self.tol),
            max_iter=int(self.max_iter),
            deadline=end,
            progress=printer(self, data),
            method=self.solver,  # type: ignore[arg-type]
            leave_out=bool(self.leave_one_out),
        )
        scores = found.left_out
        more = {} if scores is None else _left_out(data, scores, sample_weight)
        store_kernel(self, data, gram, found.solutions, more)
        for name in _LEFT_OUT:
            if name not in more and hasattr(self, name):  # of an earlier fit
                delattr(self, name)
        return self


def _check(estimator: LeastSquaresSVC) -> None:
    check_parameters(
        estimator,
        solver=one_of(("auto", "cholesky", "cg")),
        leave_one_out=(lambda value: isinstance(value, bool | np.bool_), "True or False"),
    )
    if estimator.leave_one_out and estimator.solver == "cg":
        raise ValueError(
            "leave_one_out=True needs a factor of the whole matrix, which solver='cg' does not "
            "make. Use solver='cholesky' or solver='auto'."
        )


def _left_out(data: Data, scores: np.ndarray, sample_weight: Any) -> dict[str, Any]:
    """The attributes that leave-one-out scores give."""
    if scores.shape[1] == 1:
        scores = scores.ravel()
    weights = usable_weights(sample_weight, len(scores))
    wrong = labels_of(scores, np.arange(len(data.classes))) != data.codes
    present = data.codes >= 0
    error = float(np.average(wrong[present], weights=None if weights is None else weights[present]))
    if np.isnan(scores).any():
        error = float("nan")
    return dict(zip(_LEFT_OUT, (scores, error, 1.0 - error), strict=True))
