"""Path-following barrier method for kernel duals inside a p-norm ball or an ellipsoid.

        minimise_a   1/2 a'Qa - sum(a),       Q = (y y') * K,   y'a = 0,   a in a convex set

For growing t the minimiser of ``t (1/2 a'Qa - sum(a)) + F(a, x)`` is followed by Newton's method;
F is a self-concordant barrier of the set with some variables x of its own, so that every Newton
phase is short whatever the data are (Nesterov and Nemirovskii 1994).  The multiplier of y'a = 0
is t times the bias.  x is eliminated, which leaves one n x n system per step.
The sets with their barriers are in `ball_barriers.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from anynorm.solvers.frame.long_factor import lower_factor

Array = NDArray[np.float64]

_GROWTH = 10.0  # of t from centre to centre; not critical: 3 to 30 take 46 to 25 steps, 10 takes 38
_CENTRED = 0.3  # Newton decrement: below (3 - sqrt 5) / 2 = 0.38 steps converge quadratically
_LEAST_GROWTH = 1.5  # of t: smaller steps are taken whether they end centred or not
_NEWTON_STEPS = 40  # for a centre; if these do not do, the growth of t was too much


class Barrier(Protocol):
    """F with its own variables x, which the solver passes around without a look inside."""

    degree: float

    def start(self) -> tuple[Array, Array]:
        """Return an inner point (a, x) with y'a = 0."""

    def value(self, a: Array, x: Array) -> float:
        """Return F, infinite outside."""

    def gradient(self, a: Array, x: Array) -> tuple[Array, Array]:
        """Return the derivatives by a and by x."""

    def eliminate(self, a: Array, x: Array, matrix: Array) -> Eliminated:
        """Add the Hessian of F, after x is eliminated, to the matrix of a."""


class Eliminated(Protocol):
    """The eliminated part of one Newton system."""

    def pull(self, gradient: Array) -> Array:
        """Return ``H_ax H_xx^-1 gradient``."""

    def follow(self, move: Array, gradient: Array) -> Array:
        """Return the direction of x: ``-H_xx^-1 (gradient + H_xa move)``."""


class Centre(NamedTuple):
    """A point near the central path."""

    a: Array
    bias: float
    pulled: Array
    t: float


def follow_centre(
    Q: Array, y: Array, barrier: Barrier, scale: float, *, done: Callable[[Centre], bool]
) -> None:
    """Follow the path until `done` says so, or until rounding allows no further step.

    `scale` is the objective's order of magnitude; `done` is asked after every Newton step.
    """
    a, x = barrier.start()
    t, growth = barrier.degree / scale, _GROWTH
    last = centre = Centre(a, 0.0, Q @ a, t)
    last_x = x
    for _ in range(60):  # t grows to 1e60 times its start: the gap ends it long before
        centred = False
        for _ in range(_NEWTON_STEPS):
            newton = _newton(Q, y, barrier, centre, x)
            if newton is None:
                return
            move, drift, bias, decrement = newton
            size = _line_search(barrier, centre, x, move, drift, Q @ move, decrement)
            if size == 0.0:
                centred = True  # as far as rounding shows
                break
            a, x = centre.a + size * move, x + size * drift
            centre = Centre(a, bias, Q @ a, centre.t)
            if done(centre):
                return
            if decrement < _CENTRED:
                centred = True
                break
        if centred or growth < _LEAST_GROWTH:
            last, last_x = centre, x
        else:  # too long a way: back, and shorter ones from now on
            centre, x, growth = last, last_x, math.sqrt(growth)
        centre = centre._replace(t=last.t * growth)


def _newton(
    Q: Array, y: Array, barrier: Barrier, centre: Centre, x: Array
) -> tuple[Array, Array, float, float] | None:
    """The Newton direction of (a, x), the bias it implies and the Newton decrement."""
    by_a, by_x = barrier.gradient(centre.a, x)
    by_a = by_a + centre.t * (centre.pulled - 1.0)
    # y'a = 0 holds to more digits if y is a stiff direction of the matrix itself.
    stiff = centre.t * (float(np.diagonal(Q).mean()) or 1.0)
    matrix = centre.t * Q
    matrix += np.outer(stiff * y, y)
    rest = barrier.eliminate(centre.a, x, matrix)
    root = factor(matrix)
    if root is None:
        return None
    right = rest.pull(by_x) - by_a
    both = refined_solve(root, matrix, np.column_stack([right, y]))
    total = float(y @ both[:, 1])
    if not (total > 0 and np.all(np.isfinite(both))):
        return None
    excess = float(y @ centre.a)
    multiplier = (float(y @ both[:, 0]) + excess) / total
    move = both[:, 0] - multiplier * both[:, 1]
    drift = rest.follow(move, by_x)
    square = -float(by_a @ move) - float(by_x @ drift)
    return move, drift, (multiplier - stiff * excess) / centre.t, math.sqrt(max(square, 0.0))


def _line_search(
    barrier: Barrier,
    centre: Centre,
    x: Array,
    move: Array,
    drift: Array,
    pulled: Array,
    decrement: float,
) -> float:
    """A step that lowers the function enough; 0 where rounding hides every descent."""
    slope = centre.t * float((centre.pulled - 1.0) @ move)
    bend = 0.5 * centre.t * float(move @ pulled)
    now = barrier.value(centre.a, x)
    size = 1.0
    for _ in range(60):  # 2^-60 of a step is rounding
        change = barrier.value(centre.a + size * move, x + size * drift) - now
        change += size * slope + size**2 * bend
        if change <= -0.1 * size * decrement**2 or (size == 1.0 and decrement < 1e-3):
            return size if math.isfinite(change) else 0.0
        size *= 0.7
    return 0.0


def factor(matrix: Array) -> Array | None:
    """The lower Cholesky factor, of a slightly larger diagonal where that is needed."""
    diagonal = np.abs(np.diagonal(matrix)).copy()
    ridge = 0.0
    while ridge < 1e-6:
        root = lower_factor(matrix + np.diag(ridge * diagonal) if ridge else matrix)
        if root is not None:
            return root
        ridge = max(100 * ridge, 1e-15)  # from the last digit of the diagonal on
    return None


def refined_solve(root: Array, matrix: Array, right: Array) -> Array:
    """Solve by the factor, and once more for what is left."""
    x = scipy.linalg.cho_solve((root, True), right, check_finite=False)
    left = right - matrix @ x
    return np.asarray(x + scipy.linalg.cho_solve((root, True), left, check_finite=False))
