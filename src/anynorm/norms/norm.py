"""The base class of all norms, and what the norms with sample weights share."""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anynorm.norms.dual_sets import AnyBall, DualSet
from anynorm.norms.parameterised import Parameterised

Array = NDArray[np.float64]


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
    >>> float(Doubled().value(np.array([1.0, -2.0])))
    6.0
    """

    monotone: bool = True
    bias_falls: bool = False
    """Whether the best biases fall where a score rises, so that bounds of scores bound them."""
    sum_over_rows: bool = False
    """Whether it adds up over the rows, one like the other but for weights."""

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

    @property
    def row_weights(self) -> Array | None:
        """The weights of the rows that the norm has been given, None where all are 1."""
        return None

    def for_rows(self, kept: NDArray[np.bool_] | NDArray[np.intp]) -> Norm:
        """Return the norm with the weights of the rows kept only."""
        return self

    def unweighted(self) -> Norm:
        """Return the norm of rows that all count once."""
        return self

    def clipped(self, a: Array, radius: float) -> Array:
        """Return a without what lies outside the bounds of single entries, if there are any."""
        return a

    def dual_set(self, C: float, weights: Array, signed: bool) -> DualSet:
        """Return where the dual variables of ``C N(slack)`` are, for rows with these weights.

        A norm that knows more than that its dual ball is one says so here, and is solved faster.
        """
        weighs_one = np.all(weights == 1.0)
        return AnyBall(signed, self if weighs_one else self.weighted(weights), C)

    def cheapest_above(self, r: Array) -> Array:
        """Return the xi >= max(r, 0) with the least N(xi)."""
        lower = np.maximum(r, 0.0)
        if self.monotone or not lower.any():
            return lower
        from anynorm.norms.envelope import smallest_above  # of use to few

        return smallest_above(self, lower)

    def cheapest_dual_above(self, a: Array) -> Array:
        """Return the e >= a with the least N*(e), for a >= 0."""
        if self.monotone or not a.any():
            return a
        from anynorm.norms.envelope import smallest_dual_above

        return smallest_dual_above(self, a)

    def bias_interval(self, t: Array, y: Array, one_sided: bool) -> tuple[float, float]:
        """Return the ends of the interval of the b that minimise N of ``y (t - b)``.

        One-sided, N of the cheapest slacks above these; some of them are then above 0 at every b.
        """
        from anynorm.norms.best_bias import minimisers_of

        return minimisers_of(self, t, y, one_sided)


def magnitudes_of(v: ArrayLike) -> Array:
    """Return |v| in float64."""
    return np.abs(np.asarray(v, dtype=np.float64))


def checked_weights(weights: ArrayLike) -> Array:
    """Return weights as a float64 vector, or say what is wrong with them."""
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or not np.all(np.isfinite(w)):
        raise ValueError("weights must be a vector of finite numbers, one per row")
    if np.any(w < 0):
        raise ValueError(f"weights must not be negative; got {w.min():g}. Use 0 to drop a row.")
    if not np.any(w > 0):
        raise ValueError("weights are all zero; at least one row needs a positive weight")
    return w


def is_real(value: Any) -> bool:
    """Whether value is a real number, of Python or of numpy."""
    return isinstance(value, numbers.Real)


def checked_positive(name: str, value: float) -> float:
    """Return value, a finite number above 0."""
    if not (is_real(value) and 0 < value < math.inf):
        raise ValueError(f"{name} must be a finite number above 0; got {value!r}")
    return value


def over(a: Array, w: Array | None) -> Array:
    """Return a / w for a >= 0, with 0/0 = 0 and a/0 = inf."""
    if w is None:
        return a
    return np.divide(a, w, out=np.where(a > 0, math.inf, 0.0), where=w > 0)


def euclidean(v: Array, w: Array | None = None) -> float:
    """Return sqrt(sum w v^2) for v >= 0, without overflow or underflow."""
    v = v if w is None else np.where(w > 0, v, 0.0)
    top = float(v.max(initial=0.0))
    if top == 0.0 or not math.isfinite(top):
        return top
    squares = np.square(v / top)
    return top * math.sqrt(float(squares.sum() if w is None else w @ squares))


class Weighted(Parameterised):
    """What the norms with a weighted form share."""

    def __init__(self, weights: ArrayLike | None = None):
        self.weights = weights
        self._w = None if weights is None else checked_weights(weights)

    def weighted(self, w: ArrayLike) -> Self:
        """Return the same norm in which row i counts w_i times.

        Examples
        --------
        >>> from anynorm.norms import TopK
        >>> TopK(2).weighted([2.0, 1.0]).value([3.0, 5.0])
        8.0
        >>> TopK(2).value([3.0, 3.0, 5.0])
        8.0
        """
        w = checked_weights(w)
        return type(self)(**{**self.get_params(), "weights": w if self._w is None else w * self._w})

    @property
    def row_weights(self) -> Array | None:
        """The weights of the rows, None where all are 1."""
        return self._w

    def unweighted(self) -> Self:
        """Return the norm of rows that all count once."""
        return type(self)(**{**self.get_params(), "weights": None})

    def for_rows(self, kept: NDArray[np.bool_] | NDArray[np.intp]) -> Self:
        """Return the norm with the weights of the rows kept only."""
        if self._w is None:
            return self
        return type(self)(**{**self.get_params(), "weights": self._w[kept]})

    def _rows(self, v: ArrayLike) -> tuple[Array, Array]:
        """|v| and the weights as an array."""
        magnitudes = magnitudes_of(v)
        if self._w is not None and magnitudes.shape != self._w.shape:
            raise ValueError(f"there are {len(self._w)} weights for {magnitudes.size} rows")
        return magnitudes, np.ones(len(magnitudes)) if self._w is None else self._w

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
        length = euclidean(v, w)
        return self._signed(v / length if length > 0 else v, a)
