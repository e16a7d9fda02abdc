"""Compiled Newton steps for dense problems of few columns, many to a call.

        minimise_{u, b}   1/2 ||u||^2 + precision/2 b^2 + sum_i cost_i(e_i),   e = y - A u - b

with A = X V and beta in the box of the losses' duals.  As in `augmented_lagrangian` and `newton`: a
loss with kinks is replaced by its proximal form around the last beta, which Newton steps minimise,
and beta moves on; smooth losses are taken as they are.  The bias is at its exact minimiser at every
step, so that 1/2 ||u - A'beta||^2 and what the rows miss add up to the gap.

Rows enter and leave the Newton matrix one by one: X_J' D X_J, kept without V and without C, serves
all rounds of a walk and all values of C.

Vectors over the rows are rows of one table, those over the columns rows of another; loops are given
the list of all tables (`design/addresses.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable

from anynorm.design.addresses import Length, Rows
from anynorm.design.machine_code import machine_code

# The tables in the order of their list: for loops, their rows by number and the length of these.
column = Rows(0)  # of X
row, n_rows = Rows(1), Length(1)
vector, n_columns = Rows(2), Length(2)  # over the columns
number = Rows(3)  # one row, number 0
gram, factor = Rows(4), Rows(5)
place = Rows(6, "int64")  # of the rows that change their weights; one row, longer than they are

ROW_NAMES = range(12)
LABEL, LOWER, UPPER, SHIFT, WEIGHT = ROW_NAMES[:5]
STIFF, CENTRE = ROW_NAMES[5:7]  # 1 over the smoothing; the proximal centre
BETA, SCORE, ALONG = ROW_NAMES[7:10]  # the last two are A u and A d
MEMBER, CHANGE = ROW_NAMES[10:]  # the weight with which it is in the Gram matrix; how that changes

VECTOR_NAMES = range(10)
ROOT, U, PULLED, STEP = VECTOR_NAMES[:4]  # V; u; A'beta; the Newton step
SUM, SCALE = VECTOR_NAMES[4:6]  # weighted sums of X's rows in the Gram matrix; for a unit diagonal
FIRST, SECOND, THIRD, FOURTH = VECTOR_NAMES[6:]  # rows of X on their way to the Gram matrix

NUMBER_NAMES = range(9)
BIAS, PRECISION = NUMBER_NAMES[:2]
SIGMA, GAP, UPDATES = NUMBER_NAMES[2:5]  # 1 over the smoothing width; updates of the Gram matrix
CENTRED, LAST = NUMBER_NAMES[5:7]  # whether the centres are set; the least gap at earlier ones
STALLED, MORE = NUMBER_NAMES[7:]  # outer steps that hardly lowered it; steps made for u = A'beta
MORE_PLACES = 3  # than rows: they are taken four at a time

_INNER_SHARE = 0.1  # of the outer gap: what Newton may leave without spoiling the next centre
_GROWTH = 2.0  # of sigma where the gap falls slowly
_FAST = 0.1  # of the last gap: where it falls to this, the present width does
_MOST_STALLED = 10  # outer steps without half the gap, of ever less smoothing: rounding, or ties
_MOST_MORE = 5  # steps at the most for u = A'beta: the last ones end at rounding
_GRAM_UPDATES = 20  # of the Gram matrix in a row, before it is summed anew to remove rounding
_LEAST_PIVOT = 1e-12  # of a unit diagonal: what rounding may have left
_FLAT = 0.1  # of the first slope: a step is long enough where the slope has fallen to it
_TINY = 1e-300  # as good as zero, and safe to divide by
_BALANCED = 1e-14  # of sum |beta|: what the bias may leave of sum(beta)


def newton_loop() -> Callable[..., int]:
    """`newton_steps` as machine code."""
    return machine_code(newton_steps, int, float, float, float, int)


def newton_steps(tables, tol, sharp, floor, most):
    """Make at most `most` Newton steps until the relative gap is at most `tol`; returns the steps.

    A few more steps bring u to A'beta, until half their squared distance is at most `sharp`.  The
    gap is left in `number`, infinite where the method stalls.  Both are relative to the primal
    value, or to `floor` where that is larger.  The next call goes on where this one ends.
    """
    numbers = number(tables, 0)
    steps = 0
    while numbers[STALLED] <= _MOST_STALLED:
        if numbers[CENTRED] == 0.0:
            _stiffen(tables, numbers[SIGMA])
            numbers[CENTRED] = 1.0
        gap = math.inf
        while True:
            _balance(tables)
            primal, outer, inner = _gap(tables)
            scale = max(max(primal, floor), _TINY)
            gap = (outer + inner) / scale
            numbers[GAP] = gap
            if steps >= most:
                return steps
            if gap <= tol:
                if inner <= sharp * scale or numbers[MORE] == _MOST_MORE:
                    return steps
                numbers[MORE] += 1.0
            elif inner <= _INNER_SHARE * outer:
                break
            _update_gram(tables)
            tilt = _direction(tables)
            _times(tables, vector(tables, STEP), row(tables, ALONG))
            # So near to the optimum, rounding hides whether a step pays; a whole one does.
            size = _step_length(tables, tilt) if gap > tol else 1.0
            steps += 1
            if size == 0.0:
                break
            _add(n_columns(tables), size, vector(tables, STEP), vector(tables, U))
            _add(n_rows(tables), size, row(tables, ALONG), row(tables, SCORE))
            numbers[BIAS] += size * tilt
        numbers[STALLED] = 0.0 if gap < 0.5 * numbers[LAST] else numbers[STALLED] + 1.0
        if gap > _FAST * numbers[LAST]:
            numbers[SIGMA] *= _GROWTH
        numbers[LAST] = min(numbers[LAST], gap)
        numbers[CENTRED] = 0.0
    numbers[GAP] = math.inf
    return steps


def _add(n, size, vector, out):
    """Out += size * vector."""
    for i in range(n):
        out[i] += size * vector[i]


def _stiffen(tables, sigma):
    """New centres; the smoothing, none for a loss that is smooth or where the box is a point."""
    lower, upper, shift = row(tables, LOWER), row(tables, UPPER), row(tables, SHIFT)
    stiff, centre, beta = row(tables, STIFF), row(tables, CENTRE), row(tables, BETA)
    for i in range(n_rows(tables)):
        width = sigma * (upper[i] - lower[i])
        stiff[i] = 0.0 if shift[i] > 0 or width < _TINY else 1.0 / width
        centre[i] = beta[i]


def _box(tables):
    """What the answer of a row depends on."""
    lower, upper, shift = row(tables, LOWER), row(tables, UPPER), row(tables, SHIFT)
    return lower, upper, shift, row(tables, STIFF), row(tables, CENTRE)


def _answer(box, i, residual):
    """The beta of one row at a residual, and its curvature."""
    lower, upper, shift, stiff, centre = box
    bend = shift[i] + stiff[i]
    if bend == 0.0:
        return lower[i], 0.0
    at = (residual + stiff[i] * centre[i]) / bend
    if at <= lower[i]:
        return lower[i], 0.0
    if at >= upper[i]:
        return upper[i], 0.0
    return at, 1.0 / bend


def _balance(tables):
    """The bias at which precision * b = sum(beta), by bracketed Newton steps, and that beta."""
    n, numbers, box = n_rows(tables), number(tables, 0), _box(tables)
    label, score, betas = row(tables, LABEL), row(tables, SCORE), row(tables, BETA)
    precision, bias = numbers[PRECISION], numbers[BIAS]
    low, high, reach = -math.inf, math.inf, 1.0
    if not math.isfinite(precision):
        bias = 0.0
    for _ in range(100):  # halvings of a bracket end at its last digit
        total, size, bend = 0.0, 0.0, 0.0
        for i in range(n):
            beta, curvature = _answer(box, i, label[i] - score[i] - bias)
            betas[i] = beta
            total += beta
            size += abs(beta)
            bend += curvature
        if not math.isfinite(precision):
            break
        miss = total - precision * bias
        if abs(miss) <= _BALANCED * size:
            break
        if miss > 0:
            low = bias
        else:
            high = bias
        bend += precision
        guess = bias + miss / bend if bend > 0 else math.inf
        if not low < guess < high or not math.isfinite(guess):
            if math.isfinite(low) and math.isfinite(high):
                guess = 0.5 * (low + high)
            else:
                guess = bias + reach if miss > 0 else bias - reach
                reach *= 2.0
        if not low < guess < high:
            break
        bias = guess
    numbers[BIAS] = bias


def _gap(tables):
    """The primal value, what the rows miss of the optimum, and what u misses; A'beta on the way."""
    lower, upper, shifts = row(tables, LOWER), row(tables, UPPER), row(tables, SHIFT)
    label, score, betas = row(tables, LABEL), row(tables, SCORE), row(tables, BETA)
    n, numbers = n_rows(tables), number(tables, 0)
    bias, loss, outer = numbers[BIAS], 0.0, 0.0
    for i in range(n):
        residual, beta, shift = label[i] - score[i] - bias, betas[i], shifts[i]
        at = upper[i] if residual > 0 else lower[i]
        if shift > 0:
            at = min(max(residual / shift, lower[i]), upper[i])
        cost = at * (residual - 0.5 * shift * at)
        loss += cost
        outer += cost - beta * (residual - 0.5 * shift * beta)
    root, us, pulled = vector(tables, ROOT), vector(tables, U), vector(tables, PULLED)
    square, inner = 0.0, 0.0
    for j in range(n_columns(tables)):
        values, total = column(tables, j), 0.0
        for i in range(n):
            total += values[i] * betas[i]
        total *= root[j]
        pulled[j] = total
        square += us[j] * us[j]
        inner += (us[j] - total) * (us[j] - total)
    if math.isfinite(numbers[PRECISION]):
        square += numbers[PRECISION] * bias * bias
    return 0.5 * square + loss, outer, 0.5 * inner


