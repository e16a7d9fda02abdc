"""The biases b that minimise a norm of the residuals ``r_i = y_i (t_i - b)``.

With t = y - f, f being the scores, every example has one breakpoint t_i, at which a positive one
stops to cost and a negative one begins to, where the constraints are inequalities.  Then no
example costs anything between the largest t of the positive and the smallest of the negative
ones, where these are in order.  Otherwise, one-sided (inequalities) or not:

    L1                  a weighted order statistic of t
    L2, squared         a weighted mean of t (over all rows, or over the rows that cost)
    LInf                the middle of the two extreme breakpoints
    TopK                the middle of two order statistics, half of k from either end
    other norms         the sign changes of the slope, by Brent's method to the last digits
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from anynorm.design.limits import ROUNDING
from anynorm.design.threads import by_rows

if TYPE_CHECKING:
    from anynorm.norms.norm import Norm

_MANY = 1 << 15  # rows, that take a millisecond to sort
_SAMPLE = 1 << 12  # rows: their share below a value is known to 0.8 %, once in twenty not
_DOUBT = 0.03  # of the weight, on either side of where the sample says: almost four times that

Array = NDArray[np.float64]
Interval = tuple[float, float]


def extremes(t: Array, y: Array, one_sided: bool) -> Interval:
    """Return the interval that holds every best bias.

    One-sided, it is between the smallest t of the negative and the largest of the positive rows,
    in this order, if the first is smaller; otherwise nothing costs between them.
    """

    def ends(rows: slice) -> Interval:
        own, side = t[rows], y[rows]
        if not one_sided:
            return float(own.min()), float(own.max())
        low, high = own.compress(side < 0), own.compress(side > 0)  # twice as fast as np.where
        return float(low.min(initial=math.inf)), float(high.max(initial=-math.inf))

    lows, highs = zip(*by_rows(ends, len(t)), strict=True)
    return min(lows), max(highs)


def order_statistics(t: Array, y: Array, w: Array, one_sided: bool) -> Interval:
    """Return the b that minimise ``sum w |t - b|``, or the one-sided sum."""
    if not one_sided:
        return _order_statistic(t, w, float(w.sum()) / 2)
    if np.all(w == w[0]):  # then no sorting is needed
        count = int(np.count_nonzero(y > 0))
        t, _, below = _near(t, None, float(count), 1.0)
        count -= int(below)
        low, high = np.partition(t, (count - 1, count))[count - 1 : count + 1]
        return float(low), float(high)
    return _order_statistic(t, w, float(w[y > 0].sum()))


def mean_of_costing(t: Array, y: Array, w: Array, one_sided: bool) -> Interval:
    """Return the b that minimises ``sum w (t - b)^2``, or the sum over the rows that cost."""
    low, high = extremes(t, y, one_sided)
    if not one_sided:
        mean = low + float(w @ (t - low)) / float(w.sum())
        return mean, mean
    # Rows that cost nothing anywhere between the two ends need no look.
    near = np.flatnonzero(np.where(y > 0, t > low, t < high))
    point = _squared_hinge(t[near], y[near], w[near], low, high)
    return point, point


def middle_of_ends(t: Array, y: Array, w: Array, k: float, one_sided: bool) -> Interval:
    """Return the b that minimise the sum of the k largest ``|t - b|``, or the one-sided one.

    At a minimum half of k is taken of the rows above b and half of those below.  Where the two
    ends do not overlap, b is between them; where they are in the wrong order, or have no rows for
    it, k is more than what costs, and the sum is that of all rows.
    """
    above, below = (y > 0, y < 0) if one_sided else (np.ones(len(t), dtype=bool),) * 2
    last, first = _end(-t[above], w[above], 0.5 * k)
    upper, lower = (-first, -last), _end(t[below], w[below], 0.5 * k)
    if not upper[1] > lower[0]:
        return order_statistics(t, y, w, one_sided)
    ends = [0.5 * upper[0] + 0.5 * lower[0], 0.5 * upper[1] + 0.5 * lower[1]]
    if upper[0] < lower[1]:  # some of these pairs are in order, others are not
        ends = [min(max(end, lower[0]), upper[1]) for end in ends]
    return ends[0], ends[1]


def minimisers_of(norm: Norm, t: Array, y: Array, one_sided: bool) -> Interval:
    """Return the best biases of a norm of which nothing special is known."""
    low, high = extremes(t, y, one_sided)
    if norm.monotone:
        return where_slope_changes(norm, t, y, one_sided)
    if not one_sided:
        return _search(Cost(norm, t, y, one_sided=False).value, low, high)
    # The slacks are optimised together with b.
    from anynorm.norms.envelope import smallest_above_with_bias

    start = low + (high - low) / 2
    b = start + smallest_above_with_bias(norm, y * (t - start), y)[1]
    return b, b


def where_slope_changes(norm: Norm, t: Array, y: Array, one_sided: bool) -> Interval:
    """Return the best biases of a norm by its subgradients."""
    return _minimisers(Cost(norm, t, y, one_sided), *extremes(t, y, one_sided))


@dataclass(frozen=True)
class Cost:
    """N of the residuals ``r = y (t - b)``, or of the cheapest slacks above them, by b."""

    norm: Norm
    t: Array
    y: Array
    one_sided: bool

    def value(self, b: float) -> float:
        """Return the cost at b."""
        r = self.y * (self.t - b)
        return self.norm.value(self.norm.cheapest_above(r) if self.one_sided else r)

    def subgradient(self, b: float) -> Array | None:
        """Return a subgradient in the residuals at b, None where the norm gives none."""
        r = self.y * (self.t - b)
        if not self.one_sided:
            return self.norm.subgradient(r)
        a = self.norm.subgradient(self.norm.cheapest_above(r))
        return None if a is None else np.where(r > 0, a, 0.0)


def _order_statistic(t: Array, w: Array, target: float) -> Interval:
    """All b with weight at most `target` below and at least `target` up to b."""
    slackness = ROUNDING * float(w.sum())
    t, w, before = _near(t, w, target, slackness)
    order = np.argsort(t, kind="stable")
    below = before + np.cumsum(w[order])
    last = len(t) - 1
    first = min(int(np.searchsorted(below, target - slackness)), last)
    beyond = min(int(np.searchsorted(below, target + slackness, side="right")), last)
    return float(t[order[first]]), float(t[order[beyond]])


def _near(t: Array, w: Array | None, target: float, room: float) -> tuple[Array, Any, float]:
    """The t around that with weight `target` below it, with their weights, and what is below them.

    A sample says where it is: to sort some ten thousand of many rows takes a tenth of the time.
    All rows where they are few, or where the sample was wrong by `room` of the weight or more.
    """
    if len(t) <= _MANY:
        return t, w, 0.0
    step = len(t) // _SAMPLE
    some, weights = t[::step], np.ones(len(t[::step])) if w is None else w[::step]
    order = np.argsort(some, kind="stable")
    shares = np.cumsum(weights[order])
    total = float(len(t)) if w is None else float(w.sum())
    aim = target / total * shares[-1] + np.array([-1.0, 1.0]) * _DOUBT * shares[-1]
    ends = np.minimum(np.searchsorted(shares, aim), len(some) - 1)
    low, high = some[order[ends]]
    under, inside = t < low, np.flatnonzero((t >= low) & (t <= high))
    before = float(np.count_nonzero(under) if w is None else np.where(under, w, 0.0).sum())
    own = None if w is None else w[inside]
    held = float(len(inside) if own is None else own.sum())
    if not before + room < target < before + held - room:
        return t, w, 0.0
    return t[inside], own, before


def _end(t: Array, w: Array, target: float) -> Interval:
    """As `_order_statistic`; no last b where all rows are as heavy as that, no first if less."""
    total = float(w.sum())
    if target > (1 + ROUNDING) * total:
        return math.inf, math.inf
    first, beyond = _order_statistic(t, w, target)
    return first, math.inf if target >= (1 - ROUNDING) * total else beyond


def _squared_hinge(t: Array, y: Array, w: Array, low: float, high: float) -> float:
    """The minimum of sum w (y(t-b))_+^2 between low and high, where the classes overlap.

    Half the slope, ``sum w (b - t)`` over the positive rows above b and the negative ones below,
    rises piecewise linearly; on the right piece b is the mean of the rows that cost.  These are
    Newton's steps, halving the interval where they lead out of it: a few passes over the rows
    where sorting them took six times as long.
    """
    origin, positive = low + (high - low) / 2, y > 0
    t, low, high = t - origin, low - origin, high - origin
    b, costs = 0.0, np.where(positive, t > 0.0, t < 0.0)
    while True:
        weight = np.where(costs, w, 0.0)
        total = float(weight.sum())
        mean = float(weight @ t) / total if total > 0 else b
        low, high = (b, high) if mean > b else (low, b)
        step = mean if low < mean < high else low + (high - low) / 2
        before, costs = costs, np.where(positive, t > step, t < step)
        if mean == b or step in (low, high) or (step == mean and np.array_equal(costs, before)):
            return origin + (b if mean == b else step)
        b = step


def _minimisers(cost: Cost, low: float, high: float) -> Interval:
    """All minimisers in [low, high] of a convex cost that falls at low and rises at high.

    The ends are where the slope leaves zero, up to its rounding: two roots of monotone functions.
    """
    slopes: dict[float, tuple[float, float]] = {}

    def leaving(b: float, sign: float) -> float:
        if b not in slopes:
            a = cost.subgradient(b)
            assert a is not None
            slopes[b] = -float(a @ cost.y), ROUNDING * float(np.abs(a).sum())
        slope, rounding = slopes[b]
        return slope + sign * rounding

    if low == high:
        return low, high
    if cost.subgradient(low) is None:
        return _search(cost.value, low, high)
    first = _root(lambda b: leaving(b, 1.0), low, high)
    if leaving(first, -1.0) > 0:
        return first, first
    above = [b for b in slopes if b > first and leaving(b, -1.0) > 0]
    last = _root(lambda b: leaving(b, -1.0), first, min(above, default=high))
    return first, last


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising f, perhaps with jumps, changes sign; an end where it does not."""
    if f(low) >= 0:
        return low
    if f(high) <= 0:
        return high
    rounding = 4 * float(np.finfo(float).eps)
    width = max(rounding * max(abs(low), abs(high)), 1e-300)
    return float(brentq(f, low, high, xtol=width, rtol=rounding, maxiter=500))


