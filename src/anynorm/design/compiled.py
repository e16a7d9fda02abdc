"""How our loops are compiled: one decorator, with an on-disk cache wherever one can be kept.

The cache lies beside the package, or with the user's caches where that cannot be written, in a
folder that is named by our version and Numba's: what another version has left is never read.
`NUMBA_CACHE_DIR` names another folder, `ANYNORM_DISABLE_CACHE=1` turns the cache off (locked
installs).  Where no folder can be written, each process compiles anew instead of failing.

Ctrl-C while Numba is imported or compiles would leave its tables half-made, and break it for the
rest of the process: the signal waits until Numba has finished, and is then delivered.
"""

from __future__ import annotations

import functools
import gc
import os
import pathlib
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anynorm import __version__
from anynorm.design.waiting import compiling


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
    from numba import __version__ as numba_version
    from numba import config, njit, types
    from numba.extending import intrinsic, overload
    from numba.misc.appdirs import AppDirs

__all__ = [
    "cache_folder",
    "inlined",
    "inner_loop",
    "intrinsic",
    "ir",
    "loop",
    "ordered_loop",
    "overload",
    "types",
]

_settings: Any = config  # whose attributes type checkers do not see

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


@functools.cache
def cache_folder() -> str | None:
    """Where compiled code is kept: a folder that can be written, None where there is none.

    Examples
    --------
    >>> from anynorm.design.compiled import cache_folder
    >>> folder = cache_folder()
    """
    if os.environ.get("ANYNORM_DISABLE_CACHE", "") not in ("", "0"):
        return None
    package = pathlib.Path(__file__).parents[1] / "__pycache__"
    name = f"anynorm-{__version__}-numba-{numba_version}"
    own = (package / name, pathlib.Path(AppDirs("anynorm", False).user_cache_dir) / name)
    given = _settings.CACHE_DIR
    for folder in (pathlib.Path(given),) if given else own:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return str(folder)
    return None


def _fate() -> str:
    """What becomes of compiled code, in words."""
    folder = cache_folder()
    if folder is None:
        return "every process does so, as nothing can be kept (see `anynorm doctor`)"
    return f"kept in {folder}"


@contextmanager
def _numba_caches_in(folder: str | None) -> Iterator[None]:
    """Numba asks its settings for the folder at the time a function is decorated."""
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = folder or before
    try:
        yield
    finally:
        _settings.CACHE_DIR = before


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    folder = cache_folder()
    # Nobody calls them from C; those that are called by other loops alone are kept with these.
    defaults = {
        "nogil": True,
        "fastmath": _REORDER,
        "no_cfunc_wrapper": True,
        "cache": folder is not None,
    }
    with _numba_caches_in(folder):
        dispatcher = njit(**{**defaults, **options})(function)
    compile = dispatcher.compile

    @functools.wraps(compile)
    def compile_to_the_end(*signature: Any) -> Any:
        with uninterrupted(), _without_collection(), compiling(_fate()):
            return compile(*signature)

    dispatcher.compile = compile_to_the_end  # which Numba calls for types that are new to it
    return dispatcher
