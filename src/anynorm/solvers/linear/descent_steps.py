"""Machine code for dual coordinate descent over sparse rows, many epochs to a call.

    minimise_beta   1/2 ||A'beta||^2 + 1/2 sum shift_i beta_i^2 - y'beta,   lower <= beta <= upper

as `coordinate_descent` does it, with ``u = A'beta`` kept up to date: over-relaxed steps, rows that
stay at a bound left out, and a bias that follows ``sum(beta)`` around a centre that moves after
each epoch.  There the matrix is too large for the cache, and the rows are visited in blocks; here
it is small, and an epoch is over before Python has begun another.

Where the free variables depend on each other, epochs creep.  So after each three of them
their moves, and that of the last combination, are combined in the way that is best for the dual
objective, which takes a few products of vectors, as u moves with beta.  (Anderson acceleration of
coordinate descent, Bertrand and Massias 2021, with exact weights.)

An epoch ends the call where the gap that it has seen on its way is small enough: at each row as it
was when its turn came or, where no variable is at an upper bound of the hinge, with the scores
scaled up until no slack is left.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from anynorm.design.addresses import Vector
from anynorm.design.limits import FLOOR
from anynorm.solvers.linear.pair_loops import cost_of

BIAS, VARIANCE, LEASH = range(3)  # the bias; what it and its centre move by, for each sum(beta)
LEAST, LARGEST = 3, 4  # gradients beyond which a variable at its bound is left out
GAP, GOAL, EMPTY = 5, 6, 7  # relative gap as seen on the way, and as wanted; the loss of no model
EPOCHS = 8  # made so far
FREE = 9  # whether the bias costs nothing
N_NUMBERS = 10  # of these

MOVES = 4  # that are combined: of three epochs, and the last combination's own
_RELAXATION = 1.2  # step length: where moves are combined, longer ones gain nothing
_DEPENDENT = 1e-10  # of a square: what is left of a move that the others make as well
_TINY = 1e-300  # as good as zero, and safe to divide by


@functools.cache
def descent() -> Callable[..., int]:
    """`descend_rows` as machine code."""
    from anynorm.design.machine_code import machine_code  # imports LLVM: only where needed

    numbers, indices = Vector(), Vector("int32")
    rows = int, numbers, numbers, numbers, numbers
    matrix = Vector("int64"), indices, numbers, numbers
    orders = int, Vector("int64")
    state = numbers, int, numbers, indices, numbers, int, numbers
    return machine_code(descend_rows, *rows, *matrix, *orders, *state, int)


def past_length(n: int, m: int) -> int:
    """How many numbers `descend_rows` needs room for, to combine moves of n rows and m columns."""
    return (MOVES + 1) * (n + m + 1) + MOVES * (MOVES + 1)


@functools.cache
def preparation() -> Callable[..., int]:
    """`prepare_rows` as machine code."""
    from anynorm.design.machine_code import machine_code  # imports LLVM: only where needed

    numbers, indices = Vector(), Vector("int32")
    matrix = int, Vector("int64"), indices, numbers
    return machine_code(prepare_rows, *matrix, *[numbers] * 3, int, *[numbers] * 4)


@functools.cache
def cutting() -> Callable[..., int]:
    """`cut_columns` as machine code."""
    from anynorm.design.machine_code import machine_code  # imports LLVM: only where needed

    matrix = Vector("int64"), Vector("int32"), Vector()
    return machine_code(cut_columns, *matrix, int, Vector("int64"), *matrix)


@functools.cache
def turning() -> Callable[..., int]:
    """`turn_round` as machine code."""
    from anynorm.design.machine_code import machine_code  # imports LLVM: only where needed

    matrix = Vector("int64"), Vector("int32"), Vector()
    return machine_code(turn_round, int, int, *matrix, *matrix)


def cut_columns(starts, places, entries, count, chosen, out_starts, out_places, out_entries):
    """Copy the chosen columns of a matrix in CSC, of which there are `count`."""
    stored = 0
    for k in range(count):
        out_starts[k] = stored
        for e in range(starts[chosen[k]], starts[chosen[k] + 1]):
            out_places[stored] = places[e]
            out_entries[stored] = entries[e]
            stored += 1
    out_starts[count] = stored


def turn_round(n, m, starts, places, entries, out_starts, out_places, out_entries):
    """From m columns in CSC to n rows in CSR."""
    for i in range(n + 1):
        out_starts[i] = 0
    for e in range(starts[m]):
        out_starts[places[e] + 1] += 1
    for i in range(n):
        out_starts[i + 1] += out_starts[i]
    for j in range(m):
        for e in range(starts[j], starts[j + 1]):
            at = out_starts[places[e]]
            out_places[at] = j
            out_entries[at] = entries[e]
            out_starts[places[e]] = at + 1
    for k in range(n):
        out_starts[n - k] = out_starts[n - k - 1]
    out_starts[0] = 0


def prepare_rows(n, starts, places, values, root, beta, shift, m, scaled, u, squares, mean):
    """The entries of A = X V, u = A'beta, the squared norms of the rows plus shift, and their mean.

    `scaled` becomes the former, and `squares` is what a step divides by where no bias moves.
    """
    for j in range(m):
        u[j] = 0.0
        mean[j] = 0.0
    for i in range(n):
        total, at = 0.0, beta[i]
        for e in range(starts[i], starts[i + 1]):
            value = values[e] * root[places[e]]
            scaled[e] = value
            total += value * value
            u[places[e]] += at * value
            mean[places[e]] += value / n
        squares[i] = total + shift[i]


def descend_rows(
    n,
    y,
    lower,
    upper,
    shift,
    starts,
    places,
    values,
    curvature,
    n_orders,
    orders,
    beta,
    m,
    u,
    awake,
    numbers,
    window,
    past,
    most,
):
    """Improve beta and u for at most `most` epochs, until the gap is reached; returns the epochs.

    Row i of A has its entries from ``starts[i]`` on.  `orders` has `n_orders` orders of the rows,
    one after the other; `awake` is 0 for rows that are left out.  `window` is `MOVES`, which a
    compiler that knew it would unroll for half a second; `past` is room for `past_length` numbers.
    """
    rows, matrix = (y, lower, upper, shift), (starts, places, values)
    known = 0
    smooth, hinge = 0.0, True
    for i in range(n):
        smooth += shift[i]
        hinge = hinge and not (shift[i] > 0 or lower[i] * upper[i] < 0)
    made = 0
    while made < most:
        known = _remember(n, m, beta, u, numbers, window, past, known)
        if known > window:
            known = _combine(n, rows, smooth, matrix, m, beta, u, numbers, window, past)
        first = (int(numbers[EPOCHS]) - n_orders * int(numbers[EPOCHS] / n_orders)) * n
        bias, variance = numbers[BIAS], numbers[VARIANCE]
        least, largest, gap = math.inf, -math.inf, 0.0
        bounded = False
        for position in range(n):
            i = orders[first + position]
            if awake[i] == 0:
                continue
            begin, end = starts[i], starts[i + 1]
            gradient = bias - y[i] + shift[i] * beta[i]
            for e in range(begin, end):
                gradient += values[e] * u[places[e]]
            at = beta[i]
            residual = shift[i] * at - gradient
            missed = cost_of(residual, lower[i], upper[i], shift[i])
            gap += missed - at * (residual - 0.5 * shift[i] * at)
            projected = gradient
            if at == lower[i]:
                if gradient > numbers[LARGEST]:
                    awake[i] = 0
                projected = min(gradient, 0.0)
            elif at == upper[i]:
                if gradient < numbers[LEAST]:
                    awake[i] = 0
                projected = max(gradient, 0.0)
            least, largest = min(least, projected), max(largest, projected)
            if projected == 0.0 or awake[i] == 0:
                continue
            new = at - _RELAXATION * gradient / curvature[i]
            new = min(max(new, lower[i]), upper[i])
            if new != at:
                beta[i] = new
                step = new - at
                bias += variance * step
                for e in range(begin, end):
                    u[places[e]] += step * values[e]
        made += 1
        numbers[EPOCHS] += 1.0
        numbers[LEAST] = least if least < 0 else -math.inf
        numbers[LARGEST] = largest if largest > 0 else math.inf
        total, gain, square = 0.0, 0.0, 0.0
        for i in range(n):
            total += beta[i]
            gain += beta[i] * (y[i] - 0.5 * shift[i] * beta[i])
            bounded = bounded or (beta[i] != 0 and (beta[i] == lower[i] or beta[i] == upper[i]))
        for j in range(m):
            square += u[j] * u[j]
        numbers[BIAS] = bias
        if variance > 0 and numbers[EPOCHS] > 2:  # the first two find a scale
            numbers[BIAS] = variance * (bias / numbers[LEASH] + total)
        value = gain - 0.5 * square
        # To balance beta costs what is taken from it, and as much for the bias that goes with it.
        gap += 2.0 * abs(total) if numbers[FREE] > 0 else 0.0
        numbers[GAP] = gap / max(max(value, FLOOR * numbers[EMPTY]), _TINY)
        if hinge and not bounded and square > 0:
            margin = 1.0 - max(-least, largest)
            if margin > 0:
                primal = 0.5 * square / (margin * margin)
                numbers[GAP] = min(numbers[GAP], (primal - value) / primal)
        if numbers[GAP] <= numbers[GOAL] or (least >= 0 and largest <= 0):
            break
    return made


def _remember(n, m, beta, u, numbers, window, past, known):
    """Note where beta and u are and, where that was `known` for so many epochs, how they moved.

    A move ends with its share in the bias, which counts like one more column.
    """
    size = n + m + 1
    last, move, total = window * size, (known - 1) * size, 0.0
    if known > 0:
        for i in range(n):
            past[move + i] = beta[i] - past[last + i]
            total += past[move + i]
        for j in range(m):
            past[move + n + j] = u[j] - past[last + n + j]
        past[move + n + m] = math.sqrt(numbers[VARIANCE]) * total
    for i in range(n):
        past[last + i] = beta[i]
    for j in range(m):
        past[last + n + j] = u[j]
    return known + 1


def _combine(n, rows, smooth, matrix, m, beta, u, numbers, window, past):
    """Go to the best point that the last moves lead to, brought into the box, if it is better.

    That is the largest ``y'beta - 1/2 ||u||^2 - 1/2 sum shift_i beta_i^2``, less what the bias
    makes of a change t of sum(beta): ``bias t + 1/2 variance t^2``.
    """
    y, lower, upper, shift = rows
    starts, places, values = matrix
    size, bias = n + m + 1, numbers[BIAS]
    point, system = window * size, (window + 1) * size  # in the place of the last point
    weights = system + window * window
    before, after, change = 0.0, 0.0, 0.0
    for j in range(m):
        before -= 0.5 * u[j] * u[j]
    _equations(n, m, rows, smooth, beta, u, bias, window, past, system)
    _solve_symmetric(window, past, system, weights)
    for k in range(window):
        weight, move = past[weights + k], k * size
        for e in range(n + m):
            past[point + e] += weight * past[move + e]
    for i in range(n):
        at, free = beta[i], past[point + i]
        to = min(max(free, lower[i]), upper[i])
        before += at * (y[i] - 0.5 * shift[i] * at)
        after += to * (y[i] - 0.5 * shift[i] * to)
        change += to - at
        if to != free:
            past[point + i] = to
            for e in range(starts[i], starts[i + 1]):
                past[point + n + places[e]] += (to - free) * values[e]
    for j in range(m):
        after -= 0.5 * past[point + n + j] * past[point + n + j]
    after -= change * (bias + 0.5 * numbers[VARIANCE] * change)
    better = after > before
    for i in range(n):
        to = past[point + i] if better else beta[i]
        past[i], past[point + i], beta[i] = to - beta[i], to, to
    for j in range(m):
        to = past[point + n + j] if better else u[j]
        past[n + j], past[point + n + j], u[j] = to - u[j], to, to
    past[n + m] = math.sqrt(numbers[VARIANCE]) * change
    numbers[BIAS] += numbers[VARIANCE] * change if better else 0.0
    return 2 if better else 1


def _equations(n, m, rows, smooth, beta, u, bias, window, past, system):
    """The equations for the best weights of the moves: a matrix, and the right sides behind it."""
    y, _, _, shift = rows
    size = n + m + 1
    for k in range(window):
        first, slope = k * size, 0.0
        for i in range(n):
            slope += past[first + i] * (y[i] - shift[i] * beta[i] - bias)
        for j in range(m):
            slope -= past[first + n + j] * u[j]
        past[system + window * window + k] = slope
        for h in range(k + 1):
            second, product = h * size, 0.0
            for j in range(m + 1):
                product += past[first + n + j] * past[second + n + j]
            if smooth > 0:
                for i in range(n):
                    product += shift[i] * past[first + i] * past[second + i]
            past[system + k * window + h] = product


def _solve_symmetric(count, table, first, right):
    """Solve ``H x = b`` by Cholesky's method; H's lower half begins at `first`, b at `right`.

    x takes the place of b, with zeros for rows that depend on those before them.
    """
    for k in range(count):
        row = first + k * count
        own = table[row + k]
        for h in range(k):
            other, sum_ = first + h * count, table[row + h]
            for g in range(h):
                sum_ -= table[row + g] * table[other + g]
            table[row + h] = sum_ / table[other + h] if table[other + h] > 0 else 0.0
        rest = own
        for h in range(k):
            rest -= table[row + h] * table[row + h]
        table[row + k] = math.sqrt(rest) if rest > _DEPENDENT * own else 0.0
        left = table[right + k]
        for h in range(k):
            left -= table[row + h] * table[right + h]
        table[right + k] = left / table[row + k] if table[row + k] > 0 else 0.0
    for back in range(count):
        k = count - 1 - back
        left = table[right + k]
        for h in range(k + 1, count):
            left -= table[first + h * count + k] * table[right + h]
        diagonal = table[first + k * count + k]
        table[right + k] = left / diagonal if diagonal > 0 else 0.0
