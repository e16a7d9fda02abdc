"""A file's cells before anybody says what the columns are for."""

from __future__ import annotations

import io
import json
import pathlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anynorm.app.tables import cells
from anynorm.app.tables.delimited import read_records
from anynorm.app.tables.errors import TableError, counted, listed
from anynorm.app.tables.files import STANDARD_INPUT, read_bytes, read_text


@dataclass
class Raw:
    """The cells of a file: a row for each example, and where in the file each of them stands."""

    source: pathlib.Path
    frame: pd.DataFrame
    lines: NDArray[np.int64] | None = None
    row_names: cells.Texts | None = None
    delimiter: str = ","
    transposed: bool = False
    lines_of_features: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def fail(self, message: str, column: str, row: int) -> NoReturn:
        """Raise an error about one cell, with its place in the file."""
        line = None
        if self.transposed:
            line = self.lines_of_features.get(column)
            message = f"in row {column!r}: {message}"
            column = str(self.row_names[row]) if self.row_names is not None else column
        elif self.lines is not None:
            line = int(self.lines[row])
        else:
            message = f"in row {row + 1}: {message}"
        raise TableError(message, source=self.source, line=line, column=column)

    def take(self, keep: NDArray[Any]) -> None:
        """Keep these rows alone."""
        self.frame = self.frame.iloc[keep]
        if self.row_names is not None:
            self.row_names = self.row_names[keep]
        if self.lines is not None:
            self.lines = self.lines[keep]


def load(
    path: pathlib.Path, kind: str, as_text: Collection[str] | None, *, first_as_text: bool = False
) -> Raw:
    """Return the cells of a file; columns in `as_text` (None: all) stay text."""
    if kind in ("parquet", "feather"):
        return _typed(path, *_columns_of(path, kind))
    if kind == "jsonl":
        return _typed(path, *_objects(path))
    if kind == "svmlight":
        raise TableError("labels are read from tables, not from svmlight files.")
    return _delimited(path, kind, as_text, first_as_text)


def _delimited(
    path: pathlib.Path, kind: str, as_text: Collection[str] | None, first_as_text: bool
) -> Raw:
    records = read_records(path, kind)
    first = records.names[:1] if first_as_text else []
    frame = records.frame(None if as_text is None else {"", *first, *as_text})
    names = records.names
    raw = Raw(path, frame, records.lines, delimiter=records.delimiter, notes=records.notes)
    if len(names) > 1 and not names[-1]:
        filled = np.flatnonzero(frame.iloc[:, -1].notna().to_numpy())
        if len(filled):
            raise TableError(
                f"the last of {len(names)} columns has no name but values. Name it in the first "
                "line, or remove a separator at the end of this line.",
                line=int(records.lines[filled[0]]),
            )
        raw.frame = frame = frame.iloc[:, :-1]
    if not names[0]:
        raw.row_names = cells.texts(frame.iloc[:, 0])
        raw.frame = frame.iloc[:, 1:]
        raw.notes.append("The first column has no name: taken as the names of the rows.")
    return raw


def _columns_of(path: pathlib.Path, kind: str) -> tuple[pd.DataFrame, None]:
    """Return the frame of a Parquet or Feather file, which has no lines."""
    name = kind.capitalize()
    given = io.BytesIO(read_bytes(path)) if path == STANDARD_INPUT else path
    try:
        if kind == "feather":
            return pd.read_feather(given), None
        return pd.read_parquet(given, engine="pyarrow"), None
    except ImportError:
        raise TableError(f"{name} files need pyarrow: pip install 'anynorm[cli]'.") from None
    except (OSError, ValueError) as error:  # pyarrow's errors are of these
        reason = str(error).splitlines()[0][:200]
        raise TableError(f"this is no {name} file that can be read ({reason}).") from None


def _objects(path: pathlib.Path) -> tuple[pd.DataFrame, NDArray[np.int64] | None]:
    """Return the frame of JSON objects, one in each line or in one list, and their lines."""
    text, _ = read_text(path)
    if text.lstrip().startswith("["):
        found, lines = _parsed_json(text, None), None
        if not isinstance(found, list):
            raise TableError("a list of objects is expected, or an object in each line.")
    else:
        filled = [(k, line) for k, line in enumerate(text.split("\n"), start=1) if line.strip()]
        lines = np.array([k for k, _ in filled], dtype=np.int64)
        found = [_parsed_json(line, k) for k, line in filled]
    for k, each in enumerate(found):
        if not isinstance(each, dict):
            line = None if lines is None else int(lines[k])
            raise TableError(
                f'object {k + 1} is none: {{"name": value, ...}} is expected for each row.',
                line=line,
            )
    return pd.DataFrame(found), lines


