"""Who may end a long piece of work between its parts: a time limit, or Ctrl-C in another thread.

Work that takes long (a Gram matrix, a factor, sums over all rows) calls `look` between its parts.
Whoever started it says with `watched` what is looked at there; it ends the work by an exception.
A watch holds for the thread that set it and for tasks that this one has given to others, and
watches add up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_WATCHES: ContextVar[tuple[Callable[[], None], ...]] = ContextVar("watches", default=())


def look() -> None:
    """Give those who watch this thread the chance to end what is being done.

    Examples
    --------
    >>> from anynorm.design.watch import look, unwatched, watched
    >>> with watched(lambda: print("looked")):
    ...     look()
    ...     with unwatched():
    ...         look()
    looked
    """
    for ask in _WATCHES.get():
        ask()


@contextmanager
def watched(ask: Callable[[], None]) -> Iterator[None]:
    """Have `ask` called at every `look` inside, which may raise."""
    with _watches((*_WATCHES.get(), ask)):
        yield


@contextmanager
def unwatched() -> Iterator[None]:
    """Let what is inside come to its end: the certificate of a solve that was ended."""
    with _watches(()):
        yield


@contextmanager
def _watches(watches: tuple[Callable[[], None], ...]) -> Iterator[None]:
    before = _WATCHES.set(watches)
    try:
        yield
    finally:
        _WATCHES.reset(before)
