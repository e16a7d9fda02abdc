"""The exact optimal bias: all b that minimise g(1 - y (f + b)) for given scores f."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from anynorm.losses.curves import Derivatives
    from anynorm.losses.loss import Loss

Array = NDArray[np.float64]
Interval = tuple[float, float]


def optimal_bias_interval(
    loss: Loss, scores: Array, y: Array, C: float, weights: Array | None = None
) -> Interval:
    """Return the ends of the interval of all optimal biases, which are the same for any C.

    An end is infinite where only one class has weight and the constraints are inequalities.
    The logistic loss then has no minimum at all: the interval is the one point that gives
    every example a margin of at least 64, at which the loss is below 1e-27 per example.
    Where scores are no numbers, neither are the ends.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.losses.bias import optimal_bias_interval
    >>> scores, y = np.array([3.0, -3.0]), np.array([1.0, -1.0])
    >>> optimal_bias_interval(get_loss("hinge"), scores, y, C=1.0)
    (-2.0, 2.0)
    """
    scores = np.asarray(scores, dtype=np.float64)
    if not np.isfinite(scores).all():
        return math.nan, math.nan
    return loss.bias_interval(scores, y, weights)


def optimal_bias(
    loss: Loss, scores: Array, y: Array, C: float, weights: Array | None = None
) -> float:
    """Return the middle of the interval of optimal biases, or its finite end.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.losses.bias import optimal_bias
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


def balanced_bias(
    curve: Derivatives, y: Array, scores: Array, start: float = 0.0, precision: float = 0.0
) -> float:
    """Return the root of ``precision * b = y' h'(1 - y (scores + b))`` by bracketed Newton steps.

    It is the best bias of a smooth loss, whose penalty is ``precision/2 b^2``.
    """
    if np.isinf(precision):
        return 0.0
    bias = start
    low, high, reach = -np.inf, np.inf, 1.0
    for _ in range(100):
        pull, size, bend = curve.totals(y, scores, bias)
        here = precision * bias - pull
        if abs(here) <= 1e-15 * size:
            return bias
        if here < 0:
            low = bias
        else:
            high = bias
        curvature = precision + bend
        guess = bias - here / curvature if curvature > 0 else np.nan
        if not low < guess < high or np.isnan(guess):
            if np.isinf(low) or np.isinf(high):
                guess = bias - np.sign(here) * reach
                reach *= 2.0
            else:
                guess = 0.5 * (low + high)
        if guess == bias or guess in (low, high):
            return bias
        bias = guess
    return bias
