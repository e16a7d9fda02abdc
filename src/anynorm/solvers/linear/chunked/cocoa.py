"""Dual coordinate descent on the rows of every part, with vectors of length p between them.

        minimise_a   1/2 ||V X'(y a)||^2 + 1/2 sum_i shift_i a_i^2 - sum(a),   lower <= a <= upper

CoCoA+ (Ma et al. 2015): in a round each of K parts descends on its own rows as if the change of
w = V^2 X'(y a) that it makes were made sigma times over, so that the changes of all parts can be
added.  That is `coordinate_descent.py` with norms and steps of w multiplied by sigma.  The dual
rises for certain where sigma = K, which supposes that all parts want the same; a little less is
faster, and K is returned to as soon as a round has made the dual worse.

The bias is kept near a centre that moves after each round, as in `coordinate_descent.py`.  Rows at
a bound that do not move drop out, also of the rounds that follow, until a certificate is missed.
Rows that are read again for every question are descended on several times while they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from anynorm.design import Design
from anynorm.design.crew import Block, Sums, each_block
from anynorm.design.sparse_loops import descend
from anynorm.design.watch import look
from anynorm.norms.dual_sets import Box
from anynorm.problem.chunked import Awake, BlockRows, ChunkedProblem, RowTerms
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.coordinate_descent import portions

_PASSES = 3  # over the rows of a part that still move, each round
_QUICK = 10  # rounds of one pass: where they are enough, each further pass is work for little
_ENOUGH = 0.1  # of the gap seen on the first pass: where a round ends
_RELAXATION = 1.3  # of one part's steps, as in coordinate_descent.py
_APART = 0.9  # times K: sigma
_PIECES = 16  # of each block, in any order: whole blocks one after the other take twice the passes
_EAGER = 0.25  # of the largest gradients of a pass: what lets rows at a bound drop out of the next
_CREEPS = 0.9  # of the last imbalance of the duals: where more is left, the bias is far away
_LONGER = 4.0  # times the last step of the bias, where that is so
_LEAST_GOAL = 0.01  # of the tolerance that the gap has to seem to be
_SURER = 0.8  # of what a missed certificate says the gap should have seemed to be


@dataclass
class SharedDual:
    """What all parts know: the coefficients w, the bias and the total ``y'a``."""

    coef: np.ndarray
    bias: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class Descent:
    """One round of descent.

    Attributes
    ----------
    terms : RowTerms
        What the rows cost.
    coef, bias : ndarray, float
        Where all parts begin.
    variance : float
        Of the bias around its centre.
    scale : ndarray or None
        v^2, None where it is 1.
    sigma : float
        How many times over a step counts.
    relaxation : float
        The length of a step, in exact ones.
    seed : int
        Of the order of the rows.
    passes : int
        Over rows in memory, at the most.
    wake : bool
        Whether rows that have dropped out take part again.
    """

    terms: RowTerms
    coef: np.ndarray
    bias: float
    variance: float
    scale: np.ndarray | None
    sigma: float
    relaxation: float
    seed: int
    passes: int
    wake: bool


def descend_apart(
    problem: ChunkedProblem,
    shared: SharedDual,
    *,
    tol: float,
    seed: int,
    budget: Budget,
    check: Callable[[SharedDual], float],
) -> None:
    """Rounds of descent from the duals beside the rows until the gap or the budget's end.

    `shared` follows.  `check` returns the certified gap; it is asked when the gap that the parts
    have seen on their way promises `tol`.
    """
    run, goal = _Rounds(problem, shared, seed, tol), tol
    while budget.spend():
        seen = run.descend()
        if seen <= goal:
            gap = check(shared)
            if gap <= tol:
                return
            # Either rows were dropped too early, or what was seen on the way flattered.
            # Below some goal it is neither, but the bias: it is asked after each of its steps.
            goal = max(min(max(_SURER * tol / gap, 0.5) * seen, 0.7 * goal), _LEAST_GOAL * tol)
            run.wake = True


