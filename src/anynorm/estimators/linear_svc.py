"""Linear support vector classification with the 2-norm regulariser."""

from __future__ import annotations

from typing import Any, Self

from anynorm.estimators._chunked import solve_chunked_classes
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import solve_classes, store_linear
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._messages import classes_printer
from anynorm.estimators._probabilities import LogisticClassifier
from anynorm.estimators.checks.chunks import ChunkedLabelled
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.svc import SVC
from anynorm.losses import Loss


@documented_like(SVC)
class LinearSVC(LogisticClassifier, LinearClassifier):
    r"""Linear support vector classifier, solved to a certified relative duality gap.

    For two classes, with labels :math:`y_i = \pm 1` and row weights :math:`v_i`, it minimises

    .. math:: \tfrac12 \|w\|^2 + C \sum_i v_i \, \ell\bigl(y_i (x_i^\top w + b)\bigr)

    over the coefficients :math:`w` and the intercept :math:`b`, which is not penalised.  More
    classes are handled one against the rest.

    Parameters
    ----------
    C : float, default=1.0
        The price of the loss; the larger, the closer the fit to the training data.
    loss : {"hinge", "squared_hinge", "logistic", "squared", "absolute"} or Loss, default="hinge"
        The loss of a margin m: ``max(0, 1 - m)``, ``max(0, 1 - m)**2``, ``log(1 + exp(-m))``,
        ``(1 - m)**2`` or ``abs(1 - m)``; or one of your own, an `anynorm.losses.Loss`.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised.  A number s gives liblinear's penalised intercept
        instead: a constant feature of value s whose weight is penalised like all others, which
        adds ``(b / s)**2 / 2`` to the objective.  Not used where ``fit_intercept=False``.
    class_weight, tol : as in `SVC`
    max_iter : int, default=10_000
        The most iterations per binary problem.
    time_limit, warm_start : as in `SVC`
    n_jobs : int or None, default=None
        The number of threads, which share the one-against-the-rest problems and then the rows of
        each; None is 1 (or what a context of joblib says), -1 all cores.  The result does not
        depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the order in which a solver visits the rows.  None is the same as 0: a fit is
        repeatable, and NumPy's global generator is neither used nor changed.
    verbose : as in `SVC`

    Attributes
    ----------
    coef_ : ndarray of shape (1, p) or (K, p)
        The coefficients, in float64 for any input: one row for two classes, one per class
        otherwise.
    intercept_, classes_ : as in `SVC`
    certificate_ : Certificate
        The primal and dual values of ``coef_`` and ``intercept_`` and the relative gap between
        them, computed apart from the solver; summed over the classes, with the parts in
        ``certificate_.per_class``.
    n_iter_, n_features_in_, feature_names_in_ : as in `SVC`

    See Also
    --------
    sklearn.svm.LinearSVC : liblinear's solver; penalises the intercept, stops by other rules.

    Notes
    -----
    Beside scikit-learn's class of this name: C means the same, but the default loss here is the
    hinge, there its square (``loss="squared_hinge"`` gives that), and the intercept is not
    penalised.  X is not scaled here: bring features to about the same scale first, e.g. with
    `sklearn.preprocessing.StandardScaler` in a pipeline, or those of large numbers decide.

    A row of weight 2 is the same as that row given twice, and one of weight 0 is the same as
    none; a class left with no weight is as if it were not there.

    Dense (C- or Fortran-ordered) and sparse (CSR, CSC) input is used without a copy, in
    float32 or float64, memory maps included.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from anynorm import LinearSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVC(C=1.0, tol=1e-6).fit(X, y)
    >>> model.predict(X[::60])
    array([0, 1, 2])
    >>> model.coef_.shape
    (3, 4)
    >>> print(model.certificate_)
    optimal: primal 105.045..., dual 105.045..., relative gap ... (tol 1e-06)
    """

    _takes_chunks = True
    _runs_on_devices = True

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str | Loss = "hinge",
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
        from anynorm.solvers.linear.chunked import solve_chunked  # Numba: for those who fit

        return store_linear(self, data, solve_chunked_classes(self, data, solve_chunked, end))

    def _fit_rows(self, data: Labelled, end: float | None) -> Self:
        from anynorm.solvers.linear import solve_linear  # Numba: for those who fit, not predict

        solutions = solve_classes(self, data, solve_linear, end, report=classes_printer(self, data))
        return store_linear(self, data, solutions)
