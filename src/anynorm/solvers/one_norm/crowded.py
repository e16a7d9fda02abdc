"""Squared slacks with the 1-norm where columns crowd: a central path by conjugate gradients.

        minimise_{w, b}   sum_j u_j |w_j| + 1/2 sum_i bend_i max(r_i, 0)^2,    r = 1 - Z w - y b
        maximise_a        sum(a) - 1/2 sum_i a_i^2 / bend_i,    a >= 0,  |Z'a| <= u,  y'a = 0

with Z = diag(y) X.  Where C is large and the classes all but separable, as many columns are in use
as rows cost something.  The loss is then nearly flat along many directions, a Newton step on the
columns in use is cut short by coefficients that change sign, and coordinates move by a few at a
time.  A central path does not see signs.  Every bound of the dual has a distance and a force,

        distances    u - q    u + q    a
        forces       w+       w-       s        w = w+ - w-,  r = a / bend - s,  q = Z'a

whose products are mu along it.  Newton's method for these equations, all but w eliminated, is

        (E + Z'T Z) dw + Z'T y db = ...,    1/T = 1/bend + s/a,    1/E = w+/(u - q) + w-/(u + q)

Conjugate gradients solve it, preconditioned by a factor where columns or rows are few and else by
the diagonal, as exactly as mu asks for: what they leave is told by its effect on the gap, the sum
of |w_j| times the residual of column j.  Smoothed to the least residual (Weiss 1994), it is small
enough after half as many steps.  T is next to nothing for rows far beyond their margins,
and E far beyond the loss's own curvature for columns whose coefficients end at zero.  Neither takes
part in the system, which is soon as small as the columns in use and the rows that cost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrs

from anynorm.design.block_products import BlockProducts
from anynorm.design.interface import Array, Design, Places
from anynorm.design.views import ConstantColumn
from anynorm.solvers.frame.long_factor import lower_factor

Mask = NDArray[np.bool_]

_TO_BOUNDARY = 0.9995  # of the way to the nearest bound
_FALLS = ((0.8, 0.1), (0.5, 0.25), (0.0, 0.4))  # of mu, by how much of the last step was taken
_FIRST_FALL = 0.3  # where no step was taken yet
# Of the sum of all products to come: what the gap may lose to one system.  Set, with `_SMALLER`, on
# the benchmark's text of 50,000 rows and on one of 20,000 at C = 100: twice as much takes a seventh
# more steps of the path for as many of conjugate gradients.
_INEXACT = 0.5
_STIFF = 3.0  # times the loss's curvature: columns that move by themselves
_SLACK = 1e-4  # of its bend: rows that move by themselves
_SMALLER = 0.8  # of the columns times rows: what is worth a new block
_LOOK = 8  # steps of conjugate gradients between two looks at what is left and at the clock
_FACTOR = 4000  # columns or rows up to which a factor, of a second, may be the preconditioner
_WORTH = 1e5  # multiplications in a factor for each entry, read by every step without one
_DAMPING = 1e-13  # of the diagonal: what rounding may have taken from it
_MOST_STEPS = 5000  # of conjugate gradients, where rounding leaves more than is enough


@dataclass
class CrowdedPath:
    """Where the path is, and its steps.

    Parameters
    ----------
    features : Design
        X; columns of infinite penalty are not used.
    y, penalty, bend : ndarray
        Labels, the penalties u > 0 of the columns, and the loss's second derivatives > 0.
    free_bias : bool
        Whether there is a bias that nothing is paid for.
    coef : ndarray
        Where the path begins, with a bias.
    gap : float
        About as far as its objective is from the optimum.
    """

    features: Design | ConstantColumn
    y: Array
    penalty: Array
    bend: Array
    free_bias: bool
    coef: Array
    bias: float
    gap: float

    def __post_init__(self) -> None:
        self._every = np.arange(self.penalty.size)
        self.usable = np.isfinite(self.penalty)
        self.u = np.where(self.usable, self.penalty, 1.0)
        self.count = 2 * np.count_nonzero(self.usable) + self.y.size
        self._fall = _FIRST_FALL
        self._block: _Block | None = None
        self._last = np.zeros(self.penalty.size + 1)
        # To w and r belong the distances and the a with which all products are mu.
        mu = self.gap / self.count
        w, least = np.where(self.usable, self.coef, 0.0), mu / self.u
        length = np.hypot(least, w)
        short = self.u * (least + least**2 / (length + np.abs(w))) / (least + length)
        long = self.u * (least + length + np.abs(w)) / (least + length)
        self.below, self.above = np.where(w > 0, short, long), np.where(w > 0, long, short)
        self.plus = np.where(self.usable, mu / self.below, 0.0)
        self.minus = np.where(self.usable, mu / self.above, 0.0)
        self.scores = self._push(self.w)
        r = 1.0 - self.y * (self.scores + self.bias)
        reach = 0.5 * (np.abs(r) + np.sqrt(r * r + 4.0 * mu / self.bend))
        self.a = np.where(r > 0, self.bend * reach, mu / reach)
        self.s = mu / self.a
        self.pulls = self._pull(self.a)
        self.curve = np.zeros(self.penalty.size)

    @property
    def w(self) -> Array:
        """The coefficients, none of which is zero."""
        return self.plus - self.minus

    @property
    def products(self) -> float:
        """The sum of all products, which is the gap but for what the equations are off."""
        return float(self.plus @ self.below + self.minus @ self.above + self.s @ self.a)

    def step(self, in_time: Callable[[], bool]) -> bool:
        """One Newton step; whether anything moved."""
        y, a, s, below, above = self.y, self.a, self.s, self.below, self.above
        off = self.pulls - 0.5 * (above - below)
        missed = 1.0 - y * (self.scores + self.bias) - a / self.bend + s
        mu = self._fall * self.products / self.count
        weight = 1.0 / (1.0 / self.bend + s / a)
        give = self.plus / below + self.minus / above
        stiff = np.divide(1.0, give, out=np.full(give.size, np.inf), where=self.usable)
        self.curve = self.features.column_norms_squared(weight)
        block = self._chosen(stiff < _STIFF * self.curve, weight > _SLACK * self.bend)
        if block is None:
            return False
        columns, rows = block.columns, block.rows

        to_plus = np.where(self.usable, mu - self.plus * below, 0.0)
        to_minus = np.where(self.usable, mu - self.minus * above, 0.0)
        centre, to_s = to_plus / below - to_minus / above, mu - s * a
        force = weight * (missed + to_s / a)

        right = self._pull(force)[columns] + off[columns] + stiff[columns] * centre[columns]
        balance = float(y @ (force + a)) if self.free_bias else 0.0
        system = _System(
            block.part, weight[rows], stiff[columns], self.curve[columns], y[rows], self.free_bias
        )
        found = system.solve(
            np.append(right, balance),
            np.append(self._last[columns], self._last[-1]),
            self._cost()[columns],
            _INEXACT * mu * self.count,
            in_time,
        )
        dw, db = found[:-1], float(found[-1])
        self._last[:] = 0.0
        self._last[columns], self._last[-1] = dw, db

        da = force - weight * (y * (self._push(self._last[:-1]) + db))
        pulled = self._pull(da)
        dq = np.where(self.usable, pulled + off, 0.0)
        dq[columns] = stiff[columns] * (dw - centre[columns])
        d_plus, d_minus = (to_plus + self.plus * dq) / below, (to_minus - self.minus * dq) / above
        ds = (to_s - s * da) / a
        forces = min(_share(self.plus, d_plus), _share(self.minus, d_minus), _share(s, ds))
        bounds = min(_share(below, -dq), _share(above, dq), _share(a, da))
        taken = min(forces, bounds)
        if not (np.all(np.isfinite(found)) and taken > 0.0):
            return False
        self.scores = self.scores + forces * self._push(d_plus - d_minus)
        self.plus, self.minus = self.plus + forces * d_plus, self.minus + forces * d_minus
        self.s, self.bias = s + forces * ds, self.bias + forces * db
        self.below, self.above = below - bounds * dq, above + bounds * dq
        self.a, self.pulls = a + bounds * da, self.pulls + bounds * pulled
        self._fall = next(fall for share, fall in _FALLS if taken >= share)
        return True

    def sparse_coef(self) -> Array:
        """The coefficients, zero where the bounds are farther away than the forces reach."""
        w, distance = self.w, np.minimum(self.below, self.above)
        return np.where(np.abs(w) * self.curve > distance, w, 0.0)

    def _cost(self) -> Array:
        """What the gap loses for a unit that a pull is off; columns at zero have a share, too."""
        size, kept = np.abs(self.w), np.count_nonzero(self.sparse_coef())
        return size + 0.5 * size.sum() / max(1, kept)

    def _push(self, w: Array) -> Array:
        return self.features.matvec(w, columns=self._every)

    def _pull(self, a: Array) -> Array:
        return self.features.rmatvec(self.y * a)

    def _chosen(self, columns: Mask, rows: Mask) -> _Block | None:
        """The block of these columns and rows, or one that has them and is not much larger."""
        have = self._block
        if have is not None and not (
            (columns & ~have.in_columns).any() or (rows & ~have.in_rows).any()
        ):
            size = np.count_nonzero(columns) * np.count_nonzero(rows)
            if size > _SMALLER * have.columns.size * have.rows.size:
                return have
        chosen, kept = np.flatnonzero(columns), np.flatnonzero(rows)
        if not (chosen.size and kept.size):
            return None
        part = BlockProducts(self.features.column_block(chosen, kept, self.y))
        self._block = _Block(chosen, kept, columns, rows, part)
        return self._block


@dataclass
class _Block:
    """Columns and rows that take part, by their places and as masks, and products with them."""

    columns: Places
    rows: Places
    in_columns: Mask
    in_rows: Mask
    part: BlockProducts


@dataclass
class _System:
    """(E + Z'T Z) dw + Z'T y db = right,  y'T Z dw + y'T y db = balance; the bias comes last."""

    part: BlockProducts
    weight: Array
    stiff: Array
    curve: Array
    y: Array
    free_bias: bool

    def __post_init__(self) -> None:
        self.bridge, self.total, self.look = np.zeros(self.stiff.size), 1.0, _LOOK
        if self.free_bias:
            self.bridge = self.part.rmatvec(self.weight * self.y)
            self.total = float(self.weight.sum())

    def solve(
        self, left: Array, guess: Array, cost: Array, enough: float, in_time: Callable[[], bool]
    ) -> Array:
        """Steps of conjugate gradients until what is left of the right-hand side costs `enough`.

        They begin with as much of the guess as helps.  What they leave goes up and down by a factor
        of ten; the point with the least of it, on the lines to their points, is kept beside them.
        """
        near = self._nearly_inverse()
        x = np.zeros(left.size)
        bent = self._times(guess)
        bend = float(guess @ bent)
        if bend > 0.0:
            share = float(guess @ left) / bend
            x, left = share * guess, left - share * bent
        scaled = near(left)
        direction, product = scaled.copy(), float(left @ scaled)
        best, rest, scaled_rest = x.copy(), left.copy(), scaled.copy()
        for count in range(_MOST_STEPS):
            if count % self.look == 0 and (cost @ np.abs(rest[:-1]) <= enough or not in_time()):
                break
            bent = self._times(direction)
            bend = float(direction @ bent)
            if not (bend > 0.0 and product > 0.0):
                break
            x += product / bend * direction
            left -= product / bend * bent
            scaled = near(left)
            before, product = product, float(left @ scaled)
            direction *= product / before
            direction += scaled
            change, scaled_change = left - rest, scaled - scaled_rest
            length = float(change @ scaled_change)
            if not length > 0.0:
                break
            share = -float(rest @ scaled_change) / length
            best += share * (x - best)
            rest += share * change
            scaled_rest += share * scaled_change
        return best

    def _nearly_inverse(self) -> Callable[[Array], Array]:
        """The preconditioner: a factor where columns or rows are few, else the diagonal."""
        scale = np.append(self.stiff + self.curve, self.total)
        size = min(self.stiff.size, self.weight.size)
        if size > _FACTOR or size**3 > _WORTH * self.part.entries:
            return lambda v: v / scale
        near = self._by_columns() if size == self.stiff.size else self._by_rows()
        if near is None:
            return lambda v: v / scale
        # The bias is eliminated.
        tied = near(self.bridge)
        rest = self.total - float(self.bridge @ tied)
        if not rest > _DAMPING * self.total:
            return lambda v: v / scale
        self.look = 1

        def inverse(v: Array) -> Array:
            w = near(v[:-1])
            b = (float(v[-1]) - float(self.bridge @ w)) / rest
            return np.append(w - b * tied, b)

        return inverse

    def _by_columns(self) -> Callable[[Array], Array] | None:
        """The inverse of E + Z'T Z."""
        system, scale = self.part.gram(self.weight), self.stiff + self.curve
        factor = _scaled_factor(system, scale)
        return None if factor is None else lambda v: _solved(factor, scale, v)

    def _by_rows(self) -> Callable[[Array], Array] | None:
        """The same by 1/T + Z 1/E Z', which is as large as rows are many."""
        give = 1.0 / self.stiff
        system = self.part.row_gram(give)
        scale = 1.0 / self.weight + np.diagonal(system)
        factor = _scaled_factor(system, scale)
        if factor is None:
            return None

        def inverse(v: Array) -> Array:
            first = give * v
            return first - give * self.part.rmatvec(_solved(factor, scale, self.part.matvec(first)))

        return inverse

    def _times(self, x: Array) -> Array:
        w, b = x[:-1], float(x[-1])
        out = np.append(self.part.normal(self.weight, w) + self.stiff * w, self.total * b)
        if self.free_bias:
            out[:-1] += b * self.bridge
            out[-1] += self.bridge @ w
        return out


def _scaled_factor(system: Array, diagonal: Array) -> Array | None:
    """The factor of a matrix in units in which the given diagonal is 1: of columns of any size."""
    root = np.sqrt(diagonal)
    system /= root
    system /= root[:, None]
    system[np.diag_indices_from(system)] = 1.0 + _DAMPING
    return lower_factor(system)


def _solved(factor: Array, diagonal: Array, v: Array) -> Array:
    """The solution of the system that `_scaled_factor` has factored."""
    root = np.sqrt(diagonal)
    return np.asarray(dpotrs(factor, v / root, lower=1)[0]) / root


def _share(x: Array, change: Array) -> float:
    """How much of a change leaves x positive, at most all of it."""
    falls = change < 0
    return min(1.0, _TO_BOUNDARY * float(np.min(x[falls] / -change[falls], initial=np.inf)))
