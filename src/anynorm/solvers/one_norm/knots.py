"""What the path records: the vertices of the true problem and the duals of its segments.

The pivots run on data in general position.  A knot is made from the sets V and E and the true data:
coefficients M^-1 y_E, lambda of the event, duals, and the gap that verifies it.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inlined, inner_loop, loop
from anynorm.design.limits import FLOOR, ROUNDING
from anynorm.solvers.one_norm.basis import combine, times_transposed
from anynorm.solvers.one_norm.state import (
    ABOVE,
    BIAS,
    CHANGE,
    COEF_END,
    COLUMN,
    CONSTANT,
    DIRECTION,
    DUAL,
    DUAL_END,
    DUALS_BEFORE,
    END,
    ENDED,
    ENTERS,
    FEATURES,
    FIXED,
    FREE,
    GAIN,
    GAP,
    GOAL,
    KNOTS,
    LARGEST,
    LEAST_PENALTY,
    LEAVES,
    LEAVING,
    LENGTH,
    LOSS,
    MORE,
    MOST_FEATURES,
    MOST_KNOTS,
    MOST_S,
    MOVED,
    MOVING_ON,
    N_COEFS,
    N_DUALS,
    N_KNOTS,
    PENALTY,
    PLACE,
    RADIUS,
    RESIDUAL,
    ROW,
    SIDE,
    SIGN,
    SIZE,
    TAU,
    TIGHT,
    TOTAL,
    TRUE_BETA,
    TRUE_COEF,
    TRUE_COST,
    TRUE_LOW,
    VALUE,
    WEIGHT,
    ZERO_PRIMAL,
    S,
    Y,
    pull,
)

_ZERO = 1e-12  # of what a coefficient is the sum of
_AT_ONE = 1e-9  # residuals that count as zero where the bias is placed
_TIED = 1e-7  # residuals up to which a row at a bound is recorded: it may join E nearby
_BALANCED = 1e-9  # relative: pulls on free columns, sum(beta) too, that count as zero
_NO_LOSS = 1e-13  # of the loss at w = 0: what rounding leaves of none, where the path ends


@loop
def true_coefs(row, slot, member, inverse, m):
    """The vertex of the true problem: M^-1 y_E, with exact zeros where the sum cancels."""
    for c in range(m):
        total, terms = 0.0, 0.0
        for r in range(m):
            total += inverse[c, r] * row[Y, member[ROW, r]]
            terms += abs(inverse[c, r])
        slot[TRUE_COEF, c] = total if abs(total) > _ZERO * terms else 0.0


@inlined
def true_step(row, slot, block, m, kind, index):
    """How far the edge goes in the true problem, measured by the scores that it moves."""
    if kind == LEAVES:
        return -slot[TRUE_COEF, index] / slot[DIRECTION, index]
    score = 0.0
    for c in range(m):
        score += block[c, index] * slot[TRUE_COEF, c]
    return (1.0 - row[Y, index] * score) / (row[Y, index] * row[CHANGE, index])


@inlined
def span(column, slot, member, m, entering):
    """The largest change of the scores by one penalised coefficient, per unit of the step."""
    largest = column[SIZE, entering] if entering >= 0 and not column[FREE, entering] else 0.0
    for c in range(m):
        if slot[SIGN, c] != 0.0:
            largest = max(largest, column[SIZE, member[COLUMN, c]] * abs(slot[DIRECTION, c]))
    return largest


@inlined
def true_penalty(row, column, slot, member, inverse, m, kind, index, sign):
    """Lambda of a dual event in the true problem; `TRUE_BETA` becomes beta_E at lambda 0."""
    goal, beta = slot[GOAL], slot[TRUE_BETA]
    for c in range(m):
        goal[c] = -column[FIXED, member[COLUMN, c]]
    times_transposed(inverse, m, goal, beta)
    if kind == LEAVES:
        i = member[ROW, index]
        bound = row[TRUE_COST if sign > 0 else TRUE_LOW, i]
        return (row[Y, i] * bound - beta[index]) / slot[TAU, index]
    total, rate = column[FIXED, index], sign * column[WEIGHT, index]
    for c in range(m):
        total += slot[MOVED, c] * goal[c]
        rate -= slot[MOVED, c] * slot[GAIN, c]
    return total / rate


@inlined
def features_between(column, slot, member, m, entering, reach):
    """How many coefficients are not zero on the segment that leaves a vertex."""
    last = column.shape[1] - 1
    count = 1 if 0 <= entering < last else 0
    for c in range(m):
        j = member[COLUMN, c]
        moves = abs(slot[DIRECTION, c]) * column[SIZE, j] > _ZERO * reach
        if j < last and (slot[TRUE_COEF, c] != 0.0 or moves):
            count += 1
    return count


@inlined
def dual_pressure(X, row, column, slot, member, scalar, lam, m):
    """The factor by which the pulls exceed their bounds, at least 1; inf where a free one does."""
    total, scale, pressure = column[TOTAL], 0.0, 1.0
    for j in range(total.size):
        total[j] = column[FIXED, j]
    pull(X, member[ROW], slot[TRUE_BETA], m, scalar[CONSTANT], total)
    for i in range(row.shape[1]):
        scale += row[TRUE_COST, i] ** 2
    scale = np.sqrt(scale)
    for j in range(total.size):
        bound, size = lam * column[WEIGHT, j], abs(total[j])
        if column[FREE, j]:
            if size > _BALANCED * column[SIZE, j] * scale:
                pressure = np.inf
        elif bound > 0.0 and size > pressure * bound:
            pressure = size / bound
    return pressure


@inner_loop
def write(table, at, place, value):
    """An entry of the table of coefficients or duals; returns where the next one goes."""
    table[PLACE, at] = place
    table[VALUE, at] = value
    return at + 1


@inner_loop
def gap_at(knots, k, segment, scalar):
    """The relative gap of knot k at the lambda of a segment that touches it.

    The path ends at an optimum of 0: there the gap is relative to the loss at w = 0.
    """
    primal, dual = knots[LOSS, k] + knots[LEAVING, segment] * knots[S, k], knots[DUAL, segment]
    return (primal - dual) / max(abs(primal), abs(dual), FLOOR * scalar[ZERO_PRIMAL])


@loop
def depart(X, row, column, slot, member, scalar, record, lam):
    """Record the segment that leaves the last knot: lambda, the duals `TRUE_BETA`, the gap."""
    knots, _, duals = record
    m, k, end = int(scalar[LENGTH]), int(scalar[N_KNOTS]) - 1, int(scalar[N_DUALS])
    value = 0.0
    for r in range(m):
        i = member[ROW, r]
        a = min(max(row[Y, i] * slot[TRUE_BETA, r], row[TRUE_LOW, i]), row[TRUE_COST, i])
        slot[TRUE_BETA, r] = row[Y, i] * a
        value += a
        end = write(duals, end, i, a)
    for i in range(row.shape[1]):
        if row[SIDE, i] != TIGHT:
            a = row[TRUE_COST if row[SIDE, i] == ABOVE else TRUE_LOW, i]
            value += a
            if abs(row[RESIDUAL, i]) <= _TIED:
                end = write(duals, end, i, a)
    scalar[N_DUALS] = knots[DUAL_END, k] = end
    knots[LEAVING, k] = lam
    # Shrunk into the bounds the duals are feasible; a pressure of inf leaves a gap of 1.
    knots[DUAL, k] = value / dual_pressure(X, row, column, slot, member, scalar, lam, m)
    if lam > 0.0:
        knots[GAP, k] = max(knots[GAP, k], gap_at(knots, k, k, scalar))


@inner_loop
def way_to(row, residual, direction):
    """How far the bias can move, up (1) or down (-1), at no cost: 0 mostly, inf if for ever."""
    slope, total, way = 0.0, 0.0, np.inf
    for i in range(residual.size):
        r = residual[i]
        total += row[TRUE_COST, i]
        if row[Y, i] * direction < 0:  # the residual grows on that way
            slope += row[TRUE_COST if r >= -_AT_ONE else TRUE_LOW, i]
            if r < -_AT_ONE:
                way = min(way, -r)
        else:
            slope -= row[TRUE_COST if r > _AT_ONE else TRUE_LOW, i]
            if r > _AT_ONE:
                way = min(way, r)
    return way if slope <= ROUNDING * total else 0.0


@inlined
def middle_bias(row, residual):
    """What takes the bias to the middle of its optimal interval, or to the end of a half-line."""
    up, down = way_to(row, residual, 1.0), way_to(row, residual, -1.0)
    if up == np.inf or down == np.inf:
        return 0.0
    return 0.5 * (up - down)


@inlined
def arrive(row, column, slot, member, block, scalar, record, m, s):
    """Record the vertex of `TRUE_COEF`, whose weighted 1-norm is s."""
    knots, coefs, _ = record
    k, end = int(scalar[N_KNOTS]), int(scalar[N_COEFS])
    residual, last, loss, bias = row[CHANGE], column.shape[1] - 1, 0.0, 0.0
    for i in range(residual.size):
        residual[i] = 0.0
    combine(block, slot[TRUE_COEF], m, residual)
    for i in range(residual.size):
        r = 1.0 - row[Y, i] * residual[i]
        loss += r * row[TRUE_COST if r > 0 else TRUE_LOW, i]
        residual[i] = r
    for c in range(m):
        value = slot[TRUE_COEF, c]
        if member[COLUMN, c] == last:
            bias = scalar[CONSTANT] * value
        elif value != 0.0:
            end = write(coefs, end, member[COLUMN, c], value)
    if column[FREE, last]:
        bias += middle_bias(row, residual)
    knots[S, k], knots[LOSS, k], knots[BIAS, k], knots[GAP, k] = s, loss, bias, 0.0
    if k > 0:
        knots[GAP, k] = gap_at(knots, k, k - 1, scalar)
    scalar[N_KNOTS] = k + 1
    scalar[N_COEFS] = knots[COEF_END, k] = end


@inlined
def one_norm(column, slot, member, m):
    """s: the weighted 1-norm of the true coefficients."""
    total = 0.0
    for c in range(m):
        j = member[COLUMN, c]
        if not column[FREE, j]:
            total += column[WEIGHT, j] * abs(slot[TRUE_COEF, c])
    return total


@inlined
def leave_knot(X, row, column, slot, member, inverse, block, scalar, record, m, event, edge):
    """Record a segment if the true problem moves; returns a reason to stop, or MORE."""
    kind, index, sign = event
    stop, place = edge
    entering = index if kind == ENTERS else -1
    reach = span(column, slot, member, m, entering)
    if not true_step(row, slot, block, m, stop, place) * reach > ROUNDING * scalar[LARGEST]:
        return MORE
    lam = true_penalty(row, column, slot, member, inverse, m, kind, index, sign)
    if lam <= max(scalar[LEAST_PENALTY], scalar[END]):
        return PENALTY if scalar[LEAST_PENALTY] > 0.0 else ENDED
    for r in range(m):
        slot[TRUE_BETA, r] += lam * slot[TAU, r]
    scalar[DUALS_BEFORE] = scalar[N_DUALS]
    depart(X, row, column, slot, member, scalar, record, lam)
    if scalar[N_KNOTS] >= scalar[MOST_KNOTS]:
        return KNOTS
    if features_between(column, slot, member, m, entering, reach) > scalar[MOST_FEATURES]:
        return FEATURES
    scalar[MOVING_ON] = 1.0
    return MORE


@inlined
def reach_knot(row, column, slot, member, block, scalar, record, m):
    """Record the vertex that was reached; returns a reason to stop, or MORE."""
    knots, k, s = record[0], int(scalar[N_KNOTS]) - 1, one_norm(column, slot, member, m)
    scalar[MOVING_ON] = 0.0
    if k >= 0 and s <= (1 + ROUNDING) * knots[S, k]:  # the step was rounding
        knots[LEAVING, k], scalar[N_DUALS] = 0.0, scalar[DUALS_BEFORE]
        return MORE
    arrive(row, column, slot, member, block, scalar, record, m, s)
    if k < 0:
        return MORE
    if knots[LOSS, k + 1] <= _NO_LOSS * scalar[ZERO_PRIMAL]:
        return ENDED
    return RADIUS if s >= scalar[MOST_S] else MORE
