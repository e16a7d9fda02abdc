"""The Lasso with a bound on the 1-norm, by working sets and exact steps.

        minimise_x   ||A x - b||^2   subject to   ||x||_1 <= r

With t = b - A x, every vector t gives the lower bound ``max(0, t'b - r ||A't||_inf)^2 / ||t||^2``
(the margin of the equivalent SVM, `anynorm.reductions`), so the gap is known at every step.

The penalty falls by halves from ``||A'b||_inf``, where x = 0 is optimal, until the coefficients are
too large for the ball; then it is part of the problem.  Columns whose products with the residual,
continued along their last change, come near to the penalty join a working set, whose products with
each other are kept (working sets as in Johnson and Guestrin 2015 and Massias et al. 2018).  On
these, coordinate descent finds the columns in use, and one linear system the solution for them with
||x||_1 = r together with its penalty.  Where that settles nothing, Wolfe's method for the
equivalent SVM of the working columns does.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from anynorm.design.views import CentredDesign
from anynorm.problem.certificate import Certificate, relative_gap
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.reductions import lasso_to_svm
from anynorm.solvers.lasso.gram_loops import descend_gram
from anynorm.solvers.lasso.working_columns import GramColumns
from anynorm.solvers.simplex.min_norm import solve_min_norm

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_STAGE = 0.5  # the penalty falls by this factor
_LAST_STAGE = 1e-4  # of the first penalty; below it the ball decides
_FEWEST = 100  # columns that may join at once
_NEAR = 0.8  # of the penalty, for the columns that join
_FAR = 0.5  # of the penalty, for those that leave
_ROUGH, _FINE = 0.03, 1e-3  # of the penalty: where coordinate descent stops
_SWEEPS = 20
_ROUNDS = 6  # of coordinate descent and an exact step, for one working set
_DROPS = 6  # of columns whose sign an exact step would change
_MOST_DROPPED = 0.2  # of the columns in use
_RIDGE = 1e-12
_STALLS = 4
_KERNEL_STEPS = 1e8  # that one call of a compiled kernel may take, well under 0.2 s


def solve_lasso_ball(
    design: CentredDesign,
    b: Array,
    radius: float,
    *,
    tol: float = 1e-6,
    max_iter: int = 1000,
    deadline: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve one Lasso to the relative gap `tol`; see `LassoBall` for several radii."""
    ball = LassoBall(design, b)
    return ball.solve(radius, tol=tol, max_iter=max_iter, deadline=deadline, progress=progress)


class _Point(NamedTuple):
    """A feasible point, by its working columns, with its value."""

    primal: float
    columns: Index
    x: Array


class LassoBall:
    """A Lasso for several radii, each solution starting the next.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.solvers.lasso.ball import LassoBall
    >>> from anynorm.design import design_of
    >>> design = design_of(np.diag([2.0, 1.0])).centred(None, False)
    >>> ball = LassoBall(design, np.array([2.0, 3.0]))
    >>> ball.solve(1.0).coef.round(6), ball.solve(2.0).coef.round(6)
    (array([0.4, 0.6]), array([0.6, 1.4]))
    """

    def __init__(self, design: CentredDesign, b: Array) -> None:
        self.design, self.b = design, b
        self.zero_primal = float(b @ b)
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
        self.radius, self.tol = float(radius), tol
        self.deadline = math.inf if deadline is None else deadline
        began = time.monotonic()
        best = _Point(math.inf, self.work.index, self.x)
        bound, dual = 0.0, self.b
        within, idle, least, n_iter, stopped = False, 0, math.inf, 0, Status.MAX_ITER
        while True:
            best = self._feasible(best)
            value = self._bound()
            if value > bound:
                bound, dual = value, self.residual
            gap = relative_gap(best.primal, bound, self.zero_primal)
            if progress is not None:
                seconds = time.monotonic() - began
                progress(Progress(n_iter, best.primal, bound, gap, seconds))
            idle, least = (0, gap) if gap < 0.9 * least or not within else (idle + 1, least)
            if gap <= tol or n_iter >= max_iter or idle > 2 * _STALLS:
                break
            if time.monotonic() > self.deadline:
                stopped = Status.TIME_LIMIT
                break
            within = self._advance(within, idle)
            n_iter += 1
        coef = np.zeros(self.design.shape[1])
        coef[best.columns] = best.x
        certificate = certify_ball(self.design, self.b, self.radius, coef, dual, tol, stopped)
        return Solution(dual=dual, certificate=certificate, n_iter=n_iter, coef=coef)

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

    def _feasible(self, best: _Point) -> _Point:
        """The better of `best` and the present point, scaled into the ball."""
        size = float(np.abs(self.x).sum())
        share = min(1.0, self.radius / size) if size > 0 else 1.0
        residual = self.residual if share == 1.0 else (1 - share) * self.b + share * self.residual
        primal = float(residual @ residual)
        return _Point(primal, self.work.index, share * self.x) if primal < best.primal else best

    def _bound(self) -> float:
        """The dual value of the present residual."""
        return dual_value(self.b, self.radius, self.residual, _top(self.pull))

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
            sweeps = int(min(_SWEEPS, max(1, _KERNEL_STEPS // work)))
            descend_gram(self.work.gram, pulled, self.x, self.penalty, used, sweeps, enough)
            if time.monotonic() > self.deadline:
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
            if time.monotonic() > self.deadline:
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
                ridge = max(10 * ridge, _RIDGE * float(matrix.diagonal().max()))
                continue
            return found[:, 0], found[:, 1]

    def _settle_by_svm(self) -> None:
        """The same by Wolfe's method on the equivalent SVM, which takes more steps but ends."""
        points = lasso_to_svm(self.design.dense_columns(self.work.index), self.b, self.radius)
        size = float(np.abs(self.x).sum())
        start = points.to_simplex(self.x * min(1.0, self.radius / size if size > 0 else 1.0))
        found = solve_min_norm(
            points,
            tol=0.1 * self.tol,
            deadline=None if math.isinf(self.deadline) else self.deadline,
            start=start,
        )
        assert found.x is not None
        self.x = points.to_lasso(found.x)
        residual = self.b - self.work.block.matvec(self.x)
        self.penalty = float(
            np.abs(self.design.rmatvec(residual)[self.work.index]).max(initial=0.0)
        )


def certify_ball(
    design: CentredDesign,
    b: Array,
    radius: float,
    coef: Array,
    dual: Array,
    tol: float,
    stopped: Status = Status.MAX_ITER,
) -> Certificate:
    """Certify coefficients: ``||A x - b||^2`` from these alone, the bound from the dual alone."""
    index = np.flatnonzero(coef)
    residual = b - design.matvec(coef[index], columns=index)
    primal, zero_primal = float(residual @ residual), float(b @ b)
    bound = dual_value(b, radius, dual, _top(design.rmatvec(dual)))
    gap = relative_gap(primal, bound, zero_primal)
    status = Status.OPTIMAL if abs(gap) <= tol else stopped
    return Certificate(primal, bound, gap, status, tol, zero_primal)


def dual_value(b: Array, radius: float, dual: Array, top: float) -> float:
    """``max(0, t'b - r ||A't||_inf)^2 / ||t||^2`` for the dual t and its largest product with A."""
    length = float(np.linalg.norm(dual))
    margin = float(dual @ b) - radius * top
    return (margin / length) ** 2 if margin > 0 and length > 0 else 0.0


def _top(pull: Array) -> float:
    return float(np.abs(pull).max(initial=0.0))
