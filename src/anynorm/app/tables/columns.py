"""What each column of a frame is: numbers, truth values or categories, and what to leave out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anynorm.app.tables import cells
from anynorm.app.tables.errors import TableError, listed
from anynorm.app.tables.number_frame import NumberFrame
from anynorm.app.tables.svmlight import SparseFrame

# A column is "number", "boolean", or the list of its categories.
Kinds = dict[str, str | list[str]]
MISSING_LEVEL = "(missing)"
_FEW_LEVELS = 10  # categories that a column may have however few its rows are


def kinds_of(frame: pd.DataFrame, max_levels: int) -> tuple[Kinds, list[str]]:
    """Return what each column is, without those that are left out, and notes on these."""
    kinds: Kinds = {}
    dates, empty = [], []
    filled = frame.notna().any().to_numpy()
    for name, kind, some in zip(frame.columns, frame.dtypes, filled, strict=True):
        if not some:
            empty.append(name)
        elif cells.is_text(kind):
            values = cells.texts(frame[name])
            levels = cells.distinct(values)
            if cells.are_dates(levels):
                dates.append(name)
            else:
                kinds[name] = _text_kind(frame[name], values, levels, max_levels)
        elif pd.api.types.is_bool_dtype(kind):
            kinds[name] = "boolean"
        elif pd.api.types.is_complex_dtype(kind):
            raise TableError("complex numbers cannot be used; drop the column.", column=name)
        elif pd.api.types.is_numeric_dtype(kind):
            kinds[name] = "number"
        else:
            dates.append(name)
    notes = [f"No value at all, left out: {listed(empty)}."] if empty else []
    if dates:
        notes.append(
            f"Dates and times, left out: {listed(dates)}. Make numbers of them, such as days since "
            "the first, to use them."
        )
    if not kinds:
        raise TableError(f"no column can be used as a feature. {' '.join(notes)}")
    return kinds, notes


def _text_kind(
    column: pd.Series, values: cells.Texts, levels: list[str], max_levels: int
) -> str | list[str]:
    """Return what a column of objects is, after checking that it has few categories."""
    if not isinstance(column.dtype, pd.CategoricalDtype):
        held = pd.api.types.infer_dtype(column, skipna=True)
        if held == "boolean":
            return "boolean"
        if held in ("integer", "floating", "decimal", "mixed-integer-float"):
            return "number"
    if None in values.tolist():
        levels = [*levels, MISSING_LEVEL]
    if len(levels) > max_levels or len(levels) > max(_FEW_LEVELS, len(values) / 2):
        what = "names of rows or free text" if len(levels) > len(values) / 2 else "many categories"
        raise TableError(
            f"{len(levels)} different texts in {len(values)} rows ({listed(levels, limit=3)}): "
            f"{what}. Leave the column out (--drop), use it as names of the rows (--id), or join "
            "its rare values.",
            column=str(column.name),
        )
    return levels


def numbers_of(frame: pd.DataFrame, names: Sequence[str]) -> NDArray[np.float64]:
    """Return columns of numbers and truth values as a matrix, NaN where a value is missing."""
    part = frame[list(names)]
    if all(isinstance(kind, np.dtype) and kind.kind in "fiub" for kind in part.dtypes):
        return _finite(part.to_numpy(dtype=np.float64), part)
    out = np.empty(part.shape)
    for k, name in enumerate(names):
        out[:, k] = _number_column(part[name])
    return _finite(out, part)


def _finite(out: NDArray[np.float64], part: pd.DataFrame) -> NDArray[np.float64]:
    wrong = np.argwhere(np.isinf(out))
    if len(wrong):
        row, column = wrong[0]
        raise TableError(
            f"the value in row {row + 1} is infinite. Give a finite number, or leave it missing.",
            column=part.columns[column],
        )
    return out


def _number_column(column: pd.Series) -> Any:
    if not cells.is_text(column.dtype):
        if pd.api.types.is_numeric_dtype(column.dtype) or pd.api.types.is_bool_dtype(column.dtype):
            return column.to_numpy(dtype=np.float64, na_value=np.nan)
        raise TableError(
            f"the column has the type {column.dtype}, but numbers are expected.", column=column.name
        )
    values = cells.texts(column)
    levels = cells.distinct(values)
    truth = cells.truth_table(levels)
    if truth is not None:
        return cells.mapped(values, truth)
    numbers, strays = cells.number_table(levels)
    if strays:
        row = next(k for k, value in enumerate(values) if value in strays)
        raise TableError(
            f"{values[row]!r} in row {row + 1} is not a number, as in the data the model learnt "
            "from. Correct it, or leave it missing.",
            column=str(column.name),
        )
    return cells.mapped(values, numbers)


def levels_of(frame: pd.DataFrame, names: Sequence[str]) -> cells.Texts:
    """Return columns of categories as a matrix of text."""
    part = frame[list(names)]
    if all(isinstance(kind, np.dtype) and kind.kind == "O" for kind in part.dtypes):
        return cells.texts(part, MISSING_LEVEL)
    # A common type of all columns could change how numbers are written.
    return np.column_stack([cells.texts(part[name], MISSING_LEVEL) for name in names])


def match_columns(
    frame: Any, names: Sequence[str], known: Collection[str] = ()
) -> tuple[Any, list[str]]:
    """Return the columns of these names, in this order, and notes on columns not used.

    Parameters
    ----------
    frame : pandas.DataFrame, SparseFrame or NumberFrame
    names : sequence of str
        The columns that a model needs.
    known : collection of str
        Columns that the model knows and does not need: no note is made of them.

    Returns
    -------
    frame : as given
    notes : list of str

    Raises
    ------
    TableError
        Where columns are missing; it says which. (In a `SparseFrame` these are zero.)

    Examples
    --------
    >>> import pandas as pd
    >>> from anynorm import tables
    >>> given = pd.DataFrame({"b": [1], "c": [2], "a": [3]})
    >>> frame, notes = tables.match_columns(given, ["a", "b"])
    >>> list(frame.columns), notes
    (['a', 'b'], ["1 column that the model does not use: 'c'."])
    """
    names = [str(name) for name in names]
    if isinstance(frame, NumberFrame) and frame.has_names(names):
        return frame, []
    there = {str(name) for name in frame.columns}
    needed = set(names)
    extra = [str(name) for name in frame.columns if str(name) not in needed]
    notes = []
    unknown = [name for name in extra if name not in known]
    if unknown:
        plural = "column" if len(unknown) == 1 else "columns"
        notes.append(f"{len(unknown):,} {plural} that the model does not use: {listed(unknown)}.")
    if isinstance(frame, SparseFrame):
        return frame.named(names), notes
    missing = [name for name in names if name not in there]
    if missing:
        plural = "column is" if len(missing) == 1 else f"of {len(names):,} columns are"
        hint = _spelled_otherwise(missing, extra)
        raise TableError(
            f"{len(missing):,} {plural} missing that the model needs: "
            f"{listed(missing, limit=10)}.{hint}"
        )
    if list(frame.columns) != names:
        frame = frame[names]
    return frame, notes


def _spelled_otherwise(missing: list[str], extra: list[str]) -> str:
    """Say which columns differ from missing ones in capitals, blanks and signs alone."""
    plain = {_plain(name): name for name in extra}
    pairs = [f"{plain[_plain(x)]!r} for {x!r}" for x in missing if _plain(x) in plain]
    return f" Spelled otherwise: {listed(pairs, limit=3, quote=False)}." if pairs else ""


def _plain(name: str) -> str:
    return "".join(each for each in name.lower() if each.isalnum())
