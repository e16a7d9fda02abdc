"""The loops of the block solver over many variables: how much they pull.

`candidates.py` says what that is.
"""

from __future__ import annotations

import numpy as np

from anynorm.design.compiled import loop
from anynorm.solvers.kernel.candidates import GROUP, GROUPS


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
    first, last, scores, beta, sign, row, gain, diagonal, value, lower, upper, pull, keys, tops
):
    """F of some times `GROUPS` groups; F where beta can go up and -F where it can go down.

    These are the two tables of keys, -inf elsewhere; `tops` are the largest ones of each group, for
    positive and negative variables that rise, and for those that fall.
    """
    for group in range(first * GROUPS, min(last * GROUPS, tops.shape[1])):
        up = down = up_negative = down_negative = -np.inf
        start = group * GROUP
        for k in range(start, min(start + GROUP, pull.size)):
            i = row[k]
            own = sign[k] * gain[k] - scores[i]
            if diagonal.size:
                own -= diagonal[i] * beta[i]
            inside, above, positive = value[k] < upper[k], value[k] > lower[k], sign[k] > 0
            rises = (positive & inside) | (~positive & above)
            falls = (positive & above) | (~positive & inside)
            rise, fall = own if rises else -np.inf, -own if falls else -np.inf
            pull[k], keys[0, group, k - start], keys[1, group, k - start] = own, rise, fall
            up = max(up, rise if positive else -np.inf)
            down = max(down, fall if positive else -np.inf)
            up_negative = max(up_negative, -np.inf if positive else rise)
            down_negative = max(down_negative, -np.inf if positive else fall)
        tops[0, group], tops[1, group] = up, up_negative
        tops[2, group], tops[3, group] = down, down_negative
