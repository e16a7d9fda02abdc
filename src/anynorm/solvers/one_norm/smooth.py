"""Prox-Newton over working sets for the 1-norm and a smooth loss.

        minimise_{w, b}   sum_j u_j |w_j| + sum_i h_i(1 - y_i (x_i'w + b))

for the squared hinge, logistic and squared losses (Friedman, Hastie, Tibshirani 2010; Yuan, Ho,
Lin 2012; working sets as in Johnson and Guestrin 2015 and Massias et al. 2018).  Each step
minimises the quadratic model over the columns that are not zero or may become so, and goes along
it as far as the objective falls.  a = h'(r), scaled until ``|X_j'(y a)| <= u_j``, is the dual
point, so the gap is known at every step; columns that it proves to be zero are left out for good
(Ndiaye et al. 2017).
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from anynorm.certificate import certify, optimal_bias, relative_gap, repair_dual
from anynorm.problem import Problem
from anynorm.solution import Progress, Solution, Status
from anynorm.solvers.linear.newton import Logistic, Squared, SquaredHinge
from anynorm.solvers.one_norm.columns import Columns
from anynorm.solvers.one_norm.model import Model, minimise_model

_CURVES = {"squared_hinge": SquaredHinge, "logistic": Logistic, "squared": Squared}
_FORCING = 0.1
_MARGIN = 0.1
_IDLE_STEPS = 3


def solve_smooth(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve one problem with the squared hinge, logistic or squared loss to the gap `tol`.

    Parameters and result are those of `anynorm.solvers.one_norm.solve_one_norm`.
    """
    run = _Run(problem, tol, max_iter, deadline, progress)
    run.solve()
    return run.solution()


class _Run:
    """One solve: where it stands, the budget, and the best dual point so far."""

    def __init__(self, problem, tol, max_iter, deadline, progress):
        self.problem, self.tol, self.progress = problem, tol, progress
        self.max_iter, self.n_iter = max_iter, 0
        self.began = time.monotonic()
        self.deadline = np.inf if deadline is None else deadline
        weights = problem.sample_weight
        cost = problem.C * (np.ones(problem.n_rows) if weights is None else weights)
        self.cost = cost
        self.share = 1.0
        self.columns = Columns(problem.X, problem.bias_feature)
        u = np.ones(problem.n_coefs) if problem.penalty_weights is None else problem.penalty_weights
        self.penalty = np.append(u, 1.0) if problem.bias_feature else np.asarray(u, np.float64)
        self.open = np.isfinite(self.penalty)
        self.zero_primal = problem.zero_primal()
        self.coef = np.zeros(self.columns.p)
        self.scores = np.zeros(problem.n_rows)
        self.bias = 0.0
        self.dual, self.dual_value = np.zeros(problem.n_rows), 0.0
        self.certificate = None

    def solve(self):
        factor, stop = 4.0, 1.0
        self.share = 1.0
        residual, a, gradient = self._look()
        pressure = self._violation(gradient)
        shares = [1.0]
        while shares[-1] * pressure > factor and shares[-1] > 1e-9:
            shares.append(shares[-1] / factor)
        for self.share in shares[::-1]:
            while True:
                residual, a, gradient = self._look()
                if not self.spend() or (self.share == 1 and self._gap() <= self.tol):
                    return
                if self.share < 1 and self._violation(gradient) < stop:
                    break
                if not self._step(residual, a, gradient):
                    break

    @property
    def curve(self):
        return _CURVES[self.problem.loss.name](self.share * self.cost)

    def _violation(self, gradient):
        size = np.abs(gradient)
        unit = np.where(self.penalty > 0, self.penalty, 1.0)
        excess = np.where(
            self.coef != 0,
            np.abs(gradient - np.sign(self.coef) * self.penalty),
            np.maximum(size - self.penalty, 0),
        )
        excess[~self.open] = 0
        return float((excess / unit).max())

    def _look(self):
        p = self.problem
        if p.free_bias:
            self.bias = optimal_bias(p.loss, self.scores, p.y, p.C, p.sample_weight)
        residual = 1.0 - p.y * (self.scores + self.bias)
        a = self.curve.dual(residual)
        gradient = self.columns.adjoint(p.y * a)
        self.primal = self._penalty(self.coef) + p.loss.value(
            residual, self.share * p.C, p.sample_weight
        )
        if self.share == 1:
            self._offer(a, gradient)
        if self.progress is not None:
            seconds = time.monotonic() - self.began
            self.progress(Progress(self.n_iter, self.primal, self.dual_value, self._gap(), seconds))
        return residual, a, gradient

    def _penalty(self, coef):
        used = coef != 0
        return float(np.abs(coef[used]) @ self.penalty[used])

    def _offer(self, a, gradient):
        p = self.problem
        if p.free_bias or np.any(self.penalty == 0) or p.loss.slack is None:
            a = repair_dual(p, a)
            value = p.loss.dual_gain(a, p.C, p.sample_weight)
        else:
            pressure = float((np.abs(gradient) / self.penalty).max())
            total = float(a.sum())
            conj = total - p.loss.dual_gain(a, p.C, p.sample_weight)
            t = min(1 / pressure, total / (2 * conj))
            a = t * a
            value = t * total - t * t * conj
        if value > self.dual_value:
            self.dual, self.dual_value = a, value

    def _gap(self):
        return relative_gap(self.primal, self.dual_value, self.zero_primal)

    def spend(self):
        return self.n_iter < self.max_iter and time.monotonic() < self.deadline

    def _step(self, residual, a, gradient):
        p = self.problem
        size = np.abs(gradient)
        unit = np.where(self.penalty > 0, self.penalty, 1.0)
        excess = np.where(
            self.coef != 0,
            np.abs(gradient - np.sign(self.coef) * self.penalty),
            np.maximum(size - self.penalty, 0),
        )
        excess[~self.open] = 0
        violation = float((excess / unit).max())
        work = np.flatnonzero(
            self.open & ((self.coef != 0) | (size > (1 - _MARGIN) * self.penalty))
        )
        root = np.sqrt(self.curve.curvature(residual))
        model = Model(
            self.columns.part(work, root),
            gradient[work],
            self.penalty[work],
            self.coef[work].copy(),
            unit[work],
            root[root > 0],
            p.free_bias,
        )
        minimise_model(model, min(_FORCING, violation) * violation, self.spend)
        step = model.coef - self.coef[work]
        image = self.columns.combine(work, step)
        shift = model.bias[0] if p.free_bias else 0.0
        before = self.primal
        t = 1.0
        for _ in range(40):
            trial = self.coef.copy()
            trial[work] = model.coef if t == 1 else self.coef[work] + t * step
            scores = self.scores + t * image
            res = 1.0 - p.y * (scores + self.bias + t * shift)
            value = self._penalty(trial) + p.loss.value(res, self.share * p.C, p.sample_weight)
            if value < before:
                break
            t *= 0.5
        else:
            return False
        self.n_iter += 1
        self.coef, self.scores = trial, scores
        return True

    def solution(self):
        p = self.problem
        coef = self.coef[: p.n_coefs]
        bias = self.bias if p.free_bias else p.bias_feature * float(self.coef[p.n_coefs :].sum())
        status = Status.TIME_LIMIT if time.monotonic() >= self.deadline else Status.MAX_ITER
        found = certify(p, coef, bias, self.dual, tol=self.tol, stopped=status)
        return Solution(self.dual, found, max(1, self.n_iter), coef, bias)
