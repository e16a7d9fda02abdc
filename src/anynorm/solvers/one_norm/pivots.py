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
below everything else (`Data.target`, `cost`, `slack`).  What is recorded comes from the sets V and
E and the true data, so it is exact wherever the sets are those of the true problem, which the gap
of each knot verifies.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inner_loop, loop
from anynorm.design.limits import ROUNDING
from anynorm.design.row_access import read_column
from anynorm.solvers.one_norm.basis import (
    border,
    combine,
    replace_column,
    replace_row,
    shrink,
    times,
    times_transposed,
)
from anynorm.solvers.one_norm.knots import (
    arrive,
    depart,
    features_between,
    finish,
    one_norm,
    signed_weights,
    span,
    true_coefs,
    true_duals,
    true_penalty,
    true_step,
)
from anynorm.solvers.one_norm.state import ABOVE, BELOW, ENTERS, LEAVES, NOTHING, TIGHT, pull_all

# What `advance` came back for.
MORE, END, GROW, STORE, FEATURES, KNOTS, RADIUS, PENALTY, STUCK, REFRESH = range(10)

_PIVOTS = 100  # between two refreshes
_DRIFT = 3e-12  # of the largest score: what residuals of E, which are zero, may have drifted
_NO_LOSS = 1e-13  # of the loss at w = 0: what rounding leaves of none, where the path ends


@inner_loop
def drifted(basis, state):
    """Whether rounding has moved the rows of E from zero."""
    worst = 0.0
    for r in range(basis.length[0]):
        worst = max(worst, abs(state.residual[basis.rows[r]]))
    return worst > _DRIFT * state.clock[2]


@inner_loop
def dual_event(data, basis, state, tau, slope):
    """The first event as lambda falls: (kind, slot or column, fall of lambda, sign).

    The sign is that of the residual of a row that leaves E, or of a coefficient that enters.
    """
    m, lam = basis.length[0], state.clock[0]
    kind, index, best, sign, reach = NOTHING, -1, np.inf, 0.0, 0.0
    for r in range(m):
        reach += tau[r] * tau[r]
    reach = ROUNDING * np.sqrt(reach)  # rates below it are rounding
    for r in range(m):
        i = basis.rows[r]
        a, rate = data.y[i] * basis.beta[r], data.y[i] * tau[r]
        closing = data.cost_rate[i] - rate
        room = data.cost[i] + lam * data.cost_rate[i] - a
        if closing > reach and room < best * closing:
            kind, index, sign, best = LEAVES, r, 1.0, max(room, 0.0) / closing
        closing = rate - data.low_rate[i]
        room = a - data.low[i] - lam * data.low_rate[i]
        if closing > reach and room < best * closing:
            kind, index, sign, best = LEAVES, r, -1.0, max(room, 0.0) / closing
    for j in range(data.weight.size):
        if state.used[j]:
            continue
        u = data.weight[j]
        bound, flat = lam * u + data.slack[j], reach * data.size[j]
        if u - slope[j] > flat and bound - state.pull[j] < best * (u - slope[j]):
            kind, index, sign = ENTERS, j, 1.0
            best = max(bound - state.pull[j], 0.0) / (u - slope[j])
        if u + slope[j] > flat and bound + state.pull[j] < best * (u + slope[j]):
            kind, index, sign = ENTERS, j, -1.0
            best = max(bound + state.pull[j], 0.0) / (u + slope[j])
    return kind, index, best, sign


@inner_loop
def primal_event(data, basis, state, direction, change):
    """The first event along the edge: (kind, row or slot, step).

    `direction` moves the coefficients, `change` the scores.  Here ENTERS is a row, LEAVES a
    column.
    """
    flat = 0.0
    for i in range(change.size):
        flat = max(flat, abs(change[i]))
    flat *= ROUNDING
    kind, index, best = NOTHING, -1, np.inf
    for i in range(change.size):
        rate = data.y[i] * change[i]
        if state.side[i] == ABOVE and rate > flat:
            if state.residual[i] < best * rate:
                kind, index, best = ENTERS, i, max(state.residual[i], 0.0) / rate
        elif (state.side[i] == BELOW and rate < -flat) and -state.residual[i] < -best * rate:
            kind, index, best = ENTERS, i, max(-state.residual[i], 0.0) / -rate
    for c in range(basis.length[0]):
        rate = -basis.sign[c] * direction[c]
        if rate > 0 and basis.sign[c] * basis.coef[c] < best * rate:
            kind, index = LEAVES, c
            best = max(basis.sign[c] * basis.coef[c], 0.0) / rate
    return kind, index, best