class _Rounds:
    """Rounds of descent as the one who asks the parts sees them."""

    def __init__(self, problem: ChunkedProblem, shared: SharedDual, seed: int, tol: float) -> None:
        self.problem, self.shared, self.seed, self.tol = problem, shared, seed, tol
        self.scale = None if problem.feature_scale is None else problem.feature_scale**2
        self.parts, self.number, self.wake = problem.crew.n_parts, 0, True
        self.sigma = 1.0 if self.parts == 1 else _APART * self.parts
        about = problem.crew.ask(_begun, (problem.terms, self.scale))
        shared.coef, shared.total = problem.scale() ** 2 * about.pulled, about.total
        self.gain, self.gap = about.gain, np.inf
        self.variance = self.leash = self.drift = 0.0
        self.stride, self.between = 1.0, (-np.inf, np.inf)
        if np.isfinite(problem.precision):
            mean = problem.scale() * about.sums / about.n
            self.leash = float(mean @ mean + about.squares / about.n / about.n)
            self.variance = 1.0 / (problem.precision + 1.0 / self.leash) if self.leash > 0 else 0.0

    def descend(self) -> float:
        """One round; returns the gap after it by what the parts have seen on their way."""
        shared, problem = self.shared, self.problem
        seen = problem.crew.ask(
            _descended,
            Descent(
                problem.terms, shared.coef, shared.bias, self.variance, self.scale, self.sigma,
                relaxation=_RELAXATION if self.parts == 1 else 1.0,
                seed=self.seed + self.number,
                passes=1 if self.number < _QUICK else _PASSES,
                wake=self.wake,
            ),
        )  # fmt: skip
        if self._worse(seen):
            self.sigma = float(self.parts)
        self.number, whole, self.wake = self.number + 1, self.wake, False
        shared.coef = shared.coef + seen.coef
        shared.bias += seen.bias
        shared.total, self.gain = seen.total, seen.gain
        value = seen.gain - problem.regularisation(shared.coef, 0.0)
        last, self.gap = self.gap, seen.gap / max(abs(value), np.finfo(float).tiny)
        if self.variance > 0 and self.number > 1:
            self._move_centre(settled=whole and self.gap <= self.tol)
        # It was seen in the midst of the round; half of the round has come since.
        falls = self.gap < last < np.inf
        return float(self.gap * np.sqrt(self.gap / last) if falls else self.gap)

    def _move_centre(self, *, settled: bool) -> None:
        """The method of multipliers' step of the bias, or a longer one where such steps creep.

        Where rows are at their bounds, duals stay out of balance whatever the bias, and steps of
        the size that suits the descent would take thousands of rounds to where rows let go.  At a
        bias where the descent is `settled`, the sign of the imbalance is the side of the best bias.
        """
        shared, precision = self.shared, self.problem.precision
        drift = shared.total - precision * shared.bias
        if settled and drift > 0:
            self.between = (shared.bias, self.between[1])
        elif settled and drift < 0:
            self.between = (self.between[0], shared.bias)
        if self.between[1] - self.between[0] < self.tol:  # the descent was not done after all
            self.between = (-np.inf, np.inf)
        creeps = settled and drift * self.drift > _CREEPS * self.drift**2
        self.stride, self.drift = (_LONGER * self.stride if creeps else 1.0), drift
        self.wake = creeps
        leash = self.stride * self.leash
        moved = (shared.bias / leash + shared.total) / (precision + 1.0 / leash)
        if creeps and np.isfinite(self.between).all():
            moved = 0.5 * sum(self.between)
        shared.bias = float(moved)

    def _worse(self, seen: Sums) -> bool:
        """Whether a round has lowered the dual objective, the centre of the bias where it was."""
        shared, change = self.shared, self.problem.scaled_coef(seen.coef)
        moved = seen.total - shared.total
        rise = float(self.problem.scaled_coef(shared.coef) @ change) + 0.5 * float(change @ change)
        rise += shared.bias * moved + 0.5 * self.variance * moved**2
        return rise > seen.gain - self.gain


def _begun(blocks: Sequence[Block], message: tuple[RowTerms, np.ndarray | None]) -> Sums:
    """The sum of the rows, that of their squared norms, which stay beside them, and of the duals.

    The duals of lost rows are 0.
    """
    terms, scale = message
    by = None if scale is None else np.sqrt(scale)

    def one(block: Block) -> Sums:
        rows = terms.of(block)
        design, rows.fresh = rows.design(), False
        rows.norms = design.scaled(by).row_norms_squared()
        beta = rows.y * rows.dual
        return Sums(
            n=design.n,
            sums=design.rmatvec(np.ones(design.n)),
            squares=float(rows.norms.sum()),
            pulled=design.rmatvec(beta) if beta.any() else np.zeros(design.p),
            total=float(beta.sum()),
            gain=_gain(rows),
        )

    return each_block(blocks, one, Sums(n=0, total=0.0, gain=0.0))


