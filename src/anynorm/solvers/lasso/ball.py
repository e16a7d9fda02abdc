"""The Lasso with a bound on the 1-norm, by working sets and exact steps.

        minimise_x   ||A x - b||^2   subject to   ||x||_1 <= r

With t = b - A x, every vector t gives a lower bound (`anynorm.problem.lasso`), so the gap is known
at every step.

The penalty falls by halves from ``||A'b||_inf``, where x = 0 is optimal, until the coefficients are
too large for the ball; then it is part of the problem.  Columns whose products with the residual,
continued along their last change, come near to the penalty join a working set, whose products with
each other are kept (working sets as in Johnson and Guestrin 2015 and Massias et al. 2018).  On
these, coordinate descent finds the columns in use, and one linear system the solution for them with
||x||_1 = r together with its penalty.  Where that settles nothing, the equivalent SVM of the
working columns does.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from anynorm.design.limits import STEPS_PER_CALL
from anynorm.design.views import CentredDesign
from anynorm.problem import LassoProblem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.patience import Patience
from anynorm.solvers.lasso.gram_loops import descend_gram
from anynorm.solvers.lasso.working_columns import GramColumns

Array = NDArray[np.float64]
Index = NDArray[np.intp]
BySVM = Callable[..., Array]

_STAGE = 0.5  # the penalty falls by this factor
_LAST_STAGE = 1e-4  # of the first penalty; below it the ball decides
_FEWEST = 100  # columns that may join at once
_NEAR = 0.8  # of the penalty, for the columns that join
_FAR = 0.5  # of the penalty, for those that leave
_ROUGH, _FINE = 0.03, 1e-3  # of the penalty: where coordinate descent stops
_ROUNDS = 6  # of coordinate descent and an exact step, for one working set
_DROPS = 6  # of columns whose sign an exact step would change
_MOST_DROPPED = 0.2  # of the columns in use
_STALLS = 4  # rounds without progress before the SVM of the same points is asked


class LassoBall:
    """A Lasso for several radii, each solution starting the next.

    Parameters
    ----------
    design, b : LassoDesign, ndarray
        The columns, and what they are to come near to.
    by_svm : callable
        ``by_svm(A, b, radius, start, tol=, deadline=) -> x`` for a few dense columns A, by another
        method: `anynorm.reductions.lasso_by_svm`.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design import design_of
    >>> from anynorm.reductions import lasso_by_svm
    >>> from anynorm.solvers.lasso.ball import LassoBall
    >>> design = design_of(np.diag([2.0, 1.0])).centred(None, False)
    >>> ball = LassoBall(design, np.array([2.0, 3.0]), lasso_by_svm)
    >>> ball.solve(1.0).coef.round(6), ball.solve(2.0).coef.round(6)
    (array([0.4, 0.6]), array([0.6, 1.4]))
    """

    def __init__(self, design: CentredDesign, b: Array, by_svm: BySVM) -> None:
        self.design, self.b, self.by_svm = design, b, by_svm
        self.first_pull = self.pull = design.rmatvec(b)
        self.residual = b
        self.first_penalty = self.penalty = float(np.abs(self.pull).max(initial=0.0))
        self.trend: Array | None = None
        self.work = GramColumns(design)
        self.x = np.empty(0)

    def solve(
        self,
        radius: float,
        *,
        tol: float = 1e-6,
        max_iter: int = 1000,
        deadline: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> Solution:
        """Solve the problem for one radius; `dual` of the solution is the residual t."""
        self.problem = LassoProblem(self.design, self.b, float(radius))
        self.radius, self.tol, self.budget = float(radius), tol, Budget(max_iter, deadline)
        best = Incumbent(self.problem, tol, self.budget, progress)
        within, patience = False, Patience(2 * _STALLS, 0.9)
        while True:
            columns, x, residual = self._feasible()
            values = self.problem.values_of(residual, self.residual, _top(self.pull))
            best.offer(values, (columns, x), self.residual)
            stalled = patience.is_over(best.gap)
            if not within:  # while the penalty falls, the gap says little
                patience.forget()
            if best.reached or stalled or not self.budget.spend():
                break
            within = self._advance(within, patience.since)
        coef = np.zeros(self.design.shape[1])
        columns, x = best.primal_point
        coef[columns] = x
        dual, stopped = best.dual_point, self.budget.stopped
        certificate = certify(self.problem, coef, dual, tol=tol, stopped=stopped)
        return Solution(dual=dual, certificate=certificate, n_iter=self.budget.n_iter, coef=coef)

    def _advance(self, within: bool, idle: int) -> bool:
        """One working set; returns whether the penalty is that of the ball by now."""
        target = self.penalty if within else _STAGE * self.penalty
        self._grow(target, within)
        pulled = self.pull[self.work.index]
        last = self.penalty
        if idle >= _STALLS:
            self._settle_by_svm()
        else:
            if not within:
                self.penalty = target
                self._descend(pulled, _ROUGH)
                size = float(np.abs(self.x).sum())
                within = size >= self.radius or target <= _LAST_STAGE * self.first_penalty
            if within and not self._settle(pulled):
                self._settle_by_svm()
        before = self.pull
        self.residual = self.b - self.work.block.matvec(self.x)
        self.pull = self.design.rmatvec(self.residual)
        moved = last - self.penalty
        self.trend = (before - self.pull) / moved if moved > 0 else None
        return within

    def _feasible(self) -> tuple[Index, Array, Array]:
        """The present point scaled into the ball, by its working columns, and its residual."""
        size = float(np.abs(self.x).sum())
        share = min(1.0, self.radius / size) if size > 0 else 1.0
        residual = self.residual if share == 1.0 else (1 - share) * self.b + share * self.residual
        return self.work.index, share * self.x, residual

    def _grow(self, target: float, within: bool) -> None:
        """Let the columns join that the present or the expected residual is most along."""
        size = np.abs(self.pull)
        if self.trend is not None and not within:
            expected = np.abs(self.pull - (self.penalty - target) * self.trend)
            size = np.maximum(np.minimum(size, expected), 0.5 * (size + expected))
        n_used = int(np.count_nonzero(self.x))
        if len(self.work.index) > 4 * (n_used + 2 * _FEWEST):
            keep = np.flatnonzero((self.x != 0) | (size[self.work.index] >= _FAR * target))
            self.work.keep(keep)
            self.x = self.x[keep]
        size[self.work.member] = 0.0
        room = min(max(2 * _FEWEST, n_used), len(size))
        fresh = np.argpartition(size, len(size) - room)[len(size) - room :]
        fresh = np.sort(fresh[size[fresh] > _NEAR * target])
        if not len(fresh):
            return
        self.work.extend(fresh)
        self.x = np.append(self.x, np.zeros(len(fresh)))

    def _descend(self, pulled: Array, share: float) -> None:
        """Coordinate descent at the present penalty, mostly over the columns in use."""
        every = np.arange(len(self.x))
        enough = share * self.penalty
        for _ in range(10):
            if descend_gram(self.work.gram, pulled, self.x, self.penalty, every, 1, 0.0) <= enough:
                return
            used = np.flatnonzero(self.x)
            work = max(1, len(used) * len(every))
            # Twenty sweeps at the most, before all working columns are looked at again.
            sweeps = int(min(20, max(1, STEPS_PER_CALL // work)))
            descend_gram(self.work.gram, pulled, self.x, self.penalty, used, sweeps, enough)
            if not self.budget.in_time():
                return

    def _settle(self, pulled: Array) -> bool:
        """Solve the problem of the working columns as well as the gap is to be, where that is easy.

        False where coordinate descent and exact steps leave too much, as with columns that are
        nearly dependent.
        """
        residual = self.residual
        allowed = 0.02 * self.tol * float(residual @ residual) / self.radius
        for _ in range(_ROUNDS):
            self._descend(pulled, _FINE)
            if self._exact_step(pulled):
                outside = np.abs(pulled)
                outside[self.x != 0] = 0.0
                excess = float(outside.max(initial=0.0)) - self.penalty
                if excess <= max(allowed, 1e-10 * self.penalty):
                    return True
            if not self.budget.in_time():
                return True
        return False

    def _exact_step(self, pulled: Array) -> bool:
        """Go to the optimum for the signs in use; False where some would have to change.

        With signs s, ``x_S + G^-1 (pulled_S - penalty s)`` is the minimum at a penalty, and
        ``s'x = r`` gives the penalty.
        """
        used = np.flatnonzero(self.x)
        for _ in range(_DROPS):
            if not len(used):
                return False
            x, signs = self.x[used], np.sign(self.x[used])
            step, slope = self._solve(used, pulled[used], signs)
            penalty = float(signs @ (x + step) - self.radius) / float(signs @ slope)
            if penalty > 0:
                step = step - penalty * slope
            new = x + step
            wrong = new * signs < 0
            inside = penalty <= 0 and float(np.abs(new).sum()) <= self.radius
            if inside or not wrong.any():
                self.x[used] = new
                pulled -= step @ self.work.gram[used]
                self.penalty = max(penalty, 0.0)
                return True
            if np.count_nonzero(wrong) > max(1.0, _MOST_DROPPED * len(used)):
                break
            gone = used[wrong]
            pulled += self.x[gone] @ self.work.gram[gone]
            self.x[gone] = 0.0
            used = used[~wrong]
        if math.isfinite(penalty):
            self.penalty = min(max(penalty, 0.5 * self.penalty), 2 * self.penalty)
        return False

    def _solve(self, used: Index, first: Array, second: Array) -> tuple[Array, Array]:
        """``G_SS^-1`` times two vectors; a little is added to a G_SS that has no factor."""
        matrix = self.work.gram[np.ix_(used, used)]
        right = np.column_stack([first, second])
        ridge = 0.0
        while True:
            shifted = matrix + ridge * np.eye(len(used)) if ridge else matrix
            try:
                found = cho_solve(cho_factor(shifted, lower=True), right)
            except LinAlgError:
                # Rounding made the matrix singular; from the least that may help on.
                ridge = max(10 * ridge, 1e-12 * float(matrix.diagonal().max()))
                continue
            return found[:, 0], found[:, 1]

    def _settle_by_svm(self) -> None:
        """The same on the equivalent SVM, which takes more steps but ends."""
        size = float(np.abs(self.x).sum())
        start = self.x * min(1.0, self.radius / size if size > 0 else 1.0)
        block = self.design.dense_columns(self.work.index)
        self.x = self.by_svm(
            block, self.b, self.radius, start, tol=0.1 * self.tol, deadline=self.budget.deadline
        )
        residual = self.b - self.work.block.matvec(self.x)
        self.penalty = float(
            np.abs(self.design.rmatvec(residual)[self.work.index]).max(initial=0.0)
        )


def _top(pull: Array) -> float:
    return float(np.abs(pull).max(initial=0.0))
