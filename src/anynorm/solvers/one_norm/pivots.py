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

import numpy as np

from anynorm.design.compiled import inlined, loop
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
    pull,
)

_PIVOTS = 100  # between two refreshes
_DRIFT = 3e-12  # of the largest score: what residuals of E, which are zero, may have drifted


@inlined
def drifted(row, member, m, largest):
    """Whether rounding has moved the rows of E from zero."""
    worst = 0.0
    for r in range(m):
        worst = max(worst, abs(row[RESIDUAL, member[ROW, r]]))
    return worst > _DRIFT * largest


@inlined
def rates(X, column, slot, member, inverse, scalar, m):
    """How the duals of E (`TAU`) and all pulls (`SLOPE`) move with lambda."""
    goal, tau, slope = slot[GOAL], slot[TAU], column[SLOPE]
    for c in range(m):
        j = member[COLUMN, c]
        slot[GAIN, c] = 0.0 if column[FREE, j] else slot[SIGN, c] * column[WEIGHT, j]
        goal[c] = slot[GAIN, c] - column[RATE, j]
    times_transposed(inverse, m, goal, tau)
    for j in range(slope.size):
        slope[j] = column[RATE, j]
    pull(X, member[ROW], tau, m, scalar[CONSTANT], slope)


@inlined
def dual_event(row, column, slot, member, m, lam):
    """The first event as lambda falls: (kind, slot or column, fall of lambda, sign).

    The sign is that of the residual of a row that leaves E, or of a coefficient that enters.
    """
    kind, index, best, sign, reach = NOTHING, m, np.inf, 0.0, 0.0
    for r in range(m):
        reach += slot[TAU, r] * slot[TAU, r]
    reach = ROUNDING * np.sqrt(reach)  # rates below it are rounding
    for r in range(m):
        i = member[ROW, r]
        a, rate = row[Y, i] * slot[BETA, r], row[Y, i] * slot[TAU, r]
        closing = row[COST_RATE, i] - rate
        room = row[COST, i] + lam * row[COST_RATE, i] - a
        if closing > reach and room < best * closing:
            kind, index, sign, best = LEAVES, r, 1.0, max(room, 0.0) / closing
        closing = rate - row[LOW_RATE, i]
        room = a - row[LOW, i] - lam * row[LOW_RATE, i]
        if closing > reach and room < best * closing:
            kind, index, sign, best = LEAVES, r, -1.0, max(room, 0.0) / closing
    for j in range(column.shape[1]):
        if column[USED, j]:
            continue
        u, slope = column[WEIGHT, j], column[SLOPE, j]
        bound, flat = lam * u + column[SLACK, j], reach * column[SIZE, j]
        room = bound - column[PULL, j]
        if u - slope > flat and room < best * (u - slope):
            kind, index, sign, best = ENTERS, j, 1.0, max(room, 0.0) / (u - slope)
        room = bound + column[PULL, j]
        if u + slope > flat and room < best * (u + slope):
            kind, index, sign, best = ENTERS, j, -1.0, max(room, 0.0) / (u + slope)
    return kind, index, best, sign


@inlined
def primal_event(row, slot, m):
    """The first event along the edge: (kind, row or slot, step).

    Here ENTERS is a row, LEAVES a column.
    """
    flat = 0.0
    for i in range(row.shape[1]):
        flat = max(flat, abs(row[CHANGE, i]))
    flat *= ROUNDING
    kind, index, best = NOTHING, m, np.inf
    for i in range(row.shape[1]):
        # Towards zero: the residual of a row above falls, that of one below rises.
        inwards = 1.0 if row[SIDE, i] == ABOVE else -1.0
        rate, room = inwards * row[Y, i] * row[CHANGE, i], inwards * row[RESIDUAL, i]
        if row[SIDE, i] != TIGHT and rate > flat and room < best * rate:
            kind, index, best = ENTERS, i, max(room, 0.0) / rate
    for c in range(m):
        rate, room = -slot[SIGN, c] * slot[DIRECTION, c], slot[SIGN, c] * slot[COEF, c]
        if rate > 0 and room < best * rate:
            kind, index, best = LEAVES, c, max(room, 0.0) / rate
    return kind, index, best


@inlined
def edge_of(X, row, column, slot, member, inverse, block, scalar, m, kind, index, sign):
    """How coefficients (`DIRECTION`) and scores (`CHANGE`) move after a dual event.

    `VALUES` becomes the column that enters, `MOVED` the inverse times it or a column of it.
    """
    moved, values, change, goal = slot[MOVED], row[VALUES], row[CHANGE], slot[GOAL]
    turn = -sign
    if kind == LEAVES:
        turn *= row[Y, member[ROW, index]]
        for c in range(m):
            moved[c] = inverse[c, index]
        for i in range(change.size):
            change[i] = 0.0
    else:
        if index < column.shape[1] - 1:
            read_column(X, index, values)
        else:
            for i in range(values.size):
                values[i] = scalar[CONSTANT]
        for r in range(m):
            goal[r] = values[member[ROW, r]]
        times(inverse, m, goal, moved)
        for i in range(change.size):
            change[i] = sign * values[i]
    for c in range(m):
        slot[DIRECTION, c] = turn * moved[c]
    combine(block, slot[DIRECTION], m, change)
    for r in range(m):  # rounding apart, the other rows of E stay at zero
        if r != index or kind == ENTERS:
            change[member[ROW, r]] = 0.0


