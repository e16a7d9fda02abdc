"""Linear models along a line: known at some places, straight in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design import Matrix
from anynorm.design.blocks import row_ranges
from anynorm.estimators.checks.matrices import known_matrix
from anynorm.estimators.checks.places import places_on_path
from anynorm.problem.path_record import compacted

Array = NDArray[np.float64]

_DENSE = 0.1  # of the coefficients: from there on a product of full matrices is faster


class PiecewiseLine:
    """Coefficients and intercepts at the knots of a path, and straight lines between them.

    Attributes
    ----------
    s, intercepts : ndarray of shape (K,)
        The knots, strictly rising, and the intercepts there.
    coefs : CSR array of shape (K, p)
        The coefficients.
    """

    def __init__(self, s: Array, coefs: sp.csr_array, intercepts: Array) -> None:
        self.s, self.coefs, self.intercepts = s, coefs, intercepts

    def place(self, s: Array) -> tuple[NDArray[np.intp], Array]:
        """For every s the knot before it and how much of the segment lies behind, in [0, 1]."""
        last = len(self.s) - 1
        if last == 0:
            return np.zeros(len(s), dtype=np.intp), np.zeros(len(s))
        k = np.clip(np.searchsorted(self.s, s, side="right") - 1, 0, last - 1)
        return k, np.minimum((s - self.s[k]) / (self.s[k + 1] - self.s[k]), 1.0)

    def mixing(self, s: Array) -> sp.csr_array:
        """The matrix of shape (len(s), K) that takes values at the knots to values at s."""
        k, t = self.place(s)
        after = np.minimum(k + 1, len(self.s) - 1)
        pairs = np.column_stack([k, after]).ravel(), np.column_stack([1.0 - t, t]).ravel()
        rows = np.repeat(np.arange(len(s)), 2)
        mixing = sp.csr_array((pairs[1], (rows, pairs[0])), shape=(len(s), len(self.s)))
        mixing.eliminate_zeros()
        return mixing

    def solution(self, s: float) -> tuple[Array, float]:
        """Coefficients, dense, and intercept at s."""
        mixing = self.mixing(np.array([s]))
        coef = (mixing @ self.coefs).toarray()[0]
        return coef, float((mixing @ self.intercepts)[0])

    def scores(self, X: Matrix, s: Array | None = None) -> Array:
        """Decision values of the rows of X, a column for every s; at the knots by default."""
        coefs, intercepts = self.coefs, self.intercepts
        if s is not None:
            mixing = self.mixing(s)
            coefs, intercepts = mixing @ coefs, mixing @ intercepts
        used, places = compacted(coefs.indices)
        shape = (coefs.shape[0], len(used))
        columns = sp.csr_array((coefs.data, places, coefs.indptr), shape=shape).T
        if coefs.nnz > _DENSE * shape[0] * shape[1]:
            columns = columns.toarray()
        scores = np.empty((X.shape[0], shape[0]))
        for rows in row_ranges(X.shape[0], len(used)):
            block = X[rows][:, used].astype(np.float64)
            scores[rows] = _dense(block @ columns) + intercepts
        return scores


def _dense(product: Any) -> Array:
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A copy that nobody can write to."""
    values = np.array(values)
    values.flags.writeable = False
    return values


def scores_along(path: Any, line: PiecewiseLine, X: Any, name: str, places: Any) -> Array:
    """The scores of rows at one place, (n,), or at many, (n, m); `name` is that of the places."""
    X = known_matrix(X, path)
    places = places_on_path(places, name)
    scores = line.scores(X, places.reshape(-1))
    return scores[:, 0] if places.ndim == 0 else scores