def _search(cost: Callable[[float], float], low: float, high: float) -> Interval:
    """Minimisers of a convex cost known by its values alone, by golden section.

    The bracket is widened until the cost rises at both ends; the interval returned is where the
    cost cannot be told from its minimum.
    """
    width = max(high - low, abs(low) * 1e-8, 1e-8)
    while cost(low - width) < cost(low):
        low, width = low - width, 2 * width
    while cost(high + width) < cost(high):
        high, width = high + width, 2 * width
    left, right = low - width, high + width
    ratio = (math.sqrt(5.0) - 1) / 2
    inner = [right - ratio * (right - left), left + ratio * (right - left)]
    costs = [cost(inner[0]), cost(inner[1])]
    for _ in range(120):
        if costs[0] <= costs[1]:
            right, inner[1], costs[1] = inner[1], inner[0], costs[0]
            inner[0] = right - ratio * (right - left)
            costs[0] = cost(inner[0])
        else:
            left, inner[0], costs[0] = inner[0], inner[1], costs[1]
            inner[1] = left + ratio * (right - left)
            costs[1] = cost(inner[1])
    best = inner[0] if costs[0] <= costs[1] else inner[1]
    least = min(costs)
    enough = least + 4e-16 * abs(least)
    return _level_end(cost, enough, best, low - width), _level_end(cost, enough, best, high + width)


def _level_end(
    cost: Callable[[float], float], level: float, inside: float, outside: float
) -> float:
    """The last point from `inside` towards `outside` with a cost of at most `level`."""
    for _ in range(80):
        middle = inside + (outside - inside) / 2
        if middle in (inside, outside):
            break
        inside, outside = (middle, outside) if cost(middle) <= level else (inside, middle)
    return inside
