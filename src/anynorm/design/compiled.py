"""How our loops are compiled: one decorator, with an on-disk cache wherever one can be kept.

`ANYNORM_DISABLE_CACHE=1` turns the cache off (locked installs).  Where Numba finds no folder
it may write to, the loops are compiled anew in each process instead of failing.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from numba import njit

# Sums may be reordered (several accumulators, fused multiply-add); NaN and inf keep their meaning.
_REORDER = {"reassoc", "contract", "nsz"}
_IN_ORDER = {"contract", "nsz"}


def loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile `function` without the interpreter lock, cached on disk where that is possible."""
    return _compiled(function)


def inner_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `loop`, for functions that only other loops call: half the time to compile."""
    return _compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


def ordered_loop(function: Callable[..., Any]) -> Callable[..., Any]:
    """As `loop`, for functions whose digits depend on the order of their operations."""
    return _compiled(function, fastmath=_IN_ORDER)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    options = {"nogil": True, "fastmath": _REORDER, **options}
    if os.environ.get("ANYNORM_DISABLE_CACHE", "") not in ("", "0"):
        return njit(**options)(function)
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # "no locator available": neither the package nor the home can be written
        return njit(**options)(function)
