"""The parametric simplex method on a small basis, compiled: one pivot per event of the path.

        minimise_{w, b}   sum_i c_i (1 - y_i (x_i'w + b))_+  +  lambda sum_j u_j |w_j|

for all lambda, from above.  At a vertex V are the columns in use (the bias is a constant column of
weight 0), E as many rows with residual r_i = 1 - y_i f_i = 0, and M = X[E, V] is regular.  With
beta = y a, where a_i = c_i for r_i > 0 and a_i = low_i (0 for the hinge) for r_i < 0,

        M w = y_E,        M' beta_E = lambda u_V sign_V - X[not E, V]' beta,

so beta_E and all pulls X'beta are linear in lambda while w rests.  As lambda falls, either a row of
E reaches a bound (it leaves E) or a column reaches |X_j'beta| = lambda u_j (it enters V): the dual
event.  Then w moves along an edge, at that lambda, until another row reaches r = 0 (it enters E) or
a coefficient reaches zero (its column leaves V): the primal event.  M^-1 is kept and updated.

Ties would make events coincide and the method cycle.  Therefore it runs on data in general
position: targets, costs and weights are changed by random amounts far above the rounding and far
below everything else (`row[TARGET]`, `row[COST]`, `column[SLACK]`).  What is recorded comes from
the sets V and E and the true data, so it is exact wherever the sets are those of the true problem,
which the gap of each knot verifies.
"""

from __future__ import annotations

import math

from anynorm.design.limits import ROUNDING
from anynorm.design.row_access import read_column
from anynorm.solvers.one_norm.basis import (
    combine,
    enter_row,
    fill_places,
    leave_column,
    times,
    times_transposed,
)
from anynorm.solvers.one_norm.knots import leave_knot, reach_knot, true_coefs
from anynorm.solvers.one_norm.state import (
    ABOVE,
    BELOW,
    BETA,
    CHANGE,
    COEF,
    COLUMN,
    CONSTANT,
    COST,
    COST_RATE,
    DIRECTION,
    END,
    ENDED,
    ENTERS,
    FALL,
    FIXED,
    FREE,
    FRESH,
    GAIN,
    GOAL,
    GROW,
    LAMBDA,
    LARGEST,
    LEAST_PENALTY,
    LEAVES,
    LENGTH,
    LOW,
    LOW_RATE,
    MORE,
    MOVED,
    MOVING,
    MOVING_ON,
    N_COEFS,
    N_DUALS,
    N_KNOTS,
    NOTHING,
    PENALTY,
    PIVOTS,
    PRODUCT,
    PULL,
    RATE,
    REFRESH,
    RESIDUAL,
    ROW,
    SIDE,
    SIGN,
    SIZE,
    SLACK,
    SLOPE,
    STEP,
    STORE,
    STUCK,
    TAU,
    TIGHT,
    TRUE_COST,
    TRUE_LOW,
    USED,
    VALUES,
    WEIGHT,
    Y,
    block,
    capacity,
    column,
    inverse,
    member,
    n_columns,
    n_rows,
    pull,
    room_for_coefs,
    room_for_duals,
    room_for_knots,
    row,
    scalar,
    slot,
)

_PIVOTS = 400  # between two refreshes, at the most: of what drifts nothing is recorded
_DRIFT = 3e-12  # of the largest score: what residuals of E, which are zero, may have drifted


def drifted(tables, m, largest):
    """Whether rounding has moved the rows of E from zero."""
    residual, E, worst = row(tables, RESIDUAL), member(tables, ROW), 0.0
    for r in range(m):
        worst = max(worst, abs(residual[E[r]]))
    return worst > _DRIFT * largest


