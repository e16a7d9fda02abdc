"""The loops of the block solver: two variables at a time, within a small block.

A variable v_k moves beta of its row by sign_k.  Its pull is the negative gradient along beta,

    F_k = sign_k gain_k - (K beta)_row - d_row beta_row ,

and a pair (i, j) with F_i > F_j gains by beta_i += t, beta_j -= t.  With a budget on sum v that is
used up, pairs that would raise both variables are out; the others still span every direction.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inlined, inner_loop, loop
from anynorm.design.team import in_parallel

_VARIABLES = 2048  # of a task: a few microseconds
_FLAT = 1e-12  # of the diagonal: curvatures below count as this


@inner_loop
def _some_pulls(k, scores, beta, sign, row, gain, diagonal, out):
    for v in range(k * _VARIABLES, min((k + 1) * _VARIABLES, out.size)):
        i = row[v]
        out[v] = sign[v] * gain[v] - scores[i]
        if diagonal.size:
            out[v] -= diagonal[i] * beta[i]


@loop
def pulls(team, scores, beta, sign, row, gain, diagonal, out):
    """F of every variable; an empty `diagonal` is zero."""
    given = (scores, beta, sign, row, gain, diagonal, out)
    in_parallel(team, _some_pulls, _tasks(out.size), given)


@inlined
def _tasks(size):
    """How many tasks so many variables are."""
    return (size + _VARIABLES - 1) // _VARIABLES


@inner_loop
def _some_rises_and_falls(k, pull, value, sign, lower, upper, rise, fall, ends):
    up = down = up_negative = down_negative = -np.inf
    for i in range(k * _VARIABLES, min((k + 1) * _VARIABLES, pull.size)):
        inside, above = value[i] < upper[i], value[i] > lower[i]
        positive = sign[i] > 0
        rises = (positive & inside) | (~positive & above)
        falls = (positive & above) | (~positive & inside)
        own_rise, own_fall = pull[i] if rises else -np.inf, -pull[i] if falls else -np.inf
        rise[i], fall[i] = own_rise, own_fall
        up = max(up, own_rise if positive else -np.inf)
        down = max(down, own_fall if positive else -np.inf)
        up_negative = max(up_negative, -np.inf if positive else own_rise)
        down_negative = max(down_negative, -np.inf if positive else own_fall)
    ends[k, 0], ends[k, 1], ends[k, 2], ends[k, 3] = up, up_negative, down, down_negative


@loop
def rises_and_falls(team, pull, value, sign, lower, upper, tight, rise, fall):
    """F where beta can go up, -F where it can go down, -inf elsewhere.

    Returns the largest violation and the ends of the interval of the bias.  With a tight budget no
    pair may raise both of its variables, and each sign has an interval of its own: the budget's
    multiplier moves one up as far as the other down.
    """
    count = _tasks(pull.size)
    ends = np.empty((count, 4))
    given = (pull, value, sign, lower, upper, rise, fall, ends)
    in_parallel(team, _some_rises_and_falls, count, given)
    top = np.full(4, -np.inf)  # of rises and falls, of the positive and the negative variables
    for k in range(count):
        for e in range(4):
            top[e] = max(top[e], ends[k, e])
    up, up_negative, down, down_negative = top
    if tight:
        violation = max(up_negative + max(down, down_negative), up + down)
        return violation, 0.5 * (up + up_negative), -0.5 * (down + down_negative)
    high, low = max(up, up_negative), max(down, down_negative)
    return high + low, high, -low


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


@inner_loop
def _keep_largest(first, last, keys, count, sign, among, heap):
    """The indices of the largest keys above -inf of a range, in a heap; returns how many."""
    size = 0
    for k in range(first, last):
        if size == count and not keys[k] > keys[heap[0]]:
            continue
        if keys[k] == -np.inf or (among != 0.0 and sign[k] != among):
            continue
        unordered = 1  # places from the top of the heap
        if size < count:
            heap[size] = k
            size += 1
            unordered = count // 2 if size == count else 0
        else:
            heap[0] = k
        for place in range(unordered - 1, -1, -1):
            sift_down(heap, keys, place, count)
    return size


@inner_loop
def _largest_of_some(k, keys, count, sign, among, heaps, sizes):
    last = min((k + 1) * _VARIABLES, keys.size)
    sizes[k] = _keep_largest(k * _VARIABLES, last, keys, count, sign, among, heaps[k])


@loop
def largest(team, keys, count, sign, among):
    """The indices of the `count` largest keys above -inf, of one sign (or of both, for 0)."""
    n_tasks = _tasks(keys.size)
    heaps, sizes = np.empty((n_tasks, count), np.int64), np.empty(n_tasks, np.int64)
    in_parallel(team, _largest_of_some, n_tasks, (keys, count, sign, among, heaps, sizes))
    found = np.empty(sizes.sum(), np.int64)
    own, n_found = np.empty(found.size), 0
    for k in range(n_tasks):
        for h in range(sizes[k]):
            found[n_found], own[n_found] = heaps[k, h], keys[heaps[k, h]]
            n_found += 1
    best = np.empty(count, np.int64)
    size = _keep_largest(0, n_found, own, count, sign, 0.0, best)
    return found[best[:size]]
