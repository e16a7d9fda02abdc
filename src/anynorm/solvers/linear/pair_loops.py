"""Compiled steps of the dual over the rows: pairs of variables, or single ones.

        minimise_beta   1/2 beta'H beta - y'beta,     lower <= beta <= upper

with the gradient ``H beta - y`` kept up to date; sum(beta) does not change where pairs move.
H = K + diag(shift), and ``y - K beta`` are the residuals, signed as the labels are: the cost of a
residual e is the largest ``beta e - shift/2 beta^2`` in the box.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import loop
from anynorm.design.limits import FLOOR, ROUNDING

_LAST_DIGITS = 1e-13  # violation of a margin, of order 1: below it steps are rounding
_LOOKS = 200  # at the loss while columns are dropped, each as costly as dropping one
_HOPELESS = 1.5  # times the least objective: further columns will not bring it back
_SHARE_OF_GAIN, _LEAST_SHARE = 0.1, 1e-9  # of the gain over no model, of its loss: small beside


@loop
def settle(matrix, y, box, free, beta, gradient, value, empty, tol, accuracy, most):
    """Move until the relative gap is at most `tol`, and small beside the gain over no model.

    `value` is the dual objective at the start, `empty` the loss of no model.  `accuracy`, the
    largest violation at which the gap is looked at, falls until the gap is reached: where no bound
    is touched, the gap with all slacks removed.  Returns steps, gap, accuracy, dual objective.
    """
    lower, upper, _ = box
    steps = 0
    begin, slope = beta.copy(), gradient.copy()
    while True:
        if free:
            steps += move_pairs(matrix, lower, upper, beta, gradient, accuracy, most - steps)
        else:
            steps += move_singles(matrix, lower, upper, beta, gradient, accuracy, most - steps)
        now = value - 0.5 * ((gradient + slope) * (beta - begin)).sum()
        gap = _gap_without_slack(y, box, beta, gradient, free)
        if np.isnan(gap):
            bias = _middle(lower, upper, beta, gradient) if free else 0.0
            excess = _excess(y, box, beta, gradient, bias)
            share = max(_SHARE_OF_GAIN * (empty - now), _LEAST_SHARE * empty)
            gap = max(excess / max(now, FLOOR * empty, 1e-300), tol * excess / max(share, 1e-300))
        if gap <= tol or steps >= most or accuracy < _LAST_DIGITS:
            return steps, gap, accuracy, now
        accuracy *= min(0.1, 0.2 * tol / gap)


@loop
def move_pairs(matrix, lower, upper, beta, gradient, accuracy, most):
    """Move pairs until the largest violation is below `accuracy`; returns the steps made."""
    n = beta.size
    for step in range(most):
        i, best = -1, -np.inf
        for k in range(n):
            if beta[k] < upper[k] and -gradient[k] > best:
                i, best = k, -gradient[k]
        if i < 0:
            return step
        j, worst, progress = -1, np.inf, 0.0
        for k in range(n):
            if beta[k] > lower[k]:
                worst = min(worst, -gradient[k])
                slope = best + gradient[k]
                if slope > 0:
                    bend = max(matrix[i, i] + matrix[k, k] - 2 * matrix[i, k], 1e-300)
                    if slope * slope / bend > progress:
                        j, progress = k, slope * slope / bend
        if j < 0 or best - worst <= accuracy:
            return step
        bend = max(matrix[i, i] + matrix[j, j] - 2 * matrix[i, j], 1e-300)
        size = min((best + gradient[j]) / bend, upper[i] - beta[i], beta[j] - lower[j])
        beta[i] = upper[i] if size == upper[i] - beta[i] else beta[i] + size
        beta[j] = lower[j] if size == beta[j] - lower[j] else beta[j] - size
        for k in range(n):
            gradient[k] += size * (matrix[i, k] - matrix[j, k])
    return most


@loop
def move_singles(matrix, lower, upper, beta, gradient, accuracy, most):
    """As `move_pairs`, one variable at a time."""
    n = beta.size
    for step in range(most):
        i, progress, worst = -1, 0.0, 0.0
        for k in range(n):
            if (gradient[k] < 0 and beta[k] < upper[k]) or (gradient[k] > 0 and beta[k] > lower[k]):
                worst = max(worst, abs(gradient[k]))
                gain = gradient[k] * gradient[k] / max(matrix[k, k], 1e-300)
                if gain > progress:
                    i, progress = k, gain
        if i < 0 or worst <= accuracy:
            return step
        target = beta[i] - gradient[i] / max(matrix[i, i], 1e-300)
        target = min(max(target, lower[i]), upper[i])
        size = target - beta[i]
        beta[i] = target
        for k in range(n):
            gradient[k] += size * matrix[i, k]
    return most


@loop
def _middle(lower, upper, beta, gradient):
    """A bias between the largest and the smallest that the variables that can move ask for."""
    best, worst = -np.inf, np.inf
    for k in range(beta.size):
        if beta[k] < upper[k]:
            best = max(best, -gradient[k])
        if beta[k] > lower[k]:
            worst = min(worst, -gradient[k])
    if best == -np.inf:
        return worst if worst < np.inf else 0.0
    return best if worst == np.inf else 0.5 * (best + worst)


@loop
def cost_of(residual, lower, upper, shift):
    """What one residual costs."""
    if shift > 0:
        at = min(max(residual / shift, lower), upper)
        return at * (residual - 0.5 * shift * at)
    return upper * residual if residual > 0 else lower * residual


@loop
def total_cost(scores, bias, y, box):
    """The loss at these scores."""
    lower, upper, shift = box
    total = 0.0
    for k in range(y.size):
        total += cost_of(y[k] - scores[k] - bias, lower[k], upper[k], shift[k])
    return total


@loop
def _excess(y, box, beta, gradient, bias):
    """What the rows add to primal - dual; rows at the right bound add nothing."""
    lower, upper, shift = box
    total = 0.0
    for k in range(beta.size):
        residual = -gradient[k] - shift[k] * beta[k] - bias
        cost = cost_of(residual, lower[k], upper[k], shift[k])
        total += cost - beta[k] * (residual - 0.5 * shift[k] * beta[k])
    return total


@loop
def may_move(y, box, free, beta, scores, reach):
    """Which variables are inside the box, or wish to be, or nearly so.

    `reach` is relative to the spread of the scores.
    """
    lower, upper, shift = box
    reach = reach * (scores.max() - scores.min())
    gradient = scores - y + shift * beta
    bias = _middle(lower, upper, beta, gradient) if free else 0.0
    out = np.zeros(beta.size, dtype=np.bool_)
    for k in range(beta.size):
        wish = -gradient[k] - bias
        stays = (beta[k] == lower[k] and wish < -reach) or (beta[k] == upper[k] and wish > reach)
        out[k] = lower[k] < upper[k] and not stays
    return out


@loop
def mirror(matrix):
    """Copy the part below the diagonal to the one above it."""
    for i in range(matrix.shape[0]):
        for k in range(i):
            matrix[k, i] = matrix[i, k]


@loop
def scale_columns(columns, root, rows, out):
    """``out[j] = root_j columns[j, rows]``."""
    whole = rows.size == columns.shape[1]
    for j in range(columns.shape[0]):
        if whole:
            for i in range(rows.size):
                out[j, i] = root[j] * columns[j, i]
        else:
            for i in range(rows.size):
                out[j, i] = root[j] * columns[j, rows[i]]


@loop
def touches_bound(box, beta):
    """Whether a variable is at its upper bound, or the loss is none with upper bounds alone."""
    lower, upper, shift = box
    for k in range(beta.size):
        if shift[k] > 0 or lower[k] * upper[k] < 0:
            return True
        if beta[k] != 0 and (beta[k] == lower[k] or beta[k] == upper[k]):
            return True
    return False


@loop
def _gap_without_slack(y, box, beta, gradient, free):
    """The relative gap once the scores are scaled up until all margins are at least 1.

    NaN if that is no aim: it is one for the hinge, where no variable is at its upper bound.
    """
    if touches_bound(box, beta):
        return np.nan
    scores = gradient + y
    square, gain = (beta * scores).sum(), (beta * y).sum()
    margin = least_margin(scores, y, box[1] - box[0], free)[0]
    if margin <= 0 or not square > 0:
        return np.nan
    primal = 0.5 * square / min(margin, 1.0) ** 2
    return (primal - gain + 0.5 * square) / primal


@loop
def least_margin(scores, y, room, free):
    """The least margin of the rows that have room in the box, with the best bias, and that bias."""
    up, down = np.inf, np.inf
    for k in range(y.size):
        if room[k] > 0:
            if y[k] > 0:
                up = min(up, scores[k])
            else:
                down = min(down, -scores[k])
    if not free:
        return min(up, down), 0.0
    return 0.5 * (up + down), 0.5 * (down - up)


@loop
def middle_bias(scores, y, box):
    """The middle of all optimal biases of a loss with kinks (no shift); see `anynorm.losses.bias`.

    Here because an n of some tens is gone through faster than NumPy is called.
    """
    lower, upper, _ = box
    used = upper > lower
    breaks, rise, total = (y - scores)[used], (upper - lower)[used], upper[used].sum()
    order = np.argsort(breaks)
    rounding = ROUNDING * rise.sum()
    slope, first = 0.0, np.nan
    for k in order:
        slope += rise[k]
        if np.isnan(first) and slope >= total - rounding:
            first = breaks[k]
        if slope > total + rounding:
            return first + 0.5 * (breaks[k] - first)
    return 0.0 if np.isnan(first) else first + 0.5 * (breaks[order[-1]] - first)


@loop
def drop_columns(columns, coef, order, scores, bias, y, box, free, norm, limits):
    """How many columns go, in `order`, and the scores without them; see `pruning`.

    With the hinge, what is left may be scaled up until it has no slack, by 1 over the margin that
    is returned with its bias.  `norm` is the 1-norm before.  The loss is looked at after every few
    columns.  The rows of `columns` are the columns of X.
    """
    rise, most_loss, least_margin_left = limits
    room = box[1] - box[0]
    hinge = not np.any(box[2] > 0) and not np.any(box[0] * box[1] < 0)
    left, kept = scores.copy(), scores.copy()
    least = norm + total_cost(scores, bias, y, box)
    count, dropped, kept_margin, kept_bias = 0, 0.0, 1.0, bias
    every = 1 + order.size // _LOOKS
    for k in range(order.size):
        j = order[k]
        dropped += abs(coef[j])
        for i in range(left.size):
            left[i] -= coef[j] * columns[j, i]
        if k % every < every - 1 and k < order.size - 1:
            continue
        loss = total_cost(left, bias, y, box)
        objective, margin, middle = norm - dropped + loss, 1.0, bias
        if loss > most_loss:
            objective = np.inf
        if hinge and loss > 0:
            margin, middle = least_margin(left if free else left + bias, y, room, free)
            middle = middle if free else bias
            if margin >= least_margin_left and (norm - dropped) / margin < objective:
                objective = (norm - dropped) / margin
            else:
                margin, middle = 1.0, bias
        if objective <= least + rise:
            least = min(least, objective)
            count, kept_margin, kept_bias = k + 1, margin, middle
            kept[:] = left
        elif objective > _HOPELESS * least:
            break
    return count, kept, kept_margin, kept_bias