def rates(X, tables, m, constant):
    """How the duals of E (`TAU`) and all pulls (`SLOPE`) move with lambda."""
    goal, tau, gain, sign = (
        slot(tables, GOAL),
        slot(tables, TAU),
        slot(tables, GAIN),
        slot(tables, SIGN),
    )
    slope, rate = column(tables, SLOPE), column(tables, RATE)
    free, weight = column(tables, FREE), column(tables, WEIGHT)
    V, p = member(tables, COLUMN), n_columns(tables)
    for c in range(m):
        j = V[c]
        gain[c] = 0.0 if free[j] else sign[c] * weight[j]
        goal[c] = gain[c] - rate[j]
    times_transposed(tables, m, goal, tau)
    for j in range(p):
        slope[j] = rate[j]
    pull(X, tables, member(tables, ROW), tau, m, constant, slope)


def way(room, closing, flat):
    """How far until the room is gone, which closes at a rate; inf where that is rounding."""
    distance = max(room, 0.0) / closing
    return distance if closing > flat else math.inf


def dual_event(tables, m, lam):
    """The first event as lambda falls: (kind, slot or column, fall of lambda, sign).

    The sign is that of the residual of a row that leaves E, or of a coefficient that enters.
    """
    kind, index, best, sign, reach = NOTHING, m, math.inf, 0.0, 0.0
    tau, beta, E, y = slot(tables, TAU), slot(tables, BETA), member(tables, ROW), row(tables, Y)
    for r in range(m):
        reach += tau[r] * tau[r]
    reach = ROUNDING * math.sqrt(reach)  # rates below it are rounding
    cost, low = row(tables, COST), row(tables, LOW)
    cost_rate, low_rate = row(tables, COST_RATE), row(tables, LOW_RATE)
    for r in range(m):
        i = E[r]
        a, rate = y[i] * beta[r], y[i] * tau[r]
        closing = cost_rate[i] - rate
        room = cost[i] + lam * cost_rate[i] - a
        if closing > reach and room < best * closing:
            kind, index, sign, best = LEAVES, r, 1.0, max(room, 0.0) / closing
        closing = rate - low_rate[i]
        room = a - low[i] - lam * low_rate[i]
        if closing > reach and room < best * closing:
            kind, index, sign, best = LEAVES, r, -1.0, max(room, 0.0) / closing
    weight, slack, size = column(tables, WEIGHT), column(tables, SLACK), column(tables, SIZE)
    used, pulls, slopes = column(tables, USED), column(tables, PULL), column(tables, SLOPE)
    falls = column(tables, FALL)
    # Several columns at once, without a branch; the first of the smallest is looked for apart.
    for j in range(n_columns(tables)):
        bound, flat = lam * weight[j] + slack[j], reach * size[j]
        up = way(bound - pulls[j], weight[j] - slopes[j], flat)
        down = way(bound + pulls[j], weight[j] + slopes[j], flat)
        fall = min(up, down)
        falls[j] = fall if used[j] == 0.0 else math.inf
    for j in range(n_columns(tables)):
        if falls[j] < best:
            kind, index, best = ENTERS, j, falls[j]
    if kind == ENTERS:
        sign = 1.0 if pulls[index] >= best * slopes[index] else -1.0
    return kind, index, best, sign


def primal_event(tables, m):
    """The first event along the edge: (kind, row or slot, step).

    Here ENTERS is a row, LEAVES a column.
    """
    y, side = row(tables, Y), row(tables, SIDE)
    change, residual, n, flat = row(tables, CHANGE), row(tables, RESIDUAL), n_rows(tables), 0.0
    for i in range(n):
        flat = max(flat, abs(change[i]))
    flat *= ROUNDING
    kind, index, best, steps = NOTHING, m, math.inf, row(tables, STEP)
    for i in range(n):
        # Towards zero: the residual of a row above falls, that of one below rises.
        inwards = 1.0 if side[i] == ABOVE else -1.0
        step = way(inwards * residual[i], inwards * y[i] * change[i], flat)
        steps[i] = step if side[i] != TIGHT else math.inf
    for i in range(n):
        if steps[i] < best:
            kind, index, best = ENTERS, i, steps[i]
    sign, direction, coef = slot(tables, SIGN), slot(tables, DIRECTION), slot(tables, COEF)
    for c in range(m):
        rate, room = -sign[c] * direction[c], sign[c] * coef[c]
        if rate > 0 and room < best * rate:
            kind, index, best = LEAVES, c, max(room, 0.0) / rate
    return kind, index, best


