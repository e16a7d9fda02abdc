"""The loops of the block solver: two variables at a time, within a small block.

A variable v_k moves beta of its row by sign_k.  Its pull is the negative gradient along beta,

    F_k = sign_k gain_k - (K beta)_row - d_row beta_row ,

and a pair (i, j) with F_i > F_j gains by beta_i += t, beta_j -= t.  With a budget on sum v that is
used up, pairs that would raise both variables are out; the others still span every direction.
"""

from __future__ import annotations

import numpy as np

from anynorm._jit import inner_kernel, kernel

_FLAT = 1e-12  # of the diagonal: curvatures below count as this


@kernel
def pulls(scores, beta, sign, row, gain, diagonal, out):
    """F of every variable; an empty `diagonal` is zero."""
    for k in range(out.size):
        i = row[k]
        out[k] = sign[k] * gain[k] - scores[i]
        if diagonal.size:
            out[k] -= diagonal[i] * beta[i]


@kernel
def rises_and_falls(pull, value, sign, lower, upper, tight, rise, fall):
    """F where beta can go up, -F where it can go down, -inf elsewhere.

    Returns the largest violation and the ends of the interval of the bias.  With a tight budget no
    pair may raise both of its variables, and each sign has an interval of its own: the budget's
    multiplier moves one up as far as the other down.
    """
    up = np.full(2, -np.inf)  # of the positive and the negative variables
    down = np.full(2, -np.inf)
    for k in range(pull.size):
        inside, positive = value[k] < upper[k], value[k] > lower[k]
        own = 0 if sign[k] > 0 else 1
        rises, falls = (inside, positive) if sign[k] > 0 else (positive, inside)
        rise[k] = pull[k] if rises else -np.inf
        fall[k] = -pull[k] if falls else -np.inf
        up[own], down[own] = max(up[own], rise[k]), max(down[own], fall[k])
    if tight:
        violation = max(up[1] + max(down[0], down[1]), up[0] + down[0])
        return violation, 0.5 * (up[0] + up[1]), -0.5 * (down[0] + down[1])
    return max(up[0], up[1]) + max(down[0], down[1]), max(up[0], up[1]), -max(down[0], down[1])


@inner_kernel
def room_up(k, value, sign, lower, upper):
    """How far beta can rise by variable k."""
    return upper[k] - value[k] if sign[k] > 0 else value[k] - lower[k]


@inner_kernel
def room_down(k, value, sign, lower, upper):
    """How far beta can fall by variable k."""
    return value[k] - lower[k] if sign[k] > 0 else upper[k] - value[k]


@inner_kernel
def best_riser(pull, value, sign, lower, upper, among):
    """The variable of the largest F that can rise, of one sign (or of both, for 0), or -1."""
    best, k_best = -np.inf, -1
    for k in range(pull.size):
        if (among != 0.0 and sign[k] != among) or pull[k] <= best:
            continue
        if room_up(k, value, sign, lower, upper) > 0.0:
            best, k_best = pull[k], k
    return k_best


@inner_kernel
def best_partner(i, square, pull, value, sign, lower, upper, tight):
    """The j whose pair with i gains most to second order, its gain, and the largest F_i - F_j."""
    best, j_best, widest = 0.0, -1, 0.0
    for j in range(pull.size):
        difference = pull[i] - pull[j]
        if difference <= 0.0 or room_down(j, value, sign, lower, upper) <= 0.0:
            continue
        if tight and sign[i] > sign[j]:
            continue
        widest = max(widest, difference)
        floor = _FLAT * (square[i, i] + square[j, j]) + 1e-300
        curvature = max(square[i, i] + square[j, j] - 2.0 * square[i, j], floor)
        gain = difference * difference / curvature
        if gain > best:
            best, j_best = gain, j
    return j_best, best, widest


@inner_kernel
def move(i, j, square, pull, value, sign, lower, upper, left):
    """The best step of a pair, cut where a bound or the budget is met; returns what is left."""
    floor = _FLAT * (square[i, i] + square[j, j]) + 1e-300
    curvature = max(square[i, i] + square[j, j] - 2.0 * square[i, j], floor)
    step = (pull[i] - pull[j]) / curvature
    up, down = room_up(i, value, sign, lower, upper), room_down(j, value, sign, lower, upper)
    raises = sign[i] > sign[j]
    if raises and 2.0 * step >= left:
        step, left = min(step, 0.5 * left), 0.0
    elif raises:
        left -= 2.0 * step
    if step >= up or step >= down:
        shorter = min(step, up, down)
        if raises:
            left += 2.0 * (step - shorter)
        step = shorter
    if sign[i] < sign[j]:
        left += 2.0 * step
    value[i] += sign[i] * step
    value[j] -= sign[j] * step
    if step == up:
        value[i] = upper[i] if sign[i] > 0 else lower[i]
    if step == down:
        value[j] = lower[j] if sign[j] > 0 else upper[j]
    for k in range(pull.size):
        pull[k] -= step * (square[k, i] - square[k, j])
    return left


@kernel
def solve_block(square, pull, value, sign, lower, upper, left, tol, max_steps):
    """Minimise over the variables of a block; returns the steps made."""
    for steps in range(max_steps):
        tight = left <= 0.0
        i = best_riser(pull, value, sign, lower, upper, -1.0 if tight else 0.0)
        j, gain, widest = -1, 0.0, 0.0
        if i >= 0:
            j, gain, widest = best_partner(i, square, pull, value, sign, lower, upper, tight)
        if tight:
            other = best_riser(pull, value, sign, lower, upper, 1.0)
            if other >= 0:
                k, more, wide = best_partner(other, square, pull, value, sign, lower, upper, tight)
                widest = max(widest, wide)
                if more > gain:
                    i, j = other, k
        if widest <= tol or j < 0:
            return steps
        left = move(i, j, square, pull, value, sign, lower, upper, left)
    return max_steps


@inner_kernel
def sift_down(heap, keys, place, size):
    """Restore the order of a heap of indices with the smallest key on top."""
    while True:
        child = 2 * place + 1
        if child >= size:
            return
        if child + 1 < size and keys[heap[child + 1]] < keys[heap[child]]:
            child += 1
        if keys[heap[place]] <= keys[heap[child]]:
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


@kernel
def largest(keys, count, sign, among):
    """The indices of the `count` largest keys above -inf, of one sign (or of both, for 0)."""
    heap, size = np.empty(count, np.int64), 0
    for k in range(keys.size):
        if keys[k] == -np.inf or (among != 0.0 and sign[k] != among):
            continue
        if size < count:
            heap[size] = k
            size += 1
            if size == count:
                for place in range(count // 2 - 1, -1, -1):
                    sift_down(heap, keys, place, count)
        elif count > 0 and keys[k] > keys[heap[0]]:
            heap[0] = k
            sift_down(heap, keys, 0, count)
    return heap[:size]
