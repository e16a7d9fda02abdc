"""What the path records: the vertices of the true problem and the duals of its segments.

The pivots run on data in general position.  A knot is made from the sets V and E and the true data:
coefficients M^-1 y_E, lambda of the event, duals, and the gap that verifies it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anynorm.design.compiled import inner_loop, loop
from anynorm.design.limits import FLOOR, ROUNDING
from anynorm.solvers.one_norm.basis import combine, times_transposed
from anynorm.solvers.one_norm.state import ABOVE, LEAVES, TIGHT, pull_all

_ZERO = 1e-12  # of what a coefficient is the sum of
_AT_ONE = 1e-9  # residuals that count as zero where the bias is placed
_TIED = 1e-7  # residuals up to which a row at a bound is recorded: it may join E nearby
_BALANCED = 1e-9  # relative: pulls on free columns, sum(beta) too, that count as zero


class KnotStore(NamedTuple):
    """What was recorded; `lengths` holds (knots, coefficients, duals)."""

    lengths: np.ndarray
    s: np.ndarray
    penalty: np.ndarray
    loss: np.ndarray
    dual: np.ndarray  # objective value on the segment that leaves
    gap: np.ndarray
    bias: np.ndarray
    coef_end: np.ndarray
    coef_column: np.ndarray
    coef_value: np.ndarray
    dual_end: np.ndarray
    dual_row: np.ndarray
    dual_value: np.ndarray


class PathLimits(NamedTuple):
    """Where to stop: most features, most knots, largest s, least lambda, and the end's lambda."""

    features: int
    knots: int
    s: float
    penalty: float
    end: float
    zero_primal: float
    record: bool


@inner_loop
def signed_weights(data, basis):
    """sign_V u_V, with 0 for columns without penalty."""
    out = np.zeros(basis.length[0])
    for c in range(out.size):
        if not data.free[basis.cols[c]]:
            out[c] = basis.sign[c] * data.weight[basis.cols[c]]
    return out


@loop
def true_coefs(data, basis):
    """The vertex of the true problem: M^-1 y_E, with exact zeros where the sum cancels."""
    m = basis.length[0]
    coef = np.empty(m)
    for c in range(m):
        total, terms = 0.0, 0.0
        for r in range(m):
            total += basis.inverse[c, r] * data.y[basis.rows[r]]
            terms += abs(basis.inverse[c, r])
        coef[c] = total if abs(total) > _ZERO * terms else 0.0
    return coef


@inner_loop
def one_norm(data, basis, coef):
    """s: the weighted 1-norm of the coefficients."""
    total = 0.0
    for c in range(coef.size):
        if not data.free[basis.cols[c]]:
            total += data.weight[basis.cols[c]] * abs(coef[c])
    return total


@inner_loop
def true_step(data, basis, coef, direction, change, kind, index):
    """How far the edge goes in the true problem, measured by the scores that it moves."""
    if kind == LEAVES:
        step = -coef[index] / direction[index]
    else:
        score = 0.0
        for c in range(coef.size):
            score += basis.columns[c, index] * coef[c]
        step = (1.0 - data.y[index] * score) / (data.y[index] * change[index])
    return step


@inner_loop
def span(data, basis, direction, entering):
    """The largest change of the scores by one penalised coefficient, per unit of the step."""
    largest = data.size[entering] if entering >= 0 and not data.free[entering] else 0.0
    for c in range(direction.size):
        if basis.sign[c] != 0.0:
            largest = max(largest, data.size[basis.cols[c]] * abs(direction[c]))
    return largest


@inner_loop
def true_duals(data, basis, state):
    """M^-T of the pull that the rows outside E exert on V, with its sign: beta_E at lambda 0."""
    m = basis.length[0]
    goal = np.empty(m)
    for c in range(m):
        goal[c] = -state.fixed[basis.cols[c]]
    return times_transposed(basis.inverse, m, goal)


@inner_loop
def dual_pressure(X, data, basis, state, lam, inside):
    """The factor by which the pulls exceed their bounds, at least 1; inf where a free one does."""
    work = np.empty(state.fixed.size)
    for j in range(work.size):
        work[j] = state.fixed[j]
    pull_all(X, data, basis.rows[: inside.size], inside, work)
    scale = 0.0
    for i in range(data.true_cost.size):
        scale += data.true_cost[i] ** 2
    scale, pressure = np.sqrt(scale), 1.0
    for j in range(work.size):
        bound = lam * data.weight[j]
        if data.free[j]:
            if abs(work[j]) > _BALANCED * data.size[j] * scale:
                pressure = np.inf
        elif bound > 0.0 and abs(work[j]) > pressure * bound:
            pressure = abs(work[j]) / bound
    return pressure


