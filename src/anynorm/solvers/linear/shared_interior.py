"""Primal-dual interior-point method for dual variables that share bounds: budgets and balls.

        minimise_{u, b}   1/2 ||u||^2 + precision/2 b^2 + max_a a'r,      r = 1 - y (A u + b),

    over the a with   |a| <= upper,   sum |a| <= budget,   sum w (|a|/bound)^q <= 1

which are the slack norms TopK and LInf (a budget), L2, TopK2 and K12 (q = 2), and the p-norms
(q = p / (p - 1)).  A row of either sign is two copies with a >= 0, and the ball is split into

        a / bound <= v^(1/q)  for each row,      sum w v <= 1,

so that every q is as good as any other.  Each bound has a distance x >= 0 and a multiplier z >= 0,

    name        x                       z
    lower       a                       z_l
    upper       upper - a               z_u
    power       v^(1/q) - a/bound       z_p
    share       v                       z_v
    budget      budget - sum a          level
    ball        1 - sum w v             radius

and with them the conditions are u = A'(y a), y'a = precision * b and

        r = level + z_u - z_l + z_p / bound,        radius * w = z_v + z_p (v^(1/q))'.

All products x z are equal to mu, which is driven to 0 by predictor and corrector steps (Mehrotra
1992).  Eliminating what belongs to single rows leaves a system in u, b, the level and the radius,
however many rows there are.

What the method ends with has many tiny duals.  `tied` puts those at their bounds that belong
there, and changes the others by as little as restores u = A'(y a).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from anynorm.design import Design
from anynorm.design.limits import DEPENDENT
from anynorm.norms.dual_sets import BallBox, BudgetBox, DualSet, PowerBall
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.linear.newton_system import factorise, refined
from anynorm.solvers.linear.primal_dual import PrimalDual

Array = NDArray[np.float64]
Pairs = dict[str, tuple[Array, Array]]

_START = 0.5  # of the way to the bounds: where the method starts
_FIRST_PULL = 10.0  # the first multiplier of a = 0, in margins: 1 makes short steps, 1000 more
_TO_BOUNDARY = 0.995  # of the way to the nearest bound
_MOST_STEPS = 150  # `_STALLED` ends it long before, where rounding does
_STALLED, _PROGRESS = 8, 0.9  # steps that leave more of the gap and of mu: rounding's limit
_REFUSED = 2  # candidates that further steps do not make better: their rounding is the limit
_TIES = 4  # rounds of ties: clipping to the bounds breaks the equations again, by less each time


@dataclass(frozen=True)
class SharedBounds:
    """|a| <= upper, sum |a| <= budget, sum w (|a|/bound)^q <= 1; infinite where there is none."""

    upper: Array
    budget: float
    bound: Array
    weights: Array
    q: float

    @classmethod
    def of(cls, duals: DualSet) -> SharedBounds:
        """Return the bounds of a dual set."""
        if isinstance(duals, BudgetBox):
            none = np.full(duals.upper.size, math.inf)
            return cls(duals.upper, duals.budget, none, none, math.inf)
        if isinstance(duals, BallBox):
            bound = duals.length * duals.weights
            upper = np.where(bound > 0, duals.upper, 0.0)
            return cls(upper, duals.budget, bound, duals.weights, 2.0)
        assert isinstance(duals, PowerBall)
        if duals.p == 1:
            none = np.full(duals.bound.size, math.inf)
            return cls(duals.bound, math.inf, none, none, math.inf)
        upper = np.where(duals.bound > 0, math.inf, 0.0)
        return cls(upper, math.inf, duals.bound, duals.weights, duals.p / (duals.p - 1.0))

    def part(self, rows: NDArray[np.intp]) -> SharedBounds:
        """Return the bounds of some rows."""
        return SharedBounds(
            self.upper[rows], self.budget, self.bound[rows], self.weights[rows], self.q
        )

    @property
    def has_upper(self) -> bool:
        """Whether there are bounds of single entries."""
        return bool(np.isfinite(self.upper).all())

    @property
    def has_budget(self) -> bool:
        """Whether there is a budget."""
        return math.isfinite(self.budget)

    @property
    def has_ball(self) -> bool:
        """Whether there is a ball."""
        return math.isfinite(self.q)

    def reach(self) -> Array:
        """Return a point of the set with an entry for every row, as large as it may be."""
        out = np.full(self.upper.size, math.inf)
        if self.has_ball:
            out = self.bound * float(self.weights.sum()) ** (-1.0 / self.q)
        return np.minimum(np.minimum(out, self.upper), self.budget / out.size)


def solve_shared(
    features: Design,
    y: Array,
    duals: DualSet,
    precision: float,
    *,
    cost: Callable[[Array], float],
    tol: float,
    budget: Budget,
    accept: Callable[[PrimalDual], bool],
) -> PrimalDual:
    """A point whose relative gap is `tol`, or the best one before rounding takes over.

    `cost` is the slacks' part of the objective.  `accept` certifies a candidate; it is asked where
    the gap of the iteration is within `tol`, and the method ends when it agrees.
    """
    at = _Inside(features, y, duals, precision)
    least, least_mu, since, goal, refused = np.inf, np.inf, 0, tol, 0
    for _ in range(_MOST_STEPS):
        primal, dual = at.values(cost)
        gap, to_come = abs(primal - dual), at.mu * at.count
        if gap <= goal * primal:
            tied = at.tied()
            if accept(tied):
                return tied
            goal, refused = 0.1 * gap / primal, refused + 1
        # Early steps lower mu alone, as far as that is what the gap is made of.
        lower = at.mu < _PROGRESS * least_mu and to_come > goal * primal
        since = 0 if lower or gap < _PROGRESS * least else since + 1
        least, least_mu = min(least, gap), min(least_mu, at.mu)
        if since > _STALLED or refused > _REFUSED or not budget.spend(1):
            break
        try:
            with budget.watched():
                moved = at.step()
        except OutOfTime:
            break
        if not moved:
            break
    if refused == 0 and budget.in_time():
        accept(at.tied())
    return at.export()


@dataclass(frozen=True)
class _Change:
    """A direction in all variables."""

    u: Array
    bias: float
    pairs: Pairs


class _Inside:
    """Where the method stands: u, b, and the distances from all bounds with their multipliers."""

    def __init__(self, features: Design, y: Array, duals: DualSet, precision: float) -> None:
        bounds = SharedBounds.of(duals)
        self.features, self.y, self.precision = features, y, precision
        self.kept = np.flatnonzero(bounds.upper > 0)
        copies = 2 if duals.signed else 1
        self.rows = np.tile(self.kept, copies)
        self.bounds = bounds.part(self.rows)
        self.side = np.repeat([1.0, -1.0][:copies], self.kept.size)
        self.label = self.side * y[self.rows]
        self.u, self.bias, self.scores = np.zeros(features.p), 0.0, np.zeros(features.n)
        self.pairs = self._start()
        self.count = sum(x.size for x, _ in self.pairs.values())
        self._measure()

    @property
    def has_bias(self) -> bool:
        return bool(np.isfinite(self.precision))

    @property
    def a(self) -> Array:
        return self.pairs["lower"][0]

    def _start(self) -> Pairs:
        """A point well inside, with equal products."""
        bounds = self.bounds
        a = _START * bounds.reach()
        if self.precision == 0.0:
            up, down = float(a[self.label > 0].sum()), float(a[self.label < 0].sum())
            lighter = min(up, down)
            a = a * np.where(self.label > 0, lighter / up, lighter / down)
        self.size = float(a.mean())
        distances = {"lower": a}
        if bounds.has_upper:
            distances["upper"] = bounds.upper - a
        if bounds.has_ball:
            v = np.full(a.size, _START / float(bounds.weights.sum()))
            distances["power"] = v ** (1.0 / bounds.q) - a / bounds.bound
            distances["share"] = v
        if bounds.has_budget:
            distances["budget"] = np.array([bounds.budget - a.sum()])
        if bounds.has_ball:
            distances["ball"] = np.array([1.0 - float(bounds.weights @ v)])
        return {name: (x, _FIRST_PULL * self.size / x) for name, x in distances.items()}

    def fold(self, values: Array) -> Array:
        """Sums over the copies of each row, for all rows."""
        out = np.zeros((self.features.n, *values.shape[1:]))
        k = self.kept.size
        out[self.kept] = values[:k]
        if self.rows.size > k:
            out[self.kept] += values[k:]
        return out

    def _measure(self) -> None:
        """What the conditions miss, and the mean product mu."""
        bounds, pairs, a = self.bounds, self.pairs, self.a
        self.gradient = self.u - self.features.rmatvec(self.fold(self.label * a))
        self.bias_gradient = 0.0
        if self.has_bias:
            self.bias_gradient = self.precision * self.bias - float(self.label @ a)
        self.miss = self.side - self.label * (self.scores[self.rows] + self.bias)
        self.miss += pairs["lower"][1]
        if bounds.has_upper:
            self.miss -= pairs["upper"][1]
        if bounds.has_budget:
            self.miss -= pairs["budget"][1]
            self.budget_miss = bounds.budget - float(a.sum() + pairs["budget"][0][0])
        if bounds.has_ball:
            self.ball = _Ball(bounds, pairs)
            self.miss -= pairs["power"][1] / bounds.bound
        self.mu = sum(float(x @ z) for x, z in pairs.values()) / self.count

    def values(self, cost: Callable[[Array], float]) -> tuple[float, float]:
        """The primal value, and the dual one as far as the point is allowed."""
        penalty = self.precision if self.has_bias else 0.0
        residual = 1.0 - self.y * (self.scores + self.bias)
        ridge = float(self.u @ self.u) + penalty * self.bias * self.bias
        primal = 0.5 * ridge + cost(residual)
        pulled, total = self.u - self.gradient, penalty * self.bias - self.bias_gradient
        dual = float(self.side @ self.a) - 0.5 * float(pulled @ pulled)
        dual -= 0.5 * total * total / penalty if penalty > 0 else abs(self.bias_gradient)
        return primal, dual

    def step(self) -> bool:
        """Predictor, then corrector; False where no step can be made."""
        system = _SharedSystem(self)
        plain = system.direction(0.0, None)
        size = min(1.0, self._longest(plain))
        products = [
            float((x + size * dx) @ (z + size * dz)) for (x, z), (dx, dz) in self._moving(plain)
        ]
        move = system.direction(self.mu * (sum(products) / self.count / self.mu) ** 3, plain)
        size = min(1.0, _TO_BOUNDARY * self._longest(move))
        if not size > 1e-12:
            return False
        self.u = self.u + size * move.u
        self.bias += size * move.bias
        self.scores = self.scores + size * self.features.matvec(move.u)
        self.pairs = {
            name: (x + size * move.pairs[name][0], z + size * move.pairs[name][1])
            for name, (x, z) in self.pairs.items()
        }
        self._measure()
        return True

    def _moving(self, move: _Change) -> list[tuple[tuple[Array, Array], tuple[Array, Array]]]:
        return [(pair, move.pairs[name]) for name, pair in self.pairs.items()]

    def _longest(self, move: _Change) -> float:
        """The longest step that keeps all distances and multipliers positive."""
        longest = math.inf
        for pair, change in self._moving(move):
            for here, by in zip(pair, change, strict=True):
                falling = by < 0
                if falling.any():
                    longest = min(longest, float((-here[falling] / by[falling]).min()))
        return longest

    def export(self) -> PrimalDual:
        """The point in the form all methods share."""
        return PrimalDual(self.u, self.bias, self.fold(self.side * self.a))

    def tied(self) -> PrimalDual:
        """The point whose u is that of its duals, with the duals at bounds that belong there."""
        bounds, pairs = self.bounds, self.pairs
        a = np.where(pairs["lower"][1] * self.size > self.a, 0.0, self.a)
        if bounds.has_upper:
            room, pull = pairs["upper"]
            a = np.where(pull * self.size > room, bounds.upper, a)
        columns, goal = [], self.u
        if self.has_bias:
            columns.append(self.label)
            goal = np.append(goal, self.precision * self.bias)
        if bounds.has_budget and pairs["budget"][1] * bounds.budget > pairs["budget"][0]:
            columns.append(np.ones(a.size))
            goal = np.append(goal, bounds.budget)
        signed, settled = _Signed(self, columns), False
        for _ in range(_TIES):
            if not settled:
                room = np.minimum(a, bounds.upper - a)
                solve = _least_solver(signed.gram(room**2))
            changed = a + room**2 * signed.matvec(solve(goal - signed.rmatvec(a)))
            a = np.clip(changed, 0.0, bounds.upper)
            settled = bool(np.array_equal(a, changed))
        dual = self.fold(self.side * a)
        bias = self.bias
        if 0 < self.precision < np.inf:
            bias = float(self.y @ dual) / self.precision
        return PrimalDual(self.features.rmatvec(self.y * dual), bias, dual)


def _least_solver(matrix: Array) -> Callable[[Array], Array]:
    """The least solutions of a semidefinite system, dependent equations left out."""
    size = np.sqrt(np.maximum(np.diagonal(matrix), np.finfo(float).tiny))
    values, vectors = scipy.linalg.eigh(matrix / size / size[:, None], check_finite=False)
    used = values > DEPENDENT * values[-1]
    part = vectors[:, used] / size[:, None]
    return lambda right: part @ ((part.T @ right) / values[used])


class _Signed:
    """Z: the features of all copies with their labels, and some columns of their own."""

    def __init__(self, at: _Inside, columns: list[Array]) -> None:
        self.at, self.p = at, at.features.p
        self.columns = np.column_stack([*columns, np.empty((at.rows.size, 0))])

    def matvec(self, x: Array) -> Array:
        """Z x."""
        at = self.at
        along = at.label * at.features.matvec(x[: self.p])[at.rows]
        return np.asarray(along + self.columns @ x[self.p :])

    def rmatvec(self, a: Array) -> Array:
        """Z'a."""
        at = self.at
        return np.append(at.features.rmatvec(at.fold(at.label * a)), self.columns.T @ a)

    def gram(self, weights: Array) -> Array:
        """Z'DZ."""
        at = self.at
        weighted = weights[:, None] * self.columns
        side = at.features.rmatvec(at.fold(at.label[:, None] * weighted))
        inner = at.features.weighted_gram(at.kept, at.fold(weights)[at.kept])
        return np.block([[inner, side], [side.T, self.columns.T @ weighted]])


