"""Losses: what the residuals r = 1 - margin cost, and the conjugates the duals need.

    loss            slack        constraints    g(r)
    hinge           L1           inequality     C sum w r_+
    squared_hinge   SquaredL2    inequality     C sum w r_+^2
    absolute        L1           equality       C sum w |r|
    squared         SquaredL2    equality       C sum w r^2
    logistic        none         none           C sum w log(1 + exp(r - 1))

and, for any norm, ``C N_w(r_+)`` (inequality) or ``C N_w(r)`` (equality).  The dual of
``R(w) + g(1 - y(Xw + b))`` is ``sum a - R*(X'(y a)) - g*(a)`` with y'a = 0 for a free b.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import xlog1py, xlogy

from anynorm.norms import L1, Norm, SquaredL2, get_norm
from anynorm.norms.base import Weighted
from anynorm.norms.envelope import smallest_above, smallest_dual_above

Array = NDArray[np.float64]
Constraints = Literal["inequality", "equality"]

_ROUNDING = 1e-12
_FEW = 16


@dataclass(frozen=True)
class Loss:
    """A cost of the residuals ``r = 1 - y (f + b)``.

    Attributes
    ----------
    name : str
        "hinge", "squared_hinge", "absolute", "squared", "logistic", or the norm's repr.
    slack : Norm, SquaredL2 or None
        The norm of the slacks; None for the logistic loss.
    constraints : {"inequality", "equality"}
        Whether margins above 1 are free of cost.

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
    slack: Norm | SquaredL2 | None
    constraints: Constraints = "inequality"

    def __post_init__(self) -> None:
        if self.constraints not in ("inequality", "equality"):
            raise ValueError(
                f"constraints must be 'inequality' or 'equality'; got {self.constraints!r}"
            )

    @classmethod
    def from_slack(
        cls, slack: str | Norm | SquaredL2, constraints: Constraints = "inequality"
    ) -> Loss:
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
        norm = get_norm(slack)
        for loss in LOSSES.values():
            if loss.slack == norm and loss.constraints == constraints:
                return loss
        # A matrix would be written out in full.
        large = any(np.size(value) > _FEW for value in norm.get_params().values())
        name = type(norm).__name__ if large else repr(norm)
        return cls(f"{name} {constraints}", norm, constraints)

    @property
    def smooth(self) -> bool:
        """Whether the loss has a gradient everywhere (so that its conjugate is curved)."""
        return not isinstance(self.slack, Norm)

    @property
    def signed(self) -> bool:
        """Whether the dual variables may be negative."""
        return self.slack is not None and self.constraints == "equality"

    def resolve(self, X: Any) -> Loss:
        """Return the loss for the rows of X (only norms made from the data change)."""
        if not isinstance(self.slack, Norm):
            return self
        norm = self.slack.resolve(X)
        return self if norm is self.slack else replace(self, slack=norm)

    def value(self, r: ArrayLike, C: float, weights: Array | None = None) -> float:
        """Return g(r)."""
        r = np.asarray(r, dtype=np.float64)
        slack = self._weighted(weights)
        if slack is None:
            costs = np.logaddexp(0.0, r - 1.0)
            return C * float(costs.sum() if weights is None else weights @ costs)
        if self.constraints == "equality":
            return C * slack.value(r)
        if slack.monotone:
            return C * slack.value(np.maximum(r, 0.0))
        assert isinstance(slack, Norm)
        return C * slack.value(smallest_above(slack, r))

    def conjugate(self, a: ArrayLike, C: float, weights: Array | None = None) -> float:
        """Return ``g*(a) = sup_r a'r - g(r)``, infinite where a is not allowed."""
        a = np.asarray(a, dtype=np.float64)
        gain = self.dual_gain(a, C, weights)
        return math.inf if gain == -math.inf else float(a.sum()) - gain

    def dual_gain(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return ``sum a - g*(a)``, the loss's part of the dual objective."""
        size = float(np.abs(a).max(initial=0.0))
        if not self.signed and np.any(a < -_ROUNDING * size):
            return -math.inf
        slack = self._weighted(weights)
        if slack is None:
            bound = _bounds(C, weights, len(a))
            if np.any(a > bound * (1 + _ROUNDING)):
                return -math.inf
            share = np.divide(a, bound, out=np.zeros(len(a)), where=bound > 0)
            share = np.clip(share, 0.0, 1.0)
            return -float(bound @ (xlogy(share, share) + xlog1py(1.0 - share, -share)))
        if isinstance(slack, SquaredL2):
            return float(a.sum()) - slack.conjugate(a) / C
        allowed = self._dual_size(slack, a) <= C * (1 + _ROUNDING)
        return float(a.sum()) if allowed else -math.inf

    def clip_dual(self, a: ArrayLike, C: float, weights: Array | None = None) -> Array:
        """Return a with wrong signs, rows of weight 0 and excess over a box removed."""
        clipped = np.nan_to_num(np.asarray(a, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
        if not self.signed:
            clipped = np.maximum(clipped, 0.0)
        slack = self._weighted(weights)
        if slack is None:
            return np.minimum(clipped, _bounds(C, weights, len(clipped)))
        if isinstance(slack, L1):
            return slack.project_dual(clipped, C)
        absent = slack.weights if isinstance(slack, Weighted) else None
        return clipped if absent is None else np.where(np.asarray(absent) > 0, clipped, 0.0)

    def largest_scale(self, a: Array, C: float, weights: Array | None = None) -> float:
        """Return the largest t for which t*a is allowed (a of the right signs)."""
        slack = self._weighted(weights)
        if isinstance(slack, SquaredL2):
            return math.inf
        if slack is None:
            size = (L1() if weights is None else L1(weights)).dual_value(a)
        else:
            size = self._dual_size(slack, a)
        return C / size if size > 0 else math.inf

    def _weighted(self, weights: Array | None) -> Norm | SquaredL2 | None:
        if weights is None or self.slack is None:
            return self.slack
        weighted: Norm | SquaredL2 = self.slack.weighted(weights)
        return weighted

    def _dual_size(self, norm: Norm, a: Array) -> float:
        """The least N*(e) over the e that a allows."""
        if self.constraints == "equality" or norm.monotone:
            return norm.dual_value(a)
        return norm.dual_value(smallest_dual_above(norm, np.maximum(a, 0.0)))


def _bounds(C: float, weights: Array | None, n: int) -> Array:
    return np.full(n, float(C)) if weights is None else C * weights


LOSSES: dict[str, Loss] = {
    "hinge": Loss("hinge", L1(), "inequality"),
    "squared_hinge": Loss("squared_hinge", SquaredL2(), "inequality"),
    "absolute": Loss("absolute", L1(), "equality"),
    "squared": Loss("squared", SquaredL2(), "equality"),
    "logistic": Loss("logistic", None, "inequality"),
}


def get_loss(loss: str | Loss) -> Loss:
    """Return the loss of a name, or the loss given.

    Examples
    --------
    >>> from anynorm.losses import get_loss
    >>> get_loss("absolute").constraints
    'equality'
    """
    if isinstance(loss, Loss):
        return loss
    if loss not in LOSSES:
        raise ValueError(f"loss must be one of {sorted(LOSSES)}; got {loss!r}")
    return LOSSES[loss]
