"""Sparse columns of a walk in memory, and dual coordinate descent over their rows.

What `few_rows` is for dense columns: pieces of a small X that are cut out and weighted again from
round to round.  The dual of a round is solved by `descent_steps`.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from anynorm.design import Design, design_of
from anynorm.design.limits import ENTRIES_PER_CALL
from anynorm.design.watch import look
from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear import descent_steps as steps
from anynorm.solvers.linear.few_rows import RowsDual

# Tuned on counts and tf-idf, generated and newsgroups: 300 to 3000 rows, 300 to 20,000 columns.
MOST_SPARSE_COLUMNS = 100  # up to which Newton's method comes first: 300 take 50 ms, descent 1 ms
EPOCHS_BEFORE_NEWTON = 200  # where it can follow, with up to half as many columns as rows: as long
EPOCHS_BEFORE_OTHERS = 30  # likewise where the columns are too large to be made dense
MOST_MADE_DENSE = 4_000_000  # entries of the columns in use, for Newton's method: 32 MB
MOST_EPOCHS = 1000  # for one round, before the other methods get it
_MOST_ENTRIES = 1_000_000  # of X: beyond, rows are best visited in blocks, and steps are all
_LEAST_SIZE = 200_000  # of n p: a smaller X is made dense, and solved to the last digit where asked
_DENSE = 0.2  # of all entries: from here on dense columns are as fast
_SMALLEST_TOL = 1e-8  # gaps below it are for the methods that refine their last digits
_LOOKS = 64  # at the loss while columns are dropped, each as costly as dropping many of them
_ORDERS = 8  # of the rows, each drawn at random, one epoch after the other


def sparse_rows_suit(problem: Problem, tol: float) -> bool:
    """Whether the problem has the storage, the size and the loss for this method."""
    X, box = problem.design, problem.dual_set
    size = X.n * X.p
    if not X.sparse or size < _LEAST_SIZE or X.entries() > min(_MOST_ENTRIES, _DENSE * size):
        return False
    if X.large_columns.size:
        return False
    return isinstance(box, Box) and bool(np.isfinite(box.lower).all()) and tol >= _SMALLEST_TOL


class SparseBlock:
    """Columns of X in CSC, and the same by rows."""

    sparse, looks = True, _LOOKS

    def __init__(self, n: int, starts: np.ndarray, places: np.ndarray, values: np.ndarray) -> None:
        self.n, self.columns = n, (starts, places, values)

    def __len__(self) -> int:
        return len(self.columns[0]) - 1

    @cached_property
    def X(self) -> Design:
        """The columns as a matrix."""
        starts, places, values = self.columns
        kept = values, places, starts.astype(np.int32)  # as SciPy would make them
        return design_of(sp.csc_array(kept, shape=(self.n, len(self))))

    def pull(self, beta: np.ndarray) -> np.ndarray:
        """X'beta."""
        return self.X.rmatvec(beta)

    def scores(self, coef: np.ndarray) -> np.ndarray:
        """X coef."""
        return self.X.matvec(coef)

    @cached_property
    def table(self) -> np.ndarray:
        """Dense, one column after the other."""
        starts, places, values = self.columns
        table = np.zeros((len(self), self.n))
        table[np.repeat(np.arange(len(self)), np.diff(starts)), places] = values
        return table

    def take(self, places: np.ndarray) -> SparseBlock:
        """The columns in these places."""
        starts, rows, values = self.columns
        stored = int((starts[places + 1] - starts[places]).sum())
        cut = np.empty(len(places) + 1, np.int64), np.empty(stored, np.int32), np.empty(stored)
        steps.cutting()(starts, rows, values, len(places), places, *cut)
        return SparseBlock(self.n, *cut)

    def entries(self) -> tuple[Any, ...]:
        """The columns as `drop_columns` takes them."""
        return self.columns

    @cached_property
    def by_rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The rows: where each begins, the columns of its entries, and these."""
        stored = len(self.columns[1])
        turned = np.empty(self.n + 1, np.int64), np.empty(stored, np.int32), np.empty(stored)
        steps.turning()(self.n, len(self), *self.columns, *turned)
        return turned


class SparseRows:
    """X, sparse: what all problems on the same rows share.

    `seed` is that of the orders in which descent visits the rows.
    """

    def __init__(self, X: Design, seed: int) -> None:
        self.seed = seed
        stored = sp.csc_array(X.stored, dtype=np.float64)
        # Machine code takes one kind of index.
        parts = stored.indptr.astype(np.int64), stored.indices.astype(np.int32), stored.data
        self.every = SparseBlock(X.n, *map(np.ascontiguousarray, parts))

    @cached_property
    def longest(self) -> float:
        """The largest 2-norm of a column."""
        squares = self.every.X.column_norms_squared()
        return float(np.sqrt(squares.max(initial=0.0)))

    @cached_property
    def orders(self) -> np.ndarray:
        """Some orders of the rows, one after the other."""
        rng, every = np.random.default_rng(self.seed), np.arange(self.every.n)
        return np.concatenate([rng.permutation(every) for _ in range(_ORDERS)])

    def take(self, places: np.ndarray) -> SparseBlock:
        """The columns in these places."""
        return self.every.take(places)


class RowDescent:
    """Dual coordinate descent for the rounds of one walk.

    Parameters
    ----------
    dual : RowsDual
        Labels and bounds of the rows.
    orders : ndarray
        Those of `SparseRows`.
    """

    def __init__(self, dual: RowsDual, orders: np.ndarray) -> None:
        self.dual, self.n, self.orders = dual, len(dual.y), orders

    def begin(
        self,
        block: SparseBlock,
        root: np.ndarray | None,
        beta: np.ndarray,
        bias: float,
        *,
        precision: float,
        most: int,
    ) -> None:
        """Get ready for a round on these columns, weighted by `root`, from beta and a bias.

        There are at most `most` epochs.
        """
        n, m, matrix, shift = self.n, len(block), block.by_rows, self.dual.box[2]
        root = np.ones(m) if root is None else root
        scaled, curvature, mean = np.empty(len(matrix[2])), np.empty(n), np.empty(m)
        self.most, self.beta, self.u = most, beta.copy(), np.empty(m)
        made = m, scaled, self.u, curvature, mean
        steps.preparation()(n, *matrix, root, beta, shift, *made)
        numbers = self.numbers = np.zeros(steps.N_NUMBERS)
        if np.isfinite(precision):
            leash = float(mean @ mean + (curvature - shift).mean() / n)
            numbers[steps.LEASH] = leash
            numbers[steps.VARIANCE] = 1.0 / (precision + 1.0 / leash) if leash > 0 else 0.0
            numbers[steps.BIAS] = bias
            numbers[steps.FREE] = precision == 0
        curvature += numbers[steps.VARIANCE]
        lower, upper, _ = self.dual.box
        flat = (upper > lower) & (curvature == 0)  # rows without entries, where no bias moves
        self.beta[flat] = np.where(self.dual.y > 0, upper, lower)[flat]
        self.movable = np.asarray((upper > lower) & ~flat)
        self.awake = self.movable.astype(np.int32)
        numbers[steps.LEAST], numbers[steps.LARGEST] = -np.inf, np.inf
        numbers[steps.EMPTY] = self.dual.empty
        self.given = (
            *(n, self.dual.y, *self.dual.box, *matrix[:2], scaled, curvature),
            *(_ORDERS, self.orders, self.beta, m, self.u, self.awake, numbers),
            *(steps.MOVES, np.empty(steps.past_length(n, m))),
        )
        self.share = max(1, ENTRIES_PER_CALL // max(1, 2 * len(scaled)))

    def go_on(self, goal: float, budget: Budget) -> int:
        """Epochs until the gap seen on the way is at most `goal`; returns how many."""
        code, made, numbers = steps.descent(), 0, self.numbers
        numbers[steps.GOAL] = goal
        self.awake[:] = self.movable
        numbers[steps.LEAST], numbers[steps.LARGEST] = -np.inf, np.inf
        left = min(self.most - int(numbers[steps.EPOCHS]), budget.left)
        while left > 0 and budget.in_time():
            share = min(left, self.share)
            more = code(*self.given, share)
            made, left = made + more, left - more
            if more < share or numbers[steps.GAP] <= goal:
                break
            look()
        budget.book(made)
        return made

    @property
    def gap(self) -> float:
        """The relative gap, as the last epoch saw it."""
        return float(self.numbers[steps.GAP])
