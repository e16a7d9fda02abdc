"""Single fits of the hinge and the absolute loss, which are linear programmes.

        minimise_{w, b}   sum_j u_j |w_j| + C sum_i c_i (1 - y_i (x_i'w + b))_+

Vertices are moved by the pivots of the path, but neither through all of it nor on all of X:

- rows: a problem with many examples is solved for a part of them first (weighted up, so that
  lambda keeps its meaning).  The rows at margin 1 and the columns in use of that solution are a
  vertex of the next larger problem, not far from its optimum; `Engine.mend` goes there.
- columns: only a part takes part, those on which the duals pull the most.  Columns beyond their
  bound join, until there are none: then the solution is that of the whole problem.

The first, smallest problem is solved along the path from w = 0 to lambda = 1/C.  Given duals of a
nearby problem, their vertex takes the place of all that.  A hundred pivots count as one iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.one_norm.engine import STRENGTHS, Engine
from anynorm.solvers.one_norm.state import (
    CONSTANT,
    ENDED,
    LAMBDA,
    LEAST_PENALTY,
    PENALTY,
    STUCK,
)

_FEW_ROWS = 600  # the smallest part
_GROWTH = 4  # from one part of the rows to the next
PIVOTS_PER_ITERATION = 100  # of `max_iter`: a pivot is far less work than other methods' steps
_FEW_COLUMNS, _MOST_COLUMNS = 400, 1000  # of the first programme; the former may join at once
_AT_BOUND = 1e-7  # relative: duals and pulls of a start that are at their bounds
_BEYOND = 1e-9  # relative: pulls beyond their bounds by more ask for their column


class Vertex(NamedTuple):
    """Rows at margin 1 and columns in use, as places in the whole problem; p is the bias."""

    rows: np.ndarray
    columns: np.ndarray


def solve_linear_programme(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    seed: int,
    start: np.ndarray | None,
    progress: Callable[[Progress], None] | None,
) -> Solution:
    """Solve one problem of the hinge or the absolute loss; see `solve_one_norm`."""
    budget = Budget(max_iter * PIVOTS_PER_ITERATION, deadline)
    search = VertexSearch(Incumbent(problem, tol, budget, progress), problem, seed)
    vertex = None if start is None else vertex_of(problem, start)
    if vertex is not None:
        search.attempt(0, vertex)
    for attempt in range(len(STRENGTHS)):
        if search.best.reached or not budget.goes_on():
            break
        search.attempt(attempt)
    return search.solution()


def suits_vertices(problem: Problem, **_: Any) -> bool:
    """Whether the problem is a linear programme: a squared slack has a box for its duals too."""
    box = problem.dual_set
    return isinstance(box, Box) and not box.shift.any()


def vertex_of(problem: Problem, dual: np.ndarray) -> Vertex | None:
    """The vertex that has these duals, None where they do not tell.

    Its rows have duals inside their bounds, its columns have pulls at theirs, whatever C was.
    """
    cost, weights, p = problem.row_weights(), _penalties(problem), problem.n_coefs
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = np.where(cost > 0, np.abs(dual) / cost, 0.0)
        pulls = np.abs(problem.design.rmatvec(problem.y * dual)) / weights
    at_bound = (pulls >= 1 - _AT_BOUND) | (weights == 0)
    columns = np.flatnonzero(at_bound)
    if problem.free_bias:
        columns = np.append(columns, p)
    elif problem.bias_feature:
        pull = abs(problem.bias_feature * float(problem.y @ dual))
        columns = np.append(columns, [p] if pull >= 1 - _AT_BOUND else [])
    largest = shares.max()
    within = cost > 0 if problem.loss.signed else shares > _AT_BOUND * largest
    for top in (largest, np.inf):  # duals at the upper bound, or none
        rows = np.flatnonzero(within & (shares < (1 - _AT_BOUND) * top))
        if len(rows) == len(columns):
            return Vertex(rows, columns.astype(np.intp))
    return None


def _penalties(problem: Problem) -> np.ndarray:
    """The penalty weights, ones where there are none."""
    u = problem.penalty_weights
    return np.ones(problem.n_coefs) if u is None else u


class VertexSearch:
    """One fit: parts of the problem, larger and larger, and the best certified point so far.

    The budget is one of pivots.
    """

    def __init__(self, best: Incumbent, problem: Problem, seed: int) -> None:
        self.problem, self.seed = problem, seed
        self.best, self.budget = best, best.budget
        self.cost = problem.row_weights()
        self.weights = _penalties(problem)
        self._offer_point(np.zeros(problem.n_coefs), np.zeros(problem.n_rows))

    def attempt(self, attempt: int, vertex: Vertex | None = None) -> None:
        """Solve part after part up to the whole problem, or that alone from a given vertex."""
        parts = self._parts() if vertex is None else self._parts()[-1:]
        columns = self._first_columns(parts[0])
        if vertex is not None:
            columns = np.union1d(columns, vertex.columns[vertex.columns < self.problem.n_coefs])
        for rows in parts:
            while True:
                engine = self._engine(rows, columns, attempt)
                code = self._solve(engine, rows, columns, vertex)
                if code == STUCK or not self.budget.goes_on():
                    self._offer(engine, rows, columns)
                    return
                names = np.append(columns, self.problem.n_coefs)
                vertex = Vertex(rows[engine.rows], names[engine.columns])
                missed = self._missed(rows, engine.betas(), columns)
                if not missed.size:
                    break
                columns = np.union1d(columns, missed)
        self._offer(engine, rows, columns)

    def _parts(self) -> list[np.ndarray]:
        """Random rows, a few of each class, and more and more of them; rows of weight 0 are out."""
        rng = np.random.default_rng(self.seed)
        rows = np.flatnonzero(self.cost > 0)
        order = rng.permutation(rows)
        # Every part has the classes in their proportion.
        rank = np.empty(len(order))
        for label in (-1.0, 1.0):
            own = self.problem.y[order] == label
            rank[own] = (np.arange(own.sum()) + 0.5) / max(1, own.sum())
        order = order[np.argsort(rank, kind="stable")]
        sizes = [len(rows)]
        while sizes[-1] > _GROWTH * _FEW_ROWS:
            sizes.append(sizes[-1] // _GROWTH)
        return [np.sort(order[:size]) for size in reversed(sizes)]

    def _penalty(self, rows: np.ndarray) -> float:
        """Lambda for a part: larger where there are more columns than rows.

        Chance pulls at columns of noise by the root of the rows' number.  Weighted up, a part has
        more of that than the whole, and would take in many such columns.
        """
        noise = np.count_nonzero(self.cost) / len(rows) if len(rows) < self.problem.n_coefs else 1.0
        return float(np.sqrt(noise) / self.problem.C)

    def _engine(self, rows: np.ndarray, columns: np.ndarray, attempt: int) -> Engine:
        problem = self.problem
        cost = self.cost[rows] * (self.cost.sum() / self.cost[rows].sum())
        part = replace(
            problem,
            X=problem.design.take(rows, columns),
            y=problem.y[rows],
            sample_weight=cost,
            penalty_weights=self.weights[columns],
        )
        engine = Engine(part, attempt, self.budget)
        engine.scalar[LEAST_PENALTY] = self._penalty(rows)
        return engine

    def _solve(
        self, engine: Engine, rows: np.ndarray, columns: np.ndarray, vertex: Vertex | None
    ) -> int:
        if vertex is not None:
            slots = np.searchsorted(columns, vertex.columns)
            slots[vertex.columns == self.problem.n_coefs] = len(columns)
            if engine.place(np.searchsorted(rows, vertex.rows), slots, self._penalty(rows)):
                return engine.mend()
        engine.start()
        engine.free_columns()
        engine.from_the_top()
        code = engine.run()
        if code in (ENDED, PENALTY):
            engine.scalar[LAMBDA] = self._penalty(rows)
            engine.refresh()
        return code

    def _first_columns(self, rows: np.ndarray) -> np.ndarray:
        """The columns on which the duals of the bias alone pull the most."""
        problem = self.problem
        usable = np.flatnonzero(np.isfinite(self.weights))
        most = min(max(_FEW_COLUMNS, 2 * len(rows)), _MOST_COLUMNS)
        if len(usable) <= 2 * most:
            return usable
        y, cost = problem.y[rows], self.cost[rows]
        up, down = cost[y > 0].sum(), cost[y < 0].sum()
        share = np.where(y > 0, min(1.0, down / max(up, 1e-300)), min(1.0, up / max(down, 1e-300)))
        pull = np.abs(problem.design.rmatvec(y * cost * share, rows=rows))[usable]
        with np.errstate(divide="ignore"):
            pull = np.where(self.weights[usable] > 0, pull / self.weights[usable], np.inf)
        return np.sort(usable[np.argpartition(-pull, most)[:most]])

    def _missed(self, rows: np.ndarray, beta: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Columns that are beyond their bounds, those that are most so."""
        problem = self.problem
        if len(columns) == problem.n_coefs:
            return columns[:0]
        bound = self._penalty(rows) * self.weights
        with np.errstate(invalid="ignore"):
            excess = np.abs(problem.design.rmatvec(beta, rows=rows)) - (1 + _BEYOND) * bound
        excess[columns] = -np.inf
        excess[~np.isfinite(self.weights)] = -np.inf
        beyond = np.flatnonzero(excess > 0)
        most = max(_FEW_COLUMNS, len(columns) // 4)
        if len(beyond) > most:
            beyond = beyond[np.argpartition(-excess[beyond], most)[:most]]
        return beyond

    def _offer(self, engine: Engine, rows: np.ndarray, columns: np.ndarray) -> None:
        """Certify the engine's vertex for the whole problem; keep it if it is better."""
        problem = self.problem
        coef, dual = np.zeros(problem.n_coefs + 1), np.zeros(problem.n_rows)
        coef[np.append(columns, problem.n_coefs)[engine.columns]] = engine.coefs()
        dual[rows] = problem.y[rows] * engine.betas()
        self._offer_point(coef[:-1], dual, float(coef[-1] * engine.scalar[CONSTANT]))

    def _offer_point(self, coef: np.ndarray, dual: np.ndarray, bias: float = 0.0) -> None:
        """Certify a point, its dual for C = 1."""
        problem = self.problem
        scores = problem.scores(coef)
        bias = problem.best_bias(scores) if problem.free_bias else bias
        dual = problem.C * dual
        values = problem.values(coef, bias, dual, scores=scores)
        self.best.replace(values, (coef, float(bias), dual))

    def solution(self) -> Solution:
        """The best point with its certificate."""
        coef, bias, dual = self.best.primal_point
        n_iter = max(1, -(-self.budget.n_iter // PIVOTS_PER_ITERATION))
        return Solution(dual, self.best.certificate(), n_iter, coef, bias)
