"""A loss from outside the package: the hinge with a rounded corner."""

from dataclasses import dataclass

import numpy as np

from anynorm.losses import Loss
from anynorm.losses.curves import Curve
from anynorm.norms.dual_sets import Box


@dataclass(frozen=True)
class SmoothedHinge(Loss):
    """A square up to `width`, then straight; nothing is said that could be left to the base."""

    width: float = 0.5
    name: str = "smoothed_hinge"
    one_sided = True

    @property
    def curvature_bound(self):
        return 1 / self.width

    def value(self, r, C, weights=None):
        r = np.maximum(r, 0)
        cost = np.where(r < self.width, r**2 / (2 * self.width), r - self.width / 2)
        return C * float(cost.sum() if weights is None else weights @ cost)

    def dual_gain(self, a, C, weights=None):
        bound = C * (np.ones(len(a)) if weights is None else weights)
        if np.any(a < -1e-12 * bound) or np.any(a > bound * (1 + 1e-12)):
            return -np.inf
        share = np.divide(a, bound, out=np.zeros(len(a)), where=bound > 0)
        return float(a.sum() - self.width / 2 * (a @ share))

    def dual_set(self, C, weights):
        bound = C * weights
        shift = np.divide(self.width, bound, out=np.zeros(len(bound)), where=bound > 0)
        return Box.of(bound, False, shift)

    def curve(self, cost):
        return SmoothedHingeCurve(cost, self.width)


@dataclass(frozen=True)
class SmoothedHingeCurve(Curve):
    width: float

    def dual(self, residual):
        return self.cost * np.clip(residual / self.width, 0, 1)

    def curvature(self, residual):
        return np.where((residual > 0) & (residual < self.width), self.cost / self.width, 0.0)
