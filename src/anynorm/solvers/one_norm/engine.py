"""The pivots kept going: data in general position, room for the basis, refreshes, time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from anynorm.design.addresses import list_of
from anynorm.design.machine_code import machine_code
from anynorm.design.row_access import stored_rows
from anynorm.problem import Problem
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.one_norm import knots, pivots
from anynorm.solvers.one_norm import state as at
from anynorm.solvers.one_norm.knots import ZERO

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

    Attributes
    ----------
    row, column, slot, member, scalar : ndarray
        The tables that `state` explains.
    inverse, block : ndarray
        The inverse of X[E, V], and X[:, V]'.
    record : (ndarray, ndarray, ndarray) or None
        The knots, coefficients and duals of a path; None while nothing is recorded.
    """

    def __init__(self, problem: Problem, attempt: int, budget: Budget) -> None:
        n, p = problem.design.shape
        self.problem, self.n, self.p, self.budget = problem, n, p, budget
        self.X, self._entries = stored_rows(problem.design.row_access(), at.FIRST_OF_X)
        self.row, self.column, constant = general_position(problem, attempt)
        capacity = min(_FIRST_CAPACITY, min(n, p) + 2)
        self.slot = np.zeros((len(at.SLOT_NAMES), capacity))
        self.member = np.zeros((len(at.MEMBER_NAMES), capacity), np.int64)
        self.inverse, self.block = np.zeros((capacity, capacity)), np.zeros((capacity, n))
        self.record: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
        self.scalar = np.zeros(len(at.SCALAR_NAMES))
        self.scalar[at.CONSTANT] = constant
        self.scalar[at.MOST_FEATURES] = p
        self.scalar[[at.MOST_KNOTS, at.MOST_S]] = np.inf
        self.scalar[at.ZERO_PRIMAL] = problem.zero_primal() / problem.C
        self._list_tables()

    @property
    def n_pivots(self) -> int:
        """The pivots made so far."""
        return int(self.scalar[at.PIVOTS])

    @property
    def length(self) -> int:
        """The number of rows and of columns in the basis."""
        return int(self.scalar[at.LENGTH])

    @property
    def rows(self) -> np.ndarray:
        """E: the rows at margin 1."""
        return self.member[at.ROW, : self.length]

    @property
    def columns(self) -> np.ndarray:
        """V: the columns in use; p is the bias."""
        return self.member[at.COLUMN, : self.length]

    def start(self) -> None:
        """Begin with the best bias alone: one row at margin 1, all others above or below."""
        y, side = self.row[at.Y], self.row[at.SIDE]
        if not self.column[at.FREE, -1]:
            side[:] = at.ABOVE
            return
        cost, low = self.row[at.COST], self.row[at.LOW]
        order = np.argsort(y * self.row[at.TARGET])
        up = y[order] > 0
        # As the bias rises past a row, the sum of beta falls by the width of the row's box.
        total = np.where(y > 0, cost, -low).sum()
        total -= np.cumsum((cost - low)[order])
        k = min(int(np.searchsorted(-total, 0.0)), self.n - 1)
        side[order] = np.where(up == (np.arange(self.n) > k), at.ABOVE, at.BELOW)
        side[order[k]] = at.TIGHT
        self.scalar[at.LENGTH] = 1
        self.member[at.ROW, 0], self.member[at.COLUMN, 0] = order[k], self.p
        self.block[0] = self.scalar[at.CONSTANT]
        self.column[at.USED, -1] = 1.0

    def coefs(self) -> np.ndarray:
        """The true coefficients of V."""
        inverse = self.inverse[: self.length, : self.length]
        coefs = inverse @ self.row[at.Y, self.rows]
        return np.where(np.abs(coefs) > ZERO * np.abs(inverse).sum(axis=1), coefs, 0.0)

    def betas(self) -> np.ndarray:
        """Beta = y a with the true costs, at the present lambda."""
        row = self.row
        above = row[at.SIDE] == at.ABOVE
        beta = row[at.Y] * np.where(above, row[at.TRUE_COST], row[at.TRUE_LOW])
        beta[self.rows] = self._tight_betas(self.scalar[at.LAMBDA])
        return beta

    def _tight_betas(self, lam: float) -> np.ndarray:
        """Beta of E with the true costs, at any lambda."""
        m, V = self.length, self.columns
        weights = np.where(self.column[at.FREE, V] > 0, 0.0, self.column[at.WEIGHT, V])
        goal = lam * self.slot[at.SIGN, :m] * weights - self.column[at.FIXED, V]
        return np.asarray(self.inverse[:m, :m].T @ goal)

    def from_the_top(self, least: float = 0.0) -> None:
        """Set lambda to where the first column enters; a share `least` of that ends the path."""
        self.refresh()
        column = self.column
        closed = (column[at.USED] > 0) | (column[at.FREE] > 0)
        open_ = column[:, np.isfinite(column[at.WEIGHT]) & ~closed]
        pulls = (np.abs(open_[at.PULL]) - open_[at.SLACK]) / open_[at.WEIGHT]
        top = max(float(pulls.max(initial=0.0)), 0.0)
        self.scalar[at.LAMBDA] = top * (1 + 1e-9)
        # Columns of small scale have their events at small lambdas.
        scales = open_[at.SIZE] / open_[at.WEIGHT]
        scale = float(scales.min(initial=np.inf)) * float(np.linalg.norm(self.row[at.TRUE_COST]))
        self.scalar[at.END] = least * min(top, scale)

    def free_columns(self) -> None:
        """Bring in the columns that are never penalised, on a path of their own."""
        column, scalar = self.column, self.scalar
        free = column[at.FREE] > 0
        own = np.where(free, 1.0, np.inf)
        own[-1] = 0.0 if free[-1] else np.inf
        if not (own == 1.0).any():
            return
        kept, limits = column[[at.WEIGHT, at.FREE]], scalar[[at.END, at.LEAST_PENALTY]]
        column[at.WEIGHT], column[at.FREE] = own, own == 0.0
        scalar[at.LEAST_PENALTY] = 0.0
        self.from_the_top(END_SHARE)
        self.run()
        column[[at.WEIGHT, at.FREE]], scalar[[at.END, at.LEAST_PENALTY]] = kept, limits
        self.slot[at.SIGN] = 0.0

    def place(self, rows: np.ndarray, columns: np.ndarray, lam: float) -> bool:
        """Begin at the vertex with these rows at margin 1 and these columns (p is the bias).

        Signs and sides are those that the vertex has, so it is a point of the problem like any
        other; its duals may be out of their bounds.
        """
        m = len(rows)
        while len(self.inverse) <= m:
            self._widen_basis()
        slot, side = self.slot, self.row[at.SIDE]
        self.scalar[[at.LENGTH, at.LAMBDA]] = m, lam
        self.member[at.ROW, :m], self.member[at.COLUMN, :m] = rows, columns
        features = columns < self.p
        self.block[:m][~features] = self.scalar[at.CONSTANT]
        self.block[:m][features] = self.problem.design.dense_columns(columns[features]).T
        slot[at.SIGN, :m] = 1.0
        self.column[at.USED, columns] = 1.0
        if not self.refresh():
            return False
        free = self.column[at.FREE, columns] > 0
        slot[at.SIGN, :m] = np.where(free, 0.0, np.where(slot[at.COEF, :m] < 0, -1.0, 1.0))
        side[:] = np.where(self.row[at.RESIDUAL] > 0, at.ABOVE, at.BELOW)
        side[rows] = at.TIGHT
        return self.refresh()

    def mend(self) -> int:
        """Move from any vertex to the optimal one at the present lambda.

        The bounds that the duals break are moved out to where they are, and then back again: a
        parametric problem, which ends with the true bounds.
        """
        row, column, scalar, m = self.row, self.column, self.scalar, self.length
        lam, rng, E = float(scalar[at.LAMBDA]), np.random.default_rng(0), self.rows
        limits, bounds = scalar[[at.END, at.LEAST_PENALTY]], column[[at.SLACK, at.WEIGHT]]
        a = row[at.Y, E] * self.slot[at.BETA, :m]
        # Each is moved by an amount of its own, so that no two meet their bounds at once.
        excess = rng.uniform(1.01, 1.2, m) * np.maximum(a - row[at.COST, E], 0.0)
        row[at.COST_RATE, E] = excess
        excess = rng.uniform(1.01, 1.2, m) * np.minimum(a - row[at.LOW, E], 0.0)
        row[at.LOW_RATE, E] = excess
        with np.errstate(invalid="ignore"):
            bound = np.where(column[at.FREE] > 0, 0.0, lam * bounds[1]) + bounds[0]
        excess = np.maximum(np.abs(column[at.PULL]) - bound, 0.0)
        excess[column[at.USED] > 0] = 0.0
        column[at.SLACK] = bound
        column[at.WEIGHT] = rng.uniform(1.01, 1.2, len(excess)) * excess
        scalar[[at.END, at.LEAST_PENALTY]] = 0.0
        scalar[at.LAMBDA] = 1.0
        code = self.run() if self.refresh() else at.STUCK
        row[[at.COST_RATE, at.LOW_RATE]] = 0.0
        scalar[[at.END, at.LEAST_PENALTY]], column[[at.SLACK, at.WEIGHT]] = limits, bounds
        scalar[at.LAMBDA] = lam
        return code if self.refresh() else at.STUCK

    def run(self, report: Callable[[], None] | None = None) -> int:
        """Pivot until there is a reason to stop; MORE when time or pivots are spent."""
        # At least one pivot of the largest basis, at most a few hundredths of a second.
        work = max(_WORK, 2.0 * (min(self.n, self.p) + 8) * (2 * self.n + self.p))
        scalar, quiet = self.scalar, 0.0
        advance = machine_code(pivots.advance, self.X, int, self.record is not None, int, float)
        while True:
            before = scalar.copy()
            most = int(min(max(1, self.budget.left), _PIVOTS))
            code = advance(self._tables.ctypes.data, most, work)
            made = scalar[at.PIVOTS] - before[at.PIVOTS]
            self.budget.book(int(made))
            if code == at.GROW:
                self._widen_basis()
            elif code == at.STORE:
                self._widen_record()
            elif code == at.REFRESH:
                if not self.refresh():
                    return at.STUCK
            elif code != at.MORE:
                return int(code)
            moved = (scalar != before)[[at.LAMBDA, at.N_KNOTS]].any()
            quiet = 0.0 if moved else quiet + made
            if quiet > _PATIENCE * (self.n + self.length):
                return at.STUCK
            if report is not None:
                report()
            if not self.budget.goes_on():
                return at.MORE

    def _list_tables(self) -> None:
        """Their addresses, for the loops; again whenever there is a new table."""
        basis = self.slot, self.member, self.scalar, self.inverse, self.block
        self._tables = list_of(
            (self.row, self.column, *basis, *self._entries, *(self.record or ()))
        )

    def refresh(self) -> bool:
        """Everything from the sets alone; whether the basis is regular."""
        row, column, slot, scalar = self.row, self.column, self.slot, self.scalar
        m, E, V, lam = self.length, self.rows, self.columns, scalar[at.LAMBDA]
        try:
            inverse = np.linalg.inv(self.block[:m, E].T)
        except np.linalg.LinAlgError:
            return False
        self.inverse[:m, :m] = inverse
        rates = row[at.COST_RATE], row[at.LOW_RATE]
        column[at.FIXED] = self._pull_outside(row[at.TRUE_COST], row[at.TRUE_LOW])
        column[at.RATE] = self._pull_outside(*rates) if np.any(rates) else 0.0
        bounds = row[at.COST] + lam * rates[0], row[at.LOW] + lam * rates[1]
        column[at.PULL] = self._pull_outside(*bounds)
        free = column[at.FREE, V] > 0
        with np.errstate(invalid="ignore"):
            bound = np.where(free, 0.0, lam * column[at.WEIGHT, V] + column[at.SLACK, V])
        beta = inverse.T @ (slot[at.SIGN, :m] * bound - column[at.PULL, V])
        coef = inverse @ (row[at.Y] * row[at.TARGET])[E]
        slot[at.BETA, :m], slot[at.COEF, :m] = beta, coef
        tight = np.zeros(self.n)
        tight[E] = beta
        column[at.PULL] += self._pull(tight)
        scores = coef @ self.block[:m]
        row[at.RESIDUAL] = row[at.TARGET] - row[at.Y] * scores
        row[at.RESIDUAL, E] = 0.0
        scalar[at.FRESH], scalar[at.LARGEST] = 0, np.abs(scores).max(initial=1.0)
        return bool(np.isfinite(coef).all() and np.isfinite(beta).all())

    def _pull_outside(self, above: np.ndarray, below: np.ndarray) -> np.ndarray:
        """[X, constant]'(y a) over the rows outside E, with a = above or below."""
        side = self.row[at.SIDE]
        beta = self.row[at.Y] * np.where(side == at.ABOVE, above, below)
        beta[side == at.TIGHT] = 0.0
        return self._pull(beta)

    def _pull(self, beta: np.ndarray) -> np.ndarray:
        """[X, constant]'beta over all rows, of which no copy is made."""
        features = self.problem.design.rmatvec(beta)
        return np.append(features, self.scalar[at.CONSTANT] * beta.sum())

    def begin_record(self) -> None:
        """Record the path from here on, this vertex first."""
        coefs, duals = 64 * _FIRST_CAPACITY, 64 * _FIRST_CAPACITY + 4 * self.n
        entries = len(at.ENTRY_NAMES)
        self.record = (
            np.zeros((len(at.KNOT_NAMES), _FIRST_CAPACITY)),
            np.zeros((entries, coefs)),
            np.zeros((entries, duals)),
        )
        self.scalar[at.MOVING_ON] = 1.0
        self._list_tables()

    def finish_record(self, lam: float) -> None:
        """Record the duals of the last knot at the given lambda."""
        self.slot[at.TRUE_BETA, : self.length] = self._tight_betas(lam)
        depart = machine_code(knots.depart, self.X, int, int, float)
        depart(self._tables.ctypes.data, self.length, float(lam))

    def _widen_basis(self) -> None:
        """Twice the room for rows and columns."""
        self.slot, self.member = _doubled(self.slot, 1), _doubled(self.member, 1)
        self.inverse, self.block = _doubled(_doubled(self.inverse, 0), 1), _doubled(self.block, 0)
        self._list_tables()

    def _widen_record(self) -> None:
        """Twice the room of each kind."""
        assert self.record is not None
        knots, coefs, duals = (_doubled(table, 1) for table in self.record)
        self.record = knots, coefs, duals
        self._list_tables()


