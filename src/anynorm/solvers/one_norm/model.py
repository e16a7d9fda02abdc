"""The model of a prox-Newton step, by coordinate descent and conjugate gradients.

        minimise_{w, t}   1/2 ||max(r, floor)||^2 + sum_j penalty_j |w_j|,    r = r0 - A w - s t

with A = diag(s) X, s_i = y_i times the root of the curvature of example i, and t the step of a free
bias.  floor = 0 is the squared hinge loss itself, floor = -inf the quadratic model of another
loss.  Passes of coordinate descent find the signs.  On the coordinates that are not zero and the
examples that cost, the model is quadratic: conjugate gradients (Jacobi preconditioner) give a
Newton step; coordinates that would change sign are held at zero while the others go on.  The model
is then minimised along the step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dposv

from anynorm.design.block_products import BlockProducts

if TYPE_CHECKING:
    from anynorm.design.column_block import ColumnBlock

FIRST_STEPS = 8  # of conjugate gradients, while changes of sign cut Newton steps short
_MOST_STEPS = 512  # once they can be taken whole
_ROUNDS = 4  # of a Newton step whose sign changes are held at zero
_FIRST_PASSES = 4  # of descent before Newton steps; 1 took 2.6 times as long, sparse 1500 x 1200
_FORCING = 0.1  # of what a system begins with, the better the nearer: signs and rows then change
# Where conjugate gradients give the steps, which cost a few passes, and not many more:
_FEW_CHANGED_SIGNS = 0.01  # of the columns in use: no more passes before the first step
_MOST_COLUMNS = 0.8  # of all: passes are over all of them, which need not be looked at once more
_PATIENCE = 60  # passes without a tenth of the violation: rounding or bad conditioning
_DIRECT = 500  # columns in use up to which a Newton step is by a factor
_DIRECT_ENTRIES = 5e6  # of these columns: the products for a factor take 0.25 s at the most
_FEW_CHANGES = 0.5  # of the rows that cost: fewer that changed sides are added and taken off
_ABSURD = 1e16  # times the smallest curvature: columns that differ so much need every digit
LEAST_DAMPING = 1e-12  # of the diagonal: no more than rounding
_FIRST_DAMPING = 1e-5  # of the diagonal: the least that has an effect on nearly dependent columns
_DAMPING_FACTOR = 8.0  # up where little of a step could be taken, down after most of one
_FLAT = 0.1  # the share of the first slope at which a line search is content


@dataclass
class QuadraticModel:
    """The pieces of the model, and where the minimisation stands: coef, residual and bias."""

    block: ColumnBlock
    penalty: np.ndarray
    unit: np.ndarray
    coef: np.ndarray
    residual: np.ndarray
    root: np.ndarray
    free_bias: bool
    floor: float
    damping: float
    steps: int = FIRST_STEPS
    bias: float = 0.0

    def __post_init__(self) -> None:
        self.curvature = self.block.column_norms_squared()
        self.curvature[self.curvature == 0] = 1.0
        self.bend = float(self.root @ self.root)
        self.keep = np.ones(self.coef.size, dtype=bool)
        self._products: _Products | None = None
        self.sums = BlockProducts(self.block)

    def has_products(self, size: int) -> bool:
        """Whether the products of so many columns take little time."""
        return size <= _DIRECT and size * self.block.n <= _DIRECT_ENTRIES

    def products(self, support: np.ndarray, scale: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The products of some columns over some rows, divided by the columns' scales."""
        if self._products is None or not np.array_equal(self._products.support, support):
            self._products = _Products(self, support, scale)
        return self._products.over(rows)

    def descend(self, order: np.ndarray) -> float:
        """One pass of coordinate descent, the bias last; returns the largest violation."""
        from anynorm.design.column_loops import descend_columns  # imports Numba: only where needed

        violation = 0.0
        for piece in self.block.pieces(order):
            found = descend_columns(
                *self.block.arrays,
                order[piece],
                self.penalty,
                self.curvature,
                self.unit,
                self.floor,
                self.coef,
                self.residual,
                self.keep,
            )
            violation = max(violation, found)
        if self.free_bias and self.bend > 0:
            shift = float(self.root @ np.maximum(self.residual, self.floor)) / self.bend
            self.bias += shift
            self.residual -= shift * self.root
        return violation


