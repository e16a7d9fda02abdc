"""Kernel support vector classification with any norm of the slacks."""

from __future__ import annotations

from typing import Any

from anynorm.estimators._kernel_model import KernelClassifier
from anynorm.estimators.checks.labels import Labelled
from anynorm.losses import Loss
from anynorm.losses.loss import Constraints
from anynorm.norms import Norm, SquaredL2


class SVC(KernelClassifier):
    r"""Kernel support vector classifier with any slack norm, solved to a certified relative gap.

    For two classes, with labels :math:`y_i = \pm 1`, it minimises

    .. math:: \tfrac12 \|f\|^2 + C \, N(\xi)

    over the functions :math:`f` of the kernel and the intercept :math:`b`, which is not penalised,
    where the slacks :math:`\xi` of the margins :math:`m_i = y_i (f(x_i) + b)` satisfy
    :math:`m_i \ge 1 - \xi_i,\ \xi_i \ge 0` (inequality) or :math:`m_i = 1 - \xi_i` (equality).
    More classes are handled one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        The price of the slacks; the larger, the closer the fit to the training data.
    slack : {"l1", "l2", "linf", "squared_l2"} or Norm, default="l1"
        The norm N of the slacks: their sum, their Euclidean length, their largest, or the sum of
        their squares, or a norm of `anynorm.norms`, such as ``TopK(10)``, or one of your own.
        Mind that "l2" is the length itself, not its square: its C has another scale than that of
        "squared_l2".
    constraints : {"inequality", "equality"}, default="inequality"
        Whether margins above 1 are free of cost.  The losses of `LinearSVC` are hinge ("l1",
        "inequality"), squared_hinge ("squared_l2", "inequality"), absolute ("l1", "equality") and
        squared ("squared_l2", "equality").
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable, default="rbf"
        ``exp(-gamma ||x - z||^2)``, ``x'z``, ``(gamma x'z + coef0)^degree``; "precomputed" takes
        the kernel matrix in the place of X; an `anynorm.kernels.Kernel` has its own parameters; a
        function of two sets of rows returns the matrix of all pairs.
    degree : float, default=3
        The degree of the "poly" kernel.
    gamma : {"scale", "auto"} or float, default="scale"
        The gamma of "rbf" and "poly".  "scale" is ``1 / (p * X.var())``, with rows counted as
        often as they weigh, "auto" is ``1 / p``.
    coef0 : float, default=0.0
        The constant of the "poly" kernel.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; labels that are left out have weight 1.  They multiply
        the weights of the rows with that label, in every one of the one-against-the-rest
        problems.  "balanced" gives all classes the same total weight, counting `sample_weight`.
    tol : float, default=1e-4
        The relative duality gap ``(primal - dual) / max(|primal|, |dual|)`` to reach.
    max_iter : int, default=100_000_000
        The most iterations per binary problem.
    time_limit : float or None, default=None
        The most seconds for the whole fit; what was reached by then is kept.
    cache_size : float, default=500
        The megabytes that rows of the kernel matrix may take, for all classes together.
    warm_start : bool, default=False
        Start from the previous fit's dual variables where there are some of the same shape, as
        when only `C` or the weights have changed.
    n_jobs : int or None, default=None
        The number of threads of a fit, which share the one-against-the-rest problems and then the
        rows of each, and of a prediction; None is 1 (or what a context of joblib says), -1 all
        cores.  The result does not depend on it.
    verbose : int, default=0
        0 is silent, 1 prints a line for each progress report (iteration, primal, dual, gap,
        seconds), 2 adds the data's description and the certificates.

    Attributes
    ----------
    support_ : ndarray of shape (n_SV,)
        The training rows with a dual variable that is not zero, in any of the binary problems,
        ordered by class.
    support_vectors_ : {ndarray, CSR} of shape (n_SV, p)
        These rows; empty for a precomputed kernel.
    n_support_ : ndarray of shape (K,)
        The number of support vectors of each class.
    dual_coef_ : ndarray of shape (1, n_SV) or (K, n_SV)
        What the support vectors' kernel values are multiplied by: the dual variables times the
        labels.  One row for two classes, one per class otherwise.
    intercept_ : ndarray of shape (1,) or (K,)
        The intercepts.  Where several are optimal, the middle of their interval.
    classes_ : ndarray of shape (K,)
        The class labels, sorted.
    certificate_ : Certificate
        The primal and dual values of the solution and the relative gap between them, computed
        apart from the solver with the kernel in float64; summed over the classes, with the parts
        in ``certificate_.per_class``.  Its ``status`` is "uncertified" where the kernel turned out
        not to be positive semidefinite.
    n_iter_ : int
        The most iterations that a binary problem took.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (p,)
        The names of the features, where X was a frame with string column names.

    See Also
    --------
    BudgetSVC : Norms of the largest slacks, or a limit on the number of support vectors.
    LeastNormSVC : Equality constraints with the 1-norm.
    LeastSquaresSVC : Equality constraints with squared slacks.
    LinearSVC : The linear kernel on many rows, by its coefficients.
    sklearn.svm.SVC : libsvm's solver of ``slack="l1"``; stops by other rules.

    Notes
    -----
    A row of weight 2 is the same as that row given twice, and one of weight 0 is the same as
    none; a class left with no weight is as if it were not there.
    A norm without a weighted form, as `Mahalanobis`, cannot have weights.

    X is not scaled here: a kernel compares distances, in which features of large numbers decide.
    Bring them to about the same scale first, e.g. with `sklearn.preprocessing.StandardScaler`.

    Probabilities come from scikit-learn's `CalibratedClassifierCV` around this estimator.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from anynorm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SVC(C=10.0, tol=1e-6).fit(X, y)
    >>> model.predict(X[::60])
    array([0, 1, 2])
    >>> model.certificate_.status
    <Status.OPTIMAL: 'optimal'>

    Any norm of the slacks, and its parameters in a search:

    >>> from sklearn.model_selection import GridSearchCV
    >>> from anynorm.norms import TopK
    >>> search = GridSearchCV(SVC(slack=TopK(5)), {"slack__k": [5, 20]}, cv=3).fit(X, y)
    >>> print(f"k = {search.best_params_['slack__k']}: {search.best_score_:.1%} right")
    k = 20: 98.0% right
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        slack: str | Norm | SquaredL2 = "l1",
        constraints: Constraints = "inequality",
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
        self.slack = slack
        self.constraints = constraints
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
        return Loss.from_slack(self.slack, self.constraints)
