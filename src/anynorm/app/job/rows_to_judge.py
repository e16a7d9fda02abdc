"""The rows of a test file, and whether they were learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from anynorm.app.job.class_order import codes_of
from anynorm.app.tables import Table, TableError


@dataclass(frozen=True)
class TestRows:
    """The rows of a test file, matched with those that were learnt from."""

    frame: Any
    ids: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    source: str
    notes: list[str]

    @classmethod
    def of(
        cls,
        test: Table,
        table: Table,
        learnt: np.ndarray,
        classes: np.ndarray,
        preparation: Any,
    ) -> TestRows:
        """The rows of a table that have a label, which is one of the classes."""
        if test.target is None:
            raise TableError(
                f"--test needs the column {table.target_name!r}, to compare predictions with.",
                source=test.source,
            )
        known = np.array([str(label) != "" for label in test.target.tolist()])
        rows = np.flatnonzero(known)
        y = codes_of(test.target[rows], classes)
        if not len(rows) or (y < 0).any():
            strange = sorted({str(label) for label in test.target[rows][y < 0]})
            message = "no row has a label."
            if strange:
                message = (
                    f"the label {strange[0]!r} does not occur in {table.source}, so no model of it "
                    "can be judged by these rows."
                )
            raise TableError(message, source=test.source, column=table.target_name)
        frame = test.features.iloc[rows]
        notes = [f"Test rows: {note}" for note in preparation.news_in(frame)]
        if len(rows) < len(known):
            notes.append(f"Test rows: {len(known) - len(rows)} without a label were left out.")
        again = _seen_before(
            preparation.transform(table.features), learnt, preparation.transform(frame), y
        )
        if again:
            notes.append(
                f"{again:,} of {len(rows):,} test rows are the same as rows to learn from. If they "
                "are the same samples, the error is too good."
            )
        groups = None if test.groups is None else test.groups[rows]
        return cls(frame, test.ids[rows], y, groups, str(test.source), notes)


def _seen_before(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> int:
    """How many test rows have the same features and class as a row that was learnt from."""

    def marks(matrix: Any, classes: np.ndarray) -> list[bytes]:
        if sp.issparse(matrix):
            matrix = matrix.tocsr()
            rows = [
                matrix.indices[a:b].tobytes() + matrix.data[a:b].tobytes()
                for a, b in pairwise(matrix.indptr)
            ]
        else:
            rows = [row.tobytes() for row in np.ascontiguousarray(matrix)]
        return [b"%d " % place + row for place, row in zip(classes.tolist(), rows, strict=True)]

    learnt = set(marks(X, y))
    return sum(mark in learnt for mark in marks(X_test, y_test))
