"""Docstrings that borrow descriptions: what several estimators share is written in one of them.

A line such as

    tol, max_iter : as in `SVC`

of a class that is decorated with ``@documented_like(SVC)`` becomes the entries of SVC's docstring
for these names.  Lines that are indented below it follow them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import TypeVar

Class = TypeVar("Class", bound=type)

_ENTRY = re.compile(r"^(\w+) : .*(?:\n +\S.*)*", re.MULTILINE)
_BORROWED = re.compile(r"^(\w+(?:, \w+)*) : as in `(\w+)`$", re.MULTILINE)


def documented_like(source: type) -> Callable[[Class], Class]:
    """Decorate a class whose docstring borrows entries from that of `source`."""

    def filled(borrower: Class) -> Class:
        if borrower.__doc__ and source.__doc__:  # python -OO leaves none
            entries = {
                match[1]: match[0] for match in _ENTRY.finditer(inspect.cleandoc(source.__doc__))
            }
            borrower.__doc__ = _BORROWED.sub(
                lambda line: "\n".join(entries[name] for name in line[1].split(", ")),
                inspect.cleandoc(borrower.__doc__),
            )
        return borrower

    return filled
