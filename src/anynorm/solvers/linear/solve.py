"""The 2-norm regularised linear problems of the grid, each by the method that suits it.

        minimise_{w, b}   1/2 sum_j (w_j / v_j)^2 + g(1 - y (X w + b))

for the hinge, squared hinge, logistic, squared and absolute losses, with a free, a regularised
or no bias.  The choice:

    sparse X, both sides large, box dual     over-relaxed dual coordinate descent, and where that
                                             is too slow the Newton methods below from there
    hinge, absolute                          augmented Lagrangian with semismooth Newton steps,
                                             and the exact solution for the free set it finds;
                                             where it crawls, an interior-point method
    squared hinge, logistic, squared         Newton

Dense data with far fewer examples than features are first rotated into the examples' span; with
far more examples, the hinge and squared hinge losses are solved for some examples at a time.
Whatever was done, the result is certified from (w, b) and the dual variables alone, and a
method that misses the gap hands over to the next one.  Small problems are always solved to the
last digit.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy.linalg

from anynorm.design import Design, design_of
from anynorm.problem import Problem
from anynorm.problem.certificate import Certificate, certify, optimal_bias, relative_gap
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.linear.augmented_lagrangian import solve_augmented
from anynorm.solvers.linear.box import box_of
from anynorm.solvers.linear.interior_point import solve_interior
from anynorm.solvers.linear.newton import Logistic, Squared, SquaredHinge
from anynorm.solvers.linear.newton_loop import solve_newton
from anynorm.solvers.linear.parts import RowSearch, pays
from anynorm.solvers.linear.polish import polish_free_set
from anynorm.solvers.linear.primal_dual import PrimalDual
from anynorm.solvers.linear.straighten import straighten_dual

if TYPE_CHECKING:
    from anynorm.solvers.linear.coordinate_descent import DualState

SmoothCurve: TypeAlias = SquaredHinge | Squared | Logistic

_SMALL_ENTRIES = 2_000_000
_SMALL_TOL = 1e-8
_DESCENT_SIDE = 1000
_SPAN_RATIO = 8
_LARGEST_SPAN = 3000
_INTERIOR_SIDE = 4000
# C x_j^2 beyond which the penalty of a column cannot matter, and to which it is brought down.
_ABSURD = 1e18
_STRONG = 1e14
_BOXED = ("hinge", "absolute", "squared_hinge")


def solve_linear(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve one binary problem to a relative duality gap of at most `tol`.

    Parameters
    ----------
    problem : Problem
        With features X and the 2-norm regulariser; one of the five named losses.
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
    point, spent = None, 0
    if start is None and pays(problem):
        search = RowSearch(problem, functools.partial(_solve_part, seed=seed), progress)
        found = search.run(tol, max_iter, deadline)
        if found is not None:
            return found
        point, spent = (search.coef, search.bias), search.n_iter
    run = _Run(problem, tol, max_iter, deadline, progress)
    run.n_iter = min(spent, max_iter)
    run.solve(seed, start, point)
    return run.solution()


def _solve_part(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    start: np.ndarray | None,
    primal: tuple[np.ndarray, float] | None = None,
    seed: int,
) -> Solution:
    """Solve for some rows, no further than to `tol`."""
    run = _Run(problem, tol, max_iter, deadline, None)
    run.small, run.goal = False, tol
    run.solve(seed, start, primal)
    return run.solution()


@dataclass
class _Best:
    coef: np.ndarray
    intercept: float
    primal: float
    dual: np.ndarray
    dual_value: float


class _Run:
    """One solve: the pieces of the problem, the budget, and the best certified point so far."""

    def __init__(self, problem, tol, max_iter, deadline, progress):
        self.problem, self.tol, self.progress = problem, tol, progress
        self.max_iter, self.n_iter = max_iter, 0
        self.began = time.monotonic()
        self.deadline = np.inf if deadline is None else deadline
        weights = problem.sample_weight
        self.cost = problem.C * (np.ones(problem.n_rows) if weights is None else weights)
        self.precision = 0.0 if problem.free_bias else np.inf
        if problem.bias_feature:
            self.precision = 1.0 / problem.bias_feature**2
        self.features = problem.design.scaled(problem.feature_scale)
        self.zero_primal = problem.zero_primal()
        self.small = problem.n_rows * problem.n_coefs <= _SMALL_ENTRIES
        n, p = self.features.shape
        self.goal = min(tol, _SMALL_TOL) if self.small else tol
        self.best = _Best(np.zeros(p), 0.0, np.inf, np.zeros(n), -np.inf)

    def solve(
        self,
        seed: int,
        start: np.ndarray | None,
        primal: tuple[np.ndarray, float] | None = None,
    ) -> None:
        """Run the methods in turn until one is certified, from duals or from a primal point."""
        curve = self._curve()
        point = None if start is None else self._from_dual(start)
        if primal is not None:
            point = PrimalDual(
                self.features.from_coef(primal[0]), primal[1], np.zeros(self.features.n)
            )
        descended = None
        if self._descent_suits():
            point = descended = self._descend(seed, point)
            if self._certified():
                return
        span = self._span()
        if span is not None:
            self._newton(curve, span, None if point is None else span.from_full(point))
            if self._certified() or not self.spend(0):
                return
            point = self._incumbent()
        self._newton(curve, _Whole(self.features), point)
        if not self._certified() and self.spend(0):
            self._shrink(curve)
        if descended is not None and not self._certified() and self.spend(1):
            self._descend(seed + 1, descended, patient=True)
        if not self._certified():  # whatever rounding did: never worse than no model at all
            self.offer(PrimalDual(np.zeros(self.features.p), 0.0, np.zeros(self.features.n)))

    def _shrink(self, curve: SmoothCurve | None) -> None:
        """Try again with columns of absurd scale made smaller.

        Their penalty is then too large, but still lost among the digits of the primal value, while
        the equations are within reach of the arithmetic.  The true problem is what is certified.
        """
        pull = self.cost.sum() * self.features.column_norms_squared() / self.features.n
        if not np.any(pull > _ABSURD):
            return
        cap = np.sqrt(np.divide(_STRONG, pull, out=np.ones_like(pull), where=pull > _ABSURD))
        whole = self.features
        self.features = whole.scaled(whole.to_coef(cap))
        self._newton(curve, _Whole(self.features), None)
        self.features = whole

    def _newton(
        self, curve: SmoothCurve | None, view: _Whole | _Span, point: PrimalDual | None
    ) -> None:
        y, precision = self.problem.y, self.precision
        box = box_of(self.problem.loss, self.cost)
        if curve is not None:
            found = solve_newton(
                view.features, y, curve, precision, point,
                cost=self._cost_at, tol=self.tol, exact=self.small, spend=self.spend,
            )  # fmt: skip
        else:
            found = solve_augmented(
                view.features, y, box, precision, point, tol=self.goal, spend=self.spend,
                accept=lambda candidate: self.offer(view.to_full(candidate)),
            )  # fmt: skip
        self.offer(view.to_full(found))
        guess = found.dual
        suits = self.problem.loss.name in _BOXED and min(view.features.shape) <= _INTERIOR_SIDE
        if suits and not self._certified():
            found, guess = solve_interior(
                view.features, y, box, precision, tol=0.1 * self.tol, spend=self.spend
            )
            self.offer(view.to_full(found))
        flat = curve is None or (not isinstance(curve, Logistic) and not self._certified())
        if flat and self.small:
            exact = polish_free_set(view.features, y, box, precision, guess, found.bias)
            if exact is not None:
                self.offer(view.to_full(PrimalDual(*exact)))

    def _descend(self, seed: int, point: PrimalDual | None, patient: bool = False) -> PrimalDual:
        from anynorm.solvers.linear.coordinate_descent import DualState, descend_dual

        features = self.features
        state = DualState(np.zeros(features.n), np.zeros(features.p), 0.0)
        if point is not None:
            state = DualState(point.dual.copy(), features.to_coef(point.u).copy(), point.bias)
        descend_dual(
            features, self.problem.y, box_of(self.problem.loss, self.cost), self.precision, state,
            tol=self.tol, seed=seed, max_epochs=self.max_iter - self.n_iter, deadline=self.deadline,
            check=lambda at: self._offer_coef(at.coef, at.bias, at.dual, at.epochs),
            finish=self._finish_descent, patient=patient,
        )  # fmt: skip
        self.n_iter += state.epochs
        if not self._certified():
            self._offer_coef(state.coef, state.bias, state.dual, state.epochs)
        return PrimalDual(self.features.from_coef(state.coef), state.bias, state.dual)

    def _finish_descent(self, at: DualState) -> bool:
        """Try the exact solution for the free set that the descent has found."""
        box = box_of(self.problem.loss, self.cost)
        exact = polish_free_set(
            self.features, self.problem.y, box, self.precision, at.dual, at.bias
        )
        return exact is not None and self.offer(PrimalDual(*exact))

    def spend(self, steps: int) -> bool:
        """Book iterations; whether there is still something to spend."""
        if self.n_iter + steps > self.max_iter or time.monotonic() >= self.deadline:
            return False
        self.n_iter += steps
        return True

    def offer(self, point: PrimalDual) -> bool:
        """Certify a point given by its scaled coefficients; keep it if it is the best so far."""
        return self._offer_coef(self.features.to_coef(point.u), point.bias, point.dual, self.n_iter)

    def _offer_coef(self, coef: np.ndarray, bias: float, dual: np.ndarray, n_iter: int) -> bool:
        """Keep the best primal and the best dual point, which may come from different methods."""
        problem, best = self.problem, self.best
        scores = problem.scores(coef)
        if problem.free_bias:
            bias = optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)
        found = certify(problem, coef, bias, dual, tol=self.tol, scores=scores)
        if found.primal < best.primal:
            best.coef, best.intercept, best.primal = coef.copy(), bias, found.primal
        if found.dual > best.dual_value:
            best.dual, best.dual_value = dual.copy(), found.dual
        if self._gap() > self.tol and self.features.large_columns.size:
            self._straighten(coef, bias, dual, scores)
        gap = self._gap()
        if self.progress is not None:
            seconds = time.monotonic() - self.began
            self.progress(Progress(n_iter, best.primal, best.dual_value, gap, seconds))
        return gap <= self.goal

    def _straighten(
        self, coef: np.ndarray, bias: float, dual: np.ndarray, scores: np.ndarray
    ) -> None:
        """Try the dual with its last digits corrected along the columns of huge scale."""
        problem, loss = self.problem, self.problem.loss
        box = box_of(loss, self.cost)
        straight = straighten_dual(
            self.features, problem.y, box, problem.free_bias, self.features.from_coef(coef), dual
        )
        if straight is None:
            return
        value = certify(problem, coef, bias, straight, tol=self.tol, scores=scores).dual
        if value > self.best.dual_value:
            self.best.dual, self.best.dual_value = straight, value

    def solution(self) -> Solution:
        """The best points with their certificate."""
        best = self.best
        status = Status.TIME_LIMIT if time.monotonic() >= self.deadline else Status.MAX_ITER
        gap = self._gap()
        return Solution(
            dual=best.dual,
            certificate=Certificate(
                primal=best.primal,
                dual=best.dual_value,
                gap=gap,
                status=Status.OPTIMAL if gap <= self.tol else status,
                tol=self.tol,
                zero_primal=self.zero_primal,
            ),
            n_iter=max(1, self.n_iter),
            coef=best.coef,
            intercept=best.intercept,
        )

    def _gap(self) -> float:
        return relative_gap(self.best.primal, self.best.dual_value, self.zero_primal)

    def _certified(self) -> bool:
        return self._gap() <= self.tol

    def _curve(self) -> SmoothCurve | None:
        """The smooth losses as Newton sees them; None for those with a box dual."""
        name = self.problem.loss.name
        kinds: dict[str, type[SmoothCurve]] = {
            "squared_hinge": SquaredHinge,
            "squared": Squared,
            "logistic": Logistic,
        }
        return kinds[name](self.cost) if name in kinds else None

    def _cost_at(self, residual: np.ndarray) -> float:
        problem = self.problem
        return problem.loss.value(residual, problem.C, problem.sample_weight)

    def _descent_suits(self) -> bool:
        dual = self.problem.loss.slack is not None
        return dual and self.features.sparse and min(self.features.shape) > _DESCENT_SIDE

    def _span(self) -> _Span | None:
        n, p = self.features.n, self.features.p
        if self.features.sparse or n > _LARGEST_SPAN:
            return None
        if _SPAN_RATIO * n > p or self.features.large_columns.size:
            return None
        return _Span.of(self.features)

    def _from_dual(self, dual: np.ndarray) -> PrimalDual:
        """A starting point from the dual variables of another fit."""
        problem = self.problem
        dual = problem.loss.clip_dual(dual, problem.C, problem.sample_weight)
        total = float(problem.y @ dual)
        bias = total / self.precision if 0 < self.precision < np.inf else 0.0
        return PrimalDual(self.features.rmatvec(problem.y * dual), bias, dual)

    def _incumbent(self) -> PrimalDual:
        best = self.best
        return PrimalDual(self.features.from_coef(best.coef), best.intercept, best.dual)


class _Whole:
    """The features as they are."""

    def __init__(self, features: Design) -> None:
        self.features = features

    def to_full(self, point: PrimalDual) -> PrimalDual:
        """The same point."""
        return point


class _Span:
    """The features rotated into the span of the examples: n x n instead of n x p.

    A A' = L L', so A = L Q' with orthonormal Q, and u = Q z has the scores L z and the norm of z.
    """

    def __init__(self, full: Design, lower: np.ndarray) -> None:
        self.full = full
        self.lower = lower
        self.features = design_of(lower)

    @classmethod
    def of(cls, features: Design) -> _Span | None:
        """None where the examples are so dependent that no factor exists."""
        rows = np.arange(features.n)
        if features.n * features.p <= _SMALL_ENTRIES:
            factor = scipy.linalg.qr(features.dense_rows(rows).T, mode="r", check_finite=False)[0]
            lower = factor[: features.n].T
            diagonal = np.abs(np.diagonal(lower))
            return None if diagonal.min() <= 1e-13 * diagonal.max() else cls(features, lower)
        try:
            lower = scipy.linalg.cholesky(features.rows_gram(rows), lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None
        return cls(features, lower)

    def to_full(self, point: PrimalDual) -> PrimalDual:
        """Return u = Q z = A' L^-T z."""
        beta = scipy.linalg.solve_triangular(self.lower, point.u, lower=True, trans="T")
        return PrimalDual(self.full.rmatvec(beta), point.bias, point.dual)

    def from_full(self, point: PrimalDual) -> PrimalDual:
        """Return z = Q' u, from the scores A u = L z."""
        z = scipy.linalg.solve_triangular(self.lower, self.full.matvec(point.u), lower=True)
        return PrimalDual(z, point.bias, point.dual)
