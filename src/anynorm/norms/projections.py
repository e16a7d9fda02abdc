"""Nearest points of the dual balls, and the levels at which the interpolated norms are attained.

All functions work on magnitudes (v >= 0, a >= 0): the balls are symmetric in every sign, so
the nearest point of a signed vector has its signs.  Weights w >= 0 stretch the ellipsoid
``sum x^2/w <= length^2`` and bound the box; a row of weight 0 is always sent to 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def excess_level(v: Array, w: Array, k: float) -> float:
    """Return the z >= 0 that minimises ``sqrt(sum w (v-z)_+^2) + sqrt(k) z``, exactly.

    With the rows above z having total weight W, mean m and variance s^2 the minimum is where
    ``m - z = sqrt(k s^2 / (W - k))``.  The right set of rows is found from the ratio
    ``(sum w (v-z)_+)^2 / sum w (v-z)_+^2``, which falls from sum to W_top as z rises.
    """
    order = np.argsort(-v, kind="stable")
    order = order[w[order] > 0]
    v, w = v[order], w[order]
    if not len(v) or v[0] == 0 or not math.isfinite(v[0]):
        return 0.0
    scale = float(v[0])
    v = v / scale
    depth = np.append(1.0 - v, 1.0)  # the breakpoints z = v_1 >= v_2 >= ... >= v_n, 0
    weight, first, second = (
        np.concatenate([[0.0], np.cumsum(w * depth[:-1] ** power)]) for power in (0, 1, 2)
    )
    slack = weight * depth - first
    spread = weight * depth**2 - 2 * first * depth + second
    tied = depth == 0
    ratio = np.divide(slack**2, spread, out=np.zeros(len(depth)), where=spread > 0)
    ratio[tied] = weight[int(tied.sum()) - 1] if tied.all() else weight[int(tied.sum())]
    above = ratio > k
    if not above.any():
        return 0.0
    j = int(np.argmax(above))
    if depth[j] == 0:
        return scale
    mean = float(w[:j] @ v[:j]) / weight[j]
    variance = float(w[:j] @ (v[:j] - mean) ** 2) / weight[j]
    upper, lower = v[j - 1], v[j] if j < len(v) else 0.0
    if weight[j] <= k:
        return scale * float(lower)
    level = mean - math.sqrt(k * variance / (weight[j] - k))
    return scale * float(np.clip(level, lower, upper))


def saturation_level(v: Array, w: Array, r: float) -> float:
    """Return the z >= 0 with ``sum w min(1, v/z)^2 = r``, or 0 where the sum stays below r.

    At it ``sum w (v-z)_+ + sqrt(r sum w min(v,z)^2)`` is least: the rows above z are saturated,
    and z^2 = sum of the others' w v^2 over (r - the weight of the saturated).
    """
    order = np.argsort(-v, kind="stable")
    order = order[(w[order] > 0) & (v[order] > 0)]
    v, w = v[order], w[order]
    if w.sum() <= r or not len(v) or not math.isfinite(v[0]):
        return 0.0
    scale = v[0]
    v = v / scale
    saturated = np.concatenate([[0.0], np.cumsum(w)])
    rest = np.append(np.cumsum((w * v**2)[::-1])[::-1], 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        filled = saturated[1:] + rest[1:] / v**2
    j = int(np.argmax(filled > r)) if np.any(filled > r) else len(v) - 1
    room = r - saturated[j]
    upper = v[j - 1] if j else math.inf
    level = math.sqrt(rest[j] / room) if room > 0 else upper
    return float(scale * min(max(level, v[j]), upper))


def onto_capped_simplex(a: Array, bound: Array, total: float) -> Array:
    """Nearest point to a >= 0 with 0 <= x <= bound and sum x <= total.

    It is ``clip(a - z, 0, bound)`` for the least z >= 0 that meets the sum, a piecewise linear
    equation in z with breakpoints a and a - bound.
    """
    x = np.minimum(a, bound)
    if x.sum() <= total:
        return x
    breaks = np.concatenate([a, np.maximum(a - bound, 0.0)])
    slopes = np.concatenate([np.ones(len(a)), -np.ones(len(a))])
    order = np.argsort(-breaks, kind="stable")
    breaks, count = breaks[order], np.cumsum(slopes[order])
    filled = np.concatenate([[0.0], np.cumsum(count[:-1] * -np.diff(breaks))])
    j = int(np.searchsorted(filled, total, side="right"))
    z = breaks[j - 1] - (total - filled[j - 1]) / count[j - 1]
    x = np.clip(a - z, 0.0, bound)
    free = (x > 0) & (x < bound)
    if free.any():  # one exact step on the pieces found
        x[free] += (total - x.sum()) / np.count_nonzero(free)
    return np.clip(x, 0.0, bound)


def onto_ellipsoid(a: Array, w: Array, length: float, bound: Array | None = None) -> Array:
    """Nearest point to a >= 0 with ``sum x^2/w <= length^2`` (and x <= bound where given).

    It is ``min(a w / (w + z), bound)`` for the least z >= 0 that meets the length.
    """
    cap = math.inf if bound is None else bound[w > 0]
    return _to_length(a, w, length, lambda part, share: np.minimum(part * share, cap))


def onto_ellipsoid_and_simplex(a: Array, w: Array, length: float, total: float) -> Array:
    """Nearest point to a >= 0 with ``sum x^2/w <= length^2`` and ``sum x <= total``.

    It is ``(a - s)_+ w / (w + z)``: for each z the s that meets the sum is exact, and the
    length then falls in z.
    """
    return _to_length(a, w, length, lambda part, share: _thinned(part, share, total))


def _to_length(
    a: Array, w: Array, length: float, shortened: Callable[[Array, Array], Array]
) -> Array:
    """``shortened(a, w / (w + z))`` of the rows with w > 0, for the least z that meets a length."""
    present = w > 0
    x = np.zeros(len(a))
    a, w = a[present], w[present]

    def point(z: float) -> Array:
        return shortened(a, w / (w + z))

    def excess(z: float) -> float:
        return math.sqrt(float((point(z) ** 2 / w).sum())) - length

    top = math.sqrt(float(w.max(initial=0.0))) * math.sqrt(float((a**2).sum()))
    z = _falling_root(excess, top / length if length > 0 else math.inf)
    x[present] = point(z) if math.isfinite(z) else 0.0
    return x


def _thinned(a: Array, factor: Array, total: float) -> Array:
    """``factor * (a - s)_+`` for the least s >= 0 with sum at most `total`."""
    if float(factor @ a) <= total:
        return factor * a
    order = np.argsort(-a, kind="stable")
    slope = np.cumsum(factor[order])
    filled = np.cumsum(factor[order] * a[order]) - slope * a[order]
    j = int(np.searchsorted(filled, total, side="right")) - 1
    s = (float(factor[order[: j + 1]] @ a[order[: j + 1]]) - total) / slope[j]
    return factor * np.maximum(a - s, 0.0)


def _falling_root(f: Callable[[float], float], upper: float) -> float:
    """The least z >= 0 with f(z) <= 0 for a falling f with f(upper) <= 0; inf if upper is."""
    if not math.isfinite(upper):
        return upper
    if f(0.0) <= 0:
        return 0.0
    low, high = 0.0, upper
    while f(high) > 0:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2 if low > high / 4 else max(math.sqrt(low * high), high / 1e3)
        if not low < middle < high:
            break
        if f(middle) > 0:
            low = middle
        else:
            high = middle
    return high
