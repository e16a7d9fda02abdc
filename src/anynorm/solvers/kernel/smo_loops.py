"""The loops of the block solver: two variables at a time, within a small block.

A variable v_k moves beta of its row by sign_k.  Its pull is the negative gradient along beta,

    F_k = sign_k gain_k - (K beta)_row - d_row beta_row ,

and a pair (i, j) with F_i > F_j gains by beta_i += t, beta_j -= t.  With a budget on sum v that is
used up, pairs that would raise both variables are out; the others still span every direction.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inlined, inner_loop, loop

VARIABLES = 1024  # of a part: a few microseconds
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
def rises_and_falls(
    first, last, scores, beta, sign, row, gain, diagonal, value, lower, upper, pull, keys, ends
):
    """F of some times `VARIABLES` variables; F where beta can go up and -F where it can go down.

    These are the two rows of keys, -inf elsewhere; `ends` are their largest for positive and
    negative variables.
    """
    for part in range(first, last):
        up = down = up_negative = down_negative = -np.inf
        for k in range(part * VARIABLES, min((part + 1) * VARIABLES, pull.size)):
            i = row[k]
            own = sign[k] * gain[k] - scores[i]
            if diagonal.size:
                own -= diagonal[i] * beta[i]
            inside, above, positive = value[k] < upper[k], value[k] > lower[k], sign[k] > 0
            rises = (positive & inside) | (~positive & above)
            falls = (positive & above) | (~positive & inside)
            rise, fall = own if rises else -np.inf, -own if falls else -np.inf
            pull[k], keys[0, k], keys[1, k] = own, rise, fall
            up = max(up, rise if positive else -np.inf)
            down = max(down, fall if positive else -np.inf)
            up_negative = max(up_negative, -np.inf if positive else rise)
            down_negative = max(down_negative, -np.inf if positive else fall)
        ends[part, 0], ends[part, 1] = up, up_negative
        ends[part, 2], ends[part, 3] = down, down_negative


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
def largest(first, last, keys, sign, among, heaps):
    """The indices of the largest keys above -inf of some parts, -1 where there are no more.

    Each part has `VARIABLES` keys of a row of keys and a row of heaps, one row after the other;
    among them are those of one sign (or of both, for 0).
    """
    for part in range(first, last):
        own, heap, size, count = keys[part % len(keys)], heaps[part], 0, heaps.shape[1]
        heap[:] = -1
        start = part // len(keys) * VARIABLES
        for k in range(start, min(start + VARIABLES, own.size)):
            if size == count and not own[k] > own[heap[0]]:
                continue
            if own[k] == -np.inf or (among != 0.0 and sign[k] != among):
                continue
            unordered = 1  # places from the top of the heap
            if size < count:
                heap[size] = k
                size += 1
                unordered = count // 2 if size == count else 0
            else:
                heap[0] = k
            for place in range(unordered - 1, -1, -1):
                sift_down(heap, own, place, count)