def edge_of(X, tables, m, constant, kind, index, sign):
    """How coefficients (`DIRECTION`) and scores (`CHANGE`) move after a dual event.

    `VALUES` becomes the column that enters, `MOVED` the inverse times it or a column of it.
    """
    moved, direction, goal = slot(tables, MOVED), slot(tables, DIRECTION), slot(tables, GOAL)
    values, change, E = row(tables, VALUES), row(tables, CHANGE), member(tables, ROW)
    n, turn, share = n_rows(tables), -sign, 0.0
    if kind == LEAVES:
        turn *= row(tables, Y)[E[index]]
        for c in range(m):
            moved[c] = inverse(tables, c)[index]
    else:
        if index < n_columns(tables) - 1:
            read_column(X, tables, index, values, n)
        else:
            for i in range(n):
                values[i] = constant
        for r in range(m):
            goal[r] = values[E[r]]
        times(tables, m, goal, moved)
        share = sign
    for i in range(n):
        change[i] = share * values[i]
    for c in range(m):
        direction[c] = turn * moved[c]
    combine(tables, direction, m, change)
    for r in range(m):  # rounding apart, the other rows of E stay at zero
        if r != index or kind == ENTERS:
            change[E[r]] = 0.0


def travel(tables, m, fall, step):
    """Lambda falls, then the vertex moves along the edge."""
    beta, tau = slot(tables, BETA), slot(tables, TAU)
    coef, direction = slot(tables, COEF), slot(tables, DIRECTION)
    for r in range(m):
        beta[r] -= fall * tau[r]
        coef[r] += step * direction[r]
    pulls, slope = column(tables, PULL), column(tables, SLOPE)
    for j in range(n_columns(tables)):
        pulls[j] -= fall * slope[j]
    y, residual, change = row(tables, Y), row(tables, RESIDUAL), row(tables, CHANGE)
    for i in range(n_rows(tables)):
        residual[i] -= step * y[i] * change[i]


def move_rows(X, tables, constant, lam, event, edge):
    """A row leaves E after a dual event, one enters after a primal one; returns its dual."""
    kind, index, sign = event
    stop, place = edge
    moving, fixed, rate = member(tables, MOVING), slot(tables, GOAL), slot(tables, PRODUCT)
    y, side, count, beta = row(tables, Y), row(tables, SIDE), 0, 0.0
    if kind == LEAVES:
        i, above = member(tables, ROW)[index], sign > 0
        side[i] = ABOVE if above else BELOW
        moving[0], count = i, 1
        fixed[0] = y[i] * row(tables, TRUE_COST if above else TRUE_LOW)[i]
        rate[0] = y[i] * row(tables, COST_RATE if above else LOW_RATE)[i]
    if stop == ENTERS:
        above = side[place] == ABOVE
        side[place], row(tables, RESIDUAL)[place] = TIGHT, 0.0
        moving[count] = place
        fixed[count] = -y[place] * row(tables, TRUE_COST if above else TRUE_LOW)[place]
        rate[count] = -y[place] * row(tables, COST_RATE if above else LOW_RATE)[place]
        beta = y[place] * row(tables, COST if above else LOW)[place] - lam * rate[count]
        count += 1
    for which in range(2):  # FIXED, then RATE
        coefs, total = slot(tables, GOAL + which), 0.0
        for k in range(count):
            total += abs(coefs[k])
        if total > 0.0:  # rates are zero on the path
            out = column(tables, FIXED + which)
            pull(X, tables, moving, coefs, count, constant, out)
    return beta


