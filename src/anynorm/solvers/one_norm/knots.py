"""What the path records: the vertices of the true problem and the duals of its segments.

The pivots run on data in general position.  A knot is made from the sets V and E and the true data:
coefficients M^-1 y_E, lambda of the event, duals, and the gap that verifies it.
"""

from __future__ import annotations

import math

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
    STUCK,
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
    block,
    coef,
    column,
    dual,
    inverse,
    knot,
    member,
    n_columns,
    n_rows,
    pull,
    row,
    scalar,
    slot,
)

ZERO = 1e-12  # of what a coefficient is the sum of
_AT_ONE = 1e-9  # residuals that count as zero where the bias is placed
_TIED = 1e-7  # residuals up to which a row at a bound is recorded: it may join E nearby
_BALANCED = 1e-9  # relative: pulls on free columns, sum(beta) too, that count as zero
_NO_LOSS = 1e-13  # of the loss at w = 0: what rounding leaves of none, where the path ends


def true_coefs(tables, m):
    """The vertex of the true problem: M^-1 y_E, with exact zeros where the sum cancels."""
    y, E, coefs = row(tables, Y), member(tables, ROW), slot(tables, TRUE_COEF)
    for c in range(m):
        line, total, terms = inverse(tables, c), 0.0, 0.0
        for r in range(m):
            total += line[r] * y[E[r]]
            terms += abs(line[r])
        coefs[c] = total if abs(total) > ZERO * terms else 0.0


def true_step(tables, m, kind, index):
    """How far the edge goes in the true problem, measured by the scores that it moves."""
    coefs = slot(tables, TRUE_COEF)
    if kind == LEAVES:
        return -coefs[index] / slot(tables, DIRECTION)[index]
    score, y = 0.0, row(tables, Y)[index]
    for c in range(m):
        score += block(tables, c)[index] * coefs[c]
    return (1.0 - y * score) / (y * row(tables, CHANGE)[index])


def span(tables, m, entering):
    """The largest change of the scores by one penalised coefficient, per unit of the step."""
    size, V, largest = column(tables, SIZE), member(tables, COLUMN), 0.0
    sign, direction = slot(tables, SIGN), slot(tables, DIRECTION)
    if entering >= 0 and not column(tables, FREE)[entering]:
        largest = size[entering]
    for c in range(m):
        if sign[c] != 0.0:
            largest = max(largest, size[V[c]] * abs(direction[c]))
    return largest


def true_penalty(tables, m, event):
    """Lambda of a dual event in the true problem; `TRUE_BETA` becomes beta_E at lambda 0."""
    kind, index, sign = event
    goal, beta = slot(tables, GOAL), slot(tables, TRUE_BETA)
    fixed, V = column(tables, FIXED), member(tables, COLUMN)
    for c in range(m):
        goal[c] = -fixed[V[c]]
    times_transposed(tables, m, goal, beta)
    if kind == LEAVES:
        i = member(tables, ROW)[index]
        bound = row(tables, TRUE_COST if sign > 0 else TRUE_LOW)[i]
        return (row(tables, Y)[i] * bound - beta[index]) / slot(tables, TAU)[index]
    total, rate = fixed[index], sign * column(tables, WEIGHT)[index]
    moved, gain = slot(tables, MOVED), slot(tables, GAIN)
    for c in range(m):
        total += moved[c] * goal[c]
        rate -= moved[c] * gain[c]
    return total / rate


def features_between(tables, m, entering, reach):
    """How many coefficients are not zero on the segment that leaves a vertex."""
    last, V, size = n_columns(tables) - 1, member(tables, COLUMN), column(tables, SIZE)
    coefs, direction = slot(tables, TRUE_COEF), slot(tables, DIRECTION)
    count = 1 if 0 <= entering < last else 0
    for c in range(m):
        moves = abs(direction[c]) * size[V[c]] > ZERO * reach
        if V[c] < last and (coefs[c] != 0.0 or moves):
            count += 1
    return count


