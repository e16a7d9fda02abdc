"""Arrays that machine code reaches by their addresses.

Few arrays are arguments, each a `Vector`.  Where there are many, one number stands for all of them:
tables in C order are listed in an array of integers, and code is given the address of that list:

    list    address of table 0, length of its rows, address of table 1, ...

It takes the rows that it needs out of it, by the number of the table and that of the row.  As with
any address, the tables and the list must be kept as long as it is in use, and nobody checks the
indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Vector:
    """An argument of machine code: an array in C order with numbers of this kind."""

    item: str = "float64"


def is_kind(given: Any) -> bool:
    """Whether this is the kind of an argument, and not its value."""
    return given in (int, float) or isinstance(given, Vector)


def larger(first: float, second: float) -> float:
    """Return the larger of two numbers, neither of which is NaN.

    The largest number of many is found by machine code several at a time with this; with `max`,
    which says what becomes of NaN, one after the other.

    Examples
    --------
    >>> from anynorm.design.addresses import larger
    >>> larger(1.0, 2.0)
    2.0
    """
    return max(first, second)


@dataclass(frozen=True)
class Rows:
    """For machine code: ``row(tables, k)`` is row k of a table, a vector of numbers."""

    table: int
    item: str = "float64"

    def __call__(self, tables: int, k: int) -> Any:
        """Return row k of the table."""
        raise TypeError("for machine code only")


@dataclass(frozen=True)
class Length:
    """For machine code: ``length(tables)`` is that of the rows of a table."""

    table: int

    def __call__(self, tables: int) -> int:
        """Return the length of its rows."""
        raise TypeError("for machine code only")


def list_of(tables: Sequence[np.ndarray]) -> np.ndarray:
    """Return the list of some tables; ``list_of(tables).ctypes.data`` is what code is given.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.addresses import list_of
    >>> table = np.zeros((3, 5))
    >>> list_of([table]).tolist() == [table.ctypes.data, 5]
    True
    """
    assert all(table.flags.c_contiguous for table in tables)
    return np.array([(table.ctypes.data, table.shape[-1]) for table in tables], np.int64).ravel()
