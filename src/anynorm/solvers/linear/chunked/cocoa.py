"""Dual coordinate descent on the rows of every part, with vectors of length p between them.

        minimise_a   1/2 ||V X'(y a)||^2 + 1/2 sum_i shift_i a_i^2 - sum(a),   lower <= a <= upper

CoCoA+ (Ma et al. 2015): in a round each of K parts descends on its own rows as if the change of
w = V^2 X'(y a) that it makes were made K times over, so that the changes of all parts can be added.
That is `coordinate_descent.py` with norms and steps of w multiplied by K.  The bias is kept near a
centre that moves after each round, as there.  Rows that are read again for every question are
descended on several times while they are there.
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
from anynorm.problem.chunked import BlockRows, ChunkedProblem, RowTerms
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.coordinate_descent import portions

_PASSES = 3  # over the rows of a part that still move, each round
_QUICK = 10  # rounds of one pass: where they are enough, each further pass is work for little
_ENOUGH = 0.1  # of the gap seen on the first pass: where a round ends
_RELAXATION = 1.3  # as in coordinate_descent.py


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
    parts : int
        K.
    seed : int
        Of the order of the rows.
    passes : int
        Over rows in memory, at the most.
    """

    terms: RowTerms
    coef: np.ndarray
    bias: float
    variance: float
    scale: np.ndarray | None
    parts: int
    seed: int
    passes: int


def descend_apart(
    problem: ChunkedProblem,
    shared: SharedDual,
    *,
    tol: float,
    seed: int,
    budget: Budget,
    check: Callable[[SharedDual], bool],
) -> None:
    """Rounds of descent on `shared` until `check` accepts it or the budget is spent.

    `check` is asked when the gap that the parts have seen on their way is within `tol`.
    """
    crew, terms = problem.crew, problem.terms
    scale = None if problem.feature_scale is None else problem.feature_scale**2
    about = crew.ask(_means, (terms, scale))
    variance, leash = 0.0, 0.0
    if np.isfinite(problem.precision):
        mean = problem.scale() * about.sums / about.n
        leash = float(mean @ mean + about.squares / about.n / about.n)
        variance = 1.0 / (problem.precision + 1.0 / leash) if leash > 0 else 0.0
    goal, number = tol, 0
    while budget.spend():
        seen = crew.ask(
            _descended,
            Descent(
                terms, shared.coef, shared.bias, variance, scale, crew.n_parts, seed + number,
                passes=1 if number < _QUICK else _PASSES,
            ),
        )  # fmt: skip
        number += 1
        shared.coef = shared.coef + seen.coef
        shared.bias += seen.bias
        shared.total = seen.total
        if variance > 0 and number > 1:
            shared.bias = variance * (shared.bias / leash + shared.total)
        value = seen.gain - problem.regularisation(shared.coef, 0.0)
        gap = seen.gap / max(abs(value), np.finfo(float).tiny)
        if gap <= goal:
            if check(shared):
                return
            goal = min(0.5 * gap, 0.7 * goal)


def pulled_back(problem: ChunkedProblem) -> SharedDual:
    """What all parts know, from the dual variables beside the rows; those of lost rows are 0."""
    seen = problem.crew.ask(_pulled, problem.terms)
    return SharedDual(problem.scale() ** 2 * seen.pulled, 0.0, seen.total)


def _means(blocks: Sequence[Block], message: tuple[RowTerms, np.ndarray | None]) -> Sums:
    """The sum of the rows, and that of their squared norms, which stay beside them."""
    terms, scale = message

    def one(block: Block) -> Sums:
        rows = terms.of(block)
        design = rows.design()
        rows.norms = design.scaled(None if scale is None else np.sqrt(scale)).row_norms_squared()
        return Sums(
            n=design.n,
            sums=design.rmatvec(np.ones(design.n)),
            squares=float(rows.norms.sum()),
        )

    return each_block(blocks, one, Sums(n=0))


def _pulled(blocks: Sequence[Block], terms: RowTerms) -> Sums:
    def one(block: Block) -> Sums:
        rows = terms.of(block)
        rows.fresh = False
        beta = rows.y * rows.dual
        if not beta.any():  # the first time
            return Sums(pulled=np.zeros(block.columns), total=0.0)
        return Sums(pulled=rows.design().rmatvec(beta), total=float(beta.sum()))

    return each_block(blocks, one, Sums(total=0.0))


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
        self.bias = np.array([now.bias, now.parts * now.variance])
        # A step of w counts as if every part made it.
        self.scale = now.parts * (np.ones(1) if now.scale is None else now.scale)
        self.rng = np.random.default_rng(now.seed)

    def descend(self, visits: list[tuple[BlockRows, Design]], passes: int) -> None:
        """Passes over some blocks until most of the gap seen on the first one is gone."""
        shrunk = [_Shrinking(rows, design, self.now) for rows, design in visits]
        first, thresholds = np.inf, (-np.inf, np.inf)
        for _ in range(passes):
            found = np.array([np.inf, -np.inf, 0.0])
            for part in shrunk:
                self._visit(part, thresholds, found)
            thresholds = (
                found[0] if found[0] < 0 else -np.inf,
                found[1] if found[1] > 0 else np.inf,
            )
            if np.isinf(first):
                first = float(found[2])
                self.gap += first
            if found[2] <= _ENOUGH * first:
                break

    def _visit(self, part: _Shrinking, thresholds: tuple[float, float], found: np.ndarray) -> None:
        """One pass over the active rows of a block."""
        rows, box, design = part.rows, part.box, part.design
        keep = np.ones(len(rows), dtype=bool)
        for order in portions(design, part.active, self.rng):
            descend(
                *design.row_arrays, rows.y, box.lower, box.upper, box.shift, part.curvature,
                self.scale, order, rows.dual, self.coef, self.bias, np.array(thresholds),
                _RELAXATION, keep, found,
            )  # fmt: skip
            look()
        part.active = part.active[keep[part.active]]

    def effect(self, parts: Sequence[BlockRows]) -> Sums:
        """What changed, and the terms of the dual value."""
        share = 1.0 / self.now.parts
        gain = total = 0.0
        for rows in parts:
            assert isinstance(rows.bounds, Box)
            gain += float(rows.dual.sum() - 0.5 * (rows.bounds.shift @ rows.dual**2))
            total += float(rows.y @ rows.dual)
        return Sums(
            lost=0,
            coef=share * (self.coef - self.now.coef),
            bias=share * (float(self.bias[0]) - self.now.bias),
            gap=self.gap,
            gain=gain,
            total=total,
        )


class _Shrinking:
    """The rows of a block that still take part in a round."""

    def __init__(self, rows: BlockRows, design: Design, now: Descent) -> None:
        assert isinstance(rows.bounds, Box)
        self.rows, self.design, self.box = rows, design, rows.bounds
        assert rows.norms is not None  # from `_means`, before which no row is taken for known
        self.curvature = now.parts * (rows.norms + now.variance) + self.box.shift
        self.active = np.flatnonzero((self.box.upper > self.box.lower) & (self.curvature > 0))
