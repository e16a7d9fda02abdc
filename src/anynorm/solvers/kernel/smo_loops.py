"""The loops of the block solver over many variables: how much they pull, and which pull most.

`candidates.py` says what that is.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import inlined, loop
from anynorm.solvers.kernel.candidates import VARIABLES


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
