"""How loops on arrays are compiled, by Numba: one decorator, cached wherever that can be."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from anynorm.design.code_cache import cache_folder, undisturbed, uninterrupted

with uninterrupted():
    from llvmlite import ir
    from numba import config, njit, types
    from numba.core.runtime.nrt import rtsys
    from numba.extending import intrinsic, overload

__all__ = [
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
def _numba_caches_in(folder: str | None) -> Iterator[None]:
    """Numba asks its settings for the folder at the time a function is decorated."""
    before = _settings.CACHE_DIR
    _settings.CACHE_DIR = folder or before
    try:
        yield
    finally:
        _settings.CACHE_DIR = before


def _load(cache: Any, signature: Any, context: Any) -> Any:
    """What Numba's cache has, without the tables of all that Numba can compile.

    They take a quarter of a second to fill.  Compiled code needs none of them, and whoever compiles
    fills them.
    """
    rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)


def _compiled(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    folder = cache_folder()
    # Nobody calls them from C; those that are called by other loops alone are kept with these.
    # Divisions by zero give inf or NaN: an exception for each of them is a branch to compile.
    defaults = {
        "nogil": True,
        "fastmath": _REORDER,
        "error_model": "numpy",
        "no_cfunc_wrapper": True,
        "cache": folder is not None,
    }
    with _numba_caches_in(folder):
        dispatcher = njit(**{**defaults, **options})(function)
    cache: Any = dispatcher._cache
    if cache.cache_path is not None:
        cache.load_overload = functools.partial(_load, cache)
    compile = dispatcher.compile

    @functools.wraps(compile)
    def compile_to_the_end(*signature: Any) -> Any:
        with undisturbed():
            return compile(*signature)

    dispatcher.compile = compile_to_the_end  # which Numba calls for types that are new to it
    return dispatcher
