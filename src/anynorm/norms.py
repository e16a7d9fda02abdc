"""Slack norms: what a vector of slacks costs, and the dual norms that bound the multipliers.

Every norm N has its value N(v), its dual value ``N*(a) = max a'v over N(v) <= 1`` and the
maximiser of that problem.  With sample weights w (``norm.weighted(w)``) a row of weight 2
counts as the row written twice, and a row of weight 0 as no row at all:

    norm        value                                          dual value
    L1          sum w|v|                                       max |a|/w
    L2          sqrt(sum w v^2)                                sqrt(sum a^2/w)
    Lp(p)       (sum w|v|^p)^(1/p)                             (sum |a|^q w^(1-q))^(1/q)
    LInf        max |v| over w > 0                             sum |a|
    TopK(k)     the k largest |v|, weights counted             max(max |a|/w, sum |a| / k)
    TopK2(k)    min_z sqrt(sum w(|v|-z)_+^2) + sqrt(k) z        max(sqrt(sum a^2/w), sum|a|/sqrt(k))
    K12(r)      min_z sum w(|v|-z)_+                           max(max |a|/w, sqrt(sum a^2/w / r))
                      + sqrt(r sum w min(|v|, z)^2)
    Mahalanobis sqrt(v'Mv)                                     sqrt(a'M^-1 a)

TopK, TopK2 and K12 are Peetre's K(1,inf,k), K(2,inf,sqrt k) and K(1,2,sqrt r) norms of
Dekel and Singer, "Support Vector Machines on a Budget".
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular

from anynorm import projections
from anynorm.parameters import Parameterised

Array = NDArray[np.float64]

__all__ = [
    "K12",
    "L1",
    "L2",
    "LInf",
    "Lp",
    "Mahalanobis",
    "Norm",
    "SquaredL2",
    "TopK",
    "TopK2",
    "get_norm",
]


class Norm(Parameterised):
    """A norm of the slacks; subclass it to bring your own.

    A subclass needs `value`, `dual_value` and `maximiser`, and `monotone = False` if its value
    can fall when an entry's absolute value grows.  `subgradient`, `project_dual` and `weighted`
    are optional: they make solvers faster and sample weights possible.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.norms import Norm
    >>> class Doubled(Norm):
    ...     def value(self, xi):
    ...         return 2 * np.abs(xi).sum()
    ...     def dual_value(self, a):
    ...         return np.abs(a).max() / 2
    ...     def maximiser(self, a):
    ...         v = np.zeros(len(a))
    ...         i = np.argmax(np.abs(a))
    ...         v[i] = np.sign(a[i]) / 2
    ...         return v
    >>> Doubled().value(np.array([1.0, -2.0]))
    np.float64(6.0)
    """

    monotone: bool = True

    @abstractmethod
    def value(self, xi: ArrayLike) -> float:
        """Return N(xi)."""

    @abstractmethod
    def dual_value(self, a: ArrayLike) -> float:
        """Return N*(a), the largest a'v over N(v) <= 1."""

    @abstractmethod
    def maximiser(self, a: ArrayLike) -> Array:
        """Return a v with N(v) <= 1 at which a'v is largest."""

    def subgradient(self, v: ArrayLike) -> Array | None:
        """Return an a with N*(a) <= 1 and a'v = N(v), or None where it is not known."""
        return None

    def project_dual(self, a: ArrayLike, radius: float) -> Array | None:
        """Return the point of N* <= radius nearest to a, or None where it is not known."""
        return None

    def weighted(self, w: ArrayLike) -> Norm:
        """Return the norm in which row i counts w_i times."""
        raise ValueError(
            f"sample weights cannot be used with the norm {type(self).__name__}: it has no "
            "weighted form. Leave the weights out, repeat the rows, or define weighted(w)."
        )

    def resolve(self, X: Any) -> Norm:
        """Return the norm for the rows of X (only norms made from the data change)."""
        return self


def _magnitudes(v: ArrayLike) -> Array:
    return np.abs(np.asarray(v, dtype=np.float64))


def _checked_weights(weights: ArrayLike) -> Array:
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not np.all(np.isfinite(w)):
        raise ValueError("weights must be a vector of finite numbers, one per row")
    if np.any(w < 0):
        raise ValueError(f"weights must not be negative; got {w.min():g}. Use 0 to drop a row.")
    if not np.any(w > 0):
        raise ValueError("weights are all zero; at least one row needs a positive weight")
    return w


