"""Conjugate gradients for the least squares SVM, on the plane where the bias's condition holds.

With S = diag(s), s_i = sqrt(2 C w_i), and beta = S x the system of `least_squares` is the minimum
of

    1/2 x'Ax - t'x   on  s'x = 0,        A = I + S K S,    t = s * y.

An inverse M of A, exact or not, is projected onto that plane along M s, so that no step leaves it.
With the residual r = t - Ax (S K beta = t - x - r), z = t - S K beta and its mean b = s'z / s's,

    primal  1/2 x'S K beta + 1/2 ||z - b s||^2,      dual  (t'x)^2 / (2 x'Ax)

come for nothing with each step (the dual at its best scale).  Where steps end, the gap is taken
again from products with the kernel in float64; if it then misses the tolerance, they go on from
there.  Several right-hand sides are columns, and share each product.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.device_gram import DeviceMatrix
from anynorm.kernels.half_matrix import WIDTH, HalfMatrix, matrix_of
from anynorm.kernels.rows import KernelRows
from anynorm.problem import Problem
from anynorm.problem.certificate import Values
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.kernel.inverses import ExactInverse, Inverse

Array = NDArray[np.float64]

_FIRST_LOOK = 8  # steps after which the number still needed is estimated
_MARGIN = 0.8  # of tol: where the steps end, so that rounding does not ask for more
_WORTH_IT = 0.5  # a restart from exact residuals has to bring the gap down by this
_GUIDED = 40  # steps with a factor of nearly the right matrix; if they need more, it is no guide
_HARMLESS = 1e-2  # of the root of tol: scores may change by this where beta is rounded
_LAST_DIGITS = 1e-13  # the gap that exact inverses are to reach where they can


class System:
    """The matrix A of problems that share kernel, C and weights, and their right-hand sides.

    Attributes
    ----------
    kept_rows, absent : ndarray of indices
        The rows of positive weight, which A is about, and the others.
    scale : ndarray of shape (n,)
        s.
    Y, T : ndarray of shape (n, number of problems)
        Labels, and ``s * y``.
    diagonal : ndarray of shape (n,)
        The kernel's diagonal.
    max_bytes : float
        The memory for entries of the kernel.
    """

    def __init__(self, problems: Sequence[Problem], rows: KernelRows, budget: Budget) -> None:
        self.problems, self.gram, self.budget = problems, rows.gram, budget
        self.max_bytes = 4.0 * rows.capacity * (rows.n + WIDTH)
        first = problems[0]
        w = first.row_weights()
        self.kept_rows, self.absent = np.flatnonzero(w > 0), np.flatnonzero(w <= 0)
        self.n = len(self.kept_rows)
        self.scale = np.sqrt(2.0 * first.C * w[self.kept_rows])
        self.Y = np.column_stack([problem.y[self.kept_rows] for problem in problems])
        self.T = self.scale[:, None] * self.Y
        self.diagonal = self.gram.diagonal()[self.kept_rows]

    def tick(self) -> None:
        """Raise `OutOfTime` once the deadline has passed."""
        if not self.budget.in_time():
            raise OutOfTime

    def half(self, max_bytes: float) -> HalfMatrix:
        """The kernel's lower half in memory, stored within a limit of bytes."""
        return HalfMatrix(self.gram, self._places, max_bytes, self.tick)

    def matrix(self, max_bytes: float) -> HalfMatrix | DeviceMatrix:
        """The kernel for products with it: its lower half, or what a device makes of it."""
        return matrix_of(self.gram, self._places, max_bytes, self.tick)

    @property
    def _places(self) -> NDArray[np.intp] | None:
        return self.kept_rows if len(self.absent) else None

    def times(self, half: HalfMatrix | DeviceMatrix, P: Array) -> Array:
        """Return A P."""
        s = self.scale[:, None]
        return P + s * half.product(s * P)

    def projected(self, inverse: Inverse) -> Callable[[Array], Array]:
        """The inverse followed by the way back to the plane."""
        u = inverse.apply(self.scale[:, None])
        across = float(self.scale @ u[:, 0])

        def apply(R: Array) -> Array:
            Z = inverse.apply(R)
            return Z - u * ((self.scale @ Z) / across) if across != 0 else Z

        return apply

    def values(self, X: Array, R: Array, T: Array) -> tuple[Array, Array, Array]:
        """Primal and dual values and relative gaps of the columns of X."""
        s = self.scale[:, None]
        image = T - X - R
        Z = T - image
        Z -= s * ((self.scale @ Z) / float(self.scale @ self.scale))
        primal = 0.5 * (_dots(X, image) + _dots(Z, Z))
        gain, curvature = _dots(X, T), _dots(X, image) + _dots(X, X)
        bent = curvature > 0
        dual = np.where(bent, 0.5 * gain**2 / np.where(bent, curvature, 1.0), 0.0)
        size = np.maximum(np.maximum(np.abs(primal), dual), 0.5e-10 * _dots(T, T))
        return primal, dual, (primal - dual) / np.where(size > 0, size, 1.0)


