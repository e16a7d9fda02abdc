"""Kernel problems over the span of at most B rows, whose rows live apart.

    minimise over J (|J| <= B), beta, b    1/2 beta'K_JJ beta + C N(slacks of all n rows)

as in `strict_budget.py`.  A sample of the rows, of every class, is brought here, and J is chosen on
it as there, the searches side by side on the workers.  The rows J and the factor of K_JJ are sent
to the blocks once, which then are blocks of |J| features (`span_blocks.py`): the problem for this J
is a linear one over rows that live apart, solved to its gap by a solver of these.

The dual variables stay beside their rows.  Those of some rows are brought here for the bound on
what the budget costs; where the sample has all rows, it is that of the problem without a budget.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design import Matrix, stacked
from anynorm.design.crew import Block, Crew, Sums, each_block
from anynorm.design.limits import MEGABYTE
from anynorm.kernels import Kernel
from anynorm.kernels.gram import Gram, gram_of, make_gram
from anynorm.kernels.landmarks import Landmarks
from anynorm.kernels.span_blocks import SentSpan, SpanBlock
from anynorm.problem import Problem
from anynorm.problem.certificate import Certificate, Values, certificate_of
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.problem.repair import repaired
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.kernel.landmark_sets import FollowPath
from anynorm.solvers.kernel.search import SolveFeatures
from anynorm.solvers.kernel.strict_budget import (
    BOUND_ROWS,
    FEATURE_ITERATIONS,
    Chosen,
    choose_rows,
    draw,
    sample_size,
)

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Report = Callable[[Progress], None] | None
SolveApart = Callable[..., Solution]

_SHARE = 0.25  # of a worker's memory that its features may take
_BOUND_ENTRIES = 20_000_000  # of the rows that are brought here for a bound: 160 MB


class Sample(NamedTuple):
    """Rows that were brought here.

    Attributes
    ----------
    X : matrix
        The rows.
    rows : ndarray of int
        Their places among all rows.
    codes : ndarray of int
        Their classes.
    weights : ndarray
        What they weigh, times how many each of them stands for.
    complete : bool
        Whether these are all rows that count.
    starts : dict
        The place of every block's first row among all rows, by the number of the block.
    """

    X: Matrix
    rows: Index
    codes: Index
    weights: Array
    complete: bool
    starts: dict[int, int]


@dataclass(frozen=True)
class StrictApart:
    """Solutions over the spans of few rows, and what is known of the problems without a budget.

    Attributes
    ----------
    gram : Gram
        The kernel of the rows that span them.
    rows, codes : ndarray of int
        Their places among all rows, and their classes.
    solutions : list of Solution
        Of every problem; `coef` are y times the weights of these rows' kernel functions.
    full : list of Certificate
        Their primal values and dual values of the problems without a budget.
    full_support : ndarray of int
        How many rows of each class have dual variables behind these.
    cut_short : bool
        Whether time ended the choice of the rows.
    """

    gram: Gram
    rows: Index
    codes: Index
    solutions: list[Solution]
    full: list[Certificate]
    full_support: Index
    cut_short: bool


def solve_strict_apart(
    problems: Sequence[ChunkedProblem],
    kernel: Kernel,
    count: int,
    *,
    shared: bool = True,
    tol: float = 1e-4,
    max_iter: int = 100_000_000,
    deadline: float | None = None,
    cache_size: float = 500.0,
    seed: int = 0,
    known: Index | None = None,
    progress: Sequence[Report] | None = None,
    solve_features: SolveFeatures,
    solve_apart: SolveApart,
    follow_path: FollowPath,
) -> StrictApart:
    """Solve binary problems of the same rows over the span of `count` of them at most.

    Parameters
    ----------
    problems : sequence of ChunkedProblem
        Over the rows themselves, with free biases.
    kernel : Kernel
        With numbers for all of its parameters.
    count : int
        The budget B.
    shared : bool
        Whether the rows are the same for all problems.
    cache_size : float
        The megabytes for kernel rows here, and for the features of a worker's rows there.
    solve_apart : callable
        A solver of linear problems over rows that live apart, `solve_chunked`.
    tol, max_iter, deadline, seed, known, progress, solve_features, follow_path
        As in `solve_strict`.

    Returns
    -------
    StrictApart
        The rows, and a solution for every problem.
    """
    search = _Search(problems, kernel, count, tol, Budget(max_iter, deadline), cache_size)
    random = np.random.default_rng(seed)
    search.sample = sample_of(problems, sample_size(count), random)
    reports = progress or [None] * len(problems)
    if known is not None:
        known = np.flatnonzero(np.isin(search.sample.rows, known))
    groups = [range(len(problems))] if shared else [[k] for k in range(len(problems))]
    parts = []
    for group in groups:
        chosen = choose_rows(
            [search.sampled(problems[k]) for k in group],
            count,
            all_rows=search.sample.complete,
            tol=tol,
            budget=search.budget,
            cache_size=cache_size,
            random=random,
            known=known,
            solve_features=solve_features,
            follow_path=follow_path,
            elsewhere=problems[0].crew.elsewhere,
        )
        parts.append(search.solved(group, chosen, reports, solve_apart, seed))
    return _joined(parts, search)


class _Spanned(NamedTuple):
    """The solutions of some problems, over the span of the rows `places` of the sample."""

    places: Index
    solutions: list[Solution]
    full: list[Certificate]
    used: list[tuple[Index, Index]]  # rows and classes of dual variables without a budget
    cut_short: bool


class _Search:
    """What the steps of one solve share."""

    sample: Sample

    def __init__(
        self,
        problems: Sequence[ChunkedProblem],
        kernel: Kernel,
        count: int,
        tol: float,
        budget: Budget,
        cache_size: float,
    ) -> None:
        self.problems, self.kernel, self.count, self.tol = problems, kernel, count, tol
        self.budget, self.cache_size = budget, cache_size
        self._gram: Gram | None = None

    @property
    def gram(self) -> Gram:
        """The kernel of the sample."""
        if self._gram is None:
            self._gram = make_gram(self.sample.X, self.kernel)
        return self._gram

    def sampled(self, problem: ChunkedProblem) -> Problem:
        """A problem of the sample alone."""
        terms, sample = problem.terms, self.sample
        return Problem(
            y=_signs(sample.codes, terms),
            C=terms.C,
            loss=terms.loss,
            gram=self.gram,
            sample_weight=sample.weights,
        )

    def solved(
        self,
        group: Sequence[int],
        chosen: Chosen,
        reports: Sequence[Report],
        solve_apart: SolveApart,
        seed: int,
    ) -> _Spanned:
        """The solutions of some problems over the span of the rows chosen."""
        landmarks = Landmarks.of(self.gram, chosen.rows)
        crew = self._features(landmarks)
        found = _Spanned(landmarks.rows, [], [], [], chosen.cut_short)
        try:
            for place, k in enumerate(group):
                terms = self.problems[k].terms
                over = replace(self.problems[k], crew=crew)
                solution = solve_apart(
                    over,
                    tol=self.tol,
                    max_iter=min(self.budget.max_iter, FEATURE_ITERATIONS),
                    deadline=self.budget.deadline,
                    seed=seed,
                    progress=reports[k],
                )
                assert solution.coef is not None
                full = None if chosen.full is None else chosen.full[place]
                certificate, used = self._bounded(terms, crew, solution.certificate, full)
                y = _signs(self.sample.codes[landmarks.rows], terms)
                coef = y * landmarks.weights(solution.coef)
                found.solutions.append(replace(solution, coef=coef))
                found.full.append(certificate)
                found.used.append(used)
        finally:
            crew.close()
        return found

    def _features(self, landmarks: Landmarks) -> Crew:
        """The blocks as features of the span."""
        crew, width = self.problems[0].crew, len(landmarks.rows)
        size = 8.0 * crew.shape[0] * width / crew.n_parts
        stored = size <= min(self.cache_size * MEGABYTE, _SHARE * crew.room())
        return crew.turned(SpanBlock, SentSpan(landmarks.alone(), stored), width)

    def _bounded(
        self, terms: RowTerms, crew: Crew, over: Certificate, full: Solution | None
    ) -> tuple[Certificate, tuple[Index, Index]]:
        """The certificate of a problem without a budget, and the rows behind its dual value."""
        certain = full is None or full.status is not Status.UNCERTIFIED
        if full is not None:
            value, used = full.certificate.dual, np.flatnonzero(full.dual)
            behind = self.sample.rows[used], self.sample.codes[used]
        else:
            value, behind = self._bound(terms, crew)
        values = Values(over.primal, value, over.zero_primal, certain and self.gram.semidefinite)
        return certificate_of(values, self.tol, self.budget.stopped), behind

    def _bound(self, terms: RowTerms, crew: Crew) -> tuple[float, tuple[Index, Index]]:
        """The dual value at the dual variables of some rows, which the others do without."""
        most = min(BOUND_ROWS, _BOUND_ENTRIES // max(1, self.sample.X.shape[1]))
        seen = crew.ask(_dual_rows, (terms, max(1, most // crew.n_parts)))
        parts = sorted(seen.found, key=lambda part: part.number)
        if not parts:
            return 0.0, (np.empty(0, np.intp), np.empty(0, np.intp))
        starts = self.sample.starts
        part = Problem(
            y=np.concatenate([part.y for part in parts]),
            C=terms.C,
            loss=terms.loss,
            gram=gram_of(self.kernel, stacked([part.X for part in parts]), self.gram.origin),
            sample_weight=np.concatenate([part.weights for part in parts]),
        )
        best = repaired(part, np.concatenate([part.dual for part in parts]))
        used = np.flatnonzero(best.a)
        rows = np.concatenate([starts[part.number] + part.rows for part in parts])
        codes = np.concatenate([part.codes for part in parts])
        return best.value, (rows[used], codes[used])


def sample_of(problems: Sequence[ChunkedProblem], size: int, random: np.random.Generator) -> Sample:
    """Bring some rows that count here, of every class, or all of them where they are few."""
    terms, crew = problems[0].terms, problems[0].crew
    blocks = _in_order(crew.ask(_sizes, terms.classes).sizes)
    counts = np.array([counts for _, _, counts in blocks])
    totals = counts.sum(axis=0)
    complete = int(totals.sum()) <= size
    # The order in which the classes of several problems are drawn on one machine.
    order = np.arange(len(totals))[:: 1 if len(problems) == 1 else -1]
    if complete:
        drawn, stands_for = [np.arange(n) for n in totals[order]], np.ones(int(totals.sum()))
    else:
        drawn, stands_for = draw(totals[order].tolist(), size, random)
    wanted: dict[int, list[tuple[int, Index, Array]]] = {number: [] for number, _, _ in blocks}
    share = np.split(stands_for, np.cumsum([len(own) for own in drawn])[:-1])
    for k, own, factor in zip(order.tolist(), drawn, share, strict=True):
        ends = np.cumsum(counts[:, k])
        place = np.searchsorted(ends, own, side="right")
        for block in np.unique(place):
            here = place == block
            first = ends[block] - counts[block, k]
            wanted[blocks[block][0]].append((k, own[here] - first, factor[here]))
    parts = sorted(crew.ask(_taken, (terms, wanted)).found, key=lambda part: part.number)
    starts = {number: start for number, start, _ in blocks}
    return Sample(
        X=stacked([part.X for part in parts]),
        rows=np.concatenate([starts[part.number] + part.rows for part in parts]),
        codes=np.concatenate([part.codes for part in parts]),
        weights=np.concatenate([part.weights for part in parts]),
        complete=complete,
        starts=starts,
    )


class _SomeRows(NamedTuple):
    """Some rows of a block."""

    number: int
    rows: Index
    X: Matrix
    codes: Index
    weights: Array
    y: Array
    dual: Array


def _in_order(sizes: list[tuple[int, int, Array]]) -> list[tuple[int, int, Array]]:
    """Numbers of blocks, their first rows among all, and their classes' counts."""
    ordered = sorted(sizes, key=lambda block: block[0])
    starts = np.cumsum([0, *(n for _, n, _ in ordered)])
    return [
        (number, int(start), counts)
        for (number, _, counts), start in zip(ordered, starts, strict=False)
    ]


