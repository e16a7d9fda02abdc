"""What a Newton round asks of the rows of a part: tasks for `Crew.ask`.

The scores, the duals and the centre of the smoothing stay beside the rows (`BlockRows`); what goes
back are sums of length p, and a p x p matrix where one is wanted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from anynorm.design.crew import Block, Sums, each_block
from anynorm.losses.curves import Derivatives
from anynorm.problem.chunked import BlockRows, RowTerms
from anynorm.solvers.frame.proximal_box import ProximalBox


@dataclass(frozen=True)
class Place:
    """Where to look: at new coefficients, a step further along the last direction, or again.

    Attributes
    ----------
    terms : RowTerms
        What the rows cost.
    bias : float
        At the place.
    sigma : float
        1 over the width of the smoothing, in margins; not used by smooth losses.
    coef : ndarray of shape (p,) or None
        From which the scores are computed anew.
    step : float
        The length of a step along the last direction.
    recentre : bool
        Whether the duals of the last look become the centre of the smoothing.
    matrix : bool
        Whether the p x p matrix of the rows with curvature is wanted, or their products.
    columns : ndarray or None
        Of which the matrix is wanted; None is all of them.
    thin : int
        One of so many rows with curvature makes the matrix, in the place of all; 0 is none.
    """

    terms: RowTerms
    bias: float
    sigma: float
    coef: np.ndarray | None = None
    step: float = 0.0
    recentre: bool = False
    matrix: bool = True
    columns: np.ndarray | None = None
    thin: int = 1


def curve_of(rows: BlockRows, sigma: float) -> Derivatives:
    """The loss of some rows as Newton's method sees it, smoothed where it has kinks."""
    curve = rows.terms.loss.curve(rows.terms.C * rows.weights)
    if curve is not None:
        return curve
    box = rows.bounds
    centre = 0.5 * (box.lower + box.upper) if rows.centre is None else rows.centre
    return ProximalBox(centre, sigma * (box.upper - box.lower), box.lower, box.upper, False)


def look(blocks: Sequence[Block], place: Place) -> Sums:
    """The loss, its gradient and its curvature at a place, which the rows then keep."""

    def one(block: Block) -> Sums:
        rows = place.terms.of(block)
        if rows.fresh and place.coef is None:
            return Sums(lost=1)
        design, rows.fresh = rows.design(), False
        if place.coef is not None:
            rows.scores = design.matvec(place.coef)
        elif place.step:
            rows.scores = rows.scores + place.step * rows.along
        if place.recentre:
            rows.centre = rows.dual
        curve, residual = curve_of(rows, place.sigma), _residual(rows, place.bias)
        rows.dual = dual = curve.dual(residual)
        curvature = curve.curvature(residual)
        chosen = np.flatnonzero(curvature > 0)
        curvature = curvature[chosen]
        out = Sums(
            lost=0,
            loss=rows.cost(residual),
            pulled=design.rmatvec(rows.y * dual),
            balance=float(rows.y @ dual),
            bent=chosen.size,
            kinks=curve.cost_and_gap(residual, dual)[1] if isinstance(curve, ProximalBox) else 0.0,
        )
        if place.matrix:
            if place.thin:
                part = rows.some_columns(design, place.columns)
                out.scatter = part.scatter(*_thinned(chosen, curvature, place.thin))
            return out
        rows.curved = chosen, curvature
        return out + Sums(
            curved=float(curvature.sum()),
            mean=design.rmatvec(curvature, rows=chosen),
            diagonal=design.column_norms_squared(curvature, rows=chosen),
        )

    return each_block(blocks, one, Sums(lost=0))


def slopes(
    blocks: Sequence[Block],
    message: tuple[Place, np.ndarray | None, float, np.ndarray],
) -> Sums:
    """The slope of the loss along (d, e), at some steps; d is None for the last direction."""
    place, direction, bias_direction, steps = message

    def one(block: Block) -> Sums:
        rows = place.terms.of(block)
        if rows.fresh:
            return Sums(lost=1)
        if direction is not None:
            rows.along = rows.design().matvec(direction)
        curve, residual = curve_of(rows, place.sigma), _residual(rows, place.bias)
        change = rows.y * (rows.along + bias_direction)
        return Sums(
            lost=0,
            slopes=np.array([-curve.slope(residual, change, t) for t in steps]),
        )

    return each_block(blocks, one, Sums(lost=0))


def balances(blocks: Sequence[Block], message: tuple[Place, np.ndarray]) -> Sums:
    """``y'a`` for several biases."""
    place, biases = message

    def one(block: Block) -> Sums:
        rows = place.terms.of(block)
        if rows.fresh:
            return Sums(lost=1)
        curve = curve_of(rows, place.sigma)
        return Sums(
            lost=0,
            balances=np.array([float(rows.y @ curve.dual(_residual(rows, b))) for b in biases]),
        )

    return each_block(blocks, one, Sums(lost=0))


def few_rows(blocks: Sequence[Block], message: tuple[RowTerms, int]) -> Sums:
    """At most so many rows of the part, as they are stored, evenly from all of it.

    Each weighs as much as those that it stands for.
    """
    terms, most = message
    step = max(1, -(-sum(block.n for block in blocks) // most))
    seen = 0

    def one(block: Block) -> Sums:
        nonlocal seen
        # On and on through all blocks: were each to begin anew, many small ones would send more.
        rows, chosen = terms.of(block), np.arange(-seen % step, block.n, step)
        seen += block.n
        return Sums(
            X=[rows.design().take_rows(chosen).stored],
            y=[rows.y[chosen]],
            weights=[step * rows.weights[chosen]],
        )

    return each_block(blocks, one, Sums(X=[], y=[], weights=[]))


def curvature_product(blocks: Sequence[Block], message: tuple[RowTerms, np.ndarray]) -> Sums:
    """``X_J' D X_J q`` and ``1' D X_J q`` for the rows that had curvature at the last look."""
    terms, q = message

    def one(block: Block) -> Sums:
        rows = terms.of(block)
        if rows.curved is None:
            return Sums(lost=1)
        along, total = rows.design().hessian_product(*rows.curved, q)
        return Sums(lost=0, along=along, total=total)

    return each_block(blocks, one, Sums(lost=0))


def _thinned(rows: np.ndarray, curvature: np.ndarray, thin: int) -> tuple[np.ndarray, np.ndarray]:
    """About one of so many rows, in proportion to their curvature, with the curvature of all.

    The running sum is cut into equal parts: a row counts once for each middle of one within it.
    """
    if thin == 1 or not rows.size:
        return rows, curvature
    ends, parts = np.cumsum(curvature), max(1, rows.size // thin)
    share = float(ends[-1]) / parts
    counts = np.diff(np.floor(ends / share + 0.5), prepend=0.0)
    some = np.flatnonzero(counts)
    return rows[some], share * counts[some]


def _residual(rows: BlockRows, bias: float) -> np.ndarray:
    return 1.0 - rows.y * (rows.scores + bias)
