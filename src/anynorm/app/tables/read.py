"""Data files to features, labels, names and groups."""

from __future__ import annotations

import fnmatch
import os
import pathlib
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anynorm.app.tables import cells, samples, suspects
from anynorm.app.tables.errors import TableError, counted, errors_in, near_names
from anynorm.app.tables.files import existing, format_of, shown
from anynorm.app.tables.raw import Raw, load, tidy
from anynorm.app.tables.raw import transpose as transposed
from anynorm.app.tables.svmlight import SparseFrame, read_svmlight
from anynorm.app.tables.target import alike_labels, as_labels, check_classes, positive_label

_COUNTERS = frozenset(
    ["id", "index", "idx", "row", "rownames", "no", "nr", "number", "#", "unnamed: 0"]
)


@dataclass
class Table:
    """What `read_table` found in a file.

    Attributes
    ----------
    features : pandas.DataFrame or SparseFrame
        The feature columns alone, a row for each example. (A `SparseFrame`, from svmlight files,
        has ``columns``, ``shape``, ``len`` and ``iloc`` for rows as a data frame has.)
    target : ndarray or None
        The labels, integers or text.
    ids : ndarray of str
        The names of the rows; their numbers, from 1, where they have none.
    groups : ndarray or None
        The group of each row.
    positive : label or None
        The label that was asked for as the positive one.
    notes : list of str
        In plain language, what was left out, converted and joined.
    source : pathlib.Path
    target_name, id_name : str or None
        The columns they are from.
    absent : list of str
        Columns that were named but are not there, which is an error unless for prediction.
    """

    features: pd.DataFrame | SparseFrame
    target: NDArray[Any] | None
    ids: NDArray[np.str_]
    groups: NDArray[Any] | None
    positive: Any
    source: pathlib.Path
    target_name: str | None = None
    id_name: str | None = None
    notes: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.features)


def read_table(
    path: str | os.PathLike[str],
    *,
    target: str | None = None,
    id: str | None = None,
    group: str | None = None,
    drop: Collection[str] = (),
    labels: str | os.PathLike[str] | None = None,
    transpose: bool = False,
    positive: str | int | None = None,
    format: str | None = None,
    text: Collection[str] = (),
    for_prediction: bool = False,
) -> Table:
    r"""Read a data file: CSV, TSV, Excel, Parquet, Feather, JSON lines or svmlight.

    Parameters
    ----------
    path : path
        The file; ``-`` is standard input. Its suffix says what it is (.csv, .tsv, .txt, .xlsx,
        .parquet, .feather, .jsonl, .svmlight, .libsvm; text also with .gz, .bz2 or .xz).
        Separators (comma, semicolon, tab, bar) and encodings are recognised.
    target : str, optional
        The column of class labels. Rows without a label are left out. svmlight files have their
        labels at the beginning of each line.
    id : str, optional
        The column of the rows' names. A first column without a name is taken as such.
    group : str, optional
        The column that says which rows belong together (a patient, a batch). ``"qid"`` in
        svmlight files.
    drop : collection of str
        Columns to leave out, by name or by pattern (``"meta_*"``).
    labels : path, optional
        A second file with the labels: a line for each sample, joined by the samples' names.
    transpose : bool
        The file has a row for each feature and a column for each sample, as expression matrices.
    positive : str or int, optional
        The positive label. Of more than two classes the others become one.
    format : {"csv", "tsv", "excel", "parquet", "feather", "jsonl", "svmlight"}, optional
        What the file is, where the suffix does not say so; standard input is CSV.
    text : collection of str
        Columns that are categories though they look like numbers, as postal codes.
    for_prediction : bool
        Whether target, id, group and dropped columns may be missing, rows without a label stay
        (their label is the empty text), and one class is enough.

    Returns
    -------
    table : Table

    Raises
    ------
    TableError
        Says which file, line and column is wrong, and what to do.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from anynorm import tables
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name, "patients.csv")
    >>> _ = file.write_text("name;dose;ill\nAda;1,5;yes\nBob;0,5;no\nCyd;;no\n")
    >>> table = tables.read_table(file, target="ill", id="name")
    >>> table.features["dose"].tolist(), table.target.tolist(), table.ids.tolist()
    ([1.5, 0.5, nan], ['yes', 'no', 'no'], ['Ada', 'Bob', 'Cyd'])
    >>> table.notes
    ['The fields are separated by semicolons.', "Numbers with decimal commas: 'dose'."]
    >>> tables.read_table(file, target="il")
    Traceback (most recent call last):
    ...
    anynorm.app.tables.errors.TableError: ...there is no column 'il'. Did you mean 'ill'?
    """
    given = existing(path)
    source, kind = shown(given), format_of(given, format)
    drop = [drop] if isinstance(drop, str) else list(drop)
    if kind == "svmlight":
        refused: dict[str, Any] = {"labels": labels, "transpose": transpose}
        if not for_prediction:
            refused |= {"id": id, "drop": drop, "text": text}
        for name, value in refused.items():
            if value:
                raise TableError(f"--{name} has no meaning for svmlight files.", source=source)
        return _from_svmlight(given, target, group, positive, for_prediction)
    roles = {"target": target, "id": id, "group": group}
    named = [name for name in (target, id, group) if name is not None]
    # Names of samples keep their zeros: the first column may be that of the names to join by.
    with errors_in(source):
        raw = load(given, kind, [*named, *text], first_as_text=labels is not None or transpose)
    raw.source = source
    if transpose:
        raw = transposed(raw, [*named, *text])
    if labels is not None:
        file = existing(labels)
        with errors_in(shown(file)):
            other = load(file, format_of(file, None), None)
        other.source = shown(file)
        target = samples.join(raw, other, id, target, group, keep_all=for_prediction)
        roles = {
            "target": target,
            "id": None if id not in raw.frame.columns else id,
            "group": group,
        }
    absent = _check_roles(raw, roles, drop, text, for_prediction)
    if drop:
        raw.frame = raw.frame.drop(columns=_dropped(raw, drop, for_prediction))
    table = _assembled(raw, roles, text, positive, for_prediction)
    table.absent += absent
    return table