class Run:
    """The state of a solution: the best points so far and their exact scores.

    Attributes
    ----------
    X, R : ndarray of shape (n, number of problems)
        The point where iterations go on, and ``T - A X`` from the float64 kernel.
    beta, scores, gaps : ndarray
        The best points with sum(beta) = 0 to the last bit, K beta, and their gaps.
    """

    def __init__(
        self,
        system: System,
        bests: Sequence[Incumbent],
        starts: Sequence[Array | None] | None,
    ) -> None:
        self.system, self.bests, self.tol = system, bests, bests[0].tol
        self.budget, self._starts = system.budget, starts
        self.scales = [problem.zero_primal() for problem in system.problems]
        self.X, self.R = np.zeros_like(system.T), system.T.copy()
        self.beta, self.scores = np.zeros_like(system.T), np.zeros_like(system.T)
        self.gaps = np.full(len(system.problems), np.inf)
        self.indefinite = False

    def begin(self) -> None:
        """Go to the duals of a nearby problem, where they are given."""
        if self._starts is None:
            return
        given = [a for a in self._starts if a is not None]
        if len(given) == len(self.system.problems):
            beta = [p.y * a for p, a in zip(self.system.problems, given, strict=True)]
            self.X = np.column_stack(beta)[self.system.kept_rows] / self.system.scale[:, None]
            self.measure(None)

    def measure(self, half: HalfMatrix | DeviceMatrix | None) -> float:
        """Take the point's gaps from the kernel in float64; returns the largest."""
        system = self.system
        s = system.scale[:, None]
        allowed = _HARMLESS * math.sqrt(self.tol) / max(float(system.diagonal.max()), 1e-300)
        beta = np.column_stack([balanced(column, allowed) for column in (s * self.X).T])
        half = half if half is not None and half.complete else system.matrix(0.0)
        scores = half.product(beta)
        self.X = beta / s
        self.R = system.T - self.X - s * scores
        primal, dual, gaps = system.values(self.X, self.R, system.T)
        better = ~(np.abs(gaps) >= np.abs(self.gaps))
        self.gaps = np.where(better, gaps, self.gaps)
        self.beta, self.scores = (
            np.where(better, beta, self.beta),
            np.where(better, scores, self.scores),
        )
        self._report(np.arange(len(gaps)), primal, dual)
        return float(np.abs(gaps).max())

    def refine(self, inverse: ExactInverse, half: HalfMatrix | None) -> bool:
        """Steps of an inverse that is exact but for rounding; returns whether to stop here.

        `half` is the kernel in memory, where it is there.
        """
        project = self.system.projected(inverse)
        before, enough = math.inf, min(self.tol, _LAST_DIGITS)
        for _ in range(4):  # at the most: each has to halve the gap
            self.X = self.X + project(self.R)
            self.budget.book(1)
            largest = self.measure(half)
            if largest <= enough or not largest <= _WORTH_IT * before:
                break
            if not self.budget.left:
                break
            before = largest
        if np.abs(self.gaps).max() <= self.tol or not self.budget.left:
            return True
        if inverse.indefinite:
            return False
        return self.descend(inverse, half or self.system.matrix(0.0), _GUIDED)

    def descend(self, inverse: Inverse, half: HalfMatrix | DeviceMatrix, patience: float) -> bool:
        """Conjugate gradients, begun anew from exact residuals until tol is reached.

        `patience` is the number of steps beyond which something else is better.  Returns whether
        it is of no use to try that.
        """
        project = self.system.projected(inverse)
        before = math.inf
        while True:
            patient = self._steps(project, half, patience)
            largest = self.measure(half)
            if largest <= self.tol or not self.budget.left:
                return True
            if not patient or not largest <= _WORTH_IT * before:
                return False
            before = largest

    def _steps(
        self,
        project: Callable[[Array], Array],
        half: HalfMatrix | DeviceMatrix,
        patience: float,
    ) -> bool:
        """Steps until the gaps, as these steps know them, are small; returns whether they are."""
        system, target = self.system, _MARGIN * self.tol
        active = np.arange(self.X.shape[1])
        Z = project(self.R)
        P, slope = Z, _dots(self.R, Z)
        first, taken = 0.0, 0
        while len(active) and self.budget.left:
            Q = system.times(half, P)
            curvature = _dots(P, Q)
            if not np.all(curvature > 0):
                self.indefinite |= system.gram.psd is None and bool(
                    np.any(curvature < -1e-9 * _dots(Q, Q) ** 0.5 * _dots(P, P) ** 0.5)
                )
                return False
            step = slope / curvature
            self.X[:, active] += step * P
            self.R[:, active] -= step * Q
            self.budget.book(1)
            taken += 1
            X, R = self.X[:, active], self.R[:, active]
            primal, dual, gaps = system.values(X, R, system.T[:, active])
            self._report(active, primal, dual)
            largest = float(gaps.max())
            first = first or largest
            if taken >= _FIRST_LOOK and _steps_in_all(first, largest, target, taken) > patience:
                return False
            going = gaps > target
            if not going.any():
                break
            active, R, P, slope = active[going], R[:, going], P[:, going], slope[going]
            Z = project(R)
            fresh = _dots(R, Z)
            P, slope = Z + P * (fresh / slope), fresh
        return True

    def _report(self, columns: NDArray[np.intp], primal: Array, dual: Array) -> None:
        for j, column in enumerate(columns):
            values = Values(float(primal[j]), float(dual[j]), self.scales[column])
            self.bests[column].report(values)