def dual_pressure(X, tables, m, lam):
    """The factor by which the pulls exceed their bounds, at least 1; inf where a free one does."""
    total, fixed, weight = column(tables, TOTAL), column(tables, FIXED), column(tables, WEIGHT)
    free, size, cost = column(tables, FREE), column(tables, SIZE), row(tables, TRUE_COST)
    p, scale = n_columns(tables), 0.0
    for j in range(p):
        total[j] = fixed[j]
    beta, constant = slot(tables, TRUE_BETA), scalar(tables, 0)[CONSTANT]
    pull(X, tables, member(tables, ROW), beta, m, constant, total)
    for i in range(n_rows(tables)):
        scale += cost[i] * cost[i]
    scale = _BALANCED * math.sqrt(scale)
    for j in range(p):
        bound, pulled = lam * weight[j], abs(total[j])
        share = pulled / bound
        share = share if bound > 0.0 else 0.0
        unbalanced = math.inf if pulled > size[j] * scale else 0.0
        total[j] = share if free[j] == 0.0 else unbalanced
    return max(1.0, largest(total, p))


def largest(values, count):
    """The largest of numbers that are not negative, 0 if there are none."""
    m0, m1, m2, m3, k = 0.0, 0.0, 0.0, 0.0, 0
    while k + 4 <= count:
        m0, m1 = max(m0, values[k]), max(m1, values[k + 1])
        m2, m3 = max(m2, values[k + 2]), max(m3, values[k + 3])
        k += 4
    while k < count:
        m0 = max(m0, values[k])
        k += 1
    return max(max(m0, m1), max(m2, m3))


def gap_at(tables, k, segment):
    """The relative gap of knot k at the lambda of a segment that touches it.

    The path ends at an optimum of 0: there the gap is relative to the loss at w = 0.
    """
    lam, dual_value = knot(tables, LEAVING)[segment], knot(tables, DUAL)[segment]
    primal = knot(tables, LOSS)[k] + lam * knot(tables, S)[k]
    least = FLOOR * scalar(tables, 0)[ZERO_PRIMAL]
    return (primal - dual_value) / max(max(abs(primal), abs(dual_value)), least)


def depart(X, tables, m, lam):
    """Record the segment that leaves the last knot: lambda, the duals `TRUE_BETA`, the gap."""
    numbers, E, beta = scalar(tables, 0), member(tables, ROW), slot(tables, TRUE_BETA)
    y, side, residual = row(tables, Y), row(tables, SIDE), row(tables, RESIDUAL)
    cost, low = row(tables, TRUE_COST), row(tables, TRUE_LOW)
    places, values = dual(tables, PLACE), dual(tables, VALUE)
    k, end, total = int(numbers[N_KNOTS]) - 1, int(numbers[N_DUALS]), 0.0
    for r in range(m):
        i = E[r]
        a = min(max(y[i] * beta[r], low[i]), cost[i])
        beta[r] = y[i] * a
        total += a
        places[end], values[end] = i, a
        end += 1
    for i in range(n_rows(tables)):
        if side[i] != TIGHT:
            a = cost[i] if side[i] == ABOVE else low[i]
            total += a
            if abs(residual[i]) <= _TIED:
                places[end], values[end] = i, a
                end += 1
    numbers[N_DUALS] = knot(tables, DUAL_END)[k] = end
    knot(tables, LEAVING)[k] = lam
    # Shrunk into the bounds the duals are feasible; a pressure of inf leaves a gap of 1.
    knot(tables, DUAL)[k] = total / dual_pressure(X, tables, m, lam)
    if lam > 0.0:
        gap = knot(tables, GAP)
        gap[k] = max(gap[k], gap_at(tables, k, k))


def way_to(tables, direction):
    """How far the bias can move, up (1) or down (-1), at no cost: 0 mostly, inf if for ever.

    `CHANGE` has the residuals.
    """
    y, residual, cost, low = (
        row(tables, Y),
        row(tables, CHANGE),
        row(tables, TRUE_COST),
        row(tables, TRUE_LOW),
    )
    slope, total, way = 0.0, 0.0, math.inf
    for i in range(n_rows(tables)):
        total += cost[i]
        # The residual grows on that way, or it falls: the same with all signs turned.
        turn = 1.0 if y[i] * direction < 0 else -1.0
        r = turn * residual[i]
        above = r >= -_AT_ONE if turn > 0 else r < -_AT_ONE
        slope += turn * (cost[i] if above else low[i])
        if r < -_AT_ONE:
            way = min(way, -r)
    return way if slope <= ROUNDING * total else 0.0


