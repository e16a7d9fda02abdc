"""Primal-dual interior-point method for the quadratic programmes of the cutting-plane method.

        minimise   1/2 a'Qa - sum(a) + 1/2 (e - c)'W (e - c),     Q = (y y') * K,   y'a = 0,
        subject to V e <= C,     |e_i| <= u_i,     and one of

    link        further constraints
    "tied"      e = a
    "positive"  e = a >= 0
    "above"     e >= a >= 0
    "around"    e >= |a|

The multipliers of all inequalities and their distances are kept positive and their products are
driven to 0 by predictor and corrector steps (Mehrotra 1992).  The bias is the multiplier of
y'a = 0; the slacks are the multipliers' combination of the planes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from anynorm.solvers.kernel.barrier import factor, refined_solve

Array = NDArray[np.float64]
Link = Literal["tied", "positive", "above", "around"]

_TO_BOUNDARY = 0.99  # of the way to the nearest constraint

_SIGNS: dict[str, tuple[tuple[float, float, float], ...]] = {
    "tied": ((1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)),
    "positive": ((1.0, 0.0, 0.0), (-1.0, 0.0, 1.0)),
    "above": ((1.0, 0.0, 0.0), (-1.0, 1.0, 0.0), (0.0, -1.0, 1.0)),
    "around": ((-1.0, 1.0, 0.0), (1.0, 1.0, 0.0), (0.0, -1.0, 1.0)),
}
"""The constraints i a + j e + k u >= 0 of each link, as (i, j, k)."""


class Planes(NamedTuple):
    """What bounds e: planes V e <= C, a box, and the curvature W around a point."""

    normals: Array
    C: float
    upper: Array
    curvature: Array
    around: Array


class Answer(NamedTuple):
    """The minimiser, the bias, the multipliers of the planes and the slacks."""

    a: Array
    e: Array
    bias: float
    weights: Array
    slacks: Array


def solve_between_planes(
    Q: Array, y: Array, planes: Planes, link: Link, start: tuple[Array, Array], tol: float
) -> Answer:
    """Minimise until the sum of all products is at most `tol`, or rounding ends it.

    `start` is a point (a, e) strictly within all constraints.
    """
    iterate = _Iterate(Q, y, planes, link, *start)
    for _ in range(60):  # at the most: steps that are too short end it before
        if iterate.total() <= tol or not iterate.step():
            break
    return iterate.answer()


class _Direction(NamedTuple):
    a: Array
    e: Array
    bias: float
    multipliers: list[Array]


class _Iterate:
    """All variables; `gaps` are the distances to the constraints, in the order of `duals`."""

    def __init__(self, Q: Array, y: Array, planes: Planes, link: Link, a: Array, e: Array):
        # y'a = 0 holds to more digits if y is a stiff direction of Q itself.
        stiff = float(np.diagonal(Q).mean()) or 1.0
        self.Q, self.y, self.planes = Q + np.outer(stiff * y, y), y, planes
        self.signs, self.linked = _SIGNS[link], link in ("above", "around")
        self.a, self.e, self.bias = a, e if self.linked else a, 0.0
        size = float(np.abs(self.e).mean()) or float(planes.upper.min())
        self.duals = [0.5 * size / gap for gap in self._distances(self.a, self.e)]
        self._measure()

    def _distances(self, a: Array, e: Array) -> list[Array]:
        linear = [i * a + j * e + k * self.planes.upper for i, j, k in self.signs]
        return [*linear, self.planes.C - self.planes.normals @ e]

    def _measure(self) -> None:
        self.gaps = self._distances(self.a, self.e)
        self.count = sum(len(gap) for gap in self.gaps)
        self.miss_a = self.Q @ self.a - 1.0 + self.y * self.bias
        self.miss_e = self.planes.curvature @ (self.e - self.planes.around)
        self.miss_e += self.duals[-1] @ self.planes.normals
        for (i, j, _), dual in zip(self.signs, self.duals, strict=False):
            self.miss_a, self.miss_e = self.miss_a - i * dual, self.miss_e - j * dual
        products = [float(g @ d) for g, d in zip(self.gaps, self.duals, strict=True)]
        self.mu = sum(products) / self.count

    def total(self) -> float:
        """The products, and the equations' errors in the same units."""
        miss = self.miss_a + self.miss_e if not self.linked else self.miss_a
        errors = float(np.abs(miss) @ np.abs(self.a))
        if self.linked:
            errors += float(np.abs(self.miss_e) @ np.abs(self.e))
        return self.count * self.mu + errors

    def answer(self) -> Answer:
        """The iterate for others."""
        slacks = self.duals[1] if self.linked else self.duals[-1] @ self.planes.normals
        return Answer(self.a, self.e, self.bias, self.duals[-1], slacks)

    def step(self) -> bool:
        """Predictor, then corrector; False where no step can be made."""
        system = self._system()
        if system is None:
            return False
        plain = self._direction(system, 0.0, None)
        size = self._longest(plain, 1.0)
        reached = sum(
            float((g + size * self._gap_change(k, plain)) @ (d + size * plain.multipliers[k]))
            for k, (g, d) in enumerate(zip(self.gaps, self.duals, strict=True))
        )
        centring = min(1.0, max(reached / self.count / self.mu, 0.0)) ** 3
        move = self._direction(system, centring * self.mu, plain)
        size = min(1.0, _TO_BOUNDARY * self._longest(move, 1e300))
        if not size > 1e-8:  # rounding has spoiled the direction
            return False
        before = self.a, self.e, self.bias, self.duals
        self.a = self.a + size * move.a
        self.e = self.e + size * move.e if self.linked else self.a
        self.bias += size * move.bias
        self.duals = [d + size * c for d, c in zip(self.duals, move.multipliers, strict=True)]
        self._measure()
        if np.isfinite(self.mu) and all(np.all(gap > 0) for gap in self.gaps):
            return True
        self.a, self.e, self.bias, self.duals = before  # rounding has the last word
        self._measure()
        return False

    def _gap_change(self, k: int, move: _Direction) -> Array:
        if k == len(self.signs):
            return -self.planes.normals @ move.e
        i, j, _ = self.signs[k]
        return i * move.a + j * move.e

    def _longest(self, move: _Direction, most: float) -> float:
        """The longest step that keeps distances and multipliers positive."""
        longest = most
        pairs = list(zip(self.duals, move.multipliers, strict=True))
        pairs += [(gap, self._gap_change(k, move)) for k, gap in enumerate(self.gaps)]
        for value, change in pairs:
            falling = change < 0
            if falling.any():
                longest = min(longest, float((-value[falling] / change[falling]).min()))
        return longest

    def _system(self) -> _PlaneSystem | None:
        ratios = [d / g for d, g in zip(self.duals, self.gaps, strict=True)]
        corner, cross, below = (np.zeros(len(self.y)) for _ in range(3))
        for (i, j, _), ratio in zip(self.signs, ratios, strict=False):
            corner, cross = corner + i * i * ratio, cross + i * j * ratio
            below = below + j * j * ratio
        normals = self.planes.normals
        inner = (normals.T * ratios[-1]) @ normals + self.planes.curvature
        inner[np.diag_indices_from(inner)] += below
        try:
            return _PlaneSystem(self.Q, self.y, corner, cross, inner, self.linked)
        except np.linalg.LinAlgError:
            return None

    def _direction(
        self, system: _PlaneSystem, target: float, plain: _Direction | None
    ) -> _Direction:
        """The Newton direction towards products of `target`, second order where predicted."""
        aims = []
        for k, (gap, dual) in enumerate(zip(self.gaps, self.duals, strict=True)):
            aim = target - gap * dual
            if plain is not None:
                aim = aim - self._gap_change(k, plain) * plain.multipliers[k]
            aims.append(aim / gap)
        right_a, right_e = -self.miss_a, -self.miss_e
        for (i, j, _), aim in zip(self.signs, aims, strict=False):
            right_a, right_e = right_a + i * aim, right_e + j * aim
        right_e = right_e - aims[-1] @ self.planes.normals
        move = _Direction(*system.solve(right_a, right_e, -float(self.y @ self.a)), [])
        for k, (gap, dual) in enumerate(zip(self.gaps, self.duals, strict=True)):
            move.multipliers.append(aims[k] - dual / gap * self._gap_change(k, move))
        return move


