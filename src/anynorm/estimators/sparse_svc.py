"""Linear support vector classification with the 1-norm regulariser: few features, exact zeros."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from anynorm.estimators._chunked import solve_chunked_classes
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import solve_classes, store_linear
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._messages import classes_printer
from anynorm.estimators._probabilities import LogisticClassifier
from anynorm.estimators.checks.chunks import ChunkedLabelled
from anynorm.estimators.checks.labels import Labelled, usable_penalties
from anynorm.estimators.linear_svc import LinearSVC
from anynorm.losses import Loss


@documented_like(LinearSVC)
class SparseSVC(LogisticClassifier, LinearClassifier):
    r"""The 1-norm support vector machine, solved to a certified relative duality gap.

    For two classes, with labels :math:`y_i = \pm 1`, row weights :math:`v_i` and feature weights
    :math:`u_j`, it minimises

    .. math:: \sum_j u_j |w_j| + C \sum_i v_i \, \ell\bigl(y_i (x_i^\top w + b)\bigr)

    over the coefficients :math:`w` and the intercept :math:`b`, which is not penalised.  Most
    coefficients are exactly zero, the more the smaller C is.  More classes are handled one against
    the rest.

    Parameters
    ----------
    C : float, default=1.0
        The price of the loss; the larger, the closer the fit to the training data and the more
        features it uses.  On scaled data 1 leaves most features in use: `SparseSVCCV` chooses, and
        `sparse_svm_path` shows all solutions.
    loss : as in `LinearSVC`
    penalty_weights : array-like of shape (p,) or None, default=None
        The weights u of the features' penalties; None is 1 for all.  A feature of weight 0 is
        never penalised, one of weight infinity is left out.
    fit_intercept : as in `LinearSVC`
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised.  A number s gives liblinear's penalised intercept
        instead: a constant feature of value s whose weight is penalised like the others, which
        adds ``abs(b / s)`` to the objective.  Not used where ``fit_intercept=False``.
    class_weight, tol, max_iter, time_limit, warm_start, n_jobs : as in `LinearSVC`
    random_state : int, RandomState or None, default=None
        Seeds what a solver draws at random.  None is the same as 0: a fit is repeatable, and
        NumPy's global generator is neither used nor changed.
    verbose : as in `LinearSVC`

    Attributes
    ----------
    coef_ : ndarray of shape (1, p) or (K, p)
        The coefficients, in float64 for any input: one row for two classes, one per class
        otherwise.  Features that are not used have exact zeros.
    intercept_, classes_, certificate_, n_iter_, n_features_in_ : as in `LinearSVC`
    feature_names_in_ : as in `LinearSVC`

    See Also
    --------
    LinearSVC : The 2-norm regulariser.
    ReweightedSVC : Between the 2-norm and the 1-norm.
    KernelDictionary : Basis functions at training rows, for the non-linear 1-norm SVM.
    sklearn.svm.LinearSVC : Has ``penalty="l1"`` for the squared hinge loss alone.

    Notes
    -----
    A row of weight 2 is the same as that row given twice, and one of weight 0 is the same as
    none; a class left with no weight is as if it were not there.

    The 1-norm depends on the units of the features: bring them to one scale first, e.g. with
    `sklearn.preprocessing.StandardScaler`, unless their scales mean something.

    Several coefficients can be optimal (equal columns, for one); the certificate holds for those
    that are returned.  `sklearn.feature_selection.SelectFromModel` keeps the features that are
    used, as it does for all estimators with ``penalty == "l1"``.

    References
    ----------
    J. Zhu, S. Rosset, T. Hastie, R. Tibshirani: 1-norm support vector machines, NIPS 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm import SparseSVC
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = SparseSVC(C=0.1).fit(X, y)
    >>> print(f"{np.count_nonzero(model.coef_)} of 200 features")
    19 of 200 features
    >>> print(model.certificate_)
    optimal: primal 3.5428..., dual 3.5428..., relative gap ... (tol 1e-04)
    """

    penalty = "l1"
    """What tells scikit-learn's `SelectFromModel` that zeros are exact."""

    _takes_chunks = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str | Loss = "hinge",
        penalty_weights: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.C = C
        self.loss = loss
        self.penalty_weights = penalty_weights
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit_chunks(self, data: ChunkedLabelled, end: float | None) -> Self:
        penalties = usable_penalties(self.penalty_weights, data)
        if penalties is not None and np.any(penalties == 0):
            raise ValueError(
                "penalty_weights of 0 need all rows in one place; on a Dask collection give such "
                "columns a small penalty instead, e.g. 1e-3, or call X.compute()."
            )
        from anynorm.solvers.one_norm import solve_chunked_one_norm  # Numba: for those who fit

        solutions = solve_chunked_classes(
            self,
            data,
            solve_chunked_one_norm,
            end,
            regulariser="l1",
            penalty_weights=penalties,
        )
        return store_linear(self, data, solutions)

    def _fit_rows(self, data: Labelled, end: float | None) -> Self:
        penalties = usable_penalties(self.penalty_weights, data)
        from anynorm.solvers.one_norm import solve_one_norm  # Numba: for those who fit

        solutions = solve_classes(
            self,
            data,
            solve_one_norm,
            end,
            report=classes_printer(self, data),
            regulariser="l1",
            penalty_weights=penalties,
        )
        return store_linear(self, data, solutions)
