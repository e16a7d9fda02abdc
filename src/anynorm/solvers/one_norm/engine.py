"""The pivots kept going: data in general position, room for the basis, refreshes, time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from anynorm.problem import Problem
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.one_norm.basis import Basis
from anynorm.solvers.one_norm.knots import KnotStore, PathLimits, true_coefs
from anynorm.solvers.one_norm.pivots import GROW, MORE, REFRESH, STORE, STUCK, advance
from anynorm.solvers.one_norm.state import ABOVE, BELOW, TIGHT, Data, State, refresh

END_SHARE = 1e-9  # of the largest lambda: events below it are rounding
STRENGTHS = (1.0, 0.1, 10.0)  # of the change to general position, one per attempt

_TARGETS = 1e-10  # general position: how far the data are changed, relative to themselves
_COSTS = 1e-10  # of each cost
_SLACKS = 1e-12  # of the largest pull that a column can have
_WORK, _PIVOTS = 3e7, 10**6  # after so many operations or pivots compiled code comes back
_FIRST_CAPACITY = 64  # of the basis and the knots, which are doubled when they are full
_PATIENCE = 50  # pivots per row and column of the basis without any progress


class Engine:
    """A vertex of the problem and the pivots that move it.

    Parameters
    ----------
    problem : Problem
        With the 1-norm regulariser; the hinge or the absolute loss.
    attempt : int
        Which of the random changes to general position to take.
    budget : Budget
        Of pivots.
    """

    def __init__(self, problem: Problem, attempt: int, budget: Budget) -> None:
        n, p = problem.design.shape
        self.problem, self.n, self.p, self.budget = problem, n, p, budget
        self.X = problem.design.row_access()
        self.data = general_position(problem, attempt)
        self.basis = empty_basis(min(_FIRST_CAPACITY, min(n, p) + 2), n)
        self.state = State(
            side=np.zeros(n, np.int8),
            used=np.zeros(p + 1, np.bool_),
            residual=np.zeros(n),
            pull=np.zeros(p + 1),
            rate=np.zeros(p + 1),
            fixed=np.zeros(p + 1),
            clock=np.zeros(4),
        )
        self.knots = empty_knots(_FIRST_CAPACITY, n)
        self.limits = PathLimits(
            features=p,
            knots=np.iinfo(np.int64).max,
            s=np.inf,
            penalty=0.0,
            end=0.0,
            zero_primal=float(problem.zero_primal() / problem.C),
            record=False,
        )

    @property
    def n_pivots(self) -> int:
        """The pivots made so far."""
        return int(self.state.clock[3])

    def start(self) -> None:
        """Begin with the best bias alone: one row at margin 1, all others above or below."""
        data, state = self.data, self.state
        if not data.free[-1]:
            state.side[:] = ABOVE
            return
        order = np.argsort(data.y * data.target)
        up = data.y[order] > 0
        # As the bias rises past a row, the sum of beta falls by the width of the row's box.
        total = np.where(data.y > 0, data.cost, -data.low).sum()
        total -= np.cumsum((data.cost - data.low)[order])
        k = min(int(np.searchsorted(-total, 0.0)), self.n - 1)
        state.side[order] = np.where(up == (np.arange(self.n) > k), ABOVE, BELOW)
        state.side[order[k]] = TIGHT
        basis = self.basis
        basis.length[0], basis.rows[0], basis.cols[0] = 1, order[k], len(data.weight) - 1
        basis.columns[0] = data.constant
        state.used[-1] = True

    @property
    def rows(self) -> np.ndarray:
        """E: the rows at margin 1."""
        return np.asarray(self.basis.rows[: self.basis.length[0]])

    @property
    def columns(self) -> np.ndarray:
        """V: the columns in use; p is the bias."""
        return np.asarray(self.basis.cols[: self.basis.length[0]])

    def coefs(self) -> np.ndarray:
        """The true coefficients of V."""
        return np.asarray(true_coefs(self.data, self.basis))

    def betas(self) -> np.ndarray:
        """Beta = y a with the true costs, at the present lambda."""
        data, state, m = self.data, self.state, self.basis.length[0]
        beta = data.y * np.where(state.side == ABOVE, data.true_cost, data.true_low)
        weights = np.where(data.free, 0.0, data.weight)[self.columns]
        goal = state.clock[0] * self.basis.sign[:m] * weights - state.fixed[self.columns]
        beta[self.rows] = self.basis.inverse[:m, :m].T @ goal
        return beta

    def from_the_top(self, least: float = 0.0) -> None:
        """Set lambda to where the first column enters; a share `least` of that ends the path."""
        self.refresh()
        data, state = self.data, self.state
        open_ = ~state.used & np.isfinite(data.weight) & ~data.free
        pulls = (np.abs(state.pull) - data.slack)[open_] / data.weight[open_]
        top = max(float(pulls.max(initial=0.0)), 0.0)
        state.clock[0] = top * (1 + 1e-9)
        # Columns of small scale have their events at small lambdas.
        scales = data.size[open_] / data.weight[open_]
        scale = float(scales.min(initial=np.inf)) * float(np.linalg.norm(data.true_cost))
        self.limits = self.limits._replace(end=least * min(top, scale))

    def free_columns(self) -> None:
        """Bring in the columns that are never penalised, on a path of their own."""
        data, limits = self.data, self.limits
        columns = data.free & (np.arange(len(data.free)) < self.p)
        if not columns.any():
            return
        own = np.where(columns, 1.0, np.inf)
        own[-1] = 0.0 if data.free[-1] else np.inf
        self.data = data._replace(weight=own, free=own == 0.0)
        self.limits = limits._replace(penalty=0.0)
        self.from_the_top(END_SHARE)
        self.run()
        self.data, self.limits = data, limits
        self.basis.sign[:] = 0.0

    def place(self, rows: np.ndarray, columns: np.ndarray, lam: float) -> bool:
        """Begin at the vertex with these rows at margin 1 and these columns (p is the bias).

        Signs and sides are those that the vertex has, so it is a point of the problem like any
        other; its duals may be out of their bounds.
        """
        data, state, m = self.data, self.state, len(rows)
        while len(self.basis.rows) <= m:
            self.basis = _larger_basis(self.basis)
        basis = self.basis
        basis.length[0], basis.rows[:m], basis.cols[:m] = m, rows, columns
        features = columns < self.p
        basis.columns[:m][~features] = data.constant
        basis.columns[:m][features] = self.problem.design.dense_columns(columns[features]).T
        basis.sign[:m] = 1.0
        state.clock[0] = lam
        state.used[columns] = True
        if not self.refresh():
            return False
        basis.sign[:m] = np.where(data.free[columns], 0.0, np.where(basis.coef[:m] < 0, -1.0, 1.0))
        state.side[:] = np.where(state.residual > 0, ABOVE, BELOW)
        state.side[rows] = TIGHT
        return self.refresh()

    def mend(self) -> int:
        """Move from any vertex to the optimal one at the present lambda.

        The bounds that the duals break are moved out to where they are, and then back again: a
        parametric problem, which ends with the true bounds.
        """
        data, state, m = self.data, self.state, self.basis.length[0]
        lam, rng = float(state.clock[0]), np.random.default_rng(0)
        rows = self.basis.rows[:m]
        a = data.y[rows] * self.basis.beta[:m]
        cost_rate, low_rate = np.zeros(self.n), np.zeros(self.n)
        # Each is moved by an amount of its own, so that no two meet their bounds at once.
        cost_rate[rows] = rng.uniform(1.01, 1.2, m) * np.maximum(a - data.cost[rows], 0.0)
        low_rate[rows] = rng.uniform(1.01, 1.2, m) * np.minimum(a - data.low[rows], 0.0)
        with np.errstate(invalid="ignore"):
            bound = np.where(data.free, 0.0, lam * data.weight) + data.slack
        excess = np.where(state.used, 0.0, np.maximum(np.abs(state.pull) - bound, 0.0))
        self.data = data._replace(
            cost_rate=cost_rate,
            low_rate=low_rate,
            slack=bound,
            weight=rng.uniform(1.01, 1.2, len(excess)) * excess,
        )
        limits = self.limits
        self.limits = limits._replace(end=0.0, penalty=0.0, record=False)
        state.clock[0] = 1.0
        sound = self.refresh()
        code = self.run() if sound else STUCK
        self.data, self.limits = data, limits
        state.clock[0] = lam
        return code if self.refresh() else STUCK

    def run(self, report: Callable[[], None] | None = None) -> int:
        """Pivot until there is a reason to stop; MORE when time or pivots are spent."""
        # At least one pivot of the largest basis, at most a few hundredths of a second.
        work = max(_WORK, 2.0 * (min(self.n, self.p) + 8) * (2 * self.n + self.p))
        quiet = 0
        while True:
            before = (self.state.clock[0], self.knots.lengths[0], self.state.clock[3])
            pivots = int(min(max(1, self.budget.left), _PIVOTS))
            parts = (self.X, self.data, self.basis, self.state, self.knots, self.limits)
            try:
                code = advance(*parts, pivots, work)
            except ZeroDivisionError:  # a pivot of zero: rows or columns that rounding made equal
                return STUCK
            self.budget.book(int(self.state.clock[3] - before[2]))
            if code == GROW:
                self.basis = _larger_basis(self.basis)
            elif code == STORE:
                self.knots = _larger_knots(self.knots)
            elif code == REFRESH:
                if not self.refresh():
                    return STUCK
            elif code != MORE:
                return int(code)
            moved = before[:2] != (self.state.clock[0], self.knots.lengths[0])
            quiet = 0 if moved else quiet + self.state.clock[3] - before[2]
            if quiet > _PATIENCE * (self.n + self.basis.length[0]):
                return STUCK
            if report is not None:
                report()
            if not self.budget.goes_on():
                return MORE

    def refresh(self) -> bool:
        """Everything from the sets alone; whether the basis is regular."""
        basis, m = self.basis, self.basis.length[0]
        matrix = basis.columns[:m, basis.rows[:m]].T
        try:
            basis.inverse[:m, :m] = np.linalg.inv(matrix)
        except np.linalg.LinAlgError:
            return False
        refresh(self.X, self.data, basis, self.state)
        return bool(np.isfinite(basis.coef[:m]).all() and np.isfinite(basis.beta[:m]).all())


def general_position(problem: Problem, attempt: int) -> Any:
    """The data for the loops, changed by random amounts; each attempt draws others."""
    n, p = problem.design.shape
    rng = np.random.default_rng(attempt)
    strength = STRENGTHS[attempt]

    def draw(count: int) -> np.ndarray:
        return strength * rng.uniform(0.5, 1.5, count)

    true_cost = np.ones(n) if problem.sample_weight is None else np.array(problem.sample_weight)
    cost = true_cost * (1 + _COSTS * draw(n))
    signed = problem.loss.signed
    size = np.sqrt(problem.design.column_norms_squared())
    constant, last = 1.0, (0.0 if problem.free_bias else np.inf)
    if problem.bias_feature:
        constant, last = problem.bias_feature, 1.0
    size = np.append(size, constant * np.sqrt(n))
    weights = problem.penalty_weights
    weight = np.append(np.ones(p) if weights is None else weights, last)
    weight[size == 0.0] = np.inf
    return Data(
        y=np.array(problem.y, dtype=np.float64),
        target=1.0 + _TARGETS * draw(n),
        cost=cost,
        low=-cost if signed else np.zeros(n),
        cost_rate=np.zeros(n),
        low_rate=np.zeros(n),
        true_cost=true_cost,
        true_low=-true_cost if signed else np.zeros(n),
        weight=weight,
        slack=_SLACKS * draw(p + 1) * size * float(np.linalg.norm(true_cost)),
        free=weight == 0.0,
        size=size,
        constant=float(constant),
    )


def empty_basis(capacity: int, n: int) -> Any:
    """A basis without rows and columns, with room for some."""
    return Basis(
        length=np.zeros(1, np.int64),
        rows=np.zeros(capacity, np.int64),
        cols=np.zeros(capacity, np.int64),
        sign=np.zeros(capacity),
        inverse=np.zeros((capacity, capacity)),
        columns=np.zeros((capacity, n)),
        coef=np.zeros(capacity),
        beta=np.zeros(capacity),
    )


def _larger_basis(basis: Any) -> Any:
    larger = empty_basis(2 * len(basis.rows), basis.columns.shape[1])
    for old, new in zip(basis, larger, strict=True):
        new[tuple(slice(length) for length in old.shape)] = old
    return larger


def empty_knots(capacity: int, n: int) -> Any:
    """No knots, with room for some."""
    coefs, duals = 64 * capacity, 64 * capacity + 4 * n
    return KnotStore(
        lengths=np.zeros(3, np.int64),
        s=np.zeros(capacity),
        penalty=np.zeros(capacity),
        loss=np.zeros(capacity),
        dual=np.zeros(capacity),
        gap=np.zeros(capacity),
        bias=np.zeros(capacity),
        coef_end=np.zeros(capacity, np.int64),
        coef_column=np.zeros(coefs, np.int64),
        coef_value=np.zeros(coefs),
        dual_end=np.zeros(capacity, np.int64),
        dual_row=np.zeros(duals, np.int64),
        dual_value=np.zeros(duals),
    )


def _larger_knots(knots: Any) -> Any:
    """Twice the room of each kind."""
    room = {
        name: np.concatenate([array, np.zeros_like(array)])
        for name, array in knots._asdict().items()
        if name != "lengths"
    }
    return knots._replace(**room)
