"""The walk from the 2-norm to the 1-norm (`walk.py`) over rows that live apart.

Each round is a problem of `solve_chunked` with the features weighted by v_j = sqrt |w_j|, from the
coefficients and, beside the rows, the dual variables of the last.  Between two rounds small
coefficients are dropped, where the rows say that the 1-norm objective hardly rises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from anynorm.design.crew import Block, RowsLost, Sums, each_block
from anynorm.problem.certificate import Certificate, certificate_of
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.chunked.solve import solve_chunked

_CUTS = (1e-2, 1e-4, 1e-6)  # of the largest coefficient: below, columns are tried without
_RISE = 0.5  # of tol: what the 1-norm objective may rise by where columns are dropped


@dataclass(frozen=True, kw_only=True)
class ChunkedRound(Solution):
    """One round, as `Round`, its 1-norm certificate at hand.

    Attributes
    ----------
    feature_scale : ndarray of shape (p,)
        The weights v of the round's 2-norm problem, 0 for the columns left out of it.
    l1_certificate : Certificate
        Of the 1-norm problem.
    """

    feature_scale: np.ndarray
    l1_certificate: Certificate

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
    time, inner = Budget(0, deadline), problem
    rounds: list[ChunkedRound] = []
    while len(rounds) < n_rounds:
        if rounds and not time.in_time():
            rounds.append(replace(rounds[-1], n_iter=0))
            continue
        found = solve_chunked(
            inner,
            tol=tol,
            max_iter=max_iter,
            deadline=deadline,
            seed=seed,
            start=start,
            progress=progress,
        )
        rounds.append(_as_round(inner, problem, found, time))
        assert found.coef is not None
        coef, bias = found.coef, found.intercept
        if prune and len(rounds) < n_rounds:
            coef = _pruned(problem, coef, bias, _RISE * tol * rounds[-1].objective)
        start = coef, bias
        inner = replace(
            problem, feature_scale=np.sqrt(np.abs(coef)), intercept=_bias_feature(problem, bias)
        )
    return rounds


def _as_round(
    inner: ChunkedProblem, problem: ChunkedProblem, found: Solution, time: Budget
) -> ChunkedRound:
    assert found.coef is not None
    stopped = Status.MAX_ITER if time.in_time() else Status.TIME_LIMIT
    try:
        values = problem.one_norm_values(found.coef, found.intercept)
    except RowsLost:  # the second time the duals of the lost rows are zero
        values = problem.one_norm_values(found.coef, found.intercept)
    return ChunkedRound(
        dual=found.dual,
        certificate=found.certificate,
        n_iter=found.n_iter,
        coef=found.coef,
        intercept=found.intercept,
        feature_scale=inner.scale(),
        l1_certificate=certificate_of(values, found.certificate.tol, stopped),
    )


def _pruned(problem: ChunkedProblem, coef: np.ndarray, bias: float, rise: float) -> np.ndarray:
    """The coefficients without the smallest, as many as raise the 1-norm objective by `rise`."""
    size = np.abs(coef)
    tried = [np.where(size > cut * size.max(initial=0.0), coef, 0.0) for cut in (*_CUTS, 0.0)]
    seen = problem.crew.ask(_losses, (problem.terms, np.column_stack(tried), bias))
    objectives = [float(np.abs(w).sum()) + loss for w, loss in zip(tried, seen.losses, strict=True)]
    return next(
        w for w, value in zip(tried, objectives, strict=True) if value <= objectives[-1] + rise
    )


def _bias_feature(problem: ChunkedProblem, bias: float) -> Literal["free"] | float | None:
    """The constant feature of a regularised bias, re-weighted like the others."""
    if problem.intercept is None or isinstance(problem.intercept, str):
        return problem.intercept
    size = float(problem.intercept)
    return None if bias == 0 else size * float(np.sqrt(abs(bias / size)))


def _losses(blocks: Sequence[Block], message: tuple[RowTerms, np.ndarray, float]) -> Sums:
    """The loss at several coefficients, the columns of a matrix."""
    terms, coefs, bias = message

    def one(block: Block) -> Sums:
        rows = terms.of(block)
        scores = rows.design().matvec(coefs).T
        return Sums(
            losses=np.array(
                [terms.loss.value(1.0 - rows.y * (s + bias), terms.C, rows.weights) for s in scores]
            )
        )

    return each_block(blocks, one, Sums())
