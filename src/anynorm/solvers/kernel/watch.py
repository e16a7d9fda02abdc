"""Keeping count for the solvers of this folder that work with the whole kernel matrix."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anynorm.norms import Mahalanobis, Norm
from anynorm.problem import Problem
from anynorm.problem.certificate import certify, optimal_bias, relative_gap, repair_dual
from anynorm.problem.solution import Progress, Solution, Status

Array = NDArray[np.float64]


class Watch:
    """The best point so far, by primal and dual values, and whether there is time for more."""

    def __init__(
        self,
        problem: Problem,
        tol: float,
        max_iter: int,
        deadline: float | None,
        progress: Callable[[Progress], None] | None,
    ) -> None:
        self.problem, self.tol, self.max_iter, self.progress = problem, tol, max_iter, progress
        self.deadline = math.inf if deadline is None else deadline
        self.began = self.last = time.monotonic()
        self.zero_primal = problem.zero_primal()
        self.stopped, self.n_iter = Status.MAX_ITER, 0
        self.gap, self.goal = math.inf, 0.5 * tol
        self.found: tuple[Array, Solution] | None = None
        slack = problem.loss.slack
        assert isinstance(slack, Norm)
        # For other norms both the repair and the best bias are long computations.
        self.repair = problem.loss.signed or slack.monotone or isinstance(slack, Mahalanobis)
        self.a, self.bias = np.zeros(problem.n_rows), 0.0

    def tick(self) -> bool:
        """Count an iteration; False where another one as long would be too late, or too many."""
        now = time.monotonic()
        lasted, self.last = now - self.last, now
        self.n_iter += 1
        if now + lasted >= self.deadline:
            self.stopped = Status.TIME_LIMIT
            return False
        return self.n_iter < self.max_iter

    def look(self, a: Array, bias: float, primal: float, dual: float) -> bool:
        """Remember the point if it is the best, report it, and say whether it is good enough.

        It is if its certificate says so; where that one is worse than the values given, by the
        rounding of the repair, a smaller gap is asked for from then on.
        """
        gap = relative_gap(primal, dual, self.zero_primal)
        if gap < self.gap:
            self.gap, self.a, self.bias = gap, a, bias
        if self.progress is not None:
            seconds = time.monotonic() - self.began
            self.progress(Progress(self.n_iter, primal, dual, gap, seconds))
        if not gap <= self.goal:
            return False
        self.goal = 0.1 * gap
        return self.solution().status is not Status.MAX_ITER

    def solution(self) -> Solution:
        """The best point, certified; without the entries that margins above 1 make 0, if it can."""
        if self.found is not None and self.found[0] is self.a:
            return self.found[1]
        solution = None
        if not self.problem.loss.signed and self.a.any() and self.repair:
            margins = self.problem.y * (self.problem.scores(self.a) + self.bias)
            small = (margins - 1.0) * float(self.a.max()) > self.a
            solution = self._certified(repair_dual(self.problem, np.where(small, 0.0, self.a)))
        if solution is None or solution.status is not Status.OPTIMAL:
            solution = self._certified(self.a)
        self.found = (self.a, solution)
        return solution

    def _certified(self, a: Array) -> Solution:
        problem, bias = self.problem, self.bias
        scores = problem.scores(a)
        if self.repair:
            bias = optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)
        certificate = certify(
            problem, a, bias, a, tol=self.tol, stopped=self.stopped, scores=scores
        )
        return Solution(a, certificate, self.n_iter, coef=a, intercept=bias)
