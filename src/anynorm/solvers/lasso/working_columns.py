"""The columns of a Lasso that are at work."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anynorm.design.views import CentredDesign

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
    block : design of shape (n, m)
        The columns.
    """

    def __init__(self, design: CentredDesign) -> None:
        self.design = design
        self.index: Index = np.empty(0, dtype=np.intp)
        self.member = np.zeros(design.p, dtype=bool)
        self.block = design.take_columns(self.index)

    def extend(self, fresh: Index) -> None:
        """Let columns join that are not at work."""
        self.block = self.block.beside(self.design.take_columns(fresh))
        self.index = np.append(self.index, fresh)
        self.member[fresh] = True

    def keep(self, places: Index) -> None:
        """Let all columns go but those at some places."""
        self.member[self.index] = False
        self.index = self.index[places]
        self.member[self.index] = True
        self.block = self.block.take_columns(places)


class GramColumns(WorkingColumns):
    """Working columns with their products with each other, `gram`."""

    def __init__(self, design: CentredDesign) -> None:
        super().__init__(design)
        self.gram = np.empty((0, 0))

    def extend(self, fresh: Index) -> None:
        """Let columns join that are not at work."""
        old = len(self.index)
        super().extend(fresh)
        gram = np.empty((len(self.index),) * 2)
        gram[:old, :old] = self.gram
        places, before = np.arange(old, len(self.index)), np.arange(old)
        gram[old:, :old] = self.block.columns_gram(places, before)
        gram[:old, old:] = gram[old:, :old].T
        gram[old:, old:] = self.block.columns_gram(places, places)
        self.gram = gram

    def keep(self, places: Index) -> None:
        """Let all columns go but those at some places."""
        super().keep(places)
        self.gram = self.gram[np.ix_(places, places)]
