"""Few support vectors among many rows: block SMO on some rows, and screening of the others.

A problem with inequality constraints does not change when rows that are no support vectors are
left out, and duals of some rows, with zeros for the others, are duals of all.  So:

1. solve for some of the rows: a part of the data at first, then those of the smallest margins;
2. the scores of all rows that are left give the gap of the whole problem, and its safe ball
   (`anynorm.screening`);
3. rows that certainly are no support vectors are dropped for good: no score of theirs is computed
   again before the certificate of the whole problem at the end;
4. stop when the gap of the whole problem is small enough.

It pays where support vectors are few: the kernel is evaluated between them and all rows a few
times, where block SMO alone loads whole rows for all that ever looked like one.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anynorm.bias import optimal_bias
from anynorm.certificate import relative_gap
from anynorm.norms import L1, SquaredL2
from anynorm.problem import Problem
from anynorm.screening import safe_ball, screened_rows
from anynorm.solution import Progress, Status
from anynorm.solvers.kernel.near_rows import rows_that_matter, score_error
from anynorm.solvers.kernel.rows import KernelRows
from anynorm.solvers.kernel.smo import BoxResult

Array = NDArray[np.float64]
Index = NDArray[np.intp]
SolvePart = Callable[..., BoxResult]

_FEWEST = 10_000  # rows of a problem that is worth it
_SHARE = 0.1  # of the rows: the first part
_MOST_SUPPORT = 0.2  # of the part: where there are more support vectors, it does not pay
_ROOM = 3  # rows to solve for, for each support vector
_FIRST_TOL = 1e-2
_FORCING = 0.1
_ROUNDS = 20
_WORTH_EXACT = 0.05  # the gap from which scores in float64, and screening, are worth their cost
_WORTH_DROPPING = 0.2  # of the rows that are left
_FEW_LEFT = 0.3  # of all rows: then scores come in float64, and of the rows left alone


def pays(problem: Problem) -> bool:
    """Whether rows may be left out: inequality constraints, no budget, and many rows."""
    slack = problem.loss.slack
    return (
        problem.n_rows >= _FEWEST
        and isinstance(slack, L1 | SquaredL2)
        and not problem.loss.signed
        and problem.gram is not None
        and problem.gram.psd is True
    )


class ScreenedSearch:
    """Where a solve of some rows at a time stands.

    Parameters
    ----------
    problem : Problem
        One that `pays`.
    rows : KernelRows
        The kernel's rows, whose memory is a limit for those of the parts.
    solve_part : callable
        ``solve_part(problem, rows, tol=, max_iter=, deadline=, start=) -> BoxResult`` for a part.
    progress : callable, optional
        Called with a `Progress` at every gap of the whole problem.
    """

    def __init__(
        self,
        problem: Problem,
        rows: KernelRows,
        solve_part: SolvePart,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.problem, self.rows, self.solve_part = problem, rows, solve_part
        self.progress, self.began = progress, time.monotonic()
        self.left: Index = np.flatnonzero(problem.row_weights() > 0)
        self.beta, self.scored = np.zeros(problem.n_rows), np.zeros(problem.n_rows)
        self.scores = np.zeros(problem.n_rows)  # K beta for the beta in `scored`
        self.n_iter, self.gap, self.zero_primal = 0, np.inf, problem.zero_primal()

    def run(self, tol: float, max_iter: int, deadline: float | None) -> BoxResult | None:
        """Solve to the gap `tol`; None where it does not pay, with what was found in `beta`."""
        work, goal = self._first(), max(_FIRST_TOL, tol)
        least = len(work) // 2
        for k in range(_ROUNDS):
            bias = self._solve(work, max(goal, 0.5 * tol), max_iter, deadline)
            n_support = int(np.count_nonzero(self.beta))
            if k == 0 and n_support > _MOST_SUPPORT * len(work):
                return None
            margins, bias = self._look(bias)
            late = deadline is not None and time.monotonic() >= deadline
            if self.gap <= tol or late or self.n_iter >= max_iter:
                stopped = Status.TIME_LIMIT if late else Status.MAX_ITER
                stopped = Status.OPTIMAL if self.gap <= tol else stopped
                self._catch_up()
                exact = np.zeros(self.problem.n_rows, dtype=bool)  # `certified` sees to it
                return BoxResult(
                    self.beta, self.scores, exact, bias, self.n_iter, self.gap, stopped
                )
            outside = self.left[margins < 1.0]
            settled = np.isin(outside, work, assume_unique=True).all()
            goal = 0.0 if settled else _FORCING * self.gap
            work = self._nearest(margins, max(_ROOM * n_support, least))
        return None

    def _first(self) -> Index:
        """A part of both classes, spread over the data."""
        chosen = [
            rows[np.linspace(0, len(rows) - 1, max(1, int(_SHARE * len(rows)))).astype(np.intp)]
            for sign in (1.0, -1.0)
            if len(rows := self.left[self.problem.y[self.left] == sign])
        ]
        return np.sort(np.concatenate(chosen))

    def _nearest(self, margins: Array, count: int) -> Index:
        """The support vectors, and as many rows of the smallest margins as there is room for."""
        count = min(max(count, 1), len(self.left))
        nearest = self.left[np.argpartition(margins, count - 1)[:count]]
        return np.union1d(nearest, np.flatnonzero(self.beta))

    def _solve(self, work: Index, tol: float, max_iter: int, deadline: float | None) -> float:
        """Beta from the problem of some rows, whose bias is returned."""
        part = self.problem.part(work)
        assert part.gram is not None
        rows = KernelRows(part.gram, len(work) * min(self.rows.block_rows, len(work)) * 4)
        found = self.solve_part(
            part,
            rows,
            tol=tol,
            max_iter=max_iter - self.n_iter,
            deadline=deadline,
            start=self.beta[work],
        )
        self.beta = np.zeros(self.problem.n_rows)
        self.beta[work] = found.beta
        self.n_iter += found.n_iter
        return found.intercept

    def _look(self, bias: float) -> tuple[Array, float]:
        """The gap of the whole problem, the margins of the rows that are left, and the bias."""
        p, a = self.problem, self.problem.y * self.beta
        few = len(self.left) < _FEW_LEFT * p.n_rows
        if few:
            self.scores[self.left] = self.rows.exact_scores(self.beta, self.left)
        else:
            self._score()
            self._measure(a, bias)
        if few or self.gap <= _WORTH_EXACT:
            error = 0.0 if few else score_error(self.rows, self.beta)
            near = rows_that_matter(p, self.rows, self.beta, self.scores, bias)
            if not few:
                self.scores[near] = self.rows.exact_scores(self.beta, np.flatnonzero(near))
            weights = None if p.sample_weight is None else p.sample_weight[near]
            bias = optimal_bias(p.loss, self.scores[near], p.y[near], p.C, weights)
            self._measure(a, bias)
            self._drop(a, bias, error)
        if self.progress is not None:
            seconds = time.monotonic() - self.began
            self.progress(Progress(self.n_iter, self.primal, self.dual, self.gap, seconds))
        return (p.y * (self.scores + bias))[self.left], bias

    def _measure(self, a: Array, bias: float) -> None:
        """The values of the whole problem and their gap."""
        p = self.problem
        self.primal = p.objective(a, bias, scores=self.scores)
        self.dual = p.loss.dual_gain(a, p.C, p.sample_weight) - 0.5 * p.curvature(a, self.scores)
        self.gap = relative_gap(self.primal, self.dual, self.zero_primal)

    def _drop(self, a: Array, bias: float, error: float) -> None:
        """Leave out the rows that certainly are no support vectors, where these may be many."""
        p = self.problem
        ball = safe_ball(p, a, bias, a, scores=self.scores)._replace(error=error)
        away = p.y * (ball.centre + bias) - ball.reach() > 1.0
        if np.count_nonzero(away[self.left]) >= _WORTH_DROPPING * len(self.left):
            found = screened_rows(p, ball, self.gap)
            kept = ~found.zero_rows | (a != 0)
            self.left = self.left[kept[self.left]]

    def _score(self) -> None:
        """K beta by the rows at hand, for what has changed since it was computed last."""
        self.scores += self._since_scored()
        self.scored = self.beta.copy()

    def _since_scored(self) -> Array:
        """What K beta has changed since it was computed last, by the rows at hand."""
        change, image = self.beta - self.scored, np.zeros(self.problem.n_rows)
        moved = np.flatnonzero(change)
        self.rows.add_any(image, moved, change[moved])
        return image

    def _catch_up(self) -> None:
        """The scores of the rows that were dropped, by the rows at hand."""
        dropped = np.ones(self.problem.n_rows, dtype=bool)
        dropped[self.left] = False
        self.scores[dropped] += self._since_scored()[dropped]
