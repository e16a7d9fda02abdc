"""CSV and TSV: where the fields are, then pandas for their values.

The structure is checked first, so that every error has its line: pandas fills rows that are too
short with missing values and numbers repeated names.
"""

from __future__ import annotations

import csv
import io
import pathlib
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from anynorm.app.tables.errors import TableError, counted, listed
from anynorm.app.tables.files import read_text
from anynorm.app.tables.workbooks import sheet_text

# pandas' own list without "None", which names a class or a category as often.
MISSING = (
    "", "NA", "N/A", "n/a", "NaN", "nan", "-NaN", "-nan", "NULL", "null", "<NA>", "#N/A",
    "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
)  # fmt: skip
_DELIMITERS = {"csv": ",;\t|", "tsv": "\t,;|"}
_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "spaces"}
_EXCEL = re.compile(r"\s*\"?sep=([,;\t|])\"?\s*", re.IGNORECASE)
_LINES_LOOKED_AT = 50  # to find the delimiter


@dataclass
class Records:
    """The records of a text file: well-formed, all with as many fields as there are names."""

    names: list[str]
    body: str
    delimiter: str
    lines: NDArray[np.int64]
    notes: list[str] = field(default_factory=list)

    def frame(self, as_text: Collection[str] | None = ()) -> pd.DataFrame:
        """Return the values, with pandas' types; the columns in `as_text` (None: all) stay text."""
        keep = set(self.names if as_text is None else as_text)
        frame = pd.read_csv(
            io.StringIO(self.body),
            sep=self.delimiter,
            header=None,
            names=range(len(self.names)),
            dtype={k: str for k, name in enumerate(self.names) if name in keep},
            na_values=list(MISSING),
            keep_default_na=False,
            skipinitialspace=True,
            skip_blank_lines=True,
            index_col=False,
            low_memory=False,
        )
        if len(frame) != len(self.lines):
            raise TableError(
                f"{len(self.lines)} records were found but {len(frame)} read; quotes are not "
                "where they should be. Quote whole fields, and double the quotes inside them."
            )
        frame.columns = pd.Index(self.names, dtype=object)
        return frame.copy()  # one block for each type: thousands of columns are slow apart


def read_records(path: pathlib.Path, kind: str) -> Records:
    """Return the records of a CSV or TSV file, or a sheet, after checking their structure."""
    sheet = kind == "excel"
    text, notes = sheet_text(path) if sheet else read_text(path)
    start = 0 if sheet else _leading_comments(text)
    if start:
        notes.append(f"{counted(start, 'line')} of comments at the head left out.")
    lines = text.split("\n")[start:]
    if not any(line.strip() for line in lines):
        raise TableError("the file is empty.")
    said = None if sheet else _EXCEL.fullmatch(lines[0])
    if said:  # Excel's way to name the separator
        start, lines = start + 1, lines[1:]
    delimiter = "," if sheet else said[1] if said else _delimiter(lines, kind)
    usual = "\t" if kind == "tsv" else ","
    if delimiter != usual:
        notes.append(f"The fields are separated by {_NAMES[delimiter]}.")
    if delimiter == " ":  # columns may be aligned by several
        lines = [line.strip() for line in lines]
    if '"' in text or delimiter == " ":
        records, counts, numbers, body = _quoted(lines, delimiter, start)
    else:
        records, counts, numbers, body = _plain(lines, delimiter, start)
    if not records:
        raise TableError("the file holds nothing but separators.")
    names = [name.strip() for name in records]
    names = _aligned(names, counts, numbers, body, delimiter)
    _check_names(names, int(numbers[0]))
    return Records(names, body, delimiter, numbers[1:], notes)


def _leading_comments(text: str) -> int:
    """Return how many lines at the head are comments (# or, as GEO has them, !) or empty."""
    head = text[: 1 << 20].split("\n")
    if head[0].strip() in (
        "#1.2",
        "#1.3",
    ):  # GCT: the version, then the numbers of rows and columns
        return 2
    last = 0
    for k, line in enumerate(head):
        if line.startswith(("#", "!", '"!', '"#')):
            last = k + 1
        elif line.strip():
            break
    # A header such as "#name,x,y" is one line followed by data: it is no comment.
    first, second = (*head, "")[:2]
    if last == 1 and any(first.count(each) == second.count(each) > 0 for each in ",;\t|"):
        return 0
    return last