def _checked_positive(name: str, value: float) -> float:
    if not (np.isscalar(value) and np.isreal(value) and 0 < value < math.inf):
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}")
    return float(value)


def _over(a: Array, w: Array | None) -> Array:
    """a / w for a >= 0, with 0/0 = 0 and a/0 = inf."""
    if w is None:
        return a
    return np.divide(a, w, out=np.where(a > 0, math.inf, 0.0), where=w > 0)


def _euclidean(v: Array, w: Array | None = None) -> float:
    """sqrt(sum w v^2) without overflow or underflow."""
    top = float(v.max(initial=0.0))
    if top == 0.0 or not math.isfinite(top):
        return top
    squares = np.square(v / top)
    return top * math.sqrt(float(squares.sum() if w is None else w @ squares))


class _Weighted(Parameterised):
    """What the norms with a weighted form share."""

    def __init__(self, weights: ArrayLike | None = None):
        self.weights = weights
        self._w = None if weights is None else _checked_weights(weights)

    def weighted(self, w: ArrayLike) -> Any:
        """Return the same norm in which row i counts w_i times.

        Examples
        --------
        >>> from anynorm.norms import TopK
        >>> TopK(2).weighted([2.0, 1.0]).value([3.0, 5.0])
        8.0
        >>> TopK(2).value([3.0, 3.0, 5.0])
        8.0
        """
        w = _checked_weights(w)
        return type(self)(**{**self.get_params(), "weights": w if self._w is None else w * self._w})

    def _rows(self, v: ArrayLike) -> tuple[Array, Array]:
        """|v| and the weights as an array."""
        v = _magnitudes(v)
        return v, np.ones(len(v)) if self._w is None else self._w

    def _signed(self, magnitudes: Array, like: ArrayLike) -> Array:
        """Magnitudes with the signs of `like`; 0 where a row has no weight."""
        signed = np.copysign(magnitudes, np.asarray(like, dtype=np.float64))
        return signed if self._w is None else np.where(self._w > 0, signed, 0.0)

    def _corner(self, a: ArrayLike) -> Array:
        """The point of the weighted 1-norm ball at which a'v is largest."""
        magnitudes, w = self._rows(a)
        ratio = np.divide(magnitudes, w, out=np.full(len(w), -1.0), where=w > 0)
        v = np.zeros(len(ratio))
        if len(ratio):
            i = int(np.argmax(ratio))
            v[i] = 1.0 / w[i]
        return self._signed(v, a)

    def _direction(self, a: ArrayLike) -> Array:
        """The point of the weighted 2-norm ball at which a'v is largest."""
        magnitudes, w = self._rows(a)
        v = np.divide(magnitudes, w, out=np.zeros(len(w)), where=w > 0)
        length = _euclidean(v, w)
        return self._signed(v / length if length > 0 else v, a)


class SquaredL2(_Weighted):
    """The squared 2-norm, ``sum xi^2``: not a norm, but a cell of the same grid.

    Examples
    --------
    >>> from anynorm.norms import SquaredL2
    >>> SquaredL2().value([3.0, 4.0])
    25.0
    """

    monotone = True

    def value(self, xi: ArrayLike) -> float:
        """Return ``sum w xi^2``."""
        v = _magnitudes(xi)
        return float(v @ v) if self._w is None else float(self._w @ np.square(v))

    def conjugate(self, a: ArrayLike) -> float:
        """Return ``sup_v a'v - value(v) = sum a^2 / (4 w)``."""
        magnitudes = _magnitudes(a)
        return float(magnitudes @ _over(magnitudes, self._w)) / 4


class L1(_Weighted, Norm):
    """The 1-norm, ``sum |xi|``.

    Examples
    --------
    >>> from anynorm.norms import L1
    >>> L1().value([1.0, -2.0]), L1().dual_value([1.0, -2.0])
    (3.0, 2.0)
    """

    def value(self, xi: ArrayLike) -> float:
        v = _magnitudes(xi)
        return float(v.sum() if self._w is None else self._w @ v)

    def dual_value(self, a: ArrayLike) -> float:
        return float(_over(_magnitudes(a), self._w).max(initial=0.0))

    def maximiser(self, a: ArrayLike) -> Array:
        return self._corner(a)

    def subgradient(self, v: ArrayLike) -> Array:
        return np.sign(v) * self._rows(v)[1]

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        bound = radius * self._rows(a)[1]
        return np.clip(np.asarray(a, dtype=np.float64), -bound, bound)


