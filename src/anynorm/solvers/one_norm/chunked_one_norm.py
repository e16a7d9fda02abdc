"""The 1-norm regularised problems over rows that live apart, by prox-Newton over working columns.

        minimise_{w, b}   sum_j u_j |w_j| + sum_i g_i(1 - y_i (x_i'w + b))

as `smooth.py` does it, with all that there is one of per row beside the rows (`remote_newton.py`):
a look brings the gradient of all columns, and the matrix of those that are in use or may come into
use.  The model with that matrix is minimised here, by `minimise_model` on its triangular factor.
Losses with kinks are smoothed as there, so that the hinge needs no other method.

a, scaled until ``|X_j'(y a)| <= u_j``, is a dual point: the certificate is made of sums.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import scipy.linalg

from anynorm.design import design_of
from anynorm.design.crew import Sums
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.rounds_apart.remote_newton import Position, RemoteNewton
from anynorm.solvers.frame.rounds_apart.stages import (
    SAMPLE_TOL,
    Point,
    problem_of_few,
    solve_in_stages,
)
from anynorm.solvers.one_norm.model import QuadraticModel, minimise_model, slope_of_norm
from anynorm.solvers.one_norm.solve import solve_one_norm

_LARGEST_FACTOR = 4000  # columns that may be at work: a factor takes a second
_MATRICES = 6  # of these columns that a worker may hold at once: a block's, the sum, their making
_SHARE = 0.25  # of a worker's memory that these may take
_FEW_ROWS, _FEW_ENTRIES = 5000, 1_000_000  # that all parts together send of their own rows
_LEAST_ROWS = 200  # fewer say nothing about the others
_NEARLY = 0.9  # of the penalty: columns at zero whose gradient is beyond it may leave
_FEWEST_FRESH, _GROWTH = 200, 0.5  # columns that may join at once, and times those in use
_OUTSIDE = 0.5  # of the largest violation: one of this size in a column without a matrix is asked
_FORCING = 0.1  # of the violation: how well a model is solved, the better the nearer
_LEAST_TARGET = 1e-9  # of the penalty: rounding allows no more
_LEAST_DAMPING, _FIRST_DAMPING = 1e-10, 1e-6  # of the diagonal
_STEPS = np.array([0.0, 1e-3, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0])  # where slopes are asked for
_SHORT, _TRIES = 0.05, 8  # a step to which more damping is preferred, so many times
_DAMPING_FACTOR = 16.0  # up where little of a step could be taken, down after most of one


def solve_chunked_one_norm(
    problem: ChunkedProblem,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: Point | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve a 1-norm problem whose rows live apart to a relative duality gap of `tol`.

    `start` has coefficients and a bias to begin from; other arguments are as in `solve_one_norm`.
    The dual variables stay beside their rows, and are not in the solution.
    """
    budget = Budget(max_iter, deadline)
    best = Incumbent(problem, tol, budget, progress)
    solve_in_stages(
        problem,
        best,
        start,
        few=lambda: _of_few(problem, budget, seed),
        newton=lambda terms: OneNormNewton(problem, terms, budget),
    )
    coef, bias = best.primal_point
    return Solution(
        np.empty(0), best.certificate(), max(1, budget.n_iter), coef=coef, intercept=bias
    )


@dataclass
class SparsePosition(Position):
    """A position, and the columns whose matrix was brought; None is all of them."""

    columns: np.ndarray | None
    violation: np.ndarray


