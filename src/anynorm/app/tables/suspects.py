"""Columns that a model should perhaps not have: counters of rows, constants, copies of the target.

All are kept, and named: whoever knows the table decides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anynorm.app.tables import cells
from anynorm.app.tables.errors import listed

FEWEST_TO_COUNT = 10  # rows: fewer may count up, or go with the target, by chance
_TOGETHER = 256  # columns that are looked at in one go: as a matrix, but not the whole table


def counts_rows(values: NDArray[np.float64]) -> bool:
    """Whether a column numbers the rows: 0, 1, 2, ... or 1, 2, 3, ..."""
    return bool(values[0] in (0, 1) and (np.diff(values) == 1).all())


def notes_on(frame: pd.DataFrame, labels: NDArray[Any] | None) -> list[str]:
    """Return notes on the columns of a table that look wrong as features."""
    n = len(frame)
    if n < FEWEST_TO_COUNT:
        return []
    places = None if labels is None else np.unique(labels, return_inverse=True)[1].ravel()
    counters, constants, copies = [], [], []
    for start in range(0, frame.shape[1], _TOGETHER):
        names = frame.columns[start : start + _TOGETHER]
        values = np.column_stack([_numbers(frame[name]) for name in names])
        low, high = values.min(axis=0), values.max(axis=0)
        constants += names[low == high].tolist()
        counters += [
            names[k]
            for k in np.flatnonzero(high - low == n - 1)
            if not cells.is_text(frame[names[k]].dtype) and counts_rows(np.sort(values[:, k]))
        ]
        if places is not None:
            copies += names[_same_parts(values, places)].tolist()
    notes = []
    if counters:
        notes.append(
            f"Every row has a number of its own, of {n:,} in a row, in {listed(counters)}: if it "
            "only counts rows, use --drop or --id."
        )
    if constants:
        notes.append(f"The same value in every row, of no use to a model: {listed(constants)}.")
    if copies:
        notes.append(
            f"The same as the target in every row, but for the names: {listed(copies)}. If new "
            "rows do not have it, the error is too good: use --drop."
        )
    return notes


def _numbers(column: pd.Series) -> NDArray[np.float64]:
    """A column as numbers, a number for each text; what is missing in numbers is like nothing."""
    if cells.is_text(column.dtype):
        found = pd.factorize(cells.texts(column, ""))[0]
    elif pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        found = pd.factorize(column)[0]
    return found.astype(np.float64)


def _same_parts(values: NDArray[np.float64], places: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Which columns have one value in all rows of each class, and another in each class."""
    firsts = values[[int(np.argmax(places == k)) for k in range(int(places.max()) + 1)]]
    same = (values == firsts[places]).all(axis=0)
    different = (np.diff(np.sort(firsts, axis=0), axis=0) != 0).all(axis=0)
    return np.asarray(same & different)
