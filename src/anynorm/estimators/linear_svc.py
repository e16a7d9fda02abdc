"""Linear support vector classification with the 2-norm regulariser."""

from __future__ import annotations

from typing import Any, Self

from anynorm.estimators._fitting import solve_classes, store_linear
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._messages import classes_printer
from anynorm.estimators.checks.labels import Labelled


class LinearSVC(LinearClassifier):
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
        ``(1 - m)**2`` or ``abs(1 - m)``; or one of your own, a `anynorm.losses.Loss`.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    intercept_scaling : float or None, default=None
        None leaves the intercept unpenalised.  A number s gives liblinear's penalised intercept
        instead: a constant feature of value s whose weight is penalised like all others, which
        adds ``(b / s)**2 / 2`` to the objective.  Not used where ``fit_intercept=False``.
    class_weight : dict, "balanced" or None, default=None
        Weights of the classes, by label; labels that are left out have weight 1.  They multiply
        the weights of the rows with that label, in every one of the one-against-the-rest
        problems.  "balanced" gives all classes the same total weight, counting `sample_weight`.
    tol : float, default=1e-4
        The relative duality gap ``(primal - dual) / max(|primal|, |dual|)`` to reach.
    max_iter : int, default=10_000
        The most iterations per binary problem.
    time_limit : float or None, default=None
        The most seconds for the whole fit; what was reached by then is kept.
    warm_start : bool, default=False
        Start from the previous fit's dual variables where there are some of the same shape, as
        when only `C` or the weights have changed.
    n_jobs : int or None, default=None
        The number of threads that share the one-against-the-rest problems.  The result does not
        depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the order in which a solver visits the rows.  None is the same as 0: a fit is
        repeatable, and NumPy's global generator is neither used nor changed.
    verbose : int, default=0
        0 is silent, 1 prints a line for each progress report (iteration, primal, dual, gap,
        seconds), 2 adds the data's description and the certificates.

    Attributes
    ----------
    coef_ : ndarray of shape (1, p) or (K, p)
        The coefficients, in float64 for any input: one row for two classes, one per class
        otherwise.
    intercept_ : ndarray of shape (1,) or (K,)
        The intercepts.  Where several are optimal, the middle of their interval.
    classes_ : ndarray of shape (K,)
        The class labels, sorted.
    certificate_ : Certificate
        The primal and dual values of ``coef_`` and ``intercept_`` and the relative gap between
        them, computed apart from the solver; summed over the classes, with the parts in
        ``certificate_.per_class``.
    n_iter_ : int
        The most iterations that a binary problem took.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (p,)
        The names of the features, where X was a frame with string column names.

    See Also
    --------
    sklearn.svm.LinearSVC : liblinear's solver; penalises the intercept, stops by other rules.

    Notes
    -----
    A row of weight 2 is the same as that row given twice, and one of weight 0 is the same as
    none; a class left with no weight is as if it were not there.

    Dense (C- or Fortran-ordered) and sparse (CSR, CSC) input is used where it lies, in float32
    or float64, memory maps included.

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
    >>> model.certificate_.gap <= 1e-6
    True
    >>> model.certificate_.status
    <Status.OPTIMAL: 'optimal'>
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
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

    def _fit_rows(self, data: Labelled, end: float | None) -> Self:
        from anynorm.solvers.linear import solve_linear  # Numba: for those who fit, not predict

        solutions = solve_classes(self, data, solve_linear, end, report=classes_printer(self, data))
        return store_linear(self, data, solutions)
