"""Steps for most of the variables at once, by conjugate gradients with the whole kernel matrix.

With d the change of beta that the variables make which are free, or pull away from their bounds,

    minimise over d    1/2 d'Q d - p'd    where  A d = 0 ,

and A is 1', and below it s' where the budget is spent.  Where most variables end up free, some
dozens of products with Q tell which of them do: blocks would take them up a few at a time, and a
factor of all of Q (`free_steps.py`) pays only where they are few.  What a step takes beyond a bound
is put there, and the rest goes on.

A part J of the variables, the base, is eliminated with the prices of the rules, by a factor of its
own square: the gradients are those of the others, R, alone, whose matrix is the Schur complement

    Q_RR - [Q_RJ, A_R'] [Q_JJ, A_J'; A_J, 0]^-1 [Q_JR; A_R] .

It lacks the large eigenvalues of Q, and a product with it reads Q once, as one with Q itself does.
All is of the type of the rows, float32 mostly: a step that is not quite the best is mended by the
next one.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs, solve_triangular

from anynorm.design.blocks import ranges
from anynorm.design.limits import ROUNDING
from anynorm.design.threads import run
from anynorm.design.watch import look
from anynorm.kernels.rows import KernelRows
from anynorm.solvers.kernel.free_steps import Face, factor_in_place, kept_to, less_the_prices

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
Row = NDArray[Any]  # of the type of the kernel's rows

_BASE = 0.35  # of the variables: more of them cost more in the factor than they save in products
_SAMPLE, _PER_SAMPLE = 256, 16  # rows that tell how like each other rows are: at most, one in 16
_LEAST_LIKE = 1e-3  # of the largest likeness: what counts as none
_SINGULAR = 1e-6  # by how much a matrix times its inverse may differ from one
_LEAST = 1e-30  # what counts as zero
_CHUNK = 512  # rows whose products are one piece of work
_RIDGES = 1.0, 100.0  # of the last digit of the largest entry: tried one after the other
_HELD_ROUGHLY, _HELD = 8, 1000  # the part of the base that may be at its bounds, by accuracy
_MOST, _ROUNDS = 60, 8  # products in a round, and rounds in which variables come to their bounds
_MOST_SETTLED = 0.5  # of the variables: where more come to their bounds, blocks are better
ROUGHLY = 0.02  # of the pulls: what a step leaves of them that is to find out who is free


class ConjugateSteps:
    """Steps towards the optimum of the variables that are free or about to be, one for each row.

    Parameters
    ----------
    rows : KernelRows
        The kernel, of which all rows fit into memory.
    diagonal : ndarray of shape (n,) or (0,)
        What is added to the kernel's diagonal.

    Attributes
    ----------
    n_products : int
        How many products with the kernel matrix were made.
    reached : bool
        Whether the last step has the accuracy that was asked for.
    """

    def __init__(self, rows: KernelRows, diagonal: Array) -> None:
        n, self.n_products, self.reached = rows.n, 0, False
        self.kind = rows.dtype
        self.diagonal = diagonal.astype(self.kind)
        likeness, scale = self._likeness(rows, diagonal)
        self.scale, self.count = scale.astype(self.kind), max(1, int(_BASE * n))
        # Rows that are like many others: the rest of Q is then best conditioned.
        base = np.argsort(-likeness, kind="stable")[: self.count]
        self.K, self.order = rows.matrix(np.sort(base))
        self.base_parts = list(ranges(self.count, _CHUNK))
        rest = ranges(n - self.count, _CHUNK)
        self.rest_parts = [slice(self.count + p.start, self.count + p.stop) for p in rest]
        self.base: _Base | None = None

    def _likeness(self, rows: KernelRows, diagonal: Array) -> tuple[Array, Array]:
        """How much rows are like those of a sample, and the preconditioner that follows.

        What is left of the diagonal of Q by elimination is about as small as a row is like others.
        """
        n, own = rows.n, rows.gram.diagonal() + (diagonal if diagonal.size else 0.0)
        own = np.maximum(own, max(_LEAST_LIKE * float(own.max()), _LEAST))
        count = min(n, max(_SAMPLE // 4, min(_SAMPLE, n // _PER_SAMPLE)))
        sample = np.unique(np.linspace(0, n - 1, count).astype(np.intp))
        some = rows.entries(sample, np.arange(n), self.kind)
        likeness = np.sqrt((1.0 / own[sample]).astype(self.kind) @ (some * some) / own)
        least = max(_LEAST_LIKE * float(likeness.max()), _LEAST)
        scale = np.maximum(likeness, least) / own
        return likeness, scale / scale.max()

    @staticmethod
    def fit(rows: KernelRows) -> bool:
        """Whether there is memory for all rows and for a factor of the base."""
        square = int(_BASE * rows.n) ** 2 * rows.dtype.itemsize
        return rows.all_fit and rows.room_for(rows.matrix_bytes + square)

    def step(
        self, face: Face, free: Index, tight: bool, accuracy: float = ROUGHLY
    ) -> tuple[Index, Array] | None:
        """Return the variables that move and the changes of their beta, within the bounds.

        With `tight` the sum of the variables stays as it is.  None where few of them stay inside.
        `accuracy` is the part of the pulls that may be left.
        """
        n = len(face.row)
        face = less_the_prices(face, free if len(free) > 2 else np.arange(n), tight)
        rules = np.array([np.ones(n), face.sign])[: 1 + tight]
        inside = ((face.low < 0) & (face.high > 0)) | _pulled(face)
        pull, d = face.pull.astype(self.kind), np.zeros(n)
        size = float(np.linalg.norm(pull[inside]))
        least = max(2.0, (1.0 - _MOST_SETTLED) * np.count_nonzero(inside))
        left = pull
        for _ in range(_ROUNDS):
            if not self._eliminate(inside, rules, _HELD if accuracy < ROUGHLY else _HELD_ROUGHLY):
                return None
            found = self._towards(left, d, face, inside, rules, (ROUGHLY * size, accuracy * size))
            d = kept_to(rules, found, inside)
            # It is not so either where nothing but NaN has come out.
            if not np.abs(rules @ d).max() <= ROUNDING * np.abs(d).sum():
                return None
            beyond = _beyond(d, face, inside)
            np.clip(d, face.low, face.high, out=d)
            if not beyond.any():
                return np.arange(n), d
            inside &= ~beyond
            if np.count_nonzero(inside) <= least:
                return None
            d = kept_to(rules, d, inside)
            left = pull - self._times(d.astype(self.kind))
        return None

    def _eliminate(self, inside: Mask, rules: Array, most: int) -> bool:
        """Have a base of variables that are inside, but for one in `most`; whether there is one."""
        slots = np.flatnonzero(inside[self.order[: self.count]])
        if self.base is None or not self.base.does_for(self.order[slots], most):
            self.base = _Base.of(self.K, self.order, self.diagonal, slots)
        if self.base is None:
            return False
        self.base.hold(inside, rules)
        return True

    def _towards(
        self,
        pull: Row,
        d: Array,
        face: Face,
        inside: Mask,
        rules: Array,
        goals: tuple[float, float],
    ) -> Array:
        """Where conjugate gradients take d, by changes of those inside that keep to the rules.

        `pull` is what is left of it at d.  From the first of the goals on, those that have gone
        beyond their bounds end it.
        """
        assert self.base is not None
        base, index, A = self.base, self.base.index, rules.astype(self.kind)
        own = inside.astype(self.kind)
        own[self.order[: self.count]] = 0.0
        change, way, size = np.zeros_like(pull), np.zeros_like(pull), 1.0
        change[index], prices = base.solve(pull[index], np.zeros(len(A), self.kind))
        r = own * (pull - self._sum(change, self.base_parts) - prices @ A)
        (look_at, goal), self.reached = goals, False
        for _ in range(_MOST):
            length = float(np.linalg.norm(r))
            if length <= look_at:
                self.reached = length <= goal
                if self.reached or _beyond(d + change, face, inside).any():
                    break
                look_at *= ROUGHLY
            z = self.scale * r
            before, size = size, float(r @ z)
            way[index] = 0.0
            way = z + self.kind.type(size / before) * way
            image = self._sum(way, self.rest_parts)
            if self.diagonal.size:
                image += self.diagonal * way
            way[index], prices = base.solve(-image[index], -(A @ way))
            image = own * (image + self._sum(way, self.base_parts) + prices @ A)
            self.n_products += 1
            bend = float(way @ image)
            if not bend > 0:  # rounding, or a kernel that is not positive semidefinite
                break
            step = self.kind.type(size / bend)
            change += step * way
            r -= step * image
        return d + change

    def _times(self, x: Row) -> Row:
        """Q x."""
        self.n_products += 1
        image = self._sum(x, self.base_parts) + self._sum(x, self.rest_parts)
        return image + self.diagonal * x if self.diagonal.size else image

    def _sum(self, x: Row, parts: list[slice]) -> Row:
        """K times those entries of x whose rows are in some parts of the store."""
        look()
        K, x = self.K, x[self.order]
        return np.sum(run(lambda k: x[parts[k]] @ K[parts[k]], len(parts)), axis=0)


def _pulled(face: Face) -> Mask:
    """Which variables are pulled to where they can go."""
    return ((face.low < 0) & (face.pull < 0)) | ((face.high > 0) & (face.pull > 0))


def _beyond(d: Array, face: Face, inside: Mask) -> Mask:
    """Those inside that a change takes beyond their bounds."""
    return inside & ((d < face.low) | (d > face.high))


def _inverse(square: Array) -> Array:
    """The inverse, or the pseudo-inverse, which takes longer, where rules say the same twice."""
    with suppress(np.linalg.LinAlgError):
        inverse = np.linalg.inv(square)
        if np.abs(square @ inverse - np.eye(len(square))).max() <= _SINGULAR:
            return inverse.astype(np.float64, copy=False)
    return np.asarray(np.linalg.pinv(square, rcond=ROUNDING))


class _Base:
    """The variables that are eliminated: a factor of their square, and those of them held."""

    def __init__(self, index: Index, factor: NDArray[Any]) -> None:
        self.index, self.factor = index, factor
        self.solve_one = get_blas_funcs("trsv", (factor,))

    @classmethod
    def of(cls, K: NDArray[Any], order: Index, diagonal: Row, slots: Index) -> _Base | None:
        """Of rows in some slots; None where Q of them is not positive definite."""
        index = order[slots]
        if not len(index):
            return None
        for ridge in _RIDGES:
            Q = K[np.ix_(slots, index)]
            own = np.diag_indices(len(Q))
            if diagonal.size:
                Q[own] += diagonal[index]
            Q[own] += ridge * np.finfo(Q.dtype).eps * np.abs(Q[own]).max()
            try:
                return cls(index, factor_in_place(Q))
            except np.linalg.LinAlgError:
                continue
        return None

    def does_for(self, wanted: Index, most: int) -> bool:
        """Whether all that are wanted are among these variables, and few others.

        Those that are not wanted are held where they are, which costs digits.
        """
        known = np.isin(wanted, self.index, assume_unique=True)
        n_held = len(self.index) - len(wanted)
        return bool(known.all()) and n_held <= len(self.index) // most

    def hold(self, inside: Mask, rules: Array) -> None:
        """Keep those not inside where they are, and have the others keep to these rules."""
        kind = self.factor.dtype
        held = np.flatnonzero(~inside[self.index])
        unit = np.zeros((len(self.index), len(held)), kind, order="F")
        unit[held, np.arange(len(held))] = 1.0
        A = np.asfortranarray(rules[:, self.index].T, dtype=kind)
        A[held] = 0.0
        # Held variables are further rules, that each of them is zero, with prices of their own.
        self.rules = np.concatenate([A, unit], axis=1)
        self.solved = self._inverse(self.rules)
        square = (self.rules.T @ self.solved).astype(np.float64)
        self.inverse = _inverse(square)
        self.n_rules, self.held = len(rules), held

    def solve(self, right: Row, sums: Row) -> tuple[Row, Row]:
        """The changes that go with pulls and with sums of the rules, and the prices of these."""
        # BLAS itself: for one column SciPy's checks take as long.
        upper = self.factor.T
        half = self.solve_one(upper, right, trans=1)
        found = self.solve_one(upper, half, overwrite_x=True)
        wrong = self.rules.T @ found
        wrong[: self.n_rules] -= sums
        prices = (self.inverse @ wrong).astype(right.dtype)
        found -= self.solved @ prices
        found[self.held] = 0.0
        return found, prices[: self.n_rules]

    def _inverse(self, right: NDArray[Any]) -> NDArray[Any]:
        """Q^-1 times columns."""
        half = solve_triangular(self.factor, right, lower=True, check_finite=False)
        return np.asarray(
            solve_triangular(
                self.factor, half, lower=True, trans=1, overwrite_b=True, check_finite=False
            )
        )
