"""Compiled coordinate descent for the Lasso on the products of its columns."""

from __future__ import annotations

from anynorm.design.compiled import loop


@loop
def descend_gram(gram, pulled, x, penalty, order, n_sweeps, enough):
    """Sweeps over the columns `order` for ``1/2 ||A x - b||^2 + penalty ||x||_1``.

    `gram` is A'A and `pulled` is A'(b - A x), which is kept up to date.  Ends early where the
    largest change of a sweep, times the column's squared length, is at most `enough`, and
    returns it.
    """
    largest = 0.0
    for _ in range(n_sweeps):
        largest = 0.0
        for t in range(order.size):
            j = order[t]
            square = gram[j, j]
            if square <= 0.0:
                continue
            pull = pulled[j] + square * x[j]
            new = 0.0
            if pull > penalty:
                new = (pull - penalty) / square
            elif pull < -penalty:
                new = (pull + penalty) / square
            step = new - x[j]
            if step != 0.0:
                x[j] = new
                largest = max(largest, abs(step) * square)
                for i in range(pulled.size):
                    pulled[i] -= step * gram[j, i]
        if largest <= enough:
            break
    return largest
