"""Threads: those of the linear algebra library held at one while our own code runs.

A BLAS starts as many threads as there are cores for products that one core does in microseconds,
and adds up in another order with each number of them.  So whatever a user calls runs
`without_blas_threads`: results are the same bits on any machine of a kind, and no fit is slower for
having more cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def without_blas_threads(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate a function that is to run with one thread in the linear algebra library.

    The library has one number of threads for the whole process.  It is what it was before as soon
    as no decorated function runs any more, in whatever thread, and however they have ended.

    Examples
    --------
    >>> from anynorm.design.threads import without_blas_threads
    >>> @without_blas_threads
    ... def twice(number):
    ...     return 2 * number
    >>> twice(3)
    6
    """

    @wraps(function)
    def alone(*given: Given.args, **named: Given.kwargs) -> Result:
        with _Hold():
            return function(*given, **named)

    return alone


class _Hold:
    """One of those that hold the threads at one; the first takes the number, the last returns it.

    Where Ctrl-C strikes between the two, the end of the object lets go.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        with _lock:
            first = not _holds
            _holds.add(id(self))
            if first:
                _before[:] = [(library, library.get_num_threads()) for library in _libraries()]
            for library, count in _before:
                if count != 1:
                    library.set_num_threads(1)

    def __exit__(self, *error: object) -> None:
        with _lock:
            if id(self) in _holds:
                _holds.discard(id(self))
                if not _holds:
                    _give_back()

    __del__ = __exit__


def _libraries() -> list[Any]:
    """The linear algebra libraries of NumPy and SciPy; to look for them takes milliseconds."""
    if not _found:
        import scipy.linalg  # noqa: F401  it brings a library of its own, which is to be found
        from threadpoolctl import ThreadpoolController

        _found.extend(ThreadpoolController().select(user_api="blas").lib_controllers)
    return _found


def _give_back() -> None:
    for library, count in _before:
        if count != 1:
            library.set_num_threads(count)
    _before.clear()


def _begin_anew() -> None:
    """After a fork: the threads that held the number are not there any more."""
    global _lock
    _lock = threading.RLock()
    _holds.clear()
    _give_back()


_lock = threading.RLock()  # of one thread again where the end of an object comes in between
_holds: set[int] = set()
_before: list[tuple[Any, int]] = []
_found: list[Any] = []
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
