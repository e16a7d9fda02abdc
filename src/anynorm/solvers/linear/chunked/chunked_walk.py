"""The walk from the 2-norm to the 1-norm (`walk.py`) over rows that live apart.

Each round is a problem of `solve_chunked` with the features weighted by v_j = sqrt |w_j|, from the
coefficients and, beside the rows, the dual variables of the last.  Between two rounds columns are
dropped and taken back by the rules of `pruning.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np

from anynorm.design.crew import Block, RowsLost, Sums, each_block
from anynorm.problem.certificate import Certificate, certificate_of
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.chunked.solve import solve_chunked
from anynorm.solvers.linear.pruning import (
    GENEROSITY,
    Allowance,
    fading,
    how_many_go,
    less_generous,
    take_back,
)


@dataclass(frozen=True, kw_only=True)
class ChunkedRound(Solution):
    """One round, as `Round`, its 1-norm certificate at hand.

    Attributes
    ----------
    feature_scale : ndarray of shape (p,)
        The weights v of the round's 2-norm problem, 0 for the columns left out of it.
    l1_certificate : Certificate
        Of the 1-norm problem.
    pull : ndarray of shape (p,)
        X'(y a) of the duals beside the rows.
    """

    feature_scale: np.ndarray
    l1_certificate: Certificate
    pull: np.ndarray

    @property
    def objective(self) -> float:
        """The 1-norm objective."""
        return self.l1_certificate.primal


def walk_chunked(
    problem: ChunkedProblem,
    *,
    n_rounds: int,
    prune: bool,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: tuple[np.ndarray, float] | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[ChunkedRound]:
    """Walk `n_rounds` rounds from the 2-norm solution; arguments are as in `walk`."""
    time = Budget(0, deadline)
    solve = partial(
        solve_chunked,
        tol=tol,
        max_iter=max_iter,
        deadline=deadline,
        seed=seed,
        progress=progress,
    )
    rounds = [_as_round(problem, problem, solve(problem, start=start), time)]
    generosity = GENEROSITY
    while len(rounds) < n_rounds:
        last = rounds[-1]
        if not time.in_time():
            rounds.append(replace(last, n_iter=0))
            continue
        coef = _pruned(problem, last, 0.5 * tol) if prune else last.coef
        assert coef is not None
        weights = np.abs(coef)
        missed = take_back(weights, last.pull, generosity) if prune and generosity else coef[:0]
        here = coef, last.intercept
        inner = _weighted(problem, weights, last.intercept)
        found = _as_round(inner, problem, solve(inner, start=here), time)
        if missed.size and found.objective > last.objective:
            # What came back did not pay: without it the objective cannot rise.
            generosity = less_generous(generosity, tol)
            inner = _weighted(problem, np.abs(coef), last.intercept)
            found = _as_round(inner, problem, solve(inner, start=here), time)
        rounds.append(found)
    return rounds


def _weighted(problem: ChunkedProblem, weights: np.ndarray, bias: float) -> ChunkedProblem:
    """The next round's problem, with these squared weights."""
    intercept = _bias_feature(problem, bias)
    return replace(problem, feature_scale=np.sqrt(weights), intercept=intercept)


def _as_round(
    inner: ChunkedProblem, problem: ChunkedProblem, found: Solution, time: Budget
) -> ChunkedRound:
    assert found.coef is not None
    stopped = Status.MAX_ITER if time.in_time() else Status.TIME_LIMIT
    while True:
        try:
            values, pull = problem.one_norm_values(found.coef, found.intercept)
            break
        except RowsLost:  # the next time the duals of the lost rows are zero
            continue
    return ChunkedRound(
        dual=found.dual,
        certificate=found.certificate,
        n_iter=found.n_iter,
        coef=found.coef,
        intercept=found.intercept,
        feature_scale=inner.scale(),
        l1_certificate=certificate_of(values, found.certificate.tol, stopped),
        pull=pull,
    )


def _pruned(problem: ChunkedProblem, found: ChunkedRound, tol: float) -> np.ndarray:
    """The coefficients without the smallest that fade; the bias stays as it is."""
    assert found.coef is not None
    coef, bias = found.coef.copy(), found.intercept
    order = fading(np.abs(coef), found.feature_scale**2)

    def losses(kept: np.ndarray, portions: list[np.ndarray]) -> np.ndarray:
        message = problem.terms, kept, portions, bias
        return np.asarray(problem.crew.ask(_losses, message).losses)

    def losses_without(ends: np.ndarray) -> np.ndarray:
        kept = coef.copy()
        kept[order[: ends[0]]] = 0.0
        return losses(kept, [order[a:b] for a, b in pairwise(ends)])[1:]

    loss, empty = losses(coef, [np.flatnonzero(coef)])
    allowance = Allowance.of(np.abs(coef), float(loss), max(float(loss), float(empty)), tol)
    coef[order[: how_many_go(np.abs(coef[order]), float(loss), allowance, losses_without)]] = 0.0
    return coef


def _bias_feature(problem: ChunkedProblem, bias: float) -> Literal["free"] | float | None:
    """The constant feature of a regularised bias, re-weighted like the others."""
    if problem.intercept is None or isinstance(problem.intercept, str):
        return problem.intercept
    size = float(problem.intercept)
    return None if bias == 0 else size * float(np.sqrt(abs(bias / size)))


def _losses(
    blocks: Sequence[Block], message: tuple[RowTerms, np.ndarray, list[np.ndarray], float]
) -> Sums:
    """The loss at some coefficients, and without the first, the first two, ... portions of them."""
    terms, coef, portions, bias = message

    def one(block: Block) -> Sums:
        rows = terms.of(block)
        design = rows.design()
        products = np.cumsum(design.matvec_by_portions(coef, portions), axis=1)
        scores = design.matvec(coef)[:, None] - np.insert(products, 0, 0.0, axis=1)
        return Sums(losses=np.array([rows.cost(1.0 - rows.y * (s + bias)) for s in scores.T]))

    return each_block(blocks, one, Sums())
