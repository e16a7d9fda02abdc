"""The dual of each loss as a box with a diagonal: lower <= a <= upper, plus 1/2 shift a^2."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anynorm.losses import Loss


@dataclass(frozen=True)
class Box:
    """Bounds of the dual variables and the diagonal that a squared slack adds."""

    lower: np.ndarray
    upper: np.ndarray
    shift: np.ndarray

    def gap(self, residual: np.ndarray, dual: np.ndarray) -> float:
        """sum_i max_{a in box} a r - a_i r: what the slacks add to primal - dual (shift 0)."""
        best = np.where(residual > 0, self.upper, self.lower) * residual
        return float((best - dual * residual).sum())

    def cost(self, residual: np.ndarray) -> float:
        """The loss whose conjugate is the box (shift 0)."""
        return float((np.where(residual > 0, self.upper, self.lower) * residual).sum())


def box_of(loss: Loss, cost: np.ndarray) -> Box:
    """The box of a loss at C_i = cost_i; the logistic loss has the hinge's bounds."""
    upper, shift = cost, np.zeros_like(cost)
    if loss.smooth and loss.slack is not None:
        upper = np.where(cost > 0, np.inf, 0.0)
        shift = np.divide(0.5, cost, out=shift, where=cost > 0)
    return Box(-upper if loss.signed else np.zeros_like(cost), upper, shift)
