"""Support vector machines on a budget: of influence, or of the number of support vectors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from anynorm.estimators._chunked import row_terms
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import Report, bound_to, limits, run_all, warm_starts
from anynorm.estimators._kernel_model import (
    KernelClassifier,
    coef_of,
    given_kernel,
    kernel_problems,
    solve_kernels,
    store_kernel,
    support_of,
    validate_kernel,
)
from anynorm.estimators._messages import classes_printer, warn_of_a_hasty_choice
from anynorm.estimators.checks.chunks import ChunkedLabelled, chunked, lives_apart
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.checks.parameters import Rule, check_parameters, one_of, seed
from anynorm.estimators.svc import SVC
from anynorm.kernels import takes_matrix
from anynorm.kernels.landmarks import Landmarks
from anynorm.losses import Loss
from anynorm.norms import Norm, SquaredL2, TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.certificate import joint_certificate
from anynorm.problem.chunked import ChunkedProblem
from anynorm.problem.solution import Solution

if TYPE_CHECKING:
    from anynorm.solvers.kernel.strict_budget import Strict

_NORMS: dict[str, Callable[[float], TopK | TopK2]] = {"l1": TopK, "l2": TopK2}
_LARGEST_SLACKS: Rule = (
    one_of(_NORMS)[0],
    f"{one_of(_NORMS)[1]}: the norms that have a budget (with strict=True any slack of SVC)",
)


@documented_like(SVC)
class BudgetSVC(KernelClassifier):
    r"""Kernel support vector classifier on a budget, solved to a certified relative gap.

    For two classes, with labels :math:`y_i = \pm 1`, it minimises

    .. math:: \tfrac12 \|f\|^2 + C \, N_B(\xi), \qquad m_i \ge 1 - \xi_i,\ \xi_i \ge 0

    over the functions :math:`f` of the kernel and the intercept :math:`b`, which is not penalised,
    where :math:`m_i = y_i (f(x_i) + b)` and :math:`N_B` is the sum of the B largest slacks
    (``slack="l1"``), or a norm close to the length of the B largest (``slack="l2"``).  This bounds
    the *influence* of rows, their dual variables together, and not the number of support vectors.

    With ``strict=True`` the budget bounds that number: it minimises

    .. math:: \tfrac12 \beta^\top K_{JJ} \beta + C \, N(\xi)

    over sets J of at most B training rows, the functions
    :math:`f = \sum_{j \in J} \beta_j k(x_j, \cdot)` in their span, and b, with the slacks
    :math:`\xi` of *all* rows and the norm N that `slack` names, as in `SVC`.  For the rows chosen
    the optimum is certified; the choice itself is a good one, not always the best, and
    ``certificate_full_`` says what the budget costs at most.

    More classes are handled one against the rest.

    Parameters
    ----------
    budget : int or float
        The budget B: an int of at least 1 is a count, a float in (0, 1] a share of the rows' total
        weight.  Mind that ``budget=1`` is a single row, and ``budget=1.0`` all of them, which does
        not bind, as does no budget above the number of rows.
    C : as in `SVC`
    slack : {"l1", "l2"}, or with ``strict=True`` any slack of `SVC`, default="l1"
        `anynorm.norms.TopK` or `anynorm.norms.TopK2` of the budget.  With ``strict=True`` the norm
        of all slacks, as in `SVC`: "l1" is their sum, and ``TopK(B)`` limits influence as well.  It
        needs a weighted form there, which `Mahalanobis` has not.
    strict : bool, default=False
        Whether the budget is the largest number of support vectors.
    shared : bool, default=True
        With ``strict=True`` and several classes, whether the support vectors are the same for all
        of them, at most B.  Otherwise each class has its own, at most B, and ``support_`` has those
        of all.
    kernel, degree, gamma, coef0, class_weight, tol, max_iter, time_limit : as in `SVC`
    cache_size : float, default=500
        The megabytes that rows of the kernel matrix may take, and with ``strict=True`` the kernel
        values of all rows with the support vectors; beyond, these are computed again for each use.
    warm_start : bool, default=False
        As in `SVC`; with ``strict=True`` the support vectors of the previous fit are among those
        that are compared.
    random_state : int, RandomState or None, default=None
        Seeds the choice of the support vectors with ``strict=True``.  None is the same as 0: a fit
        is repeatable.
    n_jobs, verbose : as in `SVC`

    Attributes
    ----------
    support_, support_vectors_, n_support_, dual_coef_, intercept_, classes_ : as in `SVC`
        With ``strict=True`` ``dual_coef_`` are the weights :math:`\beta`, which need not be dual
        variables of any problem.
    certificate_ : as in `SVC`
        With ``strict=True`` it is that of the problem over the span of the chosen rows.
    certificate_full_ : Certificate
        The primal value of the model with a dual value of the problem without a limit on the
        number of support vectors: ``primal - dual`` is what the budget costs at most, and ``gap``
        the same relative to the primal value.  Its status is "optimal" only where that is next to
        nothing.  The dual value is that of the problem's own solution, to a gap of 0.01 where there
        are more than 4000 rows, and of 0.1 above 30 000, as far as it gets in four iterations for
        each row.  Above 60 000 rows, or 30 000 of many features, it is the value at the dual
        variables of the problem over the span, or at 60 000 of them: a bound still, but a weak one,
        with a gap of nearly 1 for a million rows.  Up to some 170 000 rows (fewer of more features,
        or classes) another one comes from up to eight parts of the rows, and the better of the two
        counts: that takes about as long as the rest of the fit, and is the weaker the more parts
        there are (120 000 x 20: a gap of 0.47, where 0.34 is what all rows at once give; `slack`
        must be a sum over rows).  Without ``strict=True`` it is
        ``certificate_``.
    n_support_full_ : ndarray of shape (K,)
        The number of rows of each class that have a dual variable in ``certificate_full_``: the
        support vectors without a limit, as far as that problem is solved.
    n_iter_, n_features_in_, feature_names_in_ : as in `SVC`

    See Also
    --------
    SVC : Any norm of the slacks; this is ``slack=TopK(B)`` or ``slack=TopK2(B)``.
    KernelDictionary : Basis functions at training rows, of which the 1-norm keeps few.
    sklearn.svm.NuSVC : The same solutions, rescaled, where the budget binds with ``slack="l1"``.

    Notes
    -----
    A row of weight 2 is the same as that row given twice, and one of weight 0 is the same as
    none; a class left with no weight is as if it were not there.

    With ``strict=True`` rows are chosen by forward selection (Keerthi, Chapelle and DeCoste):
    of some drawn at random, half of them support vectors without a budget, the one joins that lets
    the objective fall furthest; then rows are exchanged until nothing improves.  The best of three
    such searches, which begin with other rows, is kept.  Random rows, the rows next to the centres
    of k-means in the kernel's space, and those that the path of the 1-norm SVM on a kernel
    dictionary uses are taken instead where they are better on held-out rows, by two standard errors
    of the number of errors.  Where there are more rows than 4000, and than fifty for each in the
    budget, a sample of them chooses; the coefficients are always those of all rows.  Where the
    problem without a limit has no more than B support vectors, its solution is taken.

    References
    ----------
    O. Dekel, Y. Singer: Support vector machines on a budget, NIPS 2006.

    S. S. Keerthi, O. Chapelle, D. DeCoste: Building support vector machines with reduced classifier
    complexity, Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from anynorm import BudgetSVC
    >>> X, y = make_moons(200, noise=0.2, random_state=0)
    >>> model = BudgetSVC(10, C=10.0, gamma=2.0, strict=True).fit(X, y)
    >>> print(f"{len(model.support_)} support vectors, {model.score(X, y):.1%} right")
    10 support vectors, 97.5% right
    >>> print(model.certificate_)                     # over the span of the ten rows
    optimal: primal 166.1..., dual 166.1..., relative gap ... (tol 1e-04)
    >>> print(f"the budget costs at most {model.certificate_full_.gap:.0%} of the objective")
    the budget costs at most 7% of the objective
    """

    def __init__(
        self,
        budget: float,
        C: float = 1.0,
        *,
        slack: str | Norm | SquaredL2 = "l1",
        strict: bool = False,
        shared: bool = True,
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
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.budget = budget
        self.C = C
        self.slack = slack
        self.strict = strict
        self.shared = shared
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
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def _duals_sum_to_zero(self) -> bool:  # type: ignore[override]
        return not self.strict

    def _check(self) -> None:
        if self.strict is True or self.strict is np.True_:
            check_parameters(self)
        else:
            check_parameters(self, slack=_LARGEST_SLACKS)

    def _loss(self, data: Labelled) -> Loss:
        if not self.strict:
            return Loss.from_slack(_NORMS[cast("str", self.slack)](self._count(_total(data))))
        loss = Loss.from_slack(self.slack)
        try:
            loss.weighted(np.ones(data.X.shape[0]))
        except ValueError as error:
            raise ValueError(
                f"strict=True chooses support vectors by parts of the rows, and {error}"
            ) from error
        return loss

    def _fit(self, X: Any, y: Any, sample_weight: Any, end: float | None) -> Self:
        if not self.strict or not lives_apart(X):
            return super()._fit(X, y, sample_weight, end)
        if takes_matrix(self.kernel):
            raise ValueError(
                "a precomputed kernel cannot be a Dask collection, or larger than memory: rows are "
                "needed that the kernel is evaluated for. Give these, and a kernel."
            )
        data = chunked(self, X, y, sample_weight, Loss.from_slack(self.slack))
        try:
            return self._fit_chunks(data, end)
        finally:
            data.X.close()

    def _fit_chunks(self, data: ChunkedLabelled, end: float | None) -> Self:
        """Fit to rows that live apart, by a solver that has the support vectors here."""
        from anynorm.solvers.kernel import solve_strict_apart  # Numba: for those who fit
        from anynorm.solvers.linear import solve_linear
        from anynorm.solvers.linear.chunked import solve_chunked
        from anynorm.solvers.one_norm import follow_path

        loss, report = Loss.from_slack(self.slack), classes_printer(self, data)
        problems = [
            ChunkedProblem(data.X, row_terms(data, k, float(self.C), loss))
            for k in range(data.n_problems)
        ]
        known = getattr(self, "support_", None) if self.warm_start else None
        found = solve_strict_apart(
            problems,
            given_kernel(self).resolved(data.X),
            max(1, int(self._count(data.total))),
            shared=bool(self.shared),
            **limits(self, end),
            cache_size=float(self.cache_size),
            seed=seed(self.random_state),
            known=known,
            progress=[bound_to(report, k) for k in range(data.n_problems)],
            solve_features=solve_linear,
            solve_apart=solve_chunked,
            follow_path=follow_path,
        )
        if found.cut_short:
            warn_of_a_hasty_choice()
        # The rows of the span are all that a model is made of.
        spanning = Labelled(found.gram.X, found.codes, data.classes, None, data.feature_names)
        used, _ = support_of(spanning, [coef_of(solution) for solution in found.solutions])
        more = {
            "support_": found.rows[used].astype(np.int64),
            "certificate_full_": joint_certificate(found.full),
            "n_support_full_": found.full_support.astype(np.int32),
        }
        return store_kernel(self, spanning, found.gram, found.solutions, more)

    def _solved(
        self, problems: Sequence[Problem], data: Labelled, end: float | None, sample_weight: Any
    ) -> tuple[Sequence[Solution], Mapping[str, Any]]:
        if self.strict:
            found = self._over_few_rows(problems, data, end)
            solutions = [each.solution for each in found]
            certificates = [each.full for each in found]
            duals = [each.full_dual for each in found]
            if any(each.cut_short for each in found):
                warn_of_a_hasty_choice()
        else:
            solutions = solve_kernels(self, data, problems, end)
            certificates = [solution.certificate for solution in solutions]
            duals = [solution.dual for solution in solutions]
        more = {
            "certificate_full_": joint_certificate(certificates),
            "n_support_full_": support_of(data, duals)[1],
        }
        if self.warm_start:
            more["_duals"] = duals
        return solutions, more

    def _count(self, total: float) -> float:
        """The budget in units of a row of weight 1, of rows that weigh so much together."""
        is_share = isinstance(self.budget, float | np.floating)
        return float(self.budget) * (total if is_share else 1.0)

    def _landmarks(self, X: Any, y: Any, end: float | None) -> Landmarks:
        """Rows for any budget up to this one, the first of them, chosen in a part of the time."""
        from anynorm.solvers.kernel import rows_in_order
        from anynorm.solvers.linear import solve_linear
        from anynorm.solvers.one_norm import follow_path

        data, gram = validate_kernel(self, X, y, None)
        rows = rows_in_order(
            kernel_problems(data, gram, self._loss(data), float(self.C)),
            max(1, int(self._count(_total(data)))),
            deadline=end,
            cache_size=float(self.cache_size),
            seed=seed(self.random_state),
            solve_features=solve_linear,
            follow_path=follow_path,
        )
        return Landmarks.in_order(gram, rows)

    def _over_few_rows(
        self, problems: Sequence[Problem], data: Labelled, end: float | None
    ) -> list[Strict]:
        """The solutions over the span of no more rows than the budget says."""
        from anynorm.solvers.kernel import solve_strict  # Numba: for those who fit, not predict
        from anynorm.solvers.linear import solve_linear
        from anynorm.solvers.one_norm import follow_path

        starts, report = warm_starts(self, data), classes_printer(self, data)
        again = any(start is not None for start in starts)
        settings: dict[str, Any] = {
            **limits(self, end),
            "cache_size": float(self.cache_size),
            "seed": seed(self.random_state),
            "known": self.support_.astype(np.intp) if again else None,
            "solve_features": solve_linear,
            "follow_path": follow_path,
        }
        count = max(1, int(self._count(_total(data))))
        if self.shared:
            reports = [bound_to(report, k) for k in range(len(problems))]
            return solve_strict(problems, count, starts=starts, progress=reports, **settings)

        def one(index: int, progress: Report | None) -> Strict:
            start = [starts[index]]
            [found] = solve_strict(
                [problems[index]], count, starts=start, progress=[progress], **settings
            )
            return found

        return run_all(len(problems), one, report=report)


def _total(data: Labelled) -> float:
    """What all rows weigh."""
    return float(data.X.shape[0] if data.weights is None else data.weights.sum())
