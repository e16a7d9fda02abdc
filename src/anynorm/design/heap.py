"""Memory that was freed stays at hand while a worker of Dask works.

Dask starts its workers with MALLOC_TRIM_THRESHOLD_=65536, so that memory goes back to the system as
soon as it is free.  It also means that every array of 128 kB and more is fetched from the system
anew, page by page: half of the processor time of a round over blocks of rows.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from functools import cache
from typing import Any

_VARIABLE = "MALLOC_TRIM_THRESHOLD_"
_TRIM, _MAP = -1, -3  # of mallopt: M_TRIM_THRESHOLD and M_MMAP_THRESHOLD
_LARGE, _LARGE_MAP = 2**31 - 1, 2**25  # bytes: the most that it takes for each
_USUAL_MAP = 2**17  # bytes: the threshold of a process that has set the other one


@contextlib.contextmanager
def kept_heap() -> Iterator[None]:
    """Let freed memory stay with this process until the end, where Dask has it given back at once.

    Does nothing where nobody has set that, or where the C library is another than glibc.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.heap import kept_heap
    >>> with kept_heap():
    ...     float(np.ones(10**6).sum())
    1000000.0
    """
    usual, library = os.environ.get(_VARIABLE, ""), _glibc()
    if not usual.isdigit() or library is None:
        yield
        return
    library.mallopt(_TRIM, _LARGE)
    library.mallopt(_MAP, _LARGE_MAP)
    try:
        yield
    finally:
        library.mallopt(_MAP, _USUAL_MAP)
        library.mallopt(_TRIM, min(int(usual), _LARGE))


def give_back() -> None:
    """Give all pages that are free back to the system, also those between others in use."""
    library = _glibc()
    if library is not None:
        library.malloc_trim(0)


@cache
def _glibc() -> Any:
    """The C library of Linux, None elsewhere."""
    if not sys.platform.startswith("linux"):
        return None
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018 - other libraries have no such function
        return library
    return None
