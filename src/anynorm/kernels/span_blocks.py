"""Blocks of rows that live apart, seen as features of a span whose rows were sent to them.

z(x) = L^-1 k(J, x)      of a block's rows x, the rows J being those of `Landmarks.alone`
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import scipy.sparse as sp

from anynorm.design.crew import Block
from anynorm.design.interface import Array, Design, Matrix, Places
from anynorm.kernels.gram import gram_of
from anynorm.kernels.landmarks import LandmarkDesign, Landmarks


class SentSpan(NamedTuple):
    """What a block has to know.

    Attributes
    ----------
    landmarks : Landmarks
        The rows J alone.
    stored : bool
        Whether features are kept, or made of kernel values whenever they are asked for.
    """

    landmarks: Landmarks
    stored: bool


class FarLandmarks(Landmarks):
    """Landmarks as other rows see them, which they are not among.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.kernels.landmarks import Landmarks
    >>> from anynorm.kernels.span_blocks import FarLandmarks
    >>> X = np.array([[2.0, 0.0], [1.0, 1.0], [3.0, 5.0]])
    >>> near = Landmarks.of(Gram.linear(X), np.array([0, 1]))
    >>> far = FarLandmarks(near.alone(), X[2:])
    >>> np.allclose(far.features(np.array([0])), near.features(np.array([2])))
    True
    """

    def __init__(self, landmarks: Landmarks, X: Matrix) -> None:
        self.near, X = landmarks, X.tocsr() if sp.issparse(X) else X
        self.gram = gram_of(landmarks.gram.kernel, X, landmarks.gram.origin)
        self.rows, self.lower, self.sums = landmarks.rows, landmarks.lower, landmarks.sums

    def values(self, rows: Places) -> Array:
        """Return the kernel values of some rows with the landmarks."""
        return self.near.gram.cross(self.gram.X[rows], self.near.rows)


class SpanBlock(Block):
    """A block of features.

    Attributes
    ----------
    source : Block
        The rows that they are of.
    """

    def __init__(self, source: Block, span: SentSpan) -> None:
        self.source = source
        read = partial(_design, source, span.landmarks)
        X = read().dense() if span.stored and source.n else read
        super().__init__(
            X,
            source.labels,
            source.weights,
            columns=len(span.landmarks.rows),
            number=source.number,
        )

    def rows(self, places: Places) -> Matrix:
        """Some of the rows that the features are of, as they are stored."""
        return self.source.design().take_rows(places).stored


def _design(source: Block, landmarks: Landmarks) -> Design:
    return LandmarkDesign(FarLandmarks(landmarks, source.design().stored))
