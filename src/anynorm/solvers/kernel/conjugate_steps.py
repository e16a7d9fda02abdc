"""Steps for most of the variables at once, by conjugate gradients with the whole kernel matrix.

With d the change of beta that the variables make which are free, or pull away from their bounds,

    minimise over d    1/2 d'Q d - p'd    where  1'd = 0 ,  and s'd = 0 where the budget is spent.

Where most variables end up free, some dozens of products with Q, in the plane of these rules, tell
which of them do: blocks would take them up a few at a time, and a factor (`free_steps.py`) pays
only when they are known.  What a step takes beyond a bound is put there, and the rest goes on.

The gradients are preconditioned by what some rows, the landmarks J, tell of all of Q (Nystroem),

    M = delta I + Z'Z ,   Z = L^-1 Q_J ,   L L' = Q_JJ ,   delta of the size of what Z'Z lacks,

which takes the large eigenvalues out of the way.  All is of the type of the rows, float32 mostly: a
step that is not quite the best is mended by the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, cholesky, solve_triangular

from anynorm.design.limits import ROUNDING
from anynorm.kernels.rows import KernelRows
from anynorm.solvers.kernel.free_steps import Face, kept_to, less_the_prices

Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
Row = NDArray[Any]  # of the type of the kernel's rows
Solve = Callable[[Row], Row]

_LANDMARKS, _PER_LANDMARK = 512, 10  # at most, and rows for each
_RIDGE = 1e-5  # of the largest entry, on the diagonal of Q_JJ: rounding of float32
_LACKING = 0.3  # of what Z'Z lacks of the diagonal on average
_ACCURACY = 0.05  # of the pulls: what is left of them
_MOST, _ROUNDS = 60, 8  # products in a round, and rounds in which variables come to their bounds
_MOST_SETTLED = 0.5  # of the variables: where more come to their bounds, blocks are better


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
    """

    def __init__(self, rows: KernelRows, diagonal: Array) -> None:
        self.K, self.order = rows.matrix()
        self.kind, self.n_products = self.K.dtype, 0
        self.diagonal = diagonal.astype(self.kind)
        self.landmarks = _Landmarks(self.K, self.order, rows.gram.diagonal(), self.diagonal)

    def step(self, face: Face, free: Index, tight: bool) -> tuple[Index, Array] | None:
        """Return the variables that move and the changes of their beta, within the bounds.

        With `tight` the sum of the variables stays as it is.  None where few of them stay inside.
        """
        n = len(face.row)
        face = less_the_prices(face, free if len(free) > 2 else np.arange(n), tight)
        low, high, rules = face.low, face.high, np.array([np.ones(n), face.sign])[: 1 + tight]
        inside = ((low < 0) & ((high > 0) | (face.pull < 0))) | ((high > 0) & (face.pull > 0))
        pull, d = face.pull.astype(self.kind), np.zeros(n)
        goal = _ACCURACY * float(np.linalg.norm(pull[inside]))
        least = max(2.0, (1.0 - _MOST_SETTLED) * np.count_nonzero(inside))
        for _ in range(_ROUNDS):
            solve = self.landmarks.preconditioner(inside)
            if solve is None:
                return None
            d = kept_to(rules, self._towards(pull, d, inside, rules, goal, solve), inside)
            # It is not so either where nothing but NaN has come out.
            if not np.abs(rules @ d).max() <= ROUNDING * np.abs(d).sum():
                return None
            beyond = inside & ((d < low) | (d > high))
            np.clip(d, low, high, out=d)
            if not beyond.any():
                return np.arange(n), d
            inside &= ~beyond
            if np.count_nonzero(inside) <= least:
                return None
            d = kept_to(rules, d, inside)
        return None

    def _towards(
        self, pull: Row, d: Array, inside: Mask, rules: Array, goal: float, solve: Solve
    ) -> Array:
        """Where conjugate gradients take d, by changes of those inside that keep to the rules."""
        own = inside.astype(self.kind)
        A = rules.astype(self.kind) * own
        weights = np.linalg.pinv(A @ A.T) @ A

        def along(x: Row) -> Row:
            """The part of x, of those inside, that keeps to the rules; the others are zero."""
            return np.asarray(x * own - (weights @ x) @ A)

        r = along(pull - self._times(d.astype(self.kind)) if d.any() else pull)
        change, way, size = np.zeros_like(r), np.zeros_like(r), 1.0
        for _ in range(_MOST):
            if float(np.linalg.norm(r)) <= goal:
                break
            z = along(solve(r))
            before, size = size, float(r @ z)
            way = z + self.kind.type(size / before) * way
            image = along(self._times(way))
            bend = float(way @ image)
            if not bend > 0:  # rounding, or a kernel that is not positive semidefinite
                break
            length = self.kind.type(size / bend)
            change += length * way
            r -= length * image
        return d + change

    def _times(self, x: Row) -> Row:
        """Q x."""
        self.n_products += 1
        image = np.empty_like(x)
        image[self.order] = self.K @ x
        return image + self.diagonal * x if self.diagonal.size else image


class _Landmarks:
    """Some rows of Q, and what they tell of all."""

    def __init__(self, K: NDArray[Any], order: Index, own: Array, diagonal: Row) -> None:
        n, whole = len(K), own.astype(K.dtype)
        if diagonal.size:
            whole = whole + diagonal
        ridge = K.dtype.type(_RIDGE) * np.abs(whole).max()
        count = min(_LANDMARKS, -(-n // _PER_LANDMARK))
        places = np.unique(np.linspace(0, n - 1, count).astype(np.intp))
        Q, chosen = K[places], order[places]
        Q[np.arange(len(chosen)), chosen] = whole[chosen]
        square = Q[:, chosen]
        square[np.diag_indices(len(square))] += ridge
        self.Z: NDArray[Any] | None = None
        try:
            factor = cholesky(square, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return
        self.Z = Z = solve_triangular(factor, Q, lower=True, overwrite_b=True, check_finite=False)
        self.square = Z @ Z.T
        self.delta = max(_LACKING * (whole - np.einsum("jk,jk->k", Z, Z)).mean(), ridge)

    def preconditioner(self, inside: Mask) -> Solve | None:
        """What M^-1 of those inside makes of a vector that is zero elsewhere; None without M."""
        Z = self.Z
        if Z is None:
            return None
        delta, outside = self.delta, Z[:, ~inside]
        small = self.square - outside @ outside.T
        small[np.diag_indices(len(small))] += delta
        try:
            factor = cho_factor(small, lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            return None

        def solve(r: Row) -> Row:
            found = cho_solve(factor, Z @ r, overwrite_b=True, check_finite=False)
            return np.asarray((r - found @ Z) / delta)

        return solve
