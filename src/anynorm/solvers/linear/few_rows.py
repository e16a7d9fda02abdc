"""Few rows and many dense columns: the dual over the rows alone.

        minimise_beta   1/2 beta'H beta - y'beta, l <= beta <= u,  sum(beta) = 0 for a free bias

with beta = y a and H = X V^2 X' + shift (+ s^2 for a regularised bias), an n x n matrix that is
small here.  Pairs of variables are moved by second-order selection (Fan, Chen and Lin 2005), single
ones where the bias is not free.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from anynorm.design import Design, design_of
from anynorm.design.limits import CACHED_BYTES, ROUNDING
from anynorm.design.unlocked import add_square
from anynorm.design.watch import look
from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear import pair_loops as loops
from anynorm.solvers.linear.pair_loops import code_of
from anynorm.solvers.linear.pruning import Allowance
from anynorm.solvers.linear.rounds import Round

if TYPE_CHECKING:
    from anynorm.solvers.linear.sparse_rows import SparseBlock

_MOST_ROWS = 2000  # their n x n matrix has 32 MB
ROWS_PER_COLUMN = 2  # up to which the n x n matrix does for a walk: 600 x 300 0.5 s, over p x p 8 s
_COLUMNS_PER_ROW = 4  # from which on n x n is far less than n x p
_SMALL_ENTRIES = 8_000_000  # n p up to which a sparse X is made dense: 64 MB
_SMALLEST_TOL = 1e-8  # gaps below it are for the methods that refine their last digits
_PASSES = 200  # steps per row for one round, before the other methods get it
_STEPS_PER_CALL = 20_000  # below 0.2 s, so that Ctrl-C is heard
_REACH = 0.03  # of the spread of the scores: rows at a bound this near to leaving it take part
_LOOKS = 200  # at the loss while columns are dropped, each as costly as dropping one
_MOST_CHOSEN = 0.8  # of the rows: with more, the smaller matrix does not pay for being cut out


def few_rows_suit(
    problem: Problem, tol: float, *, columns_per_row: float = _COLUMNS_PER_ROW
) -> bool:
    """Whether the problem has the shape, the storage and the loss for this method.

    A sparse X is made dense where that is small.
    """
    n, p = problem.design.shape
    few = n <= _MOST_ROWS and columns_per_row * n <= p
    small = not problem.design.sparse or n * p <= _SMALL_ENTRIES
    box = problem.dual_set
    bounded = isinstance(box, Box) and bool(np.isfinite(box.lower).all())
    return few and small and bounded and tol >= _SMALLEST_TOL


class UsedColumns:
    """Problems on one X without the columns that are zero, and with X dense unless `sparse`.

    These are most columns of a part of a text, and nothing but work where X is dense, where a
    sparse X and its dense copy make the same problems.
    """

    def __init__(self, X: Design, *, sparse: bool) -> None:
        self.X, self.p = X, X.p
        self.used = _or_one(np.flatnonzero(X.column_entries()))
        part = X if len(self.used) == X.p else X.take_columns(self.used)
        if sparse:
            self.X = part
            return
        if X.sparse:
            self.X = part = design_of(part.dense())
        filled = _or_one(np.flatnonzero(part.dense().any(axis=0)))
        if len(filled) < part.p:
            self.X, self.used = part.take_columns(filled), self.used[filled]

    def problem(self, problem: Problem) -> Problem:
        """The problem on these columns."""
        scale = problem.feature_scale
        return replace(problem, X=self.X, feature_scale=None if scale is None else scale[self.used])

    def rounds(
        self,
        found: Sequence[Round],
        problem: Problem,
        last: tuple[Sequence[Round], Sequence[Round]] | None = None,
    ) -> list[Round]:
        """Rounds of a walk on these columns as those of the problem on all columns.

        `last` are rounds with a smaller C, before and after: they share what is the same.
        """
        if len(self.used) == self.p:
            return list(found)
        given = problem.feature_scale
        first = np.ones(self.p) if given is None else given.copy()
        one_norm = replace(problem, regulariser="l1", feature_scale=None)
        out: list[Round] = []
        for k, one in enumerate(found):
            if last is not None and one.coef is last[0][k].coef:
                coef, scale = last[1][k].coef, last[1][k].feature_scale
            else:
                coef = self._spread(one.coef, np.zeros(self.p))
                scale = self._spread(one.feature_scale, np.zeros(self.p) if k else first)
            out.append(replace(one, coef=coef, feature_scale=scale, one_norm=one_norm))
        return out

    def _spread(self, values: np.ndarray | None, others: np.ndarray) -> np.ndarray:
        """`others`, which has values of all columns, with those of the columns used put in."""
        others[self.used] = values
        return others


def _or_one(columns: np.ndarray) -> np.ndarray:
    """Columns, or the first one where there are none: a problem has at least one."""
    return columns if len(columns) else np.arange(1)


class DenseBlock:
    """Columns of X one after the other in memory: ``table[j]`` is the j-th."""

    sparse, looks = False, _LOOKS

    def __init__(self, table: np.ndarray) -> None:
        self.table = table

    def __len__(self) -> int:
        return len(self.table)

    @property
    def X(self) -> np.ndarray:
        """The columns as a matrix."""
        return self.table.T

    def pull(self, beta: np.ndarray) -> np.ndarray:
        """X'beta."""
        out: np.ndarray = self.table @ beta
        return out

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """X coef."""
        out: np.ndarray = coef @ self.table
        return out

    def entries(self) -> tuple[Any, ...]:
        """The columns as `drop_columns` takes them."""
        return (self.table,)


