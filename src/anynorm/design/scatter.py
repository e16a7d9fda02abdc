"""Weighted Gram matrices around their mean, which parts of the rows add up to without loss."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False)
class Scatter:
    """The weight of some rows, their weighted mean, and ``sum_i d_i (x_i - mean)(x_i - mean)'``.

    Two of them add up to that of all their rows (Chan, Golub and LeVeque 1983), so that columns far
    from zero keep the digits that a plain sum of products would lose.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design import design_of
    >>> X = design_of(np.array([[1e8], [1e8 + 2.0]]))
    >>> one, other = (X.scatter(np.array([i]), np.ones(1)) for i in (0, 1))
    >>> (one + other).matrix
    array([[2.]])
    """

    total: float
    mean: np.ndarray
    matrix: np.ndarray

    def __add__(self, other: Scatter) -> Scatter:
        total = self.total + other.total
        if total == 0.0:
            return self
        share, apart = other.total / total, other.mean - self.mean
        return Scatter(
            total,
            self.mean + share * apart,
            self.matrix + other.matrix + self.total * share * np.outer(apart, apart),
        )
