"""Many problems with one kernel matrix: folds, classes and values of C that share its rows.

Where a problem's duals lie in a box, it is solved in two steps.

1. Block SMO by float32 rows that all problems share, until these say that the gap is reached.  The
   problems of a chain differ by C, or by a budget: each starts where the last one ended, with what
   was at a bound at the new bound, and what then is too much of one sign taken off the rows of the
   largest margins, which are the next to leave their bounds.
2. K times the duals of all problems at once, in float64: a value of the kernel is evaluated once
   for all of them.  That gives the certificates, and the scores of rows that had no part in a
   problem.  What misses the gap is solved again, alone.

A fold is the problem of all rows in which those held out have the weight 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design.threads import one_by_one, run
from anynorm.kernels.gram import Gram
from anynorm.kernels.rows import KernelRows
from anynorm.norms.dual_sets import Box, BudgetBox
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.kernel.box_duals import minimise, steps_of
from anynorm.solvers.kernel.features import has_own_features, may_have_low_rank
from anynorm.solvers.kernel.screened import pays
from anynorm.solvers.kernel.search import SolveFeatures
from anynorm.solvers.kernel.solve import is_linear_system, solve_kernel

Array = NDArray[np.float64]

_AT_BOUND = 1 - 1e-9  # of a bound: what is as good as there
_WORTH_SHARING = 500  # rows: the exact optimum of fewer costs next to nothing
_PROBES = 256  # rows by which a start is judged
_ENTRIES = 1 << 23  # duals of problems that are certified together, 64 MB


class Chain(NamedTuple):
    """Problems one after the other, each near the last one.

    Attributes
    ----------
    problems : sequence of Problem
        With the same kernel and the same labels.
    rows : ndarray or None
        Which rows of the family's kernel they have; None for all of them, some perhaps of weight 0.
    """

    problems: Sequence[Problem]
    rows: NDArray[np.intp] | None = None


class Member(NamedTuple):
    """A solution, and its scores, without the intercept, of all rows of the family's kernel."""

    solution: Solution
    scores: Array


class Limits(NamedTuple):
    """Where a solve stops, as in `solve_kernel`."""

    tol: float
    max_iter: int
    deadline: float | None


