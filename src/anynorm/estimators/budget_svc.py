"""Support vector machines on a budget: the slacks count only as far as they are the largest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import Report, limits, run_all
from anynorm.estimators._kernel_model import KernelClassifier, solve_kernels, support_of
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.checks.parameters import check_parameters, one_of
from anynorm.estimators.svc import SVC
from anynorm.losses import Loss
from anynorm.norms import TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.certificate import joint_certificate
from anynorm.problem.solution import Solution

_NORMS: dict[str, Callable[[float], TopK | TopK2]] = {"l1": TopK, "l2": TopK2}


@documented_like(SVC)
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
    C : as in `SVC`
    slack : {"l1", "l2"}, default="l1"
        `anynorm.norms.TopK` or `anynorm.norms.TopK2`.
    strict : bool, default=False
        The budget alone does not bound the number of support vectors: rows that tie at the B-th
        largest slack may all be some.  True keeps those B of largest dual variables, and at least
        one of each class, and fits again to the rows kept.  This holds for each binary problem;
        with several classes ``support_`` is the union of their support vectors.
    kernel, degree, gamma, coef0, class_weight, tol, max_iter, time_limit, cache_size : as in `SVC`
    warm_start, n_jobs, verbose : as in `SVC`

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_ : as in `SVC`
    certificate_ : as in `SVC`
        With ``strict=True`` it is that of the second fit, to the rows kept.
    certificate_full_ : Certificate
        The certificate of the problem with all rows (the same without ``strict=True``).
    n_support_full_ : ndarray of shape (K,)
        The number of support vectors of each class in the problem with all rows.
    n_iter_, n_features_in_, feature_names_in_ : as in `SVC`

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

    def _check(self) -> None:
        check_parameters(self, slack=one_of(_NORMS))

    def _loss(self, data: Labelled) -> Loss:
        return Loss.from_slack(_NORMS[self.slack](self._count(data)))

    def _solved(
        self, problems: Sequence[Problem], data: Labelled, end: float | None, sample_weight: Any
    ) -> tuple[Sequence[Solution], Mapping[str, Any]]:
        full = solve_kernels(self, data, problems, end)
        more = {
            "certificate_full_": joint_certificate([solution.certificate for solution in full]),
            "n_support_full_": support_of(data, full)[1],
        }
        if self.warm_start:
            more["_duals"] = [solution.dual for solution in full]
        count = int(self._count(data))
        return self._pruned(problems, full, count, end) if self.strict else full, more

    def _count(self, data: Labelled) -> float:
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
        from anynorm.solvers.linear import solve_linear

        def again(index: int, progress: Report | None) -> Solution:
            problem, solution = problems[index], full[index]
            kept = _kept(problem.y, solution.dual, count)
            if len(kept) == np.count_nonzero(solution.dual):
                return solution
            found = solve_kernel(
                problem.part(kept),
                **limits(self, end),
                cache_size=float(self.cache_size),
                start=solution.dual[kept],
                progress=progress,
                solve_features=solve_linear,
            )
            dual = np.zeros(len(problem.y))
            dual[kept] = found.dual
            return replace(found, dual=dual, coef=dual, n_iter=solution.n_iter + found.n_iter)

        return run_all(len(full), again, report=None)


def _kept(y: np.ndarray, dual: np.ndarray, count: int) -> np.ndarray:
    """The rows of largest dual variables: `count`, but at least 2, and one of each class."""
    used = np.flatnonzero(dual)
    order = used[np.argsort(-np.abs(dual[used]), kind="stable")]
    kept = order[: max(count, 2)]
    others = order[y[order] != y[kept[0]]] if len(kept) else kept
    if len(others) and not np.isin(others, kept).any():
        kept = np.append(kept[:-1], others[0])
    return np.sort(kept)
