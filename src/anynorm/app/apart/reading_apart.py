"""Files that are read by workers: which columns, which classes, how they are prepared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from anynorm.app.apart.dealt_blocks import Columns, DealtBlock, Making
from anynorm.app.apart.models_apart import Contrast
from anynorm.app.apart.pieces import ParquetRows, PieceReader, features_of, parquet_rows
from anynorm.app.apart.survey import Deal, Moments, Survey, surveyed
from anynorm.app.job.class_order import codes_of, ordered_classes
from anynorm.app.tables import Preparation, TableError
from anynorm.app.tables.errors import counted, listed
from anynorm.app.tables.target import alike_labels, as_labels, positive_label
from anynorm.design.crew import Crew
from anynorm.design.dask_crew import DaskCrew, memory_left_of
from anynorm.estimators.checks.labels import class_factors

if TYPE_CHECKING:
    from distributed import Client

_HELD = 0.4  # of the memory left to workers that rows may take; more are read in every round
_COPIES = 6  # of a piece that a worker may have at once
_GIGABYTE = 1e9  # bytes


@dataclass(frozen=True)
class Asked:
    """Which files the job is asked to use, and how.

    Attributes
    ----------
    data, test : path
        The files to learn from; those to judge by, or None.
    target, id : str
        The columns of labels and of names; None where there is none of these.
    positive : str or None
        The label that positive weights speak for.
    drop : sequence of str
        Columns to leave out, or patterns.
    """

    data: Any
    target: str | None
    id: str | None = None
    positive: str | None = None
    drop: Sequence[str] = ()
    test: Any = None


@dataclass(frozen=True)
class RowsApart:
    """Files that were looked at once.

    Attributes
    ----------
    client : distributed.Client
        Whose workers read them.
    files : ParquetRows
        The files.
    wanted : Asked
        Which columns are which.
    kinds : dict
        The features.
    deal : Deal
        How rows are dealt into parts.
    seen : Survey
        What was seen of all rows.
    classes : ndarray
        The labels in their order.
    codes : dict of str to int
        The places among them of the texts in the files.
    notes : list of str
        On what was read.
    """

    client: Client
    files: ParquetRows
    wanted: Asked
    kinds: dict[str, str]
    deal: Deal
    seen: Survey
    classes: np.ndarray
    codes: dict[str, int]
    notes: list[str] = field(default_factory=list)

    @classmethod
    def read(
        cls, client: Client, wanted: Asked, deal: Deal, tell: Callable[[str], None]
    ) -> RowsApart:
        """Find the files and look at all rows; `tell` is called with how far that is."""
        if wanted.target is None:
            raise TableError("say which column has the classes: --target NAME.")
        files = parquet_rows(wanted.data, min(memory_left_of(client), default=math.inf))
        kinds = features_of(files, {"target": wanted.target, "id": wanted.id}, wanted.drop)
        seen = surveyed(client, files, list(kinds), wanted.target, deal, tell)
        texts, positive = np.array(seen.labels, dtype=object), None
        labels = as_labels(texts)
        notes = alike_labels(labels)
        if wanted.positive is not None:
            labels, positive, more = positive_label(
                labels, wanted.positive, files.source, wanted.target
            )
            notes += more
        classes = ordered_classes(labels, positive)
        codes = dict(zip(texts.tolist(), codes_of(labels, classes).tolist(), strict=True))
        found = cls(client, files, wanted, kinds, deal, seen, classes, codes, notes)
        found._note()
        return found

    def _note(self) -> None:
        """What was done to the rows, in words."""
        if self.seen.unlabelled:
            self.notes.append(f"{counted(self.seen.unlabelled, 'row')} without a label left out.")
        whole = self.seen.of(lambda _: True)
        missing = whole.rows - whole.count
        counts = zip(self.kinds, missing.tolist(), strict=True)
        gaps = [f"{name!r} ({counted(count, 'row')})" for name, count in counts if count]
        if gaps:
            self.notes.append(
                f"Missing numbers became the median of {counted(self.seen.n_sampled, 'row')} drawn "
                f"at random: {listed(gaps, quote=False)}."
            )
        empty = [name for name, count in zip(self.kinds, whole.count, strict=True) if not count]
        if empty:
            self.notes.append(f"No value at all, and no weight: {listed(empty)}.")

    def tested(self, test: Any, tell: Callable[[str], None]) -> RowsApart:
        """The rows of other files, with the same columns and classes."""
        files = parquet_rows(test, min(memory_left_of(self.client), default=math.inf))
        target = str(self.wanted.target)
        present = [name for name in (target, self.wanted.id, *self.kinds) if name is not None]
        same = sorted(files.paths & self.files.paths)
        if same:
            raise TableError(
                "this is one of the files to learn from: its error would be far too good. Give "
                "other rows, or leave --test out, for a part that is held out.",
                source=same[0],
            )
        missing = [name for name in present if name not in files.columns]
        if missing:
            raise TableError(f"the columns {listed(missing)} are missing.", source=files.source)
        deal = Deal(1, self.deal.seed, judges=False)
        seen = surveyed(self.client, files, list(self.kinds), target, deal, tell, least=1)
        known = codes_of(np.array(seen.labels, dtype=object), self.classes)
        strange = [label for label, k in zip(seen.labels, known, strict=True) if k < 0]
        if strange:
            raise TableError(
                f"the label {strange[0]!r} does not occur in {self.files.source}, so no model of "
                "it can be judged by these rows.",
                source=files.source,
                column=target,
            )
        codes = dict(zip(seen.labels, known.tolist(), strict=True))
        return RowsApart(
            self.client, files, self.wanted, self.kinds, deal, seen, self.classes, codes
        )

    def counts(self, *, judging: bool | None = None) -> np.ndarray:
        """The rows of each class: all, or those that judge (or do not)."""
        out = np.zeros(len(self.classes), dtype=np.int64)
        for label, count in self.seen.counts(judging=judging).items():
            out[self.codes[label]] += count
        return out

    def holds(self) -> bool:
        """Whether the rows may stay in the workers' memory; raises where a piece is too large."""
        p, left = len(self.kinds), memory_left_of(self.client)
        largest = max(self.files.pieces, key=lambda piece: piece.rows)
        if _COPIES * 8.0 * largest.rows * p > min(left, default=math.inf):
            raise TableError(
                f"row groups of {largest.rows:,} rows are too large for workers with "
                f"{min(left) / _GIGABYTE:.2g} GB of memory left. Write the files with smaller "
                "ones, e.g. row_group_size=50_000.",
                source=largest.path,
            )
        size, room = 8.0 * self.files.n_rows * p, _HELD * sum(left)
        if size > room:
            self.notes.append(
                f"The rows take {size / _GIGABYTE:.3g} GB as numbers, too much for workers with "
                f"{sum(left) / _GIGABYTE:.3g} GB left: they are read from the files in every round."
            )
        return size <= room

    def preparation(self, scale: str, *, judging: bool) -> Preparation:
        """Medians and scales, of all rows or of those alone that do not judge."""
        medians = self.seen.medians()
        whole = self.seen.of(lambda key: judging or not key[0]).filled(medians)
        scaled = (whole.mean, whole.squares / whole.rows, whole.rows)
        return Preparation.of_numbers(self.kinds, medians, scaled if scale == "standard" else None)

    def crew(self, preparation: Preparation, *, dealt: bool, hold: bool) -> Crew:
        """The blocks of all rows, prepared."""
        import dask

        wanted, deal = self.wanted, self.deal if dealt else None
        columns = _columns(preparation)
        making = Making(str(wanted.target), wanted.id, self.codes, deal, columns, hold)
        make = dask.delayed(DealtBlock, pure=False, traverse=False)
        readers = [PieceReader(self.files.system, piece) for piece in self.files.pieces]
        blocks = [make(reader, k, making) for k, reader in enumerate(readers)]
        crew = DaskCrew.computing(self.client, blocks)
        try:
            crew.describe()
        except BaseException:
            crew.close()
            raise
        return crew

    def contrasts(self, preparation: Preparation, class_weight: Any) -> list[Contrast]:
        """Those of the binary problems of the rows that do not judge."""

        def rows_of(code: int) -> Moments:
            mine = self.seen.of(lambda key: not key[0] and self.codes[key[1]] == code)
            return mine.filled(self.seen.medians())

        present = sorted({self.codes[label] for judges, label in self.seen.moments if not judges})
        filled, K = {code: rows_of(code) for code in present}, len(self.classes)
        weights = np.array([float(each.rows) for each in filled.values()])
        means = np.array([each.mean for each in filled.values()]) / preparation.scales_
        if class_weight is not None:
            weights = weights * class_factors(class_weight, np.array(list(filled)), weights)
        found = []
        for k in [1] if K == 2 else range(len(weights)):
            rest = np.arange(len(weights)) != k
            other = weights[rest] @ means[rest] / max(weights[rest].sum(), np.finfo(float).tiny)
            apart = float(np.abs(means[k] - other).max())
            found.append(Contrast(float(weights[k]), float(weights[rest].sum()), apart))
        return found


def _columns(preparation: Preparation) -> Columns:
    """What becomes of the columns on the workers."""
    scaler, p = preparation.scaler_, preparation.n_features_in_
    mean = np.zeros(p) if scaler is None else scaler.mean_
    names = [str(name) for name in preparation.feature_names_in_]
    imputer: Any = preparation.imputer_
    return Columns(names, imputer.statistics_, mean, preparation.scales_)
