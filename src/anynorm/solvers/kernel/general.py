"""Kernel problems with a slack norm that has no structure of its own in the block solver.

        minimise_{f, b, xi}   1/2 ||f||^2 + C N(xi)

    norm                        method
    Lp(p), L2                   the barrier of its dual ball, which any p has (`barrier.py`)
    Mahalanobis(M)              the barrier of an ellipsoid (`dual_balls.py`)
    any other (a user's own)    cutting planes from the norm's maximiser (`cutting_planes.py`)

All of them take the whole kernel matrix in float64, and time that grows as n^3: they are meant for
some thousand rows (some hundred for a user's own norm).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.rows import KernelRows
from anynorm.norms import L2, Lp, Mahalanobis, Norm
from anynorm.norms.base import Weighted
from anynorm.problem import Problem
from anynorm.problem.solution import Progress, Solution
from anynorm.solvers.kernel.barrier import Barrier, Centre, follow_centre
from anynorm.solvers.kernel.cutting_planes import cut
from anynorm.solvers.kernel.dual_balls import Ellipsoid, EllipsoidAbove, PowerBall
from anynorm.solvers.kernel.watch import Watch

Array = NDArray[np.float64]

_LOOK_BELOW = 10.0  # times tol: the gap of the central path from which on the true one is computed
_ROUNDING = 1e-13


def solve_general(
    problem: Problem,
    rows: KernelRows,
    *,
    tol: float = 1e-4,
    max_iter: int = 10_000_000,
    deadline: float | None = None,
    start: Array | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Solution:
    """Solve a kernel problem with any norm of the slacks.

    Parameters
    ----------
    problem : Problem
        With a kernel, a free bias and a norm (not the squared one) of the slacks.
    rows : KernelRows
        The kernel; only its `gram` is used.
    tol : float
        The relative duality gap to reach.
    max_iter : int
        Most Newton steps, or rounds of cutting planes.
    deadline : float, optional
        `time.monotonic()` value at which to stop.
    start : ndarray of shape (n,), optional
        Dual variables of a nearby problem: a first plane for the cutting planes.  The barrier
        method gains nothing from them.
    progress : callable, optional
        Called with a `Progress` whenever the gap is computed.

    Returns
    -------
    Solution
        With the certificate; its status says whether `tol` was reached.
    """
    norm = problem.loss.slack
    assert isinstance(norm, Norm)
    if problem.sample_weight is not None:
        norm = norm.weighted(problem.sample_weight)
    watch = Watch(problem, tol, max_iter, deadline, progress)
    kept = np.ones(len(problem.y), dtype=bool)
    if isinstance(norm, Weighted) and norm.weights is not None:
        kept = np.asarray(norm.weights) > 0
    if len(np.unique(problem.y[kept])) < 2:
        return watch.solution()
    if isinstance(norm, L2 | Lp | Mahalanobis):
        return _follow(problem, rows, norm, kept, watch)
    return cut(problem, norm, _signed_kernel(rows, problem.y), watch, start)


def _signed_kernel(rows: KernelRows, y: Array) -> Array:
    K = rows.gram.block(slice(None), slice(None))
    K *= y
    K *= y[:, None]
    return (K + K.T) / 2


def _follow(
    problem: Problem, rows: KernelRows, norm: Norm, kept: NDArray[np.bool_], watch: Watch
) -> Solution:
    """The barrier method on the rows that have weight."""
    y = problem.y[kept]
    if kept.all():
        Q = _signed_kernel(rows, y)
    else:
        index = np.flatnonzero(kept)
        K = rows.gram.block(index, index)
        Q = (K + K.T) / 2 * y * y[:, None]
    barrier = _barrier_of(problem, norm, y, kept)

    def done(centre: Centre) -> bool:
        dual = float(centre.a.sum()) - 0.5 * float(centre.a @ centre.pulled)
        size = max(abs(dual), 1e-10 * watch.zero_primal)
        expected, more = barrier.degree / centre.t, watch.tick()
        if more and expected > _LOOK_BELOW * watch.tol * size:
            return False
        a, scores = np.zeros(len(kept)), np.zeros(len(kept))
        a[kept], scores[kept] = centre.a, y * centre.pulled
        found = watch.look(a, centre.bias, *_values(problem, a, scores, centre.bias))
        return found or not more or expected <= _ROUNDING * size

    follow_centre(Q, y, barrier, watch.zero_primal, done=done)
    return watch.solution()


def _values(problem: Problem, a: Array, scores: Array, bias: float) -> tuple[float, float]:
    """Primal and dual value of an inner point (which is feasible)."""
    square = 0.5 * float((problem.y * a) @ scores)
    return square + problem.loss_at(scores, bias), float(a.sum()) - square


def _barrier_of(problem: Problem, norm: Norm, y: Array, kept: NDArray[np.bool_]) -> Barrier:
    C, signed = problem.C, problem.loss.signed
    if isinstance(norm, L2 | Lp):
        w = np.ones(len(y)) if norm.weights is None else np.asarray(norm.weights)[kept]
        return PowerBall(getattr(norm, "p", 2.0), C * w, w, y, signed)
    assert isinstance(norm, Mahalanobis)
    M = norm.factor @ norm.factor.T
    if signed:
        return Ellipsoid(M, C)
    if norm.monotone:
        w = np.diagonal(M).copy()
        return PowerBall(2.0, C * w, w, y, signed)
    inside = np.where(y > 0, 1.0 / np.count_nonzero(y > 0), 1.0 / np.count_nonzero(y < 0))
    return EllipsoidAbove(M, 0.5 * C * inside / norm.dual_value(inside), C)
