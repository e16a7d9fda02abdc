"""Cutting planes with curvature, for a slack norm of which only three methods are known.

        maximise_a   sum(a) - 1/2 a'Qa,      Q = (y y') * K,   y'a = 0,   N*(a) <= C

The ball is known by planes: ``v'a <= C`` for every v with N(v) <= 1, and the norm's `maximiser`
gives the plane that a point violates most (Kelley 1960).  Each quadratic programme between the
planes found so far gives the next point; scaled back into the ball it is a dual point, and its
margins are a primal one.  Where N* is curved, planes alone would need far too many rounds, so the
curvature of the planes in use, weighted by their multipliers, joins the objective around the last
point: then the steps are those of sequential quadratic programming for smooth norms and those of
cutting planes for polyhedral ones.  The curvature comes from differences of `maximiser`.

Planes of a monotone norm bound e = |a|, of any other with inequality constraints some e >= a >= 0.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anynorm.losses.slack import SlackLoss
from anynorm.norms import Norm
from anynorm.problem import Problem
from anynorm.solvers.kernel.plane_program import Answer, Link, Planes, solve_between_planes

Array = NDArray[np.float64]

_ROUNDS = 2000  # of programmes between planes at the most
_MASTER, _FINEST = 0.02, 1e-9  # of the gap: how well a programme between planes is solved
_IN_USE = 1e-3  # of the largest weight: planes below it are idle
_UNUSED_ROUNDS = 30  # after which an idle plane is dropped; one that is missed comes back
_STEP = 1e-6  # of the largest entry: the width of differences, near the cube root of rounding
_STALLED = 60  # rounds without a smaller gap: rounding allows no more
_AGREEING = 0.4  # a jump gives slopes that differ by the 3 of the widths
_FLAT = 8  # rounds without a tenth of the gap: then planes alone; 3 took 117 rounds, not 26


class PlaneSearch:
    """The planes, their curvature, and the best dual point."""

    def __init__(self, problem: Problem, Q: Array, start: Array | None) -> None:
        assert isinstance(problem.loss, SlackLoss)
        norm = problem.loss.weighted(problem.sample_weight)
        self.problem, self.norm, self.Q = problem, norm, Q
        self.y, self.C = problem.y, problem.C
        n = len(self.y)
        self.link = _link_of(problem.loss.signed, norm.monotone)
        self.linked = self.link in ("above", "around")
        reach = np.array([self.C * norm.value(row) for row in np.eye(n)])
        self.absent = reach <= 0
        self.upper = 1.01 * np.maximum(reach, 1e-9 * reach.max())
        self.inside = self._inner_point()
        share = 0.0 if problem.loss.signed else 0.5
        self.a = share * self.inside
        self.e = self.inside if self.linked else self.a
        self.best, self.least = -np.inf, problem.zero_primal()
        self.points: list[Array] = []
        self.normals: list[Array] = []
        self.curvatures: dict[int, Array] = {}
        self.idle: list[int] = []
        self.around, self.curvature = self.e, np.zeros((n, n))
        self.gaps: list[float] = []
        self.precision = _MASTER
        self._add(self.inside)
        if start is not None and np.any(start):
            self._add(start if self.link == "tied" else np.abs(start))

    def _inner_point(self) -> Array:
        """A point of both classes, of equal sums, halfway to the ball and within the box."""
        positive = self.y > 0
        weight = np.where(self.absent, 0.0, 1.0)
        top = self.upper * weight
        point = np.where(positive, top / top[positive].sum(), top / top[~positive].sum())
        square = float(point @ self.Q @ point)
        size = 0.5 * self.C / self.norm.dual_value(point)
        size = min(size, 2 * float(point.sum()) / square) if square > 0 else size
        return np.minimum(size * point, 0.5 * self.upper)

    def between_planes(self) -> Answer:
        """The minimiser between the planes, from a point well inside."""
        inner = 0.0 if self.problem.loss.signed else 0.2 * self.inside
        a = 0.6 * self.a + inner
        e = 0.6 * self.e + 0.35 * self.inside if self.linked else a
        planes = Planes(np.array(self.normals), self.C, self.upper, self.curvature, self.around)
        gap = max(self.least - max(self.best, 0.0), 1e-13 * self.problem.zero_primal())
        gap = min(gap, max(self.best, 0.5 * float(self.inside.sum())))
        return solve_between_planes(self.Q, self.y, planes, self.link, (a, e), self.precision * gap)

    def point(self, answer: Answer) -> tuple[Array, float, float, float]:
        """The answer brought into the ball: (a, bias, primal, dual)."""
        e = np.where(self.absent, 0.0, answer.e)
        a = np.where(self.absent, 0.0, answer.a)
        pulled = self.Q @ a
        square, size = float(a @ pulled), self.norm.dual_value(e)
        scale = min(1.0, self.C / size) if size > 0 else 1.0
        if square * scale > float(a.sum()) > 0:  # the best point on the way to 0
            scale = float(a.sum()) / square
        a, e, pulled, square = scale * a, scale * e, scale * pulled, scale**2 * square
        r = 1.0 - pulled - self.y * answer.bias
        if self.link == "above":
            r = np.maximum(np.maximum(r, answer.slacks), 0.0)
        elif not self.problem.loss.signed:
            r = np.maximum(r, 0.0)
        primal = 0.5 * square + self.C * self.norm.value(r)
        dual = float(a.sum()) - 0.5 * square
        if dual > self.best:
            self.best, self.a, self.e = dual, a, e
        self.least = min(self.least, primal)
        self.around = e
        return a, answer.bias, primal, dual

    def stalled(self) -> bool:
        """Whether neither value has improved for long: rounding seems to allow no more."""
        self.gaps.append(self.least - self.best)
        if len(self.gaps) > 1 and self.gaps[-1] > 0.5 * self.gaps[-2]:
            self.precision = max(0.3 * self.precision, _FINEST)
        recent = self.gaps[-_STALLED:]
        return len(recent) == _STALLED and recent[-1] >= recent[0]

    def learn(self, answer: Answer) -> None:
        """Drop planes long out of use, add those that the answer violates, and their curvature."""
        weights = answer.weights / max(float(answer.weights.max()), 1e-300)
        self.idle = [0 if w > _IN_USE else i + 1 for w, i in zip(weights, self.idle, strict=True)]
        self.curvature = np.zeros_like(self.Q)
        recent = self.gaps[-_FLAT:]
        flat = len(recent) == _FLAT and recent[-1] > 0.9 * recent[0]
        # Without progress for some rounds planes alone, which always make some.
        for k in [] if flat else np.flatnonzero(weights > _IN_USE).tolist():
            if k not in self.curvatures:
                self.curvatures[k] = _differences(self.norm, self.points[k], self.normals[k])
            self.curvature += answer.weights[k] * self.curvatures[k]
        self._forget()
        self._add(np.where(self.absent, 0.0, answer.e))

    def _forget(self) -> None:
        kept = [k for k, rounds in enumerate(self.idle) if rounds <= _UNUSED_ROUNDS]
        if len(kept) < len(self.idle):
            self.points = [self.points[k] for k in kept]
            self.normals = [self.normals[k] for k in kept]
            self.curvatures = {
                new: self.curvatures[k] for new, k in enumerate(kept) if k in self.curvatures
            }
            self.idle = [self.idle[k] for k in kept]

    def _add(self, e: Array) -> None:
        """The plane at e, and those of its pieces: norms that are sums have many at once."""
        rest = e.copy()
        for piece in range(50):  # norms that are sums have many, others one
            if not rest.any():
                return
            v = np.asarray(self.norm.maximiser(rest), dtype=np.float64)
            if piece and not v @ e > self.C * (1 + 1e-10):  # a plane that cuts off less is rounding
                return
            self.normals.append(v)
            self.points.append(rest.copy())
            self.idle.append(0)
            rest[v != 0] = 0.0


def _link_of(signed: bool, monotone: bool) -> Link:
    if monotone:
        return "around" if signed else "positive"
    return "tied" if signed else "above"


def _differences(norm: Norm, a: Array, v: Array) -> Array:
    """The derivative of the maximiser at a, symmetric and positive semidefinite.

    Differences over four steps must agree, or there is a kink nearby and no curvature to be had.
    """
    step = _STEP * float(np.abs(a).max(initial=0.0))
    out = np.zeros((len(a), len(a)))
    everywhere = step * np.cos(np.arange(len(a)))
    if step == 0.0 or np.array_equal(norm.maximiser(a + everywhere), v):
        return out  # no curvature in any direction: one evaluation instead of many
    for i in range(len(a)):
        slopes = []
        for width in (step, -step, 3 * step, -3 * step):
            moved = a.copy()
            moved[i] += width
            slopes.append((np.asarray(norm.maximiser(moved)) - v) / width)
            if not slopes[-1].any():
                break
        sizes = [float(np.abs(slope).sum()) for slope in slopes]
        if min(sizes) > _AGREEING * max(sizes):
            out[i] = slopes[int(np.argmin(sizes))]
    spectrum, basis = np.linalg.eigh((out + out.T) / 2)
    used = spectrum > 1e-12 * max(float(spectrum[-1]), 0.0)
    return np.asarray((basis[:, used] * spectrum[used]) @ basis[:, used].T)
