"""Kernel problems over the span of at most B rows, with the slacks of all rows in the objective.

    minimise over J (|J| <= B), beta, b    1/2 beta'K_JJ beta + C N(slacks of all n rows)

For a given J this is a linear problem, solved to its gap (`kernels/landmarks.py`).  J is chosen
on a sample of the rows, in which each stands for others:

1. the support vectors of the problem without a budget are where to look first;
2. forward selection and exchanges (`span_search.py`), k-means, the 1-norm path on a dictionary
   (`landmark_sets.py`) and chance each give a set for three quarters of the sample;
3. the set of the fewest errors on the last quarter is kept, that of the search unless another is
   better by two standard errors.  Its exchanges then go on in the whole sample, where two more
   searches begin with no rows, and one with the heaviest of the support vectors where these are
   few: where a search ends depends on its first rows, and the least objective decides.  Where
   there are workers, they search side by side.

Where the problem without a budget has no more than B support vectors, it is the answer.

What the budget costs is bounded by the dual value of the problem without one: at its own solution
where that is at hand, otherwise at the solutions of parts of the rows, or where those had to be
small at the duals of the problem over the span, which are feasible for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design import Design, design_of
from anynorm.design.crew import Elsewhere, called_here
from anynorm.design.limits import MEGABYTE
from anynorm.design.watch import look
from anynorm.kernels.gram import Gram
from anynorm.kernels.landmarks import LandmarkDesign, Landmarks
from anynorm.kernels.rows import KernelRows
from anynorm.norms.dual_sets import Box, CurvedBox
from anynorm.problem import Problem
from anynorm.problem.certificate import (
    Certificate,
    Values,
    certificate_of,
    certify,
    relative_gap,
)
from anynorm.problem.repair import repaired
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.kernel.landmark_sets import FollowPath, kmeans_rows, path_rows
from anynorm.solvers.kernel.search import SolveFeatures
from anynorm.solvers.kernel.solve import solve_kernel
from anynorm.solvers.kernel.span_search import SpanSearch

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_SAMPLE = 4000  # rows that J is chosen on, or
_PER_PLACE = 50  # so many for each row of the budget: with fewer, what is chosen is their noise
_HELD_OUT = 4  # one of so many rows of the sample compares the sets
_CLEARLY = 2.0  # standard errors: by one, the best of several sets is too often so by chance
_FRESH = 2  # searches in the whole sample that begin with no rows
_WORTH_COMPARING = 80  # rows of a sample from which a part of them can tell
_NEARLY_ALL = 2  # times the budget: the heaviest of so few support vectors are a set as well
_CHOICE_TOL = 1e-2  # the gap of problems that J is chosen by
_EXACT = 4000  # rows up to which the problem without a budget is solved to the gap asked for,
_WHOLE = 30_000  # to a hundredth,
_ROUGHLY = 60_000  # and up to which to a tenth, as far as it gets
_SUPPORT_TOL = 1e-2  # that hundredth, and the gap of a sample's support vectors to look at first
_ROUGH_TOL = 1e-1  # that tenth
_ROUGH_COST = 1e11  # products for a whole kernel matrix, up to which it is worth its time
_MOST_PARTS = 8  # of the rows: the bound of more is far below (60,000: 0.36 by 2, 0.62 by 8)
_ROUGH_ITERATIONS = 4  # for each row: beyond, a bound takes many times what the fit takes
_CHOICE_TIME = 0.5  # of the time that is left, for the choice of J
FEATURE_ITERATIONS = 10_000  # of solvers over features, which take few
_RARE = 4  # one of so many rows of a sample, divided by the classes, is a class's at least
BOUND_ROWS = 60_000  # whose kernel values with each other, 4e9, are worth a bound
_LARGEST_SHUFFLE = 10_000_000  # rows: beyond, those drawn are drawn one by one


@dataclass(frozen=True)
class Strict:
    """A solution over a span, and what is known of the problem without a budget.

    Attributes
    ----------
    solution : Solution
        Its `coef` are y times the weights of the rows' kernel functions, zero but for at most B.
        Its `dual` and certificate are those of the problem over the span.
    full : Certificate
        Its primal value and a dual value of the problem without a budget.
    full_dual : ndarray of shape (n,)
        The dual variables behind that value.
    cut_short : bool
        Whether time ended the choice of the rows.
    """

    solution: Solution
    full: Certificate
    full_dual: Array
    cut_short: bool = False


def solve_strict(
    problems: Sequence[Problem],
    count: int,
    *,
    tol: float = 1e-4,
    max_iter: int = 100_000_000,
    deadline: float | None = None,
    cache_size: float = 500.0,
    seed: int = 0,
    starts: Sequence[Array | None] | None = None,
    known: Index | None = None,
    progress: Sequence[Callable[[Progress], None] | None] | None = None,
    solve_features: SolveFeatures,
    follow_path: FollowPath,
) -> list[Strict]:
    """Solve binary problems that share a kernel over the span of the same `count` rows at most.

    Parameters
    ----------
    problems : sequence of Problem
        With one gram and free biases.
    count : int
        The budget B.
    tol : float
        The relative duality gap to reach, for the rows chosen.
    max_iter : int
        Most iterations of a method.
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    cache_size : float
        The megabytes for kernel rows and for features; features beyond are computed again whenever
        they are asked for.
    seed : int
        Seeds the choice of the rows.
    starts : sequence of ndarray of shape (n,), optional
        Dual variables of nearby problems without a budget.
    known : ndarray of int, optional
        Rows that were chosen for a nearby problem.
    progress : sequence of callables, optional
        Called with a `Progress` at every gap of a problem over the chosen rows.
    solve_features : callable
        A solver of problems over features, `solve_linear`.
    follow_path : callable
        What follows the path of a 1-norm problem, `anynorm.solvers.one_norm.follow_path`.

    Returns
    -------
    list of Strict
        In the order of the problems.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.kernel import solve_strict
    >>> from anynorm.solvers.linear import solve_linear
    >>> from anynorm.solvers.one_norm import follow_path
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 0.5, 1.0, -1.0)
    >>> problem = Problem(y=y, C=10.0, loss=get_loss("hinge"), gram=Gram.rbf(X, 2.0))
    >>> [found] = solve_strict(
    ...     [problem], 3, solve_features=solve_linear, follow_path=follow_path
    ... )
    >>> int(np.count_nonzero(found.solution.coef)), found.solution.status.value
    (3, 'optimal')
    >>> found.full.dual <= found.solution.certificate.dual
    True
    """
    budget, random = Budget(max_iter, deadline), np.random.default_rng(seed)
    search = _StrictSearch(
        problems, count, tol, budget, cache_size, random, solve_features, follow_path
    )
    full = search.without_budget(starts or [None] * len(problems))
    if full is not None and search.keeps_budget(full):
        return [Strict(s, s.certificate, s.dual) for s in full]
    rows = search.chosen(full, known)
    return search.solved(rows, full, progress or [None] * len(problems))


class Chosen(NamedTuple):
    """Rows J, and what is known of the problem without a budget.

    Attributes
    ----------
    rows : ndarray of int
        In no order.
    full : list of Solution or None
        Without a budget, where that was solved for all rows.
    cut_short : bool
        Whether time ended the choice.
    """

    rows: Index
    full: list[Solution] | None
    cut_short: bool


def choose_rows(
    problems: Sequence[Problem],
    count: int,
    *,
    all_rows: bool,
    tol: float,
    budget: Budget,
    cache_size: float,
    random: np.random.Generator,
    known: Index | None,
    solve_features: SolveFeatures,
    follow_path: FollowPath,
    elsewhere: Elsewhere,
) -> Chosen:
    """The first half of `solve_strict`, for a sample of rows that are not all here.

    `all_rows` says that they are, and `elsewhere` where searches go on side by side; other
    arguments are as there.
    """
    search = _StrictSearch(
        problems, count, tol, budget, cache_size, random, solve_features, follow_path
    )
    search.sample_size = problems[0].n_rows  # which are a sample already
    full = search.without_budget([None] * len(problems)) if all_rows else None
    if full is not None and search.keeps_budget(full):
        return Chosen(np.flatnonzero(np.any([s.dual != 0 for s in full], axis=0)), full, False)
    return Chosen(search.chosen(full, known, elsewhere), full, search.cut_short)


def sample_size(count: int) -> int:
    """How many rows J is chosen on, where there are more."""
    return max(_SAMPLE, _PER_PLACE * count)


def draw(sizes: Sequence[int], size: int, random: np.random.Generator) -> tuple[list[Index], Array]:
    """Some members of each class, by their number in it, and how many each of them stands for.

    `sizes` are those of the classes, all together more than `size`, which is how many to draw.
    """
    total, least = sum(sizes), size // (_RARE * len(sizes))
    drawn, stands_for = [], []
    for n in sizes:
        own = max(size * n // total, min(least, n))
        few = n > _LARGEST_SHUFFLE
        drawn.append(random.choice(n, own, replace=False) if few else random.permutation(n)[:own])
        stands_for.append(np.full(own, n / own))
    return drawn, np.concatenate(stands_for)


def rows_in_order(
    problems: Sequence[Problem],
    count: int,
    *,
    deadline: float | None = None,
    cache_size: float = 500.0,
    seed: int = 0,
    solve_features: SolveFeatures,
    follow_path: FollowPath,
) -> Index:
    """Return at most `count` rows by forward selection, the one that brings most first.

    The first of them are a choice for any smaller budget; exchanges and other sets, with which
    `solve_strict` improves on it, are left out.  Parameters as there.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.kernel.strict_budget import rows_in_order
    >>> from anynorm.solvers.linear import solve_linear
    >>> from anynorm.solvers.one_norm import follow_path
    >>> X = np.linspace(-1, 1, 30)[:, None]
    >>> y = np.where(np.abs(X[:, 0]) < 0.5, 1.0, -1.0)
    >>> problem = Problem(y=y, C=10.0, loss=get_loss("hinge"), gram=Gram.rbf(X, 2.0))
    >>> rows = rows_in_order([problem], 3, solve_features=solve_linear, follow_path=follow_path)
    >>> len(set(rows.tolist()))
    3
    """
    search = _StrictSearch(
        problems,
        count,
        _SUPPORT_TOL,
        Budget(FEATURE_ITERATIONS, deadline),
        cache_size,
        np.random.default_rng(seed),
        solve_features,
        follow_path,
    )
    return search.in_order()


class _StrictSearch:
    """What the steps of one solve share."""

    def __init__(
        self,
        problems: Sequence[Problem],
        count: int,
        tol: float,
        budget: Budget,
        cache_size: float,
        random: np.random.Generator,
        solve_features: SolveFeatures,
        follow_path: FollowPath,
    ) -> None:
        gram = problems[0].gram
        assert gram is not None
        self.gram: Gram = gram
        self.problems, self.count, self.tol, self.budget = problems, count, tol, budget
        self.cache_size, self.random = cache_size, random
        self.solve_features, self.follow_path = solve_features, follow_path
        self.alive = np.flatnonzero(problems[0].row_weights() > 0)
        self.sample_size = sample_size(count)
        self.cut_short = False

    # ------------------------------------------------------------ without a budget

    def without_budget(self, starts: Sequence[Array | None]) -> list[Solution] | None:
        """The solutions without a budget; None where rows are so many that a sample must do."""
        n = len(self.alive)
        if self.count >= n:
            return self._kernel_solutions(self.problems, starts, self.tol, 1.0)
        if n > _ROUGHLY or (n > _WHOLE and self.gram.cost(n, n) > _ROUGH_COST):
            return None
        loosest = 0.0 if n <= _EXACT else _SUPPORT_TOL if n <= _WHOLE else _ROUGH_TOL
        tol, most = max(self.tol, loosest), math.inf if n <= _WHOLE else _ROUGH_ITERATIONS * n
        found = self._kernel_solutions(self.problems, starts, tol, _CHOICE_TIME / 2, most)
        if self._n_used(found) > self.count or tol == self.tol:
            return found
        starts = [solution.dual for solution in found]
        return self._kernel_solutions(self.problems, starts, self.tol, _CHOICE_TIME / 2)

    def keeps_budget(self, full: Sequence[Solution]) -> bool:
        """Whether solutions without a budget are solved, and in the span of few enough rows."""
        solved = all(s.status in (Status.OPTIMAL, Status.UNCERTIFIED) for s in full)
        return self._n_used(full) <= self.count and (solved or self.count >= len(self.alive))

    @staticmethod
    def _n_used(solutions: Sequence[Solution]) -> int:
        return int(np.count_nonzero(np.any([s.dual != 0 for s in solutions], axis=0)))

    def _kernel_solutions(
        self,
        problems: Sequence[Problem],
        starts: Sequence[Array | None],
        tol: float,
        time_share: float,
        most: float = math.inf,
    ) -> list[Solution]:
        gram = problems[0].gram
        assert gram is not None
        rows = KernelRows(gram, int(self.cache_size * MEGABYTE), sharers=len(problems))
        end = self.budget.later(time_share)
        return [
            solve_kernel(
                problem,
                tol=tol,
                max_iter=int(min(self.budget.max_iter, most)),
                deadline=end,
                rows=rows,
                start=start,
                solve_features=self.solve_features,
            )
            for problem, start in zip(problems, starts, strict=True)
        ]

    # ------------------------------------------------------------ the rows

    def chosen(
        self,
        full: Sequence[Solution] | None,
        known: Index | None,
        elsewhere: Elsewhere = called_here,
    ) -> Index:
        """The rows J."""
        rows, choice = self._choice(full)
        places = np.empty(0, np.intp) if known is None else np.flatnonzero(np.isin(rows, known))
        return rows[choice.best(places, elsewhere)]

    def in_order(self) -> Index:
        """Rows by forward selection alone."""
        rows, choice = self._choice(None)
        return rows[choice.forward()]

    def _choice(self, full: Sequence[Solution] | None) -> tuple[Index, _Choice]:
        """The rows of a sample, and what chooses among them."""
        rows, weights = self._sample()
        parts = [_part(problem, rows, weights) for problem in self.problems]
        if full is None:
            nothing = [None] * len(parts)
            at = self._kernel_solutions(parts, nothing, _SUPPORT_TOL, _CHOICE_TIME / 2)
            weight = np.sum([np.abs(s.dual) for s in at], axis=0)
        else:
            weight = np.sum([np.abs(s.dual[rows]) for s in full], axis=0)
        pool = np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)]
        return rows, _Choice(self, parts, pool)

    def _sample(self) -> tuple[Index, Array | None]:
        """Some rows that count, and how many of their class each stands for (None is 1)."""
        alive = self.alive
        if len(alive) <= self.sample_size:
            return alive, None
        groups = _groups(self.problems, alive)
        drawn, weights = draw([len(group) for group in groups], self.sample_size, self.random)
        rows = np.concatenate([group[own] for group, own in zip(groups, drawn, strict=True)])
        order = np.argsort(rows)
        return rows[order], weights[order]

    def solve_span(self, problem: Problem, Z: Array, start: Array | None) -> Solution:
        """Solve a problem of the choice over features."""
        return self._over_features(problem, design_of(Z), _CHOICE_TOL, start=start, exact=False)

    def _over_features(
        self,
        problem: Problem,
        features: Design,
        tol: float,
        *,
        start: Array | None = None,
        progress: Callable[[Progress], None] | None = None,
        exact: bool = True,
    ) -> Solution:
        """Solve a problem with the kernel of features over these."""
        limits: dict[str, Any] = {
            "tol": tol,
            "deadline": self.budget.deadline,
            "progress": progress,
        }
        if isinstance(problem.dual_set, Box | CurvedBox):
            over = replace(problem, gram=None, X=features)
            iterations = min(self.budget.max_iter, FEATURE_ITERATIONS)
            return self.solve_features(over, max_iter=iterations, exact=exact, **limits)
        Z = features.dense()
        found = solve_kernel(
            replace(problem, gram=Gram.linear(Z)),
            max_iter=self.budget.max_iter,
            cache_size=self.cache_size,
            start=start,
            solve_features=self.solve_features,
            **limits,
        )
        return replace(found, coef=Z.T @ (problem.y * found.dual))

    # ------------------------------------------------------------ the solutions

    def solved(
        self,
        rows: Index,
        full: Sequence[Solution] | None,
        progress: Sequence[Callable[[Progress], None] | None],
    ) -> list[Strict]:
        """The solutions over the span of the rows, with their certificates.

        Bounds come after all solutions, which a time limit is for.
        """
        landmarks = Landmarks.of(self.gram, rows)
        features = landmarks.design(self.cache_size * MEGABYTE)
        solutions = []
        for k, problem in enumerate(self.problems):
            solution = self._over_features(problem, features, self.tol, progress=progress[k])
            solutions.append(self._as_kernel(problem, landmarks, solution))
        if full is not None:
            bounds = [
                _Bound(s.dual, s.certificate.dual, s.status is not Status.UNCERTIFIED) for s in full
            ]
            parts = zip(self.problems, solutions, bounds, strict=True)
            return [self._strict(*part) for part in parts]
        found = []
        for later, problem, solution in zip(
            reversed(range(len(solutions))), self.problems, solutions, strict=True
        ):
            found.append(self._strict(problem, solution, self._bound(problem, solution, later)))
        return found

    def _as_kernel(self, problem: Problem, landmarks: Landmarks, solution: Solution) -> Solution:
        """The solution in terms of kernel functions, certified as such."""
        over = replace(problem, gram=None, X=LandmarkDesign(landmarks))
        assert solution.coef is not None
        scores = over.scores(solution.coef)
        bias = over.best_bias(scores)
        reached = solution.status in (Status.OPTIMAL, Status.NEGLIGIBLE)
        certificate = certify(
            over,
            solution.coef,
            bias,
            solution.dual,
            tol=self.tol,
            stopped=Status.MAX_ITER if reached else solution.status,
            scores=scores,
        )
        coef = np.zeros(problem.n_rows)
        coef[landmarks.rows] = problem.y[landmarks.rows] * landmarks.weights(solution.coef)
        return replace(solution, coef=coef, intercept=bias, certificate=certificate)

    def _strict(self, problem: Problem, solution: Solution, bound: _Bound) -> Strict:
        """A solution with what is known of the problem without a budget."""
        values = Values(
            solution.certificate.primal,
            bound.value,
            problem.zero_primal(),
            bound.certain and self.gram.semidefinite,
        )
        certificate = certificate_of(values, self.tol, self.budget.stopped)
        return Strict(solution, certificate, bound.dual, self.cut_short)

    def _bound(self, problem: Problem, solution: Solution, later: int) -> _Bound:
        """The best bound there is time for, so many other problems waiting for theirs."""
        own = self._bound_at(problem, solution.dual)
        gap = relative_gap(solution.certificate.primal, own.value)
        if gap <= _ROUGH_TOL or not self._parts_pay(problem):
            return own
        parts = self._bound_by_parts(problem, later)
        return max(own, parts, key=lambda bound: bound.value)

    def _n_parts(self) -> int:
        """Of the rows: their kernels with themselves are together what a bound may cost."""
        n = len(self.alive)
        times = max(self.gram.cost(n, n) / _ROUGH_COST, (n / BOUND_ROWS) ** 2)
        return max(1, math.ceil(len(self.problems) * times))

    def _parts_pay(self, problem: Problem) -> bool:
        """Whether the sum of the parts' least values is a bound, and worth its time."""
        affordable = self._n_parts() <= _MOST_PARTS and self.budget.in_time()
        return problem.loss.sum_over_rows and affordable and self.gram.semidefinite

    def _bound_by_parts(self, problem: Problem, later: int) -> _Bound:
        """The bound by problems of parts of the rows.

        1/2 ||f||^2 is the sum of 1/(2K) ||f||^2 over K parts, and the least value of a sum no less
        than the sum of the least values: each part has an f of its own, which costs it 1/K.
        """
        count = self._n_parts()
        groups = [self.random.permutation(group) for group in _groups(self.problems, self.alive)]
        shares = [np.array_split(group, count) for group in groups]
        dual, value, certain = np.zeros(problem.n_rows), 0.0, True
        for k in range(count):
            left = (later + 1) * count - k
            own = np.sort(np.concatenate([share[k] for share in shares]))
            part = replace(problem.part(own), C=count * problem.C)
            most = _ROUGH_ITERATIONS * len(own)
            [found] = self._kernel_solutions([part], [None], _ROUGH_TOL, 1 / left, most)
            dual[own] = found.dual / count
            value += found.certificate.dual / count
            certain &= found.status is not Status.UNCERTIFIED
        return _Bound(dual, value, certain)

    def _bound_at(self, problem: Problem, dual: Array) -> _Bound:
        """The dual value at the dual variables of some rows, which the others do without."""
        used = np.flatnonzero(dual)
        if len(used) > BOUND_ROWS:
            used = used[np.linspace(0, len(used) - 1, BOUND_ROWS).astype(np.intp)]
        part = repaired(problem.part(used), dual[used])
        out = np.zeros(problem.n_rows)
        out[used] = part.a
        return _Bound(out, part.value, True)


