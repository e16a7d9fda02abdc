"""Newton's method and the augmented Lagrangian method over rows that live apart.

        minimise_{u, b}   F = R(u, b) + sum_i h_i(1 - y_i (x_i'V u + b))

as in `newton.py` and `augmented_lagrangian.py`, with all that there is one of per row beside the
rows.  A Newton step is two rounds: a look (the gradient, and the matrix of the rows with curvature,
or by conjugate gradients its products) and the slopes at a few steps along the direction.  Losses
with kinks are smoothed around their last duals, which become the next centre.

The bias is one of Newton's variables.  Where no row has curvature its best value is found from
`balances`, which need no features.  What R is, and the direction, is for each family to say.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import numpy as np

from anynorm.design.crew import Sums
from anynorm.design.limits import FLOOR
from anynorm.design.scatter import Scatter
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.rounds_apart.beside_rows import Place, balances, look, slopes

_STEPS = np.array([0.0, 0.25, 0.5, 0.75, 1.0])  # where the slope along a direction is asked for
_FLAT = 0.2  # of the first slope: steep enough an end of a step to look closer
_REFINEMENTS = 4  # of a step, at the most
_INNER_SHARE = 0.1  # of the outer gap: what Newton may leave without spoiling the next centre
_STALLED = 6  # looks in a row that gain nothing
_PROGRESS = 0.9  # of the last gap: what counts as less
_BACK = 1 / 8  # of sigma: a smoothing wide enough again
_WIDENINGS = 20  # of the smoothing, until some rows are within it
_BIASES = 16  # tried at once where only the bias can move


@dataclass
class Position:
    """Where the method stands: u, b, and what the rows said there."""

    u: np.ndarray
    bias: float
    seen: Sums
    inner_gap: float
    primal: float

    @property
    def gap(self) -> float:
        """How far the primal value may be above its least, relative to it."""
        return (self.seen.kinks + self.inner_gap) / max(self.primal, np.finfo(float).tiny)


class RemoteNewton(ABC):
    """Newton's method on one problem, whole or a sample of its rows.

    Parameters
    ----------
    problem : ChunkedProblem
        Whose rows are asked.
    terms : RowTerms
        Those of the problem, perhaps of a sample.
    budget : Budget
        Of the solve; a look is an iteration.
    matrix : bool
        Whether matrices are summed.

    Attributes
    ----------
    where : (ndarray, float) or None
        The last u and bias: where to go on if the rows are lost.
    thin : int
        One of so many rows with curvature makes a matrix.  Beyond 1 it is kept while steps with it
        gain enough.
    """

    steps = _STEPS  # along a direction, where slopes are asked for at first
    longest = np.inf  # step

    def __init__(
        self, problem: ChunkedProblem, terms: RowTerms, budget: Budget, *, matrix: bool
    ) -> None:
        self.problem, self.terms, self.budget, self.matrix = problem, terms, budget, matrix
        self.v = problem.scale()
        self.where: tuple[np.ndarray, float] | None = None
        self.thin = 1
        self._kept: Scatter | None = None

    @abstractmethod
    def position(self, u: np.ndarray, bias: float, seen: Sums) -> Position:
        """What the answers of the rows at (u, bias) say about F there."""

    @abstractmethod
    def direction(self, at: Position, sigma: float) -> tuple[np.ndarray, float]:
        """The Newton step in (u, b)."""

    @abstractmethod
    def slopes_of_regulariser(
        self, at: Position, d: np.ndarray, e: float, steps: np.ndarray
    ) -> np.ndarray:
        """The slopes of R along (d, e) at some steps."""

    def asked_columns(self) -> np.ndarray | None:
        """The columns of which a look brings the matrix; None is all of them."""
        return None

    def look(self, u: np.ndarray, bias: float, sigma: float, **how: object) -> Position:
        """What the rows say at (u, bias); `how` the place is reached is as in `Place`."""
        columns = self.asked_columns()
        thin = self.thin if self._kept is None else 0
        place = Place(self.terms, bias, sigma, matrix=self.matrix, columns=columns, thin=thin)
        place = replace(place, **how)  # type: ignore[arg-type]
        self.where = u, bias
        seen = self.problem.crew.ask(look, place)
        if self._kept is not None:
            seen.scatter = self._kept
        elif thin > 1:
            self._kept = seen.scatter
        return self.position(u, bias, seen)

    def curved(self, at: Position) -> float:
        """The curvature of all rows together."""
        return float(at.seen.scatter.total if self.matrix else at.seen.curved)

    def too_narrow(self, at: Position) -> bool:
        """Whether too few rows are within the smoothing to tell how far to go."""
        return self.curved(at) == 0

    def minimise(self, at: Position, sigma: float, goal: float) -> Position:
        """Newton steps until the gap is at most `goal`, or its inner part is small beside it."""
        least, since = np.inf, 0
        while at.gap > goal and not at.inner_gap <= _INNER_SHARE * at.seen.kinks:
            since = 0 if at.inner_gap < 0.5 * least else since + 1
            least = min(least, at.inner_gap)
            if since:  # the matrix is of too far away, or then of too few rows
                self._kept, self.thin = None, self.thin if since == 1 else 1
            if since > _STALLED or not self.budget.spend():
                break
            d, e, step = self.advance(at, sigma)
            if step == 0.0:
                bias = self._balanced(at, sigma)
                if bias == at.bias:
                    break
                at = self.look(at.u, bias, sigma)
            else:
                at = self.look(at.u + step * d, at.bias + step * e, sigma, step=step)
        return at

    def advance(self, at: Position, sigma: float) -> tuple[np.ndarray, float, float]:
        """The direction of a step, and how far it goes along it."""
        d, e = self.direction(at, sigma)
        return d, e, self.step(at, sigma, d, e)

    def step(self, at: Position, sigma: float, d: np.ndarray, e: float) -> float:
        """A step at which the slope has nearly vanished, from the slopes at some."""
        place, asked = Place(self.terms, at.bias, sigma), self.v * d
        steps, direction = self.steps, asked
        low, low_slope, high, high_slope, first = 0.0, -np.inf, np.inf, np.inf, 0.0
        for trial in range(_REFINEMENTS):
            message = (place, direction if trial == 0 else None, e, steps)
            found = self.problem.crew.ask(slopes, message).slopes
            found = found + self.slopes_of_regulariser(at, d, e, steps)
            if trial == 0:
                first = float(found[0])
                if not first < 0.0:
                    return 0.0
            below, above = steps[found <= 0], steps[found > 0]
            if below.size:
                low, low_slope = float(below[-1]), float(found[found <= 0][-1])
            if above.size:
                high, high_slope = float(above[0]), float(found[found > 0][0])
            if low >= self.longest or (-low_slope <= _FLAT * -first and low > 0):
                return low
            if np.isinf(high):
                steps = low * np.array([2.0, 4.0, 16.0])
                continue
            if high_slope <= _FLAT * -first:
                return high
            steps = low + (high - low) * _STEPS[1:-1]
        # The slope rises from low to high: between them it vanishes about here.
        return low + (high - low) * -low_slope / (high_slope - low_slope) if high < np.inf else low

    def _balanced(self, at: Position, sigma: float) -> float:
        """The best bias at the present scores, where the coefficients alone cannot gain."""
        if self.problem.intercept is None:
            return at.bias
        place, reach = Place(self.terms, at.bias, sigma), 1.0 + abs(at.bias)
        low, high = at.bias - reach, at.bias + reach
        for _ in range(_REFINEMENTS):
            biases = np.linspace(low, high, _BIASES)
            found = self.problem.crew.ask(balances, (place, biases)).balances
            rising = self.problem.bias_slopes(biases) - found
            below, above = biases[rising <= 0], biases[rising > 0]
            low = float(below[-1]) if below.size else low - (high - low)
            high = float(above[0]) if above.size else high + (high - low)
        return 0.5 * (low + high)


def solve_smooth(newton: RemoteNewton, u: np.ndarray, bias: float, goal: float) -> Position:
    """The minimiser of a smooth loss to a relative gap of `goal`."""
    return newton.minimise(newton.look(u, bias, 0.0, coef=newton.v * u), 0.0, goal)


@dataclass(frozen=True)
class Widths:
    """How the smoothing of kinks narrows: 1 over its width at first, its growth, and what is fast.

    The width stays where the gap has fallen to the share `fast` of the last one.
    """

    first: float
    growth: float = 4.0
    fast: float = 0.1


def solve_kinks(
    newton: RemoteNewton, u: np.ndarray, bias: float, goal: float, widths: Widths
) -> Position:
    """The minimiser of a loss with kinks, by the augmented Lagrangian method."""
    sigma, last, stalled = widths.first, np.inf, 0
    at, sigma = _wide_enough(newton, newton.look(u, bias, sigma, coef=newton.v * u), sigma)
    growth, backs = widths.growth, 0
    while True:
        at = newton.minimise(at, sigma, goal)
        if at.gap <= goal or not newton.budget.spend(0):
            return at
        if at.inner_gap > _INNER_SHARE * at.seen.kinks:
            # Too few rows are within the width to say where to go: back to a wider one, for good.
            backs, sigma, growth = backs + 1, _BACK * sigma, 1.0
            if backs > _STALLED:
                return at
            at = newton.look(at.u, at.bias, sigma)
            continue
        stalled = 0 if at.gap < _PROGRESS * last else stalled + 1
        if at.gap <= FLOOR or stalled > _STALLED:
            return at
        sigma *= growth if at.gap > widths.fast * last else 1.0
        last = min(last, at.gap)
        at = newton.look(at.u, at.bias, sigma, recentre=True)
        at, sigma = _wide_enough(newton, at, sigma)


def _wide_enough(newton: RemoteNewton, at: Position, sigma: float) -> tuple[Position, float]:
    """The same place with a smoothing that is wide enough for a Newton step, and 1 over that."""
    for _ in range(_WIDENINGS):
        if not newton.too_narrow(at):
            break
        sigma *= 0.25
        at = newton.look(at.u, at.bias, sigma)
    return at, sigma


def sampled(terms: RowTerms, stride: int) -> RowTerms:
    """The same of every so-many-th row."""
    return replace(terms, stride=stride)
