"""Parquet files in pieces that a worker reads at once, and what their columns are."""

from __future__ import annotations

import fnmatch
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from anynorm.app.tables.errors import TableError, listed, near_names

_PIECE = 64e6  # bytes as float64: large beside a task
_SHARE = 1 / 48  # of the memory left to a worker: a piece, of which some copies are made
_SLAB = 512  # rows that are turned from columns into rows at a time, while they are in the cache
_SUFFIXES = (".parquet", ".pq", ".parq")
_NUMBERS = ("number", "boolean")  # what a feature may be, as `Preparation` calls it


class Piece(NamedTuple):
    """Row groups of one file that lie together.

    Attributes
    ----------
    path : str
        The file.
    groups : list of int
        The row groups.
    first, rows : int
        The place of the first row in the file, and how many there are.
    """

    path: str
    groups: list[int]
    first: int
    rows: int


@dataclass(frozen=True)
class ParquetRows:
    """Files with the same columns.

    Attributes
    ----------
    source : str
        What was asked for: a file, a folder, a pattern.
    system : fsspec filesystem
        Where they lie.
    pieces : list of Piece
        All rows of all files, in their order.
    kinds : dict
        The columns that are numbers ("number") or truth values ("boolean"), in their order.
    others : dict
        The columns that are neither, with their types.
    """

    source: str
    system: Any
    pieces: list[Piece]
    kinds: dict[str, str]
    others: dict[str, str]

    @property
    def columns(self) -> list[str]:
        """All columns."""
        return [*self.kinds, *self.others]

    @property
    def paths(self) -> set[str]:
        """The files."""
        return {piece.path for piece in self.pieces}

    @property
    def n_rows(self) -> int:
        """All rows, those without a label too."""
        return sum(piece.rows for piece in self.pieces)


class PieceReader(NamedTuple):
    """Reads columns of a piece, wherever it is sent."""

    system: Any
    piece: Piece

    def table(self, columns: Sequence[str]) -> Any:
        """The columns as a table of Arrow."""
        import pyarrow.parquet

        with self.system.open(self.piece.path, "rb") as file:
            opened = pyarrow.parquet.ParquetFile(file)
            return opened.read_row_groups(
                self.piece.groups, columns=list(columns), use_threads=False
            )

    def numbers(self, columns: Sequence[str]) -> np.ndarray:
        """The columns as a matrix of float64, NaN for what is missing."""
        kept = self._by_columns(columns)
        out = np.empty(kept.shape[::-1])
        for start in range(0, len(out), _SLAB):
            out[start : start + _SLAB] = kept[:, start : start + _SLAB].T
        return out

    def _by_columns(self, columns: Sequence[str]) -> np.ndarray:
        """The same, a row for each column; nothing of Arrow's table stays in memory."""
        import pyarrow

        table = self.table(columns).select(list(columns))
        kept = np.empty((len(columns), table.num_rows))
        for place, column in enumerate(table.columns):
            kept[place] = column.cast(pyarrow.float64(), safe=False).to_numpy()
        return kept


def parquet_rows(pattern: str | os.PathLike[str], room: float = math.inf) -> ParquetRows:
    """Find the files of a folder or a pattern, and cut them into pieces.

    Parameters
    ----------
    pattern : path or str
        A file, a folder, whose files with the suffixes of Parquet are taken, or a pattern; also
        with a protocol that fsspec knows, as ``s3://``.
    room : float, default=inf
        The bytes of memory that a worker has left.

    Returns
    -------
    ParquetRows
        The pieces and the columns.

    Raises
    ------
    TableError
        Where there is no such file, or one cannot be read or has other columns.
    """
    source = _as_address(pattern)
    system, paths = _files(source)
    pieces: list[Piece] = []
    types: dict[str, Any] = {}
    for path in paths:
        found, groups = _opened(system, path)
        _check_same(types or found, found, paths[0], path)
        types = types or found
        pieces += _cut(path, groups, min(_PIECE, _SHARE * room) / (8 * len(types)))
    if not pieces:
        raise TableError("the files have no rows.", source=source)
    kinds = {name: kind for name, kind in types.items() if kind in _NUMBERS}
    others = {name: kind for name, kind in types.items() if kind not in _NUMBERS}
    return ParquetRows(source, system, pieces, kinds, others)


