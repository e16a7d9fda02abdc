"""Many dense rows of which few decide: solve for the rows near margin 1, and prove the others.

With inequality constraints a row that ends beyond margin 1 can be left out.  With the hinge, rows
of one class that end below margin 1 can be replaced by their mean with the sum of their weights:
the hinge of a mean is at most the mean of the hinges, and equals it where all of them cost.  So:

1. solve for a sample of the rows, each counted as often as it stands for others;
2. the margins of all rows say which are near 1, above and below;
3. solve for the near ones, and for the means of those below (the hinge);
4. margins of all rows and the duals of the part, extended to all rows, give the gap of the whole
   problem.  Where it is not small enough, the safe ball (`anynorm.screening`) or, where it leaves
   too many rows open, the new margins say which rows to solve for next.

The gap is that of the whole problem, so a wrong guess costs time and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from anynorm.design.limits import ROUNDING
from anynorm.problem import Problem
from anynorm.problem.certificate import Values, relative_gap
from anynorm.problem.solution import Solution
from anynorm.screening import Ball, Screening, screened_rows
from anynorm.solvers.frame.incumbent import Incumbent

SolvePart = Callable[..., Solution]

_ENTRIES = 4_000_000  # of X: what is worth it
_ROWS_PER_COLUMN = {False: 500, True: 3000}  # with kinks as the hinge, smooth
_SAMPLE = 16  # one row of so many makes the sample, and one of its rows of so many a first one
_SAMPLE_TOL = {False: 1e-2, True: 1e-4}  # with kinks as the hinge, smooth
_MOST = 0.2  # of the rows: what is solved for at once
_LEAST, _MORE = 0.03, 0.1  # of the rows: the fewest to solve for lie between, by the sample's duals
_ERRORS = 2.5  # of a margin by the sample, on either side of 1: with kinks, rows within them decide
_ROOM = 1.5  # rows to solve for, for each that costs or has crossed
_PART_TOL = 0.5  # of tol, for a part: the rest is for the rows left out


def pays(problem: Problem) -> bool:
    """Whether rows may be left out: margins above 1 are free, and dense rows are many."""
    X, loss = problem.design, problem.loss
    return (
        loss.one_sided
        and not X.sparse
        and X.n * X.p >= _ENTRIES
        and X.n >= _ROWS_PER_COLUMN[loss.smooth] * X.p
    )


class RowSearch:
    """Where a solve for some rows at a time stands.

    Parameters
    ----------
    problem : Problem
        One that `pays`.
    solve_part : callable
        ``solve_part(problem, tol=, budget=, start=, primal=) -> Solution`` for fewer rows.
    best : Incumbent
        Of the whole problem; its budget is that of all parts together.
    """

    def __init__(self, problem: Problem, solve_part: SolvePart, best: Incumbent) -> None:
        self.problem, self.solve_part, self.best = problem, solve_part, best
        self.hinge = not problem.loss.smooth
        self.weights = problem.row_weights()
        self.alive = np.flatnonzero(self.weights > 0)
        self.coef, self.bias = np.zeros(problem.n_coefs), 0.0
        self.scores = self.dual = np.zeros(problem.n_rows)
        self.dual_value, self.gap, self.zero_primal = -math.inf, math.inf, problem.zero_primal()
        self.excess, self.least = math.inf, 0
        self.lengths: np.ndarray | None = None

    def run(self) -> bool:
        """Solve to the gap asked for; False, with coef and bias to start from, if it pays not."""
        if not self._solve_samples():
            return False
        self.scores = self.problem.design.matvec(self.coef)  # the sample's bias is near enough
        work = self._near(np.empty(0, np.intp))
        for _ in range(8):  # of parts: after these, all rows are solved for
            if work is None or not self.best.budget.goes_on():
                return False
            self._solve_near(work, _PART_TOL * self.best.tol)
            if self.gap <= self.best.tol:
                values = self.problem.values(self.coef, self.bias, self.dual, scores=self.scores)
                if self.best.offer(values, (self.coef, self.bias), self.dual):
                    return True
            work = self._uncertain(work)
        return False

    def _solve_samples(self) -> bool:
        """Coefficients from samples of the rows; whether few of the last one's decide."""
        p, alive = self.problem, self.alive
        size = max(1, len(alive) // _SAMPLE)
        sample = np.sort(np.random.default_rng(0).choice(alive, size, replace=False))
        for rows in (sample[::_SAMPLE], sample):
            weights = self.weights[rows] * (len(alive) / len(rows))
            found = self.solve_part(
                replace(p, X=p.design.take_rows(rows), y=p.y[rows], sample_weight=weights),
                tol=_SAMPLE_TOL[p.loss.smooth],
                budget=self.best.budget,
                start=None,
                primal=(self.coef, self.bias),
            )
            self._keep(found)
        support = np.count_nonzero(found.dual) / size
        share = min(max(_ROOM * support, _LEAST), _MORE)
        self.least = int(share * len(alive))
        if not self.hinge:
            return bool(_ROOM * support <= _MOST)
        # Margins by m rows are off by sqrt(p S / m) / density, of the margins at 1, where S is the
        # mean of (a / C)^2 (a sandwich estimate).  So many rows are where 1 may be, whatever their
        # density: to solve for fewer of them leaves the others nothing that holds them back.
        squares = float(np.square(found.dual / (p.C * weights)).mean())
        doubtful = 2 * _ERRORS * math.sqrt((p.n_coefs + 1) * squares / size)
        self.least = int(max(share, doubtful) * len(alive))
        return doubtful <= _MOST

    def _keep(self, found: Solution) -> None:
        assert found.coef is not None
        self.coef, self.bias = found.coef, found.intercept

    def _look(self) -> None:
        """The scores of all rows, and their best bias."""
        p = self.problem
        self.scores = p.design.matvec(self.coef)
        if p.free_bias:
            self.bias = p.best_bias(self.scores)

    def _solve_near(self, work: np.ndarray, tol: float) -> None:
        """Coefficients and duals from the rows at work, and the gap of the whole problem."""
        p = self.problem
        beyond = p.y * (self.scores + self.bias) < 1.0
        beyond[work] = False
        below = [np.flatnonzero(beyond & (p.y == side)) for side in (1.0, -1.0)]
        below = [rows for rows in below if self.hinge and self.weights[rows].sum() > 0]
        sums = [float(self.weights[rows].sum()) for rows in below]
        part = replace(
            p,
            X=p.design.rows_and(work, self._means(below)) if below else p.design.take_rows(work),
            y=np.concatenate([p.y[work], *(p.y[rows[:1]] for rows in below)]),
            sample_weight=np.concatenate([self.weights[work], sums]),
        )
        start = np.concatenate([self.dual[work], *([self.dual[rows].sum()] for rows in below)])
        found = self.solve_part(
            part,
            tol=tol,
            budget=self.best.budget,
            start=start if self.dual.any() else None,
        )
        self._keep(found)
        self._look()
        dual = np.zeros(p.n_rows)
        dual[work] = found.dual[: len(work)]
        for rows, total, a in zip(below, sums, found.dual[len(work) :], strict=True):
            dual[rows] = self.weights[rows] * (float(a) / total)
        self.dual, self.dual_value = dual, found.certificate.dual
        primal = p.objective(self.coef, self.bias, scores=self.scores)
        self.gap = relative_gap(primal, self.dual_value)
        self.excess = primal - self.dual_value
        self.best.report(Values(primal, self.dual_value, self.zero_primal))

    def _means(self, groups: list[np.ndarray]) -> np.ndarray:
        """The weighted means of groups of rows, without a copy of them."""
        shares = [self.weights[rows] / self.weights[rows].sum() for rows in groups]
        X = self.problem.design
        return np.array([X.rmatvec(a, rows=rows) for a, rows in zip(shares, groups, strict=True)])

    def _near(self, work: np.ndarray) -> np.ndarray | None:
        """The rows nearest to margin 1, those at work among them; None where they are too many."""
        p, alive = self.problem, self.alive
        ahead = p.y[alive] * (self.scores[alive] + self.bias) - 1.0
        outside = np.ones(p.n_rows, dtype=bool)
        outside[work] = False
        if self.hinge:
            # Rows that were taken to be on the other side of 1 than they are now.
            wrong = outside[alive] & ((ahead < 0) != (self.dual[alive] > 0)) & self.dual.any()
            needed, key = int(np.count_nonzero(wrong)) + len(work), np.abs(ahead)
        else:
            needed, key = int(np.count_nonzero(ahead < 0)), ahead
        most = int(_MOST * len(alive))
        if needed > most:
            return None
        count = max(1, min(max(int(_ROOM * needed), self.least), most))
        chosen = (self.dual != 0) & ~self._at_bound()
        chosen[alive[np.argpartition(key, count - 1)[:count]]] = True
        return np.flatnonzero(chosen)

    def _at_bound(self) -> np.ndarray:
        """Rows whose duals are at the upper bound of the hinge."""
        bound = self.problem.C * self.weights
        return np.asarray(self.dual >= (1 - 1e-9) * bound) & self.hinge

    def _uncertain(self, work: np.ndarray) -> np.ndarray | None:
        """The rows that may end on either side of margin 1, or the nearest if these are many."""
        is_open = np.isnan(self._screened().dual_values)
        if self.problem.n_coefs < np.count_nonzero(is_open) <= self.least:
            return np.flatnonzero(is_open)
        return self._near(work)

    def _screened(self) -> Screening:
        """What is certain of the rows, in the ball of the primal value around the coefficients."""
        p = self.problem
        if self.lengths is None:
            squares = p.design.scaled(p.feature_scale).row_norms_squared()
            self.lengths = np.sqrt(squares + p.bias_feature**2)
        shift = self.bias if p.bias_feature else 0.0
        rounding = ROUNDING * (self.zero_primal + float(np.abs(self.dual).sum()))
        radius = math.sqrt(2.0 * (max(self.excess, 0.0) + rounding))
        return screened_rows(p, Ball(self.scores + shift, self.lengths, radius), self.gap)
