"""The basis of the path: rows E, columns V, and the inverse of X[E, V] as they come and go.

Exchanging a row or a column, adding or removing one of each: rank-one changes of the inverse, of
m^2 operations each.  `inverse[c, r]` belongs to column slot c and row slot r; `block` is X[:, V]'.
"""

from __future__ import annotations

from anynorm.design.compiled import inlined, inner_loop
from anynorm.solvers.one_norm.state import (
    BETA,
    COEF,
    COLUMN,
    GOAL,
    MOVED,
    PRODUCT,
    ROW,
    SIGN,
    VALUES,
)


@inner_loop
def combine(block, coefs, m, out):
    """Out += sum_c coefs[c] * block[c, :] over the first m."""
    c = 0
    while c + 4 <= m:
        t0, t1, t2, t3 = coefs[c], coefs[c + 1], coefs[c + 2], coefs[c + 3]
        for i in range(out.size):
            out[i] += (t0 * block[c, i] + t1 * block[c + 1, i]) + (
                t2 * block[c + 2, i] + t3 * block[c + 3, i]
            )
        c += 4
    while c < m:
        t0 = coefs[c]
        for i in range(out.size):
            out[i] += t0 * block[c, i]
        c += 1


@inlined
def times(matrix, m, v, out):
    """Out = matrix[:m, :m] @ v."""
    for c in range(m):
        total = 0.0
        for r in range(m):
            total += matrix[c, r] * v[r]
        out[c] = total


@inner_loop
def times_transposed(matrix, m, v, out):
    """Out = matrix[:m, :m]' @ v."""
    for r in range(m):
        out[r] = 0.0
    for c in range(m):
        t = v[c]
        if t != 0.0:
            for r in range(m):
                out[r] += t * matrix[c, r]


@inner_loop
def subtract_multiples(inverse, m, factors, line, left_out):
    """Take factors[c] * line from each row c < m of the inverse, except one."""
    for c in range(m):
        t = factors[c]
        if c != left_out:
            for r in range(m):
                inverse[c, r] -= t * line[r]


@inlined
def enter_row(row, slot, inverse, block, m, entering, leaving):
    """A row enters E: in the slot of one that leaves, or in slot m, together with a column.

    `MOVED` is the column `leaving` of the inverse, or for ``leaving == m`` the inverse times the
    column that enters, which is in `VALUES`.
    """
    goal, product, moved = slot[GOAL], slot[PRODUCT], slot[MOVED]
    pivot = -row[VALUES, entering]
    for c in range(m):
        goal[c] = block[c, entering]
        pivot += goal[c] * moved[c]
    times_transposed(inverse, m, goal, product)
    if leaving < m:
        pivot = product[leaving]
        product[leaving] = 0.0
    for c in range(m):
        goal[c] = moved[c] / pivot
    subtract_multiples(inverse, m, goal, product, m)
    for c in range(m):
        inverse[c, leaving] = goal[c]
    if leaving == m:
        for r in range(m):
            inverse[m, r] = product[r] / pivot
        inverse[m, m] = -1.0 / pivot


@inlined
def leave_column(slot, inverse, m, place):
    """The column in slot `place` leaves V, for what `MOVED` belongs to: a column or a row."""
    moved = slot[MOVED]
    for r in range(m):
        inverse[place, r] /= moved[place]
    subtract_multiples(inverse, m, moved, inverse[place], place)


@inlined
def fill_places(slot, member, inverse, block, last, row_place, column_place):
    """The last row and the last column take the places of those that have left."""
    for c in range(last + 1):
        inverse[c, row_place] = inverse[c, last]
    for r in range(last + 1):
        inverse[column_place, r] = inverse[last, r]
    member[ROW, row_place], slot[BETA, row_place] = member[ROW, last], slot[BETA, last]
    member[COLUMN, column_place] = member[COLUMN, last]
    slot[SIGN, column_place], slot[COEF, column_place] = slot[SIGN, last], slot[COEF, last]
    for i in range(block.shape[1]):
        block[column_place, i] = block[last, i]
