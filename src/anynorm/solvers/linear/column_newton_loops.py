"""Compiled Newton steps for dense problems of few columns, many to a call.

        minimise_{u, b}   1/2 ||u||^2 + precision/2 b^2 + sum_i cost_i(e_i),   e = y - A u - b

with A = X V and beta in the box of the losses' duals.  As in `augmented_lagrangian` and `newton`: a
loss with kinks is replaced by its proximal form around the last beta, which Newton steps minimise,
and beta moves on; smooth losses are taken as they are.  The bias is at its exact minimiser at every
step, so that 1/2 ||u - A'beta||^2 and what the rows miss add up to the gap.

Rows enter and leave the Newton matrix one by one: X_J' D X_J, kept without V and without C, serves
all rounds of a walk and all values of C.

Vectors over the rows are rows of one table, those over the columns rows of another.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inlined, inner_loop, loop

LABEL, LOWER, UPPER, SHIFT, WEIGHT, STIFF, CENTRE, BETA, SCORE, ALONG, MEMBER = range(11)
ROW_VECTORS = 11
"""Labels, bounds, shift and weight of a row; 1 over its smoothing; the proximal centre; beta; A u
and A d; the weight with which it is in the Gram matrix."""

ROOT, U, PULLED, STEP, SUM, SPARE = range(6)
COLUMN_VECTORS = 6
"""V; u; A'beta; the Newton step; weighted sums of X's rows in the Gram matrix; working space."""

BIAS, PRECISION, SIGMA, GAP, UPDATES = range(5)
NUMBERS = 5
"""The bias and its precision; 1 over the smoothing width; the gap; updates of the Gram matrix."""

_INNER_SHARE = 0.1  # of the outer gap: what Newton may leave without spoiling the next centre
_GROWTH = 2.0  # of sigma where the gap falls slowly
_FAST = 0.1  # of the last gap: where it falls to this, the present width does
_STALLED = 10  # outer steps without half the gap, of ever less smoothing: rounding, or ties
_MORE = 5  # steps at the most for u = A'beta: the last ones end at rounding
_GRAM_UPDATES = 20  # of the Gram matrix in a row, before it is summed anew to remove rounding
_LEAST_PIVOT = 1e-12  # of a unit diagonal: what rounding may have left
_FLAT = 0.1  # of the first slope: a step is long enough where the slope has fallen to it
_TINY = 1e-300  # as good as zero, and safe to divide by
_BALANCED = 1e-14  # of sum |beta|: what the bias may leave of sum(beta)


@loop
def newton_steps(columns, gram, factor, rows, table, numbers, tol, sharp, floor, most):
    """Make at most `most` Newton steps until the relative gap is at most `tol`; returns the steps.

    A few more steps bring u to A'beta, until half their squared distance is at most `sharp`.  The
    gap is left in `numbers`, infinite where the method stalls.  Both are relative to the primal
    value, or to `floor` where that is larger.
    """
    steps, last, stalled, more = 0, np.inf, 0, 0
    while True:
        rows[CENTRE] = rows[BETA]
        _stiffen(rows, numbers[SIGMA])
        while True:
            _balance(rows, numbers)
            primal, outer, inner = _gap(columns, rows, table, numbers)
            scale = max(primal, floor, _TINY)
            gap = (outer + inner) / scale
            numbers[GAP] = gap
            if steps >= most:
                return steps
            if gap <= tol:
                if inner <= sharp * scale or more == _MORE:
                    return steps
                more += 1
            elif inner <= _INNER_SHARE * outer:
                break
            _update_gram(columns, gram, rows, table, numbers)
            tilt = _direction(gram, factor, rows, table, numbers)
            _times(columns, table, STEP, rows, ALONG)
            # So near to the optimum, rounding hides whether a step pays; a whole one does.
            size = _step_length(rows, table, numbers, tilt) if gap > tol else 1.0
            steps += 1
            if size == 0.0:
                break
            table[U] += size * table[STEP]
            rows[SCORE] += size * rows[ALONG]
            numbers[BIAS] += size * tilt
        stalled = 0 if gap < 0.5 * last else stalled + 1
        if stalled > _STALLED:
            numbers[GAP] = np.inf
            return steps
        if gap > _FAST * last:
            numbers[SIGMA] *= _GROWTH
        last = min(last, gap)


@inlined
def _stiffen(rows, sigma):
    """The smoothing of the rows: none for a loss that is smooth, or where the box is a point."""
    for i in range(rows.shape[1]):
        width = sigma * (rows[UPPER, i] - rows[LOWER, i])
        rows[STIFF, i] = 0.0 if rows[SHIFT, i] > 0 or width < _TINY else 1.0 / width


@inner_loop
def _answer(rows, i, residual):
    """The beta of one row at a residual, and its curvature."""
    lower, upper = rows[LOWER, i], rows[UPPER, i]
    bend = rows[SHIFT, i] + rows[STIFF, i]
    if bend == 0.0:
        return lower, 0.0
    at = (residual + rows[STIFF, i] * rows[CENTRE, i]) / bend
    if at <= lower:
        return lower, 0.0
    return (upper, 0.0) if at >= upper else (at, 1.0 / bend)


@inner_loop
def _balance(rows, numbers):
    """The bias at which precision * b = sum(beta), by bracketed Newton steps, and that beta."""
    n, precision = rows.shape[1], numbers[PRECISION]
    bias, low, high, reach = numbers[BIAS], -np.inf, np.inf, 1.0
    if np.isinf(precision):
        bias = 0.0
    for _ in range(100):  # halvings of a bracket end at its last digit
        total, size, bend = 0.0, 0.0, 0.0
        for i in range(n):
            beta, curvature = _answer(rows, i, rows[LABEL, i] - rows[SCORE, i] - bias)
            rows[BETA, i] = beta
            total += beta
            size += abs(beta)
            bend += curvature
        if np.isinf(precision):
            break
        miss = total - precision * bias
        if abs(miss) <= _BALANCED * size:
            break
        if miss > 0:
            low = bias
        else:
            high = bias
        bend += precision
        guess = bias + miss / bend if bend > 0 else np.inf
        if not low < guess < high or np.isinf(guess):
            if np.isinf(low) or np.isinf(high):
                guess = bias + reach if miss > 0 else bias - reach
                reach *= 2.0
            else:
                guess = 0.5 * (low + high)
        if guess in (bias, low, high):
            break
        bias = guess
    numbers[BIAS] = bias


@inlined
def _gap(columns, rows, table, numbers):
    """The primal value, what the rows miss of the optimum, and what u misses; A'beta on the way."""
    bias, loss, outer = numbers[BIAS], 0.0, 0.0
    for i in range(rows.shape[1]):
        residual, beta, shift = (
            rows[LABEL, i] - rows[SCORE, i] - bias,
            rows[BETA, i],
            rows[SHIFT, i],
        )
        at = rows[UPPER, i] if residual > 0 else rows[LOWER, i]
        if shift > 0:
            at = min(max(residual / shift, rows[LOWER, i]), rows[UPPER, i])
        cost = at * (residual - 0.5 * shift * at)
        loss += cost
        outer += cost - beta * (residual - 0.5 * shift * beta)
    square, inner = 0.0, 0.0
    for j in range(columns.shape[0]):
        column, total = columns[j], 0.0
        for i in range(column.size):
            total += column[i] * rows[BETA, i]
        total *= table[ROOT, j]
        table[PULLED, j] = total
        u = table[U, j]
        square += u * u
        inner += (u - total) * (u - total)
    if not np.isinf(numbers[PRECISION]):
        square += numbers[PRECISION] * bias * bias
    return 0.5 * square + loss, outer, 0.5 * inner