def general_position(problem: Problem, attempt: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The tables of rows and columns, changed by random amounts, and the constant column's value.

    Each attempt draws other amounts.
    """
    n, p = problem.design.shape
    rng = np.random.default_rng(attempt)
    strength = STRENGTHS[attempt]

    def draw(count: int) -> np.ndarray:
        return strength * rng.uniform(0.5, 1.5, count)

    row, column = np.zeros((len(at.ROW_NAMES), n)), np.zeros((len(at.COLUMN_NAMES), p + 1))
    row[at.Y] = problem.y
    row[at.TRUE_COST] = 1.0 if problem.sample_weight is None else problem.sample_weight
    row[at.COST] = row[at.TRUE_COST] * (1 + _COSTS * draw(n))
    if problem.loss.signed:
        row[at.LOW], row[at.TRUE_LOW] = -row[at.COST], -row[at.TRUE_COST]
    row[at.TARGET] = 1.0 + _TARGETS * draw(n)
    constant, last = 1.0, (0.0 if problem.free_bias else np.inf)
    if problem.bias_feature:
        constant, last = float(problem.bias_feature), 1.0
    size, weight = column[at.SIZE], column[at.WEIGHT]
    size[:p], size[p] = np.sqrt(problem.design.column_norms_squared()), constant * np.sqrt(n)
    weight[:p], weight[p] = 1.0, last
    if problem.penalty_weights is not None:
        weight[:p] = problem.penalty_weights
    weight[size == 0.0] = np.inf
    column[at.SLACK] = _SLACKS * draw(p + 1) * size * float(np.linalg.norm(row[at.TRUE_COST]))
    column[at.FREE] = weight == 0.0
    return row, column, constant


def _doubled(table: np.ndarray, axis: int) -> np.ndarray:
    """The table with as much room again, zero, along one axis."""
    shape = list(table.shape)
    shape[axis] *= 2
    out = np.zeros(shape, dtype=table.dtype)  # the system gives no memory before it is used
    out[tuple(map(slice, table.shape))] = table
    return out
