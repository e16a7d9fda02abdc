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
an experience on some data, not a theorem: ``certify=True`` says how good the answer is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anynorm.design import design_of
from anynorm.design.checks import positive, real_matrix
from anynorm.problem.certificate import Certificate, relative_gap
from anynorm.problem.solution import Status

Array = NDArray[np.float64]

_ROUNDS = 3.5  # of log(n) / eps^2
_TOO_LONG = 1e-6


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


def sublinear_svm(
    A: Any,
    *,
    eps: float,
    scale: float = 1.0,
    certify: bool = False,
    max_iter: int | None = None,
    random_state: int | None = 0,
) -> SublinearSolution:
    r"""Find a vector that separates points from the origin, reading few of their entries.

    With high probability its margin :math:`\min_j A_j'w` is at least the largest possible one less
    ``eps * scale``.  About :math:`3.5 (n + d) \log(n) / \epsilon^2` entries are read, or all of
    them where that would be more.

    Parameters
    ----------
    A : {array-like, sparse matrix} of shape (d, n), or lazy points
        The n points, as columns.  Lazy points have the attributes d and n and the methods
        ``column(j)``, point j, and ``entry(i, j)``, coordinate i of the points j: those of
        `anynorm.reductions.lasso_to_svm`, or your own.
    eps : float
        The accuracy, between 0 and 1, relative to `scale`.
    scale : float, default=1.0
        An upper bound of the points' lengths.
    certify : bool, default=False
        Whether to compute the margin at the end, which reads all n d entries.
    max_iter : int or None, default=None
        The number of rounds; None is ``3.5 log(n) / eps^2``.
    random_state : int or None, default=0
        The seed.

    Returns
    -------
    SublinearSolution
        The direction, its margin, the point of the simplex, and the entries read.

    See Also
    --------
    min_norm_point : the same problem to any accuracy.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm import sublinear_svm
    >>> A = np.array([[0.6, 0.6, 0.6], [0.8, -0.8, 0.0]])
    >>> found = sublinear_svm(A, eps=0.1, certify=True)
    >>> bool(0.5 <= found.margin <= 0.6 <= found.value), found.entries_read
    (True, 6)
    """
    if isinstance(eps, bool) or not isinstance(eps, Real) or not 0 < eps < 1:
        raise ValueError(f"eps must be a number between 0 and 1, both excluded; got {eps!r}.")
    if max_iter is not None and not max_iter >= 1:
        raise ValueError(f"max_iter must be at least 1; got {max_iter!r}.")
    points = _CountedPoints(A, positive(scale, "scale"))
    logarithm = math.log(max(points.n, 2))
    rounds = math.ceil(_ROUNDS * logarithm / float(eps) ** 2) if max_iter is None else int(max_iter)
    if rounds * (points.n + points.d) >= points.n * points.d:
        points.read_all()
    mean, x, total, value = _play(points, rounds, np.random.default_rng(random_state))
    length = float(np.linalg.norm(mean))
    direction = mean / length if length > 0 else mean
    margin = scale * min(total / length, value) if length > 0 else 0.0
    read, certificate = points.entries_read, None
    if certify:
        margin = scale * points.least_product(direction)
        certificate = _certificate(scale * value, margin, float(eps) * scale, scale)
    return SublinearSolution(
        direction, margin, x, scale * value, read, points.entries_read - read, certificate, rounds
    )


def _certificate(value: float, margin: float, accuracy: float, scale: float) -> Certificate:
    """OPTIMAL where ``margin >= value - accuracy``, which proves the accuracy asked for."""
    primal, dual = value**2, max(0.0, margin) ** 2
    zero_primal = scale**2
    tol = relative_gap(primal, max(0.0, value - accuracy) ** 2, zero_primal)
    gap = relative_gap(primal, dual, zero_primal)
    status = Status.OPTIMAL if gap <= tol else Status.MAX_ITER
    return Certificate(primal, dual, gap, status, tol, zero_primal)


def _play(
    points: _CountedPoints, rounds: int, rng: np.random.Generator
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


class _CountedPoints:
    """Points over `scale`, whose entries are counted when they are asked for."""

    def __init__(self, A: Any, scale: float) -> None:
        self._lazy = hasattr(A, "entry") and hasattr(A, "column")
        if not self._lazy:
            A = design_of(real_matrix(A, "A"))
        self._A, self._scale = A, scale
        self.d, self.n = (A.d, A.n) if self._lazy else A.shape
        if self.d < 1 or self.n < 1:
            raise ValueError(f"A must have rows and columns; got the shape ({self.d}, {self.n}).")
        self.entries_read = 0
        self._stored: Array | None = None

    def column(self, j: int) -> Array:
        """Point j."""
        if self._stored is not None:
            return self._stored[:, j]
        self.entries_read += self.d
        point = self._checked(self._A.column(j), self.d, f"point {j}")
        self._check_length(point, j)
        return point

    def coordinate(self, i: int) -> Array:
        """Coordinate i of all points."""
        if self._stored is not None:
            return self._stored[i]
        self.entries_read += self.n
        if self._lazy:
            values = self._A.entry(i, np.arange(self.n))
        else:
            values = self._A.row(i)
        return self._checked(values, self.n, f"coordinate {i}")

    def read_all(self) -> None:
        """Read every entry, once."""
        if self._lazy:
            self._stored = np.column_stack([self.column(j) for j in range(self.n)])
            return
        self.entries_read += self.n * self.d
        A = self._A.dense()
        if not np.isfinite(A).all():
            raise ValueError("A has NaN or infinite entries. Replace them by finite values.")
        self._stored = A / self._scale
        longest = int(np.argmax(np.einsum("ij,ij->j", self._stored, self._stored)))
        self._check_length(self._stored[:, longest], longest)

    def least_product(self, w: Array) -> float:
        """The least product of a point with w, by reading all of them."""
        self.entries_read += self.n * self.d
        if self._stored is not None:
            return float((w @ self._stored).min())
        if hasattr(self._A, "dot") and self._lazy:
            return float(self._A.dot(w).min()) / self._scale
        if not self._lazy:
            return float(self._A.rmatvec(w).min()) / self._scale
        products = [float(np.asarray(self._A.column(j)) @ w) for j in range(self.n)]
        return min(products) / self._scale

    def _checked(self, values: Any, size: int, name: str) -> Array:
        out = np.asarray(values, dtype=np.float64)
        if out.shape != (size,):
            raise ValueError(f"{name} of A must have {size} entries; got the shape {out.shape}.")
        if not np.isfinite(out).all():
            raise ValueError(
                f"{name} of A has NaN or infinite entries. Replace them by finite values."
            )
        return out / self._scale

    def _check_length(self, point: Array, j: int) -> None:
        length = float(np.linalg.norm(point))
        if length > 1 + _TOO_LONG:
            raise ValueError(
                f"point {j} has the length {length * self._scale:g}, more than scale = "
                f"{self._scale:g}. Give scale=, an upper bound of all lengths, or scale the points."
            )
