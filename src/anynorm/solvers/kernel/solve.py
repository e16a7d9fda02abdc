"""The kernel problems, each by the method that suits its slack.

    minimise over f, b    1/2 ||f||^2 + C N(slack)

The order in which methods are tried stands in `METHODS`; a method that misses the gap hands over
to the next one that can handle the dual set, and the best point is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from anynorm.design.limits import MEGABYTE
from anynorm.kernels.rows import KernelRows
from anynorm.norms.dual_sets import AnyBall, BallBox, Box, BudgetBox, DualSet, Ellipsoid, PowerBall
from anynorm.problem import Problem
from anynorm.problem.solution import Progress, Solution, Status
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.hard_margin import improved
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.methods import Method, methods_for
from anynorm.solvers.kernel.ball_duals import solve_ball
from anynorm.solvers.kernel.box_duals import few_rows_decide, solve_box, solve_screened
from anynorm.solvers.kernel.features import MANY_ROWS, MOST_FEATURES, has_own_features
from anynorm.solvers.kernel.least_squares import solve_squares
from anynorm.solvers.kernel.search import KernelSearch, SolveFeatures
from anynorm.solvers.kernel.whole_matrix import (
    has_barrier,
    has_two_classes,
    solve_by_planes,
    solve_in_barrier,
)

Array = NDArray[np.float64]

_MOST_ITERATIONS = 10_000  # for how long features are tried
_MANY_IN_BALL = 400  # rows from which block SMO in a ball is always slower than few features are
_ROWS_PER_FEATURE = 10  # few features
# Steps of pairs that take as long as the interior-point method over the features.
_FIRST_STEPS, _STEPS_PER_ROW, _SQUARES_PER_STEP = 4000, 8, 1000
_SHARE = 0.1  # of tol: the gap over the features, whose primal point is better than the duals'
_WHOLE_ROWS = 500  # rows up to which a ball that block SMO misses is worth n^3


def solve_kernel(
    problem: Problem,
    *,
    tol: float = 1e-4,
    max_iter: int = 100_000_000,
    deadline: float | None = None,
    rows: KernelRows | None = None,
    cache_size: float = 500.0,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
    solve_features: SolveFeatures | None = None,
    methods: Sequence[Method] | None = None,
) -> Solution:
    """Solve one binary kernel problem to a relative duality gap of at most `tol`.

    Parameters
    ----------
    problem : Problem
        With a gram and a free bias.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        Most iterations of the method (steps of pairs, for block SMO).
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    rows : KernelRows, optional
        The kernel's rows, where several problems share them.
    cache_size : float
        The megabytes for rows where none are given.
    start : ndarray of shape (n,), optional
        Dual variables of a nearby problem.
    progress : callable, optional
        Called with a `Progress` at every gap that is computed.
    solve_features : callable, optional
        A solver of problems over features, such as `solve_linear`; linear kernels of few features,
        and kernels of low rank with a large C, are then solved by it.
    methods : sequence of Method, optional
        What is tried, in this order; `METHODS` by default.

    Returns
    -------
    Solution
        The duals, also as `coef` (but where a factor of the kernel has better ones), the intercept
        and the certificate, whose status says whether `tol` was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.kernel import solve_kernel
    >>> X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), gram=Gram.linear(X))
    >>> solution = solve_kernel(problem)
    >>> solution.dual, solution.intercept, solution.status.value
    (array([0.5, 0.5]), 0.0, 'optimal')
    """
    if problem.gram is None or not problem.free_bias:
        raise ValueError("a kernel problem needs a gram and a free intercept")
    if rows is None:
        rows = KernelRows(problem.gram, int(cache_size * MEGABYTE))
    budget = Budget(max_iter, deadline)

    def solve(part: Problem, start: Array | None = None) -> Solution:
        best = Incumbent(part, tol, budget, progress)
        search = KernelSearch(part, rows, best, start, solve_features)
        _try(methods_for("a kernel", METHODS if methods is None else methods, part), search)
        return search.solution()

    return improved(solve(problem, start), problem, tol=tol, budget=budget, solve=solve)


def _try(methods: Sequence[Method], search: KernelSearch) -> None:
    """Methods in turn, until the gap is reached or nothing more may be done."""
    best, problem = search.best, search.problem
    for method in methods:
        if method.suits(search):
            with suppress(OutOfTime), best.budget.watched():
                method.solve(search)
        if best.primal_point is not None and (best.settled or not best.budget.goes_on()):
            break
    # Never worse than no model at all, whatever rounding did.
    if best.primal_point is None or (best.certain and best.primal > problem.zero_primal()):
        nothing = np.zeros(problem.n_rows)
        search.offer(nothing, problem.best_bias(nothing), nothing)


def _has_few_features(search: KernelSearch) -> bool:
    """Whether features stand for the kernel, fewer than the rows."""
    return not search.tried_features and search.features is not None


def _block_smo_would_crawl(search: KernelSearch) -> bool:
    gram = search.problem.gram
    assert gram is not None
    many = search.problem.n_rows >= MANY_ROWS
    return many and search.start is None and has_own_features(gram) and _has_few_features(search)


def _far_fewer_features(search: KernelSearch) -> bool:
    """Whether there are far fewer features than rows, and nothing to start from."""
    if not _block_smo_would_crawl(search):
        return False
    assert search.features is not None
    n, p = search.problem.n_rows, search.features.width
    return p <= min(MOST_FEATURES, n // _ROWS_PER_FEATURE)


def _has_low_rank(search: KernelSearch) -> bool:
    """Whether the kernel has a factor of few columns, which is looked for where C is large."""
    features = search.features
    return features is not None and features.landmarks is not None and not search.tried_features


def _features_are_faster(search: KernelSearch) -> bool:
    many = MANY_ROWS if isinstance(search.problem.dual_set, PowerBall) else _MANY_IN_BALL
    return search.problem.n_rows >= many and _far_fewer_features(search)


def _after_some_steps(search: KernelSearch) -> None:
    """Block SMO for about as long as the features take, as easy problems need less; then these."""
    assert search.features is not None
    n, p = search.problem.n_rows, search.features.width
    steps = _FIRST_STEPS + int(n * (_STEPS_PER_ROW + p**2 / _SQUARES_PER_STEP))
    if _is_bounded(search):
        solve_box(search, most=steps)
    if not search.best.settled and search.budget.goes_on():
        _over_features(search)


def _over_features(search: KernelSearch) -> None:
    """Solve a problem over the features that stand for its kernel; its duals are what is wanted.

    The gap is that of the kernel's problem at these duals.
    """
    problem, budget, features = search.problem, search.budget, search.features
    search.tried_features = True
    assert features is not None
    assert search.solve_features is not None
    found = search.solve_features(
        Problem(
            y=problem.y,
            C=problem.C,
            loss=problem.loss,
            X=features.X,
            sample_weight=problem.sample_weight,
        ),
        tol=_SHARE * search.tol,
        max_iter=min(budget.left, _MOST_ITERATIONS),
        deadline=budget.deadline,
        progress=search.best.progress,
    )
    budget.book(found.n_iter)
    scores = problem.scores(found.dual)
    search.offer(found.dual, problem.best_bias(scores), scores)
    coef = features.kernel_coef(found, problem.y)
    if coef is not None and search.best.certificate().status is not Status.OPTIMAL:
        search.offer_coef(coef, found.dual)
    search.start = problem.y * found.dual


def _is_linear_system(search: KernelSearch) -> bool:
    return is_linear_system(search.problem.dual_set)


def is_linear_system(box: DualSet) -> bool:
    """Whether nothing bounds the duals."""
    if not isinstance(box, Box) or not box.shift.any():
        return False
    return box.signed and bool(np.isinf(box.lower[box.shift > 0]).all())


def _is_bounded(search: KernelSearch) -> bool:
    return not _is_linear_system(search)


def _worth_the_whole_matrix(search: KernelSearch) -> bool:
    """Whether a ball that block SMO has missed is small, or nothing else is there for the norm."""
    known = isinstance(search.problem.dual_set, BallBox)
    n, gram = search.problem.n_rows, search.rows.gram
    # A step and the certificate at the least: without them there is nothing to show for the time.
    least = 2.0 * gram.cost(n, n) + n**3 / 3
    small = has_two_classes(search) and (not known or n <= _WHOLE_ROWS)
    return small and search.budget.leaves(least)


METHODS = (
    Method("solving over the features", _over_features, (Box,), suits=_block_smo_would_crawl),
    Method(
        "some block SMO, then the features",
        _after_some_steps,
        (BudgetBox,),
        suits=_far_fewer_features,
    ),
    Method(
        "far fewer features than rows",
        _over_features,
        (BallBox, PowerBall),
        suits=_features_are_faster,
    ),
    Method(
        "some block SMO, then a factor of the kernel",
        _after_some_steps,
        (Box, BudgetBox),
        suits=_has_low_rank,
    ),
    Method("a factor of the kernel", _over_features, (BallBox, PowerBall), suits=_has_low_rank),
    Method("one linear system", solve_squares, (Box,), suits=_is_linear_system),
    Method("block SMO on some rows at a time", solve_screened, (Box,), suits=few_rows_decide),
    Method("block SMO", solve_box, (Box, BudgetBox), suits=_is_bounded),
    Method("block SMO in a ball", solve_ball, (BallBox,)),
    Method(
        "a last try over the features",
        _over_features,
        (Box, BudgetBox, BallBox, PowerBall),
        suits=_has_few_features,
    ),
    Method(
        "the barrier method",
        solve_in_barrier,
        (BallBox, PowerBall, Ellipsoid),
        suits=lambda search: has_barrier(search) and _worth_the_whole_matrix(search),
    ),
    Method("cutting planes", solve_by_planes, (BallBox, AnyBall), suits=_worth_the_whole_matrix),
)
"""What is tried, in this order, until the gap is reached."""
