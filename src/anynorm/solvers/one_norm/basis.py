"""The basis of the path: rows E, columns V, and the inverse of X[E, V] as they come and go.

Exchanging a row or a column, adding or removing one of each: rank-one changes of the inverse, of
m^2 operations each.  `inverse[c, r]` belongs to column slot c and row slot r; `block` is X[:, V]'.
"""

from __future__ import annotations

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
    block,
    inverse,
    member,
    n_rows,
    row,
    slot,
)


def combine(tables, coefs, m, out):
    """Out += sum_c coefs[c] * block[c] over the first m."""
    n, c = n_rows(tables), 0
    while c + 4 <= m:
        t0, t1, t2, t3 = coefs[c], coefs[c + 1], coefs[c + 2], coefs[c + 3]
        b0, b1 = block(tables, c), block(tables, c + 1)
        b2, b3 = block(tables, c + 2), block(tables, c + 3)
        for i in range(n):
            out[i] += (t0 * b0[i] + t1 * b1[i]) + (t2 * b2[i] + t3 * b3[i])
        c += 4
    while c < m:
        t0, b0 = coefs[c], block(tables, c)
        for i in range(n):
            out[i] += t0 * b0[i]
        c += 1


def times(tables, m, v, out):
    """Out = M^-1 v."""
    for c in range(m):
        line, total = inverse(tables, c), 0.0
        for r in range(m):
            total += line[r] * v[r]
        out[c] = total


def times_transposed(tables, m, v, out):
    """Out = M^-T v."""
    for r in range(m):
        out[r] = 0.0
    for c in range(m):
        line, t = inverse(tables, c), v[c]
        if t != 0.0:
            for r in range(m):
                out[r] += t * line[r]


def subtract_multiples(tables, m, factors, line, left_out):
    """Take factors[c] * line from each row c < m of the inverse, except one."""
    for c in range(m):
        own, t = inverse(tables, c), factors[c]
        if c != left_out:
            for r in range(m):
                own[r] -= t * line[r]


def enter_row(tables, m, entering, leaving):
    """A row enters E: in the slot of one that leaves, or in slot m, together with a column.

    `MOVED` is the column `leaving` of the inverse, or for ``leaving == m`` the inverse times the
    column that enters, which is in `VALUES`.  Returns the pivot; nothing is done where it is 0.
    """
    goal, product, moved = slot(tables, GOAL), slot(tables, PRODUCT), slot(tables, MOVED)
    pivot = -row(tables, VALUES)[entering]
    for c in range(m):
        goal[c] = block(tables, c)[entering]
        pivot += goal[c] * moved[c]
    times_transposed(tables, m, goal, product)
    if leaving < m:
        pivot = product[leaving]
        product[leaving] = 0.0
    if pivot == 0.0:
        return pivot
    for c in range(m):
        goal[c] = moved[c] / pivot
    subtract_multiples(tables, m, goal, product, m)
    for c in range(m):
        inverse(tables, c)[leaving] = goal[c]
    if leaving == m:
        line = inverse(tables, m)
        for r in range(m):
            line[r] = product[r] / pivot
        line[m] = -1.0 / pivot
    return pivot


def leave_column(tables, m, place):
    """The column in slot `place` leaves V, for what `MOVED` belongs to: a column or a row.

    Returns the pivot; nothing is done where it is 0.
    """
    moved, line = slot(tables, MOVED), inverse(tables, place)
    pivot = moved[place]
    if pivot != 0.0:
        for r in range(m):
            line[r] /= pivot
        subtract_multiples(tables, m, moved, line, place)
    return pivot


def fill_places(tables, last, row_place, column_place):
    """The last row and the last column take the places of those that have left."""
    for c in range(last + 1):
        line = inverse(tables, c)
        line[row_place] = line[last]
    line, own = inverse(tables, column_place), inverse(tables, last)
    for r in range(last + 1):
        line[r] = own[r]
    E, V, beta = member(tables, ROW), member(tables, COLUMN), slot(tables, BETA)
    E[row_place], beta[row_place], V[column_place] = E[last], beta[last], V[last]
    sign, coef = slot(tables, SIGN), slot(tables, COEF)
    sign[column_place], coef[column_place] = sign[last], coef[last]
    line, own = block(tables, column_place), block(tables, last)
    for i in range(n_rows(tables)):
        line[i] = own[i]
