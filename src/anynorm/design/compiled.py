"""How our loops are compiled: one decorator, with an on-disk cache wherever one can be kept.

`ANYNORM_DISABLE_CACHE=1` turns the cache off (locked installs).  Where Numba finds no folder
it may write to, the loops are compiled anew in each process instead of failing.

Ctrl-C while Numba is imported or compiles would leave its tables half-made, and break it for the
rest of the process: the signal waits until Numba has finished, and is then delivered.
"""

from __future__ import annotations

import functools
import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back inside, and deliver it at the end; in the main thread, where it arrives.

    Examples
    --------
    >>> import signal
    >>> from anynorm.design.compiled import uninterrupted
    >>> try:
    ...     with uninterrupted():
    ...         signal.raise_signal(signal.SIGINT)
    ...         print("finished")
    ... except KeyboardInterrupt:
    ...     print("interrupted")
    finished
    interrupted
    """
    handler = signal.getsignal(signal.SIGINT)
    here = threading.current_thread() is threading.main_thread()
    if handler is None or not here:  # not set by Python, or never called in this thread
        yield
        return
    arrived: list[int] = []
    try:
        signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    except ValueError:  # the main thread of a subinterpreter
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if arrived:
            signal.raise_signal(signal.SIGINT)


with uninterrupted():
    from llvmlite import ir
    from numba import njit, types
    from numba.extending import intrinsic, overload

__all__ = ["inlined", "inner_loop", "intrinsic", "ir", "loop", "ordered_loop", "overload", "types"]

# Sums may be reordered (several accumulators, fused multiply-add); NaN and inf keep their meaning.
_REORDER = {"reassoc", "contract", "nsz"}
_IN_ORDER = {"contract", "nsz"}


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` without the interpreter lock, cached on disk where that is possible."""
    return _compiled(function)


def inner_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `loop`, for functions that only other loops call: half the time to compile."""
    return _compiled(function, no_cpython_wrapper=True, cache=False)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `inner_loop`, for functions with one caller: compiled as a part of it alone."""
    return _compiled(function, inline="always", cache=False)


def ordered_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `loop`, for functions whose digits depend on the order of their operations."""
    return _compiled(function, fastmath=_IN_ORDER)


@contextmanager
def _without_collection() -> Iterator[None]:
    """No search for cyclic garbage inside: a seventh of the time of the compiler, with no gain."""
    paused = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if paused:
            gc.enable()


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    wanted = os.environ.get("ANYNORM_DISABLE_CACHE", "") in ("", "0")
    # Nobody calls them from C; those that are called by other loops alone are kept with these.
    defaults = {"nogil": True, "fastmath": _REORDER, "no_cfunc_wrapper": True, "cache": wanted}
    options = {**defaults, **options}
    try:
        dispatcher = njit(**options)(function)
    except RuntimeError:  # "no locator available": neither the package nor the home can be written
        dispatcher = njit(**{**options, "cache": False})(function)
    compile = dispatcher.compile

    @functools.wraps(compile)
    def compile_to_the_end(*signature: Any) -> Any:
        with uninterrupted(), _without_collection():
            return compile(*signature)

    dispatcher.compile = compile_to_the_end  # which Numba calls for types that are new to it
    return dispatcher
