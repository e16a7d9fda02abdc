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
_MARKED = re.compile(r"([+-]?)\s*([$€£¥₹]?)\s*([+-]?[\d.,]*\d[\d.,]*)\s*([%$€£¥₹]?)")
_ENGLISH = frozenset("$£")  # where these stand, commas group thousands
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


def texts(cells: Any, missing: str | None = None) -> Texts:
    """Return cells, of a column or of many, as text without outer blanks, `missing` for gaps.

    Whole numbers look the same in columns of integers and of floats, so that categories written
    as numbers are recognised in either.
    """
    values = cells.to_numpy(dtype=object)
    stripped = _Stripped()
    out = np.empty(values.size, dtype=object)
    out[:] = [
        stripped[x] if type(x) is str else missing if _is_gap(x) else _other_text(x)
        for x in values.ravel().tolist()
    ]
    return out.reshape(values.shape)


class _Stripped(dict[str, str]):
    """Texts without outer blanks; most occur many times."""

    def __missing__(self, text: str) -> str:
        self[text] = text.strip()
        return self[text]


def _is_gap(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or value != value


def _other_text(value: Any) -> str:
    if not isinstance(value, float):
        return str(value).strip()
    return str(int(value)) if np.isfinite(value) and value == int(value) else repr(float(value))


def distinct(values: Texts) -> list[str]:
    """Return the distinct texts, sorted, without the missing ones."""
    return sorted(set(values.tolist()) - {None})


def mapped(values: Texts, table: dict[str, float]) -> NDArray[np.float64]:
    """Return the numbers that the texts stand for, NaN for those that are not in the table."""
    return np.array([table.get(value, np.nan) for value in values.tolist()], dtype=np.float64)


def truth_table(levels: list[str]) -> dict[str, float] | None:
    """Return 1 for true and 0 for false, or None if there are other texts."""
    if not all(each.lower() in _TRUTH for each in levels):
        return None
    return {each: _TRUTH[each.lower()] for each in levels}


def number_table(levels: list[str]) -> tuple[dict[str, float], list[str]]:
    """Return the texts that are numbers with these, and the others."""
    numbers = {each: _to_number(each) for each in levels}
    strays = [each for each, number in numbers.items() if number is None]
    return {each: number for each, number in numbers.items() if number is not None}, strays


def _to_number(text: str) -> float | None:
    if "_" in text:  # Python's digits may be grouped by them; a file's are not
        return None
    try:
        return float(text)
    except ValueError:
        return None


def are_dates(levels: list[str]) -> bool:
    """Whether every text is a date, perhaps with a time."""
    return all(_DATE.fullmatch(each) for each in levels)


def meant_as_numbers(levels: list[str], strays: list[str]) -> bool:
    """Whether a column is of numbers, though some cells are not: many different ones, mostly."""
    numeric = len(levels) - len(strays)
    return numeric > _FEW and numeric >= len(strays)


def marked_table(levels: list[str], delimiter: str) -> tuple[dict[str, float], str] | None:
    """Return numbers with a percent sign or a currency, and which; None for other texts.

    12.3% is 12.3: all numbers of a column have the sign, but for zeros.  $1,200 is 1200.
    """
    bare: dict[str, str] = {}
    marks: set[str] = set()
    for each in levels:
        found = _MARKED.fullmatch(each)
        mark = "" if found is None else found[2] + found[4]
        if found is None or len(mark) > 1 or (found[1] and found[3][0] in "+-"):
            return None
        if not mark and _to_number(each) != 0.0:
            return None
        bare[each] = found[1] + found[3]
        marks.add(mark)
    marks.discard("")
    if len(marks) != 1:
        return None
    mark = marks.pop()
    what = "a percent sign" if mark == "%" else f"the currency {mark}"
    numbers, strays = number_table(sorted(set(bare.values())))
    if strays:
        try:
            commas = comma_table(sorted(set(bare.values())), delimiter, english=mark in _ENGLISH)
        except ValueError as ambiguous:
            given = next(each for each, number in bare.items() if number == str(ambiguous))
            raise ValueError(given) from None
        if commas is None:
            return None
        numbers, what = commas[0], f"{what} and {commas[1]}"
    return {each: numbers[number] for each, number in bare.items()}, what


def comma_table(
    levels: list[str], delimiter: str, *, english: bool = False
) -> tuple[dict[str, float], str] | None:
    """Return numbers with decimal commas or grouped thousands, and which; None for other texts.

    '1,234' may be either, unless semicolons separate the fields (so they do where commas are
    decimal), or the numbers are written as in English: ValueError.
    """
    if not any("," in each for each in levels) or not all(any(map(str.isdigit, x)) for x in levels):
        return None
    decimal = all(_DECIMAL_COMMA.fullmatch(each) for each in levels)
    grouped = all(_THOUSANDS.fullmatch(x) or _to_number(x) is not None for x in levels)
    if not decimal and not grouped:
        return None
    if decimal and grouped and delimiter != ";" and not english:
        raise ValueError(next(each for each in levels if "," in each))
    decimal = decimal and not (english and grouped)
    if decimal:
        plain = {each: each.replace(".", "").replace(",", ".") for each in levels}
    else:
        plain = {each: each.replace(",", "") for each in levels}
    what = "decimal commas" if decimal else "commas between thousands"
    return {each: float(text) for each, text in plain.items()}, what