def _check_roles(
    raw: Raw, roles: dict[str, str | None], drop: list[str], text: Collection[str], lenient: bool
) -> list[str]:
    """Check that columns that were named exist and have one role each; return those that do not."""
    known = list(raw.frame.columns)
    absent = []
    for role, name in roles.items():
        if name is None:
            continue
        if name not in known and lenient:
            roles[role] = None
            absent.append(name)
        elif name not in known:
            hint = ""
            if raw.transposed:
                hint = (
                    " (With --transpose it is a row's name; --labels FILE takes them from a file.)"
                )
            elif not cells.number_table(known)[1]:
                hint = " Is the line of names missing?"
            elif name in {str(each) for each in raw.frame.iloc[:, 0]}:
                hint = (
                    " It is in the first column: a matrix of features x samples needs --transpose."
                )
            raise TableError(
                f"there is no column {name!r}. {near_names(name, known)}{hint}", source=raw.source
            )
        if role != "target" and name is not None and name == roles["target"]:
            raise TableError(
                f"the column is the target; it cannot be the {role} too.",
                source=raw.source,
                column=name,
            )
        if name in drop and not lenient:
            raise TableError(
                f"the column is the {role} and dropped.", source=raw.source, column=name
            )
    for name in text:
        if name not in known and not lenient:
            raise TableError(
                f"there is no column {name!r}. {near_names(name, known)}", source=raw.source
            )
    return absent


def _dropped(raw: Raw, drop: list[str], lenient: bool) -> list[str]:
    columns = list(raw.frame.columns)
    out: list[str] = []
    for pattern in drop:
        names = [pattern] if pattern in columns else fnmatch.filter(columns, pattern)
        if not names and not lenient:
            raise TableError(
                f"there is no column {pattern!r} to drop. {near_names(pattern, columns)}",
                source=raw.source,
            )
        out += names
    return list(dict.fromkeys(out))