def _times(tables, factors, out):
    """Out = A times a vector over the columns."""
    n, m, root = n_rows(tables), n_columns(tables), vector(tables, ROOT)
    for i in range(n):
        out[i] = 0.0
    j = 0
    while j + 4 <= m:
        a, b = column(tables, j), column(tables, j + 1)
        c, d = column(tables, j + 2), column(tables, j + 3)
        s, t = root[j] * factors[j], root[j + 1] * factors[j + 1]
        v, w = root[j + 2] * factors[j + 2], root[j + 3] * factors[j + 3]
        for i in range(n):
            out[i] += s * a[i] + t * b[i] + v * c[i] + w * d[i]
        j += 4
    while j < m:
        _add(n, root[j] * factors[j], column(tables, j), out)
        j += 1


def _update_gram(tables):
    """Bring the Gram matrix of the rows with curvature up to date."""
    n, m, numbers, box = n_rows(tables), n_columns(tables), number(tables, 0), _box(tables)
    label, score, weight = row(tables, LABEL), row(tables, SCORE), row(tables, WEIGHT)
    member, change, places = row(tables, MEMBER), row(tables, CHANGE), place(tables, 0)
    sums, bias = vector(tables, SUM), numbers[BIAS]
    moved, members = 0, 0
    for i in range(n):
        curvature = _answer(box, i, label[i] - score[i] - bias)[1]
        wanted = weight[i] if curvature > 0 else 0.0
        change[i] = wanted - member[i]
        member[i] = wanted
        moved += change[i] != 0
        members += wanted > 0
    if 2 * moved > members or numbers[UPDATES] >= _GRAM_UPDATES:
        for i in range(n):
            change[i] = member[i]
        for j in range(m):
            sums[j] = 0.0
            entries = gram(tables, j)
            for k in range(m):
                entries[k] = 0.0
        numbers[UPDATES] = 0.0
    elif moved > 0:
        numbers[UPDATES] += 1.0
    moved = 0
    for i in range(n):
        if change[i] != 0:
            places[moved] = i
            moved += 1
    for more in range(MORE_PLACES):
        places[moved + more] = 0
    for start in range(0, moved, 4):
        _add_squares(tables, start, moved)