@inner_loop
def depart(X, data, basis, state, knots, limits, lam, beta):
    """Record the segment that leaves the last knot: lambda, the duals of its rows, the gap."""
    m, k = basis.length[0], knots.lengths[0] - 1
    inside = np.empty(m)
    for r in range(m):
        i = basis.rows[r]
        a = min(max(data.y[i] * beta[r], data.true_low[i]), data.true_cost[i])
        inside[r] = data.y[i] * a
    pressure, total = dual_pressure(X, data, basis, state, lam, inside), 0.0
    for i in range(data.y.size):
        if state.side[i] != TIGHT:
            total += data.true_cost[i] if state.side[i] == ABOVE else data.true_low[i]
    end = knots.lengths[2]
    for r in range(m):
        i = basis.rows[r]
        a = data.y[i] * inside[r]
        total += a
        knots.dual_row[end], knots.dual_value[end] = i, a
        end += 1
    for i in range(data.y.size):
        if state.side[i] != TIGHT and abs(state.residual[i]) <= _TIED:
            knots.dual_row[end] = i
            knots.dual_value[end] = (
                data.true_cost[i] if state.side[i] == ABOVE else data.true_low[i]
            )
            end += 1
    knots.lengths[2] = end
    knots.dual_end[k] = end
    knots.penalty[k] = lam
    # Shrunk into the bounds the duals are feasible; a pressure of inf leaves a gap of 1.
    knots.dual[k] = total / pressure
    if lam > 0.0:
        knots.gap[k] = max(knots.gap[k], gap_at(knots, k, k, limits))


@inner_loop
def gap_at(knots, k, segment, limits):
    """The relative gap of knot k at the lambda of a segment that touches it.

    The path ends at an optimum of 0: there the gap is relative to the loss at w = 0.
    """
    primal, dual = knots.loss[k] + knots.penalty[segment] * knots.s[k], knots.dual[segment]
    return (primal - dual) / max(abs(primal), abs(dual), FLOOR * limits.zero_primal)


@inner_loop
def way_to(data, residual, up):
    """How far the bias can move, up or down, at no cost: 0 mostly, inf if for ever."""
    slope, total, way = 0.0, 0.0, np.inf
    for i in range(data.y.size):
        rising = (data.y[i] < 0) == up  # the residual grows on that way
        r = residual[i]
        above = r > _AT_ONE or (rising and r >= -_AT_ONE)
        a = data.true_cost[i] if above else data.true_low[i]
        slope += a if rising else -a
        total += data.true_cost[i]
        if not rising and r > _AT_ONE:
            way = min(way, r)
        elif rising and r < -_AT_ONE:
            way = min(way, -r)
    return way if slope <= ROUNDING * total else 0.0


@inner_loop
def middle_bias(data, residual):
    """What takes the bias to the middle of its optimal interval, or to the end of a half-line."""
    up, down = way_to(data, residual, True), way_to(data, residual, False)
    if up == np.inf or down == np.inf:
        return 0.0
    return 0.5 * (up - down)


@loop
def arrive(data, basis, knots, limits, coef):
    """Record a vertex."""
    k, end, bias = knots.lengths[0], knots.lengths[1], 0.0
    residual = np.zeros(data.y.size)
    combine(basis.columns, coef, residual)
    loss = 0.0
    for i in range(data.y.size):
        r = 1.0 - data.y[i] * residual[i]
        loss += r * (data.true_cost[i] if r > 0 else data.true_low[i])
        residual[i] = r
    for c in range(coef.size):
        j = basis.cols[c]
        if j == data.weight.size - 1:
            bias = data.constant * coef[c]
        elif coef[c] != 0.0:
            knots.coef_column[end], knots.coef_value[end] = j, coef[c]
            end += 1
    if data.free[data.free.size - 1]:
        bias += middle_bias(data, residual)
    knots.s[k], knots.loss[k], knots.bias[k] = one_norm(data, basis, coef), loss, bias
    knots.gap[k] = gap_at(knots, k, k - 1, limits) if k > 0 else 0.0
    knots.lengths[0], knots.lengths[1] = k + 1, end
    knots.coef_end[k] = end


@inner_loop
def features_between(data, basis, coef, direction, entering):
    """How many coefficients are not zero on the segment that leaves a vertex."""
    last = data.weight.size - 1
    count = 1 if 0 <= entering < last else 0
    least = _ZERO * span(data, basis, direction, entering)
    for c in range(coef.size):
        j = basis.cols[c]
        if j < last and (coef[c] != 0.0 or abs(direction[c]) * data.size[j] > least):
            count += 1
    return count


@inner_loop
def true_penalty(data, basis, state, event, tau, resting, moved, gains):
    """Lambda of a dual event in the true problem."""
    kind, index, sign = event
    if kind == LEAVES:
        i = basis.rows[index]
        bound = data.true_cost[i] if sign > 0 else data.true_low[i]
        return (data.y[i] * bound - resting[index]) / tau[index]
    pull, rate = state.fixed[index], sign * data.weight[index]
    for c in range(moved.size):
        pull -= moved[c] * state.fixed[basis.cols[c]]
        rate -= moved[c] * gains[c]
    return pull / rate


@loop
def finish(X, data, basis, state, knots, limits, lam):
    """Record the duals of the last knot at the given lambda."""
    if limits.record and knots.lengths[0] > 0:
        beta = true_duals(data, basis, state)
        tau = times_transposed(basis.inverse, beta.size, signed_weights(data, basis))
        for r in range(beta.size):
            beta[r] += lam * tau[r]
        depart(X, data, basis, state, knots, limits, lam, beta)