class L2(_Weighted, Norm):
    """The 2-norm ``sqrt(sum xi^2)``, not squared; see `SquaredL2` for the squared one.

    Examples
    --------
    >>> from anynorm.norms import L2
    >>> L2().value([3.0, 4.0]), L2().dual_value([3.0, 4.0])
    (5.0, 5.0)
    """

    def value(self, xi: ArrayLike) -> float:
        return _euclidean(_magnitudes(xi), self._w)

    def dual_value(self, a: ArrayLike) -> float:
        magnitudes, w = self._rows(a)
        return _euclidean(_over(magnitudes, np.sqrt(w)))

    def maximiser(self, a: ArrayLike) -> Array:
        return self._direction(a)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        length = _euclidean(magnitudes, w)
        return self._signed(w * (magnitudes / length) if length > 0 else magnitudes, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        return self._signed(projections.onto_ellipsoid(magnitudes, w, radius), a)


class LInf(_Weighted, Norm):
    """The largest absolute value, ``max |xi|``; weights only say which rows exist.

    Examples
    --------
    >>> from anynorm.norms import LInf
    >>> LInf().value([1.0, -2.0]), LInf().dual_value([1.0, -2.0])
    (2.0, 3.0)
    """

    def value(self, xi: ArrayLike) -> float:
        v = _magnitudes(xi)
        return float((v if self._w is None else v[self._w > 0]).max(initial=0.0))

    def dual_value(self, a: ArrayLike) -> float:
        a = _magnitudes(a)
        absent = self._w is not None and bool(np.any(a[self._w == 0] > 0))
        return math.inf if absent else float(a.sum())

    def maximiser(self, a: ArrayLike) -> Array:
        return self._signed(np.ones(len(np.asarray(a))), a) * (np.asarray(a) != 0)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        a = np.zeros(len(magnitudes))
        if len(a):
            a[int(np.argmax(np.where(w > 0, magnitudes, -1.0)))] = 1.0
        return self._signed(a, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        bound = np.where(w > 0, math.inf, 0.0)
        return self._signed(projections.onto_capped_simplex(magnitudes, bound, radius), a)


class Lp(_Weighted, Norm):
    """The p-norm ``(sum |xi|^p)^(1/p)`` for a finite p of at least 1.

    Examples
    --------
    >>> from anynorm.norms import Lp
    >>> Lp(2).value([3.0, 4.0])
    5.0
    """

    def __init__(self, p: float, weights: ArrayLike | None = None):
        if not (np.isscalar(p) and np.isreal(p) and 1 <= p < math.inf):
            raise ValueError(f"p must be a finite number of at least 1; got {p!r} (see LInf)")
        super().__init__(weights)
        self.p = p

    def value(self, xi: ArrayLike) -> float:
        v, w = self._rows(xi)
        top = float(v[w > 0].max(initial=0.0))
        if top == 0.0 or not math.isfinite(top):
            return top
        return top * float(w @ (v / top) ** self.p) ** (1 / self.p)

    def dual_value(self, a: ArrayLike) -> float:
        if self.p == 1:
            return L1(self.weights).dual_value(a)
        magnitudes, w = self._rows(a)
        ratio = _over(magnitudes, w)
        top = float(ratio.max(initial=0.0))
        if top == 0.0 or not math.isfinite(top):
            return top
        q = self.p / (self.p - 1)
        return top * float(w @ (ratio / top) ** q) ** (1 / q)

    def maximiser(self, a: ArrayLike) -> Array:
        if self.p == 1:
            return self._corner(a)
        magnitudes, w = self._rows(a)
        ratio = np.divide(magnitudes, w, out=np.zeros(len(w)), where=w > 0)
        top = float(ratio.max(initial=0.0))
        v = (ratio / top) ** (1 / (self.p - 1)) if top > 0 else ratio
        length = self.value(v)
        return self._signed(v / length if length > 0 else v, a)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        length = self.value(v)
        scaled = magnitudes / length if length > 0 else magnitudes
        return np.sign(v) * w * np.where(w > 0, scaled, 0.0) ** (self.p - 1)

    def project_dual(self, a: ArrayLike, radius: float) -> Array | None:
        same: Norm | None = {1: L1(self.weights), 2: L2(self.weights)}.get(self.p)
        return None if same is None else same.project_dual(a, radius)


class TopK(_Weighted, Norm):
    """The sum of the k largest absolute values; a fractional k takes part of the last.

    Examples
    --------
    >>> from anynorm.norms import TopK
    >>> TopK(2).value([1.0, -5.0, 3.0]), TopK(1.5).value([1.0, -5.0, 3.0])
    (8.0, 6.5)
    """

    def __init__(self, k: float, weights: ArrayLike | None = None):
        _checked_positive("k", k)
        super().__init__(weights)
        self.k = k

    def value(self, xi: ArrayLike) -> float:
        return float(self._taken(xi) @ _magnitudes(xi))

    def dual_value(self, a: ArrayLike) -> float:
        magnitudes = _magnitudes(a)
        return max(
            float(_over(magnitudes, self._w).max(initial=0.0)), float(magnitudes.sum()) / self.k
        )

    def maximiser(self, a: ArrayLike) -> Array:
        magnitudes, w = self._rows(a)
        if (magnitudes[w > 0] / w[w > 0]).max(initial=0.0) >= magnitudes.sum() / self.k:
            return self._corner(a)
        return self._signed(np.full(len(w), 1.0 / self.k), a)

    def subgradient(self, v: ArrayLike) -> Array:
        return np.sign(v) * self._taken(v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        nearest = projections.onto_capped_simplex(magnitudes, radius * w, self.k * radius)
        return self._signed(nearest, a)

    def _taken(self, v: ArrayLike) -> Array:
        """How much of each row's weight is among the k largest."""
        magnitudes, w = self._rows(v)
        order = np.argsort(-magnitudes, kind="stable")
        before = np.cumsum(w[order]) - w[order]
        taken = np.empty(len(w))
        taken[order] = np.clip(self.k - before, 0.0, w[order])
        return taken


class TopK2(_Weighted, Norm):
    """Peetre's K(2, inf, sqrt k): close to, but not, the 2-norm of the k largest values.

    Examples
    --------
    >>> from anynorm.norms import TopK2
    >>> TopK2(2).value([3.0, 4.0])
    5.0
    >>> round(TopK2(1).value([3.0, 4.0]), 12)
    4.0
    """

    def __init__(self, k: float, weights: ArrayLike | None = None):
        _checked_positive("k", k)
        super().__init__(weights)
        self.k = k

    def value(self, xi: ArrayLike) -> float:
        v, w = self._rows(xi)
        level = projections.excess_level(v, w, self.k)
        return _euclidean(np.maximum(v - level, 0.0), w) + math.sqrt(self.k) * level

    def dual_value(self, a: ArrayLike) -> float:
        magnitudes, w = self._rows(a)
        return max(
            _euclidean(_over(magnitudes, np.sqrt(w))), float(magnitudes.sum()) / math.sqrt(self.k)
        )

    def maximiser(self, a: ArrayLike) -> Array:
        magnitudes, w = self._rows(a)
        kept = np.where(w > 0, magnitudes, 0.0)
        if _euclidean(_over(kept, np.sqrt(w))) >= kept.sum() / math.sqrt(self.k):
            return self._direction(a)
        return self._signed(np.full(len(w), 1.0 / math.sqrt(self.k)), a)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        level = projections.excess_level(magnitudes, w, self.k)
        excess = np.maximum(magnitudes - level, 0.0)
        length = _euclidean(excess, w)
        if length > 0:
            return self._signed(w * (excess / length), v)
        tied = w * (magnitudes >= level) * (magnitudes > 0)
        total = float(tied.sum())
        return self._signed(tied * (math.sqrt(self.k) / total) if total > 0 else tied, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        total = math.sqrt(self.k) * radius
        return self._signed(
            projections.onto_ellipsoid_and_simplex(magnitudes, w, radius, total), a
        )


class K12(_Weighted, Norm):
    """Peetre's K(1, 2, sqrt r), between the 2-norm (small r) and the 1-norm (r >= n).

    Examples
    --------
    >>> from anynorm.norms import K12
    >>> K12(2).value([3.0, 4.0]), K12(1).value([3.0, 4.0])
    (7.0, 5.0)
    """

    def __init__(self, r: float, weights: ArrayLike | None = None):
        _checked_positive("r", r)
        super().__init__(weights)
        self.r = r

    def value(self, xi: ArrayLike) -> float:
        v, w = self._rows(xi)
        level = projections.saturation_level(v, w, self.r)
        excess = float(w @ np.maximum(v - level, 0.0))
        return excess + math.sqrt(self.r) * _euclidean(np.minimum(v, level), w)

    def dual_value(self, a: ArrayLike) -> float:
        magnitudes, w = self._rows(a)
        return max(
            float(_over(magnitudes, w).max(initial=0.0)),
            _euclidean(_over(magnitudes, np.sqrt(w))) / math.sqrt(self.r),
        )

    def maximiser(self, a: ArrayLike) -> Array:
        magnitudes, w = self._rows(a)
        kept = np.where(w > 0, magnitudes, 0.0)
        length = _euclidean(_over(kept, np.sqrt(w))) / math.sqrt(self.r)
        if float(_over(kept, w).max(initial=0.0)) >= length:
            return self._corner(a)
        return self._direction(a) / math.sqrt(self.r)

    def subgradient(self, v: ArrayLike) -> Array:
        magnitudes, w = self._rows(v)
        level = projections.saturation_level(magnitudes, w, self.r)
        share = np.minimum(magnitudes / level, 1.0) if level > 0 else (magnitudes > 0)
        return self._signed(w * share, v)

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        magnitudes, w = self._rows(a)
        length = math.sqrt(self.r) * radius
        return self._signed(projections.onto_ellipsoid(magnitudes, w, length, radius * w), a)


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

    @property
    def monotone(self) -> bool:  # type: ignore[override]
        """True where M is known to be diagonal."""
        matrix = self._matrix
        return matrix is not None and not np.any(matrix - np.diag(np.diagonal(matrix)))

    @property
    def factor(self) -> Array:
        """The lower triangular L with ``M = L L'``."""
        if self._factor is None:
            raise ValueError("M is a function of X; call resolve(X) to have it as an array")
        return self._factor

    def resolve(self, X: Any) -> Mahalanobis:
        """Return the norm with M as an array, for the rows of X."""
        return Mahalanobis(np.asarray(self.M(X))) if callable(self.M) else self

    def value(self, xi: ArrayLike) -> float:
        return _euclidean(np.abs(self.factor.T @ self._checked(xi)))

    def dual_value(self, a: ArrayLike) -> float:
        return _euclidean(np.abs(self._solve(self._checked(a))))

    def maximiser(self, a: ArrayLike) -> Array:
        half = self._solve(self._checked(a))
        length = _euclidean(np.abs(half))
        if length == 0:
            return np.zeros(len(half))
        v: Array = solve_triangular(self.factor, half / length, lower=True, trans=1)
        return v

    def subgradient(self, v: ArrayLike) -> Array:
        half = self.factor.T @ self._checked(v)
        length = _euclidean(np.abs(half))
        return np.asarray(self.factor @ (half / length if length > 0 else half))

    def project_dual(self, a: ArrayLike, radius: float) -> Array:
        assert self._matrix is not None or self.factor is not None
        spectrum, basis = np.linalg.eigh(self.factor @ self.factor.T)
        turned = basis.T @ self._checked(a)
        nearest = projections.onto_ellipsoid(np.abs(turned), np.maximum(spectrum, 0.0), radius)
        return np.asarray(basis @ np.copysign(nearest, turned))

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
        return np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise ValueError("M must be positive definite; its Cholesky factor does not exist") from None


_NAMED: dict[str, type[Norm] | type[SquaredL2]] = {
    "l1": L1,
    "l2": L2,
    "linf": LInf,
    "squared_l2": SquaredL2,
}


def get_norm(slack: str | Norm | SquaredL2) -> Norm | SquaredL2:
    """Return the slack norm of a name, or the norm given.

    Examples
    --------
    >>> from anynorm.norms import get_norm
    >>> get_norm("linf")
    LInf()
    """
    if isinstance(slack, Norm | SquaredL2):
        return slack
    if slack not in _NAMED:
        raise ValueError(
            f"slack must be one of {sorted(_NAMED)} or a norm of anynorm.norms; got {slack!r}"
        )
    return _NAMED[slack]()
