"""Over-relaxed dual coordinate descent for box-constrained duals on sparse rows.

        minimise_a   1/2 ||A'(y a)||^2 + 1/2 sum_i shift_i a_i^2 - sum(a),   lower <= a <= upper

(hinge: box [0, C_i], shift 0; squared hinge: [0, inf), shift 1/(2 C_i); absolute: [-C_i, C_i];
squared: no bounds, shift 1/(2 C_i)),
one a_i at a time with w = V^2 X'(y a) kept up to date, and shrinking (Hsieh et al. 2008,
Algorithm 1).  Two things make it faster than the textbook version:

- steps are over-relaxed (projected SOR), the more so once the examples at a bound have been told
  from the free ones and only a linear system is left;
- rows are visited in shuffled blocks of neighbours: as good as a full shuffle for convergence,
  and half the time in memory.

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
_SETTLED_RELAXATION = 1.6  # and once a linear system is left, where SOR gains from longer steps
_SMOOTH_RELAXATION = 1.2  # and with squared slacks, whose duals are better conditioned
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
        gap = run.epoch() / max(abs(run.dual_value()), tiny)
        gaps.append(gap)
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