def _assembled(
    raw: Raw,
    roles: dict[str, str | None],
    text: Collection[str],
    positive: str | int | None,
    for_prediction: bool,
) -> Table:
    """Take the columns with a role out, and make the rest features."""
    target, id, group = roles["target"], roles["id"], roles["group"]
    values = None
    if target is not None:
        values = cells.texts(raw.frame[target])
        if not for_prediction:
            keep = np.flatnonzero([value is not None for value in values])
            if not len(keep):
                raise TableError("no row has a label.", source=raw.source, column=target)
            if len(keep) < len(values):
                left = len(values) - len(keep)
                raw.notes.append(f"{counted(left, 'row')} without a label left out.")
                raw.take(keep)
                values = values[keep]
    ids = _ids(raw, id)
    if group is not None and group == id and not for_prediction and _all_differ(ids):
        raise TableError(
            "the group names every row differently, as the id does: no two rows are kept together. "
            "Name the column that says what the rows belong to, or leave the group out.",
            source=raw.source,
            column=group,
        )
    groups = None if group is None else _groups(raw, group)
    used = [name for name in dict.fromkeys((target, id, group)) if name is not None]
    raw.frame = raw.frame.drop(columns=used).reset_index(drop=True)
    for name in text:
        if name in raw.frame.columns:  # numbers in Parquet, which has types of its own
            raw.frame[name] = cells.texts(raw.frame[name])
    tidy(raw, text)
    if not for_prediction:
        _leave_out_counters(raw)
    if raw.frame.shape[1] == 0:
        raise TableError("no column is left for the features.", source=raw.source)
    out = None
    if values is not None:
        values = np.array(["" if value is None else value for value in values], dtype=object)
        out, positive, notes = _labels(values, positive, raw.source, target, for_prediction)
        raw.notes += notes
    if not for_prediction:
        raw.notes += suspects.notes_on(raw.frame, out)
    return Table(raw.frame, out, ids, groups, positive, raw.source, target, id, raw.notes)


def _labels(
    values: cells.Texts, positive: Any, source: pathlib.Path, target: str | None, lenient: bool
) -> tuple[NDArray[Any], Any, list[str]]:
    labels = as_labels(values)
    if lenient:
        return labels, positive, []
    check_classes(labels, source, target)
    alike = alike_labels(labels)
    if positive is None:
        return labels, None, alike
    labels, positive, notes = positive_label(labels, positive, source, target)
    return labels, positive, [*alike, *notes]


def _ids(raw: Raw, id: str | None) -> NDArray[np.str_]:
    names = raw.row_names if id is None else cells.texts(raw.frame[id])
    if names is None:
        names = np.full(len(raw.frame), None, dtype=object)
    filled = [str(k) if name is None else name for k, name in enumerate(names, start=1)]
    return np.array(filled, dtype=str)


def _all_differ(names: NDArray[np.str_]) -> bool:
    return len(np.unique(names)) == len(names)


def _groups(raw: Raw, group: str) -> NDArray[np.str_]:
    names = cells.texts(raw.frame[group])
    missing = [k for k, name in enumerate(names) if name is None]
    if missing:
        raw.fail("the group is missing. Name a group for every row.", group, missing[0])
    return np.array(list(names), dtype=str)


def _leave_out_counters(raw: Raw) -> None:
    """Leave out columns that number the rows: in sorted files they would tell the class."""
    n = len(raw.frame)
    names = [name for name in raw.frame.columns if name.lower() in _COUNTERS]
    for name in names:
        column = raw.frame[name]
        if n < suspects.FEWEST_TO_COUNT or column.dtype.kind not in "iuf":
            continue
        if suspects.counts_rows(column.to_numpy(dtype=np.float64)):
            raw.frame = raw.frame.drop(columns=name)
            raw.notes.append(f"{name!r} only numbers the rows, left out.")


def _from_svmlight(
    given: pathlib.Path,
    target: str | None,
    group: str | None,
    positive: Any,
    for_prediction: bool,
) -> Table:
    source = shown(given)
    with errors_in(source):
        frame, numbers, queries = read_svmlight(given)
    notes = [f"{frame.shape[1]:,} sparse features, named by their numbers in the file."]
    if target is not None:
        notes.append("The target is the number at the beginning of each line.")
    if group is not None and (group != "qid" or queries is None):
        raise TableError(
            "svmlight files can have groups as qid:NUMBER behind the label: --group qid.",
            source=source,
        )
    values = np.array([f"{value:.17g}" for value in numbers], dtype=object)
    labels, positive, more = _labels(values, positive, source, None, for_prediction)
    ids = np.arange(1, len(frame) + 1).astype(str)
    groups = None if group is None else queries
    return Table(frame, labels, ids, groups, positive, source, target, None, [*notes, *more])
