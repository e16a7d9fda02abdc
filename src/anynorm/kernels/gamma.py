"""The width of a kernel from the data: what "scale" and "auto" mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design import design_of
from anynorm.design.blocks import ranges
from anynorm.design.crew import Block, Crew, Sums, each_block
from anynorm.design.device_design import DeviceDesign
from anynorm.design.limits import CACHED_BYTES

Array = NDArray[np.float64]

_SUMMED_BY_NUMPY = 1 << 21  # entries of X that one temporary copy of them may have


def resolve_gamma(gamma: str | float, X: Any, weights: Array | None = None) -> float:
    """Return gamma as a number: "scale" is 1 / (p Var(X)), "auto" is 1 / p.

    The variance is that of all entries, rows counted as often as they weigh.
    """
    if gamma == "auto":
        return 1.0 / X.shape[1]
    if gamma == "scale":
        variance = _variance(X, weights)
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if isinstance(gamma, str) or not 0 <= gamma < np.inf:
        raise ValueError(f"gamma must be 'scale', 'auto' or a number of at least 0; got {gamma!r}")
    return float(gamma)


def _variance(X: Any, weights: Array | None) -> float:
    """The variance of all entries, zeros of a sparse X included."""
    if isinstance(X, DeviceDesign):
        return X.variance(weights)
    if isinstance(X, Crew):
        return _variance_apart(X)
    if weights is None and X.shape[0] * X.shape[1] <= _SUMMED_BY_NUMPY:
        entries = X.toarray() if sp.issparse(X) else X  # the same digits for both
        return float(np.var(entries, dtype=np.float64))
    w = np.ones(X.shape[0]) if weights is None else weights
    size = float(w.sum()) * X.shape[1]
    mean = _mean(X, w)
    if not sp.issparse(X):
        step = max(1, CACHED_BYTES // 8 // X.shape[1])  # rows that stay in the cache
        parts = ((X[rows] - mean, w[rows]) for rows in ranges(X.shape[0], step))
        return float(sum(u @ np.einsum("ij,ij->i", d, d) for d, u in parts)) / size
    rows = X.tocsr()
    row_of = np.repeat(np.arange(X.shape[0]), np.diff(rows.indptr))
    stored = float(w[row_of] @ np.square(rows.data.astype(np.float64) - mean))
    return (stored + (size - float(w @ np.diff(rows.indptr))) * mean**2) / size


def _mean(X: Any, w: Array) -> float:
    return float(design_of(X).rmatvec(w).sum()) / (float(w.sum()) * X.shape[1])


def _variance_apart(crew: Crew) -> float:
    """The same over rows that live apart, which have their weights with them."""
    # In the order of the blocks, whoever has them: the choice of rows depends on the last digit.
    _, sizes, means, variances = np.array(sorted(crew.ask(_moments).moments)).T
    mean = float(sizes @ means / sizes.sum())
    return float(sizes @ (variances + (means - mean) ** 2) / sizes.sum())


def _moments(blocks: Sequence[Block], message: None) -> Sums:
    """The number, the weight, the mean and the variance of every block."""

    def one(block: Block) -> Sums:
        X = block.design().stored
        w = np.ones(block.n) if block.weights is None else block.weights
        if not w.any():
            return Sums(moments=[])
        found = block.number, float(w.sum()), _mean(X, w), _variance(X, block.weights)
        return Sums(moments=[found])

    return each_block(blocks, one, Sums(moments=[]))
