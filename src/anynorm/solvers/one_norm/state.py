"""What the pivots work on: tables whose rows have names, and the pull of examples on columns.

Vectors of one length are the rows of one table, and loops are given the list of all tables
(`design/addresses.py`), which is one number to the compiler:

- `row` has an entry per example, `column` one per column of X and, last, one for the constant one;
- `slot` and `member` have an entry per place in the basis; only the first `scalar[LENGTH]` count;
- `scalar` has single numbers: where the pivots are, and where they are to stop;
- `inverse` and `block` are matrices, the inverse of X[E, V] and X[:, V]';
- `knot`, `coef` and `dual` are the record of a path, if there is one: its knots, and the entries
  (place and value) of their coefficients and of the duals on the segments between them.

`row[TARGET]`, `row[COST]`, `row[LOW]` and `column[SLACK]` are in general position.  The bounds of
a_i are ``LOW + lambda * LOW_RATE`` and ``COST + lambda * COST_RATE``, that of |X_j'beta| is
``SLACK + lambda * WEIGHT``.  On the path the rates are zero.
"""

from __future__ import annotations

from anynorm.design.addresses import Length, Rows
from anynorm.design.row_access import N_TABLES, add_rows

# The tables in the order of their list: for loops, their rows by number and the length of these.
row, n_rows = Rows(0), Length(0)
column, n_columns = Rows(1), Length(1)  # with the constant one
slot = Rows(2)
member = Rows(3, "int64")
scalar = Rows(4)  # one row, number 0
inverse, capacity = Rows(5), Length(5)
block = Rows(6)
FIRST_OF_X = 7  # the number of the first table of X
knot, room_for_knots = Rows(7 + N_TABLES), Length(7 + N_TABLES)
coef, room_for_coefs = Rows(8 + N_TABLES), Length(8 + N_TABLES)
dual, room_for_duals = Rows(9 + N_TABLES), Length(9 + N_TABLES)

BELOW, ABOVE, TIGHT = 0, 1, 2  # margins above 1 (r < 0), below 1 (r > 0), and rows of E
LEAVES, ENTERS, NOTHING = 0, 1, 2  # events

# What `advance` came back for.
MORE, ENDED, GROW, STORE, FEATURES, KNOTS, RADIUS, PENALTY, STUCK, REFRESH = range(10)

ROW_NAMES = range(13)
Y, TARGET, COST, LOW, COST_RATE, LOW_RATE, TRUE_COST, TRUE_LOW = ROW_NAMES[:8]
SIDE, RESIDUAL = ROW_NAMES[8:10]
CHANGE, VALUES = ROW_NAMES[10:12]  # of the scores along an edge; the column that enters
STEP = ROW_NAMES[12]  # how far along the edge a row meets margin 1

COLUMN_NAMES = range(11)
WEIGHT, SLACK, SIZE = COLUMN_NAMES[:3]  # SIZE is the 2-norm
FREE, USED = COLUMN_NAMES[3:5]  # 1 for columns without any penalty, and for those in the basis
PULL = COLUMN_NAMES[5]
FIXED = COLUMN_NAMES[6]  # the pull of the rows outside E, with the true costs
RATE = COLUMN_NAMES[7]  # and how it moves with lambda
SLOPE, TOTAL = COLUMN_NAMES[8:10]  # of all pulls in lambda; the pull of duals that are recorded
FALL = COLUMN_NAMES[10]  # how far lambda falls until a column meets its bound

SLOT_NAMES = range(11)
SIGN, COEF, BETA = SLOT_NAMES[:3]  # SIGN is 0 for columns without penalty
GAIN, TAU = SLOT_NAMES[3:5]  # sign_V u_V, and how beta moves with lambda
MOVED, DIRECTION = SLOT_NAMES[5:7]  # M^-1 times what enters; how coefficients move
TRUE_COEF, TRUE_BETA = SLOT_NAMES[7:9]
GOAL, PRODUCT = SLOT_NAMES[9:]  # what the inverse is multiplied with, and what comes out

MEMBER_NAMES = range(3)
ROW, COLUMN = MEMBER_NAMES[:2]  # E and V
MOVING = MEMBER_NAMES[2]  # begins with the rows that leave and enter E

SCALAR_NAMES = range(17)
LAMBDA, LENGTH, PIVOTS, FRESH, LARGEST = SCALAR_NAMES[:5]  # FRESH: pivots since the last refresh
CONSTANT = SCALAR_NAMES[5]  # the value of the constant column
END, LEAST_PENALTY = SCALAR_NAMES[6:8]  # lambdas at which to stop: rounding, and what is asked for
MOST_FEATURES, MOST_KNOTS, MOST_S = SCALAR_NAMES[8:11]
ZERO_PRIMAL = SCALAR_NAMES[11]  # the loss at w = 0
N_KNOTS, N_COEFS, N_DUALS = SCALAR_NAMES[12:15]  # recorded so far
MOVING_ON = SCALAR_NAMES[15]  # 1 where the next vertex is to be recorded
DUALS_BEFORE = SCALAR_NAMES[16]  # the number of duals before those of the last segment

KNOT_NAMES = range(8)  # of the knots of a path
S, LOSS, BIAS, GAP = KNOT_NAMES[:4]
LEAVING, DUAL = KNOT_NAMES[4:6]  # lambda and the dual value on the segment that leaves
COEF_END, DUAL_END = KNOT_NAMES[6:]  # where its entries end in the tables of coefficients and duals
ENTRY_NAMES = range(2)  # of the entries of these two tables
PLACE, VALUE = ENTRY_NAMES  # a column or a row, and its coefficient or dual


def pull(X, tables, rows, coefs, count, constant, out):
    """Out += [X, constant]' on `count` rows."""
    last = n_columns(tables) - 1
    add_rows(X, tables, rows, coefs, count, out, last)
    total = 0.0
    for r in range(count):
        total += coefs[r]
    out[last] += constant * total