def _delimiter(lines: list[str], kind: str) -> str:
    """Return the delimiter that splits the first lines evenly, into the most fields."""
    sample = list(islice((line for line in lines if line.strip()), _LINES_LOOKED_AT))
    counts = {}
    for each in _DELIMITERS[kind] + " ":
        lines = [line.strip() for line in sample] if each == " " else sample
        reader = csv.reader(lines, delimiter=each, skipinitialspace=True)
        try:
            counts[each] = [len(record) for record in reader]
        except csv.Error:  # a field beyond the csv module's limit: the quotes are checked later
            counts[each] = [1]
    even = {each: c for each, c in counts.items() if c[0] > 1 and set(c[1:]) <= {c[0]}}
    # R leaves the name of the first column out.
    even = even or {each: c for each, c in counts.items() if c[1:] and set(c[1:]) == {c[0] + 1}}
    some = {each: c for each, c in counts.items() if c[0] > 1 and each != " "}
    choice = even or some or {_DELIMITERS[kind][0]: [1]}
    if len(choice) > 1:
        choice.pop(" ", None)
    return max(choice, key=lambda each: choice[each][0])


def _plain(
    lines: list[str], delimiter: str, start: int
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64], str]:
    """Count the fields of lines without quotes; lines without any content are left out."""
    blank = delimiter + " \t"
    numbers, kept = [], []
    for number, line in enumerate(lines, start=start + 1):
        if line.strip(blank) and not (start and line.startswith("!")):
            numbers.append(number)
            kept.append(line)
    counts = np.array([line.count(delimiter) + 1 for line in kept])
    return kept[0].split(delimiter) if kept else [], counts, np.array(numbers), "\n".join(kept[1:])


def _quoted(
    lines: list[str], delimiter: str, start: int
) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64], str]:
    """Parse records with quoted fields and write them again in the plainest form."""
    header: list[str] = []
    counts, numbers = [], []
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    for number, record in _parsed(lines, delimiter, start):
        record = [value.strip() for value in record]
        if not any(record) or (start and record[0].startswith("!")):
            continue
        numbers.append(number)
        counts.append(len(record))
        if len(counts) == 1:
            header = record
        else:
            writer.writerow(record)
    return header, np.array(counts), np.array(numbers), out.getvalue()


def _parsed(lines: list[str], delimiter: str, start: int) -> Iterator[tuple[int, list[str]]]:
    """Yield each record with the line it begins in."""
    reader = csv.reader(
        (line + "\n" for line in lines), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    while True:
        line = start + reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            reason = "is never closed" if "end of data" in str(error) else f"is wrong ({error})"
            raise TableError(
                f"a quote in the record that begins here {reason}. Quote whole fields, and "
                "double the quotes inside them.",
                line=line,
            ) from None
        yield line, record


def _aligned(
    names: list[str],
    counts: NDArray[np.int64],
    numbers: NDArray[np.int64],
    body: str,
    delimiter: str,
) -> list[str]:
    """Return as many names as all records have fields, or know why they have not."""
    width, fields = len(names), counts[1:]
    if not len(fields):
        raise TableError(f"the file has a line of names ({listed(names)}) and nothing else.")
    if (fields == width + 1).all():
        ends = body.rstrip("\n").split("\n")
        if all(line.rstrip(" ").endswith(delimiter) for line in ends):
            return [*names, ""]
        return ["", *names]
    wrong = np.flatnonzero(fields != width)
    if len(wrong):
        first = int(wrong[0])
        few = fields[first] < width
        hint = (
            "A line may be cut off, or a field be missing."
            if few
            else f"A field that holds the separator ({delimiter!r}) needs quotes; numbers with "
            "decimal commas need another separator."
        )
        more = f" ({len(wrong):,} such lines)" if len(wrong) > 1 else ""
        raise TableError(
            f"{counted(int(fields[first]), 'field')}, but the line of names has {width}{more}. "
            f"{hint}",
            line=int(numbers[first + 1]),
        )
    return names


def _check_names(names: list[str], line: int) -> None:
    """Refuse names that stand twice, and columns in the middle that have none."""
    seen: dict[str, int] = {}
    for k, name in enumerate(names, start=1):
        if not name:
            continue
        if name in seen:
            numeric = all(_is_number(each) for each in names)
            hint = " Is the line of names missing?" if numeric else " Give one another name."
            raise TableError(
                f"fields {seen[name]} and {k} have the same name {name!r}.{hint}", line=line
            )
        seen[name] = k
    nameless = [k for k, name in enumerate(names, start=1) if not name]
    if any(1 < k < len(names) for k in nameless):
        k = next(k for k in nameless if k > 1)
        raise TableError(f"field {k} has no name. Name every column.", line=line)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
