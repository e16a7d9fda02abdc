"""The columns of a Lasso that are at work."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anynorm.design.lasso_design import LassoDesign, joined

Array = NDArray[np.float64]
Index = NDArray[np.intp]


class WorkingColumns:
    """Some columns of a design, at hand.

    Attributes
    ----------
    index : ndarray of shape (m,)
        Which they are, in the order in which they came.
    member : ndarray of bool of shape (p,)
        Whether a column of the design is at work.
    block : array of shape (n, m)
        The columns: dense and centred, or sparse and only weighted.
    """

    def __init__(self, design: LassoDesign) -> None:
        self.design = design
        self.index: Index = np.empty(0, dtype=np.intp)
        self.member = np.zeros(design.shape[1], dtype=bool)
        self.block = design.block(self.index)

    def __len__(self) -> int:
        return len(self.index)

    def extend(self, fresh: Index) -> None:
        """Let columns join that are not at work."""
        self._join(fresh, self.design.block(fresh))

    def _join(self, fresh: Index, block: Any) -> None:
        self.block = joined(self.block, block)
        self.index = np.append(self.index, fresh)
        self.member[fresh] = True

    def keep(self, places: Index) -> None:
        """Let all columns go but those at some places."""
        self.member[self.index] = False
        self.index = self.index[places]
        self.member[self.index] = True
        self.block = self.block[:, places]

    def combine(self, places: Index, x: Array) -> Array:
        """The sum of the columns at some places with the coefficients x, or sums, by columns."""
        return self.design.combine_block(self.block[:, places], self.index[places], x)

    def dot(self, v: Array, places: Index | None = None) -> Array:
        """The products of the columns, or of those at some places, with v, or with its columns."""
        block, index = self.block, self.index
        if places is not None:
            block, index = block[:, places], index[places]
        return self.design.dot_block(block, index, v)

    def norms(self) -> Array:
        """The lengths of the columns."""
        return self.design.block_norms(self.block, self.index)


class GramColumns(WorkingColumns):
    """Working columns with their products with each other, `gram`."""

    def __init__(self, design: LassoDesign) -> None:
        super().__init__(design)
        self.gram = np.empty((0, 0))

    def extend(self, fresh: Index) -> None:
        """Let columns join that are not at work."""
        block, old = self.design.block(fresh), len(self.index)
        gram = np.empty((old + len(fresh),) * 2)
        gram[:old, :old] = self.gram
        gram[old:, :old] = self.design.gram(block, self.block, fresh, self.index)
        gram[:old, old:] = gram[old:, :old].T
        gram[old:, old:] = self.design.gram(block, block, fresh, fresh)
        self.gram = gram
        self._join(fresh, block)

    def keep(self, places: Index) -> None:
        """Let all columns go but those at some places."""
        super().keep(places)
        self.gram = self.gram[np.ix_(places, places)]
