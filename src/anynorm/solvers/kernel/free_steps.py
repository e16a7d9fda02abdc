"""Newton steps for the variables that are at no bound, with one factor for several of them.

With the others fixed, and d the change of beta that the free variables make,

    minimise over d    1/2 d'Q d - p'd    where  1'd = 0 ,  and s'd = 0 where the budget is spent,

which is one linear system.  What it takes beyond a bound is put there, and the rest solved again.

Q is factored once for a set of variables, the base.  When some of them have come to their bounds,
or a few others are free as well, the system is solved with the same factor and a small one: with
L L' = Q of the base, and the changes e of the extra variables, the prices of the rules and those of
the fixed variables together as y,

    d = L'^-1 (L^-1 p - W y) ,   (M - W'W) y = r - W'L^-1 p ,   W = L^-1 [K_extra, rules', fixed] .

The factor may be float32: a step that is not quite Newton's is mended by the next one.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve_triangular

from anynorm.design.blocks import ranges
from anynorm.design.limits import ROUNDING
from anynorm.design.threads import run
from anynorm.design.unlocked import factor_rows, solve_rows
from anynorm.kernels.rows import KernelRows

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]

_FEW = 64  # changes of the free set that a factor always outlives
_OUTLIVED = 8  # and otherwise this part of it
_MOST_SETTLED = 3  # the part of the base that may come to its bounds in a step
_PANEL = 512  # columns that are factored in one piece, where they are many
_COLUMNS = 64  # that a factor is applied to in one piece
_FLOAT64_UP_TO = 2000  # variables for which a float64 factor is tried as well
_RIDGE = {np.dtype(np.float32): 1e-7, np.dtype(np.float64): 1e-13}  # of the largest entry


class Face(NamedTuple):
    """The variables, how far each can take its beta down (below 0) and up, and their pulls."""

    row: Index
    sign: Array
    pull: Array
    low: Array
    high: Array


class FreeSteps:
    """Steps to the optimum of the free variables.

    Parameters
    ----------
    rows : KernelRows
        The kernel.
    diagonal : ndarray of shape (n,) or (0,)
        What is added to the kernel's diagonal.
    m : int
        The number of variables.
    """

    def __init__(self, rows: KernelRows, diagonal: Array, m: int) -> None:
        self.rows, self.diagonal = rows, diagonal
        self.base: Index = np.empty(0, np.intp)
        self.place = np.full(m, -1, np.intp)  # in the base
        self.column = np.full(m, -1, np.intp)  # of W

    def knows(self, free: Index) -> bool:
        """Whether the factor there is will do for these free variables."""
        if not len(self.base):
            return False
        kept = int(np.count_nonzero(self.place[free] >= 0))
        changes = len(self.base) + len(free) - 2 * kept
        return changes <= max(_FEW, len(self.base) // _OUTLIVED)

    def prepare(self, face: Face, free: Index) -> bool:
        """Factor Q of these variables; False where it is not positive definite."""
        self.place[self.base], self.base = -1, free[:0]
        index, k = face.row[free], len(free)
        kinds = [np.float32, np.float64] if k <= _FLOAT64_UP_TO else [np.float32]
        for kind in kinds if not self.rows.are_exact else kinds[-1:]:
            # Functions of users may put columns first.
            Q = np.ascontiguousarray(self.rows.entries(index, index, kind))
            top = float(np.abs(np.diagonal(Q)).max())
            Q[np.diag_indices(k)] += _RIDGE[Q.dtype] * top
            if self.diagonal.size:
                Q[np.diag_indices(k)] += self.diagonal[index].astype(kind)
            try:
                self.factor = factor_in_place(Q)
            except np.linalg.LinAlgError:
                continue
            self.base, self.place[free] = free, np.arange(k)
            self._begin_columns(face)
            return True
        return False

    def step(self, face: Face, free: Index, tight: bool) -> tuple[Index, Array] | None:
        """Return the variables that move and the changes of their beta, within the bounds.

        `free` must be known; with `tight` the sum of the variables stays as it is.
        """
        face = less_the_prices(face, free, tight)
        extra = free[self.place[free] < 0]
        self._learn(face, extra)
        variables = np.concatenate([self.base, extra])
        settled = np.zeros(len(variables), dtype=bool)
        settled[: len(self.base)] = True
        settled[self.place[free[self.place[free] >= 0]]] = False
        d = np.zeros(len(variables))
        low, high = face.low[variables], face.high[variables]
        for _ in range(
            8
        ):  # a step in which variables come to their bounds more often is not worth it
            if len(variables) - np.count_nonzero(settled) <= 2:
                return None
            found = self._solved(face, extra, settled, d, tight)
            if found is None:
                return None
            rules = np.array([np.ones(len(variables)), face.sign[variables]])[: 1 + tight]
            found = kept_to(rules, found, ~settled)
            if np.abs(rules @ found).max() > ROUNDING * np.abs(found).sum():
                return None  # too few are inside to keep to the rules
            beyond = ~settled & ((found < low) | (found > high))
            d = np.clip(found, low, high)
            if not beyond.any():
                return variables, d
            settled |= beyond
            if np.count_nonzero(settled) > max(_FEW, len(self.base) // _MOST_SETTLED):
                return None
        return None

    def _begin_columns(self, face: Face) -> None:
        """W of the two rules."""
        rules = np.column_stack([np.ones(len(self.base)), face.sign[self.base]])
        self.column[:] = -1
        self.W = self.room = self._solve_lower(rules)
        self.products = (self.W.T @ self.W).astype(np.float64)

    def _solve_lower(self, right: Array) -> Any:
        return _solve_lower(self.factor, np.asfortranarray(right, dtype=self.factor.dtype))

    def _learn(self, face: Face, wanted: Index) -> None:
        """Columns of W for variables that have none."""
        new = wanted[self.column[wanted] < 0]
        if not len(new):
            return
        outside = self.place[new] < 0
        right = np.zeros((len(self.base), len(new)), self.factor.dtype, order="F")
        right[self.place[new[~outside]], np.flatnonzero(~outside)] = 1.0
        if outside.any():
            right[:, outside] = self.rows.entries(
                face.row[new[outside]], face.row[self.base], self.factor.dtype
            ).T
        known, count = self.W.shape[1], self.W.shape[1] + len(new)
        self.column[new] = np.arange(known, count)
        if count > self.room.shape[1]:
            self.room = np.empty((len(self.base), count + count // 2), self.W.dtype, order="F")
            self.room[:, :known] = self.W
        self.room[:, known:count] = self._solve_lower(right)
        W = self.W = self.room[:, :count]
        parts = list(ranges(count, _COLUMNS))
        products = run(lambda k: W[:, parts[k]].T @ W[:, known:], len(parts))
        more = np.concatenate(products).astype(np.float64)
        self.products = np.block([[self.products, more[:known]], [more.T]])

    def _solved(
        self, face: Face, extra: Index, settled: Mask, d: Array, tight: bool
    ) -> Array | None:
        """The changes of all variables, those settled having made theirs."""
        k, n_rules = len(self.base), 2 if tight else 1
        fixed = np.flatnonzero(settled[:k])
        self._learn(face, self.base[fixed])
        open_extra = ~settled[k:]
        known = np.where(settled, d, 0.0)
        # What the settled extra variables did pulls at all others.
        shut, moved = extra[~open_extra], known[k:][~open_extra]
        base_pull, extra_pull = face.pull[self.base], face.pull[extra]
        inner = self._inner(face, extra)
        if len(shut):
            base_pull = base_pull - moved @ self.rows.entries(
                face.row[shut], face.row[self.base], self.factor.dtype
            )
            extra_pull = extra_pull - inner[:, ~open_extra] @ moved
        z = self._solve_lower(base_pull[:, None])[:, 0]
        own = extra[open_extra]
        columns = np.concatenate(
            [self.column[own], np.arange(n_rules), self.column[self.base[fixed]]]
        )
        e = len(own)
        rules = np.array([np.ones(len(extra)), face.sign[extra]])[:n_rules]
        M = -self.products[np.ix_(columns, columns)]
        M[:e, :e] += inner[np.ix_(open_extra, open_extra)]
        M[e : e + n_rules, :e] += rules[:, open_extra]
        M[:e, e : e + n_rules] += rules[:, open_extra].T
        r = np.concatenate([extra_pull[open_extra], -rules[:, ~open_extra] @ moved, known[fixed]])
        try:
            y = np.linalg.solve(M, r - (self.W.T @ z)[columns].astype(np.float64))
        except np.linalg.LinAlgError:
            return None
        weights = np.zeros(self.W.shape[1], self.W.dtype)
        weights[columns] = y
        right = z - self.W @ weights
        found = known.copy()
        base = solve_triangular(
            self.factor, right, lower=True, trans=1, overwrite_b=True, check_finite=False
        )
        found[:k] = np.where(settled[:k], known[:k], base)
        found[k:][open_extra] = y[:e]
        return found if np.isfinite(found).all() else None

    def _inner(self, face: Face, extra: Index) -> Array:
        """Q of the extra variables."""
        index = face.row[extra]
        inner = self.rows.entries(index, index, self.factor.dtype).astype(np.float64)
        if self.diagonal.size:
            inner[np.diag_indices(len(index))] += self.diagonal[index]
        return inner


def factor_in_place(Q: NDArray[Any]) -> NDArray[Any]:
    """The lower factor, in place of Q, by pieces of work of a fraction of a second.

    One call for thousands of columns would not let Ctrl-C through for a second or more.
    """
    width = _PANEL if len(Q) > 3 * _PANEL else len(Q)
    for start in range(0, len(Q), width):
        stop = min(start + width, len(Q))
        own, below = Q[start:stop, start:stop], Q[stop:, start:stop]
        if not factor_rows(own):
            raise LinAlgError("the matrix is not positive definite")
        if len(below):
            below[:] = _solve_lower(own, np.asfortranarray(below.T)).T
        rest = list(ranges(len(below), 2 * _COLUMNS))
        run(partial(_subtract_square, below, Q[stop:, stop:], rest), len(rest))
    return Q


def _solve_lower(factor: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """What a lower factor makes of the columns of `right`, in their place.

    SciPy's own solver would let one thread run at a time.
    """
    parts = list(ranges(right.shape[1], _COLUMNS))

    def solve(k: int) -> None:
        own = right[:, parts[k]]
        begin = int(own.any(axis=1).argmax())  # above it there is nothing: late for unit vectors
        solve_rows(factor[begin:, begin:], own[begin:])

    run(solve, len(parts))
    return right


def _subtract_square(below: NDArray[Any], out: NDArray[Any], parts: list[slice], k: int) -> None:
    """What a panel takes off the lower half of some columns of the rest."""
    columns = parts[k]
    out[columns.start :, columns] -= below[columns.start :] @ below[columns].T


def less_the_prices(face: Face, free: Index, tight: bool) -> Face:
    """The same with pulls that differ by prices of the rules, which no step can follow.

    At the optimum they are zero: a float32 factor is then accurate to a part of what is left.
    """
    rules = np.array([np.ones(len(face.sign)), face.sign])[: 1 + tight]
    A = rules[:, free]
    prices = np.linalg.lstsq(A @ A.T, A @ face.pull[free], rcond=None)[0]
    return face._replace(pull=face.pull - prices @ rules)


def kept_to(rules: Array, d: Array, inside: Mask) -> Array:
    """The changes with sums of exactly zero: those of a float32 factor have rounding in them."""
    A = rules[:, inside]
    wrong = rules @ d
    out = d.copy()
    out[inside] -= A.T @ np.linalg.lstsq(A @ A.T, wrong, rcond=None)[0]
    return out
