"""Prox-Newton over working sets for the 1-norm and a smooth loss.

        minimise_{w, b}   sum_j u_j |w_j| + sum_i h_i(1 - y_i (x_i'w + b))

for the squared hinge, logistic and squared losses (Friedman, Hastie, Tibshirani 2010; Yuan, Ho,
Lin 2012; working sets as in Johnson and Guestrin 2015 and Massias et al. 2018).  Each step
minimises a model over the columns that are not zero or may become so, and goes along it as far
as the objective falls.  For the squared hinge the model is the loss itself, on the examples near
to costing something.

The squared hinge, and the squared loss where as many columns could be wanted as there are rows,
come to C in stages, from where w = 0 is all but optimal, each solution starting the next.  Since w
is piecewise linear in 1/C for them, it starts from the line through the last two.  Other problems
do so if C at once fails.

Where C is so large that about as many columns are in use as rows cost something, a central path
(`crowded`) leads to the optimum at once.

a = h'(r), scaled until ``|X_j'(y a)| <= u_j``, is a dual point, so the gap is known at every step.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from anynorm.problem import Problem
from anynorm.problem.certificate import Values, relative_gap
from anynorm.problem.repair import relieved_dual, repair_dual
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.patience import Patience
from anynorm.solvers.one_norm.crowded import CrowdedPath
from anynorm.solvers.one_norm.model import (
    FIRST_STEPS,
    LEAST_DAMPING,
    QuadraticModel,
    minimise_model,
    minimiser_along,
    slope_of_norm,
)

# Stages, `_ROOM`, `_FORCING`, `_GROWTH` and the model's `_FIRST_PASSES` were set together by sparse
# text of 50,000 rows and by eleven small tables, dense and sparse, at C from 0.1 to 100.
_STAGE = 4.0  # times the C of the stage before
_ROOM = 0.6  # of the rows: where fewer columns would leave w = 0, C is not raised in stages
_STAGE_VIOLATION = 1.0  # in units of the penalty: early stages are only starts
# How well a model is solved, of the violation, and the better the nearer.  A model of the squared
# hinge that is solved worse takes 15 % less time on text, and ten times the steps, or too many, on
# columns of which the bias could have a part.  That of the logistic loss is off by more itself: so
# loose it takes up to 30 % less time than with a tenth, and as many steps on such columns.
_FORCING, _LOGISTIC_FORCING = 0.1, 0.2
_NO_MORE_SIGNS = 0.05  # of the penalty: models then begin with as many steps as the last one ended
_NEARLY = 0.9  # of the penalty: columns at zero whose gradient is beyond it may leave
_FAR = 1.0  # in units of the penalty: above it, models are to hold for long steps
_NEAR = 0.2  # residuals down to minus this take part in the model of the squared hinge
_FEWEST_FRESH = 1000  # columns that may join at once, however few are in use
_GROWTH = 2.0  # times those in use
_FEW = 500  # columns in use: the systems of so few are solved exactly
_CROWD = 1.2  # rows that cost for each column in use: with fewer, Newton steps are cut short
# Models move one column at a time, and columns with a mean move each other through the bias: with
# means of 100 and without, 300 rows take 0.7 s and 0.015 s.
FAR_FOR_MODELS = 1.0  # times the spread of a dense column: a mean that is taken off before
_IDLE_STEPS = 12  # without a tenth of the violation: conditioning allows no more at this stage


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

    Parameters and result are those of `anynorm.solvers.one_norm.solve_one_norm`.  An iteration is
    one model; nothing is drawn at random; a start is one more dual point to certify with.
    """
    budget = Budget(max_iter, deadline)
    search = SmoothSearch(Incumbent(problem, tol, budget, progress), problem)
    if start is not None:
        search.offer_any(start)
    search.run()
    return search.solution()


