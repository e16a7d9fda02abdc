"""Pieces of files as blocks of rows: classes as places, columns prepared, rows dealt into parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from anynorm.app.apart.pieces import PieceReader
from anynorm.app.apart.survey import Deal, texts_of
from anynorm.app.tables import cells
from anynorm.design.crew import Block, Sums, each_block


class Columns(NamedTuple):
    """What becomes of the columns: gaps are filled, then they are moved and divided.

    Attributes
    ----------
    names : list of str
        The features.
    fill, mean, scale : ndarray of shape (p,)
        What missing values become, what is taken off, and by what it is divided.
    """

    names: list[str]
    fill: np.ndarray
    mean: np.ndarray
    scale: np.ndarray

    def prepared(self, X: np.ndarray) -> np.ndarray:
        """The rows of a matrix, changed in place."""
        gaps = np.isnan(X)
        if gaps.any():
            np.copyto(X, self.fill, where=gaps)
        X -= self.mean
        X /= self.scale
        return X


class RowSource(NamedTuple):
    """Reads the rows of a piece that have a label, and prepares them: what a block may hold."""

    reader: PieceReader
    known: np.ndarray | None
    columns: Columns

    def __call__(self) -> np.ndarray:
        """The rows as a matrix."""
        X = self.reader.numbers(self.columns.names)
        return self.columns.prepared(X if self.known is None else X[self.known])


class Making(NamedTuple):
    """What a worker has to know to make a block of a piece.

    Attributes
    ----------
    target, id : str, str or None
        The columns of the labels, and of the rows' names.
    codes : dict of str to int
        The places of the labels among the classes.
    deal : Deal or None
        How rows are dealt into parts; None leaves them in part 0.
    columns : Columns
        What becomes of the features.
    hold : bool
        Whether the rows stay in memory, or are read for every question.
    """

    target: str
    id: str | None
    codes: dict[str, int]
    deal: Deal | None
    columns: Columns
    hold: bool


class DealtBlock(Block):
    """The rows of a piece.

    Attributes
    ----------
    parts : ndarray of int
        The part that each row was dealt to.
    """

    def __init__(self, reader: PieceReader, number: int, making: Making) -> None:
        texts = texts_of(reader, making.target)
        known = np.flatnonzero([text is not None for text in texts])
        every = len(known) == len(texts)
        texts = texts if every else texts[known]
        rows = RowSource(reader, None if every else known, making.columns)
        self.parts = np.zeros(len(texts), dtype=np.int16)
        if making.deal is not None:
            self.parts = making.deal.parts(texts, number)
        self.source, self.id = rows, making.id
        super().__init__(
            rows() if making.hold else rows,
            np.array([making.codes[text] for text in texts], dtype=np.int64),
            None,
            columns=len(making.columns.names),
            number=number,
        )

    def names(self, rows: np.ndarray) -> np.ndarray:
        """Those of some rows: from their column, or the file's name and the place in it."""
        reader, known = self.source.reader, self.source.known
        places = rows if known is None else known[rows]
        if self.id is not None:
            found = cells.texts(reader.table([self.id])[self.id].to_pandas())[places]
            return np.array(["" if name is None else name for name in found], dtype=str)
        file = reader.piece.path.rsplit("/", 1)[-1]
        return np.array([f"{file}:{reader.piece.first + row + 1}" for row in places], dtype=str)


class Sides(NamedTuple):
    """Which parts a model must not learn from, and which of them it is asked about."""

    left_out: tuple[int, ...]
    asked: int | None


class SidedBlock(Block):
    """The same rows, of which those of some parts weigh nothing."""

    def __init__(self, source: Block, sides: Sides) -> None:
        assert isinstance(source, DealtBlock)
        self.whole = source
        weights = None
        if sides.left_out:
            weights = (~np.isin(source.parts, sides.left_out)).astype(np.float64)
        self.asked = np.flatnonzero(source.parts == sides.asked)
        super().__init__(
            source._X, source.labels, weights, columns=source.columns, number=source.number
        )


class Question(NamedTuple):
    """Models to ask about the rows that they have not learnt from.

    Attributes
    ----------
    coef, intercept : ndarray of shape (m, K or 1, p), (m, K or 1)
        Those of m models.
    classes : ndarray of int
        The classes that they know.
    n_classes : int
        All of them.
    share, seed : float, int
        How many of the rows come back with their decision values, and by which chance.
    """

    coef: np.ndarray
    intercept: np.ndarray
    classes: np.ndarray
    n_classes: int
    share: float
    seed: int


class Shown(NamedTuple):
    """Some rows of a block by name.

    Attributes
    ----------
    number : int
        The block.
    names, codes, parts : ndarray of shape (rows,)
        What the rows are called, their classes, the parts that they were dealt to.
    scores : ndarray of shape (m, rows, problems), or (rows, problems)
        The decision values of m models, or of one.
    classes : ndarray of int
        The classes that these speak of.
    """

    number: int
    names: np.ndarray
    codes: np.ndarray
    parts: np.ndarray
    scores: np.ndarray
    classes: np.ndarray

    def stage(self, k: int) -> Shown:
        """The same for one of the models."""
        return self._replace(scores=self.scores[k])

    def all_classes(self, n_classes: int) -> np.ndarray:
        """The decision values of one model: one for two classes, otherwise one for each."""
        scores = self.scores
        if n_classes == 2:
            return scores[:, 0]
        if scores.shape[1] == 1:  # the other classes were not there
            scores = np.hstack([-scores, scores])
        out = np.full((len(scores), n_classes), -np.inf)
        out[:, self.classes] = scores
        return out


def asked(blocks: Sequence[Block], question: Question) -> Sums:
    """How many rows of each class every model takes for which, and some of them by name.

    ``confusion[m, i, j]`` counts the rows of class i that model m takes for class j.
    """
    m, width, p = question.coef.shape
    n_classes = question.n_classes

    def one(block: Block) -> Sums:
        assert isinstance(block, SidedBlock)
        if not block.asked.size:
            return Sums(shown=[])
        rows, truth = block.design().take_rows(block.asked), block.labels[block.asked]
        scores = rows.matvec(question.coef.reshape(-1, p).T).reshape(-1, m, width)
        scores = scores.swapaxes(0, 1) + question.intercept[:, None, :]
        best = (scores[:, :, 0] > 0).astype(np.intp) if width == 1 else scores.argmax(axis=2)
        pairs = truth * n_classes + question.classes[best]
        counts = [np.bincount(each, minlength=n_classes**2) for each in pairs]
        rng = np.random.default_rng([question.seed, block.number, 2])
        drawn = np.flatnonzero(rng.random(len(truth)) < question.share)
        own = block.asked[drawn]
        shown = []
        if drawn.size:
            names, parts = block.whole.names(own), block.whole.parts[own]
            said = truth[drawn], parts, scores[:, drawn], question.classes
            shown = [Shown(block.number, names, *said)]
        return Sums(confusion=np.array(counts).reshape(m, n_classes, n_classes), shown=shown)

    nothing: Any = np.zeros((m, n_classes, n_classes), dtype=np.int64)
    return each_block(blocks, one, Sums(shown=[], confusion=nothing))
