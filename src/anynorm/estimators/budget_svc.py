"""Support vector machines on a budget: the slacks count only as far as they are the largest."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from anynorm.estimators._fitting import Report, deadline, joint_certificate, run_all
from anynorm.estimators._kernel_model import (
    KernelClassifier,
    kernel_problems,
    solve_kernels,
    store_kernel,
    support_of,
    validate_kernel,
)
from anynorm.estimators._parameters import check_parameters, one_of
from anynorm.estimators._validation import Data
from anynorm.losses import Loss
from anynorm.norms import TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.solution import Solution

_NORMS: dict[str, Callable[[float], TopK | TopK2]] = {"l1": TopK, "l2": TopK2}


class BudgetSVC(KernelClassifier):
    r"""Kernel support vector classifier on a budget, solved to a certified relative gap.

    For two classes, with labels :math:`y_i = \pm 1`, it minimises

    .. math:: \tfrac12 \|f\|^2 + C \, N_B(\xi), \qquad m_i \ge 1 - \xi_i,\ \xi_i \ge 0

    over the functions :math:`f` of the kernel and the intercept :math:`b`, which is not penalised,
    where :math:`m_i = y_i (f(x_i) + b)` and :math:`N_B` is the sum of the B largest slacks
    (``slack="l1"``), or a norm close to the length of the B largest (``slack="l2"``).  The smaller
    the budget B, the fewer support vectors.  More classes are handled one against the rest.

    Parameters
    ----------
    budget : int or float
        The budget B: an int of at least 1 is a count, a float in (0, 1] a share of the rows' total
        weight.  A budget above the number of rows does not bind.
    C : float, default=1.0
        The price of the slacks; the larger, the closer the fit to the training data.
    slack : {"l1", "l2"}, default="l1"
        `anynorm.norms.TopK` or `anynorm.norms.TopK2`.
    strict : bool, default=False
        The budget alone does not bound the number of support vectors: rows that tie at the B-th
        largest slack may all be some.  True keeps those B of largest dual variables, and at least
        one of each class, and fits again to the rows kept.  This holds for each binary problem;
        with several classes ``support_`` is the union of their support vectors.
    kernel : {"rbf", "linear", "poly", "precomputed"}, Kernel or callable, default="rbf"
        ``exp(-gamma ||x - z||^2)``, ``x'z``, ``(gamma x'z + coef0)^degree``; "precomputed" takes
        the kernel matrix in the place of X; a `anynorm.kernels.Kernel` has its own parameters; a
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
        The number of threads that share the one-against-the-rest problems, and the rows in
        predictions.
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
        With ``strict=True`` it is that of the second fit, to the rows kept.
    certificate_full_ : Certificate
        The certificate of the problem with all rows (the same without ``strict=True``).
    n_support_full_ : ndarray of shape (K,)
        The number of support vectors of each class in the problem with all rows.
    n_iter_ : int
        The most iterations that a binary problem took.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (p,)
        The names of the features, where X was a frame with string column names.

    See Also
    --------
    SVC : Any norm of the slacks; this is ``slack=TopK(B)`` or ``slack=TopK2(B)``.
    sklearn.svm.NuSVC : The same solutions, rescaled, where the budget binds with ``slack="l1"``.

    Notes
    -----
    A row of weight 2 is the same as that row given twice, and one of weight 0 is the same as
    none; a class left with no weight is as if it were not there.
    The number of rows that ``strict=True`` keeps does not depend on their weights.

    The rows of largest dual variables are the hardest ones.  Where classes overlap, or C is small
    for the budget, these are mostly on the wrong side, and a fit to them alone may be a poor one:
    compare the scores with and without ``strict=True``, and raise C or the budget.

    References
    ----------
    O. Dekel, Y. Singer: Support vector machines on a budget, NIPS 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from anynorm import BudgetSVC
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> model = BudgetSVC(10, C=10.0, gamma=2.0, strict=True).fit(X, y)
    >>> bool(model.n_support_.sum() <= 10 < model.n_support_full_.sum())
    True
    >>> model.score(X, y) > 0.95
    True
    """

    def __init__(
        self,
        budget: float,
        C: float = 1.0,
        *,
        slack: str = "l1",
        strict: bool = False,
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
        self.budget = budget
        self.C = C
        self.slack = slack
        self.strict = strict
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n, p)
            The rows to learn from; the kernel matrix, of shape (n, n), for
            ``kernel="precomputed"``.
        y : array-like of shape (n,)
            Their class labels, of two classes or more.
        sample_weight : array-like of shape (n,), float or None, default=None
            The weights of the rows, at least 0; None is 1 for all.

        Returns
        -------
        BudgetSVC
            The fitted estimator.

        Raises
        ------
        ValueError
            Where a parameter, the kernel or the data cannot be used; the message says which and
            what to do.

        Examples
        --------
        >>> from anynorm import BudgetSVC
        >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"]
        >>> model = BudgetSVC(0.5, C=10.0).fit(X, y)
        >>> model.predict([[0.4], [2.6]]).tolist()
        ['low', 'high']
        """
        check_parameters(self, slack=one_of(_NORMS))
        end = deadline(self.time_limit)
        data, gram = validate_kernel(self, X, y, sample_weight)
        count = self._count(data)
        loss = Loss.from_slack(_NORMS[self.slack](count))
        from anynorm.solvers.kernel import solve_kernel  # Numba: for those who fit, not predict

        problems = kernel_problems(self, data, gram, loss)
        full = solve_kernels(self, data, problems, solve_kernel, end)
        more = {
            "certificate_full_": joint_certificate(full),
            "n_support_full_": support_of(data, full)[1],
        }
        if self.warm_start:
            more["_duals"] = [solution.dual for solution in full]
        solutions = self._pruned(problems, full, int(count), end) if self.strict else full
        return store_kernel(self, data, gram, solutions, more)

    def _count(self, data: Data) -> float:
        """The budget in units of a row of weight 1."""
        if not isinstance(self.budget, float | np.floating):
            return float(self.budget)
        total = data.X.shape[0] if data.weights is None else float(data.weights.sum())
        return float(self.budget) * total

    def _pruned(
        self, problems: Sequence[Problem], full: Sequence[Solution], count: int, end: float | None
    ) -> list[Solution]:
        """The solutions for the rows alone that the budget lets each problem keep."""
        from anynorm.solvers.kernel import solve_kernel

        def again(index: int, progress: Report | None) -> Solution:
            problem, solution = problems[index], full[index]
            kept = _kept(problem.y, solution.dual, count)
            if len(kept) == np.count_nonzero(solution.dual):
                return solution
            found = solve_kernel(
                problem.part(kept),
                tol=float(self.tol),
                max_iter=int(self.max_iter),
                deadline=end,
                cache_size=float(self.cache_size),
                start=solution.dual[kept],
                progress=progress,
            )
            dual = np.zeros(len(problem.y))
            dual[kept] = found.dual
            return replace(found, dual=dual, coef=dual, n_iter=solution.n_iter + found.n_iter)

        return run_all(len(full), again, n_jobs=self.n_jobs, report=None)


def _kept(y: np.ndarray, dual: np.ndarray, count: int) -> np.ndarray:
    """The rows of largest dual variables: `count`, but at least 2, and one of each class."""
    used = np.flatnonzero(dual)
    order = used[np.argsort(-np.abs(dual[used]), kind="stable")]
    kept = order[: max(count, 2)]
    others = order[y[order] != y[kept[0]]] if len(kept) else kept
    if len(others) and not np.isin(others, kept).any():
        kept = np.append(kept[:-1], others[0])
    return np.sort(kept)