class SmoothSearch:
    """One solve: where it stands, and the best dual point so far."""

    def __init__(self, best: Incumbent, problem: Problem) -> None:
        self.problem, self.tol = problem, best.tol
        self.best, self.budget = best, best.budget
        self.cost = problem.C * problem.row_weights()
        self.features = problem.design.with_constant(problem.bias_feature)
        u = np.ones(problem.n_coefs) if problem.penalty_weights is None else problem.penalty_weights
        self.penalty = np.append(u, 1.0) if problem.bias_feature else np.asarray(u, np.float64)
        self.never = self.penalty == 0
        self.zero_primal = problem.zero_primal()
        self.unit = self._units()
        self.dual, self.dual_value = np.zeros(problem.n_rows), 0.0
        self.goal = best.tol
        self._begin()

    def _begin(self) -> None:
        """Stand at w = 0."""
        self.share, self.enough = 1.0, 0.0
        self._stage: tuple[float, np.ndarray] | None = None
        self.coef, self.bias = np.zeros(self.features.p), 0.0
        self.scores = np.zeros(self.problem.n_rows)
        self.damping, self.steps = LEAST_DAMPING, FIRST_STEPS
        self.look()

    def run(self) -> None:
        """Raise C at once or from stage to stage; stop at the first certified point."""
        shares = self._stages()
        if self._has_room() and len(shares) > 1:
            if self._through([1.0]):
                return
            self._offer_point()
            self._begin()
        if not self._through(shares) and not self._certified():
            self.dual = relieved_dual(self.problem, self.a)
            self._offer_point()

    def _through(self, shares: list[float]) -> bool:
        """Go through stages; whether all is done."""
        for share in shares:
            if self.stage(share, _STAGE_VIOLATION if share < 1.0 else 0.0, in_crowds=False):
                return True
            if self._crowded():
                return self._follow_path() or self.stage(1.0, 0.0)
        return False

    def stage(self, share: float, enough: float, *, in_crowds: bool = True) -> bool:
        """Go on to a share of C and a violation that is `enough`; whether all is done before.

        It ends, too, where columns crowd, unless `in_crowds`.
        """
        before, self._stage = self._stage, (1.0 / self.share, self.coef)
        moved = before is not None and self._extrapolate(before, share)
        self.enough = enough
        if moved:
            self.share = share
            self.look()
        else:
            self._change_share(share)
        idle, least = 0, np.inf
        while idle < _IDLE_STEPS and self.violation > enough:
            if self._certified() or not self.budget.goes_on():
                return True
            if (self._crowded() and not in_crowds) or not self._step():
                break
            self.look()
            idle = 0 if self.violation < 0.9 * least else idle + 1
            least = min(least, self.violation)
        return False

    def _crowded(self) -> bool:
        """Whether about as many columns are in use as rows cost something."""
        loss, used = self.problem.loss, np.count_nonzero(self.coef)
        able = loss.quadratic_dual and loss.one_sided and not self.never.any()
        many = used > _FEW and np.count_nonzero(self.a) < _CROWD * used
        return bool(able and many and np.all(self.cost > 0))

    def _follow_path(self) -> bool:
        """Go along the central path from here, at once to all of C; whether all is done."""
        p = self.problem
        self._change_share(1.0)
        path = CrowdedPath(
            features=self.features,
            y=p.y,
            penalty=self.penalty,
            bend=self.curve.curvature(np.ones(p.n_rows)),
            free_bias=p.free_bias,
            coef=self.coef,
            bias=self.bias,
            gap=self.primal - self.dual_value,
        )
        patience = Patience(_IDLE_STEPS, 0.9)
        # What overflows ends the path: the steps of the last stage go on from there.
        with suppress(OutOfTime), self.budget.watched(), np.errstate(all="ignore"):
            while self.budget.spend() and path.step(self.budget.in_time):
                self.coef = path.sparse_coef()
                used = np.flatnonzero(self.coef)
                self.scores = self.features.matvec(self.coef[used], columns=used)
                self.offer_any(path.a)
                self.look()
                if self._certified():
                    return True
                if patience.is_over(path.products):
                    break
        return not self.budget.goes_on()

    def look(self) -> None:
        """Bias, residuals, dual point and gradient at the present coefficients."""
        p = self.problem
        if p.free_bias:
            self.bias = p.best_bias(self.scores)
        self.residual = 1.0 - p.y * (self.scores + self.bias)
        curve = p.loss.curve(self.share * self.cost)
        assert curve is not None
        self.curve = curve
        self.a = self.curve.dual(self.residual)
        self.gradient = self.features.rmatvec(p.y * self.a)
        used = np.flatnonzero(self.coef)
        self.size = float(np.abs(self.coef[used]) @ self.penalty[used])
        self.primal = self.size + p.loss.value(self.residual, p.C, p.sample_weight)
        self._judge()

    def _change_share(self, share: float) -> None:
        """Look from the same coefficients at another share of C, in proportion to which a is."""
        if share == self.share:
            return
        ratio, self.share = share / self.share, share
        curve = self.problem.loss.curve(share * self.cost)
        assert curve is not None
        self.curve, self.a, self.gradient = curve, ratio * self.a, ratio * self.gradient
        self._judge()

    def _judge(self) -> None:
        """The dual point and the violation that belong to the gradient."""
        self._offer()
        used = np.flatnonzero(self.coef)
        excess = np.maximum(np.abs(self.gradient) - self.penalty, 0.0)
        pull = np.sign(self.coef[used]) * self.penalty[used]
        excess[used] = np.abs(self.gradient[used] - pull)
        self.violation = float((excess / self.unit).max(initial=0.0))
        self.best.report(Values(self.primal, self.dual_value, self.zero_primal))

    def offer_any(self, a: np.ndarray) -> None:
        """Keep a dual point, repaired, if it is the best so far."""
        p = self.problem
        a = repair_dual(p, a)
        value = p.loss.dual_gain(a, p.C, p.sample_weight)
        if value > self.dual_value:
            self.dual, self.dual_value = a, value

    def _offer(self) -> None:
        """Keep the scaled a if it is the best dual point so far, from the gradient at hand."""
        p, a = self.problem, self.a
        if self.never.any():
            self.offer_any(a)
            return
        pressure = float((np.abs(self.gradient) / self.penalty).max(initial=0.0))
        t = 1.0 / pressure if pressure > 0 else 1.0
        if p.loss.quadratic_dual:
            t = p.loss.best_scale(a, 0.0, t, p.C, p.sample_weight)
        else:
            t = min(t, 1.0)
        value = p.loss.dual_gain(t * a, p.C, p.sample_weight)
        if value > self.dual_value:
            self.dual, self.dual_value = t * a, value

    def _step(self) -> bool:
        """One model and the step along it; whether the objective falls."""
        p, work = self.problem, self._working_set()
        model = self._model(work)
        needed = 0.5 * self.goal * self.primal / max(self.size, 1e-300)
        if self.enough > 0.0:
            needed = 0.5 * self.enough
        forcing = _FORCING if p.loss.quadratic_dual else _LOGISTIC_FORCING
        target = forcing * self.violation * min(1.0, self.violation)
        target = min(0.5 * self.violation, max(target, needed))
        minimise_model(model, target, self.budget.in_time)
        self.damping, self.steps = model.damping, model.steps
        self.budget.book(1)
        step = model.coef - self.coef[work]
        image = p.y * (self.features.matvec(step, columns=work) + model.bias)
        penalty, coef = self.penalty[work], self.coef[work]

        def slope(t: float) -> float:
            pull = self.curve.dual(self.residual - t * image)
            return slope_of_norm(penalty, coef, step, t) - float(image @ pull)

        t = minimiser_along(slope)
        self.coef = self.coef.copy()
        self.coef[work] = model.coef if t == 1.0 else coef + t * step
        self.scores = self.scores + t * (p.y * image - model.bias)
        return t > 0

    def _working_set(self) -> np.ndarray:
        """The columns that are not zero and those that are about to leave zero, the first first."""
        used = self.coef != 0
        lead = np.abs(self.gradient) / self.unit
        lead[~self.never] -= _NEARLY
        fresh = np.flatnonzero((lead > 0) & ~used & np.isfinite(self.penalty))
        most = max(_FEWEST_FRESH, int(_GROWTH * np.count_nonzero(used)))
        if fresh.size > most:
            fresh = fresh[np.argpartition(-lead[fresh], most)[:most]]
        used[fresh] = True
        return np.flatnonzero(used)

    def _model(self, work: np.ndarray) -> QuadraticModel:
        """The loss near the present point: itself, or its quadratic model."""
        cost = self.curve.cost
        model = self.curve.model(self.residual, far=self.violation > _FAR)
        # A row that costs nothing, nor will soon, has no part in the model.
        near = (cost > 0) & (model.pull > model.floor - _NEAR)
        rows = np.flatnonzero(near)
        root = self.problem.y * np.sqrt(model.bend)
        return QuadraticModel(
            block=self.features.column_block(work, rows, root),
            penalty=self.penalty[work],
            unit=self.unit[work],
            coef=self.coef[work],
            residual=np.abs(root[rows]) * model.pull[rows],
            root=root[rows],
            free_bias=self.problem.free_bias,
            floor=model.floor,
            damping=self.damping,
            steps=self.steps if self.violation < _NO_MORE_SIGNS else FIRST_STEPS,
        )

    def _stages(self) -> list[float]:
        """The shares of C, rising to 1, from the first at which w = 0 is nearly optimal."""
        shares = [1.0]
        # Twenty-four stages: 3e14 times the first C.
        while shares[-1] * self.violation > _STAGE and len(shares) < 24:
            shares.append(shares[-1] / _STAGE)
        return shares[::-1]

    def _has_room(self) -> bool:
        """Whether stages would only take time, unless columns are nearly dependent.

        They keep squared slacks from taking up far more columns than are used in the end, which is
        dear where these may be as many as the rows.  Which rows cost something is learnt in them,
        too: with the squared hinge C at once took twice the time on tables of all kinds.
        """
        loss = self.problem.loss
        if not loss.quadratic_dual:
            return True
        wanted = np.count_nonzero(np.abs(self.gradient) > self.unit)
        return bool(not loss.one_sided and wanted < _ROOM * self.problem.n_rows)

    def _extrapolate(self, last: tuple[float, np.ndarray], share: float) -> bool:
        """Go on along the line, in 1/C, of the last two solutions, if there are two.

        No signs change.
        """
        weakness, coef = last
        here = 1.0 / self.share
        if not weakness > here:
            return False
        ahead = self.coef + (self.coef - coef) * (1.0 / share - here) / (here - weakness)
        self.coef = np.where(ahead * self.coef > 0, ahead, 0.0)
        used = np.flatnonzero(self.coef)
        self.scores = self.features.matvec(self.coef[used], columns=used)
        return True

    def _units(self) -> np.ndarray:
        """What a violation is measured in: the penalty, or the size of a gradient without one."""
        if not self.never.any():
            return self.penalty
        size = np.sqrt(
            self.features.column_norms_squared(self.cost) * max(self.zero_primal, 1e-300)
        )
        return np.where(self.never, np.where(size > 0, size, 1.0), self.penalty)

    def _gap(self) -> float:
        return relative_gap(self.primal, self.dual_value)

    def _certified(self) -> bool:
        """Whether the gap looks small enough and is."""
        if self._gap() > self.goal:
            return False
        if self._offer_point():
            return True
        used = np.flatnonzero(self.coef)
        self.scores = self.features.matvec(self.coef[used], columns=used)
        self.goal *= 0.5
        return False

    def _offer_point(self) -> bool:
        coef, bias = self.point()
        return self.best.keep(self.problem.values(coef, bias, self.dual), (coef, bias), self.dual)

    def solution(self) -> Solution:
        """The best points with their certificate."""
        if not self.best.reached:
            self._offer_point()
        coef, bias = self.best.primal_point
        return Solution(
            self.best.dual_point, self.best.certificate(), max(1, self.budget.n_iter), coef, bias
        )

    def point(self) -> tuple[np.ndarray, float]:
        """Coefficients and intercept where the search stands."""
        p = self.problem
        if p.bias_feature:
            return self.coef[:-1], p.bias_feature * float(self.coef[-1])
        return self.coef, self.bias