def _joined(parts: Sequence[_Spanned], search: _Search) -> StrictApart:
    """All problems over the rows of any."""
    sample, places = search.sample, np.unique(np.concatenate([part.places for part in parts]))
    solutions = []
    for part in parts:
        at = np.searchsorted(places, part.places)
        for solution in part.solutions:
            coef = np.zeros(len(places))
            coef[at] = solution.coef
            solutions.append(replace(solution, coef=coef))
    used = [pair for part in parts for pair in part.used]
    _, first = np.unique(np.concatenate([rows for rows, _ in used]), return_index=True)
    codes = np.concatenate([codes for _, codes in used])[first]
    n_classes = len(search.problems[0].terms.classes)
    return StrictApart(
        gram=search.gram.part(places),
        rows=sample.rows[places],
        codes=sample.codes[places],
        solutions=solutions,
        full=[certificate for part in parts for certificate in part.full],
        full_support=np.bincount(codes, minlength=n_classes),
        cut_short=any(part.cut_short for part in parts),
    )


def _signs(codes: Index, terms: RowTerms) -> Array:
    return np.where(codes == terms.positive, 1.0, -1.0)


def _codes(block: Block, classes: np.ndarray) -> Index:
    """The classes of the rows that count, -1 for others."""
    places = np.minimum(np.searchsorted(classes, block.labels), len(classes) - 1)
    counts = classes[places] == block.labels
    if block.weights is not None:
        counts &= block.weights > 0
    return np.where(counts, places, -1)