@inlined
def travel(row, column, slot, scalar, m, fall, step):
    """Lambda falls, then the vertex moves along the edge."""
    scalar[LAMBDA] -= fall
    scalar[FRESH] += 1.0
    scalar[PIVOTS] += 1.0
    for r in range(m):
        slot[BETA, r] -= fall * slot[TAU, r]
        slot[COEF, r] += step * slot[DIRECTION, r]
    for j in range(column.shape[1]):
        column[PULL, j] -= fall * column[SLOPE, j]
    for i in range(row.shape[1]):
        row[RESIDUAL, i] -= step * row[Y, i] * row[CHANGE, i]


@inlined
def move_rows(X, row, column, slot, member, scalar, event, edge):
    """A row leaves E after a dual event, one enters after a primal one; returns its dual."""
    kind, index, sign = event
    stop, place = edge
    moving, fixed, rate, beta = member[MOVING], slot[GOAL], slot[GOAL + 1], 0.0
    leaving = int(kind == LEAVES)
    count = leaving + int(stop == ENTERS)
    if kind == LEAVES:
        i = member[ROW, index]
        row[SIDE, i] = ABOVE if sign > 0 else BELOW
        moving[0] = i
        fixed[0] = row[Y, i] * row[TRUE_COST if sign > 0 else TRUE_LOW, i]
        rate[0] = row[Y, i] * row[COST_RATE if sign > 0 else LOW_RATE, i]
    if stop == ENTERS:
        y, above, lam = row[Y, place], row[SIDE, place] == ABOVE, scalar[LAMBDA]
        row[SIDE, place], row[RESIDUAL, place] = TIGHT, 0.0
        moving[leaving] = place
        fixed[leaving] = -y * row[TRUE_COST if above else TRUE_LOW, place]
        rate[leaving] = -y * row[COST_RATE if above else LOW_RATE, place]
        beta = y * row[COST if above else LOW, place] - lam * rate[leaving]
    for which in range(2):  # FIXED, then RATE
        coefs, total = slot[GOAL + which], 0.0
        for k in range(count):
            total += abs(coefs[k])
        if total > 0.0:  # rates are zero on the path
            pull(X, moving, coefs, count, scalar[CONSTANT], column[FIXED + which])
    return beta


@inlined
def exchange(row, column, slot, member, inverse, block, scalar, m, event, edge, step, beta):
    """The basis after a dual event (kind, index, sign) and a primal one (stop, place)."""
    kind, index, sign = event
    stop, place = edge
    free = index if kind == LEAVES else m  # the slot for a row that enters
    if stop == ENTERS:
        enter_row(row, slot, inverse, block, m, place, free)
        member[ROW, free], slot[BETA, free] = place, beta
    else:
        leave_column(slot, inverse, m, place)
        column[USED, member[COLUMN, place]] = 0.0
        if kind == LEAVES:
            fill_places(slot, member, inverse, block, m - 1, index, place)
            scalar[LENGTH] = m - 1
    if kind == ENTERS:
        at = place if stop == LEAVES else m
        for i in range(block.shape[1]):
            block[at, i] = row[VALUES, i]
        column[USED, index] = 1.0
        member[COLUMN, at], slot[COEF, at] = index, sign * step
        slot[SIGN, at] = 0.0 if column[FREE, index] else sign
        if stop == ENTERS:
            scalar[LENGTH] = m + 1


@inlined
def interruption(row, member, scalar, room, record, m):
    """What Python is asked for before the next pivot, or MORE."""
    if m + 1 > room:
        return GROW
    if record is not None:
        knots, coefs, duals = record
        left = min(coefs.shape[1] - scalar[N_COEFS] - m, knots.shape[1] - scalar[N_KNOTS])
        if min(left, duals.shape[1] - scalar[N_DUALS] - 2 * row.shape[1]) < 2:
            return STORE
    if scalar[FRESH] >= _PIVOTS or drifted(row, member, m, scalar[LARGEST]):
        return REFRESH
    return MORE


@loop
def advance(X, row, column, slot, member, inverse, block, scalar, record, max_pivots, max_work):
    """Up to `max_pivots` pivots or `max_work` operations; returns what for it came back.

    `record` has the tables (knots, coefs, duals) of a path, and is None for single fits.
    """
    work = 0.0
    for _ in range(max_pivots):
        m = int(scalar[LENGTH])
        # A pivot takes longer and longer as the basis grows.
        work += (m + 8.0) * (row.shape[1] + column.shape[1] + m)
        if work > max_work:
            return MORE
        why = interruption(row, member, scalar, inverse.shape[0], record, m)
        if why != MORE:
            return why
        if record is not None:
            true_coefs(row, slot, member, inverse, m)
            if scalar[MOVING_ON]:
                why = reach_knot(row, column, slot, member, block, scalar, record, m)
                if why != MORE:
                    return why
        rates(X, column, slot, member, inverse, scalar, m)
        kind, index, fall, sign = dual_event(row, column, slot, member, m, scalar[LAMBDA])
        last = max(scalar[END], scalar[LEAST_PENALTY])
        if kind == NOTHING or scalar[LAMBDA] - fall <= last:
            return PENALTY if scalar[LEAST_PENALTY] > 0.0 else ENDED
        edge_of(X, row, column, slot, member, inverse, block, scalar, m, kind, index, sign)
        stop, place, step = primal_event(row, slot, m)
        if stop == NOTHING:
            return STUCK
        event, edge = (kind, index, sign), (stop, place)
        if record is not None:
            why = leave_knot(
                X, row, column, slot, member, inverse, block, scalar, record, m, event, edge
            )
            if why != MORE:
                return why
        travel(row, column, slot, scalar, m, fall, step)
        beta = move_rows(X, row, column, slot, member, scalar, event, edge)
        exchange(row, column, slot, member, inverse, block, scalar, m, event, edge, step, beta)
    return MORE