def _gain(rows: BlockRows) -> float:
    """What the dual variables add to the dual objective by themselves."""
    assert isinstance(rows.bounds, Box)
    return float(rows.dual.sum() - 0.5 * (rows.bounds.shift @ rows.dual**2))


def _descended(blocks: Sequence[Block], now: Descent) -> Sums:
    """The descent of one part; its duals stay here, and their effect on w and b is returned."""
    used = [block for block in blocks if block.n]
    lost = sum(now.terms.of(block).fresh for block in used)
    if lost:
        return Sums(lost=int(lost))
    local = _Local(now)
    if all(block.held for block in used):
        visits = [(now.terms.of(block), now.terms.of(block).design()) for block in used]
        local.descend(visits, now.passes)
    else:
        for block in used:
            rows = now.terms.of(block)
            local.descend([(rows, rows.design())], _PASSES)
    return local.effect([now.terms.of(block) for block in used])


class _Local:
    """The working arrays of one part's descent."""

    def __init__(self, now: Descent) -> None:
        self.now, self.gap = now, 0.0
        self.coef = now.coef.copy()
        self.bias = np.array([now.bias, now.sigma * now.variance])
        self.scale = now.sigma * (np.ones(1) if now.scale is None else now.scale)
        self.rng = np.random.default_rng(now.seed)

    def descend(self, visits: list[tuple[BlockRows, Design]], passes: int) -> None:
        """Passes over some blocks until most of the gap seen on the first one is gone."""
        parts = [_Visit(rows, design, self.now) for rows, design in visits]
        first = np.inf
        for _ in range(passes):
            found = np.array([np.inf, -np.inf, 0.0])
            self._pass(parts, found)
            thresholds = (
                _EAGER * found[0] if found[0] < 0 else -np.inf,
                _EAGER * found[1] if found[1] > 0 else np.inf,
            )
            for part in parts:
                part.rows.awake = Awake(part.active, thresholds)
                part.thresholds = np.array(thresholds)
            if np.isinf(first):
                first = float(found[2])
                self.gap += first
            if found[2] <= _ENOUGH * first:
                break

    def _pass(self, parts: list[_Visit], found: np.ndarray) -> None:
        """One pass over the active rows of some blocks, some of one and then some of another."""
        pieces = [
            (part, piece)
            for part in parts
            for order in portions(part.design, part.active, self.rng)
            for piece in np.array_split(order, 1 + min(_PIECES, order.size // _PIECES))
        ]
        for place in self.rng.permutation(len(pieces)):
            part, order = pieces[place]
            rows, box = part.rows, part.box
            descend(
                *part.design.row_arrays, rows.y, box.lower, box.upper, box.shift, part.curvature,
                self.scale, order, rows.dual, self.coef, self.bias, part.thresholds,
                self.now.relaxation, part.keep, found,
            )  # fmt: skip
            look()
        for part in parts:
            part.active = part.active[part.keep[part.active]]

    def effect(self, parts: Sequence[BlockRows]) -> Sums:
        """What changed, and the terms of the dual value."""
        share = 1.0 / self.now.sigma
        return Sums(
            lost=0,
            coef=share * (self.coef - self.now.coef),
            bias=share * (float(self.bias[0]) - self.now.bias),
            gap=self.gap,
            gain=sum(_gain(rows) for rows in parts),
            total=sum(float(rows.y @ rows.dual) for rows in parts),
        )


class _Visit:
    """A block whose awake rows are descended on."""

    def __init__(self, rows: BlockRows, design: Design, now: Descent) -> None:
        assert isinstance(rows.bounds, Box)
        self.rows, self.design, self.box = rows, design, rows.bounds
        assert rows.norms is not None  # from `_begun`, before which no row is taken for known
        self.curvature = now.sigma * (rows.norms + now.variance) + self.box.shift
        if now.wake or rows.awake is None:
            movable = (self.box.upper > self.box.lower) & (self.curvature > 0)
            rows.awake = Awake(np.flatnonzero(movable), (-np.inf, np.inf))
        self.keep = np.ones(len(rows), dtype=bool)
        self.active, self.thresholds = rows.awake.active, np.array(rows.awake.thresholds)