@inner_loop
def _times(columns, table, which, rows, out):
    """A times one of the vectors over the columns."""
    total = rows[out]
    total[:] = 0.0
    m = columns.shape[0]
    for j in range(0, m - 3, 4):
        a, b, c, d = columns[j], columns[j + 1], columns[j + 2], columns[j + 3]
        s = table[ROOT, j] * table[which, j]
        t = table[ROOT, j + 1] * table[which, j + 1]
        v = table[ROOT, j + 2] * table[which, j + 2]
        w = table[ROOT, j + 3] * table[which, j + 3]
        for i in range(total.size):
            total[i] += s * a[i] + t * b[i] + v * c[i] + w * d[i]
    for j in range(m - m % 4, m):
        a, s = columns[j], table[ROOT, j] * table[which, j]
        for i in range(total.size):
            total[i] += s * a[i]


@inner_loop
def _update_gram(columns, gram, rows, table, numbers):
    """Bring the Gram matrix of the rows with curvature up to date."""
    n, m = rows.shape[1], columns.shape[0]
    change = np.empty(n)
    moved, members = 0, 0
    for i in range(n):
        residual = rows[LABEL, i] - rows[SCORE, i] - numbers[BIAS]
        wanted = rows[WEIGHT, i] if _answer(rows, i, residual)[1] > 0 else 0.0
        change[i] = wanted - rows[MEMBER, i]
        rows[MEMBER, i] = wanted
        moved += change[i] != 0
        members += wanted > 0
    if 2 * moved > members or numbers[UPDATES] >= _GRAM_UPDATES:
        change[:] = rows[MEMBER]
        gram[:] = 0.0
        table[SUM] = 0.0
        numbers[UPDATES], moved = 0, members
    elif moved:
        numbers[UPDATES] += 1
    block, sizes = np.empty((4, m)), np.zeros(4)
    filled = 0
    for i in range(n):
        if change[i] != 0:
            for j in range(m):
                block[filled, j] = columns[j, i]
                table[SUM, j] += change[i] * columns[j, i]
            sizes[filled] = change[i]
            filled += 1
        if filled == 4 or (filled > 0 and i == n - 1):
            sizes[filled:] = 0.0
            block[filled:] = 0.0
            _add_squares(gram, block, sizes)
            filled = 0


