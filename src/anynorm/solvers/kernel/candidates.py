"""Which variables of a box program pull most: the candidates for the next block.

A variable v_k moves beta of its row by sign_k.  Its pull is the negative gradient along beta,

    F_k = sign_k gain_k - (K beta)_row - d_row beta_row ,

and what can go up or down by it is in the two rows of `keys`: F where beta can rise, -F where it
can fall, -inf elsewhere.  Few variables are looked at by NumPy; many by compiled loops
(`smo_loops.py`), in parts that threads share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design.threads import share

Array = NDArray[np.float64]
Index = NDArray[np.intp]

VARIABLES = 1024  # of a part: a few microseconds
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
        return self._best([np.flatnonzero(can) for can in can_move], count)

    def _best(self, every: list[Index], count: int) -> Index:
        """The best `count` of those found for each row of keys."""
        chosen = []
        for keys, found in zip(self.keys, every, strict=True):
            if len(found) > count:
                found = found[np.argpartition(-keys[found], count - 1)[:count]]
            chosen.append(found)
        return np.concatenate(chosen)


class ManyCandidates(Candidates):
    """The same by compiled loops."""

    def __init__(self, box: BoxProgram) -> None:
        from anynorm.solvers.kernel import smo_loops  # imports Numba: for many variables

        super().__init__(box)
        self._loops, self._found = smo_loops, np.empty((-(-len(box.sign) // VARIABLES), 4))

    def find_pulls(self, scores: Array, beta: Array) -> None:
        """F at beta and K beta."""
        box = self.box
        self._loops.pulls(scores, beta, box.sign, box.row, box.gain, self.diagonal, self.pull)

    def look(self, scores: Array, beta: Array, value: Array) -> list[float]:
        """Find pulls and keys; return the largest keys, of rises and falls by sign."""
        box = self.box
        share(
            self._loops.rises_and_falls,
            len(self._found),
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
            self.keys,
            self._found,
        )
        largest: list[float] = self._found.max(axis=0).tolist()
        return largest

    def largest(self, count: int, among: float) -> Index:
        """The variables that rise and those that fall best, `count` of each, of one sign or any."""
        heaps = np.empty((2 * len(self._found), count), np.int64)
        share(self._loops.largest, len(heaps), self.keys, self.box.sign, among, heaps)
        return self._best([own[own >= 0] for own in (heaps[::2], heaps[1::2])], count)