class _PlaneSystem:
    """The Newton system of (a, e, bias), factorised after e is eliminated."""

    def __init__(self, Q: Array, y: Array, corner: Array, cross: Array, inner: Array, linked: bool):
        self.y, self.cross, self.linked = y, cross, linked
        if linked:
            self.inner = inner
            self.inner_root = _factor(inner)
            half = scipy.linalg.solve_triangular(
                self.inner_root, np.diag(cross), lower=True, check_finite=False
            )
            self.matrix = Q - half.T @ half
        else:
            self.matrix = Q + inner
        self.matrix[np.diag_indices_from(self.matrix)] += corner
        self.root = _factor(self.matrix)
        self.along = refined_solve(self.root, self.matrix, y)
        self.total = float(y @ self.along)

    def solve(self, right_a: Array, right_e: Array, balance: float) -> tuple[Array, Array, float]:
        """The directions of a, e and the bias."""
        if not self.linked:
            a, bias = self._bordered(right_a + right_e, balance)
            return a, a, bias
        pulled = refined_solve(self.inner_root, self.inner, right_e)
        a, bias = self._bordered(right_a - self.cross * pulled, balance)
        return a, refined_solve(self.inner_root, self.inner, right_e - self.cross * a), bias

    def _bordered(self, right: Array, balance: float) -> tuple[Array, float]:
        x = refined_solve(self.root, self.matrix, right)
        bias = (float(self.y @ x) - balance) / self.total
        return x - bias * self.along, bias


def _factor(matrix: Array) -> Array:
    root = factor(matrix)
    if root is None:
        raise np.linalg.LinAlgError("not positive definite")
    return root
