"""The walk where X is dense and has few rows or few columns, or is sparse and small.

As in `walk`, but the columns still in use lie one after the other in memory, so that the columns to
drop are found in one pass, and taking out the others is cheap.  A round with fewer columns than
rows is solved by `column_newton`, others by their dual over the rows, whose matrix X V^2 X' is made
from the columns in use (`few_rows`).  Sparse columns stay sparse: there, coordinate descent over
the rows (`sparse_rows`) comes first unless very few are left.  A round that this misses is handed
to `solve_linear`.

Walks for ascending C share X X' and start from each other.  As far as the rounds of the last C
are good enough for the next one, they are handed out again, and the walk goes on from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from anynorm.problem import Problem
from anynorm.problem.certificate import (
    Certificate,
    certify,
    relative_gap,
)
from anynorm.problem.solution import Progress, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.column_newton import MOST_IN_WALK, ColumnNewton
from anynorm.solvers.linear.few_rows import (
    ROWS_PER_COLUMN,
    FewRows,
    RowsDual,
    weighted_gram,
)
from anynorm.solvers.linear.pruning import (
    GENEROSITY,
    Allowance,
    fading,
    less_generous,
    take_back,
)
from anynorm.solvers.linear.rounds import Round, best_scale, carried_over
from anynorm.solvers.linear.solve import few_columns_pay, solve_linear
from anynorm.solvers.linear.sparse_rows import (
    EPOCHS_BEFORE_NEWTON,
    EPOCHS_BEFORE_OTHERS,
    MOST_EPOCHS,
    MOST_MADE_DENSE,
    MOST_SPARSE_COLUMNS,
    RowDescent,
    SparseBlock,
    SparseRows,
)

_FIRST_GOAL = 0.7  # of the gap: descent sees it at each row's turn, and it is certified afterwards
_NEXT_GOAL = 0.3  # of what descent saw where that misled


@dataclass(frozen=True)
class WalkLimits:
    """When a walk ends: the rounds, the gap of each, and the iterations and the time for them.

    With `exact`, rounds are solved as single fits are, to the last digit where they are small; the
    methods that do so begin where the walk's own have come to.
    """

    n_rounds: int
    prune: bool
    tol: float
    max_iter: int
    deadline: float | None
    seed: int
    exact: bool

    def budget(self) -> Budget:
        """What one round may spend."""
        return Budget(self.max_iter, self.deadline)


def walk_dense(
    problem: Problem,
    rows: FewRows | SparseRows,
    limits: WalkLimits,
    start: np.ndarray | None,
    progress: Callable[[Progress], None] | None,
) -> list[Round]:
    """The rounds of one walk; `rows` holds the X of `problem`."""
    path = _DenseWalk(problem, rows, limits, progress)
    path.start(start)
    return path.all()


def walk_dense_over_C(
    problem: Problem,
    Cs: Sequence[float],
    rows: FewRows | SparseRows,
    limits: WalkLimits,
    progress: Callable[[Progress], None] | None,
) -> Iterator[list[Round]]:
    """The walks for ascending C, one after the other."""
    rounds: list[Round] = []
    stiff = False
    for C in Cs:
        at = replace(problem, C=float(C))
        known = carried_over(rounds, at)
        if len(known) < limits.n_rounds:
            path = _DenseWalk(at, rows, limits, progress)
            path.stiff = stiff
            if len(known) > 1:
                path.go_on_from(known[-1])
            elif rounds:
                known = []
                path.start_at(rounds[0])
            known, stiff = path.all(known), path.stiff
        rounds = known
        yield rounds


class _Found(NamedTuple):
    """Coefficients of the columns in use, bias, scores, and the values of the round.

    The certificate is there where others have solved the round.
    """

    coef: np.ndarray
    intercept: float
    scores: np.ndarray
    primal: float
    dual: float
    certificate: Certificate | None = None


class _DenseWalk:
    """Where the walk is: the columns in use with their weights, and the model they come from."""

    def __init__(
        self,
        problem: Problem,
        rows: FewRows | SparseRows,
        limits: WalkLimits,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.problem, self.rows, self.limits, self.progress = problem, rows, limits, progress
        self.one_norm = replace(problem, regulariser="l1", feature_scale=None)
        self.dual = RowsDual.of(problem)
        self.newton = ColumnNewton(self.dual, problem.row_weights())
        self.descent = None
        if isinstance(rows, SparseRows):
            self.descent = RowDescent(self.dual, rows.orders)
        self.stiff = False  # whether descent has failed where Newton's method does not
        self.stayed = False  # whether the last round ended, at its gap, where it began
        self.time, self.n_iter = limits.budget(), 0
        self.generosity = GENEROSITY
        self.bias_size = problem.bias_feature
        self.used, self.columns = np.arange(problem.n_coefs), rows.every
        self.weights: np.ndarray | None = None
        n = problem.n_rows
        self.beta: np.ndarray | None = None  # and X'beta, for the columns in use
        self.pulled = np.zeros(len(self.used))
        self.known_beta, self.known_pull = np.zeros(n), np.zeros(problem.n_coefs)
        self.known_largest = 0.0
        self.coef, self.intercept, self.scores = np.zeros(len(self.used)), 0.0, np.zeros(n)
        if problem.feature_scale is not None:
            self._use(np.flatnonzero(problem.feature_scale))
            self.weights = problem.feature_scale[self.used] ** 2

    def start(self, dual: np.ndarray | None) -> None:
        """Start from dual variables, or from nothing."""
        if dual is not None:
            self.beta = self.dual.allowed(self.problem.y * dual)
            if self.columns.sparse or self._by_columns():
                self.pulled = self.columns.pull(self.beta)
                self.coef = self.pulled if self.weights is None else self.weights * self.pulled
                self.scores = self.columns.scores(self.coef)

    def start_at(self, known: Round) -> None:
        """Start from the same round with a smaller C: what was at its bound goes to the new one."""
        assert known.coef is not None
        self.coef, self.intercept, self.scores = (
            known.coef[self.used],
            known.intercept,
            known.scores,
        )
        beta = self.problem.y * known.dual
        if self._by_columns():
            smaller = RowsDual.of(replace(self.problem, C=known.one_norm.C)).box
            scaled = best_scale(known, self.problem)[0] * beta
            for before, now in zip(smaller[:2], self.dual.box[:2], strict=True):
                scaled = np.where(beta == before, now, scaled)
            self.beta = scaled
        else:
            self.beta = self.dual.allowed(beta)
            if self.columns.sparse:
                self.pulled = self.columns.pull(self.beta)

    def go_on_from(self, known: Round) -> None:
        """Go on from a round, not the first, of this problem."""
        assert known.coef is not None
        self._use(np.flatnonzero(known.feature_scale))
        self.weights = known.feature_scale[self.used] ** 2
        self.coef, self.intercept = known.coef[self.used], known.intercept
        self.scores, self.beta = known.scores, self.problem.y * known.dual
        self.pulled = self.columns.pull(self.beta)

    def all(self, known: Sequence[Round] = ()) -> list[Round]:
        """All rounds, the first ones of which may be known."""
        rounds = list(known) or [self._first()]
        while len(rounds) < self.limits.n_rounds:
            late = not self.time.in_time() and rounds[-1].certificate.status is Status.TIME_LIMIT
            rounds.append(replace(rounds[-1], n_iter=0) if late else self._next(rounds[-1]))
        return rounds

    def _first(self) -> Round:
        """The 2-norm problem."""
        found, n_iter = self._solve()
        self._know(self._spread(self.pulled) if self.weights is not None else self.pulled)
        return self._accept(found, n_iter)

    def _next(self, last: Round) -> Round:
        """One more round with the weights of the last."""
        before = self._objective(self.coef, self.intercept, self.scores)
        missed = self._reweight()
        if self.stayed and not missed:  # with the weights that it had: the same problem
            return replace(last, n_iter=0)
        here = self._here()
        if not self.time.in_time():
            return self._record(0)
        found, n_iter = self._solve()
        if missed and self._objective(found.coef, found.intercept, found.scores) > before:
            # What came back did not pay: without it the objective cannot rise.
            self.generosity = less_generous(self.generosity, self.limits.tol)
            self._leave_out()
            found, n_iter = self._solve()
        no_better = found.primal > here  # than where it began
        same = found.intercept == self.intercept and np.array_equal(found.coef, self.coef)
        more = self._record(n_iter) if no_better else self._accept(found, n_iter)
        optimal = more.certificate.status is Status.OPTIMAL
        self.stayed = (no_better or same) and optimal and not missed
        return more

    def _accept(self, found: _Found, n_iter: int) -> Round:
        self.coef, self.intercept, self.scores = found.coef, found.intercept, found.scores
        if self.progress is not None:
            gap = relative_gap(found.primal, found.dual)
            self._report(Progress(0, found.primal, found.dual, gap, 0.0))
        return self._record(n_iter, found.scores, found.certificate)

    def _record(
        self,
        n_iter: int,
        scores: np.ndarray | None = None,
        certificate: Certificate | None = None,
    ) -> Round:
        """The round as it is handed out: certified, and with all columns.

        `scores` are those of the coefficients where they have just been computed.
        """
        assert self.beta is not None
        inner, dual = self._inner(), self.dual.y * self.beta
        scale = np.ones(len(self.used)) if self.weights is None else np.sqrt(self.weights)
        return Round(
            coef=self._spread(self.coef),
            intercept=self.intercept,
            dual=dual,
            scores=self.scores,
            certificate=certificate or self._certificate(inner, dual, scores),
            n_iter=n_iter,
            feature_scale=self._spread(scale),
            one_norm=self.one_norm,
        )

    def _inner(self) -> Problem:
        """The round's 2-norm problem, on the columns in use."""
        every = len(self.used) == self.problem.n_coefs
        X: Any = self.problem.design if every else self.columns.X
        scale = None if self.weights is None else np.sqrt(self.weights)
        bias: Any = "free" if self.dual.free else self.bias_size or None
        return self.problem.on_columns(X, scale, bias)

    def _certificate(
        self, inner: Problem, dual: np.ndarray, scores: np.ndarray | None
    ) -> Certificate:
        point = self.coef, self.intercept, dual
        tol, stopped = self.limits.tol, self.time.stopped
        return certify(inner, *point, tol=tol, stopped=stopped, scores=scores)

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """Values of the columns in use, with zeros for all others."""
        out = np.zeros(self.problem.n_coefs)
        out[self.used] = values
        return out

    # ------------------------------------------------------------ values

    def _loss(self, scores: np.ndarray, bias: float) -> float:
        return self.dual.loss(scores, bias)

    def _best_bias(self, scores: np.ndarray) -> float:
        problem = self.problem
        if not problem.loss.smooth:
            return self.dual.middle_bias(scores)
        return problem.best_bias(scores)

    def _objective(self, coef: np.ndarray, bias: float, scores: np.ndarray) -> float:
        """The 1-norm objective."""
        return self._norm(coef, bias) + self._loss(scores, bias)

    def _norm(self, coef: np.ndarray, bias: float) -> float:
        size = self.problem.bias_feature
        return float(np.abs(coef).sum()) + (abs(bias / size) if size else 0.0)

    def _here(self) -> float:
        """The round's objective at the model so far: its weights come from there."""
        norm = self._norm(self.coef, self.intercept)
        return 0.5 * norm + self._loss(self.scores, self.intercept)

    def _reached(self, found: _Found) -> bool:
        """Whether the gap of the round is small enough."""
        gap = relative_gap(found.primal, max(found.dual, 0.0))
        return abs(gap) <= self.limits.tol

    # ------------------------------------------------------------ one round

    def _few_columns(self) -> bool:
        """Whether the columns in use are few, and far fewer than the rows."""
        return len(self.columns) <= min(MOST_IN_WALK, len(self.scores) // ROWS_PER_COLUMN)

    def _dense_pays(self) -> bool:
        """Whether the columns in use are dense, or so small that they are made dense."""
        size = len(self.columns) * len(self.scores)
        return not self.columns.sparse or size <= MOST_MADE_DENSE

    def _by_columns(self) -> bool:
        """Whether Newton's method over the columns comes first."""
        first = not self.columns.sparse or self.stiff or len(self.columns) <= MOST_SPARSE_COLUMNS
        return first and self._few_columns() and self._dense_pays()

    def _solve(self) -> tuple[_Found, int]:
        """Solve the round's problem on its smaller side, or else by the other methods."""
        budget, found = self.limits.budget(), None
        if not (self.limits.exact and (self.weights is None or self._same_again())):
            found = self._solve_itself(budget)
        if found is None or self.limits.exact or not self._reached(found):
            found, more = self._hand_over()
            budget.book(more)
        self.n_iter += budget.n_iter
        return found, budget.n_iter

    def _same_again(self) -> bool:
        """Whether the other methods would begin with what is done here."""
        problem, X = self.problem, self._inner().design
        return not problem.loss.smooth and few_columns_pay(X, problem.dual_set, self.limits.tol)

    def _solve_itself(self, budget: Budget) -> _Found | None:
        """Solve it by the walk's own methods."""
        if self._by_columns():
            return self._solve_columns(budget)
        if not self.columns.sparse:
            return self._solve_rows(budget)
        found = None if self.stiff and self._few_columns() else self._descend(budget)
        if self._few_columns() and not (found and self._reached(found)):
            # The next rounds, and those with a larger C, are no easier.
            self.stiff = True
            if self._dense_pays():
                found = self._solve_columns(budget)
        return found

    def _solve_columns(self, budget: Budget) -> _Found:
        """By Newton's method, from the model so far."""
        warm = self.beta is not None
        beta = np.zeros(len(self.scores)) if self.beta is None else self.beta
        root = np.ones(len(self.coef)) if self.weights is None else np.sqrt(self.weights)
        precision = 0.0 if self.dual.free else np.inf
        if self.bias_size:
            precision = 1.0 / self.bias_size**2
        coef, scores, self.beta, made = self.newton.solve(
            self.columns.table,
            root,
            (self.coef, self.intercept, self.scores, beta),
            precision=precision,
            warm=warm,
            tol=0.5 * self.limits.tol,
            budget=budget,
        )
        budget.book(made)
        self.pulled = self.columns.pull(self.beta)
        return self._found(coef, scores)

    def _solve_rows(self, budget: Budget) -> _Found:
        """By the dual over the rows."""
        beta, scores = self._start()
        rows = None if self.weights is None else self.dual.rows_to_move(beta, scores)
        # The variables that are likely to change first; where that does not do, all of them.
        for chosen in (None,) if rows is None else (rows, None):
            beta, made = self.dual.solve(
                self._matrix(chosen), chosen, beta, scores, tol=0.5 * self.limits.tol, budget=budget
            )
            budget.book(made)
            self.beta, self.pulled = beta, self.columns.pull(beta)
            coef = self.pulled if self.weights is None else self.weights * self.pulled
            found = self._found(coef, self.columns.scores(coef))
            if self._reached(found) or not budget.left:
                break
            scores = self._kernel_scores()
        return found

    def _descend(self, budget: Budget) -> _Found | None:
        """By coordinate descent over the rows."""
        assert isinstance(self.columns, SparseBlock)
        assert self.descent is not None
        beta, scores = self._start()
        bias = self._best_bias(scores) if self.dual.free else self.intercept
        root = None if self.weights is None else np.sqrt(self.weights)
        precision = 0.0 if self.dual.free else np.inf
        if self.bias_size:
            precision = 1.0 / self.bias_size**2
        most = MOST_EPOCHS
        if self._few_columns():
            most = EPOCHS_BEFORE_NEWTON if self._dense_pays() else EPOCHS_BEFORE_OTHERS
        self.descent.begin(self.columns, root, beta, bias, precision=precision, most=most)
        goal, found = _FIRST_GOAL * self.limits.tol, None
        while self.descent.go_on(goal, budget):
            self.beta = self.dual.allowed(self.descent.beta)
            self.pulled = self.columns.pull(self.beta)
            coef = self.pulled if self.weights is None else self.weights * self.pulled
            found = self._found(coef, self.columns.scores(coef))
            if self._reached(found):
                break
            # Rows were left out too early, or the gap seen on the way flattered.
            goal = _NEXT_GOAL * min(self.descent.gap, goal)
        return found

    def _start(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the round starts: beta and K beta."""
        if self.beta is None:
            return np.zeros(len(self.scores)), np.zeros(len(self.scores))
        if self.weights is None and isinstance(self.rows, FewRows):
            scores = self.rows.gram @ self.beta + self.bias_size**2 * float(self.beta.sum())
        else:
            scores = self._kernel_scores()
        t = self.dual.best_scale(self.beta, scores)
        return t * self.beta, t * scores

    def _kernel_scores(self) -> np.ndarray:
        """K beta: the scores that go with beta, with a regularised bias."""
        assert self.beta is not None
        pulled = self.pulled
        coef = pulled if self.weights is None else self.weights * pulled
        return self.columns.scores(coef) + self.bias_size**2 * float(self.beta.sum())

    def _matrix(self, rows: np.ndarray | None) -> np.ndarray:
        """The n x n matrix of the round, or its part for some rows."""
        if self.weights is None:
            assert isinstance(self.rows, FewRows)
            matrix = self.rows.gram.copy()
        else:
            matrix = weighted_gram(self.columns.table, self.weights, rows)
        if self.bias_size:
            matrix += self.bias_size**2
        return matrix

    def _found(self, coef: np.ndarray, scores: np.ndarray) -> _Found:
        """Coefficients with the best bias for them, and the values there and at beta."""
        assert self.beta is not None
        bias = self.bias_size**2 * float(self.beta.sum())
        if self.dual.free:
            bias = self._best_bias(scores)
        weights = np.ones(len(coef)) if self.weights is None else self.weights
        bias_square = (self.bias_size * float(self.beta.sum())) ** 2
        pulled_square = float((weights * self.pulled) @ self.pulled) + bias_square
        dual = self.dual.gain(self.beta) - 0.5 * pulled_square
        ratios = np.divide(coef, weights, where=weights > 0, out=np.zeros(len(coef)))
        square = float(coef @ ratios) + bias_square
        loss = self._loss(scores, bias)
        if loss > 0:
            margin, middle = self.dual.margin(self.beta, scores, bias)
            margin *= 1.0 - 1e-11  # so that rounding leaves no slack
            if 0 < margin < 1:
                # Scaled up until there is no slack: at no bound, this holds for every larger C.
                loss_left = self._loss(scores / margin, middle / margin)
                scaled = _Found(
                    coef / margin,
                    middle / margin,
                    scores / margin,
                    0.5 * square / margin**2 + loss_left,
                    dual,
                )
                if self._reached(scaled):
                    return scaled
        return _Found(coef, bias, scores, 0.5 * square + loss, dual)

    def _hand_over(self) -> tuple[_Found, int]:
        """The round's problem by the other methods, from the point found."""
        inner = self._inner()
        if not len(self.columns):
            nothing = np.zeros(self.problem.n_coefs)
            inner = replace(inner, X=self.problem.design, feature_scale=nothing)
        solution = solve_linear(
            inner,
            tol=self.limits.tol,
            max_iter=self.limits.max_iter,
            deadline=self.limits.deadline,
            seed=self.limits.seed,
            start=None if self.beta is None else self.dual.y * self.beta,
            progress=None if self.progress is None else self._report,
            exact=self.limits.exact,
        )
        assert solution.coef is not None
        self.beta = self.dual.y * solution.dual
        self.pulled = self.columns.pull(self.beta)
        coef = solution.coef[: len(self.columns)]
        known = solution.certificate
        found = coef, solution.intercept, self.columns.scores(coef), known.primal, known.dual, known
        return _Found(*found), solution.n_iter

    def _report(self, state: Progress) -> None:
        assert self.progress is not None
        iteration = self.n_iter + state.iteration
        self.progress(state._replace(iteration=iteration, seconds=self.time.seconds))

    # ------------------------------------------------------------ between two rounds

    def _reweight(self) -> bool:
        """Drop columns and set the next weights; whether columns were taken back."""
        if self.limits.prune:
            self._prune()
        missed = self._may_miss()
        if missed:
            weights = self._spread(np.abs(self.coef))
            missed = take_back(weights, self.known_pull, self.generosity).size > 0
        if missed:
            self._use(np.flatnonzero(weights))
            self.weights = weights[self.used]
        else:
            self._leave_out()
        size = self.problem.bias_feature
        if size:
            self.bias_size = size * math.sqrt(abs(self.intercept / size))
        return missed

    def _may_miss(self) -> bool:
        """Whether dropped columns may be missed; if so, X'beta is known for all columns."""
        assert self.beta is not None
        kept = np.count_nonzero(self.coef)
        if not self.limits.prune or self.generosity == 0 or not 0 < kept < self.problem.n_coefs:
            return False
        # |X_j'beta| is at most what it was plus ||x_j|| times the way of beta since.
        way = float(np.linalg.norm(self.beta - self.known_beta))
        if self.known_largest + self.rows.longest * way <= 1.0:
            return False
        self._know(self.rows.every.pull(self.beta))
        return True

    def _know(self, pull: np.ndarray) -> None:
        """Keep X'beta of all columns for the present beta."""
        assert self.beta is not None
        self.known_beta, self.known_pull = self.beta, pull
        self.known_largest = float(np.abs(pull).max(initial=0.0))

    def _leave_out(self) -> None:
        """Weights from the coefficients; columns without one are left out once they are many."""
        places = np.flatnonzero(self.coef)
        if len(places) < 0.9 * len(self.coef):  # a copy of the others pays
            self.used = self.used[places]
            self.newton.keep(places)
            self.columns = self.rows.take(self.used)
            self.coef, self.pulled = self.coef[places], self.pulled[places]
        self.weights = np.abs(self.coef)

    def _use(self, used: np.ndarray) -> None:
        """Use these columns, some of which may be new; X'beta is known for all."""
        self.coef, self.pulled = self._spread(self.coef)[used], self.known_pull[used]
        self.columns, self.used = self.rows.take(used), used
        self.newton.forget()

    def _prune(self) -> None:
        """Leave out columns as `pruning` allows."""
        nothing = np.zeros(len(self.scores))
        bias, empty = self.dual.empty_bias, self.dual.empty
        if not self.dual.free:
            bias, empty = self.intercept, self._loss(nothing, self.intercept)
        loss = self._loss(self.scores, self.intercept)
        if empty <= loss:
            self.coef, self.intercept, self.scores = np.zeros(len(self.coef)), bias, nothing
            return
        sizes = np.abs(self.coef)
        order = fading(sizes, self.weights)
        allowance = Allowance.of(sizes, loss, empty, 0.5 * self.limits.tol)
        model = self.coef, self.intercept, self.scores
        count, scores, margin, bias = self.dual.drop(
            self.columns, order, model, self._norm(self.coef, self.intercept), allowance
        )
        if count:
            coef = self.coef.copy()
            coef[order[:count]] = 0.0
            self.coef, self.intercept, self.scores = coef / margin, bias / margin, scores / margin
            if self.dual.free:
                self.intercept = self._best_bias(self.scores)
