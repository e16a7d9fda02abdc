"""What the pivots work on: the data in general position, the sets, and the loops they share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anynorm.design.compiled import inner_loop, loop
from anynorm.design.row_access import add_rows
from anynorm.solvers.one_norm.basis import combine, times, times_transposed

BELOW, ABOVE, TIGHT = 0, 1, 2  # margins above 1 (r < 0), below 1 (r > 0), and rows of E
LEAVES, ENTERS, NOTHING = 0, 1, 2  # events


class Data(NamedTuple):
    """The problem; `target`, `cost`, `low` and `slack` are in general position.

    The bounds of a_i are ``low + lambda * low_rate`` and ``cost + lambda * cost_rate``, that of
    |X_j'beta| is ``slack + lambda * weight``.  On the path the rates are zero.
    """

    y: np.ndarray
    target: np.ndarray
    cost: np.ndarray
    low: np.ndarray
    cost_rate: np.ndarray
    low_rate: np.ndarray
    true_cost: np.ndarray
    true_low: np.ndarray
    weight: np.ndarray  # of the columns and, last, of the constant column
    slack: np.ndarray
    free: np.ndarray  # columns without any penalty
    size: np.ndarray  # the 2-norm of each column
    constant: float


class State(NamedTuple):
    """Where every row and column is.

    `clock` holds (lambda, pivots since the last refresh, largest score, pivots).
    """

    side: np.ndarray
    used: np.ndarray
    residual: np.ndarray
    pull: np.ndarray
    rate: np.ndarray  # how the pull of the rows outside E moves with lambda
    fixed: np.ndarray  # the pull of the rows outside E, with the true costs
    clock: np.ndarray


@inner_loop
def pull_all(X, data, rows, coefs, out):
    """Out += [X, constant]' on some rows."""
    add_rows(X, rows, coefs, out)
    total = 0.0
    for r in range(coefs.size):
        total += coefs[r]
    out[out.size - 1] += data.constant * total


@inner_loop
def pull_outside(X, data, side, above, below, out):
    """Out = [X, constant]'(y a) over the rows outside E, with a = above or below."""
    n = side.size
    rows, betas, count = np.empty(n, np.int64), np.empty(n), 0
    for i in range(n):
        a = above[i] if side[i] == ABOVE else below[i]
        if side[i] != TIGHT and a != 0.0:
            rows[count], betas[count] = i, data.y[i] * a
            count += 1
    for j in range(out.size):
        out[j] = 0.0
    pull_all(X, data, rows[:count], betas[:count], out)


@inner_loop
def moved_bounds(bounds, rates, lam):
    """Bounds + lam * rates."""
    out = np.empty(bounds.size)
    for i in range(bounds.size):
        out[i] = bounds[i] + lam * rates[i]
    return out


@loop
def refresh(X, data, basis, state):
    """Coefficients, residuals, duals and pulls from the sets and a new inverse."""
    m, lam = basis.length[0], state.clock[0]
    pull_outside(X, data, state.side, data.true_cost, data.true_low, state.fixed)
    pull_outside(X, data, state.side, data.cost_rate, data.low_rate, state.rate)
    cost = moved_bounds(data.cost, data.cost_rate, lam)
    low = moved_bounds(data.low, data.low_rate, lam)
    pull_outside(X, data, state.side, cost, low, state.pull)
    goal, target = np.empty(m), np.empty(m)
    for c in range(m):
        j, i = basis.cols[c], basis.rows[c]
        bound = lam * data.weight[j] + data.slack[j]
        goal[c] = (0.0 if data.free[j] else basis.sign[c] * bound) - state.pull[j]
        target[c] = data.y[i] * data.target[i]
    beta, coef = times_transposed(basis.inverse, m, goal), times(basis.inverse, m, target)
    for c in range(m):
        basis.beta[c], basis.coef[c] = beta[c], coef[c]
    pull_all(X, data, basis.rows[:m], beta, state.pull)
    scores, largest = np.zeros(data.y.size), 1.0
    combine(basis.columns, coef, scores)
    for i in range(data.y.size):
        state.residual[i] = data.target[i] - data.y[i] * scores[i]
        largest = max(largest, abs(scores[i]))
    for r in range(m):
        state.residual[basis.rows[r]] = 0.0
    state.clock[1], state.clock[2] = 0, largest