class FewRows:
    """X, dense.

    What all problems on the same rows share, whatever their labels, weights and C; they must be
    solved one after the other.
    """

    def __init__(self, X: Design) -> None:
        self.columns = X.dense_transposed()
        self._space = np.empty((0, X.n))

    @property
    def every(self) -> DenseBlock:
        """All columns."""
        return DenseBlock(self.columns)

    @cached_property
    def gram(self) -> np.ndarray:
        """X X'."""
        return weighted_gram(self.columns, None)

    @cached_property
    def longest(self) -> float:
        """The largest 2-norm of a column."""
        return math.sqrt(float(np.einsum("ij,ij->i", self.columns, self.columns).max(initial=0.0)))

    def take(self, places: np.ndarray) -> DenseBlock:
        """The columns in these places, until the next call: memory is used again."""
        if len(self._space) < len(places):
            self._space = np.empty((len(places), self.columns.shape[1]))
        out = self._space[: len(places)]
        return DenseBlock(np.take(self.columns, places, axis=0, out=out, mode="clip"))


def weighted_gram(
    columns: np.ndarray, weights: np.ndarray | None, rows: np.ndarray | None = None
) -> np.ndarray:
    """``sum_j weights_j x_j x_j'`` for the columns x_j of X, or for some rows of them."""
    n = columns.shape[1] if rows is None else len(rows)
    out = np.zeros((n, n), order="F")
    step = max(1, min(CACHED_BYTES // 8 // max(1, n), len(columns)))
    root = None if weights is None else np.sqrt(weights)[:, np.newaxis]
    scaled = np.empty((step, n))
    for start in range(0, len(columns), step):
        some, block = columns[start : start + step], scaled[: min(step, len(columns) - start)]
        if rows is not None:
            some = np.take(some, rows, axis=1, out=block, mode="clip")
        if root is not None:
            some = np.multiply(some, root[start : start + step], out=block)
        add_square(out, some.T)
    matrix: np.ndarray = np.asarray(out).T
    code_of(loops.mirror)(n, matrix)
    return matrix


@dataclass(frozen=True)
class RowsDual:
    """The dual over the rows: its bounds, and the bias and the loss of a model without columns."""

    y: np.ndarray
    box: tuple[np.ndarray, np.ndarray, np.ndarray]
    free: bool
    empty_bias: float
    empty: float

    @classmethod
    def of(cls, problem: Problem) -> RowsDual:
        """The dual for the problem's loss, C and weights."""
        y, box = problem.y, problem.dual_set
        assert isinstance(box, Box)
        lower = np.where(y > 0, box.lower, -box.upper)
        upper = np.where(y > 0, box.upper, -box.lower)
        nothing, bias = np.zeros(len(y)), 0.0
        if problem.free_bias:
            bias = problem.best_bias(nothing)
        empty = problem.loss_at(nothing, bias)
        return cls(y, (lower, upper, box.shift), problem.free_bias, bias, empty)

    @property
    def _rows(self) -> tuple[Any, ...]:
        """The first arguments of loops."""
        return len(self.y), self.y, *self.box

    def loss(self, scores: np.ndarray, bias: float) -> float:
        """The loss at these scores."""
        out = np.empty(1)
        code_of(loops.total_cost)(*self._rows, scores, bias, out)
        return float(out[0])

    def middle_bias(self, scores: np.ndarray) -> float:
        """The middle of all optimal biases, for a loss with kinks."""
        residuals = self.y - scores
        if self._middle_places is not None:  # which are found faster than the order of all
            first, last = np.partition(residuals, self._middle_places)[self._middle_places]
            return float(first + 0.5 * (last - first))
        out, order = np.empty(1), np.argsort(residuals)
        code_of(loops.middle_bias)(*self._rows[:4], scores, order, out)
        return float(out[0])

    @cached_property
    def _middle_places(self) -> np.ndarray | None:
        """The places of the residuals, in their order, between which the best biases are.

        None where the rows do not all count the same.
        """
        lower, upper, _ = self.box
        n, width = len(upper), float(upper[0] - lower[0])
        if not (0 < width < np.inf and np.ptp(upper - lower) == 0):
            return None
        share, rounding = float(upper.sum()) / width, ROUNDING * n
        places = math.ceil(share - rounding) - 1, math.floor(share + rounding)
        return np.clip(np.array(places), 0, n - 1)

    def allowed(self, beta: np.ndarray) -> np.ndarray:
        """Beta brought into the box, and balanced where the bias is free."""
        beta = np.minimum(np.maximum(beta, self.box[0]), self.box[1])
        return balanced(beta) if self.free else beta

    def best_scale(self, beta: np.ndarray, scores: np.ndarray) -> float:
        """The t >= 1 for which t * beta is best, within the box: weights change the scale of K."""
        lower, upper, shift = self.box
        bend = float(beta @ scores) + float(shift @ beta**2)
        t = float(self.y @ beta) / bend if bend > 0 else 1.0
        used = beta != 0
        if not used.any() or not t > 1:
            return 1.0
        room = np.where(beta > 0, upper, lower)[used] / beta[used]
        return max(1.0, min(t, float(room.min())))

    def gain(self, beta: np.ndarray) -> float:
        """The loss's part of the dual objective."""
        return float(self.y @ beta) - 0.5 * float(self.box[2] @ beta**2)

    def margin(self, beta: np.ndarray, scores: np.ndarray, bias: float) -> tuple[float, float]:
        """The least margin for the best bias, and that bias; 0 unless a hinge touches no bound."""
        out = np.empty(2)
        code_of(loops.least_margin)(*self._rows, self.free, beta, scores, bias, out)
        return float(out[loops.MARGIN]), float(out[loops.BIAS])

    def drop(
        self,
        columns: DenseBlock | SparseBlock,
        order: np.ndarray,
        model: tuple[np.ndarray, float, np.ndarray],
        norm: float,
        allowance: Allowance,
    ) -> tuple[int, np.ndarray, float, float]:
        """How many columns of a model go, in `order`; the scores, the margin and the bias then.

        `model` has the coefficients of the columns, its bias and scores; `norm` is its 1-norm.
        """
        coef, bias, scores = model
        scores, out = scores.copy(), np.array([1.0, bias])
        every, left = 1 + len(order) // columns.looks, np.empty(len(scores))
        given = *columns.entries(), coef, order, len(order), every, scores, left
        drop_columns = loops.dropping(sparse=columns.sparse)
        count = drop_columns(*self._rows, self.free, *given, norm, np.array(allowance), out)
        return count, scores, float(out[loops.MARGIN]), float(out[loops.BIAS])

    def rows_to_move(self, beta: np.ndarray, scores: np.ndarray) -> np.ndarray | None:
        """The rows whose variables are likely to change, None for all.

        Those between their bounds, and those at a bound that have a margin near 1 or on the wrong
        side of it.
        """
        n = len(beta)
        gradient, places = np.empty(n), np.empty(n, dtype=np.int64)
        may_move = code_of(loops.may_move)
        count = may_move(*self._rows, self.free, beta, scores, _REACH, gradient, places)
        chosen = places[:count]
        return chosen if 0 < len(chosen) < _MOST_CHOSEN * len(beta) else None

    def solve(
        self,
        matrix: np.ndarray,
        rows: np.ndarray | None,
        beta: np.ndarray,
        scores: np.ndarray,
        *,
        tol: float,
        budget: Budget,
    ) -> tuple[np.ndarray, int]:
        """Beta at a gap of about `tol`, if a few passes reach it; n steps count as an iteration.

        `matrix` is K for the rows whose variables move, with the square of the bias feature, and is
        changed; `scores` is K beta for all rows.
        """
        n, y, box = len(beta), self.y, self.box
        value = self.gain(beta) - 0.5 * float(beta @ scores)
        beta, whole = beta.copy(), beta
        if rows is not None:
            y, box, beta, scores = (
                y[rows],
                tuple(part[rows] for part in box),
                beta[rows],
                scores[rows],
            )
        matrix.flat[:: len(y) + 1] += box[2]
        gradient = scores - y + box[2] * beta
        steps, most, numbers = 0, min(_PASSES, max(budget.left, 1)) * n, np.empty(3)
        numbers[loops.VALUE], numbers[loops.ACCURACY] = value, tol
        settle, given = code_of(loops.settle), (len(y), y, *box, self.free, matrix, beta, gradient)
        space = np.empty(len(y)), np.empty(len(y))
        while True:
            share = min(most - steps, _STEPS_PER_CALL)
            made = settle(*given, *space, self.empty, tol, share, numbers)
            steps += made
            if numbers[loops.GAP] <= tol or steps >= most or made < share or not budget.in_time():
                break
            look()
        if rows is not None:
            part, beta = beta, whole.copy()
            beta[rows] = part
        return beta, max(1, -(-steps // n))


def balanced(beta: np.ndarray) -> np.ndarray:
    """Beta with the heavier sign scaled down until the sum is zero."""
    up, down = float(beta[beta > 0].sum()), -float(beta[beta < 0].sum())
    if up > down:
        return np.where(beta > 0, beta * (down / up), beta)
    return np.where(beta < 0, beta * (up / down), beta) if down > up else beta
