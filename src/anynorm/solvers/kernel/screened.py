"""Few support vectors among many rows: block SMO on some rows, and screening of the others.

A problem with inequality constraints does not change when rows that are no support vectors are
left out, and duals of some rows, with zeros for the others, are duals of all.  So:

1. solve for a part of the data, and look at the scores of all rows once;
2. the rows of small margins are the near ones: solve for some of these after others, looking at
   near rows alone, until the problem of the near rows is solved;
3. look at all rows again: their scores give the gap of the whole problem.  Stop where it is small
   enough.  Otherwise rows that certainly are no support vectors (`anynorm.screening`) are dropped
   for good, and 2. goes on with the near ones of those that are left.

It pays where support vectors are few: the kernel is evaluated between them and all rows two or
three times, where block SMO alone loads whole rows for all that ever looked like one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anynorm.design import design_of
from anynorm.design.blocks import ranges
from anynorm.kernels.kernel import ACCURATE
from anynorm.kernels.rows import KernelRows
from anynorm.kernels.sums import WORTH_COMPILED
from anynorm.losses.bias import optimal_bias
from anynorm.problem import Problem
from anynorm.problem.certificate import Values, relative_gap
from anynorm.screening import safe_ball, screened_rows
from anynorm.solvers.kernel.near_rows import rows_that_matter, score_error
from anynorm.solvers.kernel.search import KernelSearch
from anynorm.solvers.kernel.smo import BoxResult

Array = NDArray[np.float64]
Index = NDArray[np.intp]
SolvePart = Callable[..., BoxResult]

_FEWEST = 25_000  # rows of a problem that is worth it
_FEWEST_LINEAR = 10_000  # the same where scores are products with a weight vector
_SHARE = 0.05  # of the rows: the first part
_FEWEST_FIRST = 1000  # rows of it
_NEAR = 0.2  # of the rows: those looked at until their problem is solved
_MOST_SUPPORT = 0.2  # of the part: where there are more support vectors, it does not pay
_ROOM = 3  # rows to solve for, for each support vector
_TAKEN = 4096  # rows taken out of X at once
_FIRST_TOL = 1e-2  # gap of the first part, whose rows will change anyway
_FORCING = 0.1  # of the gap of the near rows: how well the next part is solved
_NEARLY = 0.7  # of tol: the gap of the near rows at which all are looked at
_WORTH_EXACT = 0.05  # the gap from which scores in float64, and screening, are worth their cost


def pays(problem: Problem) -> bool:
    """Whether rows may be left out: margins above 1 are free, and there are many rows."""
    gram = problem.gram
    return (
        gram is not None
        and gram.psd is True
        and problem.n_rows >= (_FEWEST_LINEAR if gram.kernel.is_inner_product else _FEWEST)
        and problem.loss.one_sided
    )


class ScreenedSearch:
    """Where a solve of some rows at a time stands.

    Parameters
    ----------
    search : KernelSearch
        Of a problem that `pays`; the memory of its rows is a limit for those of the parts.
    solve_part : callable
        ``solve_part(problem, rows, tol=, budget=, start=) -> BoxResult`` for a part.
    """

    def __init__(self, search: KernelSearch, solve_part: SolvePart) -> None:
        self.problem, self.rows, self.solve_part = search.problem, search.rows, solve_part
        self.best, self.budget, self.tol = search.best, search.budget, search.tol
        problem, n = self.problem, self.problem.n_rows
        self.left: Index = np.flatnonzero(problem.row_weights() > 0)
        self.near, self.outer = self.left, self.left[:0]
        self.beta, self.scores = np.zeros(n), np.zeros(n)
        self.exact = np.zeros(n, dtype=bool)  # scores that are float64
        self.bias, self.zero_primal = 0.0, problem.zero_primal()
        self.gap = self.gap_of_near = np.inf

    def run(self) -> BoxResult | None:
        """Solve to the gap asked for; None where it pays not, with what was found in `beta`."""
        tol = self.tol
        work, goal = self._first(), max(_FIRST_TOL, 0.5 * tol)
        least, settled = len(work) // 2, False
        for k in range(40):  # of parts; then all rows are solved for at once
            self._solve(work, goal)
            if k == 0 and np.count_nonzero(self.beta) > _MOST_SUPPORT * len(work):
                return None
            over = not self.budget.goes_on()
            if over or not self._goes_on_near(tol, settled):
                self._look_at_all(tol)
                if over or self.gap <= tol:
                    return BoxResult(self.beta, self.scores, self.exact, self.bias, self.gap)
                self._narrow()
            work, settled = self._next_work(work, least)
            goal = max(0.0 if settled else _FORCING * self.gap_of_near, 0.5 * tol)
        return None

    def _first(self) -> Index:
        """A part of both classes, spread over the data."""
        share = max(_SHARE, _FEWEST_FIRST / len(self.left))
        chosen = [
            rows[np.linspace(0, len(rows) - 1, max(1, int(share * len(rows)))).astype(np.intp)]
            for sign in (1.0, -1.0)
            if len(rows := self.left[self.problem.y[self.left] == sign])
        ]
        return np.sort(np.concatenate(chosen))

    def _margins(self, index: Index) -> Array:
        return np.asarray(self.problem.y[index] * (self.scores[index] + self.bias))

    def _narrow(self) -> None:
        """The near rows: those of the smallest margins of all that are left."""
        count = min(int(_NEAR * self.problem.n_rows), len(self.left))
        self.near = self._nearest(self.left, count)
        margins = self._margins(self.near)
        first = np.isinf(self.gap_of_near)
        self.outer = self.near[(margins > np.median(margins)) & first]
        self.gap_of_near = self.gap

    def _next_work(self, work: Index, least: int) -> tuple[Index, bool]:
        """The rows to solve for, and whether these were all that matter the last time."""
        margins = self._margins(self.near)
        outside = self.near[margins < 1.0]
        settled = bool(np.isin(outside, work, assume_unique=True).all())
        room = max(_ROOM * int(np.count_nonzero(self.beta)), least)
        return self._nearest(self.near, room), settled

    def _nearest(self, among: Index, count: int) -> Index:
        """The support vectors, and as many rows of the smallest margins as there is room for."""
        count = min(max(count, 1), len(among))
        nearest = among[np.argpartition(self._margins(among), count - 1)[:count]]
        return np.union1d(nearest, np.flatnonzero(self.beta))

    def _solve(self, work: Index, tol: float) -> None:
        """Beta and the bias from the problem of some rows."""
        part = self.problem.part(work)
        assert part.gram is not None
        rows = KernelRows(part.gram, len(work) * min(self.rows.block_rows, len(work)) * 4)
        found = self.solve_part(part, rows, tol=tol, budget=self.budget, start=self.beta[work])
        self.beta = np.zeros(self.problem.n_rows)
        self.beta[work] = found.beta
        self.bias = found.intercept
        self.exact[:] = False

    def _goes_on_near(self, tol: float, solved: bool) -> bool:
        """Whether to go on with the near rows alone, which are looked at.

        Not where their problem is solved.  And not where a support vector is in their outer half
        the first time that it is all but solved: there may be others beyond.
        """
        if np.isinf(self.gap_of_near):
            return False
        self.scores[self.near] = self._scores(self.near)
        self.gap_of_near = self._values(self.near)[2]
        if solved and (self._margins(self.near)[self.beta[self.near] == 0] >= 1.0).all():
            return False
        strayed = self.gap_of_near < _WORTH_EXACT and bool(self.beta[self.outer].any())
        return self.gap_of_near > _NEARLY * tol and not strayed

    def _values(self, among: Index | slice) -> tuple[float, float, float]:
        """Primal and dual value and gap of the problem of some rows, at its best bias."""
        p = self.problem
        weights = None if p.sample_weight is None else p.sample_weight[among]
        scores, y, beta = self.scores[among], p.y[among], self.beta[among]
        self.bias = optimal_bias(p.loss, scores, y, p.C, weights)
        square = float(beta @ scores)
        primal = 0.5 * square + p.loss.value(1.0 - y * (scores + self.bias), p.C, weights)
        dual = p.loss.dual_gain(y * beta, p.C, weights) - 0.5 * square
        return primal, dual, relative_gap(primal, dual)

    def _look_at_all(self, tol: float) -> None:
        """The gap of the whole problem, and what it proves."""
        p, everything = self.problem, slice(None)
        self.scores = self._scores(everything)
        primal, dual, self.gap = self._values(everything)
        if self.gap < _WORTH_EXACT:
            self.exact = rows_that_matter(p, self.rows, self.beta, self.scores, self.bias)
            index = np.flatnonzero(self.exact)
            self.scores[index] = self.rows.exact_scores(self.beta, index)
            primal, dual, self.gap = self._values(everything)
            if self.gap > tol:
                self._drop()
        self.best.report(Values(primal, dual, self.zero_primal))

    def _drop(self) -> None:
        """Leave out the rows that certainly are no support vectors."""
        p, a = self.problem, self.problem.y * self.beta
        ball = safe_ball(p, a, self.bias, a, scores=self.scores)
        ball = ball._replace(error=score_error(self.rows, self.beta, self.scores))
        found = screened_rows(p, ball, self.gap)
        kept = ~found.zero_rows | (a != 0)
        self.left = self.left[kept[self.left]]

    def _scores(self, index: Index | slice) -> Array:
        """K beta for some rows, in float32 where that serves."""
        gram, used = self.rows.gram, np.flatnonzero(self.beta)
        if gram.kernel.is_inner_product:
            return self.rows.exact_scores(self.beta)[index]
        if design_of(gram.X).sparse:
            image = np.zeros(gram.n)
            self.rows.add_any(image, used, self.beta[used])
            return image[index]
        assert gram.X is not None
        sums = gram.sums(used, np.float32 if gram.float32_error() <= ACCURATE else np.float64)
        if isinstance(index, slice):
            return sums(gram.X[index], self.beta[used], n_values=WORTH_COMPILED)
        parts = [
            sums(gram.X[index[part]], self.beta[used], n_values=WORTH_COMPILED)
            for part in ranges(len(index), _TAKEN)
        ]
        return np.concatenate(parts)
