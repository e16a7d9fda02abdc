"""Which variables of a box program pull most: the candidates for the next block.

A variable v_k moves beta of its row by sign_k.  Its pull is the negative gradient along beta,

    F_k = sign_k gain_k - (K beta)_row - d_row beta_row ,

and what can go up or down by it is in the two rows of `keys`: F where beta can rise, -F where it
can fall, -inf elsewhere.  Few variables are looked at by NumPy; many by compiled loops
(`smo_loops.py`), in parts that threads share, and the best of them in a few groups alone.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design.threads import share

Array = NDArray[np.float64]
Index = NDArray[np.intp]

GROUP = 64  # variables whose largest key is noted: finds a block's 64 in some thousands of keys
GROUPS = 16  # of a part: a few microseconds
FEW = 600  # variables up to which nothing need be compiled, as for rows


class BoxProgram(NamedTuple):
    """The bounds and the linear term; variable k moves beta of row[k] by sign[k].

    A budget goes with lower bounds of 0.
    """

    sign: Array
    row: Index
    lower: Array
    upper: Array
    gain: Array
    diagonal: Array | None = None
    budget: float = np.inf


def candidates_of(box: BoxProgram) -> Candidates:
    """Return what looks at the variables of a program, by their number."""
    return Candidates(box) if len(box.sign) <= FEW else ManyCandidates(box)


class Candidates:
    """Pulls of variables, and those that pull most.

    Attributes
    ----------
    pull : ndarray
        F of every variable.
    keys : ndarray of shape (2, m)
        How much beta gains by rising and by falling, -inf where it cannot.
    """

    def __init__(self, box: BoxProgram) -> None:
        self.box, m = box, len(box.sign)
        self.diagonal = np.empty(0) if box.diagonal is None else box.diagonal
        self.pull, self.keys = np.empty(m), np.empty((2, m))
        self._gain, positive = box.sign * box.gain, box.sign > 0
        self._ends = (
            np.where(positive, box.lower, -box.upper),
            np.where(positive, box.upper, -box.lower),
        )
        self._by_sign = (positive, ~positive) if np.isfinite(box.budget) else ()

    def find_pulls(self, scores: Array, beta: Array) -> None:
        """F at beta and K beta."""
        row = self.box.row
        np.subtract(self._gain, scores[row], out=self.pull)
        if self.diagonal.size:
            self.pull -= self.diagonal[row] * beta[row]

    def look(self, scores: Array, beta: Array, value: Array) -> list[float]:
        """Find pulls and keys; return the largest keys, of rises and falls by sign.

        They are those of positive and of negative variables that rise, and of such that fall.
        """
        self.find_pulls(scores, beta)
        moved, (low, high) = self.box.sign * value, self._ends
        self.keys[0] = np.where(moved < high, self.pull, -np.inf)
        self.keys[1] = np.where(moved > low, -self.pull, -np.inf)
        if not self._by_sign:  # signs matter to a budget alone
            rise, fall = self.keys.max(axis=1, initial=-np.inf).tolist()
            return [rise, rise, fall, fall]
        return [
            float(keys.max(initial=-np.inf, where=among))
            for keys in self.keys
            for among in self._by_sign
        ]

    def largest(self, count: int, among: float) -> Index:
        """The variables that rise and those that fall best, `count` of each, of one sign or any."""
        can_move = self.keys > -np.inf
        if among != 0:
            can_move &= self.box.sign == among
        every = [np.flatnonzero(can) for can in can_move]
        both = zip(self.keys, every, strict=True)
        return np.concatenate([_best(keys[found], found, count) for keys, found in both])


def _best(keys: Array, found: Index, count: int) -> Index:
    """The `count` variables found that have the largest keys."""
    return found[np.argpartition(-keys, count - 1)[:count]] if len(found) > count else found


class ManyCandidates(Candidates):
    """The same by compiled loops, which also find the largest keys of groups of variables.

    The largest key of the group that comes `count`-th is reached by so many variables at least: no
    other group need be looked at for them.
    """

    def __init__(self, box: BoxProgram) -> None:
        from anynorm.solvers.kernel import smo_loops  # imports Numba: for many variables

        super().__init__(box)
        m, n_groups = len(box.sign), -(-len(box.sign) // GROUP)
        self._loops, self._tops = smo_loops, np.empty((4, n_groups))
        self._groups = np.full((2, n_groups, GROUP), -np.inf)
        self._signs = np.zeros((n_groups, GROUP))
        self._signs.ravel()[:m] = box.sign
        self.keys = self._groups.reshape(2, -1)[:, :m]

    def find_pulls(self, scores: Array, beta: Array) -> None:
        """F at beta and K beta."""
        box = self.box
        self._loops.pulls(scores, beta, box.sign, box.row, box.gain, self.diagonal, self.pull)

    def look(self, scores: Array, beta: Array, value: Array) -> list[float]:
        """Find pulls and keys; return the largest keys, of rises and falls by sign."""
        box = self.box
        share(
            self._loops.rises_and_falls,
            -(-self._tops.shape[1] // GROUPS),
            scores,
            beta,
            box.sign,
            box.row,
            box.gain,
            self.diagonal,
            value,
            box.lower,
            box.upper,
            self.pull,
            self._groups,
            self._tops,
        )
        largest: list[float] = self._tops.max(axis=1).tolist()
        return largest

    def largest(self, count: int, among: float) -> Index:
        """The variables that rise and those that fall best, `count` of each, of one sign or any."""
        positive, negative = self._tops[::2], self._tops[1::2]
        tops = np.maximum(positive, negative) if among == 0 else positive if among > 0 else negative
        both = zip(tops, self._groups, strict=True)
        return np.concatenate([self._largest(*one, count, among) for one in both])

    def _largest(self, tops: Array, groups: Array, count: int, among: float) -> Index:
        """The variables with the largest keys, by the largest ones of their groups."""
        least = np.partition(tops, -count)[-count] if len(tops) > count else -np.inf
        open_groups = np.flatnonzero((tops >= least) & (tops > -np.inf))
        keys = groups[open_groups]
        reached = (keys >= least) & (keys > -np.inf)
        if among != 0:
            reached &= self._signs[open_groups] == among
        group, place = np.nonzero(reached)
        return _best(keys[group, place], open_groups[group] * GROUP + place, count)
