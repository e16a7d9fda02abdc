"""The SVM on the simplex in less time than it takes to read its points.

        maximise over ||w|| <= 1   min_j A_j'w      =      minimise over the simplex   ||A x||

(Clarkson, Hazan, Woodruff 2010, Sublinear Optimization for Machine Learning, Algorithm 1.)  A
point is drawn from weights over the points and w moves towards it: d entries are read.  A
coordinate i is drawn with probability w_i^2/||w||^2, which makes ``A_ij ||w||^2 / w_i`` an estimate
of A_j'w with variance at most 1, for all points at once: n entries are read.  Points with small
estimates gain weight.  After T rounds the mean of all w separates, with high probability, with a
margin of the best one less eps, and the mean of the points drawn is x.

The published T is ``200^2 log(n) / eps^2``, more than any n d at hand; here it is
3.5 log(n) / eps^2, with the step of the weights to match, sqrt(log(n) / T).  Smaller constants are
a rule of thumb that has held on some data, not a theorem: ``certify=True`` says how good the
answer is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anynorm.design.counted_points import CountedPoints
from anynorm.problem import HullProblem
from anynorm.problem.certificate import Certificate, certificate_of, relative_gap

Array = NDArray[np.float64]

_ROUNDS = 3.5  # of log(n) / eps^2


@dataclass(frozen=True, eq=False)
class SublinearSolution:
    """What `sublinear_svm` found, and what it read for it.

    Attributes
    ----------
    direction : ndarray of shape (d,)
        The separating vector, of length 1.
    margin : float
        The estimate of its least product with a point, rather too large, by about eps at most; or
        the true one after ``certify=True``.
    x : ndarray of shape (n,)
        The point of the simplex: how often each point was drawn.
    value : float
        ``||A x||``, exactly, at no cost: no vector has a larger margin.
    entries_read : int
        The entries of A that were asked for.
    entries_certified : int
        The entries read for the certificate, not counted above.
    certificate : Certificate or None
        With the primal value ``||A x||^2`` and the dual value ``max(0, margin)^2``; OPTIMAL where
        these two prove that the margin is within eps of the best one.
    n_iter : int
        The rounds.
    """

    direction: Array
    margin: float
    x: Array
    value: float
    entries_read: int
    entries_certified: int
    certificate: Certificate | None
    n_iter: int


def solve_sublinear(
    points: CountedPoints, *, eps: float, certify: bool, max_iter: int | None, seed: int | None
) -> SublinearSolution:
    """Find a vector that separates points from the origin, reading few of their entries.

    `eps` is relative to the scale of the points, `max_iter` None the number of rounds that `eps`
    asks for; `certify` reads all entries in the end.
    """
    logarithm = math.log(max(points.n, 2))
    rounds = math.ceil(_ROUNDS * logarithm / eps**2) if max_iter is None else max_iter
    if rounds * (points.n + points.d) >= points.n * points.d:
        points.read_all()
    mean, x, total, value = _play(points, rounds, np.random.default_rng(seed))
    scale, length = points.scale, float(np.linalg.norm(mean))
    direction = mean / length if length > 0 else mean
    margin = scale * min(total / length, value) if length > 0 else 0.0
    read, certificate = points.entries_read, None
    if certify:
        margin = scale * points.least_product(direction)
        certificate = _certificate(scale * value, margin, eps * scale, scale)
    return SublinearSolution(
        direction, margin, x, scale * value, read, points.entries_read - read, certificate, rounds
    )


def _certificate(value: float, margin: float, accuracy: float, scale: float) -> Certificate:
    """OPTIMAL where ``margin >= value - accuracy``, which proves the accuracy asked for."""
    problem = HullProblem(scale**2)
    enough = problem.values_of_margin(value, value - accuracy)
    tol = relative_gap(enough.primal, enough.dual)
    return certificate_of(problem.values_of_margin(value, margin), tol)


def _play(
    points: CountedPoints, rounds: int, rng: np.random.Generator
) -> tuple[Array, Array, float, float]:
    """The rounds; returns the mean of the vectors, x, the mean product drawn, and ||A x||."""
    n, d = points.n, points.d
    step = math.sqrt(math.log(max(n, 2)) / rounds)
    logs, x = np.zeros(n), np.zeros(n)
    drawn, mean, total = np.zeros(d), np.zeros(d), 0.0
    for _ in range(rounds):
        w = drawn / max(math.sqrt(2 * rounds), float(np.linalg.norm(drawn)))
        mean += w
        j = _draw(np.exp(logs - logs.max()), rng)
        point = points.column(j)
        x[j] += 1
        total += float(point @ w)
        drawn += point
        squares = w * w
        length = float(squares.sum())
        if length > 0:
            i = _draw(squares, rng)
            estimates = points.coordinate(i) * (length / w[i])
            shrink = step * np.clip(estimates, -1 / step, 1 / step)
            logs += np.log1p(shrink * (shrink - 1.0))
    return mean / rounds, x / rounds, total / rounds, float(np.linalg.norm(drawn)) / rounds


def _draw(weights: Array, rng: np.random.Generator) -> int:
    """A place with probability in proportion to its weight, which is not 0."""
    sums = np.cumsum(weights)
    place = int(np.searchsorted(sums, rng.random() * sums[-1], side="right"))
    return min(place, int(np.flatnonzero(weights)[-1])) if place >= len(weights) else place