def features_of(
    rows: ParquetRows, roles: dict[str, str | None], drop: Sequence[str]
) -> dict[str, str]:
    """Return the columns that are features, and what each is.

    Raises where a column that was named is not there, or one that is left is not of numbers.
    """
    for role, name in roles.items():
        if name is not None and name not in rows.columns:
            raise TableError(
                f"there is no column {name!r} for --{role}. {near_names(name, rows.columns)}",
                source=rows.source,
            )
    taken = {name for name in roles.values() if name is not None}
    for pattern in drop:
        names = fnmatch.filter(rows.columns, pattern) if pattern not in rows.columns else [pattern]
        if not names:
            raise TableError(
                f"there is no column {pattern!r} to drop. {near_names(pattern, rows.columns)}",
                source=rows.source,
            )
        taken |= set(names)
    strange = {name: kind for name, kind in rows.others.items() if name not in taken}
    if strange:
        each = listed([f"{name!r} ({kind})" for name, kind in strange.items()], quote=False)
        raise TableError(
            f"on a cluster the features are numbers and truth values; these are not: {each}. Leave "
            "them out with --drop NAME, or make columns of numbers of them first.",
            source=rows.source,
        )
    kinds = {name: kind for name, kind in rows.kinds.items() if name not in taken}
    if not kinds:
        raise TableError("no column is left for the features.", source=rows.source)
    return kinds


def _as_address(pattern: str | os.PathLike[str]) -> str:
    """The text of a pattern; a path has lost one of the two slashes of a protocol."""
    return re.sub(r"^([a-z][a-z0-9+]+):/(?=[^/])", r"\1://", os.fspath(pattern))


def _files(source: str) -> tuple[Any, list[str]]:
    """The file system and the files, sorted."""
    import fsspec

    try:
        system, path = fsspec.core.url_to_fs(source)
        if system.isdir(path):
            paths = [each for each in system.find(path) if each.lower().endswith(_SUFFIXES)]
        else:
            paths = system.glob(path) if any(each in path for each in "*?[") else [path]
        paths = sorted(each for each in paths if system.isfile(each))
    except (ImportError, ValueError) as error:
        raise TableError(f"this cannot be reached ({error}).", source=source) from None
    if not paths:
        raise TableError(
            "there is no such Parquet file. Give a folder, a file, or a pattern in quotes, such as "
            "'data/*.parquet'.",
            source=source,
        )
    return system, paths


def _opened(system: Any, path: str) -> tuple[dict[str, str], list[int]]:
    """The columns of a file with what they are, and the rows of its row groups."""
    import pyarrow.parquet

    try:
        with system.open(path, "rb") as file:
            found = pyarrow.parquet.ParquetFile(file)
            schema, about = found.schema_arrow, found.metadata
            groups = [about.row_group(k).num_rows for k in range(about.num_row_groups)]
    except (OSError, ValueError) as error:  # pyarrow's errors are of these
        reason = str(error).splitlines()[0][:200]
        raise TableError(
            f"this is no Parquet file that can be read ({reason}).", source=path
        ) from None
    names = [name for name in schema.names if not name.startswith("__index_level_")]
    return {name: _kind(schema.field(name).type) for name in names}, groups


def _kind(type_: Any) -> str:
    """Whether a type of Arrow is one of numbers or truth values; its name otherwise."""
    import pyarrow.types as of

    if of.is_boolean(type_):
        return "boolean"
    if of.is_integer(type_) or of.is_floating(type_) or of.is_decimal(type_):
        return "number"
    return str(type_)


def _check_same(known: dict[str, str], found: dict[str, str], first: str, path: str) -> None:
    """Raise where a file has not the columns of the first."""
    missing = [name for name in known if name not in found]
    if missing:
        raise TableError(f"the columns {listed(missing)} of {first} are missing.", source=path)
    numbers = [name for name, kind in known.items() if kind in _NUMBERS]
    changed = [name for name in numbers if found[name] not in _NUMBERS]
    if changed:
        raise TableError(
            f"this column is of numbers in {first}, but of type {found[changed[0]]} here.",
            source=path,
            column=changed[0],
        )


def _cut(path: str, groups: list[int], most: float) -> list[Piece]:
    """The row groups of a file in pieces of so many rows at the most, or of one group."""
    pieces: list[Piece] = []
    place = 0
    for number, rows in enumerate(groups):
        last = pieces[-1] if pieces else None
        if last is not None and last.rows + rows <= most:
            pieces[-1] = last._replace(groups=[*last.groups, number], rows=last.rows + rows)
        elif rows:
            pieces.append(Piece(path, [number], place, rows))
        place += rows
    return pieces
