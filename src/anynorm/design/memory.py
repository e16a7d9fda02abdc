"""How much memory there is left, and whether a memory-mapped X is too large for it."""

from __future__ import annotations

import contextlib
import math
import os
import pathlib

import numpy as np

from anynorm.design.interface import Matrix

_SHARE = 0.5  # of what is left: from here on a mapped X is read in blocks
_BLOCK_SHARE = 1 / 64  # of what is left: a block, of which a method makes a few copies
_KILOBYTE = 1024  # bytes, the unit of /proc


def memory_left() -> float:
    """The bytes that this process may still take: by the machine, and by its resource limits."""
    left = [_from_proc("/proc/meminfo", "MemAvailable")]
    if not math.isfinite(left[0]):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            left.append(float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
    with contextlib.suppress(ImportError):
        import resource

        for limit, used in (("RLIMIT_DATA", "VmData"), ("RLIMIT_AS", "VmSize")):
            soft = resource.getrlimit(getattr(resource, limit))[0]
            taken = _from_proc("/proc/self/status", used)
            if soft != resource.RLIM_INFINITY:
                left.append(max(0.0, soft - (taken if math.isfinite(taken) else 0.0)))
    return min(left)


def _from_proc(file: str, name: str) -> float:
    """An amount that Linux tells in kilobytes; infinite elsewhere."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in pathlib.Path(file).read_text().splitlines():
            if line.startswith(name + ":"):
                return float(line.split()[1]) * _KILOBYTE
    return math.inf


def rows_at_a_time(X: Matrix) -> int:
    """The rows of a block of a memory-mapped X that is too large for memory, 0 for all others."""
    if not isinstance(X, np.memmap) or X.ndim != 2 or X.dtype.kind != "f":
        return 0
    left = memory_left()
    if X.nbytes <= _SHARE * left:
        return 0
    return max(1, int(_BLOCK_SHARE * left / max(1, X.strides[0] if X.shape[0] > 1 else X.nbytes)))
