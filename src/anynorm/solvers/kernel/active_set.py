"""The last digits of a small box problem, by its optimality conditions.

    minimise over v    1/2 beta'(K + D) beta - gain'v ,    beta_i = sum of sign_k v_k over row_k = i
    where              lower <= v <= upper ,   sum(beta) = 0 ,   sum(v) <= budget

A primal active-set method (Nocedal, Wright: Numerical Optimization, Algorithm 16.3) from a point
that is nearly optimal: the variables between their bounds solve a linear system with the bias and
the budget's multiplier; a bound in the way becomes active, one of the wrong multiplier is let go.
A small problem costs little, and its solution depends on nothing but the problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.gram import Gram
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.kernel.candidates import BoxProgram
from anynorm.solvers.kernel.smo import BoxResult

Array = NDArray[np.float64]

_SMALL = 128  # rows: a factor of 128^3 / 3 operations at each step takes less than a millisecond
_NEAR = 1e-2  # the gap from which the optimum is a few steps away
_AT_BOUND = 1e-9  # of the way between the bounds: what block SMO leaves as good as there
_ROUNDING = 1e-11  # of the largest gain: a pull below it does not ask for its bound to be left


def exact_optimum(
    gram: Gram, box: BoxProgram, found: BoxResult, budget: Budget
) -> BoxResult | None:
    """Return the optimum next to what was found; None where the problem is too large for that."""
    n = gram.n
    if n > _SMALL or not found.gap <= _NEAR or not budget.in_time() or not gram.semidefinite:
        return None
    K = gram.block(slice(None), slice(None))
    search = _ActiveSet(K if box.diagonal is None else K + np.diag(box.diagonal), box, found.beta)
    for steps in range(256):  # two for each of 128 rows: beyond, the optimum is too far away
        if not search.free.any():
            return None
        if search.step():
            beta = search.beta()
            budget.book(steps + 1)
            return found._replace(
                beta=beta,
                scores=K @ beta,
                exact=np.ones(n, dtype=bool),
                intercept=search.prices[0],
            )
    return None


class _ActiveSet:
    """The variables, which of them are free, and whether the budget is spent."""

    def __init__(self, K: Array, box: BoxProgram, beta: Array) -> None:
        self.K, self.box = K, box
        # The border of ones is told from rounding at any scale of K; a power of two costs no digit.
        self.unit = 2.0 ** np.round(np.log2(max(float(np.diagonal(K).mean()), 1e-300)))
        self.v = np.clip(box.sign * beta[box.row], box.lower, box.upper)
        reach = np.minimum(box.upper - box.lower, max(float(np.abs(beta).max()), 1e-300))
        low, high = self.v - box.lower, box.upper - self.v
        self.free = (low > _AT_BOUND * reach) & (high > _AT_BOUND * reach)
        self.v = np.where(self.free, self.v, np.where(low < high, box.lower, box.upper))
        self.spent = bool(self.v.sum() >= (1 - _AT_BOUND) * box.budget)
        self.prices = np.zeros(2)

    def beta(self) -> Array:
        """What the variables make together."""
        made = np.bincount(self.box.row, self.box.sign * self.v, len(self.K))
        return np.asarray(made, dtype=np.float64)

    def gradient(self) -> Array:
        """The gradient of the objective in the variables."""
        return np.asarray(self.box.sign * (self.K @ self.beta())[self.box.row] - self.box.gain)

    def step(self) -> bool:
        """Go to the optimum for the free variables, or up to a bound; whether it is all done."""
        free = np.flatnonzero(self.free)
        move, self.prices = self._solved(free)
        share, reached = self._room(free, move)
        self.v[free] += share * move
        if reached is not None:
            return False
        return not self._release()

    def _solved(self, free: NDArray[np.intp]) -> tuple[Array, Array]:
        """The move of the free variables, and the prices of the two sums."""
        box, size = self.box, len(free)
        sums = np.array([box.sign[free], np.full(size, float(self.spent))])
        left = box.budget - float(self.v.sum()) if self.spent else 0.0
        system = np.zeros((size + 2, size + 2))
        signs = box.sign[free]
        kernel = self.K[np.ix_(box.row[free], box.row[free])] / self.unit
        system[:size, :size] = kernel * np.outer(signs, signs)
        system[size:, :size], system[:size, size:] = sums, sums.T
        short = self.unit * np.array([-float(box.sign @ self.v), left])
        found = np.linalg.lstsq(system, np.append(-self.gradient()[free], short), rcond=1e-13)[0]
        return found[:size] / self.unit, found[size:]

    def _room(self, free: NDArray[np.intp], move: Array) -> tuple[float, int | None]:
        """How much of the move there is room for; what is in the way becomes a bound."""
        box, v = self.box, self.v[free]
        ahead = np.where(move > 0, box.upper[free], box.lower[free])
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(move != 0, (ahead - v) / move, np.inf)
        k = int(np.argmin(shares))
        total = float(move.sum())
        if not self.spent and total > 0 and (box.budget - self.v.sum()) / total < min(shares[k], 1):
            self.spent = True
            return max(float(box.budget - self.v.sum()) / total, 0.0), -1
        if shares[k] >= 1:
            return 1.0, None
        self.free[free[k]] = False
        share = max(float(shares[k]), 0.0)
        self.v[free[k]] = ahead[k] - share * move[k]  # the step brings it there
        return share, k

    def _release(self) -> bool:
        """Let go of the bound, or the budget, that most wants it; whether there is one."""
        box = self.box
        slope = self.gradient() + self.prices[0] * box.sign + self.prices[1] * self.spent
        allowed = _ROUNDING * max(1.0, float(np.abs(box.gain).max()), float(np.abs(slope).max()))
        if self.spent and self.prices[1] < -allowed:
            self.spent = False
            return True
        fixed = ~self.free & (box.upper > box.lower)
        want = np.where(self.v <= box.lower, -slope, slope)
        want = np.where(fixed, want, -np.inf)
        k = int(np.argmax(want))
        if want[k] <= allowed:
            return False
        self.free[k] = True
        return True
