"""Over-relaxed dual coordinate descent for box-constrained duals on sparse rows.

        minimise_a   1/2 ||A'(y a)||^2 + 1/2 sum_i shift_i a_i^2 - sum(a),   lower <= a <= upper

(hinge: box [0, C_i], shift 0; squared hinge: [0, inf), shift 1/(2 C_i); absolute: [-C_i, C_i];
squared: no bounds, shift 1/(2 C_i)),
one a_i at a time with w = V^2 X'(y a) kept up to date, and shrinking (Hsieh et al. 2008,
Algorithm 1).  Three things make it faster than the textbook version:

- steps are over-relaxed (projected SOR), the more so once the examples at a bound have been told
  from the free ones and only a linear system is left;
- rows are visited in shuffled blocks of neighbours: as good as a full shuffle for convergence,
  and half the time in memory;
- where epochs go on for long, the moves of the last few are combined in the way that is best for
  the dual objective, which takes no product with A.  (Anderson acceleration of coordinate descent,
  Bertrand and Massias 2021, with exact weights.)

The bias solves precision * b = y'a.  As a plain constant feature it would tie all rows together
and slow the coordinate steps down, so it is kept near a centre that moves after each epoch (method
of multipliers), with the squared norm of the mean row as its variance: at that size it neither
slows the steps down nor lags behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from anynorm.design import Design
from anynorm.design.limits import ENTRIES_PER_CALL
from anynorm.design.sparse_loops import descend
from anynorm.norms.dual_sets import Box
from anynorm.solvers.frame.budget import Budget

_NEIGHBOURS = 16  # rows that stay together in the shuffle: as good, and half the time in memory
_RELAXATION = 1.3  # step length while rows still move to and from their bounds
_SETTLED_RELAXATION = 1.4  # and once a linear system is left, where SOR gains from longer steps
_SMOOTH_RELAXATION = 1.2  # and with squared slacks, whose duals are better conditioned
_EPOCHS, _MOVES = 40, 5  # before moves are combined, as they take memory, and how many are
_LAST_DIGITS = 1e-14  # of the dual value: what less than that gains is rounding
_DEPENDENT = 1e-10  # of the largest singular value: what is left of moves that are like others
_WINDOW = 25  # epochs over which the pace is measured, and between two tries to finish exactly
_FAIR_PASSES = 400  # passes over all rows that the method gets in any case
_MOST_PASSES = 400  # passes over all rows that the rest may take at the present pace
_FACTOR_PACE = 150.0  # of the cube of a matrix's side, factorised while a pass reads one entry
_SETTLED = 1.1  # active rows per free one: nearly all that still take part are free


@dataclass
class DualState:
    """A dual point with the coefficients w = V^2 X'(y a) and the bias that belong to it."""

    dual: np.ndarray
    coef: np.ndarray
    bias: float
    epochs: int = 0


def descend_dual(
    features: Design,
    y: np.ndarray,
    box: Box,
    precision: float,
    state: DualState,
    *,
    tol: float,
    seed: int,
    budget: Budget,
    check: Callable[[DualState], bool],
    finish: Callable[[DualState], bool],
    patient: bool = False,
) -> bool:
    """Improve `state` in place until `check` accepts it.

    `check` is asked when the gap collected during an epoch has come down to `tol` of the dual
    value.  `finish` may solve for the free variables exactly; it is asked from time to time once
    the others have settled at their bounds, where the rest would take longer.  False when the rest
    would take too many passes at the present pace (unless `patient`), or epochs or time have run
    out.
    """
    run = _Run(features, y, box, precision, state, seed)
    goal = tol
    gaps: list[float] = []
    tiny = np.finfo(float).tiny
    while budget.spend():
        seen, value = run.epoch(), abs(run.dual_value())
        gap = seen / max(value, tiny)
        gaps.append(gap)
        if gap > goal and len(gaps) >= _EPOCHS:
            run.combine(_LAST_DIGITS * value)
        run.recentre()
        if gap <= goal:
            if check(state):
                return True
            # Either examples were dropped too early, or the gap seen on the way flattered.
            goal = max(0.3 * gap, tiny)
            run.wake_all()
        if gap == 0.0:
            if len(gaps) > 1 and gaps[-2] == 0.0:
                return False  # nothing moves any more, with all examples awake
        elif len(gaps) % _WINDOW == 0:
            left = run.passes_left(gap / goal, gap / max(gaps[-_WINDOW], tiny))
            if run.settled() and run.costs_more(left) and finish(state):
                return True
            if not patient and run.passes > _FAIR_PASSES and left > _MOST_PASSES:
                return False
    return False


