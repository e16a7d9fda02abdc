"""Who is told of a wait for the compiler: the first fit of a kind is compiled before it runs.

Numba is not imported here, as many fits need none of it.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LONG = 1.0  # seconds of compiling from which on a wait is told

_listeners: weakref.WeakKeyDictionary[object, Callable[[str], None]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_spent = 0.0  # seconds that this process has compiled
_inside = threading.local()  # whether this thread compiles: functions compile those they call


def tell_of_compiling(owner: object, say: Callable[[str], None]) -> None:
    """Call `say` with a line, once, if there is much to compile while `owner` lives."""
    with _lock:
        _listeners[owner] = say


def tell_no_more(owner: object) -> None:
    """Call nothing for `owner` any more."""
    with _lock:
        _listeners.pop(owner, None)


@contextmanager
def compiling(where: str) -> Iterator[None]:
    """Around what compiles; `where` says what becomes of the result."""
    global _spent
    if getattr(_inside, "compiling", False):
        yield
        return
    _inside.compiling, start = True, time.monotonic()
    timer = threading.Timer(max(0.0, _LONG - _spent), _tell, [where])
    timer.daemon = True
    if _listeners:
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        _inside.compiling, _spent = False, _spent + time.monotonic() - start


def _tell(where: str) -> None:
    """Say it to all who have not heard it yet."""
    with _lock:
        told = list(_listeners.values())
        _listeners.clear()
    for say in told:
        say(f"Compiling what this kind of fit needs, for some seconds; {where}.")
