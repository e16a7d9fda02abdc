"""One solve of a kernel problem: the rows of the kernel, where to start, and the best point."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.rows import KernelRows
from anynorm.problem import Problem
from anynorm.problem.solution import Solution
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.kernel.features import Features, features_of

Array = NDArray[np.float64]
SolveFeatures = Callable[..., Solution]


class KernelSearch:
    """What the methods for one kernel problem share.

    The primal point of a kernel is made of the duals, f = K (y * a), but where another coef in
    their place has more digits.  `start` is a beta = y * a for the next method.
    """

    def __init__(
        self,
        problem: Problem,
        rows: KernelRows,
        best: Incumbent,
        start: Array | None,
        solve_features: SolveFeatures | None,
    ) -> None:
        self.problem, self.rows, self.best = problem, rows, best
        self.solve_features, self.tried_features = solve_features, False
        self.budget, self.tol = best.budget, best.tol
        self.start = None if start is None else problem.y * start

    @cached_property
    def features(self) -> Features | None:
        """Features that stand for the kernel, where they are few and may be used."""
        if self.solve_features is None:
            return None
        return features_of(self.problem, tol=self.tol, budget=self.budget)

    def offer(self, a: Array, bias: float, scores: Array) -> bool:
        """Certify duals with their scores; whether they are good enough."""
        values = self.problem.values(a, bias, a, scores=scores)
        return self.best.replace(values, (a, bias))

    def offer_coef(self, coef: Array, a: Array) -> bool:
        """Certify coefficients that are not the duals, which are given too."""
        scores = self.problem.scores(coef)
        bias = self.problem.best_bias(scores)
        values = self.problem.values(coef, bias, a, scores=scores)
        return self.best.replace(values, (coef, bias), (a, bias))

    def solution(self) -> Solution:
        """The best point with its certificate."""
        coef, bias = self.best.primal_point
        a = self.best.dual_point[0]
        return Solution(a, self.best.certificate(), self.budget.n_iter, coef=coef, intercept=bias)