def balanced(beta: Array, largest_change: float = math.inf) -> Array:
    """beta, changed in the last digits so that it sums to zero exactly, in any order.

    All entries become multiples of one power of two, small enough for beta and large enough for
    every partial sum to be a float64.  A certificate then has nothing to repair, which would cost
    a product with the kernel.  Where that would change the 2-norm of beta by more than is allowed,
    it stays as it is.
    """
    total, n = float(np.abs(beta).sum()), len(beta)
    if not 1e-280 < total < 1e280:
        return beta if total > 0 else np.zeros_like(beta)
    quantum = math.ldexp(1.0, math.frexp(total)[1] - 51)
    if quantum * math.sqrt(n) > largest_change:
        return beta
    counts = np.rint(beta / quantum)
    counts -= np.trunc(counts.sum() / n)
    excess = float(counts.sum())
    counts[np.argsort(-np.abs(counts), kind="stable")[: int(abs(excess))]] -= math.copysign(
        1, excess
    )
    return counts * quantum


def _steps_in_all(first: float, now: float, target: float, taken: int) -> float:
    """How many steps bring the gap to `target` at the pace so far."""
    if now <= target:
        return taken
    if now >= first:
        return math.inf
    return taken * math.log(target / first) / math.log(now / first)


def _dots(A: Array, B: Array) -> Array:
    """The inner products of the columns."""
    return np.einsum("ij,ij->j", A, B)