def minimise_model(model: QuadraticModel, target: float, spend: Callable[[], bool]) -> None:
    """Bring the largest violation of the optimality conditions, in `unit`s, down to `target`.

    Gives up where rounding or bad conditioning stop all progress.
    """
    everything = np.arange(model.coef.size)
    active, whole = everything, True
    least, idle, passes = np.inf, 0, 0
    while idle < _PATIENCE and spend():
        signs = np.sign(model.coef)
        violation = model.descend(active)
        if violation <= target:
            if whole:
                return
            active, whole = everything, True
            continue
        idle = 0 if violation < 0.9 * least else idle + 1
        least = min(least, violation)
        active = np.flatnonzero(model.keep)
        in_use = int(np.count_nonzero(model.coef))
        by_gradients = not model.has_products(in_use)
        whole = by_gradients and active.size > _MOST_COLUMNS * everything.size
        if whole:
            active = everything
        passes += 1
        changes = np.count_nonzero(np.sign(model.coef) != signs)
        settled = by_gradients and changes <= _FEW_CHANGED_SIGNS * in_use
        if passes < _FIRST_PASSES and not settled:
            continue
        t = _step_on_support(model, target, model.steps, spend)
        steps = 2 * model.steps if t > 0.5 else model.steps // 2
        model.steps = min(max(steps, FIRST_STEPS), _MOST_STEPS)
        model.damping = _adapted(model.damping, t)


def _adapted(damping: float, t: float) -> float:
    """More damping where only a small share t of the last step could be taken, less after most."""
    if t < 0.3:
        return max(damping * _DAMPING_FACTOR ** (1 if t > 0.01 else 2), _FIRST_DAMPING)
    return max(damping / _DAMPING_FACTOR, LEAST_DAMPING) if t > 0.7 else damping


def _step_on_support(
    model: QuadraticModel, target: float, steps: int, spend: Callable[[], bool]
) -> float:
    """One damped Newton step on the coordinates that are not zero; returns the share taken."""
    support = np.flatnonzero(model.coef)
    if support.size == 0:
        return 1.0
    coef, penalty = model.coef[support], model.penalty[support]
    newton = _NewtonStep(model, support)
    before = np.inf
    for _ in range(_ROUNDS):
        last = newton.x.copy(), newton.image
        newton.solve(target, steps, spend)
        changes = newton.hold(((coef + newton.step) * coef < 0) & (penalty > 0))
        if changes > 0.5 * before:
            newton.x, newton.image = last
            break
        if changes == 0:
            break
        before = changes
        newton.look()
    step, image = newton.step, newton.image

    def slope(t: float) -> float:
        pull = np.maximum(model.residual - t * image, model.floor)
        return slope_of_norm(penalty, coef, step, t) - float(image @ pull)

    t = minimiser_along(slope)
    model.coef[support] = np.where(step == -coef, (1.0 - t) * coef, coef + t * step)
    model.bias += t * newton.shift
    model.residual -= t * image
    return t


def slope_of_norm(penalty: np.ndarray, coef: np.ndarray, step: np.ndarray, t: float) -> float:
    """The slope of sum penalty |coef + t step|, at a kink the one before it (after it at t = 0)."""
    at = coef + t * step
    side = np.where(at != 0, at, np.where(coef != 0, coef, step))
    return float((penalty * np.sign(side)) @ step)


def minimiser_along(slope: Callable[[float], float]) -> float:
    """The t in [0, 1] at which a convex function is about least, found by its slope."""
    first = low_slope = slope(0.0)
    if first >= 0:
        return 0.0
    high_slope = slope(1.0)
    if high_slope <= _FLAT * abs(first):
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(40):
        share = low_slope / (low_slope - high_slope)
        t = low + (high - low) * min(max(share, 0.1), 0.9)
        at = slope(t)
        if abs(at) <= _FLAT * abs(first):
            return t
        if at < 0:
            low, low_slope = t, at
        else:
            high, high_slope = t, at
    return low


class _Products:
    """A'A for the columns in use, and the bias, over rows that come and go.

    Each column is divided by the root of its `scale` first: products of very different sizes would
    lose digits of the small ones.
    """

    def __init__(self, model: QuadraticModel, support: np.ndarray, scale: np.ndarray) -> None:
        columns = model.block.dense_columns(support).T
        self.support = support
        self.columns = np.vstack([columns, model.root]) if model.free_bias else columns.copy()
        self.columns /= np.sqrt(scale)[:, None]
        # The bias is left out: X in other units must not change a digit.
        sizes = scale[: support.size]
        self._summed_anew = bool(sizes.max(initial=0.0) > _ABSURD * sizes.min(initial=np.inf))
        self.rows = np.zeros(columns.shape[1], dtype=bool)
        self.matrix = np.zeros((len(self.columns), len(self.columns)))

    def over(self, rows: np.ndarray) -> np.ndarray:
        """The products over these rows; only those that came or went since are looked at."""
        come, gone = rows & ~self.rows, self.rows & ~rows
        changes = np.count_nonzero(come) + np.count_nonzero(gone)
        if changes < _FEW_CHANGES * np.count_nonzero(rows) and not self._summed_anew:
            self.matrix = self.matrix + self._of(come) - self._of(gone)
        else:
            self.matrix = self._of(rows)
        self.rows = rows
        return self.matrix

    def _of(self, rows: np.ndarray) -> np.ndarray:
        part = self.columns[:, np.flatnonzero(rows)]
        return part @ part.T


