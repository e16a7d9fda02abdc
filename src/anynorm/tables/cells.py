"""What the cells of a text column are: numbers in disguise, truth values, dates, or text."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Texts = NDArray[np.object_]

_DECIMAL_COMMA = re.compile(r"[+-]?(\d{1,3}(\.\d{3})+|\d*)(,\d*)?([eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}|\d{1,2}[-/]\d{1,2}[-/]\d{2})"
    r"([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s*(Z|[+-]\d{2}:?\d{2}|[AaPp][Mm])?)?"
)
_TRUTH = {"true": 1.0, "false": 0.0}
# What people write into a column of numbers where there is none.
GAPS = frozenset(
    ["?", "-", "--", ".", "..", "none", "na", "n.a.", "n.a", "nil", "missing", "unknown", "nd"]
)
_FEW = 10  # distinct numbers in a column of categories such as 0, 1, 2, 3+


def is_text(kind: Any) -> bool:
    """Whether a column of this type may hold anything but numbers, truth values and times."""
    if isinstance(kind, np.dtype):
        return kind.kind == "O"
    if isinstance(kind, pd.CategoricalDtype):
        return True
    return pd.api.types.is_string_dtype(kind)


def texts(column: pd.Series) -> Texts:
    """Return the cells as text without outer blanks, None where one is missing.

    Whole numbers look the same in columns of integers and of floats, so that categories written
    as numbers are recognised in either.
    """
    missing = column.isna().to_numpy()
    if pd.api.types.is_float_dtype(column.dtype):
        values = [_number_text(value) for value in column.to_numpy(dtype=float, na_value=np.nan)]
    else:
        values = [_cell_text(value) for value in column.astype(object)]
    out = np.array([*values, None], dtype=object)[:-1]
    out[missing] = None
    return out


def _cell_text(value: Any) -> str:
    return _number_text(value) if isinstance(value, float) else str(value).strip()


def _number_text(value: float) -> str:
    return str(int(value)) if np.isfinite(value) and value == int(value) else repr(float(value))


def distinct(values: Texts) -> list[str]:
    """Return the distinct texts, sorted, without the missing ones."""
    return sorted({value for value in values if value is not None})


def as_truth(values: Texts) -> NDArray[np.float64] | None:
    """Return 1 for true, 0 for false and NaN for missing, or None for other texts."""
    if not all(value.lower() in _TRUTH for value in distinct(values)):
        return None
    return _mapped(values, {each: _TRUTH[each.lower()] for each in distinct(values)})


def are_dates(values: Texts) -> bool:
    """Whether every text is a date, perhaps with a time."""
    return all(_DATE.fullmatch(value) for value in distinct(values))


def as_numbers(values: Texts) -> tuple[NDArray[np.float64], list[str]]:
    """Return the numbers, NaN for the rest, and the distinct texts that are none."""
    numbers = {value: _to_number(value) for value in distinct(values)}
    strays = [value for value, number in numbers.items() if number is None]
    return _mapped(values, {each: x for each, x in numbers.items() if x is not None}), strays


def _to_number(text: str) -> float | None:
    if "_" in text:  # Python's digits may be grouped by them; a file's are not
        return None
    try:
        return float(text)
    except ValueError:
        return None


def meant_as_numbers(values: Texts, strays: list[str]) -> bool:
    """Whether a column is of numbers, though some cells are not: many different ones, mostly."""
    levels = distinct(values)
    numeric = len(levels) - len(strays)
    return numeric > _FEW and numeric >= len(strays)


def with_commas(values: Texts, delimiter: str) -> tuple[NDArray[np.float64], str] | None:
    """Return numbers with decimal commas or grouped thousands, and which; None for other texts.

    '1,234' may be either, unless semicolons separate the fields (so they do where commas are
    decimal): ValueError.
    """
    levels = distinct(values)
    if not any("," in each for each in levels) or not all(any(map(str.isdigit, x)) for x in levels):
        return None
    decimal = all(_DECIMAL_COMMA.fullmatch(each) for each in levels)
    grouped = all(_THOUSANDS.fullmatch(x) or _to_number(x) is not None for x in levels)
    if not decimal and not grouped:
        return None
    if decimal and grouped and delimiter != ";":
        raise ValueError(next(each for each in levels if "," in each))
    if decimal:
        to_plain, what = (lambda x: x.replace(".", "").replace(",", ".")), "decimal commas"
    else:
        to_plain, what = (lambda x: x.replace(",", "")), "commas between thousands"
    return _mapped(values, {each: float(to_plain(each)) for each in levels}), what


def _mapped(values: Texts, table: dict[str, float]) -> NDArray[np.float64]:
    return np.array([table.get(value, np.nan) for value in values], dtype=np.float64)