def exchange(tables, m, event, edge, step, beta):
    """The basis after a dual event (kind, index, sign) and a primal one (stop, place).

    Returns its length, or -1 where the pivot is zero: rows or columns that rounding made equal.
    """
    kind, index, sign = event
    stop, place = edge
    V, used = member(tables, COLUMN), column(tables, USED)
    free = index if kind == LEAVES else m  # the slot for a row that enters
    length = m
    if stop == ENTERS:
        if enter_row(tables, m, place, free) == 0.0:
            return -1
        member(tables, ROW)[free], slot(tables, BETA)[free] = place, beta
    else:
        if leave_column(tables, m, place) == 0.0:
            return -1
        used[V[place]] = 0.0
        if kind == LEAVES:
            length = m - 1
            fill_places(tables, length, index, place)
    if kind == ENTERS:
        at = place if stop == LEAVES else m
        line, values = block(tables, at), row(tables, VALUES)
        for i in range(n_rows(tables)):
            line[i] = values[i]
        used[index], V[at] = 1.0, index
        slot(tables, COEF)[at] = sign * step
        slot(tables, SIGN)[at] = 0.0 if column(tables, FREE)[index] else sign
        if stop == ENTERS:
            length = m + 1
    return length


def interruption(tables, m, recorded):
    """What Python is asked for before the next pivot, or MORE."""
    numbers = scalar(tables, 0)
    if m + 1 > capacity(tables):
        return GROW
    if recorded:
        knots = room_for_knots(tables) - numbers[N_KNOTS]
        coefs = room_for_coefs(tables) - numbers[N_COEFS] - m
        duals = room_for_duals(tables) - numbers[N_DUALS] - 2 * n_rows(tables)
        if min(min(knots, coefs), duals) < 2:
            return STORE
    if numbers[FRESH] >= _PIVOTS or drifted(tables, m, numbers[LARGEST]):
        return REFRESH
    return MORE


def advance(X, tables, recorded, max_pivots, max_work):
    """Up to `max_pivots` pivots or `max_work` operations; returns what for it came back.

    `tables` is the address of the list of tables, `recorded` is false for single fits.
    """
    work, numbers = 0.0, scalar(tables, 0)
    constant, last = numbers[CONSTANT], max(numbers[END], numbers[LEAST_PENALTY])
    over = PENALTY if numbers[LEAST_PENALTY] > 0.0 else ENDED
    for _ in range(max_pivots):
        m, lam = int(numbers[LENGTH]), numbers[LAMBDA]
        # A pivot takes longer and longer as the basis grows.
        work += (m + 8.0) * (n_rows(tables) + n_columns(tables) + m)
        if work > max_work:
            return MORE
        why = interruption(tables, m, recorded)
        if why != MORE:
            return why
        if recorded:
            true_coefs(tables, m)
            if numbers[MOVING_ON]:
                why = reach_knot(tables, m)
                if why != MORE:
                    return why
        rates(X, tables, m, constant)
        kind, index, fall, sign = dual_event(tables, m, lam)
        if kind == NOTHING or lam - fall <= last:
            return over
        edge_of(X, tables, m, constant, kind, index, sign)
        stop, place, step = primal_event(tables, m)
        if stop == NOTHING:
            return STUCK
        event, edge = (kind, index, sign), (stop, place)
        if recorded:
            why = leave_knot(X, tables, m, event, edge)
            if why != MORE:
                return why
        travel(tables, m, fall, step)
        numbers[LAMBDA] = lam - fall
        numbers[FRESH] += 1.0
        numbers[PIVOTS] += 1.0
        beta = move_rows(X, tables, constant, lam - fall, event, edge)
        m = exchange(tables, m, event, edge, step, beta)
        if m < 0:
            return STUCK
        numbers[LENGTH] = m
    return MORE