class _Run:
    """The working arrays of one descent."""

    def __init__(self, features, y, box, precision, state, seed):
        self.features, self.y, self.box, self.state = features, y, box, state
        self.precision = precision
        norms = features.row_norms_squared()
        self.leash = 0.0
        if np.isfinite(precision):
            mean = features.rmatvec(np.ones(features.n)) / features.n
            self.leash = float(mean @ mean + norms.mean() / features.n)
        variance = 1.0 / (precision + 1.0 / self.leash) if self.leash > 0 else 0.0
        self.bias = np.array([state.bias, variance])
        self.curvature = norms + box.shift + variance
        self.scale = np.empty(0) if features.scale is None else features.scale**2
        self.rng = np.random.default_rng(seed)
        self.keep = np.ones(features.n, dtype=bool)
        self.smooth = bool(box.shift.any())
        self.entries = max(1.0, features.entries(np.arange(features.n)))
        self.passes = 0.0
        self.moves: _Moves | None = None
        self.wake_all()

    def wake_all(self) -> None:
        """Every example that can move takes part again."""
        movable = (self.box.upper > self.box.lower) & (self.curvature > 0)
        self.active = np.flatnonzero(movable)
        self.thresholds = np.array([-np.inf, np.inf])

    def epoch(self) -> float:
        """One pass over the active examples; returns the gap as seen on the way."""
        state, box = self.state, self.box
        found = np.array([np.inf, -np.inf, 0.0])
        self.keep[self.active] = True
        self.passes += self.features.entries(self.active) / self.entries
        relaxation = self._relaxation()
        for order in portions(self.features, self.active, self.rng):
            descend(
                *self.features.row_arrays, self.y, box.lower, box.upper, box.shift, self.curvature,
                self.scale, order, state.dual, state.coef, self.bias, self.thresholds,
                relaxation, self.keep, found,
            )  # fmt: skip
        self.active = self.active[self.keep[self.active]]
        self.thresholds[0] = found[0] if found[0] < 0 else -np.inf
        self.thresholds[1] = found[1] if found[1] > 0 else np.inf
        state.bias = float(self.bias[0])
        state.epochs += 1
        return float(found[2])

    def combine(self, least: float) -> None:
        """Go to the best point that the last moves lead to, if once in the box it gains enough.

        Steps that gain less go on for ever, and the gap does not get smaller.
        """
        if self.moves is None:
            self.moves = _Moves(self.features, self.state)
            return
        state, box, y = self.state, self.box, self.y
        if not self.moves.learn(state):
            return
        u, (bias, variance) = self.features.from_coef(state.coef), self.bias
        slope = 1.0 - box.shift * state.dual - bias * y
        way, change = self.moves.best(slope, u, y, box.shift, variance)
        free = state.dual + way
        step = np.clip(free, box.lower, box.upper) - state.dual
        cut = np.flatnonzero(step != way)
        if cut.size:
            change += self.features.rmatvec(y[cut] * (step - way)[cut], rows=cut)
        total = float(y @ step)
        gain = slope @ step - change @ (u + 0.5 * change) - 0.5 * variance * total * total
        if gain - 0.5 * (box.shift @ step**2) > least:
            np.clip(free, box.lower, box.upper, out=state.dual)
            state.coef += self.features.to_coef(change)
            self.bias[0] += variance * total
            state.bias = float(self.bias[0])
        self.moves.start(state)

    def recentre(self) -> None:
        """The present bias becomes the centre, once the first two epochs have found a scale."""
        if self.bias[1] > 0 and self.state.epochs > 2:
            total = float(self.y @ self.state.dual)
            self.bias[0] = self.bias[1] * (self.bias[0] / self.leash + total)
            self.state.bias = float(self.bias[0])

    def dual_value(self) -> float:
        """The dual objective, the constraint of a free bias left aside."""
        dual, coef = self.state.dual, self.features.from_coef(self.state.coef)
        quadratic = coef @ coef + self.box.shift @ dual**2
        if 0 < self.precision < np.inf:
            total = float(self.y @ dual)
            quadratic += total * total / self.precision
        return float(dual.sum() - 0.5 * quadratic)

    def settled(self) -> bool:
        """Whether nearly all examples that still take part are free."""
        dual, box = self.state.dual, self.box
        free = np.count_nonzero((dual > box.lower) & (dual < box.upper))
        return bool(self.active.size < _SETTLED * free)

    def passes_left(self, excess: float, fallen: float) -> float:
        """Passes over all rows until the gap has fallen by `excess`, if it goes on like this."""
        if not fallen < 1.0:
            return np.inf
        epochs = _WINDOW * np.log(max(excess, 1.0)) / -np.log(fallen)
        return float(epochs) * self.features.entries(self.active) / self.entries

    def costs_more(self, passes: float) -> bool:
        """Whether passes over all rows take longer than the equations of the free variables."""
        dual, box = self.state.dual, self.box
        free = np.flatnonzero((dual > box.lower) & (dual < box.upper))
        matrix = self.features.entries(free) ** 2 / self.features.p
        return passes * self.entries > matrix + len(free) ** 3 / _FACTOR_PACE

    def _relaxation(self) -> float:
        if self.smooth:
            return _SMOOTH_RELAXATION
        return _SETTLED_RELAXATION if self.settled() else _RELAXATION


