"""The loops of the block solver: two variables at a time, within a small block.

A variable v_k moves beta of its row by sign_k.  Its pull is the negative gradient along beta,

    F_k = sign_k gain_k - (K beta)_row - d_row beta_row ,

and a pair (i, j) with F_i > F_j gains by beta_i += t, beta_j -= t.  With a budget on sum v that is
used up, pairs that would raise both variables are out; the others still span every direction.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inlined, inner_loop, loop

_FLAT = 1e-12  # of the diagonal: curvatures below count as this


@loop
def pulls(scores, beta, sign, row, gain, diagonal, out):
    """F of every variable; an empty `diagonal` is zero."""
    for k in range(out.size):
        i = row[k]
        out[k] = sign[k] * gain[k] - scores[i]
        if diagonal.size:
            out[k] -= diagonal[i] * beta[i]


@loop
def rises_and_falls(pull, value, sign, lower, upper, tight, rise, fall):
    """F where beta can go up, -F where it can go down, -inf elsewhere.

    Returns the largest violation and the ends of the interval of the bias.  With a tight budget no
    pair may raise both of its variables, and each sign has an interval of its own: the budget's
    multiplier moves one up as far as the other down.
    """
    up, down = np.empty(2), np.empty(2)  # of the positive and the negative variables
    up[0] = up[1] = down[0] = down[1] = -np.inf
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


@inner_loop
def mark(k, value, sign, lower, upper, rises, falls):
    """Whether beta can rise (0 or -inf, to be added) and fall (1 or 0, a factor) by variable k."""
    inside, positive = value[k] < upper[k], value[k] > lower[k]
    up, down = (inside, positive) if sign[k] > 0 else (positive, inside)
    rises[k] = 0.0 if up else -np.inf
    falls[k] = 1.0 if down else 0.0


@inner_loop
def best_riser(pull, rises, sign, among):
    """The variable of the largest F that can rise, of one sign (or of both, for 0), or -1."""
    best, k_best = -np.inf, -1
    for k in range(pull.size):
        key = pull[k] + rises[k]
        if key > best and (among == 0.0 or sign[k] == among):
            best, k_best = key, k
    return k_best


@inner_loop
def best_partner(i, square, pull, falls, sign, tight, gains):
    """The j whose pair with i gains most to second order, that gain, and the largest F_i - F_j."""
    row, own, here, widest = square[i], square[i, i], pull[i], 0.0
    for j in range(pull.size):
        difference = max(here - pull[j], 0.0) * falls[j]
        curvature = own + square[j, j] - 2.0 * row[j]
        floor = _FLAT * (abs(own) + abs(square[j, j])) + 1e-300
        gains[j] = difference * difference / max(curvature, floor)
        widest = max(widest, difference)
    best, j_best = 0.0, -1
    for j in range(pull.size):
        if gains[j] > best and not (tight and sign[i] > sign[j]):
            best, j_best = gains[j], j
    if tight and sign[i] > 0:
        widest = 0.0
        for j in range(pull.size):
            if sign[j] > 0:
                widest = max(widest, (here - pull[j]) * falls[j])
    return j_best, best, widest


@inlined
def move(i, j, square, pull, value, sign, lower, upper, left):
    """The best step of a pair, cut where a bound or the budget is met; returns what is left."""
    floor = _FLAT * (abs(square[i, i]) + abs(square[j, j])) + 1e-300
    curvature = max(square[i, i] + square[j, j] - 2.0 * square[i, j], floor)
    step = (pull[i] - pull[j]) / curvature
    up = upper[i] - value[i] if sign[i] > 0 else value[i] - lower[i]
    down = value[j] - lower[j] if sign[j] > 0 else upper[j] - value[j]
    raises = sign[i] > sign[j]
    if raises:
        step = min(step, 0.5 * left)
    step = min(step, up, down)
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
    first, second = square[i], square[j]
    for k in range(pull.size):
        pull[k] -= step * (first[k] - second[k])
    return left


@loop
def solve_block(square, pull, value, sign, lower, upper, left, tol, max_steps):
    """Minimise over the variables of a block; returns the steps made."""
    q = pull.size
    rises, falls, gains = np.empty(q), np.empty(q), np.empty(q)
    for k in range(q):
        mark(k, value, sign, lower, upper, rises, falls)
    for steps in range(max_steps):
        tight = left <= 0.0
        i = best_riser(pull, rises, sign, -1.0 if tight else 0.0)
        j, gain, widest = -1, 0.0, 0.0
        if i >= 0:
            j, gain, widest = best_partner(i, square, pull, falls, sign, tight, gains)
        if tight:
            other = best_riser(pull, rises, sign, 1.0)
            if other >= 0:
                k, more, wide = best_partner(other, square, pull, falls, sign, tight, gains)
                widest = max(widest, wide)
                if more > gain:
                    i, j = other, k
        if widest <= tol or j < 0:
            return steps
        left = move(i, j, square, pull, value, sign, lower, upper, left)
        mark(i, value, sign, lower, upper, rises, falls)
        mark(j, value, sign, lower, upper, rises, falls)
    return max_steps


@inlined
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


@loop
def largest(keys, count, sign, among):
    """The indices of the `count` largest keys above -inf, of one sign (or of both, for 0)."""
    heap, size = np.empty(count, np.int64), 0
    for k in range(keys.size):
        if keys[k] == -np.inf or (among != 0.0 and sign[k] != among):
            continue
        unordered = 0  # places from the top of the heap
        if size < count:
            heap[size] = k
            size += 1
            unordered = count // 2 if size == count else 0
        elif count > 0 and keys[k] > keys[heap[0]]:
            heap[0] = k
            unordered = 1
        for place in range(unordered - 1, -1, -1):
            sift_down(heap, keys, place, count)
    return heap[:size]
