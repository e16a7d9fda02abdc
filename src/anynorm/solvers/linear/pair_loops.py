"""Machine code for the dual over the rows: steps of pairs of variables, or of single ones.

        minimise_beta   1/2 beta'H beta - y'beta,     lower <= beta <= upper

with the gradient ``H beta - y`` kept up to date; sum(beta) does not change where pairs move.
H = K + diag(shift), and ``y - K beta`` are the residuals, signed as the labels are: the cost of a
residual e is the largest ``beta e - shift/2 beta^2`` in the box.

`free` is 1 for a free bias; `rows` has y, lower, upper and shift; numbers are returned in `out`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from anynorm.design.addresses import Vector
from anynorm.design.limits import FLOOR, ROUNDING

_LAST_DIGITS = 1e-13  # violation of a margin, of order 1: below it steps are rounding
_HOPELESS = 1.5  # times the least objective: further columns will not bring it back
_SHARE_OF_GAIN, _LEAST_SHARE = 0.1, 1e-9  # of the gain over no model, of its loss: small beside
_TINY = 1e-300  # as good as zero, and safe to divide by
GAP, ACCURACY, VALUE = range(3)  # what `settle` takes and returns
MARGIN, BIAS = range(2)  # and others


@functools.cache
def dropping(*, sparse: bool) -> Callable[..., int]:
    """`drop_columns` as machine code, for dense or for sparse columns."""
    from anynorm.design.machine_code import machine_code  # imports LLVM: only where needed

    matrix: Any = _subtract_dense, None, None, _VECTOR
    if sparse:
        matrix = _subtract_sparse, _PLACES, Vector("int32"), _VECTOR
    kinds = _VECTOR, _PLACES, int, int, _VECTOR, _VECTOR, float, _VECTOR, _VECTOR
    return machine_code(drop_columns, *_ROWS, int, *matrix, *kinds)


@functools.cache
def code_of(function: Callable[..., int | None]) -> Callable[..., int]:
    """One of the functions below that have kinds, as machine code."""
    from anynorm.design.machine_code import machine_code  # imports LLVM: only where needed

    return machine_code(function, *_KINDS[function])


def settle(
    n, y, lower, upper, shift, free, matrix, beta, gradient, begin, slope, empty, tol, most, out
):
    """Move until the relative gap is at most `tol`, and small beside the gain over no model.

    `out` has, at the start, the dual objective and the accuracy, which is the largest violation at
    which the gap is looked at.  That falls until the gap is reached: where no bound is touched, the
    gap with all slacks removed.  `empty` is the loss of no model, `begin` and `slope` are room for
    n numbers each.  Returns the steps.
    """
    rows = y, lower, upper, shift
    steps, gap = 0, math.inf
    for k in range(n):
        begin[k], slope[k] = beta[k], gradient[k]
    value, accuracy, now = out[VALUE], out[ACCURACY], out[VALUE]
    while True:
        if free:
            steps += _move_pairs(n, matrix, lower, upper, beta, gradient, accuracy, most - steps)
        else:
            steps += _move_singles(n, matrix, lower, upper, beta, gradient, accuracy, most - steps)
        gained = 0.0
        for k in range(n):
            gained += (gradient[k] + slope[k]) * (beta[k] - begin[k])
        now = value - 0.5 * gained
        gap = _gap_without_slack(n, rows, beta, gradient, free)
        if not math.isfinite(gap):
            bias = _middle(n, lower, upper, beta, gradient) if free else 0.0
            excess = _excess(n, rows, beta, gradient, bias)
            share = max(_SHARE_OF_GAIN * (empty - now), _LEAST_SHARE * empty)
            gap = excess / max(max(now, FLOOR * empty), _TINY)
            gap = max(gap, tol * excess / max(share, _TINY))
        if gap <= tol or steps >= most or accuracy < _LAST_DIGITS:
            break
        accuracy *= min(0.1, 0.2 * tol / gap)
    out[GAP], out[ACCURACY], out[VALUE] = gap, accuracy, now
    return steps


def _move_pairs(n, matrix, lower, upper, beta, gradient, accuracy, most):
    """Move pairs until the largest violation is below `accuracy`; returns the steps made."""
    for step in range(most):
        i, best = -1, -math.inf
        for k in range(n):
            if beta[k] < upper[k] and -gradient[k] > best:
                i, best = k, -gradient[k]
        if i < 0:
            return step
        j, worst, progress = -1, math.inf, 0.0
        first, own = i * n, matrix[i * n + i]
        for k in range(n):
            if beta[k] > lower[k]:
                worst = min(worst, -gradient[k])
                slope = best + gradient[k]
                if slope > 0:
                    bend = max(own + matrix[k * n + k] - 2.0 * matrix[first + k], _TINY)
                    if slope * slope / bend > progress:
                        j, progress = k, slope * slope / bend
        if j < 0 or best - worst <= accuracy:
            return step
        second = j * n
        bend = max(own + matrix[second + j] - 2.0 * matrix[first + j], _TINY)
        up, down = upper[i] - beta[i], beta[j] - lower[j]
        size = min(min((best + gradient[j]) / bend, up), down)
        beta[i] = upper[i] if size == up else beta[i] + size
        beta[j] = lower[j] if size == down else beta[j] - size
        for k in range(n):
            gradient[k] += size * (matrix[first + k] - matrix[second + k])
    return most


def _move_singles(n, matrix, lower, upper, beta, gradient, accuracy, most):
    """As `_move_pairs`, one variable at a time."""
    for step in range(most):
        i, progress, worst = -1, 0.0, 0.0
        for k in range(n):
            if (gradient[k] < 0 and beta[k] < upper[k]) or (gradient[k] > 0 and beta[k] > lower[k]):
                worst = max(worst, abs(gradient[k]))
                gain = gradient[k] * gradient[k] / max(matrix[k * n + k], _TINY)
                if gain > progress:
                    i, progress = k, gain
        if i < 0 or worst <= accuracy:
            return step
        first = i * n
        target = beta[i] - gradient[i] / max(matrix[first + i], _TINY)
        target = min(max(target, lower[i]), upper[i])
        size = target - beta[i]
        beta[i] = target
        for k in range(n):
            gradient[k] += size * matrix[first + k]
    return most


def _middle(n, lower, upper, beta, gradient):
    """A bias between the largest and the smallest that the variables that can move ask for."""
    best, worst = -math.inf, math.inf
    for k in range(n):
        if beta[k] < upper[k]:
            best = max(best, -gradient[k])
        if beta[k] > lower[k]:
            worst = min(worst, -gradient[k])
    if best == -math.inf:
        return worst if worst < math.inf else 0.0
    return best if worst == math.inf else 0.5 * (best + worst)


def cost_of(residual, lower, upper, shift):
    """What one residual costs."""
    if shift > 0:
        at = min(max(residual / shift, lower), upper)
        return at * (residual - 0.5 * shift * at)
    return upper * residual if residual > 0 else lower * residual


def total_cost(n, y, lower, upper, shift, scores, bias, out):
    """The loss at these scores."""
    out[0] = _total_cost(n, (y, lower, upper, shift), scores, bias)


def _total_cost(n, rows, scores, bias):
    y, lower, upper, shift = rows
    total = 0.0
    for k in range(n):
        total += cost_of(y[k] - scores[k] - bias, lower[k], upper[k], shift[k])
    return total


def _excess(n, rows, beta, gradient, bias):
    """What the rows add to primal - dual; rows at the right bound add nothing."""
    _, lower, upper, shift = rows
    total = 0.0
    for k in range(n):
        residual = -gradient[k] - shift[k] * beta[k] - bias
        cost = cost_of(residual, lower[k], upper[k], shift[k])
        total += cost - beta[k] * (residual - 0.5 * shift[k] * beta[k])
    return total


def may_move(n, y, lower, upper, shift, free, beta, scores, reach, gradient, places):
    """Which variables are inside the box, or wish to be, or nearly so; returns how many.

    `reach` is relative to the spread of the scores; `gradient` is room for n numbers.
    """
    least, largest = math.inf, -math.inf
    for k in range(n):
        least, largest = min(least, scores[k]), max(largest, scores[k])
        gradient[k] = scores[k] - y[k] + shift[k] * beta[k]
    near = reach * (largest - least)
    bias = _middle(n, lower, upper, beta, gradient) if free else 0.0
    count = 0
    for k in range(n):
        wish = -gradient[k] - bias
        stays = (beta[k] == lower[k] and wish < -near) or (beta[k] == upper[k] and wish > near)
        if lower[k] < upper[k] and not stays:
            places[count] = k
            count += 1
    return count


def mirror(n, matrix):
    """Copy the part above the diagonal to the one below it."""
    for i in range(n):
        for k in range(i):
            matrix[i * n + k] = matrix[k * n + i]


def _touches_bound(n, rows, beta):
    """Whether a variable is at its upper bound, or the loss is none with upper bounds alone."""
    _, lower, upper, shift = rows
    for k in range(n):
        if shift[k] > 0 or lower[k] * upper[k] < 0:
            return True
        if beta[k] != 0 and (beta[k] == lower[k] or beta[k] == upper[k]):
            return True
    return False


def _gap_without_slack(n, rows, beta, gradient, free):
    """The relative gap once the scores are scaled up until all margins are at least 1.

    Infinite if that is no aim: it is one for the hinge, where no variable is at its upper bound.
    """
    if _touches_bound(n, rows, beta):
        return math.inf
    y, square, gain = rows[0], 0.0, 0.0
    for k in range(n):
        square += beta[k] * (gradient[k] + y[k])
        gain += beta[k] * y[k]
    margin = _least_margin(n, rows, gradient, 1.0, 0.0, free)[0]
    if margin <= 0 or not square > 0:
        return math.inf
    least = min(margin, 1.0)
    primal = 0.5 * square / (least * least)
    return (primal - gain + 0.5 * square) / primal


def least_margin(n, y, lower, upper, shift, free, beta, scores, bias, out):
    """The least margin with the best bias, and that bias; 0 unless a hinge touches no bound."""
    rows = y, lower, upper, shift
    out[MARGIN], out[BIAS] = 0.0, bias
    if not _touches_bound(n, rows, beta):
        out[MARGIN], out[BIAS] = _least_margin(n, rows, scores, 0.0, bias, free)


def _least_margin(n, rows, part, labels, bias, free):
    """The least margin of the rows that have room in the box, with the best bias, and that bias.

    The scores are ``part + labels * y``.
    """
    y, lower, upper, _ = rows
    up, down = math.inf, math.inf
    for k in range(n):
        if upper[k] > lower[k]:
            score = part[k] + labels * y[k]
            if y[k] > 0:
                up = min(up, score)
            else:
                down = min(down, -score)
    if free:
        return 0.5 * (up + down), 0.5 * (down - up)
    return min(up + bias, down - bias), bias


def middle_bias(n, y, lower, upper, scores, order, out):
    """The middle of all optimal biases of a loss with kinks (no shift); see `anynorm.losses.bias`.

    `order` sorts ``y - scores``.
    """
    rises, total = 0.0, 0.0
    for k in range(n):
        if upper[k] > lower[k]:
            rises += upper[k] - lower[k]
            total += upper[k]
    rounding = ROUNDING * rises
    slope, first, last, found = 0.0, 0.0, 0.0, False
    for place in range(n):
        k = order[place]
        if upper[k] > lower[k]:
            slope += upper[k] - lower[k]
            last = y[k] - scores[k]
            if not found and slope >= total - rounding:
                first, found = last, True
            if slope > total + rounding:
                break
    out[0] = first + 0.5 * (last - first) if found else 0.0


def drop_columns(
    n,
    y,
    lower,
    upper,
    shift,
    free,
    subtract,
    starts,
    places,
    columns,
    coef,
    order,
    count,
    every,
    scores,
    left,
    norm,
    limits,
    out,
):
    """How many columns go, of the first `count` in `order`; see `pruning`.

    `scores` become those without them; `out` has the bias.  With the hinge, what is left may be
    scaled up until it has no slack, by 1 over the margin that is left in `out` with its bias.
    `norm` is the 1-norm before.  The loss is looked at after `every` so many columns.  `subtract`
    knows how the columns of X are stored; `left` is room for n numbers.
    """
    rows, bias = (y, lower, upper, shift), out[BIAS]
    hinge = True
    for i in range(n):
        hinge = hinge and not (shift[i] > 0 or lower[i] * upper[i] < 0)
        left[i] = scores[i]
    rise, most_loss, least_margin_left = limits[0], limits[1], limits[2]
    least = norm + _total_cost(n, rows, scores, bias)
    gone, dropped = 0, 0.0
    out[MARGIN] = 1.0
    until_look = every
    for k in range(count):
        size = coef[order[k]]
        dropped += abs(size)
        subtract(n, starts, places, columns, order[k], size, left)
        until_look -= 1
        if until_look > 0 and k < count - 1:
            continue
        until_look = every
        loss = _total_cost(n, rows, left, bias)
        objective, margin, middle = norm - dropped + loss, 1.0, bias
        if loss > most_loss:
            objective = math.inf
        if hinge and loss > 0:
            margin, middle = _least_margin(n, rows, left, 0.0, bias, free)
            if margin >= least_margin_left and (norm - dropped) / margin < objective:
                objective = (norm - dropped) / margin
            else:
                margin, middle = 1.0, bias
        if objective <= least + rise:
            least = min(least, objective)
            gone, out[MARGIN], out[BIAS] = k + 1, margin, middle
            for i in range(n):
                scores[i] = left[i]
        elif objective > _HOPELESS * least:
            break
    return gone


def _subtract_dense(n, _, __, columns, j, size, left):
    """Subtract size * column j of X, which is row j of `columns`."""
    for i in range(n):
        left[i] -= size * columns[j * n + i]


def _subtract_sparse(_, starts, places, entries, j, size, left):
    """Subtract size * column j of X, whose entries begin at ``starts[j]``, in rows `places`."""
    for e in range(starts[j], starts[j + 1]):
        left[places[e]] -= size * entries[e]


_VECTOR, _PLACES = Vector(), Vector("int64")
_ROWS: Any = int, _VECTOR, _VECTOR, _VECTOR, _VECTOR
_KINDS: dict[Callable[..., Any], Any] = {
    settle: (*_ROWS, int, *[_VECTOR] * 5, float, float, int, _VECTOR),
    total_cost: (*_ROWS, _VECTOR, float, _VECTOR),
    may_move: (*_ROWS, int, _VECTOR, _VECTOR, float, _VECTOR, _PLACES),
    mirror: (int, _VECTOR),
    least_margin: (*_ROWS, int, _VECTOR, _VECTOR, float, _VECTOR),
    middle_bias: (*_ROWS[:4], _VECTOR, _PLACES, _VECTOR),
}