def _parsed_json(text: str, line: int | None) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = error.lineno if line is None else line
        raise TableError(f"this is no JSON ({error.msg}).", line=where) from None


def _typed(path: pathlib.Path, frame: pd.DataFrame, lines: NDArray[np.int64] | None) -> Raw:
    """Return the cells of a file whose columns have types."""
    raw = Raw(path, frame, lines)
    if not isinstance(frame.index, pd.RangeIndex):
        if any(name is not None for name in frame.index.names):
            raw.frame = frame = frame.reset_index()
        else:
            raw.row_names = cells.texts(frame.index.to_series())
    frame.columns = pd.Index([str(name) for name in frame.columns], dtype=object)
    double = frame.columns[frame.columns.duplicated()]
    if len(double):
        raise TableError(f"two columns have the name {double[0]!r}.")
    if not len(frame):
        raise TableError("the file has no rows.")
    for name in frame.columns[[cells.is_text(kind) for kind in frame.dtypes]]:
        values = frame[name].dropna()
        odd = next((v for v in values if isinstance(v, list | dict | np.ndarray | bytes)), None)
        if odd is not None:
            raise TableError(
                f"the cells hold {type(odd).__name__}, not numbers or text. Drop the column, or "
                "make a column of each part.",
                column=name,
            )
    return raw


def transpose(raw: Raw, as_text: Collection[str]) -> Raw:
    """Return the cells of a matrix that has a row for each feature and a column for each sample."""
    frame, names = raw.frame, raw.row_names
    if names is None:
        if frame.shape[1] < 2:
            raise TableError(
                "with --transpose the first column holds the names of the features and each other "
                "column a sample; there is one column only.",
                source=raw.source,
            )
        names, frame = cells.texts(frame.iloc[:, 0]), frame.iloc[:, 1:]
    else:
        raw.notes = [note for note in raw.notes if "has no name" not in note]
    features = _feature_names(names, raw)
    frame = _without_descriptions(frame, raw)
    samples = np.array(frame.columns, dtype=object)
    places = {} if raw.lines is None else dict(zip(features, raw.lines.tolist(), strict=True))
    out = Raw(raw.source, frame, None, samples, raw.delimiter, True, places, raw.notes)
    if all(pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes):
        out.frame = pd.DataFrame(frame.to_numpy(dtype=np.float64).T, columns=features)
        return out
    texts = np.array([cells.texts(frame[name]) for name in samples], dtype=object)
    plain = np.array([name not in as_text for name in features])
    try:
        numbers = texts[:, plain].astype(np.float64)
    except ValueError:  # a row of text, or a cell that is wrong: looked at one by one
        out.frame = pd.DataFrame(texts, columns=features)
        return out
    data = pd.DataFrame(numbers, columns=features[plain])
    for k in np.flatnonzero(~plain):
        data[features[k]] = texts[:, k]
    out.frame = data[list(features)]
    return out


def _feature_names(names: cells.Texts, raw: Raw) -> pd.Index:
    """Return one name for each row; probes of the same gene are numbered."""
    nameless = [k for k, name in enumerate(names) if not name]
    if nameless:
        line = None if raw.lines is None else int(raw.lines[nameless[0]])
        raise TableError(
            "this row has no name in the first column. Name every feature.",
            source=raw.source,
            line=line,
        )
    seen: dict[str, int] = {}
    taken = set(names)
    out, repeated = [], []
    for name in names:
        unique, count = name, seen.get(name, 0) + 1
        if count > 1:
            repeated.append(name)
            while (unique := f"{name}.{count}") in taken:
                count += 1
            taken.add(unique)
        seen[name] = count
        out.append(unique)
    if repeated:
        raw.notes.append(
            f"{counted(len(repeated), 'row')} had the name of an earlier one and got a number, "
            f"as {listed([f'{repeated[0]}.2'])}: {listed(dict.fromkeys(repeated))}."
        )
    return pd.Index(out, dtype=object)