@inner_loop
def move_row(X, data, state, i, side, share):
    """Row i joins those outside E (share 1) or leaves them (-1)."""
    above = side == ABOVE
    rows, coefs = np.empty(1, np.int64), np.empty(1)
    rows[0] = i
    coefs[0] = share * data.y[i] * (data.true_cost[i] if above else data.true_low[i])
    if coefs[0] != 0.0:
        pull_all(X, data, rows, coefs, state.fixed)
    coefs[0] = share * data.y[i] * (data.cost_rate[i] if above else data.low_rate[i])
    if coefs[0] != 0.0:
        pull_all(X, data, rows, coefs, state.rate)


@inner_loop
def exchange(X, data, basis, state, event, edge, values, moved):
    """Rows and columns after a dual event (kind, index, sign) and a primal one (kind, place)."""
    kind, index, sign = event
    stop, place = edge
    if kind == LEAVES:
        i = basis.rows[index]
        state.side[i] = ABOVE if sign > 0 else BELOW
        move_row(X, data, state, i, state.side[i], 1.0)
    else:
        state.used[index] = True
    beta = 0.0
    if stop == ENTERS:
        side, lam = state.side[place], state.clock[0]
        move_row(X, data, state, place, side, -1.0)
        state.side[place] = TIGHT
        state.residual[place] = 0.0
        beta = data.low[place] + lam * data.low_rate[place]
        if side == ABOVE:
            beta = data.cost[place] + lam * data.cost_rate[place]
        beta *= data.y[place]
    else:
        state.used[basis.cols[place]] = False
    lasting = 0.0 if kind == LEAVES or data.free[index] else sign
    if kind == LEAVES and stop == ENTERS:
        replace_row(basis, index, place)
        basis.beta[index] = beta
    elif kind == ENTERS and stop == LEAVES:
        replace_column(basis, place, index, lasting, values, moved)
    elif kind == ENTERS:
        border(basis, place, index, lasting, values, moved)
        basis.beta[basis.length[0] - 1] = beta
    else:
        shrink(basis, index, place)


@inner_loop
def edge_of(X, data, basis, event, values, moved, direction, change):
    """How coefficients (`direction`) and scores (`change`) move after a dual event.

    `values` becomes the column that enters, `moved` the inverse times it or a column of it.
    """
    kind, index, sign = event
    m, n = moved.size, change.size
    if kind == LEAVES:
        turn = -data.y[basis.rows[index]] * sign
        for c in range(m):
            moved[c] = basis.inverse[c, index]
            direction[c] = turn * moved[c]
        for i in range(n):
            change[i] = 0.0
    else:
        if index == data.weight.size - 1:
            for i in range(n):
                values[i] = data.constant
        else:
            read_column(X, index, values)
        tight = np.empty(m)
        for r in range(m):
            tight[r] = values[basis.rows[r]]
        product = times(basis.inverse, m, tight)
        for c in range(m):
            moved[c], direction[c] = product[c], -sign * product[c]
        for i in range(n):
            change[i] = sign * values[i]
    combine(basis.columns, direction, change)
    for r in range(m):  # rounding apart, the other rows of E stay at zero
        if r != index or kind == ENTERS:
            change[basis.rows[r]] = 0.0


@inner_loop
def travel(data, basis, state, fall, tau, slope, step, direction, change):
    """Lambda falls, then the vertex moves along the edge."""
    state.clock[0] -= fall
    state.clock[1] += 1
    state.clock[3] += 1
    for r in range(tau.size):
        basis.beta[r] -= fall * tau[r]
        basis.coef[r] += step * direction[r]
    for j in range(slope.size):
        state.pull[j] -= fall * slope[j]
    for i in range(change.size):
        state.residual[i] -= step * data.y[i] * change[i]


