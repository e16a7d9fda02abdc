"""The walk from the 2-norm to the 1-norm: a few 2-norm problems with re-weighted features.

        minimise_{u, b}   ||u||_1 + E(u, b),     E(u, b) = g(1 - y (X u + b))

is approached through (A Walk from 2-Norm SVM to 1-Norm SVM, Algorithm 1), from v = 1,

        u <- argmin   1/2 sum_j (u_j / v_j)^2 + E(u, b),        v_j <- sqrt |u_j|.

As 2 |u_j| <= u_j^2 / v_j^2 + v_j^2, with equality at |u_j| = v_j^2, each round minimises an upper
bound of the 1-norm objective that is exact where the round begins: the objective never rises by
more than the round's duality gap (Theorem 2).  The constraints of the dual do not depend on v, so
each round starts from the dual variables of the last.

Features are weighted inside the solver: X is neither copied nor rescaled, except where dense data
of few rows and many columns give an n x n matrix, and where sparse data are small (`dense_walk`).
Weights shrink geometrically but do not reach zero; between two rounds, columns that do not matter
are dropped, and columns dropped before come back where they are missed (`pruning`).  Once few
columns are left they are taken out of X.

A free bias has no weight.  A regularised one is a feature, re-weighted like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anynorm.problem import Problem
from anynorm.problem.certificate import Certificate, certify
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.column_newton import MOST_IN_WALK, few_columns_suit
from anynorm.solvers.linear.few_rows import (
    ROWS_PER_COLUMN,
    FewRows,
    UsedColumns,
    few_rows_suit,
)
from anynorm.solvers.linear.pruning import GENEROSITY, WalkModel, less_generous, prune, take_back
from anynorm.solvers.linear.rounds import Round
from anynorm.solvers.linear.solve import SMALL_ENTRIES, solve_linear
from anynorm.solvers.linear.sparse_rows import SparseRows, sparse_rows_suit

_FEW = 8  # an eighth of the entries is few enough for a copy of its own
_SMALL = 4_000_000  # entries; of a small matrix three quarters will do


def walk(
    problem: Problem,
    *,
    n_rounds: int = 3,
    prune: bool = True,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    start: np.ndarray | None = None,
    progress: Callable[[Progress], None] | None = None,
    exact: bool = True,
) -> list[Round]:
    """Walk `n_rounds` rounds from the 2-norm solution towards the 1-norm solution.

    Parameters
    ----------
    problem : Problem
        The 2-norm problem on features with which the walk begins.
    n_rounds : int
        The number of rounds; the first one is the 2-norm problem itself.
    prune : bool
        Whether to drop columns that do not matter between two rounds.  What a round returns is the
        solution of its own problem, with exact zeros for the columns that were dropped before it.
    tol : float
        The relative duality gap that each round's problem is solved to.
    max_iter : int
        Most iterations of a round.
    deadline : float, optional
        `time.monotonic()` value at which to stop; rounds after it stay where the last one was.
    seed : int
        Seed of the order in which coordinate descent visits the examples.
    start : ndarray of shape (n,), optional
        Dual variables from which the first round starts.
    progress : callable, optional
        Called with a `Progress` of the round at every certificate that is computed; iterations
        and seconds count from the beginning of the walk.
    exact : bool
        Whether the rounds of a small problem are solved to the last digit, and not only to `tol`;
        those of a sparse X of 200,000 places and more, or of few rows and many columns, never are.

    Returns
    -------
    list of Round
        One per round.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.linear import walk
    >>> X, y = np.array([[2.0, 1.0], [-2.0, -1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, intercept=None)
    >>> rounds = walk(problem, n_rounds=6, prune=False, tol=1e-3)
    >>> [round(r.objective, 3) for r in rounds]
    [0.6, 0.556, 0.529, 0.515, 0.508, 0.504]
    >>> rounds[0].coef.round(3)
    array([0.4, 0.2])
    """
    if shared_over_C(problem, tol):
        from anynorm.solvers.linear.dense_walk import WalkLimits, walk_dense  # Numba

        small = problem.n_rows * problem.n_coefs <= SMALL_ENTRIES
        sparse = sparse_rows_suit(problem, tol)
        exact = exact and small and not sparse and not few_rows_suit(problem, tol)
        limits = WalkLimits(n_rounds, prune, tol, max_iter, deadline, seed, exact)
        used = UsedColumns(problem.design, sparse=sparse)
        rows = SparseRows(used.X, seed) if sparse else FewRows(used.X)
        found = walk_dense(used.problem(problem), rows, limits, start, progress)
        return used.rounds(found, problem)
    options = {"max_iter": max_iter, "seed": seed, "exact": exact}
    path = _Walk(problem, prune, tol, deadline, progress, options)
    rounds = [path.first(start)]
    while len(rounds) < n_rounds:
        late = not path.time.in_time() and rounds[-1].certificate.status is Status.TIME_LIMIT
        rounds.append(replace(rounds[-1], n_iter=0) if late else path.next())
    return rounds


def walk_over_C(
    problems: Sequence[Problem],
    Cs: Sequence[float],
    *,
    n_rounds: int = 3,
    prune: bool = True,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[list[list[Round]]]:
    """Walk once for each C, sharing between the walks what they have in common.

    Parameters
    ----------
    problems : sequence of Problem
        Problems on the same X, e.g. one class against the rest; their own C is not used.
    Cs : sequence of float
        The values of C, ascending.
    n_rounds, prune, tol, max_iter, deadline, seed, progress
        As in `walk`.

    Yields
    ------
    list of list of Round
        For each C, the rounds of every problem.
    """
    if shared_over_C(problems[0], tol):
        from anynorm.solvers.linear.dense_walk import WalkLimits, walk_dense_over_C  # Numba

        limits = WalkLimits(n_rounds, prune, tol, max_iter, deadline, seed, exact=False)
        sparse = sparse_rows_suit(problems[0], tol)
        used = UsedColumns(problems[0].design, sparse=sparse)
        rows = SparseRows(used.X, seed) if sparse else FewRows(used.X)
        walks = [
            walk_dense_over_C(used.problem(one), Cs, rows, limits, progress) for one in problems
        ]
        last: list[Any] = [None] * len(problems)
        for C, found in zip(Cs, zip(*walks, strict=True), strict=True):
            at = [replace(one, C=float(C)) for one in problems]
            spread = [used.rounds(*given) for given in zip(found, at, last, strict=True)]
            last = list(zip(found, spread, strict=True))
            yield spread
        return
    for C in Cs:
        yield [
            walk(
                replace(one, C=float(C)),
                n_rounds=n_rounds,
                prune=prune,
                tol=tol,
                max_iter=max_iter,
                deadline=deadline,
                seed=seed,
                progress=progress,
                exact=False,
            )
            for one in problems
        ]


def shared_over_C(problem: Problem, tol: float) -> bool:
    """Whether the walks for several C have anything in common.

    They stop at `tol`, where a single walk of a small problem may go on to the last digits.
    """
    if sparse_rows_suit(problem, tol):
        return True
    few_rows = few_rows_suit(problem, tol, columns_per_row=1 / ROWS_PER_COLUMN)
    return few_rows or few_columns_suit(problem.design, problem.dual_set, tol, most=MOST_IN_WALK)


@dataclass
class _Walk:
    """Where the walk is: the weights, the model they come from, and the columns still in use."""

    problem: Problem
    prune: bool
    tol: float
    deadline: float | None
    progress: Callable[[Progress], None] | None
    options: dict[str, Any]
    n_iter: int = 0
    generosity: float = GENEROSITY

    def __post_init__(self) -> None:
        self.time = Budget(0, self.deadline)
        # Every round's problem gets the same design, which keeps what it has made of X.
        self.problem = replace(self.problem, X=self.problem.design)
        self.one_norm = replace(self.problem, regulariser="l1", feature_scale=None)
        self.columns = np.arange(self.problem.n_coefs)
        self.entries = self.problem.design.column_entries()
        self.inner = self.problem
        self.model = WalkModel(np.zeros(0), 0.0, np.zeros(0))
        self.missed = np.arange(0)
        self.dual: np.ndarray | None = None

    def first(self, start: np.ndarray | None) -> Round:
        """The 2-norm problem."""
        self.dual = start
        solution = self._solve()
        self.model = self._found(solution)
        return self._record(solution.certificate, solution.n_iter)

    def next(self) -> Round:
        """One more round with the weights of the last."""
        before = self._objective(self.model)
        self._reweight()
        if not self.time.in_time():
            return self._record(self._certificate(), 0)
        solution = self._solve()
        if self.missed.size and self._objective(self._found(solution)) > before:
            # What came back did not pay: without it the objective cannot rise.
            self.generosity = less_generous(self.generosity, self.tol)
            self._weigh(np.abs(self.model.coef))
            solution = self._solve()
        here = self.inner.objective(self.model.coef, self.model.intercept, scores=self.model.scores)
        if solution.certificate.primal > here:  # no better than where the round began
            return self._record(self._certificate(), solution.n_iter)
        self.model = self._found(solution)
        return self._record(solution.certificate, solution.n_iter)

    def _objective(self, model: WalkModel) -> float:
        """The 1-norm objective."""
        return self.one_norm.objective(model.coef, model.intercept, scores=model.scores)

    def _solve(self) -> Solution:
        solution = solve_linear(
            self.inner,
            tol=self.tol,
            deadline=self.deadline,
            start=self.dual,
            progress=self._report if self.progress is not None else None,
            **self.options,
        )
        self.dual = solution.dual
        self.n_iter += solution.n_iter
        return solution

    def _report(self, state: Progress) -> None:
        assert self.progress is not None
        iteration = self.n_iter + state.iteration
        self.progress(state._replace(iteration=iteration, seconds=self.time.seconds))

    def _found(self, solution: Solution) -> WalkModel:
        assert solution.coef is not None
        return WalkModel(solution.coef, solution.intercept, self.inner.scores(solution.coef))

    def _certificate(self) -> Certificate:
        """The certificate of the model at which the walk stands, for the round's problem."""
        assert self.dual is not None
        model = self.model
        return certify(
            self.inner,
            model.coef,
            model.intercept,
            self.dual,
            tol=self.tol,
            scores=model.scores,
            stopped=self.time.stopped,
        )

    def _record(self, certificate: Certificate, n_iter: int) -> Round:
        """The round as it is handed out, with all columns."""
        assert self.dual is not None
        model = self.model
        coef, scale = np.zeros((2, self.one_norm.n_coefs))
        coef[self.columns] = model.coef
        scale[self.columns] = 1.0 if self.inner.feature_scale is None else self.inner.feature_scale
        return Round(
            coef=coef,
            intercept=model.intercept,
            dual=self.dual,
            scores=model.scores,
            certificate=certificate,
            n_iter=n_iter,
            feature_scale=scale,
            one_norm=self.one_norm,
        )

    def _reweight(self) -> None:
        """Drop columns, take back those that are missed, and make the next round's problem."""
        if self.prune:
            self.model = prune(self.inner, self.model, tol=0.5 * self.tol)
        weights = np.zeros(self.problem.n_coefs)
        weights[self.columns] = np.abs(self.model.coef)
        kept = np.flatnonzero(weights)
        self.missed = np.arange(0)
        if self.prune and 0 < kept.size < weights.size and self.generosity > 0:
            assert self.dual is not None
            self.missed = take_back(weights, self.one_norm.pull_back(self.dual), self.generosity)
        self._use(kept, self.missed)
        self._weigh(weights[self.columns])

    def _weigh(self, weights: np.ndarray) -> None:
        """The next round's problem on the columns at hand, with these squared weights."""
        bias = self._bias_feature(self.model.intercept)
        self.inner = self.problem.on_columns(self.inner.design, np.sqrt(weights), bias)

    def _use(self, kept: np.ndarray, missed: np.ndarray) -> None:
        """Work on the columns in use: taken out of X where they are few, else on all of X."""
        columns = np.union1d(kept, missed)
        X, available = self.inner.design, self.columns
        if not np.isin(missed, available).all():
            X, available = self.problem.design, np.arange(self.problem.n_coefs)
        if 0 < len(columns) < len(available) and self._worth_a_copy(columns, available):
            X, available = X.take_columns(np.searchsorted(available, columns)), columns
        coef = np.zeros(self.problem.n_coefs)
        coef[self.columns] = self.model.coef
        self.model = self.model._replace(coef=coef[available])
        self.columns = available
        self.inner = replace(self.inner, X=X, feature_scale=None)

    def _worth_a_copy(self, columns: np.ndarray, available: np.ndarray) -> bool:
        """Whether `columns` are so few that they are taken out of X."""
        kept, entries = (int(self.entries[some].sum()) for some in (columns, available))
        return _FEW * kept <= entries or (4 * kept <= 3 * entries and kept <= _SMALL)

    def _bias_feature(self, intercept: float) -> Any:
        """The constant feature of a regularised bias, re-weighted like the others."""
        size = self.problem.bias_feature
        if not size:
            return self.problem.intercept
        return None if intercept == 0 else size * float(np.sqrt(abs(intercept / size)))