def solve_family(
    chains: Sequence[Chain],
    gram: Gram,
    rows: KernelRows | None,
    limits: Limits,
    *,
    solve_features: SolveFeatures | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> list[list[Member]]:
    """Solve chains of problems with one kernel, several chains at a time.

    Parameters
    ----------
    chains : sequence of Chain
        What to solve.
    gram : Gram
        The kernel of all rows.
    rows : KernelRows or None
        Its rows, which all chains share; None where there is no time to use them.
    limits : Limits
        For every single problem.
    solve_features, progress : as in `solve_kernel`

    Returns
    -------
    list of list of Member
        The solutions, chain by chain.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.kernels.rows import KernelRows
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.kernel.family import Chain, Limits, solve_family
    >>> gram, y = Gram.rbf(np.array([[0.0], [1.0], [2.0]]), 1.0), np.array([1.0, -1.0, 1.0])
    >>> problems = [Problem(y=y, C=C, loss=get_loss("hinge"), gram=gram) for C in (0.5, 1.0)]
    >>> rows, limits = KernelRows(gram, 1 << 20), Limits(tol=1e-6, max_iter=1000, deadline=None)
    >>> [found] = solve_family([Chain(problems)], gram, rows, limits)
    >>> [member.solution.status.value for member in found]
    ['optimal', 'optimal']
    """
    first = limits._replace(deadline=before_scores(gram, limits.deadline))

    def approach(k: int) -> list[_Approached]:
        if rows is None or not Budget(limits.max_iter, first.deadline).in_time():
            return [_nothing(problem) for problem in chains[k].problems]
        return _approached(chains[k], rows, first, solve_features, progress)

    solve_each = one_by_one if rows is not None and rows.in_turn else run
    found = solve_each(approach, len(chains))
    places = [(k, i) for k, chain in enumerate(chains) for i in range(len(chain.problems))]
    together = max(1, _ENTRIES // gram.n)
    members: list[list[Member]] = [[] for _ in chains]
    for start in range(0, len(places), together):
        some = places[start : start + together]
        betas = np.zeros((gram.n, len(some)))
        for column, (k, i) in enumerate(some):
            betas[_own(chains[k]), column] = found[k][i].beta
        scores = gram.matmat(betas) if rows is None else rows.exact_scores(betas)

        def settle(
            column: int, some: list[tuple[int, int]] = some, scores: Array = scores
        ) -> Member:
            k, i = some[column]
            own, problem = np.ascontiguousarray(scores[:, column]), chains[k].problems[i]
            known, part = found[k][i].solution, chains[k].rows
            if known is not None:
                return Member(known, own)
            if part is not None or rows is None:  # there was no time for it
                return Member(_certified(problem, found[k][i], own[_own(chains[k])], first), own)
            return _settled(problem, found[k][i], own, rows, first, solve_features, progress)

        for (k, _), member in zip(some, solve_each(settle, len(some)), strict=True):
            members[k].append(member)
    return members


def before_scores(gram: Gram, deadline: float | None) -> float | None:
    """When the last thing that is done, all scores in float64, must begin to end in time."""
    return None if deadline is None else Budget(1, deadline).last_moment(gram.cost(gram.n, gram.n))


def _nothing(problem: Problem) -> _Approached:
    """No model at all, for which there is time."""
    return _Approached(np.zeros(problem.n_rows), 0)


def _own(chain: Chain) -> NDArray[np.intp] | slice:
    return slice(None) if chain.rows is None else chain.rows


class _Approached(NamedTuple):
    """Coefficients beta = y * a, of duals; the solution where it is certified already."""

    beta: Array
    n_iter: int
    solution: Solution | None = None


def _approached(
    chain: Chain,
    rows: KernelRows,
    limits: Limits,
    solve_features: SolveFeatures | None,
    progress: Callable[[Progress], None] | None,
) -> list[_Approached]:
    """Every problem of a chain, by float32 rows where that can be."""
    found: list[_Approached] = []
    if chain.rows is not None:
        assert chain.problems[0].gram is not None
        rows = rows.for_part(chain.problems[0].gram)
    scores = duals = np.zeros(chain.problems[0].n_rows)
    steps, known = None, False
    for i, problem in enumerate(chain.problems):
        start = start_scores = None
        if i > 0:
            last = chain.problems[i - 1]
            start = moved(duals, scores, last, problem)
            if known:
                start_scores = _moved_scores(start, duals, scores, problem.C / last.C, rows)
        if chain.rows is None and _is_box(problem, solve_features is not None):
            budget = Budget(limits.max_iter, limits.deadline)
            steps = steps or steps_of(problem, rows)
            result = minimise(
                problem,
                rows,
                tol=limits.tol,
                budget=budget,
                start=_all_at_bounds(problem) if start is None else start,
                start_scores=start_scores,
                steps=steps,
                report=Incumbent(problem, limits.tol, budget, progress).report,
                rough=True,
            )
            scores, duals, known = result.scores, result.beta, True
            found.append(_Approached(result.beta, budget.n_iter))
            continue
        solution = solve_kernel(
            problem,
            **limits._asdict(),
            rows=rows,
            start=None if start is None or pays(problem) else problem.y * start,
            progress=progress,
            solve_features=solve_features,
        )
        assert solution.coef is not None
        duals, known = problem.y * solution.dual, False
        found.append(_Approached(problem.y * solution.coef, solution.n_iter, solution))
    return found


def _is_box(problem: Problem, with_features: bool) -> bool:
    """Whether block SMO for all rows is what solves a problem best."""
    box, gram = problem.dual_set, problem.gram
    if not isinstance(box, Box | BudgetBox) or gram is None or pays(problem):
        return False
    if gram.n < _WORTH_SHARING:
        return False
    over_features = isinstance(box, Box) and has_own_features(gram)
    over_features = with_features and (over_features or may_have_low_rank(problem))
    return not is_linear_system(box) and not over_features


def moved(beta: Array, scores: Array, last: Problem, problem: Problem) -> Array:
    """The duals of one problem as a start for the next: what was at a bound is at the new one.

    What then is too much of one sign is taken off the rows with the largest margins.

    Examples
    --------
    >>> import numpy as np
    >>> from dataclasses import replace
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.kernel.family import moved
    >>> y = np.array([1.0, 1.0, -1.0])
    >>> last = Problem(y=y, C=1.0, loss=get_loss("hinge"), gram=Gram.linear(y[:, None]))
    >>> moved(np.array([1.0, 0.5, -1.0]), y, last, replace(last, C=2.0))
    array([ 1.5,  0.5, -2. ])
    """
    before, box = last.dual_set, problem.dual_set
    if not isinstance(before, Box | BudgetBox) or not isinstance(box, Box | BudgetBox):
        return beta
    at_bound = np.isfinite(before.upper) & (np.abs(beta) >= _AT_BOUND * before.upper)
    upper = np.where(np.isfinite(box.upper), box.upper, np.abs(beta))
    return _balanced(np.where(at_bound, np.sign(beta) * upper, beta), scores)


def _moved_scores(
    start: Array, beta: Array, scores: Array, ratio: float, rows: KernelRows
) -> Array:
    """K times a start by way of K beta: what was at a bound has grown by the ratio of C."""
    change = start - ratio * beta
    out = ratio * scores
    if np.count_nonzero(change) > np.count_nonzero(start):
        change, out = start, np.zeros(rows.n)
    used = np.flatnonzero(change)
    rows.add_any(out, used, change[used])
    return out


def _balanced(beta: Array, scores: Array) -> Array:
    total = float(beta.sum())
    side = np.flatnonzero(beta * np.sign(total) > 0)
    if not len(side):
        return beta
    order = side[np.argsort(-np.sign(total) * scores[side], kind="stable")]
    size = np.abs(beta[order])
    before = np.cumsum(size) - size
    out = beta.copy()
    out[order] -= np.sign(total) * np.clip(abs(total) - before, 0.0, size)
    return out


def _all_at_bounds(problem: Problem) -> Array | None:
    """All duals at their bounds, as a small C has nearly all of them; None where that is no start.

    What the quadratic term would be is seen from some rows.
    """
    box, gram = problem.dual_set, problem.gram
    if not isinstance(box, Box) or box.signed or not np.isfinite(box.upper).all():
        return None
    assert gram is not None
    beta = _balanced(problem.y * box.upper, np.zeros(problem.n_rows))
    used = np.flatnonzero(beta)
    if not len(used):
        return None
    few = used[np.unique(np.linspace(0, len(used) - 1, min(_PROBES, len(used))).astype(np.intp))]
    block, share = gram.block(few, few), len(used) / len(few)
    own = float(beta[few] ** 2 @ np.diagonal(block))
    square = share**2 * (float(beta[few] @ block @ beta[few]) - own) + share * own
    return beta if float(np.abs(beta).sum()) > 0.5 * square else None


def _certified(problem: Problem, found: _Approached, scores: Array, limits: Limits) -> Solution:
    """Duals with their certificate by float64 scores."""
    a, budget = problem.y * found.beta, Budget(limits.max_iter, limits.deadline)
    bias = problem.best_bias(scores)
    certificate = certify(
        problem, a, bias, a, tol=limits.tol, scores=scores, stopped=budget.stopped
    )
    return Solution(a, certificate, found.n_iter, coef=a, intercept=bias)


def _settled(
    problem: Problem,
    found: _Approached,
    scores: Array,
    rows: KernelRows,
    limits: Limits,
    solve_features: SolveFeatures | None,
    progress: Callable[[Progress], None] | None,
) -> Member:
    """The certified solution; what misses the gap is solved again."""
    solution = _certified(problem, found, scores, limits)
    good = solution.status in (Status.OPTIMAL, Status.NEGLIGIBLE, Status.UNCERTIFIED)
    in_time = Budget(limits.max_iter, limits.deadline).in_time()
    if good or not in_time or found.n_iter >= limits.max_iter:
        return Member(solution, scores)
    again = solve_kernel(
        problem,
        **limits._replace(max_iter=limits.max_iter - found.n_iter)._asdict(),
        rows=rows,
        start=solution.dual,
        progress=progress,
        solve_features=solve_features,
    )
    again = replace(again, n_iter=again.n_iter + found.n_iter)
    assert again.coef is not None
    return Member(again, rows.exact_scores(problem.y * again.coef))