@inner_loop
def leave_knot(X, data, basis, state, knots, limits, event, edge, tau, moved, direction, change):
    """Record a segment if the true problem moves: (whether it does, a reason to stop)."""
    kind, index, _ = event
    stop, place = edge
    coef = true_coefs(data, basis)
    ahead = true_step(data, basis, coef, direction, change, stop, place)
    entering = index if kind == ENTERS else -1
    if not ahead * span(data, basis, direction, entering) > ROUNDING * state.clock[2]:
        return False, MORE
    beta = true_duals(data, basis, state)
    gains = signed_weights(data, basis)
    lam = true_penalty(data, basis, state, event, tau, beta, moved, gains)
    if lam <= max(limits.penalty, limits.end):
        finish(X, data, basis, state, knots, limits, limits.penalty)
        return False, PENALTY if limits.penalty > 0.0 else END
    for r in range(beta.size):
        beta[r] += lam * tau[r]
    depart(X, data, basis, state, knots, limits, lam, beta)
    if knots.lengths[0] >= limits.knots:
        return False, KNOTS
    if features_between(data, basis, coef, direction, entering) > limits.features:
        return False, FEATURES
    return True, MORE


@inner_loop
def reach_knot(X, data, basis, state, knots, limits, n_duals):
    """Record the vertex that was reached; returns a reason to stop, or MORE."""
    coef, k = true_coefs(data, basis), knots.lengths[0] - 1
    if one_norm(data, basis, coef) <= (1 + ROUNDING) * knots.s[k]:  # the step was rounding
        knots.penalty[k], knots.lengths[2] = 0.0, n_duals
        return MORE
    arrive(data, basis, knots, limits, coef)
    if knots.loss[k + 1] <= _NO_LOSS * limits.zero_primal:
        finish(X, data, basis, state, knots, limits, limits.penalty)
        return END
    return RADIUS if knots.s[k + 1] >= limits.s else MORE


@loop
def advance(X, data, basis, state, knots, limits, max_pivots, max_work):
    """Up to `max_pivots` pivots or `max_work` operations; returns what for it came back."""
    n, p = data.y.size, data.weight.size
    slope, change, values = np.empty(p), np.empty(n), np.empty(n)
    work = 0.0
    for _ in range(max_pivots):
        m = basis.length[0]
        # A pivot takes longer and longer as the basis grows.
        work += (m + 8.0) * (n + p + m)
        if work > max_work:
            return MORE
        if m + 1 > basis.rows.size:
            return GROW
        room = min(knots.coef_value.size - knots.lengths[1] - m, knots.s.size - knots.lengths[0])
        if limits.record and min(room, knots.dual_row.size - knots.lengths[2] - 2 * n) < 2:
            return STORE
        if state.clock[1] >= _PIVOTS or drifted(basis, state):
            return REFRESH
        gains = signed_weights(data, basis)
        for c in range(m):
            gains[c] -= state.rate[basis.cols[c]]
        tau = times_transposed(basis.inverse, m, gains)
        for j in range(p):
            slope[j] = state.rate[j]
        pull_all(X, data, basis.rows[:m], tau, slope)
        kind, index, fall, sign = dual_event(data, basis, state, tau, slope)
        if kind == NOTHING or state.clock[0] - fall <= max(limits.end, limits.penalty):
            finish(X, data, basis, state, knots, limits, limits.penalty)
            return PENALTY if limits.penalty > 0.0 else END
        moved, direction, event = np.empty(m), np.empty(m), (kind, index, sign)
        edge_of(X, data, basis, event, values, moved, direction, change)
        stop, place, step = primal_event(data, basis, state, direction, change)
        if stop == NOTHING:
            return STUCK
        moving, n_duals, edge = False, knots.lengths[2], (stop, place)
        if limits.record:
            moving, why = leave_knot(
                X, data, basis, state, knots, limits, event, edge, tau, moved, direction, change
            )
            if why != MORE:
                return why
        travel(data, basis, state, fall, tau, slope, step, direction, change)
        exchange(X, data, basis, state, event, edge, values, moved)
        if kind == ENTERS:
            basis.coef[place if stop == LEAVES else basis.length[0] - 1] = sign * step
        if moving:
            why = reach_knot(X, data, basis, state, knots, limits, n_duals)
            if why != MORE:
                return why
    return MORE
