"""The least squares SVM: squared slacks with equality constraints, a linear system.

    minimise over f, b    1/2 ||f||^2 + C sum w_i xi_i^2,     y_i (f(x_i) + b) = 1 - xi_i

has f = K beta with

    [ K + diag(d)   1 ] [beta]   [y]
    [     1'        0 ] [ b  ] = [0],      d_i = 1 / (2 C w_i)

(Suykens, Vandewalle 1999; their gamma is 2C).  A Cholesky factor of H = K + diag(d) solves it for
few rows, conjugate gradients with a low-rank preconditioner for many (`conjugate_gradients`).

All classes against their rests share the matrix: they are columns of one right-hand side.

Leaving row i out changes its score to (Cawley, Talbot 2004)

    y_i - beta_i / (M^-1)_ii,       (M^-1)_ii = (H^-1)_ii - u_i^2 / sum(u),   H u = 1,

M being the matrix above.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError

from anynorm.kernels.half_matrix import Factor, HalfMatrix, fits_in_full
from anynorm.kernels.rows import KernelRows
from anynorm.problem import Problem
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.kernel.conjugate_gradients import Run, System
from anynorm.solvers.kernel.inverses import (
    DenseInverse,
    ExactInverse,
    FactorInverse,
    LowRankInverse,
    SpectralInverse,
)
from anynorm.solvers.kernel.search import KernelSearch

Array = NDArray[np.float64]
Method = Literal["auto", "cholesky", "cg"]

_SMALL = 1500  # rows up to which a factor is made at once
_SPECTRAL = 2000  # rows up to which eigenvectors are affordable where a factor fails
_RANK = 5.0  # the preconditioner's rank is this times the root of n
_COST = 1 / 80  # a factor costs about n times this many steps of conjugate gradients


class LeastSquaresFit(NamedTuple):
    """Solutions of problems that share kernel, C and weights, and their left-out scores."""

    solutions: list[Solution]
    left_out: Array | None
    """(n, number of problems): decision values of each row by the fit without it."""


def solve_squares(search: KernelSearch) -> None:
    """Solve one problem; see `fit_least_squares`."""
    problem = search.problem
    start = None if search.start is None else problem.y * search.start
    run = Run(System([problem], search.rows, search.budget), [search.best], [start])
    _solve(run, "auto", leave_out=False)
    _offer(run)


def leave_one_out(problem: Problem, rows: KernelRows, *, deadline: float | None = None) -> Array:
    """Return each row's decision value by the fit without that row, exactly, by one factor.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.kernel.least_squares import leave_one_out
    >>> from anynorm.kernels.rows import KernelRows
    >>> gram = Gram.linear(np.array([[0.0], [1.0], [2.0]]))
    >>> problem = Problem(
    ...     y=np.array([-1.0, 1.0, 1.0]), C=1e6, loss=get_loss("squared"), gram=gram
    ... )
    >>> leave_one_out(problem, KernelRows(gram, 1 << 20)).round(3)
    array([1., 0., 3.])
    """
    fit = fit_least_squares([problem], rows, deadline=deadline, leave_out=True)
    assert fit.left_out is not None
    return fit.left_out[:, 0]


def fit_least_squares(
    problems: Sequence[Problem],
    rows: KernelRows,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000,
    deadline: float | None = None,
    starts: Sequence[Array | None] | None = None,
    progress: Callable[[int, Progress], None] | None = None,
    method: Method = "auto",
    leave_out: bool = False,
) -> LeastSquaresFit:
    """Solve problems that differ in y alone, with one matrix.

    Parameters
    ----------
    problems : sequence of Problem
        Squared slack, equality constraints, a free bias; the same kernel, C and weights.
    rows : KernelRows
        The kernel and the memory for its entries.
    tol, max_iter, deadline, starts, progress
        As for every solver, the last two with one entry or call per problem.
    method : {"auto", "cholesky", "cg"}
        "cholesky" needs memory for half of the matrix in float64, whatever the limit.  "auto" takes
        a factor for up to 1500 rows; for more it starts conjugate gradients, and a factor where
        these would take longer and it fits.
    leave_out : bool
        Whether to compute leave-one-out scores too; always by a factor.
    """
    if leave_out and method == "cg":
        raise ValueError(
            "leave-one-out scores come from a factor of the whole matrix, which the method 'cg' "
            "does not make; use 'cholesky' or 'auto'"
        )
    budget = Budget(max_iter, deadline)
    bests = [
        Incumbent(problem, tol, budget, None if progress is None else partial(progress, k))
        for k, problem in enumerate(problems)
    ]
    run = Run(System(problems, rows, budget), bests, starts)
    exact = _solve(run, method, leave_out)
    _offer(run)
    solutions = []
    for best in bests:
        a, bias = best.primal_point
        solutions.append(Solution(a, best.certificate(), budget.n_iter, coef=a, intercept=bias))
    return LeastSquaresFit(solutions, _left_out(run, exact) if leave_out else None)


def _solve(run: Run, method: Method, leave_out: bool) -> ExactInverse | None:
    """Bring the run to its tolerance; returns the exact inverse where one was made."""
    system = run.system
    half, exact = None, None
    try:
        run.begin()
        if not (leave_out or method == "cholesky" or (method == "auto" and system.n <= _SMALL)):
            inverse = _low_rank(system)
            fits = fits_in_full(system.n, system.max_bytes)
            optional = method == "auto" and fits
            patience = _COST * system.n if optional else math.inf
            if inverse.steps(run.tol) <= patience:
                matrix = system.matrix(system.max_bytes - (0 if fits else inverse.n_bytes))
                if run.descend(inverse, matrix, patience) or not optional:
                    return None
                half = matrix if isinstance(matrix, HalfMatrix) else None
        spare = system.half(math.inf) if system.n <= _SMALL else None
        for exact in _exact_inverses(system, half, spare):
            run.indefinite |= exact.indefinite
            if run.refine(exact, spare) or leave_out:
                break
    except OutOfTime:
        return None
    return exact


def _low_rank(system: System) -> LowRankInverse:
    rank = min(math.ceil(_RANK * math.sqrt(system.n)), system.n // 4 + 1)
    return LowRankInverse(system.matrix(0.0), system.scale, system.diagonal, rank)


def _exact_inverses(
    system: System, half: HalfMatrix | None, spare: HalfMatrix | None
) -> Iterator[ExactInverse]:
    """A factor; where that fails, or does not lead to the tolerance, what else can be tried.

    The factor takes the place of `half`, unless there is a `spare` matrix to be left as it is.
    """
    scale = system.scale
    few = system.n <= _SPECTRAL
    rounding = 10 * system.n * np.finfo(float).eps * float(system.diagonal.max(initial=0.0))
    for extra in (0.0,) if few else (0.0, rounding):
        half = half or spare or system.half(math.inf)
        try:
            factor = Factor(half, 1.0 / scale**2 + extra, system.tick, keep=half is spare)
        except LinAlgError:
            half = None
            continue
        yield FactorInverse(factor, scale)
        break
    else:
        if not few:
            yield DenseInverse(system.half(0.0), scale)
    if few:
        yield SpectralInverse(system.half(0.0), scale, system.gram.psd)


def _left_out(run: Run, exact: ExactInverse | None) -> Array:
    """Decision values of each row by the fit without it; NaN where there was no time."""
    system = run.system
    out = np.full((system.problems[0].n_rows, len(system.problems)), np.nan)
    if exact is None:
        return out
    u = system.scale * exact.apply(system.scale[:, None])[:, 0]
    try:
        own = exact.diagonal() - u**2 / u.sum()
    except OutOfTime:
        return out
    beta = system.scale[:, None] * (run.X + system.projected(exact)(run.R))
    with np.errstate(divide="ignore", invalid="ignore"):
        out[system.kept_rows] = system.Y - beta / own[:, None]
    absent = system.absent
    if len(absent):  # rows of no weight are left out of every fit
        for k, best in enumerate(run.bests):
            a, bias = best.primal_point
            out[absent, k] = system.gram.matvec(system.problems[k].y * a, absent) + bias
    return out


def _offer(run: Run) -> None:
    """Certify the best points of the run."""
    system = run.system
    for k, problem in enumerate(system.problems):
        beta, scores = np.zeros(problem.n_rows), np.zeros(problem.n_rows)
        beta[system.kept_rows], scores[system.kept_rows] = run.beta[:, k], run.scores[:, k]
        if len(system.absent) and beta.any():
            scores[system.absent] = system.gram.matvec(beta, system.absent)
        a, bias = problem.y * beta, problem.best_bias(scores)
        values = problem.values(a, bias, a, scores=scores)
        certain = values.certain and not run.indefinite
        run.bests[k].replace(values._replace(certain=certain), (a, bias))
