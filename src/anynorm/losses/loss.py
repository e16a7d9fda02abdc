"""What a loss is: a cost of the residuals, and what the duals, the biases and Newton need of it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize_scalar

from anynorm.design.limits import ROUNDING
from anynorm.losses.bias import balanced_bias
from anynorm.losses.curves import Curve
from anynorm.norms import Norm, SquaredL2
from anynorm.norms.best_bias import extremes
from anynorm.norms.dual_sets import Box, CurvedBox, DualSet

if TYPE_CHECKING:
    from anynorm.losses.slack import SlackLoss

Array = NDArray[np.float64]
Interval = tuple[float, float]
Constraints = Literal["inequality", "equality"]

_NO_BOUND = 1e6  # times 1/max(a): where a best scale is looked for, if nothing bounds it


class Loss(ABC):
    """A cost g of the residuals ``r = 1 - y (f + b)``; subclass it to bring your own.

    A subclass has `value`, `dual_gain` and `dual_set`, and `curve` where the loss is smooth.  The
    rest follows from these for a sum over the examples whose duals are bounded one by one (`Box`
    or `CurvedBox`); the losses of the library say some of it in closed form.

    Attributes
    ----------
    name : str
        As in estimators' `loss`, or a description.
    slack : Norm, SquaredL2 or None
        The norm of the slacks, None where the loss is none.
    curvature_bound : float or None
        The largest second derivative of a smooth loss at C = 1 and weight 1.
    bias_falls : bool
        Whether the best biases fall where a score rises.
    signed : bool
        Whether the dual variables may be negative.
    one_sided : bool
        Whether margins of 1 and more are free of cost.
    quadratic_dual : bool
        Whether the conjugate is a quadratic form, so that the best scale of a dual is a formula.
    sum_over_rows : bool
        Whether the value adds up over the rows, one like the other but for the weights that it is
        given: that of many rows is then asked for in parts.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> get_loss("hinge").value(np.array([0.5, -1.0, 2.0]), C=10.0)
    25.0
    >>> get_loss("squared_hinge").conjugate(np.array([2.0, 0.0]), C=1.0)
    1.0
    """

    name: str
    slack: Norm | SquaredL2 | None = None
    curvature_bound: float | None = None
    bias_falls: bool = True
    signed: bool = False
    one_sided: bool = False
    quadratic_dual: bool = False
    sum_over_rows: bool = False

    @staticmethod
    def from_slack(
        slack: str | Norm | SquaredL2, constraints: Constraints = "inequality"
    ) -> SlackLoss:
        """Return the loss of a slack norm and a kind of constraints.

        Examples
        --------
        >>> from anynorm.losses import Loss
        >>> from anynorm.norms import TopK
        >>> Loss.from_slack("l1", "equality").name
        'absolute'
        >>> Loss.from_slack(TopK(3)).name
        'TopK(k=3) inequality'
        """
        from anynorm.losses.slack import slack_loss

        return slack_loss(slack, constraints)

    @abstractmethod
    def value(self, r: ArrayLike, C: float, weights: Array | None = None) -> float:
        """Return g(r)."""

    @abstractmethod
    def dual_gain(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return ``sum a - g*(a)``, the loss's part of the dual objective."""

    @abstractmethod
    def dual_set(self, C: float, weights: Array) -> DualSet:
        """Return where the dual variables may be; see `anynorm.norms.dual_sets`."""

    def curve(self, cost: Array) -> Curve | None:
        """Return the loss as Newton's method sees it at C_i = cost_i; None where it has kinks."""
        return None

    @property
    def smooth(self) -> bool:
        """Whether the loss has a gradient everywhere (so that its conjugate is curved)."""
        return self.curvature_bound is not None

    def of_rows(self, weights: Array | None) -> tuple[Loss, Array | None]:
        """Return the loss of rows that have these weights, and what of them is still to be given.

        It is for those who ask for many values: weights are checked once.
        """
        return self, weights

    def without_weights(self) -> tuple[Loss, Array | None]:
        """Return the loss of unweighted rows, and the weights of its norm (None for none)."""
        return self, None

    def resolve(self, X: Any) -> Loss:
        """Return the loss for the rows of X (only norms made from the data change)."""
        return self

    def conjugate(self, a: ArrayLike, C: float, weights: Array | None = None) -> float:
        """Return ``g*(a) = sup_r a'r - g(r)``, infinite where a is not allowed."""
        a = np.asarray(a, dtype=np.float64)
        gain = self.dual_gain(a, C, weights)
        return math.inf if gain == -math.inf else float(a.sum()) - gain

    def clip_dual(self, a: ArrayLike, C: float, weights: Array | None = None) -> Array:
        """Return a with wrong signs, rows of weight 0 and excess over a box removed."""
        a = finite(a)
        box = self._box(C, weights, len(a))
        return np.clip(a, box.lower, box.upper)

    def largest_scale(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return the largest t for which t*a is allowed (a of the right signs)."""
        box = self._box(C, weights, len(a))
        bound = np.where(a > 0, box.upper, -box.lower)
        used = a != 0
        with np.errstate(over="ignore"):  # beyond float64 is no limit
            return float((bound[used] / np.abs(a[used])).min(initial=math.inf))

    def best_scale(
        self, a: Array, curvature: float, limit: float, C: float, weights: Array | None = None
    ) -> float:
        """Return the t in [0, limit] with the largest ``dual_gain(t a) - t^2/2 curvature``."""
        size = float(np.abs(a).max(initial=0.0))
        if size == 0.0:
            return 0.0
        top = min(limit, _NO_BOUND / size)

        def fall(t: float) -> float:
            return 0.5 * t**2 * curvature - self.dual_gain(t * a, C, weights)

        found = minimize_scalar(
            fall, bounds=(0.0, top), method="bounded", options={"xatol": ROUNDING * top}
        )
        # The search stops short of its end, which is the best one where a bound is in the way.
        return min((float(found.x), min(1.0, top), top), key=fall)

    def bias_interval(self, scores: Array, y: Array, weights: Array | None = None) -> Interval:
        """Return the ends of the interval of all b that minimise ``g(1 - y (scores + b))``.

        An end is infinite where only one class has weight and margins of 1 and more are free.
        """
        w = np.ones(len(y)) if weights is None else weights
        scores, y, w = scores[w > 0], y[w > 0], w[w > 0]
        if self.one_sided:
            low, high = extremes(y - scores, y, one_sided=True)
            if high <= low:
                return high, low
        curve = self.curve(w)
        if curve is None:
            raise ValueError(f"the loss {self.name!r} has neither a curve nor a bias_interval")
        b = balanced_bias(curve, y, scores)
        return b, b

    def _box(self, C: float, weights: Array | None, n: int) -> Box | CurvedBox:
        box = self.dual_set(C, np.ones(n) if weights is None else weights)
        if not isinstance(box, Box | CurvedBox):
            raise ValueError(
                f"the loss {self.name!r} bounds its duals together: it needs clip_dual and "
                "largest_scale of its own"
            )
        return box


def finite(a: ArrayLike) -> Array:
    """Return a as float64 with zeros for what is not finite."""
    out, usable = np.array(a, dtype=np.float64), np.isfinite(a)
    if not usable.all():
        out[~usable] = 0.0
    return out
