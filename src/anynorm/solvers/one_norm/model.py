"""The quadratic model of a prox-Newton step, by coordinate descent and conjugate gradients.

        minimise_{d, t}   1/2 ||A d + s t||^2 - linear'd + sum_j penalty_j |start_j + d_j|

with A = diag(s) X, s_i^2 the curvature of example i, and t the step of a free bias, which is always
kept at its best value.  Passes of coordinate descent find the signs; on the coordinates that
are not zero the model is then quadratic, and conjugate gradients (Jacobi preconditioner) find
its minimum much faster than further passes; coordinates that would change sign are set to zero.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from anynorm.solvers.one_norm.columns import Part

_FIRST_STEPS = 8
_MOST_STEPS = 400
_FLAT = 1e-12


@dataclass
class Model:
    """The pieces of the model, and where the minimisation stands: coef, v = A d and (t, 1/s's)."""

    part: Part
    linear: np.ndarray
    penalty: np.ndarray
    coef: np.ndarray
    unit: np.ndarray
    root: np.ndarray
    free_bias: bool

    def __post_init__(self) -> None:
        everything = np.arange(self.coef.size)
        squares = self.part.squares()
        self.v = np.zeros(self.part.n_rows)
        self.bias = np.zeros(2)
        self.mean = np.zeros(self.coef.size)
        if self.free_bias:
            self.bias[1] = 1.0 / float(self.root @ self.root)
            self.mean = self.part.dot(everything, self.root)
        self.curvature = np.maximum(squares - self.bias[1] * self.mean**2, _FLAT * squares)
        self.curvature[self.curvature == 0] = 1.0
        self.keep = np.ones(self.coef.size, dtype=bool)

    def gradient(self, columns: np.ndarray) -> np.ndarray:
        """Minus the gradient of the smooth part."""
        pulled = self.part.dot(columns, self.v)
        return self.linear[columns] - pulled - self.mean[columns] * self.bias[0]

    def move(self, columns: np.ndarray, step: np.ndarray, image: np.ndarray) -> None:
        """Add a step, A step = image."""
        self.coef[columns] += step
        self.v += image
        self.bias[0] -= self.bias[1] * float(self.mean[columns] @ step)


def minimise_model(model: Model, target: float, spend: Callable[[], bool]) -> None:
    """Bring the largest violation of the optimality conditions, in `unit`s, down to `target`."""
    everything = np.arange(model.coef.size)
    active, whole, steps = everything, True, _FIRST_STEPS
    while spend():
        violation = model.part.descend(active, model)
        if violation <= target and whole:
            return
        if violation <= target:
            active, whole = everything, True
            continue
        active, whole = np.flatnonzero(model.keep), False
        steps = _step_on_support(model, target, steps, spend)


def _step_on_support(model: Model, target: float, steps: int, spend: Callable[[], bool]) -> int:
    """One truncated Newton step on the coordinates that are not zero; returns the next budget."""
    support = np.flatnonzero(model.coef)
    if support.size == 0:
        return steps
    coef, penalty = model.coef[support], model.penalty[support]
    gradient = model.gradient(support)
    residual = gradient - penalty * np.sign(coef)
    step, image = _conjugate_gradients(model, support, residual, target, steps, spend)
    for _ in range(6):
        new = coef + step
        crossed = (new * coef < 0) & (penalty > 0)
        taken = step
        if crossed.any():
            taken = np.where(crossed, -coef, step)
            image = model.part.combine(support, taken)
        rise = float(penalty @ (np.abs(coef + taken) - np.abs(coef)) - gradient @ taken)
        tilt = float(model.mean[support] @ taken)
        rise += 0.5 * (float(image @ image) - model.bias[1] * tilt**2)
        if rise <= 0:
            model.move(support, taken, image)
            break
        step = 0.5 * step
        image = 0.5 * image
    share = float(np.count_nonzero(crossed)) / support.size
    return min(2 * steps, _MOST_STEPS) if share < 0.01 else max(steps // 2, _FIRST_STEPS)


def _conjugate_gradients(
    model: Model,
    support: np.ndarray,
    residual: np.ndarray,
    target: float,
    most: int,
    spend: Callable[[], bool],
) -> tuple[np.ndarray, np.ndarray]:
    """H x = residual on the support, by at most `most` steps; returns x and A x."""
    scale, unit, mean = model.curvature[support], model.unit[support], model.mean[support]
    x, image = np.zeros(support.size), np.zeros(model.part.n_rows)
    r, direction = residual.copy(), residual / scale
    product = float(r @ direction)
    for _ in range(most):
        if product <= 0 or float(np.max(np.abs(r) / unit)) <= 0.3 * target or not spend():
            break
        forward = model.part.combine(support, direction)
        tilt = model.bias[1] * float(mean @ direction)
        bent = model.part.dot(support, forward) - tilt * mean
        curve = float(direction @ bent)
        if curve <= 0:
            break
        length = product / curve
        x += length * direction
        image += length * forward
        r -= length * bent
        scaled = r / scale
        previous, product = product, float(r @ scaled)
        direction = scaled + (product / previous) * direction
    return x, image
