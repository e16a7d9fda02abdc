"""The basis of the path: rows E, columns V, and the inverse of X[E, V] as they come and go.

Exchanging a row or a column, adding or removing one of each: rank-one changes of the inverse, each
m^2 operations.  `inverse[c, r]` belongs to column slot c and row slot r.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anynorm.design.compiled import inner_loop


class Basis(NamedTuple):
    """E, V and the inverse of X[E, V]; only the first `length[0]` entries count."""

    length: np.ndarray
    rows: np.ndarray
    cols: np.ndarray
    sign: np.ndarray  # 0 for columns without penalty
    inverse: np.ndarray
    columns: np.ndarray  # X[:, V]'
    coef: np.ndarray
    beta: np.ndarray


@inner_loop
def combine(columns, coefs, out):
    """Out += sum_c coefs[c] * columns[c, :]."""
    c = 0
    while c + 4 <= coefs.size:
        t0, t1, t2, t3 = coefs[c], coefs[c + 1], coefs[c + 2], coefs[c + 3]
        for i in range(out.size):
            out[i] += (t0 * columns[c, i] + t1 * columns[c + 1, i]) + (
                t2 * columns[c + 2, i] + t3 * columns[c + 3, i]
            )
        c += 4
    while c < coefs.size:
        t0 = coefs[c]
        for i in range(out.size):
            out[i] += t0 * columns[c, i]
        c += 1


@inner_loop
def times(matrix, m, v):
    """matrix[:m, :m] @ v."""
    out = np.zeros(m)
    for c in range(m):
        total = 0.0
        for r in range(m):
            total += matrix[c, r] * v[r]
        out[c] = total
    return out


@inner_loop
def times_transposed(matrix, m, v):
    """matrix[:m, :m]' @ v."""
    out = np.zeros(m)
    for c in range(m):
        t = v[c]
        if t != 0.0:
            for r in range(m):
                out[r] += t * matrix[c, r]
    return out


@inner_loop
def replace_row(basis, slot, row):
    """`row` takes the place of the row in `slot`."""
    m, inverse = basis.length[0], basis.inverse
    z = np.empty(m)
    for c in range(m):
        z[c] = basis.columns[c, row]
    q = times_transposed(inverse, m, z)
    pivot = q[slot]
    q[slot] = 0.0
    for c in range(m):
        t = inverse[c, slot] / pivot
        for r in range(m):
            inverse[c, r] -= t * q[r]
        inverse[c, slot] = t
    basis.rows[slot] = row


@inner_loop
def replace_column(basis, slot, column, sign, values, moved):
    """`column` takes the place of the one in `slot`; moved = M^-1 values[E]."""
    m, inverse = basis.length[0], basis.inverse
    for r in range(m):
        inverse[slot, r] /= moved[slot]
    for c in range(m):
        if c != slot:
            t = moved[c]
            for r in range(m):
                inverse[c, r] -= t * inverse[slot, r]
    basis.cols[slot], basis.sign[slot] = column, sign
    for i in range(values.size):
        basis.columns[slot, i] = values[i]


@inner_loop
def border(basis, row, column, sign, values, moved):
    """`row` and `column` are added; moved = M^-1 values[E]."""
    m, inverse = basis.length[0], basis.inverse
    z = np.empty(m)
    for c in range(m):
        z[c] = basis.columns[c, row]
    q = times_transposed(inverse, m, z)
    schur = values[row]
    for c in range(m):
        schur -= z[c] * moved[c]
    for c in range(m):
        t = moved[c] / schur
        for r in range(m):
            inverse[c, r] += t * q[r]
        inverse[c, m] = -t
    for r in range(m):
        inverse[m, r] = -q[r] / schur
    inverse[m, m] = 1.0 / schur
    basis.rows[m], basis.cols[m], basis.sign[m] = row, column, sign
    for i in range(values.size):
        basis.columns[m, i] = values[i]
    basis.length[0] = m + 1


@inner_loop
def shrink(basis, row_slot, column_slot):
    """A row and a column are taken out; the last ones fill their places."""
    m, inverse = basis.length[0], basis.inverse
    pivot = inverse[column_slot, row_slot]
    for c in range(m):
        if c != column_slot:
            t = inverse[c, row_slot] / pivot
            for r in range(m):
                inverse[c, r] -= t * inverse[column_slot, r]
    last = m - 1
    for c in range(m):
        inverse[c, row_slot] = inverse[c, last]
    for r in range(m):
        inverse[column_slot, r] = inverse[last, r]
    basis.rows[row_slot], basis.beta[row_slot] = basis.rows[last], basis.beta[last]
    basis.cols[column_slot], basis.sign[column_slot] = basis.cols[last], basis.sign[last]
    basis.coef[column_slot] = basis.coef[last]
    for i in range(basis.columns.shape[1]):
        basis.columns[column_slot, i] = basis.columns[last, i]
    basis.length[0] = last