def _sizes(blocks: Sequence[Block], classes: np.ndarray) -> Sums:
    """How many rows each block has, and of each class how many that count."""

    def one(block: Block) -> Sums:
        codes = _codes(block, classes)
        counts = np.bincount(codes[codes >= 0], minlength=len(classes))
        return Sums(sizes=[(block.number, block.n, counts)])

    return each_block(blocks, one, Sums(sizes=[]))


def _taken(
    blocks: Sequence[Block], message: tuple[RowTerms, dict[int, list[tuple[int, Index, Array]]]]
) -> Sums:
    """The rows of each block that are wanted, by their numbers among its rows of a class."""
    terms, wanted = message

    def one(block: Block) -> Sums:
        if not wanted[block.number]:
            return Sums(found=[])
        codes = _codes(block, terms.classes)
        rows, factors = [], []
        for k, own, factor in wanted[block.number]:
            rows.append(np.flatnonzero(codes == k)[own])
            factors.append(factor)
        places, factor = np.concatenate(rows), np.concatenate(factors)
        order = np.argsort(places)
        places, factor = places[order], factor[order]
        own_rows = terms.of(block)
        found = _SomeRows(
            block.number,
            places,
            block.design().take_rows(places).stored,
            codes[places],
            factor * own_rows.weights[places],
            own_rows.y[places],
            own_rows.dual[places],
        )
        block.notes.clear()  # nothing is to be kept beside these rows
        return Sums(found=[found])

    return each_block(blocks, one, Sums(found=[]))


def _dual_rows(blocks: Sequence[Block], message: tuple[RowTerms, int]) -> Sums:
    """At most so many rows of the part that have dual variables, evenly from all of it."""
    terms, most = message
    used = {block.number: np.flatnonzero(terms.of(block).dual) for block in blocks if block.n}
    step = max(1, -(-sum(rows.size for rows in used.values()) // most))

    def one(block: Block) -> Sums:
        assert isinstance(block, SpanBlock)
        rows, places = terms.of(block), used[block.number][::step]
        if not places.size:
            return Sums(found=[])
        found = _SomeRows(
            block.number,
            places,
            block.rows(places),
            _codes(block, terms.classes)[places],
            rows.weights[places],
            rows.y[places],
            rows.dual[places],
        )
        return Sums(found=[found])

    return each_block(blocks, one, Sums(found=[]))
