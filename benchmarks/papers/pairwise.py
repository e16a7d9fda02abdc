"""The SMO of the Least 1-norm paper, as it is written there: pairs, one rule, one stop.

    minimise   1/2 beta'K beta - y'beta      subject to   sum(beta) = 0,  |beta| <= bound

with beta = y * alpha, for the Least 1-norm SVM (bound C) and, with I/C on the kernel's diagonal and
no bound, for LS-SVM (Keerthi and Shevade 2003).  g = K beta - y is the gradient.  One step changes
beta_L by +t and beta_U by -t:

* first order (equation 8):   L has the least g of those that may rise, U the largest g of those
  that may fall;
* second order (Fan, Chen and Lin 2005; the paper's future work): L as before, U by the largest
  decrease (g_U - g_L)^2 / (K_LL + K_UU - 2 K_LU) of those with g_U > g_L.

Stops where the largest g that may fall is at most 1e-3 above the least that may rise (equations 10
and 11).
"""

from typing import NamedTuple

import numpy as np

EPSILON = 1e-3


class Found(NamedTuple):
    """The signed duals beta, the bias and the number of steps."""

    beta: np.ndarray
    intercept: float
    n_iter: int


def pairwise(
    K: np.ndarray,
    y: np.ndarray,
    bound: float = np.inf,
    *,
    second_order: bool = False,
    epsilon: float = EPSILON,
    max_iter: int = 1_000_000,
) -> Found:
    """Solve by steps on pairs, from beta = 0."""
    beta, gradient, diagonal = np.zeros(len(y)), -y.astype(float), np.diag(K).copy()
    for n_iter in range(max_iter):
        rising = np.where(beta < bound, gradient, np.inf)
        falling = np.where(beta > -bound, gradient, -np.inf)
        low, high = int(rising.argmin()), int(falling.argmax())
        least, most = rising[low], falling[high]
        if most - least <= epsilon:
            return Found(beta, -float(least + most) / 2, n_iter)
        if second_order:
            curvatures = np.maximum(diagonal[low] + diagonal - 2 * K[low], 1e-12)
            decreases = np.where(falling > least, (falling - least) ** 2 / curvatures, -1.0)
            high = int(decreases.argmax())
        curvature = max(diagonal[low] + diagonal[high] - 2 * K[low, high], 1e-12)
        step = (gradient[high] - least) / curvature
        step = min(step, bound - beta[low], bound + beta[high])
        # A step that ends at a bound ends there exactly, whatever the sum rounds to.
        beta[low] = bound if step == bound - beta[low] else beta[low] + step
        beta[high] = -bound if step == bound + beta[high] else beta[high] - step
        gradient += step * (K[low] - K[high])
    raise RuntimeError(f"no end after {max_iter} steps")
