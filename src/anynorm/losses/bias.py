"""The exact optimal bias: all b that minimise g(1 - y (f + b)) for given scores f.

With t = y - f the residuals are ``r_i = y_i (t_i - b)``: every example has one breakpoint t_i,
at which a positive one stops to cost and a negative one begins to.  For inequality
constraints no example costs anything between the largest t of the positive and the smallest
of the negative ones, where these are in order.  Otherwise:

    hinge, absolute     a weighted order statistic of t
    squared, L2         a weighted mean of t (over all rows, or over the rows that cost)
    LInf                the middle of the two extreme breakpoints
    logistic            a safeguarded Newton iteration
    other norms         the sign changes of the slope, by Brent's method to the last digits
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit

from anynorm.losses import Loss
from anynorm.norms import L1, L2, LInf, Mahalanobis, Norm, SquaredL2
from anynorm.norms.base import Weighted
from anynorm.norms.envelope import smallest_above, smallest_above_with_bias

Array = NDArray[np.float64]
Interval = tuple[float, float]

_ROUNDING = 1e-12
_SAFE_MARGIN = 64.0


def optimal_bias_interval(
    loss: Loss, scores: Array, y: Array, C: float, weights: Array | None = None
) -> Interval:
    """Return the ends of the interval of all optimal biases.

    An end is infinite where only one class has weight and the constraints are inequalities.
    The logistic loss then has no minimum at all: the interval is the one point that gives
    every example a margin of at least 64, at which the loss is below 1e-27 per example.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.problem.certificate import optimal_bias_interval
    >>> from anynorm.losses import get_loss
    >>> scores, y = np.array([3.0, -3.0]), np.array([1.0, -1.0])
    >>> optimal_bias_interval(get_loss("hinge"), scores, y, C=1.0)
    (-2.0, 2.0)
    """
    t = y - np.asarray(scores, dtype=np.float64)
    slack = loss.slack
    if slack is None:
        w = np.ones(len(y)) if weights is None else weights
        return _logistic(scores[w > 0], y[w > 0], w[w > 0])
    if weights is not None:
        slack = slack.weighted(weights)
    if isinstance(slack, Weighted) and slack.weights is not None:
        kept = np.asarray(slack.weights) > 0
        t, y, slack = t[kept], y[kept], slack.for_rows(kept)
    if loss.constraints == "equality":
        return _for_equalities(slack, t, y)
    if isinstance(slack, Norm) and not slack.monotone:
        return _not_monotone(slack, t, y)
    return _for_inequalities(slack, t, y)


def optimal_bias(
    loss: Loss, scores: Array, y: Array, C: float, weights: Array | None = None
) -> float:
    """Return the middle of the interval of optimal biases, or its finite end.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.problem.certificate import optimal_bias
    >>> from anynorm.losses import get_loss
    >>> optimal_bias(get_loss("hinge"), np.array([3.0, -3.0]), np.array([1.0, -1.0]), C=1.0)
    0.0
    >>> optimal_bias(get_loss("hinge"), np.array([3.0, 5.0]), np.array([1.0, 1.0]), C=1.0)
    -2.0
    """
    low, high = optimal_bias_interval(loss, scores, y, C, weights)
    if math.isinf(low) or math.isinf(high):
        finite = [end for end in (low, high) if math.isfinite(end)]
        return finite[0] if finite else 0.0
    return low + (high - low) / 2


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
        return self.norm.value(smallest_above(self.norm, r) if self.one_sided else r)

    def subgradient(self, b: float) -> Array | None:
        """Return a subgradient in the residuals at b, None where the norm gives none."""
        r = self.y * (self.t - b)
        if not self.one_sided:
            return self.norm.subgradient(r)
        a = self.norm.subgradient(smallest_above(self.norm, r))
        return None if a is None else np.where(r > 0, a, 0.0)


def _row_weights(slack: Norm | SquaredL2, n: int) -> Array:
    given = slack.weights if isinstance(slack, Weighted) else None
    return np.ones(n) if given is None else np.asarray(given, dtype=np.float64)


def _for_inequalities(slack: Norm | SquaredL2, t: Array, y: Array) -> Interval:
    highest = float(t[y > 0].max(initial=-math.inf))
    lowest = float(t[y < 0].min(initial=math.inf))
    if highest <= lowest:
        return highest, lowest
    w = _row_weights(slack, len(t))
    if isinstance(slack, L1):
        if np.all(w == w[0]):  # then no sorting is needed
            count = int(np.count_nonzero(y > 0))
            low, high = np.partition(t, (count - 1, count))[count - 1 : count + 1]
            return float(low), float(high)
        return _order_statistic(t, w, float(w[y > 0].sum()))
    if isinstance(slack, SquaredL2 | L2):
        # Rows that cost nothing anywhere between the two ends need no sorting.
        near = np.flatnonzero(np.where(y > 0, t > lowest, t < highest))
        point = _squared_hinge(t[near], y[near], w[near])
        return point, point
    if isinstance(slack, LInf):
        return (highest + lowest) / 2, (highest + lowest) / 2
    return _minimisers(Cost(slack, t, y, one_sided=True), lowest, highest)


def _for_equalities(slack: Norm | SquaredL2, t: Array, y: Array) -> Interval:
    w = _row_weights(slack, len(t))
    low, high = float(t.min()), float(t.max())
    if isinstance(slack, L1):
        return _order_statistic(t, w, float(w.sum()) / 2)
    if isinstance(slack, SquaredL2 | L2):
        mean = low + float(w @ (t - low)) / float(w.sum())
        return mean, mean
    if isinstance(slack, LInf):
        return low + (high - low) / 2, low + (high - low) / 2
    if isinstance(slack, Mahalanobis):
        half = slack.factor.T @ y
        mean = low + float(half @ (slack.factor.T @ (y * (t - low)))) / float(half @ half)
        return mean, mean
    cost = Cost(slack, t, y, one_sided=False)
    return _minimisers(cost, low, high) if slack.monotone else _search(cost.value, low, high)


def _not_monotone(norm: Norm, t: Array, y: Array) -> Interval:
    """Inequality constraints with slacks that are optimised together with b."""
    highest = float(t[y > 0].max(initial=-math.inf))
    lowest = float(t[y < 0].min(initial=math.inf))
    if highest <= lowest:
        return highest, lowest
    if not isinstance(norm, Mahalanobis):
        start = lowest + (highest - lowest) / 2
        b = start + smallest_above_with_bias(norm, y * (t - start), y)[1]
        return b, b
    return _minimisers(Cost(norm, t, y, one_sided=True), lowest, highest)


def _order_statistic(t: Array, w: Array, target: float) -> Interval:
    """All b with weight at most `target` below and at least `target` up to b."""
    order = np.argsort(t, kind="stable")
    below = np.cumsum(w[order])
    slackness = _ROUNDING * below[-1]
    last = len(t) - 1
    first = min(int(np.searchsorted(below, target - slackness)), last)
    beyond = min(int(np.searchsorted(below, target + slackness, side="right")), last)
    return float(t[order[first]]), float(t[order[beyond]])


def _squared_hinge(t: Array, y: Array, w: Array) -> float:
    """The minimum of sum w (y(t-b))_+^2, where the classes overlap.

    Half the slope, ``sum w (b - t)`` over the positive rows above b and the negative ones below,
    rises piecewise linearly; on the right piece b is the mean of the rows that cost.
    """
    order = np.argsort(t, kind="stable")
    origin = float(t[order[len(t) // 2]])
    t, y, w = t[order] - origin, y[order], w[order]
    del order
    slope = _running_cost(t, np.where(y < 0, w, 0.0))
    slope += _running_cost(t[::-1], np.where(y > 0, w, 0.0)[::-1])[::-1]
    j = int(np.argmax(slope >= 0))
    del slope
    for _ in range(3):
        low, high = t[max(j - 1, 0)], t[j]
        costs = np.where(y > 0, t >= high, t <= low)
        b = float(w[costs] @ t[costs]) / float(w[costs].sum()) if costs.any() else float(high)
        if low <= b <= high:
            break
        j = min(max(j + (1 if b > high else -1), 0), len(t) - 1)
    return origin + min(max(b, float(low)), float(high))


def _running_cost(t: Array, w: Array) -> Array:
    """``sum_{i <= j} w_i (t_j - t_i)`` for every j; w is used up, to save memory."""
    out = np.cumsum(w)
    out *= t
    w *= t
    np.cumsum(w, out=w)
    out -= w
    return out


def _logistic(scores: Array, y: Array, w: Array) -> Interval:
    """The root of ``sum w expit(f + b) = weight of the positive class``."""
    positive, negative = float(w[y > 0].sum()), float(w[y < 0].sum())
    if negative == 0:
        b = _SAFE_MARGIN - float(scores.min(initial=math.inf)) if len(scores) else 0.0
        return b, b
    if positive == 0:
        b = -_SAFE_MARGIN - float(scores.max())
        return b, b
    odds = math.log(positive / negative)
    low, high = odds - float(scores.max()), odds - float(scores.min())
    b = low + (high - low) / 2
    for _ in range(200):
        probability = expit(scores + b)
        excess = float(w[y < 0] @ probability[y < 0] - w[y > 0] @ expit(-scores - b)[y > 0])
        if excess > 0:
            high = b
        else:
            low = b
        curvature = float(w @ (probability * (1.0 - probability)))
        step = b - excess / curvature if curvature > 0 else math.inf
        step = step if low < step < high else low + (high - low) / 2
        if abs(step - b) <= 2e-16 * abs(b) or high - low <= 2e-16 * max(abs(low), abs(high)):
            return step, step
        b = step
    return b, b


def _minimisers(cost: Cost, low: float, high: float) -> Interval:
    """All minimisers in [low, high] of a convex cost that falls at low and rises at high.

    The ends are where the slope leaves zero, up to its rounding: two roots of monotone functions.
    """
    slopes: dict[float, tuple[float, float]] = {}

    def leaving(b: float, sign: float) -> float:
        if b not in slopes:
            a = cost.subgradient(b)
            assert a is not None
            slopes[b] = -float(a @ cost.y), _ROUNDING * float(np.abs(a).sum())
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