class _Bound(NamedTuple):
    """Dual variables of the problem without a budget, and a bound not above their value.

    It is `certain` unless the kernel was seen not to be positive semidefinite.
    """

    dual: Array
    value: float
    certain: bool


class _Ended(NamedTuple):
    """Where a search ended.

    Attributes
    ----------
    rows : ndarray of int
        Of the sample.
    objective : float
        Over their span.
    final : bool
        Whether no other search can be better.
    cut_short : bool
        Whether time ended it.
    """

    rows: Index
    objective: float
    final: bool
    cut_short: bool


class _Choice:
    """The choice of J on a sample of the rows; the pool has support vectors, heaviest first."""

    def __init__(self, search: _StrictSearch, problems: list[Problem], pool: Index) -> None:
        self.search, self.problems, self.pool = search, problems, pool
        self.random, self.count = search.random, search.count
        self.time = Budget(1, search.budget.later(_CHOICE_TIME))

    def best(self, known: Index, elsewhere: Elsewhere) -> Index:
        """The best set of rows of the sample; `known` is one that was good before.

        The searches do not wait for each other, and each draws by a seed of its own: what is found
        is the same wherever they run.
        """
        starts = [np.empty(0, np.intp)] * _FRESH
        if len(self.pool) <= _NEARLY_ALL * self.count:
            starts.insert(0, self.pool[: self.count])
        first, *seeds = self.random.integers(2**63, size=1 + len(starts)).tolist()
        with elsewhere(self) as begin:
            best = begin(_Choice.from_sets, known, first)
            others = [
                begin(_Choice.from_rows, rows, seed)
                for rows, seed in zip(starts, seeds, strict=True)
            ]
            ended = [best()]
            while others and not ended[0].final and self._goes_on():
                ended.append(others.pop(0)())
        self.search.cut_short |= any(end.cut_short for end in ended)
        return min(ended, key=lambda end: end.objective).rows

    def from_sets(self, known: Index, seed: int) -> _Ended:
        """The best of several sets, from which a search goes on where it is its own."""
        own = self._drawing_by(seed)
        train, held = own._split(own.problems[0].n_rows)
        greedy, *others = own._sets(train, known)
        better = own._clearly_better(greedy, others, train, held)
        if better is not None:
            return _Ended(better, -math.inf, True, own.search.cut_short)
        return own._searched(greedy)

    def from_rows(self, rows: Index, seed: int) -> _Ended:
        """A search that begins with some rows."""
        return self._drawing_by(seed)._searched(rows)

    def _drawing_by(self, seed: int) -> _Choice:
        """The same for one search, which others may share this with."""
        own = copy(self)
        own.search, own.random = copy(self.search), np.random.default_rng(seed)
        return own

    def _searched(self, rows: Index) -> _Ended:
        search = self._search(self.problems)
        search.begin(rows)
        search.grow(self.count, self.pool)
        search.exchange(self.pool)
        found = np.array(search.rows, dtype=np.intp)
        return _Ended(found, search.objective, False, self.search.cut_short)

    def forward(self) -> Index:
        """Rows of the sample by forward selection, in their order."""
        search = self._search(self.problems)
        search.begin([])
        search.grow(self.count, self.pool)
        return np.array(search.rows, dtype=np.intp)

    def _goes_on(self) -> bool:
        look()
        in_time = self.time.in_time()
        self.search.cut_short = self.search.cut_short or not in_time
        return in_time

    def _search(self, problems: Sequence[Problem]) -> SpanSearch:
        return SpanSearch(problems, self.search.solve_span, self.random, self._goes_on)

    def _split(self, n: int) -> tuple[Index, Index]:
        """Rows to choose by and rows to compare by, of every class; none where they are few."""
        if n < _WORTH_COMPARING:
            return np.arange(n), np.empty(0, np.intp)
        held = []
        for group in _groups(self.problems, np.arange(n)):
            held.append(self.random.permutation(group)[: len(group) // _HELD_OUT])
        out = np.sort(np.concatenate(held))
        return np.setdiff1d(np.arange(n), out), out

    def _sets(self, train: Index, known: Index) -> list[Index]:
        """Sets of rows, of the training part but for `known`, that of the search first."""
        parts = [_part(problem, train, None) for problem in self.problems]
        gram = parts[0].gram
        assert gram is not None
        pool = np.flatnonzero(np.isin(train, self.pool))
        search = self._search(parts)
        search.begin([])
        search.grow(self.count, pool)
        search.exchange(pool)
        sets = [train[np.array(search.rows, dtype=np.intp)]]
        sets.append(self.random.permutation(train)[: self.count])
        if self._goes_on():
            sets.append(train[kmeans_rows(gram, self.count, self.random)])
        if self._goes_on():
            search.begin(path_rows(parts, self.count, self.random, self.search.follow_path))
            search.grow(self.count, pool)
            sets.append(train[np.array(search.rows, dtype=np.intp)])
        return [*sets, known[: self.count]] if len(known) else sets

    def _clearly_better(
        self, greedy: Index, others: list[Index], train: Index, held: Index
    ) -> Index | None:
        """The best of the other sets, where chance does not explain that it is better."""
        if not len(held):
            values = [self._objective(rows) for rows in (greedy, *others)]
            best = int(np.argmin(values))
            return others[best - 1] if best else None
        ours = self._errors(greedy, train, held)
        gains = [ours - self._errors(rows, train, held) for rows in others]
        best = int(np.argmax([gain.mean() for gain in gains]))
        error = float(gains[best].std()) / math.sqrt(len(held))
        return others[best] if gains[best].mean() > _CLEARLY * error else None

    def _errors(self, rows: Index, train: Index, held: Index) -> Array:
        """The weights of held-out rows that what was learnt from the others puts on a wrong side.

        Errors and not slacks, which a C that is best for the errors does not make least.
        """
        landmarks = Landmarks.of(self._gram, rows)
        Z, Z_held = landmarks.features(train), landmarks.features(held)
        total = np.zeros(len(held))
        for problem in self.problems:
            found = self.search.solve_span(_part(problem, train, None), Z, None)
            scores = Z_held @ found.coef + found.intercept
            total += problem.y[held] * scores <= 0
        return total * self.problems[0].row_weights()[held]

    def _objective(self, rows: Index) -> float:
        """The objective over the span of some rows."""
        Z = Landmarks.of(self._gram, rows).design().dense()
        found = (self.search.solve_span(problem, Z, None) for problem in self.problems)
        return float(sum(solution.certificate.primal for solution in found))

    @property
    def _gram(self) -> Gram:
        gram = self.problems[0].gram
        assert gram is not None
        return gram


def _groups(problems: Sequence[Problem], rows: Index) -> list[Index]:
    """The rows of each class."""
    labels = np.column_stack([problem.y[rows] for problem in problems])
    codes = np.unique(labels, axis=0, return_inverse=True)[1].ravel()
    return [rows[codes == code] for code in range(codes.max() + 1)]


def _part(problem: Problem, rows: Index, weights: Array | None) -> Problem:
    """The problem of some rows, each counted as often as it stands for others."""
    part = problem.part(rows)
    if weights is None:
        return part
    return replace(part, sample_weight=weights * part.row_weights())