class _Moves:
    """Where the last epochs have led: changes of the dual, and of u = V X'(y a) with it."""

    def __init__(self, features: Design, state: DualState) -> None:
        self.features = features
        self.ways, self.images = np.empty((_MOVES, features.n)), np.empty((_MOVES, features.p))
        self.start(state)

    def start(self, state: DualState) -> None:
        """Count from here."""
        self.dual, self.coef, self.known = state.dual.copy(), state.coef.copy(), 0

    def learn(self, state: DualState) -> bool:
        """Note how the last epoch has moved; whether there are enough moves to be combined."""
        np.subtract(state.dual, self.dual, out=self.ways[self.known])
        self.images[self.known] = self.features.from_coef(state.coef - self.coef)
        self.dual[:], self.coef[:] = state.dual, state.coef
        self.known += 1
        return self.known == _MOVES

    def best(
        self, slope: np.ndarray, u: np.ndarray, y: np.ndarray, shift: np.ndarray, variance: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """The combination of the moves that gains most, and the change of u that goes with it.

        A change d of the dual gains ``slope'd - u'c - 1/2 ||c||^2 - 1/2 d' diag(shift) d``, where c
        is the change of u, less ``1/2 variance (y'd)^2`` for the bias.
        """
        totals = self.ways @ y
        bends = self.images @ self.images.T + variance * np.outer(totals, totals)
        if shift.any():
            bends += (self.ways * shift) @ self.ways.T
        gains = self.ways @ slope - self.images @ u
        weights = np.linalg.lstsq(bends, gains, rcond=_DEPENDENT)[0]
        return weights @ self.ways, weights @ self.images


def portions(
    features: Design, active: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """The active rows in an epoch's order, one call at a time."""
    blocks = -(-active.size // _NEIGHBOURS)
    first = rng.permutation(blocks) * _NEIGHBOURS
    positions = (first[:, None] + np.arange(_NEIGHBOURS)).ravel()
    order = active[positions[positions < active.size]]
    # Each entry is read twice, for its score and for its update.
    calls = int(np.ceil(2 * features.entries(order) / ENTRIES_PER_CALL))
    yield from np.array_split(order, max(1, calls))