def _add_squares(tables, start, stop):
    """Gram += X_i' change_i X_i for four rows, below the diagonal, and the sums of rows."""
    m, places, change = n_columns(tables), place(tables, 0), row(tables, CHANGE)
    sums, one, two = vector(tables, SUM), vector(tables, FIRST), vector(tables, SECOND)
    three, four = vector(tables, THIRD), vector(tables, FOURTH)
    e, f, g, h = places[start], places[start + 1], places[start + 2], places[start + 3]
    s, t = change[e], change[f] if start + 1 < stop else 0.0
    v = change[g] if start + 2 < stop else 0.0
    w = change[h] if start + 3 < stop else 0.0
    for j in range(m):
        values = column(tables, j)
        one[j], two[j], three[j], four[j] = values[e], values[f], values[g], values[h]
    for j in range(m):
        a, b, c, d = s * one[j], t * two[j], v * three[j], w * four[j]
        sums[j] += a + b + c + d
        out = gram(tables, j)
        for k in range(j + 1):
            out[k] += a * one[k] + b * two[k] + c * three[k] + d * four[k]


def _direction(tables):
    """The Newton step for u, and the change of the bias that goes with it, which is returned."""
    m, precision, member = n_columns(tables), number(tables, 0)[PRECISION], row(tables, MEMBER)
    shift, stiff = row(tables, SHIFT), row(tables, STIFF)
    weight, curvature = 0.0, 0.0
    for i in range(n_rows(tables)):
        if member[i] > 0:
            weight += member[i]
            curvature = 1.0 / ((shift[i] + stiff[i]) * member[i])  # the same for all rows
    drawn = 0.0
    if weight > 0 and math.isfinite(precision):
        drawn = curvature * curvature / (precision + curvature * weight)
    root, step, sums = vector(tables, ROOT), vector(tables, STEP), vector(tables, SUM)
    u, pulled, scale = vector(tables, U), vector(tables, PULLED), vector(tables, SCALE)
    for j in range(m):
        entries, own = factor(tables, j), gram(tables, j)
        here, pull = curvature * root[j], drawn * root[j] * sums[j]
        for k in range(j + 1):
            entries[k] = root[k] * (here * own[k] - pull * sums[k])
        entries[j] += 1.0
        scale[j] = 1.0 / math.sqrt(max(entries[j], 1.0))
        step[j] = (pulled[j] - u[j]) * scale[j]
    _factorise(tables, m, scale)
    for j in range(m):
        entries, total = factor(tables, j), step[j]
        for k in range(j):
            total -= entries[k] * step[k]
        step[j] = total / entries[j]
    for j in range(m - 1, -1, -1):
        entries = factor(tables, j)
        step[j] = step[j] / entries[j]
        _add(j, -step[j], entries, step)
    along = 0.0
    for j in range(m):
        step[j] *= scale[j]
        along += sums[j] * root[j] * step[j]
    if weight == 0 or not math.isfinite(precision):
        return 0.0
    return -curvature * along / (precision + curvature * weight)


