"""The best points that a solve has found, and what is said about them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from anynorm.problem.certificate import (
    Certifiable,
    Certificate,
    Values,
    certificate_of,
    doubt,
    relative_gap,
)
from anynorm.problem.solution import Progress
from anynorm.solvers.frame.budget import Budget

_VAGUE = 0.9  # a gap above it leaves the optimum open by a factor of ten and more

Report = Callable[[Progress], None] | None


class Incumbent:
    """The best primal and the best dual point so far; nothing that comes later makes them worse.

    Points are evaluated by the problem, apart from the solver that found them.  The primal and the
    dual point may come from different methods: each bounds the optimum by itself.

    Parameters
    ----------
    problem : Problem, LassoProblem or HullProblem
        What is to be solved.
    tol : float
        The relative gap to reach.
    budget : Budget
        Whose iterations and seconds go into the reports.
    progress : callable or None
        Called with a `Progress` whenever a point has been looked at.

    Attributes
    ----------
    primal_point, dual_point : Any
        What was given to `offer` with the best values; None before the first.
    primal, dual : float
        The best values.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.frame.budget import Budget
    >>> from anynorm.solvers.frame.incumbent import Incumbent
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    >>> best = Incumbent(problem, 1e-6, Budget(10))
    >>> a = np.array([0.5, 0.5])
    >>> best.offer(problem.values(np.array([2.0]), 0.0, a), "far", "a"), best.gap
    (False, 0.75)
    >>> best.offer(problem.values(np.array([1.0]), 0.0, 0 * a), "near", "zero"), best.gap
    (True, 0.0)
    >>> best.primal_point, best.dual_point
    ('near', 'a')
    """

    def __init__(
        self, problem: Certifiable, tol: float, budget: Budget, progress: Report = None
    ) -> None:
        self.problem, self.tol, self.budget, self.progress = problem, tol, budget, progress
        self.primal, self.dual, self.scale = float("inf"), -float("inf"), 0.0
        self.rounding = 0.0
        self.primal_point: Any = None
        self.dual_point: Any = None
        self.certain = True

    def offer(self, values: Values, primal_point: Any, dual_point: Any) -> bool:
        """As `keep`, and report where that leads to."""
        self.keep(values, primal_point, dual_point)
        self.report()
        return self.reached

    def keep(self, values: Values, primal_point: Any, dual_point: Any) -> bool:
        """Keep a point's primal or dual part if it is the best; whether the gap is small enough."""
        self.scale, self.certain = values.scale, self.certain and values.certain
        if values.primal < self.primal or math.isnan(self.primal) or self.primal_point is None:
            self.primal, self.primal_point = values.primal, primal_point
            self.rounding = values.rounding
        if values.dual > self.dual or math.isnan(self.dual) or self.dual_point is None:
            self.dual, self.dual_point = values.dual, dual_point
        return self.reached

    def replace(self, values: Values, point: Any, dual_point: Any = None) -> bool:
        """Keep a point whose two parts belong together, if its gap is the smallest.

        Where gaps say next to nothing, it is that of the smallest primal value; of two that are
        good enough, the one that rounding says less against.  The dual point is `point` too where
        none is given.
        """
        gap = relative_gap(values.primal, values.dual)
        better = gap < self.gap
        if min(gap, self.gap) > _VAGUE:
            better = values.primal < self.primal
        elif max(gap, self.gap) <= self.tol:
            better = doubt(values) < doubt(self._values)
        if self.primal_point is None or better or math.isnan(self.gap):
            self.primal, self.dual, self.scale = values[:3]
            self.rounding = values.rounding
            self.primal_point = point
            self.dual_point = point if dual_point is None else dual_point
        self.certain = self.certain and values.certain
        self.report(values)
        return self.reached

    def report(self, values: Values | None = None) -> None:
        """Tell how far the solve is, at the best points or at others."""
        if self.progress is None:
            return
        primal, dual = (self.primal, self.dual) if values is None else values[:2]
        gap = relative_gap(primal, dual)
        self.progress(Progress(self.budget.n_iter, primal, dual, gap, self.budget.seconds))

    @property
    def gap(self) -> float:
        """The relative gap between the best values."""
        return relative_gap(self.primal, self.dual)

    @property
    def reached(self) -> bool:
        """Whether the gap is as small as was asked for."""
        return self.gap <= self.tol

    @property
    def settled(self) -> bool:
        """Whether there is nothing to be gained: the gap is reached, or there is none."""
        return self.reached or not self.certain

    def certificate(self) -> Certificate:
        """The certificate of the best points, with the budget's status where tol was missed."""
        return certificate_of(self._values, self.tol, self.budget.stopped)

    @property
    def _values(self) -> Values:
        return Values(self.primal, self.dual, self.scale, self.certain, self.rounding)
