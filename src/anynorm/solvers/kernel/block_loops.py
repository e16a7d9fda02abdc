"""The innermost loops of the block solver: two variables at a time, within a small block.

A pair (i, j) of variables with F_i > F_j gains by beta_i += t, beta_j -= t (`candidates.py` has F).
With a budget on sum v that is used up, pairs that would raise both variables are out; the others
still span every direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from anynorm.design.addresses import Vector, larger
from anynorm.design.machine_code import machine_code

_FLAT = 1e-12  # of the diagonal: curvatures below count as this
_LEAST = 1e-300  # and those of a diagonal of zeros as this


def block_solver() -> Callable[..., int]:
    """`solve_block` as machine code."""
    return machine_code(solve_block, int, *[Vector()] * 10, float, float, int)


def mark(k, value, sign, lower, upper, rises, falls):
    """Whether beta can rise (0 or -inf, to be added) and fall (1 or 0, a factor) by variable k."""
    inside, positive = value[k] < upper[k], value[k] > lower[k]
    own = sign[k] > 0
    rises[k] = 0.0 if (inside if own else positive) else -math.inf
    falls[k] = 1.0 if (positive if own else inside) else 0.0


def best_riser(q, pull, rises, sign, among):
    """The variable of the largest F that can rise, of one sign (or of both, for 0), or -1."""
    best, k_best = -math.inf, q
    for k in range(q):
        best = larger(best, pull[k] + rises[k] if sign[k] * among >= 0.0 else -math.inf)
    if best == -math.inf:
        return -1
    for k in range(q):
        key = pull[k] + rises[k] if sign[k] * among >= 0.0 else -math.inf
        k_best = min(k_best, k if key == best else q)
    return k_best if k_best < q else -1


def best_partner(q, i, square, diagonal, pull, falls, sign, tight, gains):
    """The j whose pair with i gains most to second order, that gain, and the largest F_i - F_j."""
    first, own, here = i * q, diagonal[i], pull[i]
    size = abs(own)
    least = sign[i] if tight else -1.0  # no pair may raise both of its variables
    best, widest, j_best = 0.0, 0.0, q
    for j in range(q):
        other = diagonal[j]
        difference = larger(here - pull[j], 0.0) * (falls[j] if sign[j] >= least else 0.0)
        floor = _FLAT * (size + abs(other)) + _LEAST
        gain = difference * difference / larger(own + other - 2.0 * square[first + j], floor)
        gains[j] = gain
        best, widest = larger(best, gain), larger(widest, difference)
    if not best > 0.0:
        return -1, 0.0, widest
    for j in range(q):
        j_best = min(j_best, j if gains[j] == best else q)
    return (j_best if j_best < q else -1), best, widest


def move(q, i, j, square, pull, value, sign, lower, upper, left):
    """The best step of a pair, cut where a bound or the budget is met; returns what is left."""
    first, second = i * q, j * q
    own, other = square[first + i], square[second + j]
    floor = _FLAT * (abs(own) + abs(other)) + _LEAST
    curvature = max(own + other - 2.0 * square[first + j], floor)
    step = (pull[i] - pull[j]) / curvature
    up = upper[i] - value[i] if sign[i] > 0 else value[i] - lower[i]
    down = value[j] - lower[j] if sign[j] > 0 else upper[j] - value[j]
    raises = sign[i] > sign[j]
    if raises:
        step = min(step, 0.5 * left)
    step = min(min(step, up), down)
    if raises:
        left = 0.0 if 2.0 * step >= left else left - 2.0 * step
    elif sign[i] < sign[j]:
        left += 2.0 * step
    value[i] += sign[i] * step
    value[j] -= sign[j] * step
    if step == up:
        value[i] = upper[i] if sign[i] > 0 else lower[i]
    if step == down:
        value[j] = lower[j] if sign[j] > 0 else upper[j]
    for k in range(q):
        pull[k] -= step * (square[first + k] - square[second + k])
    return left


def solve_block(
    q, square, pull, value, sign, lower, upper, diagonal, rises, falls, gains, left, tol, max_steps
):
    """Minimise over the q variables of a block; returns the steps made.

    `diagonal`, `rises`, `falls` and `gains` are room for q numbers each.
    """
    for k in range(q):
        diagonal[k] = square[k * q + k]
        mark(k, value, sign, lower, upper, rises, falls)
    for steps in range(max_steps):
        tight = left <= 0.0
        i = best_riser(q, pull, rises, sign, -1.0 if tight else 0.0)
        j, gain, widest = -1, 0.0, 0.0
        if i >= 0:
            j, gain, widest = best_partner(q, i, square, diagonal, pull, falls, sign, tight, gains)
        if tight:
            other = best_riser(q, pull, rises, sign, 1.0)
            if other >= 0:
                k, more, wide = best_partner(
                    q, other, square, diagonal, pull, falls, sign, tight, gains
                )
                widest = max(widest, wide)
                if more > gain:
                    i, j = other, k
        if widest <= tol or j < 0:
            return steps
        left = move(q, i, j, square, pull, value, sign, lower, upper, left)
        mark(i, value, sign, lower, upper, rises, falls)
        mark(j, value, sign, lower, upper, rises, falls)
    return max_steps
