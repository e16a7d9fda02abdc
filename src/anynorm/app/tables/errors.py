"""What is wrong with a data file: which file, which line, which column, and the remedy."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager


class TableError(ValueError):
    """A data file that cannot be used as it is.

    Parameters
    ----------
    message : str
        What is wrong and what to do about it.
    source : path, optional
        The file.
    line : int, optional
        The line of the file, counted from 1.
    column : str, optional
        The column's name.

    Examples
    --------
    >>> from anynorm import tables
    >>> print(tables.TableError("'12o' is not a number.", source="a.csv", line=17, column="age"))
    a.csv, line 17, column 'age': '12o' is not a number.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | os.PathLike[str] | None = None,
        line: int | None = None,
        column: str | None = None,
    ) -> None:
        place = [] if source is None else [os.fspath(source)]
        place += [] if line is None else [f"line {line}"]
        place += [] if column is None else [f"column {column!r}"]
        super().__init__(f"{', '.join(place)}: {message}" if place else message)
        self.message = message
        self.source = None if source is None else os.fspath(source)
        self.line = line
        self.column = column


@contextmanager
def errors_in(source: str | os.PathLike[str]) -> Iterator[None]:
    """Errors inside are about this file, where they do not name another."""
    try:
        yield
    except TableError as error:
        if error.source is not None:
            raise
        raise TableError(
            error.message, source=source, line=error.line, column=error.column
        ) from None


def listed(names: Iterable[object], *, limit: int = 6, quote: bool = True) -> str:
    """Return names for a sentence, no more than `limit` of them: 'a', 'b' and 5 more."""
    texts = [repr(str(name)) if quote else str(name) for name in names]
    if len(texts) > limit + 1:
        return f"{', '.join(texts[:limit])} and {len(texts) - limit:,} more"
    return ", ".join(texts)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return the number with its noun: 1 row, 2 rows."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def near_names(name: str, known: Sequence[str]) -> str:
    """Return a sentence that offers the known names like `name`, or the first ones."""
    lower: dict[str, str] = {}
    for each in known:
        lower.setdefault(each.lower(), each)
    close = difflib.get_close_matches(name.lower(), list(lower), n=3, cutoff=0.6)
    if close:
        return f"Did you mean {listed(lower[each] for each in close)}?"
    return f"The columns are {listed(known, limit=8)}."
