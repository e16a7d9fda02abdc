"""The 2-norm regularised linear problems of the grid, each by the method that suits it.

        minimise_{w, b}   1/2 sum_j (w_j / v_j)^2 + g(1 - y (X w + b))

for losses whose duals are bounded one by one, by a budget or by a ball, with a free, a regularised
or no bias.  The order in which methods are tried stands in `METHODS`, and for one set of features
in `NEWTON_METHODS`.
Whatever was done, the result is certified from (w, b) and the dual variables alone, and a
method that misses the gap hands over to the next one.  Small problems are solved to the last digit
unless that is not asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
import scipy.linalg

from anynorm.design import Design, design_of
from anynorm.design.watch import unwatched
from anynorm.norms.dual_sets import BallBox, Box, BudgetBox, CurvedBox, DualSet, PowerBall
from anynorm.problem import Problem
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.centring import around_mean
from anynorm.solvers.frame.hard_margin import improved
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.long_factor import lower_factor
from anynorm.solvers.frame.methods import Method, methods_for
from anynorm.solvers.linear.augmented_lagrangian import solve_augmented
from anynorm.solvers.linear.column_newton import ColumnNewton, few_columns_suit
from anynorm.solvers.linear.few_rows import RowsDual
from anynorm.solvers.linear.interior_point import solve_interior
from anynorm.solvers.linear.newton_loop import solve_newton
from anynorm.solvers.linear.parts import RowSearch, pays
from anynorm.solvers.linear.polish import polish_free_set
from anynorm.solvers.linear.primal_dual import PrimalDual
from anynorm.solvers.linear.shared_interior import solve_shared
from anynorm.solvers.linear.straighten import straighten_dual

SMALL_ENTRIES = 2_000_000  # of X: up to here the last digits cost little
_SMALL_TOL = 1e-8  # the gap that small problems get whatever tol is
_DESCENT_SIDE = 1000  # rows and columns from which Newton systems of sparse data are too large
_SPAN_RATIO, _LARGEST_SPAN = 8, 3000  # columns per row, rows: where n x n is far less than n x p
_SHARP = 1e-20  # of the primal value, for 1/2 ||u - A'(y a)||^2: kernels see the duals alone
_WORTH_COMPILING = 1 << 15  # entries of X: below, a fit is over long before LLVM has compiled
_MOST_ENTRIES = 1 << 18  # of X: beyond, what the products with it take is all that counts
_INTERIOR_SIDE = 4000  # the largest dense system of the interior-point method
_ABSURD = 1e18  # C x_j^2 beyond which the penalty of a column is lost in the digits of the loss
_STRONG = 1e14  # and to which it is brought down: still lost, but within reach of Newton systems


def solve_linear(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Callable[[Progress], None] | None = None,
    exact: bool = True,
) -> Solution:
    """Solve one binary problem to a relative duality gap of at most `tol`.

    Parameters
    ----------
    problem : Problem
        With features X and the 2-norm regulariser; its loss is smooth, or its duals are in a box,
        under a budget or in the ball of a p-norm.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        Most epochs and Newton steps together.
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    seed : int
        Seed of the order in which coordinate descent visits the examples.
    start : ndarray of shape (n,), optional
        Dual variables to start from, e.g. those of a nearby problem.
    progress : callable, optional
        Called with a `Progress` at every certificate that is computed.
    exact : bool
        Whether a small problem is solved to the last digit, and not only to `tol`.

    Returns
    -------
    Solution
        Coefficients, intercept (the middle of the optimal interval where it is free), dual
        variables and the certificate, whose status says whether `tol` was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.linear import solve_linear
    >>> X, y = np.array([[2.0], [0.0]]), np.array([1.0, -1.0])
    >>> solution = solve_linear(Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X))
    >>> solution.coef.round(9), round(solution.intercept, 9), solution.status.value
    (array([1.]), -1.0, 'optimal')
    """
    budget = Budget(max_iter, deadline)

    def solve(part: Problem, start: np.ndarray | None = None) -> Solution:
        search = Search(part, tol, budget, progress, exact=exact)
        search.run(METHODS, seed, start)
        return search.solution()

    def near(part: Problem) -> Solution:
        return improved(solve(part, start), part, tol=tol, budget=budget, solve=solve)

    return around_mean(problem, near, tol=tol)


def few_columns_pay(X: Design, box: DualSet, tol: float) -> bool:
    """Whether a loss with kinks and this dual set begins with the method for few columns."""
    worth = _WORTH_COMPILING <= X.n * X.p <= _MOST_ENTRIES
    return worth and few_columns_suit(X, box, tol)


def _solve_part(
    problem: Problem,
    *,
    tol: float,
    budget: Budget,
    start: np.ndarray | None,
    primal: tuple[np.ndarray, float] | None = None,
    seed: int,
) -> Solution:
    """Solve for some rows, no further than to `tol`."""
    search = Search(problem, tol, budget, None, exact=False)
    search.run(METHODS[1:], seed, start, primal)
    return search.solution()


class Search:
    """One solve: the pieces of the problem, and the best certified points so far.

    With `exact` a small problem is solved to the last digit, not only to `tol`.
    """

    def __init__(
        self,
        problem: Problem,
        tol: float,
        budget: Budget,
        progress: Callable[[Progress], None] | None,
        *,
        exact: bool = True,
    ) -> None:
        self.problem, self.budget = problem, budget
        self.best = Incumbent(problem, tol, budget, progress)
        self.tol, self.small = tol, exact and problem.n_rows * problem.n_coefs <= SMALL_ENTRIES
        self.goal = min(tol, _SMALL_TOL) if self.small else tol
        self.cost = problem.C * problem.row_weights()
        self.curve = problem.loss.curve(self.cost)
        self.box = problem.dual_set
        self.precision = 0.0 if problem.free_bias else np.inf
        if problem.bias_feature:
            self.precision = 1.0 / problem.bias_feature**2
        self.features = problem.design.scaled(problem.feature_scale)
        self.point: PrimalDual | None = None
        self.descended: PrimalDual | None = None
        self.started, self.seed = False, 0

    def run(
        self,
        methods: Sequence[Method],
        seed: int,
        start: np.ndarray | None,
        primal: tuple[np.ndarray, float] | None = None,
    ) -> None:
        """Try the methods in turn until one is certified, from duals or from a primal point."""
        able = methods_for("the 2-norm regulariser on features", methods, self.problem)
        self.started, self.seed = start is not None, seed
        # The logistic loss is flat far from the margin, where duals of other weights may lead.
        if start is not None and not isinstance(self.box, CurvedBox):
            self.point = self._from_dual(start)
        if primal is not None:
            u = self.features.from_coef(primal[0])
            self.point = PrimalDual(u, primal[1], np.zeros(self.features.n))
        for method in able:
            if not method.suits(self):
                continue
            with suppress(OutOfTime), self.budget.watched():
                method.solve(self)
            if self.best.reached:
                return
            if not self.budget.goes_on():
                break
        # Whatever rounding did: never worse than no model at all.
        self.offer(PrimalDual(np.zeros(self.features.p), 0.0, np.zeros(self.features.n)))

    def offer(self, point: PrimalDual) -> bool:
        """Certify a point given by its scaled coefficients; whether it is good enough."""
        return self.offer_coef(self.features.to_coef(point.u), point.bias, point.dual)

    def offer_coef(self, coef: np.ndarray, bias: float, dual: np.ndarray) -> bool:
        """Certify a point, with the best bias for its coefficients; whether it is good enough."""
        problem = self.problem
        with unwatched():
            scores = problem.scores(coef)
            if problem.free_bias:
                bias = problem.best_bias(scores)
            values = problem.values(coef, bias, dual, scores=scores)
            self.best.offer(values, (coef.copy(), bias), dual.copy())
            if not self.best.reached and self.features.large_columns.size:
                self._straighten(coef, bias, dual, scores)
        return self.best.gap <= self.goal

    def _straighten(
        self, coef: np.ndarray, bias: float, dual: np.ndarray, scores: np.ndarray
    ) -> None:
        """Try the dual with its last digits corrected along the columns of huge scale."""
        problem, box = self.problem, self.box
        if not isinstance(box, Box | CurvedBox):
            return
        straight = straighten_dual(
            self.features, problem.y, box, problem.free_bias, self.features.from_coef(coef), dual
        )
        if straight is not None:
            values = problem.values(coef, bias, straight, scores=scores)
            self.best.offer(values, (coef.copy(), bias), straight)

    def solution(self) -> Solution:
        """The best points with their certificate."""
        coef, intercept = self.best.primal_point
        return Solution(
            dual=self.best.dual_point,
            certificate=self.best.certificate(),
            n_iter=max(1, self.budget.n_iter),
            coef=coef,
            intercept=intercept,
        )

    def incumbent(self) -> PrimalDual:
        """The best points as a start for another method."""
        coef, intercept = self.best.primal_point
        return PrimalDual(self.features.from_coef(coef), intercept, self.best.dual_point)

    def _from_dual(self, dual: np.ndarray) -> PrimalDual:
        """A starting point from the dual variables of another fit."""
        problem = self.problem
        dual = problem.loss.clip_dual(dual, problem.C, problem.sample_weight)
        total = float(problem.y @ dual)
        bias = total / self.precision if 0 < self.precision < np.inf else 0.0
        return PrimalDual(self.features.rmatvec(problem.y * dual), bias, dual)


def _few_rows_decide(search: Search) -> bool:
    return not search.started and pays(search.problem)


def _by_parts(search: Search) -> None:
    """Rows near margin 1, the others proved; where that does not pay, a start for the others."""
    rows = RowSearch(search.problem, functools.partial(_solve_part, seed=search.seed), search.best)
    if not rows.run():
        search.point = PrimalDual(
            search.features.from_coef(rows.coef), rows.bias, np.zeros(search.features.n)
        )


def _large_and_sparse(search: Search) -> bool:
    return search.features.sparse and min(search.features.shape) > _DESCENT_SIDE


def _descend(search: Search, patient: bool = False) -> None:
    """Dual coordinate descent, and the exact solution for the free set that it finds."""
    from anynorm.solvers.linear.coordinate_descent import DualState, descend_dual

    features, box, y = search.features, search.box, search.problem.y
    assert isinstance(box, Box)
    state = DualState(np.zeros(features.n), np.zeros(features.p), 0.0)
    point = search.descended if patient else search.point
    if point is not None:
        state = DualState(point.dual.copy(), features.to_coef(point.u).copy(), point.bias)

    def finish(at: DualState) -> bool:
        exact = polish_free_set(features, y, box, search.precision, at.dual, at.bias)
        return exact is not None and search.offer(PrimalDual(*exact))

    descend_dual(
        features,
        y,
        box,
        search.precision,
        state,
        tol=search.tol,
        seed=search.seed + patient,
        budget=search.budget,
        check=lambda at: search.offer_coef(at.coef, at.bias, at.dual),
        finish=finish,
        patient=patient,
    )
    if not search.best.reached:
        search.offer_coef(state.coef, state.bias, state.dual)
    search.point = PrimalDual(features.from_coef(state.coef), state.bias, state.dual)
    search.descended = search.point


def _has_descended(search: Search) -> bool:
    return search.descended is not None


def _few_dense_rows(search: Search) -> bool:
    n, p = search.features.n, search.features.p
    few = n <= _LARGEST_SPAN and _SPAN_RATIO * n <= p and search.budget.affords(n**2 * p)
    return few and not search.features.sparse and not search.features.large_columns.size


def _in_span(search: Search) -> None:
    """The Newton methods on the features rotated into the span of the rows."""
    span = Span.of(search.features)
    if span is not None:
        _newton(search, span, None if search.point is None else span.from_full(search.point))
        search.point = search.incumbent()


def _on_all_features(search: Search) -> None:
    _newton(search, Whole(search.features), search.point)


def _on_smaller_columns(search: Search) -> None:
    """Try again with columns of absurd scale made smaller.

    Their penalty is then too large, but still lost among the digits of the primal value, while
    the equations are within reach of the arithmetic.  The true problem is what is certified.
    """
    features = search.features
    pull = search.cost.sum() * features.column_norms_squared() / features.n
    if not np.any(pull > _ABSURD):
        return
    cap = np.sqrt(np.divide(_STRONG, pull, out=np.ones_like(pull), where=pull > _ABSURD))
    search.features = features.scaled(features.to_coef(cap))
    _newton(search, Whole(search.features), None)
    search.features = features


_SHARED_SETS = (BudgetBox, BallBox, PowerBall)
_NEWTON_SETS = (Box, CurvedBox, *_SHARED_SETS)

METHODS = (
    Method("solving for some rows at a time", _by_parts, (Box,), suits=_few_rows_decide),
    Method("dual coordinate descent", _descend, (Box,), suits=_large_and_sparse),
    Method("Newton's method in the rows' span", _in_span, _NEWTON_SETS, suits=_few_dense_rows),
    Method("Newton's method", _on_all_features, _NEWTON_SETS),
    Method("Newton's method on smaller columns", _on_smaller_columns, (Box, CurvedBox)),
    Method(
        "patient dual coordinate descent",
        functools.partial(_descend, patient=True),
        (Box,),
        suits=_has_descended,
    ),
)
"""What is tried, in this order, until the gap is reached."""


def _newton(search: Search, view: Whole | Span, start: PrimalDual | None) -> None:
    """Try the Newton methods on one set of features, each from what the last one has found."""
    at = Stage(view, start)
    for method in methods_for("Newton's method", NEWTON_METHODS, search.problem):
        if method.suits(search, at):
            method.solve(search, at)
            search.offer(view.to_full(at.found))
            if not search.budget.in_time():
                return


class Stage:
    """Newton methods on one set of features: where they start, and what was found last.

    `guess` is a dual point that shows which variables are free.
    """

    def __init__(self, view: Whole | Span, start: PrimalDual | None) -> None:
        self.view, self.features, self.start = view, view.features, start
        self.found = PrimalDual(np.zeros(view.features.p), 0.0, np.zeros(view.features.n))
        self.guess = self.found.dual


def _minimise_curve(search: Search, at: Stage) -> None:
    problem = search.problem
    assert search.curve is not None
    at.found = solve_newton(
        at.features,
        problem.y,
        search.curve,
        search.precision,
        at.start,
        cost=lambda r: problem.loss.value(r, problem.C, problem.sample_weight),
        tol=search.tol,
        exact=search.small,
        budget=search.budget,
    )
    at.guess = at.found.dual


def _few_columns(search: Search, at: Stage) -> bool:
    return search.curve is None and few_columns_pay(at.features, search.box, search.goal)


def _minimise_few_columns(search: Search, at: Stage) -> None:
    """The same as the augmented Lagrangian method, compiled."""
    problem, features = search.problem, at.features
    dual = RowsDual.of(problem)
    newton = ColumnNewton(dual, problem.row_weights())
    point, n = at.start, features.n
    if point is None:
        point = PrimalDual(np.zeros(features.p), 0.0, np.zeros(n))
    coef = features.to_coef(point.u)
    root = np.ones(features.p) if features.scale is None else features.scale
    coef, _, beta, steps = newton.solve(
        features.dense_transposed(),
        root,
        (coef, point.bias, features.matvec(point.u), problem.y * point.dual),
        precision=search.precision,
        warm=at.start is not None,
        tol=search.goal,
        sharp=_SHARP,
        budget=search.budget,
    )
    search.budget.book(steps)
    at.found = PrimalDual(features.from_coef(coef), newton.bias, problem.y * beta)
    at.guess, at.start = at.found.dual, at.found


def _kinks_are_left(search: Search, at: Stage) -> bool:
    return search.curve is None and not search.best.gap <= search.goal


def _minimise_kinks(search: Search, at: Stage) -> None:
    assert isinstance(search.box, Box)
    at.found = solve_augmented(
        at.features,
        search.problem.y,
        search.box,
        search.precision,
        at.start,
        tol=search.goal,
        budget=search.budget,
        accept=lambda candidate: search.offer(at.view.to_full(candidate)),
    )
    at.guess = at.found.dual


def _bounded_and_not_reached(search: Search, at: Stage) -> bool:
    assert isinstance(search.box, Box)
    bounded = bool(np.isfinite(search.box.lower).all())
    return bounded and min(at.features.shape) <= _INTERIOR_SIDE and not search.best.reached


def _from_inside(search: Search, at: Stage) -> None:
    assert isinstance(search.box, Box)
    at.found, at.guess = solve_interior(
        at.features,
        search.problem.y,
        search.box,
        search.precision,
        tol=0.1 * search.tol,
        budget=search.budget,
    )


def _has_something_inside(search: Search, at: Stage) -> bool:
    """Whether a dual point with all entries above 0 is allowed, and systems are not too large."""
    problem = search.problem
    classes = np.unique(problem.y[problem.row_weights() > 0])
    balanced = problem.loss.signed or not problem.free_bias or classes.size == 2
    return balanced and at.features.p <= _INTERIOR_SIDE


def _within_shared_bounds(search: Search, at: Stage) -> None:
    problem = search.problem
    at.found = solve_shared(
        at.features,
        problem.y,
        search.box,
        search.precision,
        cost=lambda r: problem.loss.value(r, problem.C, problem.sample_weight),
        tol=search.goal,
        budget=search.budget,
        accept=lambda candidate: search.offer(at.view.to_full(candidate)),
    )


def _worth_polishing(search: Search, at: Stage) -> bool:
    return search.small and (search.curve is None or not search.best.reached)


def _polish(search: Search, at: Stage) -> None:
    assert isinstance(search.box, Box)
    exact = None
    with suppress(OutOfTime):
        exact = polish_free_set(
            at.features, search.problem.y, search.box, search.precision, at.guess, at.found.bias
        )
    if exact is not None:
        at.found = PrimalDual(*exact)


NEWTON_METHODS = (
    Method("Newton's method", _minimise_curve, needs_curve=True),
    Method(
        "the augmented Lagrangian method on few columns",
        _minimise_few_columns,
        (Box,),
        suits=_few_columns,
    ),
    Method("the augmented Lagrangian method", _minimise_kinks, (Box,), suits=_kinks_are_left),
    Method("the interior-point method", _from_inside, (Box,), suits=_bounded_and_not_reached),
    Method(
        "the interior-point method for shared bounds",
        _within_shared_bounds,
        _SHARED_SETS,
        suits=_has_something_inside,
    ),
    Method("the exact solution for the free set", _polish, (Box,), suits=_worth_polishing),
)
"""What is tried on one set of features, in this order."""


class Whole:
    """The features as they are."""

    def __init__(self, features: Design) -> None:
        self.features = features

    def to_full(self, point: PrimalDual) -> PrimalDual:
        """The same point."""
        return point


class Span:
    """The features rotated into the span of the examples: n x n instead of n x p.

    A A' = L L', so A = L Q' with orthonormal Q, and u = Q z has the scores L z and the norm of z.
    """

    def __init__(self, full: Design, lower: np.ndarray) -> None:
        self.full = full
        self.lower = lower
        self.features = design_of(lower)

    @classmethod
    def of(cls, features: Design) -> Span | None:
        """None where the examples are so dependent that no factor exists."""
        rows = np.arange(features.n)
        if features.n * features.p <= SMALL_ENTRIES:
            factor = scipy.linalg.qr(features.dense_rows(rows).T, mode="r", check_finite=False)[0]
            lower = factor[: features.n].T
            diagonal = np.abs(np.diagonal(lower))
            return None if diagonal.min() <= 1e-13 * diagonal.max() else cls(features, lower)
        lower = lower_factor(features.rows_gram(rows))
        return None if lower is None else cls(features, np.tril(lower))

    def to_full(self, point: PrimalDual) -> PrimalDual:
        """Return u = Q z = A' L^-T z."""
        beta = scipy.linalg.solve_triangular(self.lower, point.u, lower=True, trans="T")
        return PrimalDual(self.full.rmatvec(beta), point.bias, point.dual)

    def from_full(self, point: PrimalDual) -> PrimalDual:
        """Return z = Q' u, from the scores A u = L z."""
        z = scipy.linalg.solve_triangular(self.lower, self.full.matvec(point.u), lower=True)
        return PrimalDual(z, point.bias, point.dual)
