"""The hinge and the absolute loss with the 1-norm by an interior-point method, on growing columns.

        minimise_{w, b}   sum_j u_j |w_j| + sum_i max(upper_i r_i, lower_i r_i),   r = 1 - Z w - y b
        maximise_a        sum(a),   lower <= a <= upper,   |Z'a| <= u,   y'a = 0

with Z = diag(y) X.  Every bound of the dual has a distance and a force that holds it:

        distances    u - Z'a    u + Z'a    a - lower    upper - a
        forces       w+         w-         s            t             w = w+ - w-,  r = t - s

Where all products of a distance and its force are mu, the point is on the central path, along
which mu goes to 0.  Predictor and corrector steps follow it (Mehrotra 1992), and further correctors
bring products that are far off nearer to the others (Gondzio 1996): a factor costs more than its
uses.  Eliminating all but w leaves the system

        (Theta^-1 + Z'E Z) dw + Z'E y db = ...,   Theta, E made of forces / distances

over the columns that take part.  These are few: columns whose pull |Z_j'a| comes near to u_j join,
and those that are far below it leave again.  Rows leave, too: of the two forces on a dual, one soon
outweighs the other, and the dual stays at that bound unless its residual changes its sign, with
which the row is back.  The start is that of a ridge regression, its residuals
giving the duals.  Ties do not matter to it, nor does the number of pivots to a vertex; data in
general position with few columns in use are better served by the simplex method.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np
from scipy.linalg.lapack import dpotrs

from anynorm.design.block_products import BlockProducts
from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.problem.certificate import Values, relative_gap
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.long_factor import lower_factor
from anynorm.solvers.frame.patience import Patience
from anynorm.solvers.one_norm.linear_programs import suits_vertices, vertex_of

_TO_BOUNDARY = 0.99  # of the way to the nearest bound
_CORRECTORS = 3  # at the most, beside Mehrotra's: each costs a tenth of a factor
_LEAST_GAIN = 0.05  # of the two steps' lengths together: a corrector that brings less is the last
_STEPS_OF_START = 12  # of conjugate gradients: the start need not be exact
_WEAK = 10.0  # times the bounds: where duals of full size pull no more, few columns leave zero
_STEPS_OF_WEAK = 3  # of the start there: the rest of it would cost a fifth of the whole
_RIDGE = 0.1  # of the mean squared length of a column
_FROM_BOUNDS = 0.05  # of the box: as near as the duals of the start may be to them
_FAR_START = 100.0  # times the bounds: how far pulls may be beyond them at the start
_OFF_PATH = 100.0  # times mu: the largest product at the start
_FEW, _MOST = 50, 300  # columns at the start
_JOIN, _LEAVE = 0.9, 0.8  # of the bound: pulls with which columns join, and leave
_IN_SIGHT = 0.5  # the relative gap from which on pulls tell who may leave
_STRONGEST = 0.1  # of the largest pull beyond its bound: weaker ones may join later
_GROWTH = 0.5  # of the columns that take part: how many may join at once
_SETTLED = 30.0  # times its other force: a force that takes a dual to its bound and holds it
_CLEAR = 0.2  # the least residual of a row that leaves
_ROWS_PER_COLUMN = 2  # that stay, at the least: duals at their bounds must leave room for others
_ASTRAY = 10.0  # times the merit at which rows left: they are all back, and stay
_WORTH = 0.25  # of the rows that take part: fewer that may leave are not worth a new part
_IDLE_STEPS = 12  # without a tenth of the gap: rounding allows no more
_MOST_COLUMNS = 4000  # that may take part: a factor takes a second
_DAMPING = 1e-14  # of the diagonal: what rounding may have taken from it
_BEYOND = 3  # steps for the sake of exact zeros, where the gap is small enough without them
_FEWEST_ROWS = 250  # below, the simplex method needs a few milliseconds and no factors
_LEAST_TOL = 1e-10  # a smaller gap is drowned by rounding before it is reached
_HALF = 0.5  # of the gap: how much better the next point must be where the last was not certified


def solve_along_central_path(
    problem: Problem,
    *,
    tol: float,
    max_iter: int,
    deadline: float | None,
    seed: int,
    start: np.ndarray | None,
    progress: Callable[[Progress], None] | None,
) -> Solution:
    """Solve one problem of the hinge or the absolute loss; see `solve_one_norm`.

    An iteration is one factor.  Nothing is drawn at random, and a start is one more dual point.
    """
    budget = Budget(max_iter, deadline)
    best = Incumbent(problem, tol, budget, progress)
    zero = np.zeros(problem.n_coefs)
    first = np.zeros(problem.n_rows) if start is None else start
    bias = problem.best_bias(np.zeros(problem.n_rows)) if problem.free_bias else 0.0
    best.keep(problem.values(zero, bias, first), (zero, bias), first)
    try:
        # What overflows ends the search: the best point so far is kept.
        with budget.watched(), np.errstate(all="ignore"):
            _follow(_CentralPoint(problem), best)
    except OutOfTime:
        pass
    coef, bias = best.primal_point
    return Solution(best.dual_point, best.certificate(), max(1, budget.n_iter), coef, bias)


def _follow(at: _CentralPoint, best: Incumbent) -> None:
    """Step by step until the gap is certified, or nothing moves any more."""
    goal, beyond, patience = best.tol, 0, Patience(_IDLE_STEPS, 0.9)
    while not best.reached:
        gap = relative_gap(at.primal, at.dual)
        best.report(Values(at.primal, at.dual, best.scale))
        if gap <= goal:
            # A little further on, coefficients that end at zero can be told from others.
            at.offer(best, sparse=beyond < _BEYOND)
            goal = goal if beyond < _BEYOND else _HALF * gap
            beyond += 1
        if best.reached or not np.isfinite(gap) or patience.is_over(at.merit):
            break
        if not best.budget.spend() or not at.step():
            break
        at.change_rows()
        at.change_columns(gap)
    if not best.reached:
        at.offer(best)


class _CentralPoint:
    """Where the path is: columns that take part, distances and forces, the bias.

    Distances and forces are one vector each, in the order of the module's table.
    """

    def __init__(self, problem: Problem) -> None:
        box = problem.dual_set
        assert isinstance(box, Box)
        self.problem, self.box = problem, box
        self._take_rows(np.flatnonzero(box.upper > box.lower))
        design = problem.design.thin()
        self.features = design.with_constant(problem.bias_feature)
        u = np.ones(problem.n_coefs) if problem.penalty_weights is None else problem.penalty_weights
        self.penalty = np.append(u, 1.0) if problem.bias_feature else np.asarray(u, np.float64)
        in_use = np.zeros(problem.n_rows)
        in_use[self.rows] = 1.0
        self.squares = self.features.column_norms_squared(in_use)
        self.usable = np.isfinite(self.penalty) & (self.squares > 0)
        self.per_bound = np.divide(
            1.0, self.penalty, out=np.zeros(self.features.p), where=self.usable
        )
        self.fullness = design.column_entries()
        self._hold_none()
        self._begin()

    # ------------------------------------------------------------ the start

    def _begin(self) -> None:
        """Coefficients of a ridge regression, duals made from its residuals."""
        w, self.bias, r = self._ridge()
        width = self.upper - self.lower
        share = np.clip(r, -1.9, 1.9) if (self.lower < 0).any() else np.clip(r, 0.1, 1.9)
        share = share * (width / width.mean())
        if self.problem.free_bias:
            up, down = share[self.label > 0].sum(), -share[self.label < 0].sum()
            if up * down < 0:
                tilt = np.sqrt(abs(down / up))
                share = np.where(self.label > 0, share * tilt, share / tilt)
        pull = np.abs(self._pulls(share))[self.usable] / self.penalty[self.usable]
        scale = min(0.5 * self.upper.mean(), _FAR_START / max(pull.max(initial=0.0), 1e-300))
        edge = _FROM_BOUNDS * width
        a = np.clip(scale * share, self.lower + edge * (self.lower < 0), self.upper - edge)
        self.pulls = self._pulls(a)
        below, above = a - self.lower, self.upper - a
        # Forces that agree with the residuals, but with no product far above the others.
        mu = float(np.minimum(below, above).mean())
        s, t = mu / below, mu / above
        spread = np.sqrt(r**2 + 4 * s * t)
        s, t = (
            np.maximum(force, np.minimum(0.5 * (spread + sign * r), _OFF_PATH * force))
            for force, sign in ((s, -1.0), (t, 1.0))
        )
        lead = self._lead()
        strong, usable = np.count_nonzero(lead > _JOIN * self._reach(lead)), self.usable.sum()
        most = _MOST if usable <= _MOST else int(np.clip(strong, _FEW, _MOST))
        self.columns = self._ordered(_largest(lead, most, self.usable))
        room = np.maximum(self.penalty, np.abs(self.pulls))[self.columns]
        w = w[self.columns]
        self.distance = np.concatenate([room, room, below, above])
        plus, minus = mu / room + np.maximum(w, 0.0), mu / room + np.maximum(-w, 0.0)
        self.force = np.concatenate([plus, minus, s, t])
        self._gather()
        self._measure()

    def _hold_none(self) -> None:
        """All rows take part: no dual is held at its bound."""
        n, p = self.problem.n_rows, self.features.p
        self.settled = self.returned = self.rows[:0]
        self.clear, self.may_leave, self.whole = np.zeros(0), True, False
        self.limit, self.held, self.drift = np.zeros((3, n))
        self.held_pulls, self.drift_pulls = np.zeros((2, p))
        self.drift_balance = 0.0
        self.before: _CentralPoint | None = None

    def _ridge(self) -> tuple[np.ndarray, float, np.ndarray]:
        """w, b and the residuals of a weighted ridge regression, by a few conjugate gradients."""
        width = float((self.upper - self.lower).mean())
        weights = (self.upper - self.lower) / width
        label, free = self.label, self.problem.free_bias
        columns = np.flatnonzero(self.usable)
        damping = _RIDGE * float(self.squares[columns].mean()) if columns.size else 1.0
        scale = 1.0 / (damping + self.squares)
        w, b, r = np.zeros(self.features.p), 0.0, np.ones(self.n)
        direction, shift, before = np.zeros(self.features.p), 0.0, np.inf
        pull = 0.0
        for step in range(_STEPS_OF_START):
            if step == _STEPS_OF_WEAK and pull <= _WEAK:
                break
            gradient = np.where(self.usable, self._pulls(weights * r) - damping * w, 0.0)
            if step == 0:
                pull = width * float((np.abs(gradient) * self.per_bound).max(initial=0.0))
            slope = float(label @ (weights * r)) if free else 0.0
            size = float(gradient @ (scale * gradient)) + slope**2 / self.n
            if not size > 0:
                break
            direction = scale * gradient + (size / before) * direction
            shift = slope / self.n + (size / before) * shift
            image = self._image(direction[columns], columns) + label * shift
            bend = float(image @ (weights * image) + damping * (direction @ direction))
            if not bend > 0:
                break
            length = size / bend
            w, b, r = w + length * direction, b + length * shift, r - length * image
            before = size
        return w, b, r

    # ------------------------------------------------------------ products, rows and columns

    def _take_rows(self, rows: np.ndarray) -> None:
        """Rows that take part, with their bounds and labels."""
        self.rows, self.n = rows, rows.size
        self.lower, self.upper = self.box.lower[rows], self.box.upper[rows]
        self.label = self.problem.y[rows]

    def _pulls(self, a: np.ndarray) -> np.ndarray:
        """Z'a over all columns, those duals included that are held at their bounds."""
        if self.whole:
            pulls = self.held_pulls.copy()
            pulls[self.columns] += self.part.rmatvec(a)
            return pulls
        full = np.zeros(self.problem.n_rows)
        full[self.rows] = self.label * a
        return self.held_pulls + self.features.rmatvec(full)

    def _image(self, w: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Z w for some columns."""
        return self.label * self.features.matvec(w, columns=columns)[self.rows]

    def _lead(self) -> np.ndarray:
        """The pulls in units of their bounds, 0 where a column is out."""
        return np.abs(self.pulls) * self.per_bound

    def _reach(self, lead: np.ndarray) -> float:
        return max(1.0, _STRONGEST * float(lead.max(initial=0.0)))

    def _ordered(self, columns: np.ndarray) -> np.ndarray:
        """The fullest first, as `BlockProducts` likes it; a constant column is the last."""
        columns = np.sort(columns)
        constant = columns[columns == self.problem.n_coefs]
        columns = columns[columns < self.problem.n_coefs]
        order = np.argsort(-self.fullness[columns], kind="stable")
        return np.concatenate([columns[order], constant])

    def _gather(self) -> None:
        """The columns that take part, side by side."""
        root = np.zeros(self.problem.n_rows)
        root[self.rows] = self.label
        self.part = BlockProducts(self.features.column_block(self.columns, self.rows, root))
        self.bound = self.penalty[self.columns]
        self.whole = self.columns.size == np.count_nonzero(self.usable)
        self.scores = self.part.matvec(self.coef)

    @property
    def coef(self) -> np.ndarray:
        """The coefficients of the columns that take part."""
        count = self.columns.size
        return self.force[:count] - self.force[count : 2 * count]

    @property
    def a(self) -> np.ndarray:
        """The dual variables, between their bounds."""
        first = 2 * self.columns.size
        return self.lower + self.distance[first : first + self.n]

    @property
    def mu(self) -> float:
        """The mean product of a distance and its force."""
        return float(self.distance @ self.force) / self.force.size

    def _measure(self) -> None:
        """The residuals of all conditions, and both values, at the pulls that are at hand."""
        count, a = self.columns.size, self.a
        pull = self.pulls[self.columns]
        residual = 1.0 - self.scores - self.label * self.bias
        s, t = self.force[2 * count :].reshape(2, -1)
        self.primal_miss = residual + s - t
        low, high = self.bound - pull, self.bound + pull
        self.dual_miss = np.concatenate([low, high]) - self.distance[: 2 * count]
        mu = self.mu
        over = np.abs(self.dual_miss) / np.tile(self.bound, 2)
        self.far = float(over.max(initial=0.0))
        self.merit = mu * (1.0 + float(np.abs(self.primal_miss).max()) + self.far)
        self.balance = 0.0
        if self.problem.free_bias:
            self.balance = float(self.label @ a) + float(self.problem.y @ self.held)
        slack = float(np.where(residual > 0, self.upper, self.lower) @ residual)
        if self.settled.size:
            self.clear = self._residual_of(self.settled)
            slack += float(self.limit[self.settled] @ self.clear)
        self.primal = float(self.bound @ np.abs(self.coef)) + slack
        total = float(a.sum()) + float(self.held.sum())
        self.dual = total / max(1.0, float(self._lead().max(initial=0.0)))

    def _residual_of(self, rows: np.ndarray) -> np.ndarray:
        """The residuals of rows that need not take part."""
        scores = self.features.matvec(self.coef, columns=self.columns)[rows]
        return 1.0 - self.problem.y[rows] * (scores + self.bias)

    def _settling(self, s: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Which rows may leave: none where few could, or where the point is still far off."""
        more, less = np.maximum(s, t), np.minimum(s, t)
        leaves, least = np.zeros(self.n, dtype=bool), _WORTH * self.n
        most = self.n - max(_FEW, _ROWS_PER_COLUMN * self.columns.size)
        near = max(self.far, float(np.abs(self.primal_miss).max())) <= _CLEAR
        if not (near and self.may_leave and most > least):
            return leaves
        held = (more > _SETTLED * less) & (more - less > _CLEAR)
        held &= ~np.isin(self.rows, self.returned)
        places = _largest(more / less, most, held)
        leaves[places] = places.size > least
        return leaves

    def change_rows(self) -> None:
        """Leave out rows whose duals are held at a bound, take back those with another sign."""
        if self.before is not None and self.merit > _ASTRAY * self.before.merit:
            # Too many had left: others cannot make up for duals that do not move.
            vars(self).update(vars(self.before), may_leave=False)
            return
        rest, settled = 2 * self.columns.size, self.settled
        below, above = self.distance[rest:].reshape(2, -1)
        s, t = self.force[rest:].reshape(2, -1)
        leaves = self._settling(s, t)
        back = settled[(self.clear > 0) != (self.limit > self.box.lower)[settled]]
        if not back.size and not leaves.any():
            return
        if leaves.any():
            self.before = None
            self.before = copy(self)
        stays, gone, mu = ~leaves, self.rows[leaves], self.mu
        self.limit, self.held = self.limit.copy(), self.held.copy()
        self.limit[gone] = np.where(t > s, self.upper, self.lower)[leaves]
        self.held[gone], self.held[back] = self.a[leaves], 0.0
        self.returned = np.union1d(self.returned, back)
        self.settled = np.concatenate([np.setdiff1d(settled, back), gone])
        self._take_rows(np.concatenate([self.rows[stays], back]))
        # Back with no more force than rows have that are in doubt.
        lower, upper = self.box.lower[back], self.box.upper[back]
        edge = np.minimum(mu / _CLEAR, 0.5 * (upper - lower))
        a = np.where(self.limit[back] > lower, upper - edge, lower + edge)
        fresh = a - lower, upper - a, mu / (a - lower), mu / (upper - a)
        below, above, s, t = (
            np.append(old[stays], new) for old, new in zip((below, above, s, t), fresh, strict=True)
        )
        self.distance = np.concatenate([self.distance[:rest], below, above])
        self.force = np.concatenate([self.force[:rest], s, t])
        self.drift = np.zeros(self.problem.n_rows)
        self.drift[self.settled] = (self.limit - self.held)[self.settled]
        self.drift_balance = float(self.problem.y @ self.drift)
        self.held_pulls, self.drift_pulls = (
            self.features.rmatvec(self.problem.y * duals) for duals in (self.held, self.drift)
        )
        self._gather()
        self.pulls = self._pulls(self.a)
        self._measure()

    def change_columns(self, gap: float) -> None:
        """Take in columns that are pulled near to their bounds, leave out those far from them."""
        count, lead = self.columns.size, self._lead()
        own = lead[self.columns]
        fresh = lead.copy()
        fresh[self.columns] = 0.0
        fresh[fresh <= _JOIN * self._reach(own)] = 0.0
        joining = _largest(fresh, max(_FEW, int(_GROWTH * count)), fresh > 0)
        stays = np.ones(count, dtype=bool)
        if count > _MOST and max(gap, self.far) < _IN_SIGHT:
            stays = (own >= _LEAVE) | ~self._unused()
        if not joining.size and stays.all():
            return
        columns = self._ordered(np.concatenate([self.columns[stays], joining]))
        place = np.full(self.features.p, -1)
        place[self.columns] = np.arange(count)
        known, old = place[columns] >= 0, place[columns]
        mu = self.mu
        u, pull = self.penalty[columns], self.pulls[columns]
        sides = []
        for k, room in enumerate((u - pull, u + pull)):
            room = np.maximum(room, (1 - _JOIN) * u)
            distance = np.where(known, self.distance[k * count + old], room)
            sides.append((distance, np.where(known, self.force[k * count + old], mu / room)))
        rest = slice(2 * count, None)
        self.distance = np.concatenate([sides[0][0], sides[1][0], self.distance[rest]])
        self.force = np.concatenate([sides[0][1], sides[1][1], self.force[rest]])
        self.columns = columns
        self._gather()
        self._measure()

    # ------------------------------------------------------------ steps

    def step(self) -> bool:
        """Predictor and correctors; False where no step can be made."""
        if not 0 < self.columns.size <= _MOST_COLUMNS or not self._factor():
            return False
        mu = self.mu
        plain = self._direction(np.zeros_like(self.force), drift=1.0)
        distance, force = (min(1.0, length) for length in self._longest(plain))
        reached = float(
            (self.distance + distance * plain.distance) @ (self.force + force * plain.force)
        )
        target = mu * (reached / (mu * self.force.size)) ** 3
        drift = max(0.0, 1.0 - target / mu)
        move = self._direction(target - plain.distance * plain.force, drift=drift)
        longest = self._longest(move)
        for _ in range(_CORRECTORS):
            distance, force = (min(1.0, 1.5 * min(1.0, length) + 0.3) for length in longest)
            product = (self.distance + distance * move.distance) * (self.force + force * move.force)
            wanted = np.clip(product, 0.1 * target, 10 * target) - product
            more = self._direction(np.maximum(wanted, -10 * target))
            better = move.with_more(more)
            lengths = self._longest(better)
            gain = sum(min(1.0, x) for x in lengths) - sum(min(1.0, x) for x in longest)
            if gain <= 0:
                break
            move, longest = better, lengths
            if gain < _LEAST_GAIN:
                break
        distance, force = (min(1.0, _TO_BOUNDARY * length) for length in longest)
        if not max(distance, force) > 0:
            return False
        self.distance = self.distance + distance * move.distance
        self.force = self.force + force * move.force
        self.scores = self.scores + force * move.scores
        self.bias += force * move.bias
        self._approach(distance * drift)
        self.pulls = self._pulls(self.a)
        self._measure()
        return bool(np.isfinite(self.primal) and self.distance.min() > 0 and self.force.min() > 0)

    def _factor(self) -> bool:
        """The factor of Theta^-1 + Z'E Z, and what the bias needs of it."""
        count = self.columns.size
        self.ratio = self.force / self.distance
        self.stiffness = 1.0 / (self.ratio[:count] + self.ratio[count : 2 * count])
        self.weights = 1.0 / (self.ratio[2 * count :].reshape(2, -1).sum(axis=0))
        system = self.part.gram(self.weights)
        diagonal = np.einsum("ii->i", system)
        diagonal += self.stiffness
        damping = _DAMPING
        diagonal *= 1.0 + damping
        factor = lower_factor(system)
        while factor is None and damping < 1e-4:
            damping *= 100.0
            diagonal *= 1.0 + damping
            factor = lower_factor(system)
        if factor is None:
            return False
        self.factor = factor
        if self.problem.free_bias:
            pull = self.part.rmatvec(self.weights * self.label)
            self.with_bias = dpotrs(factor, pull, lower=1)[0]
            self.bias_pull = pull
            self.bias_weight = float(self.weights.sum()) - float(pull @ self.with_bias)
            return self.bias_weight > 0
        return True

    def _approach(self, share: float) -> None:
        """Take the duals of settled rows nearer to their bounds, by a share of the way."""
        self.held = self.held + share * self.drift
        self.held_pulls = self.held_pulls + share * self.drift_pulls
        self.drift = (1.0 - share) * self.drift
        self.drift_pulls = (1.0 - share) * self.drift_pulls
        self.drift_balance *= 1.0 - share

    def _direction(self, products: np.ndarray, *, drift: float | None = None) -> _CentralMove:
        """The Newton direction to these products, which may mend all other conditions too.

        Then duals of settled rows go a share `drift` of the way to their bounds.
        """
        count = self.columns.size
        aim = products / self.distance
        tilt = np.zeros(self.n)
        lack = 0.0
        if drift is not None:
            aim -= self.force
            tilt, lack = self.primal_miss, self.balance + drift * self.drift_balance
            pull = drift * self.drift_pulls[self.columns]
            miss = self.dual_miss + np.concatenate([-pull, pull])
        sides = aim[: 2 * count].reshape(2, -1)
        if drift is not None:
            sides = sides - (self.ratio[: 2 * count] * miss).reshape(2, -1)
        rows = aim[2 * count :].reshape(2, -1)
        e = rows[0] - rows[1] + tilt
        pulled = self.weights * e
        rhs = self.part.rmatvec(pulled)
        rhs += self.stiffness * (sides[0] - sides[1])
        w = dpotrs(self.factor, rhs, lower=1)[0]
        bias = 0.0
        if self.problem.free_bias:
            slope = float(self.label @ pulled) + lack - float(self.bias_pull @ w)
            bias = slope / self.bias_weight
            w -= bias * self.with_bias
        scores = self.part.matvec(w)
        a = pulled - self.weights * (scores + self.label * bias)
        if self.problem.free_bias:
            # Rounding in the sums above is not left to the duals.
            slip = (float(self.label @ a) + lack) / float(self.weights.sum())
            bias += slip
            a -= slip * self.weights * self.label
        # Z'a as the system has it, which corrections may take for granted.
        pull = self.stiffness * (w - sides[0] + sides[1])
        if drift is not None:
            pull = self.part.rmatvec(a)
        distance = np.concatenate([-pull, pull, a, -a])
        if drift is not None:
            distance[: 2 * count] += miss
        force = aim - self.ratio * distance
        # w itself is exact to more digits than what its pulls say.
        slip_of_w = (w - (force[:count] - force[count : 2 * count])) * self.stiffness
        force[:count] += slip_of_w * self.ratio[:count]
        force[count : 2 * count] -= slip_of_w * self.ratio[count : 2 * count]
        return _CentralMove(distance, force, scores, bias)

    def _longest(self, move: _CentralMove) -> tuple[float, float]:
        """The longest steps that keep distances and forces positive."""
        return _until_zero(self.distance, move.distance), _until_zero(self.force, move.force)

    # ------------------------------------------------------------ what is handed back

    def _unused(self) -> np.ndarray:
        """Whether the distance of a column's pull from its bound outweighs its coefficient."""
        size = np.abs(self.coef)
        room = self.distance[: 2 * size.size].reshape(2, -1).min(axis=0)
        return size * self.bound < room * max(float(size.mean()), 1e-300)

    def offer(self, best: Incumbent, *, sparse: bool = False) -> None:
        """Certify the point, `sparse` with zero for columns that look unused."""
        problem = self.problem
        dual, coef = self.held.copy(), np.zeros(self.features.p)
        dual[self.rows] = self.a
        coef[self.columns] = np.where(self._unused(), 0.0, self.coef) if sparse else self.coef
        bias = problem.bias_feature * float(coef[-1])
        coef = coef[: problem.n_coefs]
        scores = problem.scores(coef)
        if problem.free_bias:
            bias = problem.best_bias(scores)
        best.keep(problem.values(coef, bias, dual, scores=scores), (coef, bias), dual)


class _CentralMove(NamedTuple):
    """A direction in all variables."""

    distance: np.ndarray
    force: np.ndarray
    scores: np.ndarray
    bias: float

    def with_more(self, other: _CentralMove) -> _CentralMove:
        """The sum of two directions."""
        return _CentralMove(
            self.distance + other.distance,
            self.force + other.force,
            self.scores + other.scores,
            self.bias + other.bias,
        )


def _largest(values: np.ndarray, most: int, allowed: np.ndarray) -> np.ndarray:
    """The places of the largest values, at most so many, among the allowed ones."""
    places = np.flatnonzero(allowed)
    if places.size <= most:
        return places
    return places[np.argpartition(-values[places], most)[:most]]


def _until_zero(values: np.ndarray, changes: np.ndarray) -> float:
    """The multiple of the changes at which the first of the values is zero."""
    fastest = float((changes / values).min())
    return -1.0 / fastest if fastest < 0 else np.inf


def suits_central_path(problem: Problem, *, tol: float, start: np.ndarray | None) -> bool:
    """Whether the problem is large enough, can be solved so well, and no vertex is at hand."""
    if not suits_vertices(problem):
        return False
    box, u = problem.dual_set, problem.penalty_weights
    assert isinstance(box, Box)
    in_use = box.upper > box.lower
    if np.count_nonzero(in_use) < _FEWEST_ROWS or tol < _LEAST_TOL:
        return False
    if (u is not None and np.any(u == 0)) or not np.all(np.isfinite(box.upper)):
        return False
    if problem.free_bias and np.ptp(problem.y[in_use]) == 0:
        return False
    return start is None or vertex_of(problem, start) is None
