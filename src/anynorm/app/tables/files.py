"""From a path to bytes and text: formats by suffix, compression, encodings."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import pathlib
import sys
import zlib

from anynorm.app.tables.errors import TableError, listed

FORMATS = ("csv", "tsv", "excel", "parquet", "feather", "jsonl", "svmlight")
STANDARD_INPUT = pathlib.Path("-")
_SUFFIXES = {
    ".csv": "csv",
    ".txt": "csv",
    ".dat": "csv",
    ".data": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".xlsx": "excel",
    ".xlsm": "excel",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".svm": "svmlight",
}
_OPENERS = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}
_FOREIGN = {
    b"PK\x03\x04": "an Excel workbook (--format excel reads it) or a zip archive",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx or as CSV",
    b"PAR1": "a Parquet file; say so with --format parquet or the suffix .parquet",
    b"ARROW1": "a Feather file; say so with --format feather or the suffix .feather",
    b"\x1f\x8b": "compressed by gzip; give it the suffix .gz",
}


def format_of(path: pathlib.Path, given: str | None) -> str:
    """Return the format of a file: as given, otherwise by its suffix."""
    if given is not None:
        if given not in FORMATS:
            raise TableError(f"--format must be one of {listed(FORMATS)}; got {given!r}.")
        return given
    if path == STANDARD_INPUT:
        return "csv"
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _OPENERS:
        suffixes.pop()
    kind = _SUFFIXES.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise TableError(
            f"the suffix does not say what the file is. Say so with --format (one of "
            f"{listed(FORMATS)}), or use one of the suffixes {listed(_SUFFIXES, limit=20)}.",
            source=path,
        )
    return kind


def existing(path: str | os.PathLike[str]) -> pathlib.Path:
    """Return the path of a file that can be read; ``-`` is standard input."""
    path = pathlib.Path(path)
    if path == STANDARD_INPUT:
        return path
    if path.is_dir():
        raise TableError("this is a folder; give a file.", source=path)
    if not path.exists():
        near = path.parent if path.parent.is_dir() else None
        names = sorted(each.name for each in near.iterdir()) if near else []
        same = [name for name in names if name.lower().startswith(path.stem.lower())]
        hint = f" There is {listed(same)}." if same else ""
        raise TableError(f"there is no such file.{hint}", source=path)
    return path


def shown(path: pathlib.Path) -> pathlib.Path:
    """Return what a file is called in messages and reports."""
    return pathlib.Path("standard input") if path == STANDARD_INPUT else path


def read_bytes(path: pathlib.Path) -> bytes:
    """Return the content of a file, decompressed where its suffix says so."""
    try:
        data = sys.stdin.buffer.read() if path == STANDARD_INPUT else path.read_bytes()
    except OSError as error:
        raise TableError(f"the file cannot be read ({error.strerror}).") from None
    opener = _OPENERS.get(path.suffix.lower())
    if opener is None:
        return data
    try:
        return opener(data)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise TableError(
            f"the file cannot be decompressed ({error}). It may be cut off, or not be "
            f"compressed at all; then leave {path.suffix} out of its name."
        ) from None


def read_text(path: pathlib.Path) -> tuple[str, list[str]]:
    """Return the text of a file, with line feeds alone, and notes on its encoding."""
    data = read_bytes(path)
    for start, what in _FOREIGN.items():
        if data.startswith(start):
            raise TableError(f"this is no text but {what}.")
    text, notes = _decoded(data)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text, notes


def _decoded(data: bytes) -> tuple[str, list[str]]:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        try:
            return data.decode("utf-16"), ["The file is in UTF-16."]
        except UnicodeDecodeError as error:
            raise TableError(
                f"the file begins like UTF-16 but is not ({error.reason}). Save it as UTF-8."
            ) from None
    zero = data.find(b"\0")
    if zero >= 0:
        raise TableError(
            "the file has a zero byte, so it is not text. Save it as CSV in UTF-8.",
            line=data.count(b"\n", 0, zero) + 1,
        )
    try:
        return data.decode("utf-8-sig"), []
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        try:
            text, name = data.decode("cp1252"), "Windows-1252 (Latin-1)"
        except UnicodeDecodeError:
            text, name = data.decode("latin-1"), "Latin-1"
        return text, [f"Not in UTF-8 (line {line}): read as {name}."]
