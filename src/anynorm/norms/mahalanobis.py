"""The Mahalanobis norm of the slacks, which ties pairs of examples together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from anynorm.design.device import to_host
from anynorm.design.device_design import DeviceDesign
from anynorm.norms import best_bias, projections
from anynorm.norms.dual_sets import DualSet, Ellipsoid, PowerBall
from anynorm.norms.envelope import nonnegative_minimiser
from anynorm.norms.norm import Array, Norm, euclidean


class Mahalanobis(Norm):
    """The norm ``sqrt(xi'M xi)`` of a symmetric positive definite M.

    Parameters
    ----------
    M : array of shape (n, n), or callable
        The matrix, or a function of X that gives it for the rows of X, so that the norm can be
        used in cross-validation.  Off-diagonal entries make the norm not monotone.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.norms import Mahalanobis
    >>> norm = Mahalanobis(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(norm.value([1.0, 1.0]) ** 2, 12), norm.monotone
    (6.0, False)
    """

    def __init__(self, M: ArrayLike | Callable[[Any], ArrayLike]):
        self.M = M
        self._matrix = None if callable(M) else np.asarray(M, dtype=np.float64)
        self._factor = None if self._matrix is None else _cholesky(self._matrix)
        matrix = self._matrix
        self._diagonal = matrix is not None and not np.any(matrix - np.diag(np.diagonal(matrix)))

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        """True where M is known to be diagonal."""
        return self._diagonal

    @property
    def factor(self) -> Array:
        """The lower triangular L with ``M = L L'``."""
        if self._factor is None:
            raise ValueError("M is a function of X; call resolve(X) to have it as an array")
        return self._factor

    def resolve(self, X: Any) -> Mahalanobis:
        """Return the norm with M as an array, for the rows of X."""
        if not callable(self.M):
            return self
        rows = X.stored if isinstance(X, DeviceDesign) else X
        return Mahalanobis(np.asarray(to_host(self.M(rows))))

    def value(self, xi: ArrayLike) -> float:
        """Return sqrt(xi'M xi)."""
        return euclidean(np.abs(self.factor.T @ self._checked(xi)))

    def dual_value(self, a: ArrayLike) -> float:
        """Return sqrt(a'M^-1 a)."""
        return euclidean(np.abs(self._solve(self._checked(a))))

    def maximiser(self, a: ArrayLike) -> Array:
        half = self._solve(self._checked(a))
        length = euclidean(np.abs(half))
        if length == 0:
            return np.zeros(len(half))
        v: Array = solve_triangular(self.factor, half / length, lower=True, trans=1)
        return v

    def subgradient(self, v: ArrayLike) -> Array:
        half = self.factor.T @ self._checked(v)
        length = euclidean(np.abs(half))
        return np.asarray(self.factor @ (half / length if length > 0 else half))

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        spectrum, basis = np.linalg.eigh(self.factor @ self.factor.T)
        turned = basis.T @ self._checked(a)
        nearest = projections.onto_ellipsoid(np.abs(turned), np.maximum(spectrum, 0.0), radius)
        return np.asarray(basis @ np.copysign(nearest, turned))

    def dual_set(self, C: float, weights: Array, signed: bool) -> DualSet:
        """Return the ellipsoid ``a'M^-1 a <= C^2``; a diagonal M only gives the rows weights."""
        if np.any(weights != 1.0):
            self.weighted(weights)  # which says that there is no weighted form
        M = self.factor @ self.factor.T
        if self.monotone and not signed:
            w = np.diagonal(M).copy()
            return PowerBall(signed, 2.0, C * w, w)
        return Ellipsoid(signed, M, C)

    def cheapest_above(self, r: Array) -> Array:
        """Return the xi >= max(r, 0) with the least N(xi): a quadratic programme with signs."""
        lower = np.maximum(r, 0.0)
        if self.monotone or not lower.any():
            return lower
        M = self.factor @ self.factor.T
        return np.maximum(lower + nonnegative_minimiser(M, M @ lower), lower)

    def cheapest_dual_above(self, a: Array) -> Array:
        if self.monotone or not a.any():
            return a
        M = self.factor @ self.factor.T
        return np.maximum(M @ nonnegative_minimiser(M, -a), a)

    def bias_interval(self, t: Array, y: Array, one_sided: bool) -> tuple[float, float]:
        """Return a weighted mean, or where the slope changes sign; see `Norm.bias_interval`."""
        if one_sided:
            return best_bias.where_slope_changes(self, t, y, one_sided)
        low, half = float(t.min()), self.factor.T @ y
        mean = low + float(half @ (self.factor.T @ (y * (t - low)))) / float(half @ half)
        return mean, mean

    def _checked(self, v: ArrayLike) -> Array:
        v = np.asarray(v, dtype=np.float64)
        if v.shape != (len(self.factor),):
            raise ValueError(f"M is for {len(self.factor)} rows, but there are {v.size}")
        return v

    def _solve(self, a: Array) -> Array:
        half: Array = solve_triangular(self.factor, a, lower=True)
        return half


def _cholesky(M: Array) -> Array:
    if M.ndim != 2 or M.shape[0] != M.shape[1] or not np.all(np.isfinite(M)):
        raise ValueError(f"M must be a square matrix of finite numbers; got shape {M.shape}")
    if np.abs(M - M.T).max(initial=0.0) > 1e-10 * np.abs(M).max(initial=0.0):
        raise ValueError("M must be symmetric; use (M + M.T) / 2 if it is so up to rounding")
    try:
        return np.asarray(np.linalg.cholesky(M), dtype=np.float64)
    except np.linalg.LinAlgError:
        raise ValueError("M must be positive definite: it has no Cholesky factor") from None