@dataclass
class FactoredModel(QuadraticModel):
    """A model whose columns are those of a triangular factor, with the products at hand."""

    matrix: np.ndarray = field(kw_only=True)

    def has_products(self, size: int) -> bool:
        """All of them are there."""
        return True

    def products(self, support: np.ndarray, scale: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Some of them; all rows of the factor are meant."""
        root = np.sqrt(scale)
        part: np.ndarray = self.matrix[np.ix_(support, support)] / np.outer(root, root)
        return part


class OneNormNewton(RemoteNewton):
    """Prox-Newton with R = sum u_j |w_j|, and |b / s| for a regularised bias."""

    steps = _STEPS
    longest = 1.0  # beyond a whole step, coefficients that it takes to zero would change sign

    def __init__(self, problem: ChunkedProblem, terms: RowTerms, budget: Budget) -> None:
        super().__init__(problem, terms, budget, matrix=True)
        self.penalty = problem.penalties()
        room = _SHARE * problem.crew.room() / (8 * _MATRICES)
        self.most = int(min(_LARGEST_FACTOR, math.sqrt(room)))
        self.damping = _FIRST_DAMPING
        self._columns: np.ndarray | None = None
        self._chosen = False

    def look(self, u: np.ndarray, bias: float, sigma: float, **how: object) -> Position:
        """As for all; the first time the columns in use are the ones at work."""
        if not self._chosen:
            self._work_on(np.flatnonzero(u))
        return super().look(u, bias, sigma, **how)

    def asked_columns(self) -> np.ndarray | None:
        """Those at work."""
        return self._columns

    def _work_on(self, columns: np.ndarray) -> None:
        """Choose the columns at work; half of all may as well be all."""
        p, self._chosen = self.problem.n_coefs, True
        if columns.size == 0:
            columns = np.arange(min(1, p))
        self._columns = None if p <= self.most and 2 * columns.size > p else columns

    def position(self, u: np.ndarray, bias: float, seen: Sums) -> SparsePosition:
        """The gap of the smoothed problem, from the duals scaled to be allowed."""
        problem, pull, balance = self.problem, seen.pulled, seen.balance
        size, pressure = problem.one_norm(u, bias), problem.pressure(pull, balance)
        t = min(1.0, 1.0 / pressure) if pressure > 0 else 1.0
        along = float(u @ pull) + (bias * balance if problem.bias_feature else 0.0)
        inner = size - t * along + (1.0 - t) ** 2 * seen.loss
        inner += abs(balance) if problem.intercept == "free" else 0.0
        excess = np.maximum(np.abs(pull) - self.penalty, 0.0)
        used = np.flatnonzero(u)
        excess[used] = np.abs(pull[used] - np.sign(u[used]) * self.penalty[used])
        violation = np.where(np.isfinite(self.penalty), excess / self.penalty, 0.0)
        return SparsePosition(
            u, bias, seen, max(inner, 0.0), size + seen.loss, self._columns, violation
        )

    def slopes_of_regulariser(
        self, at: Position, d: np.ndarray, e: float, steps: np.ndarray
    ) -> np.ndarray:
        """Those of the absolute values."""
        used = np.flatnonzero((at.u != 0) | (d != 0))
        penalty, coef, step = self.penalty[used], at.u[used], d[used]
        if s := self.problem.bias_feature:
            penalty = np.append(penalty, 1.0 / s)
            coef, step = np.append(coef, at.bias), np.append(step, e)
        return np.array([slope_of_norm(penalty, coef, step, t) for t in steps])

    def too_narrow(self, at: Position) -> bool:
        """A vertex has a row at margin 1 for every column in use, and one for the bias."""
        unknowns = np.count_nonzero(at.u) + (self.problem.intercept == "free")
        return bool(at.seen.bent < unknowns)

    def advance(self, at: Position, sigma: float) -> tuple[np.ndarray, float, float]:
        """As for all, with a model that is damped until most of its step can be taken."""
        for _ in range(_TRIES):
            d, e = self.direction(at, sigma)
            t = self.step(at, sigma, d, e)
            if t > 0.7:
                self.damping = max(self.damping / _DAMPING_FACTOR, _LEAST_DAMPING)
            elif t < _SHORT:
                self.damping = max(self.damping * _DAMPING_FACTOR, _FIRST_DAMPING)
            if t >= _SHORT or not np.any(d):
                break
        return d, e, t

    def direction(self, at: Position, sigma: float) -> tuple[np.ndarray, float]:
        """To the minimiser of the model over the columns at work."""
        assert isinstance(at, SparsePosition)
        seen, columns = at.seen, at.columns
        self._work_on(self._working_set(at))
        if columns is not None and self._asks_for_others(at, columns):
            again = self.look(at.u, at.bias, sigma)
            assert isinstance(again, SparsePosition)
            seen, columns = again.seen, again.columns
        places = np.arange(self.problem.n_coefs) if columns is None else columns
        return self._minimiser(at, seen, places)

    def _asks_for_others(self, at: SparsePosition, columns: np.ndarray) -> bool:
        """Whether much of what is wrong is in columns whose matrix is not there."""
        outside = at.violation.copy()
        outside[columns] = 0.0
        return bool(outside.max() > _OUTSIDE * at.violation.max())

    def _working_set(self, at: SparsePosition) -> np.ndarray:
        """The columns in use and those about to be, no more than a matrix may have."""
        lead = np.where(np.isfinite(self.penalty), np.abs(at.seen.pulled) / self.penalty, 0.0)
        used = at.u != 0
        fresh = np.flatnonzero((lead > _NEARLY) & ~used)
        most = max(_FEWEST_FRESH, int(_GROWTH * np.count_nonzero(used)))
        chosen = np.concatenate([np.flatnonzero(used), _strongest(fresh, lead, most)])
        return np.sort(_strongest(chosen, at.violation, self.most))

    def _minimiser(
        self, at: SparsePosition, seen: Sums, columns: np.ndarray
    ) -> tuple[np.ndarray, float]:
        """The step that minimises the model, with its bias."""
        scatter, balance, s = seen.scatter, seen.balance, self.problem.bias_feature
        matrix, mean, total = scatter.matrix, scatter.mean, scatter.total
        pull, coef, penalty = seen.pulled[columns], at.u[columns], self.penalty[columns]
        free = self.problem.intercept == "free"
        if free:
            pull = pull - balance * mean  # the best bias is that of the step
        else:
            if s:
                matrix = np.pad(matrix, (0, 1))
                mean, pull = np.append(mean, s), np.append(pull, s * balance)
                coef, penalty = np.append(coef, at.bias / s), np.append(penalty, 1.0)
            matrix = matrix + total * np.outer(mean, mean)
        violation = float(at.violation.max())
        target = max(_FORCING * violation * min(1.0, violation), _LEAST_TARGET)
        d = self._minimised(matrix, pull, coef, penalty, target) - coef
        out = np.zeros(self.problem.n_coefs)
        out[columns] = d[: columns.size]
        if free:
            return out, (balance / total if total > 0 else 0.0) - float(mean @ d)
        return out, s * float(d[-1]) if s else 0.0

    def _minimised(
        self,
        matrix: np.ndarray,
        pull: np.ndarray,
        coef: np.ndarray,
        penalty: np.ndarray,
        target: float,
    ) -> np.ndarray:
        """The minimiser of the model, a least-squares problem with the matrix's factor."""
        usable = np.isfinite(penalty)
        diagonal = np.diagonal(matrix).copy()
        diagonal[diagonal <= 0] = diagonal.max(initial=0.0) or 1.0
        while True:
            damped = matrix + np.diag(self.damping * diagonal)
            try:
                root = scipy.linalg.cholesky(damped)
                break
            except scipy.linalg.LinAlgError:  # rounding: more columns than rows with curvature
                self.damping *= _DAMPING_FACTOR
        k = len(coef)
        design = design_of(np.asfortranarray(root))
        model = FactoredModel(
            block=design.column_block(np.arange(k), np.arange(k), np.ones(k)),
            penalty=np.where(usable, penalty, 1e300),
            unit=np.where(usable, penalty, 1e300),
            coef=coef.copy(),
            residual=scipy.linalg.solve_triangular(root, pull, trans="T"),
            root=np.zeros(k),
            free_bias=False,
            floor=-np.inf,
            damping=_LEAST_DAMPING,
            matrix=damped,
        )
        minimise_model(model, target, self.budget.in_time)
        return np.where(usable, model.coef, 0.0)


def _strongest(places: np.ndarray, lead: np.ndarray, most: int) -> np.ndarray:
    """At most so many of the places, those with the largest lead."""
    if places.size <= most:
        return places
    return places[np.argpartition(-lead[places], most)[:most]]


def _of_few(problem: ChunkedProblem, budget: Budget, seed: int) -> Point | None:
    """The solution of a few rows of every part, None where all or too few would be sent."""
    (n, p), parts = problem.crew.shape, problem.crew.n_parts
    most = _FEW_ROWS if problem.crew.sparse else min(_FEW_ROWS, _FEW_ENTRIES // max(1, p))
    most = min(most, n // 2)
    if most < _LEAST_ROWS:
        return None
    few = problem_of_few(
        problem,
        max(1, most // parts),
        regulariser="l1",
        penalty_weights=problem.penalty_weights,
    )
    if few is None:
        return None
    solution = solve_one_norm(
        few,
        tol=SAMPLE_TOL[problem.terms.loss.smooth],
        max_iter=max(1, budget.left),
        deadline=budget.deadline,
        seed=seed,
    )
    assert solution.coef is not None
    return solution.coef, solution.intercept