def _factorise(tables, m, scale):
    """The Cholesky factor of a matrix scaled to a unit diagonal, in its place."""
    for i in range(m):
        entries = factor(tables, i)
        for j in range(i + 1):
            others, total = factor(tables, j), entries[j] * scale[i] * scale[j]
            for k in range(j):
                total -= entries[k] * others[k]
            entries[j] = math.sqrt(max(total, _LEAST_PIVOT)) if i == j else total / others[j]


def _step_length(tables, tilt):
    """How far to go: until the slope has nearly vanished, by false position; 0 where it rises."""
    numbers, u, step = number(tables, 0), vector(tables, U), vector(tables, STEP)
    linear, quadratic = 0.0, 0.0
    for j in range(n_columns(tables)):
        linear += u[j] * step[j]
        quadratic += step[j] * step[j]
    if math.isfinite(numbers[PRECISION]):
        linear += numbers[PRECISION] * numbers[BIAS] * tilt
        quadratic += numbers[PRECISION] * tilt * tilt
    first = linear - _work(tables, tilt, 0.0)
    if not first < 0.0:
        return 0.0
    low, low_slope, high, high_slope = 0.0, first, math.inf, math.inf
    size, until_halving = 1.0, 2
    for _ in range(60):  # a bracket halved twenty times and more
        here = linear + size * quadratic - _work(tables, tilt, size)
        if abs(here) <= _FLAT * abs(first):
            return size
        if here < 0:
            low, low_slope = size, here
        else:
            high, high_slope = size, here
        if not math.isfinite(high):
            size *= 4.0
        elif until_halving == 0:
            size = 0.5 * (low + high)
        else:
            size = low + (high - low) * (-low_slope) / (high_slope - low_slope)
        until_halving = 2 if until_halving == 0 else until_halving - 1
    return low


def _work(tables, tilt, size):
    """What beta has gained per step so far along the way: ``sum_i beta_i (A d + tilt)_i``."""
    label, score, along = row(tables, LABEL), row(tables, SCORE), row(tables, ALONG)
    box, bias, total = _box(tables), number(tables, 0)[BIAS], 0.0
    for i in range(n_rows(tables)):
        way = along[i] + tilt
        beta = _answer(box, i, label[i] - score[i] - bias - size * way)[0]
        total += beta * way
    return total
