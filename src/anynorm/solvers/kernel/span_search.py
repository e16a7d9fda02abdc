"""Which rows span f best: forward selection by the decrease of the objective, and exchanges.

    minimise over J (|J| <= B), beta, b    1/2 beta'K_JJ beta + C N(slacks of all rows)

Over the features Z of the rows J (`kernels/landmarks.py`) this is a linear problem.  A row c that
is not in J would add the feature z_c, what its kernel function has orthogonal to the span, of
length 1.  With the duals a of the problem over J the slope of the objective along z_c is
-g_c = -z_c'(y * a), and adding c cannot bring more than g_c^2 / 2: a is feasible for the larger
problem as well.  So, as Keerthi, Chapelle and DeCoste (2006) do for the squared hinge:

1. of some rows drawn at random, those of largest |g_c| are tried: how far the objective falls
   along z_c, all else as it is.  The best one joins J;
2. after some of them (an eighth of J) the problem is solved again;
3. at B rows, some whose loss changes f least leave and as many join, as long as that pays.

Several problems (classes) may share J: their decreases add up.  Z is the factor of K as well:
its rows J are L.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from anynorm.kernels.gram import Gram
from anynorm.kernels.landmarks import LEAST_PIVOT
from anynorm.problem import Problem
from anynorm.problem.solution import Solution

Array = NDArray[np.float64]
Index = NDArray[np.intp]
SolveSpan = Callable[[Problem, Array, Array | None], Solution]

_DRAWN = 59  # rows tried for one place: with 95 % certainty one of them is among the best 5 %
_TRIED = 10  # of the rows drawn: those of the steepest slopes
_STEPS = 0.5 ** np.arange(8)  # of the slope: the lengths tried along a feature, none is longer
_BATCH = 8  # the problem is solved again when J has grown by one of so many
_EXCHANGED = 8  # one of so many rows leaves at first, fewer where that does not pay
_PAYS = 1e-3  # of the objective: what an exchange has to bring
_FAILURES = 3  # exchanges of a single row in a row that do not pay end the search


class _State(NamedTuple):
    """A span and the solutions over it."""

    rows: list[int]
    held: Array
    solutions: list[Solution]
    scores: list[Array]
    signed: Array
    pulled: Array
    objective: float


class SpanSearch:
    """A growing set J of rows, and the solutions of some problems over their span.

    Parameters
    ----------
    problems : sequence of Problem
        With one gram for all.
    solve : callable
        ``solve(problem, Z, start) -> Solution`` solves a problem over features.
    random : numpy.random.Generator
        Draws the rows to be tried.
    goes_on : callable
        Whether there is time for more.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        solve: SolveSpan,
        random: np.random.Generator,
        goes_on: Callable[[], bool],
    ) -> None:
        gram = problems[0].gram
        assert gram is not None
        self.gram: Gram = gram
        self.problems, self.random, self.goes_on = problems, random, goes_on
        self._solve = solve
        self.diagonal = gram.diagonal()
        self.rows: list[int] = []
        self._held = np.empty((gram.n, 0))
        self.solutions: list[Solution] = []
        self.scores: list[Array] = []
        self._signed = self._pulled = np.empty((0, len(problems)))
        self.objective = np.inf

    @property
    def Z(self) -> Array:
        """The features of the rows J; there is room for more behind them."""
        return self._held[:, : len(self.rows)]

    def begin(self, rows: Sequence[int] | Index) -> None:
        """Take these rows, but for those in the span of the others, and solve."""
        self.rows, self._held = [], np.empty((self.gram.n, len(rows)))
        for row in rows:
            new = np.array([row])
            pivot, usable = self._pivots(new)
            if usable[0]:
                self._join(int(row), self._new_features(new, pivot)[:, 0])
        self.solve()

    def solve(self) -> None:
        """Solve the problems over the span."""
        starts = [s.dual for s in self.solutions] if self.solutions else [None] * len(self.problems)
        Z = np.ascontiguousarray(self.Z)
        self.solutions = [
            self._solve(problem, Z, start)
            for problem, start in zip(self.problems, starts, strict=True)
        ]
        coefs = [np.asarray(s.coef, dtype=np.float64) for s in self.solutions]
        self.scores = [
            Z @ coef + s.intercept for coef, s in zip(coefs, self.solutions, strict=True)
        ]
        both = zip(self.problems, self.solutions, strict=True)
        self._signed = np.column_stack([problem.y * found.dual for problem, found in both])
        self._pulled = Z.T @ self._signed
        self.objective = float(sum(s.certificate.primal for s in self.solutions))

    def grow(self, count: int, pool: Index) -> None:
        """Let rows join until there are `count`, or none brings anything; solve at the end.

        Half of the rows tried are from the pool.
        """
        waiting = 0
        while len(self.rows) < count and self.goes_on():
            if not self._best_joins(pool):
                break
            waiting += 1
            if waiting >= max(1, len(self.rows) // _BATCH):
                self.solve()
                waiting = 0
        if waiting:
            self.solve()

    def exchange(self, pool: Index) -> None:
        """Exchange rows of J for others until nothing improves."""
        size, failures = max(1, len(self.rows) // _EXCHANGED), 0
        while self.rows and failures < _FAILURES and self.goes_on():
            before = self._state()
            self._leave(np.argsort(self._losses(), kind="stable")[:size])
            self.solve()
            self.grow(len(before.rows), pool)
            if self.objective < (1 - _PAYS) * before.objective:
                failures = 0
                continue
            self._back_to(before)
            failures += size == 1
            size = max(1, size // 2)

    def _state(self) -> _State:
        return _State(
            self.rows, self._held, self.solutions, self.scores, self._signed, self._pulled,
            self.objective,
        )  # fmt: skip

    def _back_to(self, state: _State) -> None:
        self.rows, self._held, self.solutions, self.scores = state[:4]
        self._signed, self._pulled, self.objective = state[4:]

    def weights(self) -> Array:
        """The weights beta of the rows in J, a column for each problem."""
        coefs = np.array([s.coef for s in self.solutions], dtype=np.float64).T
        return scipy.linalg.solve_triangular(self.Z[self.rows], coefs, lower=True, trans="T")

    def _losses(self) -> Array:
        """How far f moves when a row of J leaves: ||beta_j k_j|| orthogonal to the other rows."""
        inverse = scipy.linalg.solve_triangular(
            self.Z[self.rows], np.eye(len(self.rows)), lower=True
        )
        return (self.weights() ** 2).sum(axis=1) / (inverse**2).sum(axis=0)

    def _leave(self, places: Index) -> None:
        """Take rows out of J: the features of the others by a rotation, K_JJ = Z_J Z_J'."""
        kept, before = np.delete(np.arange(len(self.rows)), places), self.Z
        self.rows = [self.rows[k] for k in kept]
        turn, upper = scipy.linalg.qr(before[self.rows].T, mode="economic")
        signs = np.where(np.diagonal(upper) < 0, -1.0, 1.0)
        # Room for all that may join in their place: a copy for each would take as long as the rest.
        self._held = np.empty_like(before)
        self.Z[:] = before @ (turn * signs)
        self.Z[self.rows] = np.tril(self.Z[self.rows])

    def _join(self, row: int, feature: Array) -> None:
        feature[self.rows] = 0.0  # orthogonal to them: what is there is rounding
        place = len(self.rows)
        if place == self._held.shape[1]:
            more = np.empty((self.gram.n, 1 + place))
            self._held = np.concatenate([self._held, more], axis=1)
        self._held[:, place] = feature
        self.rows = [*self.rows, row]

    def _pivots(self, rows: Index) -> tuple[Array, NDArray[np.bool_]]:
        """The squared lengths of what rows would add to the span; those more than rounding."""
        pivots = self.diagonal[rows] - (self.Z[rows] ** 2).sum(axis=1)
        return pivots, pivots > LEAST_PIVOT * self.diagonal[rows]

    def _new_features(self, rows: Index, pivots: Array) -> Array:
        """The features that rows would add."""
        return (self.gram.block(slice(None), rows) - self.Z @ self.Z[rows].T) / np.sqrt(pivots)

    def _slopes(self, rows: Index, pivots: Array) -> Array:
        """The slopes g of the problems along the features of rows, which are not made for that."""
        used = np.flatnonzero(self._signed.any(axis=1))
        along = self.gram.block(used, rows).T @ self._signed[used]
        return (along - self.Z[rows] @ self._pulled) / np.sqrt(pivots)[:, None]

    def _drawn(self, pool: Index) -> Index:
        """Rows to be tried: half of them from the pool as far as it has some, the rest from all."""
        preferred = self._others(np.sort(pool), self.rows)[: _DRAWN // 2]
        others = self._others(np.arange(self.gram.n), [*self.rows, *preferred])
        return np.append(preferred, others[: _DRAWN - len(preferred)])

    def _others(self, rows: Index, taken: list[int]) -> Index:
        """Those of some rows that are not taken, in any order."""
        free = np.ones(self.gram.n, dtype=bool)
        free[taken] = False
        return self.random.permutation(rows[free[rows]])

    def _best_joins(self, pool: Index) -> bool:
        """Let the best of some rows join J, and the scores take the step along its feature."""
        rows = self._drawn(pool)
        pivots, usable = self._pivots(rows)
        rows, pivots = rows[usable], pivots[usable]
        if not len(rows):
            return False
        slopes = self._slopes(rows, pivots)
        steepest = np.argsort(-(slopes**2).sum(axis=1), kind="stable")[:_TRIED]
        rows, slopes = rows[steepest], slopes[steepest]
        features = self._new_features(rows, pivots[steepest])
        found = [self._steps(z, g) for z, g in zip(features.T, slopes, strict=True)]
        best = int(np.argmax([fall for _, fall in found]))
        feature, along = features[:, best], found[best][0]
        self.scores = [s + t * feature for s, t in zip(self.scores, along, strict=True)]
        self._join(int(rows[best]), feature)
        self._pulled = np.vstack([self._pulled, slopes[best]])
        return True

    def _steps(self, feature: Array, slopes: Array) -> tuple[list[float], float]:
        """The best step of each problem along a feature, and how far the objective falls."""
        steps, fall = [], 0.0
        for problem, scores, slope in zip(self.problems, self.scores, slopes, strict=True):
            now, step, most = problem.loss_at(scores), 0.0, 0.0
            for t in (slope * _STEPS).tolist():
                falls = now - problem.loss_at(scores + t * feature) - 0.5 * t**2
                if falls <= most and most > 0:
                    break  # concave in t: shorter ones are worse still
                if falls > most:
                    step, most = t, falls
            steps.append(step)
            fall += most
        return steps, fall