class _Ball:
    """The split ball at one point: what is left of it where v and z_p are eliminated."""

    def __init__(self, bounds: SharedBounds, pairs: Pairs) -> None:
        (a, _), (x, z), (v, z_v) = pairs["lower"], pairs["power"], pairs["share"]
        room, radius = (float(value[0]) for value in pairs["ball"])
        s, w, self.per = 1.0 / bounds.q, bounds.weights, 1.0 / bounds.bound
        power = v**s
        self.first = s * power / v
        self.second = (1.0 - s) * self.first / v  # minus the second derivative
        self.third = (2.0 - s) / v
        self.power_miss = power - a * self.per - x
        self.share_miss = z * self.first + z_v - radius * w
        self.ball_miss = 1.0 - float(w @ v) - room
        self.w, self.z, self.stiff = w, z, z / x
        bend = z * self.second + z_v / v
        self.own = self.stiff * self.first**2 + bend
        self.curvature = self.per**2 * self.stiff * bend / self.own
        self.link = self.per * self.stiff * self.first / self.own
        self.column = self.link * w
        self.diagonal = float((w**2 / self.own).sum()) + room / radius


class _SharedSystem:
    """The Newton system of u, b, the level and the radius at one point."""

    def __init__(self, at: _Inside) -> None:
        self.at = at
        bounds, pairs = at.bounds, at.pairs
        curvature = pairs["lower"][1] / at.a
        columns, diagonal = [], [1.0] * at.features.p
        if at.has_bias:
            columns.append(at.label)
            diagonal.append(at.precision)
        if bounds.has_upper:
            curvature = curvature + pairs["upper"][1] / pairs["upper"][0]
        if bounds.has_budget:
            columns.append(np.ones(at.a.size))
            diagonal.append(float(pairs["budget"][0][0] / pairs["budget"][1][0]))
        if bounds.has_ball:
            curvature = curvature + at.ball.curvature
            columns.append(at.ball.column)
            diagonal.append(at.ball.diagonal)
        self.weights, self.diagonal = 1.0 / curvature, np.array(diagonal)
        self.signed = _Signed(at, columns)
        matrix = self.signed.gram(self.weights)
        matrix[np.diag_indices_from(matrix)] += self.diagonal
        self.factor = factorise(matrix)

    def _product(self, x: Array) -> Array:
        signed = self.signed
        return self.diagonal * x + signed.rmatvec(self.weights * signed.matvec(x))

    def direction(self, target: float, predicted: _Change | None) -> _Change:
        """The Newton direction towards products of `target`, second order where predicted."""
        at, bounds, pairs = self.at, self.at.bounds, self.at.pairs
        aim = {name: target / x - z for name, (x, z) in pairs.items()}
        if predicted is not None:
            for name, (dx, dz) in predicted.pairs.items():
                aim[name] = aim[name] - dx * dz / pairs[name][0]
        pull = at.miss + aim["lower"]
        if bounds.has_upper:
            pull = pull - aim["upper"]
        if bounds.has_ball:
            ball = at.ball
            power_miss, share_miss = ball.power_miss, ball.share_miss
            if predicted is not None:
                dv, dz = predicted.pairs["share"][0], predicted.pairs["power"][1]
                power_miss = power_miss - 0.5 * ball.second * dv**2
                share_miss = share_miss - ball.second * dv * (dz - 0.5 * ball.z * ball.third * dv)
            pulled_z = aim["power"] - ball.stiff * power_miss
            pulled_v = share_miss + ball.first * pulled_z + aim["share"]
            pull = pull - ball.per * pulled_z + ball.link * pulled_v
        pull = self.weights * pull
        further = [-at.bias_gradient] if at.has_bias else []
        if bounds.has_budget:
            # In terms of the distance, whose multiplier is an unknown of the system.
            distance = aim["budget"] * pairs["budget"][0] / pairs["budget"][1]
            further.append(float(distance[0]) - at.budget_miss)
        if bounds.has_ball:
            distance = aim["ball"] * pairs["ball"][0] / pairs["ball"][1]
            moved = float((ball.w / ball.own) @ pulled_v)
            further.append(float(distance[0]) - ball.ball_miss + moved)
        right = self.signed.rmatvec(pull) + np.append(-at.gradient, further)
        x = refined(self._product, self.factor, right)
        a = pull - self.weights * self.signed.matvec(x)
        p, rest = at.features.p, x[at.features.p + at.has_bias :].tolist()
        bias = float(x[p]) if at.has_bias else 0.0
        changes = {"lower": a}
        if bounds.has_upper:
            changes["upper"] = -a
        if bounds.has_ball:
            v = (pulled_v - ball.w * rest[-1]) / ball.own + ball.link * a
            changes["power"] = power_miss + ball.first * v - ball.per * a
            changes["share"] = v
        moves = {
            name: (dx, aim[name] - pairs[name][1] / pairs[name][0] * dx)
            for name, dx in changes.items()
        }
        joint = [name for name in ("budget", "ball") if name in pairs]
        for name, dz in zip(joint, rest, strict=True):
            distance, multiplier = pairs[name]
            moves[name] = (distance / multiplier * (aim[name] - dz), np.array([dz]))
        return _Change(x[:p], bias, moves)