def arrive(tables, m, s):
    """Record the vertex of `TRUE_COEF`, whose weighted 1-norm is s."""
    numbers, V, value = scalar(tables, 0), member(tables, COLUMN), slot(tables, TRUE_COEF)
    y, residual, cost, low = (
        row(tables, Y),
        row(tables, CHANGE),
        row(tables, TRUE_COST),
        row(tables, TRUE_LOW),
    )
    k, end, last = int(numbers[N_KNOTS]), int(numbers[N_COEFS]), n_columns(tables) - 1
    n, loss, bias = n_rows(tables), 0.0, 0.0
    for i in range(n):
        residual[i] = 0.0
    combine(tables, value, m, residual)
    for i in range(n):
        r = 1.0 - y[i] * residual[i]
        loss += r * (cost[i] if r > 0 else low[i])
        residual[i] = r
    places, values = coef(tables, PLACE), coef(tables, VALUE)
    for c in range(m):
        if V[c] == last:
            bias = numbers[CONSTANT] * value[c]
        elif value[c] != 0.0:
            places[end], values[end] = V[c], value[c]
            end += 1
    if column(tables, FREE)[last]:  # to the middle of its interval, not along a half-line
        up, down = way_to(tables, 1.0), way_to(tables, -1.0)
        if max(up, down) < math.inf:
            bias += 0.5 * (up - down)
    knot(tables, S)[k], knot(tables, LOSS)[k], knot(tables, BIAS)[k] = s, loss, bias
    knot(tables, GAP)[k] = gap_at(tables, k, k - 1) if k > 0 else 0.0
    numbers[N_KNOTS] = k + 1
    numbers[N_COEFS] = knot(tables, COEF_END)[k] = end


def one_norm(tables, m):
    """s: the weighted 1-norm of the true coefficients."""
    free, weight, V = column(tables, FREE), column(tables, WEIGHT), member(tables, COLUMN)
    coefs, total = slot(tables, TRUE_COEF), 0.0
    for c in range(m):
        if not free[V[c]]:
            total += weight[V[c]] * abs(coefs[c])
    return total


def leave_knot(X, tables, m, event, edge):
    """Record a segment if the true problem moves; returns a reason to stop, or MORE."""
    kind, index, _ = event
    stop, place = edge
    numbers, entering = scalar(tables, 0), index if kind == ENTERS else -1
    reach = span(tables, m, entering)
    if not true_step(tables, m, stop, place) * reach > ROUNDING * numbers[LARGEST]:
        return MORE
    lam = true_penalty(tables, m, event)
    if not math.isfinite(lam):
        return STUCK
    if lam <= max(numbers[LEAST_PENALTY], numbers[END]):
        return PENALTY if numbers[LEAST_PENALTY] > 0.0 else ENDED
    beta, tau = slot(tables, TRUE_BETA), slot(tables, TAU)
    for r in range(m):
        beta[r] += lam * tau[r]
    numbers[DUALS_BEFORE] = numbers[N_DUALS]
    depart(X, tables, m, lam)
    if numbers[N_KNOTS] >= numbers[MOST_KNOTS]:
        return KNOTS
    if features_between(tables, m, entering, reach) > numbers[MOST_FEATURES]:
        return FEATURES
    numbers[MOVING_ON] = 1.0
    return MORE


def reach_knot(tables, m):
    """Record the vertex that was reached; returns a reason to stop, or MORE."""
    numbers, s = scalar(tables, 0), one_norm(tables, m)
    k = int(numbers[N_KNOTS]) - 1
    numbers[MOVING_ON] = 0.0
    if k >= 0 and s <= (1 + ROUNDING) * knot(tables, S)[k]:  # the step was rounding
        knot(tables, LEAVING)[k], numbers[N_DUALS] = 0.0, numbers[DUALS_BEFORE]
        return MORE
    arrive(tables, m, s)
    if k < 0:
        return MORE
    if knot(tables, LOSS)[k + 1] <= _NO_LOSS * numbers[ZERO_PRIMAL]:
        return ENDED
    return RADIUS if s >= numbers[MOST_S] else MORE
