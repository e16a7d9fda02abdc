"""The least 1-norm SVM: equality constraints with the 1-norm of the slacks."""

from __future__ import annotations

from typing import Any

from anynorm.estimators._docs import documented_like
from anynorm.estimators._kernel_model import KernelClassifier
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.svc import SVC
from anynorm.losses import Loss, get_loss


@documented_like(SVC)
class LeastNormSVC(KernelClassifier):
    r"""Kernel classifier by least absolute deviations, solved to a certified relative gap.

    For two classes, with labels :math:`y_i = \pm 1` and row weights :math:`v_i`, it minimises

    .. math:: \tfrac12 \|f\|^2 + C \sum_i v_i \, |1 - y_i (f(x_i) + b)|

    over the functions :math:`f` of the kernel and the intercept :math:`b`, which is not penalised.
    As in `LeastSquaresSVC` every margin is to be 1, but rows far from it, as wrongly labelled
    ones, pull no harder than others.  More classes are handled one against the rest.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, class_weight, tol, max_iter, time_limit : as in `SVC`
    cache_size, warm_start, n_jobs, verbose : as in `SVC`

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_ : as in `SVC`
    certificate_, n_iter_, n_features_in_, feature_names_in_ : as in `SVC`

    See Also
    --------
    SVC : Any norm of the slacks; this is ``slack="l1", constraints="equality"``.
    LeastSquaresSVC : Squared slacks.
    sklearn.svm.SVR : With ``epsilon=0`` on targets of -1 and +1 it solves the same problem.

    Notes
    -----
    A row of weight 2 is the same as that row given twice, and one of weight 0 is the same as
    none; a class left with no weight is as if it were not there.

    References
    ----------
    "Least 1-norm SVMs: a new SVM variant between standard and LS-SVMs", ESANN 2010.

    Examples
    --------
    >>> from anynorm import LeastNormSVC
    >>> from anynorm.datasets import make_two_gaussians
    >>> X, y = make_two_gaussians(random_state=0)
    >>> model = LeastNormSVC(C=1.0, gamma=0.1).fit(X, y)
    >>> model.score(X, y) > 0.9, model.certificate_.gap <= 1e-4
    (True, True)
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: Any = "rbf",
        degree: float = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        class_weight: Any = None,
        tol: float = 1e-4,
        max_iter: int = 100_000_000,
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
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.cache_size = cache_size
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _loss(self, data: Labelled) -> Loss:
        return get_loss("absolute")
