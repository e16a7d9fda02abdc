"""The basis of the path: rows E, columns V, and the inverse of X[E, V] as they come and go.

Exchanging a row or a column, adding or removing one of each: rank-one changes of the inverse, each
m^2 operations.  `inverse[c, r]` belongs to column slot c and row slot r; `block` is X[:, V]'.
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
def replace_row(slot, member, inverse, block, m, place, row):
    """`row` takes the place of the row in slot `place`."""
    goal, product = slot[GOAL], slot[PRODUCT]
    for c in range(m):
        goal[c] = block[c, row]
    times_transposed(inverse, m, goal, product)
    pivot = product[place]
    product[place] = 0.0
    for c in range(m):
        goal[c] = inverse[c, place] / pivot
    subtract_multiples(inverse, m, goal, product, m)
    for c in range(m):
        inverse[c, place] = goal[c]
    member[ROW, place] = row


@inlined
def replace_column(row, slot, inverse, block, m, place):
    """The column of `row[VALUES]` takes the place of the one in slot `place`."""
    moved = slot[MOVED]
    for r in range(m):
        inverse[place, r] /= moved[place]
    subtract_multiples(inverse, m, moved, inverse[place], place)
    put_column(row, block, place)


@inner_loop
def put_column(row, block, place):
    """The column that enters is kept in slot `place`."""
    for i in range(block.shape[1]):
        block[place, i] = row[VALUES, i]


@inlined
def border(row, slot, inverse, block, m, entering):
    """The row `entering` and the column of `row[VALUES]` are added."""
    goal, product, moved = slot[GOAL], slot[PRODUCT], slot[MOVED]
    schur = row[VALUES, entering]
    for c in range(m):
        goal[c] = block[c, entering]
        schur -= goal[c] * moved[c]
    times_transposed(inverse, m, goal, product)
    for c in range(m):
        goal[c] = -moved[c] / schur
    subtract_multiples(inverse, m, goal, product, m)
    for c in range(m):
        inverse[c, m] = goal[c]
        inverse[m, c] = -product[c] / schur
    inverse[m, m] = 1.0 / schur
    put_column(row, block, m)


@inlined
def shrink(slot, member, inverse, block, m, row_place, column_place):
    """A row and a column are taken out; the last ones fill their places."""
    goal, last = slot[GOAL], m - 1
    for c in range(m):
        goal[c] = inverse[c, row_place] / inverse[column_place, row_place]
    subtract_multiples(inverse, m, goal, inverse[column_place], column_place)
    for c in range(m):
        inverse[c, row_place] = inverse[c, last]
    for r in range(m):
        inverse[column_place, r] = inverse[last, r]
    member[ROW, row_place], slot[BETA, row_place] = member[ROW, last], slot[BETA, last]
    member[COLUMN, column_place] = member[COLUMN, last]
    slot[SIGN, column_place], slot[COEF, column_place] = slot[SIGN, last], slot[COEF, last]
    for i in range(block.shape[1]):
        block[column_place, i] = block[last, i]
