"""Where compiled code is kept, and how compiling is left in peace.

The cache lies beside the package, or with the user's caches where that cannot be written, in a
folder that is named by our version and Numba's: what another version has left is never read.
`NUMBA_CACHE_DIR` names another folder, `ANYNORM_DISABLE_CACHE=1` turns the cache off (locked
installs).  Where no folder can be written, each process compiles anew instead of failing.

Ctrl-C while Numba is imported or compiles would leave its tables half-made, and break it for the
rest of the process: the signal waits until Numba has finished, and is then delivered.

Numba is not imported here, as many fits need none of it.
"""

from __future__ import annotations

import functools
import gc
import os
import pathlib
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

from anynorm import __version__
from anynorm.design.waiting import compiling


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Hold Ctrl-C back inside, and deliver it at the end; in the main thread, where it arrives.

    Examples
    --------
    >>> import signal
    >>> from anynorm.design.code_cache import uninterrupted
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


@functools.cache
def cache_folder() -> str | None:
    """Where compiled code is kept: a folder that can be written, None where there is none.

    Examples
    --------
    >>> from anynorm.design.code_cache import cache_folder
    >>> folder = cache_folder()
    """
    if os.environ.get("ANYNORM_DISABLE_CACHE", "") not in ("", "0"):
        return None
    package = pathlib.Path(__file__).parents[1] / "__pycache__"
    name = f"anynorm-{__version__}-numba-{version('numba')}"
    own = (package / name, _user_caches() / "anynorm" / name)
    given = os.environ.get("NUMBA_CACHE_DIR")
    for folder in (pathlib.Path(given),) if given else own:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return str(folder)
    return None


def _user_caches() -> pathlib.Path:
    """Where programs keep what they can make again."""
    home = pathlib.Path.home()
    if sys.platform == "win32":
        return pathlib.Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


def fate() -> str:
    """What becomes of compiled code, in words."""
    folder = cache_folder()
    if folder is None:
        return "every process does so, as nothing can be kept (see `anynorm doctor`)"
    return f"kept in {folder}"


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


@contextmanager
def undisturbed() -> Iterator[None]:
    """Around what compiles: Ctrl-C and garbage wait, and who waits for long is told so."""
    with uninterrupted(), _without_collection(), compiling(fate()):
        yield
