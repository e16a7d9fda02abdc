"""A second file with the labels of the samples, joined by the samples' names."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from anynorm.app.tables import cells
from anynorm.app.tables.errors import TableError, counted, listed, near_names
from anynorm.app.tables.raw import Raw

_FIRST = 20  # columns of whole numbers are names of samples among these alone


def join(
    data: Raw,
    labels: Raw,
    id: str | None,
    target: str | None,
    group: str | None,
    *,
    keep_all: bool,
) -> str:
    """Add target and group from `labels` to `data` in place, and return the target's name.

    Samples without a line in `labels` are left out, or have no label where all are to be kept.
    """
    keys = _sample_names(labels, data, id)
    target = target or _only_column(labels, keys.column, group)
    wanted = [target] if group in (None, target) else [target, str(group)]
    for name in wanted:
        if name not in labels.frame.columns:
            if name == group and name in data.frame.columns:
                continue
            known = list(labels.frame.columns)
            raise TableError(
                f"there is no column {name!r}. {near_names(name, known)}", source=labels.source
            )
    place = {name: k for k, name in enumerate(keys.names) if name is not None}
    samples = keys.samples
    found = np.array([name in place for name in samples])
    if not found.all():
        lost = [name for name, there in zip(samples, found, strict=True) if not there]
        data.notes.append(
            f"{counted(len(lost), 'sample')} without a line in {labels.source.name}"
            f"{'' if keep_all else ', left out'}: {listed(lost)}."
        )
    unused = [name for name in place if name not in set(samples)]
    if unused:
        data.notes.append(
            f"{counted(len(unused), 'line')} of {labels.source.name} without data: "
            f"{listed(unused)}."
        )
    data.row_names = samples
    if not keep_all:
        data.take(np.flatnonzero(found))
        samples = samples[found]
    rows = np.array([place.get(name, len(keys.names)) for name in samples], dtype=np.int64)
    if keys.data_column is not None:
        data.frame = data.frame.drop(columns=keys.data_column)
    columns = {}
    for name in wanted:
        if name in labels.frame.columns:
            if name in data.frame.columns:
                data.notes.append(f"{name!r} is taken from {labels.source.name}.")
                data.frame = data.frame.drop(columns=name)
            values = np.array([*cells.texts(labels.frame[name]), None], dtype=object)
            columns[name] = values[rows]
    data.frame = data.frame.assign(**columns)
    others = [x for x in labels.frame.columns if x not in {*wanted, keys.column}]
    if others:
        data.notes.append(f"Not used from {labels.source.name}: {listed(others)}.")
    data.notes += [f"{labels.source.name}: {note}" for note in labels.notes]
    return target


class _Keys(NamedTuple):
    """The names that both files have: of the samples, and in which columns."""

    names: cells.Texts
    column: str | None
    samples: cells.Texts
    data_column: str | None


def _candidates(raw: Raw, id: str | None) -> dict[str | None, cells.Texts]:
    """Return the columns that may hold the samples' names; None stands for the row names."""
    out: dict[str | None, cells.Texts] = {}
    if raw.row_names is not None:
        out[None] = raw.row_names
    if raw.transposed:
        return out
    columns = raw.frame.columns
    if id is not None and id in columns:
        return {id: cells.texts(raw.frame[id])}
    kinds = raw.frame.dtypes
    text = [x for x, kind in zip(columns, kinds, strict=True) if cells.is_text(kind)]
    whole = [x for x in columns[:_FIRST] if kinds[x].kind in "iu"]
    return out | {name: cells.texts(raw.frame[name]) for name in [*text, *whole]}


def _sample_names(labels: Raw, data: Raw, id: str | None) -> _Keys:
    """Find the pair of columns that have the most names in common."""
    ours, theirs = _candidates(data, id), _candidates(labels, id)
    if not ours:
        raise TableError(
            "no column holds names of samples to join the labels by. Name it with --id.",
            source=data.source,
        )
    pairs = [
        (len(set(a) & set(b) - {None}), x, z) for x, a in ours.items() for z, b in theirs.items()
    ]
    common, mine, their = max(pairs, key=lambda pair: pair[0], default=(0, None, None))
    if not common:
        example = listed([x for x in next(iter(ours.values())) if x is not None][:3])
        shown = [listed([x for x in each if x is not None][:3]) for each in theirs.values()]
        raise TableError(
            f"no name of a sample in {data.source.name} (such as {example}) is found here"
            + (f" (such as {shown[0]})" if shown else "")
            + ". The names must be spelled alike"
            + ("" if data.transposed else "; a matrix of genes x samples needs --transpose")
            + ".",
            source=labels.source,
        )
    for raw, column, names in ((labels, their, theirs[their]), (data, mine, ours[mine])):
        _check_unique(raw, column, names)
    return _Keys(theirs[their], their, ours[mine], mine)


def _check_unique(raw: Raw, column: str | None, names: cells.Texts) -> None:
    seen: dict[str, int] = {}
    for k, name in enumerate(names):
        if name is not None and name in seen:
            line = None if raw.lines is None else int(raw.lines[k])
            raise TableError(
                f"the sample {name!r} stands there a second time. Keep one of them.",
                source=raw.source,
                line=line,
                column=column,
            )
        if name is not None:
            seen[name] = k


def _only_column(labels: Raw, key: str | None, group: str | None) -> str:
    columns = [name for name in labels.frame.columns if name not in (key, group)]
    if len(columns) == 1:
        return columns[0]
    raise TableError(
        f"which column holds the labels? Name it with --target; the columns are {listed(columns)}.",
        source=labels.source,
    )