class _NewtonStep:
    """The Newton step on the support and of the bias.

    Its damping, relative to the diagonal, bounds the step where the system is (nearly) singular.
    """

    def __init__(self, model: QuadraticModel, support: np.ndarray) -> None:
        self.model, self.support = model, support
        self.scale, self.unit = model.curvature[support], model.unit[support]
        if model.free_bias:
            self.scale = np.append(self.scale, max(model.bend, np.finfo(float).tiny))
            self.unit = np.append(self.unit, np.inf)
        self.free = np.ones(self.scale.size, dtype=bool)
        self.x = np.zeros(self.scale.size)
        self.image = np.zeros(model.residual.size)
        self.cheap = model.residual <= model.floor
        self.look()

    @property
    def step(self) -> np.ndarray:
        """The step of the coordinates."""
        return self.x[: self.support.size]

    @property
    def shift(self) -> float:
        """The step of the bias."""
        return float(self.x[-1]) if self.model.free_bias else 0.0

    def look(self) -> None:
        """The gradient where the step leads, and the examples that cost there."""
        model, support = self.model, self.support
        point = model.residual - self.image
        self.cheap = point <= model.floor
        gradient = self._pull(np.maximum(point, model.floor))
        gradient[: support.size] -= model.penalty[support] * np.sign(model.coef[support])
        self.residual = gradient

    def hold(self, crossed: np.ndarray) -> int:
        """Fix coordinates at zero; how many are, and how many examples begin or cease to cost."""
        chosen = np.flatnonzero(crossed)
        self.x[chosen] = -self.model.coef[self.support[chosen]]
        self.free[chosen] = False
        if chosen.size:
            self.image = self._push(self.x)
        cheap = self.model.residual - self.image <= self.model.floor
        return chosen.size + int(np.count_nonzero(cheap != self.cheap))

    def solve(self, target: float, most: int, spend: Callable[[], bool]) -> None:
        """Go on to the minimum over what is free, or nearer to it by at most `most` steps."""
        size = self.support.size
        if self.model.has_products(size):
            self._factor()
        else:
            self._conjugate_gradients(target, most, spend)
        self.image = self._push(self.x)

    def _factor(self) -> None:
        """By a factor of the system."""
        free = np.flatnonzero(self.free)
        if free.size == 0:
            return
        root = np.sqrt(self.scale[free])
        products = self.model.products(self.support, self.scale, ~self.cheap)
        system = products[np.ix_(free, free)]
        system[np.diag_indices_from(system)] += self.model.damping
        _, step, failed = dposv(system, self.residual[free] / root)
        if failed:  # rounding: more columns than rows that cost
            system[np.diag_indices_from(system)] += _FIRST_DAMPING
            step = scipy.linalg.solve(system, self.residual[free] / root, assume_a="sym")
        self.x[free] += step / root

    def _conjugate_gradients(self, target: float, most: int, spend: Callable[[], bool]) -> None:
        model = self.model
        self.cost = np.where(self.cheap, 0.0, 1.0)
        if model.free_bias:
            costly = self.cost * model.root
            self.bridge = model.block.rmatvec(costly, columns=self.support)
            self.total = float(costly @ model.root)
        r = np.where(self.free, self.residual, 0.0)
        direction = r / self.scale
        product = float(r @ direction)
        first = float(np.max(np.abs(r) / self.unit))
        enough = max(0.3 * target, _FORCING * first * min(1.0, first))
        for _ in range(most):
            if product <= 0 or np.max(np.abs(r) / self.unit) <= enough or not spend():
                break
            bent = self._bent(direction)
            bent += self.model.damping * self.scale * direction
            length = product / float(direction @ bent)
            self.x += length * direction
            r -= length * np.where(self.free, bent, 0.0)
            scaled = r / self.scale
            previous, product = product, float(r @ scaled)
            direction = scaled + (product / previous) * direction

    def _bent(self, x: np.ndarray) -> np.ndarray:
        """(A, s)'(A x + s t) over the examples that cost."""
        model, size = self.model, self.support.size
        out = model.sums.normal(self.cost, x[:size], columns=self.support)
        if model.free_bias:
            out += x[-1] * self.bridge
            out = np.append(out, self.bridge @ x[:size] + x[-1] * self.total)
        return out

    def _push(self, x: np.ndarray) -> np.ndarray:
        """A x + s t."""
        out = self.model.block.matvec(x[: self.support.size], columns=self.support)
        return out + x[-1] * self.model.root if self.model.free_bias else out

    def _pull(self, v: np.ndarray) -> np.ndarray:
        """(A'v, s'v)."""
        out = self.model.block.rmatvec(v, columns=self.support)
        return np.append(out, self.model.root @ v) if self.model.free_bias else out
