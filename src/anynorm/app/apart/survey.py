"""One look at all rows before anything is fitted: labels, means and deviations, missing values.

Rows are dealt into `folds` parts here, by their label and by chance, piece by piece, so that the
parts depend on the seed and on the files alone, not on who reads what.  Moments are kept apart by
label and by whether a row is in the part that judges: the scale of a model that is judged must not
know the rows that judge it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from anynorm.app.apart.pieces import ParquetRows, PieceReader
from anynorm.app.tables import cells
from anynorm.app.tables.errors import TableError, listed
from anynorm.design.dask_crew import wait_for, workers_of

if TYPE_CHECKING:
    from distributed import Client

JUDGE = 0  # the part of the rows that judges, where no other rows do
_MOST_LABELS = 100  # classes; a column with more is no target
_MEDIAN_ROWS, _MEDIAN_ENTRIES = 20_000, 4_000_000  # of a sample that medians are taken of


class Deal(NamedTuple):
    """How rows are dealt into parts.

    Attributes
    ----------
    folds : int
        The number of parts.
    seed : int
        Of the dealing.
    judges : bool
        Whether part `JUDGE` is kept for judging.
    """

    folds: int
    seed: int
    judges: bool

    def parts(self, texts: cells.Texts, number: int) -> np.ndarray:
        """The part of each row of piece `number`: about as many of every label in each."""
        rng = np.random.default_rng([self.seed, number])
        order = rng.permutation(len(texts))
        order = order[np.argsort(texts[order].astype(str), kind="stable")]
        out = np.empty(len(texts), dtype=np.int16)
        out[order] = (np.arange(len(texts)) + rng.integers(self.folds)) % self.folds
        return out


@dataclass
class Moments:
    """Sums over rows, column by column, of the values that are there.

    Attributes
    ----------
    rows : int
        All rows.
    count, mean, squares : ndarray of shape (p,)
        Of the values that are there: how many, their mean, the sum of squares around it.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.app.apart.survey import Moments
    >>> parts = [np.array([[1.0], [2.0]]), np.array([[6.0], [np.nan]])]
    >>> found = Moments.of(parts[0]) + Moments.of(parts[1])
    >>> found.rows, found.count.tolist(), found.mean.tolist(), found.squares.tolist()
    (4, [3], [3.0], [14.0])
    """

    rows: int
    count: np.ndarray
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray) -> Moments:
        """The moments of some rows."""
        there = ~np.isnan(X)
        count = there.sum(axis=0)
        mean = np.where(there, X, 0.0).sum(axis=0) / np.maximum(count, 1)
        around = np.where(there, X - mean, 0.0)
        return cls(len(X), count, mean, np.einsum("ij,ij->j", around, around))

    def __add__(self, other: Moments) -> Moments:
        """The moments of both (Chan, Golub and LeVeque 1983)."""
        count = self.count + other.count
        apart, whole = other.mean - self.mean, np.maximum(count, 1)
        return Moments(
            self.rows + other.rows,
            count,
            self.mean + apart * (other.count / whole),
            self.squares + other.squares + apart**2 * (self.count * other.count / whole),
        )

    def filled(self, values: np.ndarray) -> Moments:
        """The same with a value for what is missing in each column."""
        missing = self.rows - self.count
        return self + Moments(self.rows, missing, values, np.zeros(len(values)))._of_no_rows()

    def _of_no_rows(self) -> Moments:
        return Moments(0, self.count, self.mean, self.squares)


Key = tuple[bool, str]
"""Whether rows are in the part that judges, and their label."""


@dataclass
class Survey:
    """What was seen of all rows that have a label.

    Attributes
    ----------
    moments : dict of Key to Moments
        By part and label.
    unlabelled : int
        The rows without a label.
    infinite : dict of str to str
        Columns with infinite values, and a file that has one.
    sample : list of ndarray of shape (m, p)
        Some of the rows that do not judge.
    """

    moments: dict[Key, Moments] = field(default_factory=dict)
    unlabelled: int = 0
    infinite: dict[str, str] = field(default_factory=dict)
    sample: list[np.ndarray] = field(default_factory=list)

    def __add__(self, other: Survey) -> Survey:
        both = dict(self.moments)
        for key, found in other.moments.items():
            both[key] = both[key] + found if key in both else found
        return Survey(
            both,
            self.unlabelled + other.unlabelled,
            other.infinite | self.infinite,
            [*self.sample, *other.sample],
        )

    @property
    def labels(self) -> list[str]:
        """All labels, sorted."""
        return sorted({label for _, label in self.moments})

    def counts(self, *, judging: bool | None = None) -> Counter[str]:
        """How many rows have each label, all of them or those that judge (or do not)."""
        found: Counter[str] = Counter()
        for (judges, label), each in self.moments.items():
            if judging is None or judges == judging:
                found[label] += each.rows
        return found

    def of(self, keys: Callable[[Key], bool]) -> Moments:
        """The moments of the rows of some keys together."""
        first, *others = [each for key, each in sorted(self.moments.items()) if keys(key)]
        return sum(others, start=first)

    @property
    def n_sampled(self) -> int:
        """The rows in the sample."""
        return sum(len(rows) for rows in self.sample)

    def medians(self) -> np.ndarray:
        """Of the sample; 0 for a column that has no value in it."""
        rows = np.concatenate(self.sample)
        empty = np.isnan(rows).all(axis=0)
        rows[:, empty] = 0.0
        return np.asarray(np.nanmedian(rows, axis=0))


class Look(NamedTuple):
    """What a worker has to know to look at a piece."""

    reader: PieceReader
    number: int
    columns: list[str]
    target: str
    deal: Deal
    share: float  # of the rows, for the sample


def surveyed(
    client: Client,
    rows: ParquetRows,
    columns: Sequence[str],
    target: str,
    deal: Deal,
    tell: Callable[[str], None],
    *,
    least: int = 2,
) -> Survey:
    """Have workers look at all pieces, which have `least` classes; `tell` says how far that is."""
    most = min(_MEDIAN_ROWS, _MEDIAN_ENTRIES // max(1, len(columns)))
    share = min(1.0, most / max(1, rows.n_rows))
    looks = [
        Look(PieceReader(rows.system, piece), number, list(columns), target, deal, share)
        for number, piece in enumerate(rows.pieces)
    ]
    total, batch = Survey(), max(1, 4 * len(workers_of(client)))
    for start in range(0, len(looks), batch):
        futures = client.map(_looked_at, looks[start : start + batch], pure=False)
        wait_for(client, futures)
        for found in client.gather(futures):
            total = total + found
        _check(total, rows.source, target)
        tell(f"{min(1.0, (start + batch) / len(looks)):.0%} of {rows.n_rows:,} rows")
    if not total.labels:
        raise TableError("no row has a label.", source=rows.source, column=target)
    if len(total.labels) < least:
        raise TableError(
            f"every row has the label {total.labels[0]!r}; two classes are needed.",
            source=rows.source,
            column=target,
        )
    return total


def _check(found: Survey, source: str, target: str) -> None:
    """Raise where values are infinite, or the target is a measurement."""
    if found.infinite:
        column, path = next(iter(found.infinite.items()))
        raise TableError(
            "a value is infinite. Give a finite number, or leave the cell empty if the value is "
            "missing.",
            source=path,
            column=column,
        )
    if len(found.labels) > _MOST_LABELS:
        raise TableError(
            f"more than {_MOST_LABELS} different labels ({listed(found.labels, limit=3)}): a "
            "measurement or a name, not a class. Choose another target, or make classes of it "
            "first.",
            source=source,
            column=target,
        )


def texts_of(reader: PieceReader, target: str) -> cells.Texts:
    """The labels of a piece as texts, None where there is none."""
    return cells.texts(reader.table([target])[target].to_pandas())


def _looked_at(look: Look) -> Survey:
    """What one piece has, on a worker."""
    texts = texts_of(look.reader, look.target)
    known = np.flatnonzero([text is not None for text in texts])
    X, texts = look.reader.numbers(look.columns)[known], texts[known]
    wrong = np.isinf(X).any(axis=0)
    out = Survey(unlabelled=look.reader.piece.rows - len(known))
    out.infinite = {look.columns[j]: look.reader.piece.path for j in np.flatnonzero(wrong)}
    if out.infinite:
        return out
    judging = look.deal.parts(texts, look.number) == JUDGE if look.deal.judges else None
    for label in cells.distinct(texts)[: _MOST_LABELS + 1]:
        own = texts == label
        for side in (False, True) if judging is not None else (False,):
            rows = np.flatnonzero(own if judging is None else own & (judging == side))
            if rows.size:
                out.moments[side, label] = Moments.of(X[rows])
    rng = np.random.default_rng([look.deal.seed, look.number, 1])
    drawn = rng.random(len(X)) < look.share
    out.sample = [X[drawn if judging is None else drawn & ~judging]]
    return out
