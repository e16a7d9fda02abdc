"""Excel workbooks: the first sheet as the text of a CSV file, which then is read as any other."""

from __future__ import annotations

import csv
import datetime
import io
import pathlib
import zipfile
from typing import Any

from anynorm.app.tables.errors import TableError, listed
from anynorm.app.tables.files import read_bytes


def sheet_text(path: pathlib.Path) -> tuple[str, list[str]]:
    """Return the first sheet of a workbook as CSV, a line for each row, and notes."""
    try:
        from openpyxl import load_workbook
        from openpyxl.utils.exceptions import InvalidFileException
    except ModuleNotFoundError:
        raise TableError(
            "Excel workbooks need openpyxl: pip install 'anynorm[excel]'. Or save the sheet as CSV."
        ) from None
    try:
        book = load_workbook(io.BytesIO(read_bytes(path)), read_only=True, data_only=True)
    except (InvalidFileException, zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise TableError(
            f"this is no Excel workbook that can be read ({error}). Save it as .xlsx, or as CSV."
        ) from None
    names = [sheet.title for sheet in book.worksheets]
    if not names:
        raise TableError("the workbook has no sheet of cells.")
    rows = [
        [_text(value) for value in row] for row in book.worksheets[0].iter_rows(values_only=True)
    ]
    width = max((k + 1 for row in rows for k, value in enumerate(row) if value), default=0)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows((row + [""] * width)[:width] for row in rows)
    notes = []
    if len(names) > 1:
        notes.append(
            f"The workbook has {len(names)} sheets: the first, {listed(names[:1])}, is read."
        )
    return out.getvalue(), notes


def _text(value: Any) -> str:
    """Return what a cell would be in a CSV file; errors such as #DIV/0! are missing values."""
    if value is None:
        return ""
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat(" ") if isinstance(value, datetime.datetime) else value.isoformat()
    text = str(value)
    return (
        "" if text.startswith("#") and text.endswith(("!", "?", "/A")) else " ".join(text.split())
    )