@inner_loop
def _add_squares(gram, block, sizes):
    """Gram += block' diag(sizes) block for four rows, below the diagonal."""
    one, two, three, four = block[0], block[1], block[2], block[3]
    for j in range(gram.shape[0]):
        a, b = sizes[0] * one[j], sizes[1] * two[j]
        c, d = sizes[2] * three[j], sizes[3] * four[j]
        out = gram[j]
        for k in range(j + 1):
            out[k] += a * one[k] + b * two[k] + c * three[k] + d * four[k]


@inner_loop
def _direction(gram, factor, rows, table, numbers):
    """The Newton step for u, and the change of the bias that goes with it, which is returned."""
    m, precision = gram.shape[0], numbers[PRECISION]
    weight, curvature = 0.0, 0.0
    for i in range(rows.shape[1]):
        member = rows[MEMBER, i]
        if member > 0:
            weight += member
            curvature = 1.0 / ((rows[SHIFT, i] + rows[STIFF, i]) * member)  # the same for all rows
    drawn = 0.0
    if weight > 0 and not np.isinf(precision):
        drawn = curvature * curvature / (precision + curvature * weight)
    root, step, sums, spare = table[ROOT], table[STEP], table[SUM], table[SPARE]
    for j in range(m):
        row, here = factor[j], root[j]
        for k in range(j + 1):
            row[k] = here * root[k] * (curvature * gram[j, k] - drawn * sums[j] * sums[k])
        row[j] += 1.0
        spare[j] = 1.0 / np.sqrt(max(row[j], 1.0))
        step[j] = (table[PULLED, j] - table[U, j]) * spare[j]
    _factorise(factor, spare)
    for j in range(m):
        row, total = factor[j], step[j]
        for k in range(j):
            total -= row[k] * step[k]
        step[j] = total / row[j]
    for j in range(m - 1, -1, -1):
        row = factor[j]
        value = step[j] / row[j]
        step[j] = value
        for k in range(j):
            step[k] -= value * row[k]
    along = 0.0
    for j in range(m):
        step[j] *= spare[j]
        along += sums[j] * root[j] * step[j]
    if weight == 0 or np.isinf(precision):
        return 0.0
    return -curvature * along / (precision + curvature * weight)


@inner_loop
def _factorise(matrix, scale):
    """The Cholesky factor of a matrix scaled to a unit diagonal, in its place."""
    for i in range(matrix.shape[0]):
        row = matrix[i]
        for j in range(i + 1):
            other, total = matrix[j], row[j] * scale[i] * scale[j]
            for k in range(j):
                total -= row[k] * other[k]
            row[j] = np.sqrt(max(total, _LEAST_PIVOT)) if i == j else total / other[j]


@inner_loop
def _step_length(rows, table, numbers, tilt):
    """How far to go: until the slope has nearly vanished, by false position; 0 where it rises."""
    linear, quadratic = 0.0, 0.0
    for j in range(table.shape[1]):
        linear += table[U, j] * table[STEP, j]
        quadratic += table[STEP, j] * table[STEP, j]
    if not np.isinf(numbers[PRECISION]):
        linear += numbers[PRECISION] * numbers[BIAS] * tilt
        quadratic += numbers[PRECISION] * tilt * tilt
    first = linear - _work(rows, numbers[BIAS], tilt, 0.0)
    if not first < 0.0:
        return 0.0
    low, low_slope, high, high_slope = 0.0, first, np.inf, np.inf
    size = 1.0
    for trial in range(60):  # a bracket halved twenty times and more
        here = linear + size * quadratic - _work(rows, numbers[BIAS], tilt, size)
        if abs(here) <= _FLAT * abs(first):
            return size
        if here < 0:
            low, low_slope = size, here
        else:
            high, high_slope = size, here
        if np.isinf(high):
            size *= 4.0
        elif trial % 3 == 2:
            size = 0.5 * (low + high)
        else:
            size = low + (high - low) * (-low_slope) / (high_slope - low_slope)
    return low


@inner_loop
def _work(rows, bias, tilt, size):
    """What beta has gained per step so far along the way: ``sum_i beta_i (A d + tilt)_i``."""
    total = 0.0
    for i in range(rows.shape[1]):
        way = rows[ALONG, i] + tilt
        beta = _answer(rows, i, rows[LABEL, i] - rows[SCORE, i] - bias - size * way)[0]
        total += beta * way
    return total