def _without_descriptions(frame: pd.DataFrame, raw: Raw) -> pd.DataFrame:
    """Leave out columns of text among columns of numbers, as Description in GCT files."""
    text = list(frame.columns[[cells.is_text(kind) for kind in frame.dtypes]])
    if not text or 2 * len(text) > frame.shape[1]:
        return frame
    words = []
    for name in text:
        values = cells.texts(frame[name])
        numbers, _ = cells.number_table(cells.distinct(values))
        if np.isfinite(cells.mapped(values, numbers)).mean() < 0.5:
            words.append(name)
    if words:
        raw.notes.append(f"Not a sample but text, left out: {listed(words)}.")
    return frame.drop(columns=words)


def tidy(raw: Raw, keep_text: Collection[str]) -> None:
    """Turn text that means numbers or truth values into these, and refuse what is neither."""
    keep = set(keep_text)
    said: dict[str, list[str]] = {}
    changed: dict[str, Any] = {}
    for name, kind in zip(raw.frame.columns, raw.frame.dtypes, strict=True):
        if cells.is_text(kind) and not isinstance(kind, pd.CategoricalDtype):
            values = cells.texts(raw.frame[name])
            changed[name] = values if name in keep else _converted(raw, name, values, said)
    if changed:  # all at once: thousands of columns set one by one are slow
        columns = {x: changed[x] if x in changed else raw.frame[x].array for x in raw.frame.columns}
        raw.frame = pd.DataFrame(columns, index=raw.frame.index)
    raw.notes += [f"{what} {listed(names)}." for what, names in said.items()]
    _check_finite(raw)


def _converted(raw: Raw, name: str, values: cells.Texts, said: dict[str, list[str]]) -> Any:
    """Return what a column of text is; `said` collects the columns by what was done to them."""
    levels = cells.distinct(values)
    if not levels:
        return cells.mapped(values, {})
    truth = cells.truth_table(levels)
    if truth is not None:
        return pd.array(cells.mapped(values, truth), dtype="boolean")
    numbers, strays = cells.number_table(levels)
    if not strays:
        return cells.mapped(values, numbers)
    found = _written_otherwise(raw, name, values, levels)
    if found is not None:
        said.setdefault(f"Numbers with {found[1]}:", []).append(name)
        return cells.mapped(values, found[0])
    mixed = len(strays) < len(levels)
    if mixed and all(each.lower() in cells.GAPS for each in strays):
        said.setdefault(f"{listed(strays)} counts as missing in", []).append(name)
        return cells.mapped(values, numbers)
    # In a matrix of features x samples a row is of numbers or of text.
    if cells.meant_as_numbers(levels, strays) or (raw.transposed and mixed):
        wrong = set(strays)
        row = next(k for k, value in enumerate(values) if value in wrong)
        raw.fail(
            f"{values[row]!r} is not a number, as the other cells are. Correct it, leave the cell "
            "empty if the value is missing, or drop the column.",
            name,
            row,
        )
    return values


def _written_otherwise(
    raw: Raw, name: str, values: cells.Texts, levels: list[str]
) -> tuple[dict[str, float], str] | None:
    """Return numbers with commas, percent signs or currencies, and which; None for other texts."""
    filled = [each for each in levels if each.lower() not in cells.GAPS]
    if not filled:
        return None
    try:
        return cells.comma_table(levels, raw.delimiter) or cells.marked_table(filled, raw.delimiter)
    except ValueError as ambiguous:
        cell = str(ambiguous)
        raw.fail(
            f"{cell!r} may mean {cell.replace(',', '.')} or {cell.replace(',', '')}. Write numbers "
            "without commas, or separate the fields by ';' if commas are decimal.",
            name,
            values.tolist().index(cell),
        )


def _check_finite(raw: Raw) -> None:
    numbers = raw.frame.select_dtypes(include="float")
    if numbers.shape[1] == 0:
        return
    wrong = np.argwhere(np.isinf(numbers.to_numpy(dtype=np.float64, na_value=np.nan)))
    if len(wrong):
        row, column = wrong[0]
        raw.fail(
            "the value is infinite. Give a finite number, or leave the cell empty if the value is "
            "missing.",
            numbers.columns[column],
            int(row),
        )
