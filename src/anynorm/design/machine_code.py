"""Translated functions as machine code: optimised by LLVM, kept on disk, called without Numba.

What is kept is named by everything that it depends on: the functions (`lowering`) and the
constants in them, what is known of their arguments, the versions, the processor.  To load it takes
a few milliseconds, as neither Numba nor a compiler is needed for that.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import pathlib
import sys
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from anynorm import __version__
from anynorm.design.addresses import Vector, is_kind
from anynorm.design.code_cache import cache_folder, undisturbed

_C_KINDS = {int: ctypes.c_int64, float: ctypes.c_double}
_DIGEST = hashlib.sha256().digest_size
_lock = threading.RLock()
_loaded: list[Any] = []  # engines, which own the code


@functools.cache
def machine_code(function: Callable[..., int | None], *given: Any) -> Callable[..., int]:
    """Return a function as machine code, which runs without the interpreter's lock.

    Parameters
    ----------
    function : callable
        Of a module, in the part of Python that `lowering` knows; what it returns is an integer
        or nothing.
    given : int, float, Vector or object
        For each of its parameters the kind of what it will be given or, where it is known already,
        the value.

    Returns
    -------
    callable
        Of those parameters that are not known already.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.addresses import Vector
    >>> from anynorm.design.machine_code import machine_code
    >>> from anynorm.solvers.kernel.block_loops import best_riser
    >>> code = machine_code(best_riser, int, Vector(), Vector(), Vector(), float)
    >>> pull, rises = np.array([1.0, 3.0, 4.0]), np.array([0.0, 0.0, -np.inf])
    >>> code(3, pull, rises, np.ones(3), 0.0)
    1
    """
    with _lock:
        name = _name(function, given)
        code = _kept(name)
        if code is None:
            with undisturbed():
                code = _compiled(function, given)
            _keep(name, code)
        engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _processor())
        engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        engine.finalize_object()
        _loaded.append(engine)
        address = engine.get_function_address(function.__name__)
        return _callable(address, [one for one in given if is_kind(one)])


def _callable(address: int, kinds: list[Any]) -> Callable[..., int]:
    """The code at an address as a function, which looks at the arrays that it is given."""
    codes: list[Any] = [_C_KINDS.get(kind, ctypes.py_object) for kind in kinds]
    code = ctypes.CFUNCTYPE(ctypes.c_int64, *codes)(address)
    arrays = [(k, np.dtype(kind.item)) for k, kind in enumerate(kinds) if isinstance(kind, Vector)]
    if not arrays:
        return code

    def checked(*given: Any) -> int:
        for k, dtype in arrays:
            array = given[k]
            if array.dtype != dtype or not array.flags.c_contiguous:
                raise TypeError(f"argument {k} must be an array of {dtype} in C order")
        return code(*given)

    return checked


@functools.cache
def _processor() -> Any:
    """The processor that we run on, as LLVM knows it."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_triple(llvm.get_process_triple())
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=3, reloc="default", jit=True
    )


def _compiled(function: Callable[..., Any], given: tuple[Any, ...]) -> bytes:
    from anynorm.design.lowering import translate

    module = llvm.parse_assembly(translate(function, *given))
    module.triple, module.data_layout = _processor().triple, str(_processor().target_data)
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    tuning.loop_vectorization = tuning.loop_interleaving = tuning.loop_unrolling = True
    passes = llvm.create_pass_builder(_processor(), tuning)
    passes.getModulePassManager().run(module, passes)
    code: bytes = _processor().emit_object(module)
    return code


def _name(function: Callable[..., Any], given: tuple[Any, ...]) -> str:
    """What the code of a function is kept under."""
    digest = hashlib.sha256()
    versions = __version__, llvmlite.__version__, sys.version
    machine = (
        llvm.get_process_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    )
    for part in (*versions, *machine, repr(given), *_parts(function, set())):
        digest.update(part.encode() + b"\0")
    return f"{function.__name__}-{digest.hexdigest()[:32]}.o"


def _parts(value: Any, seen: set[Any]) -> Iterator[str]:
    """Everything that a function is made of, those that it calls too."""
    if not isinstance(value, FunctionType):
        yield repr(value)
    elif value not in seen:
        seen.add(value)
        code: CodeType = value.__code__
        yield f"{code.co_code!r} {code.co_consts!r} {code.co_names!r} {code.co_varnames!r}"
        for name in code.co_names:
            if name in value.__globals__:
                yield from _parts(value.__globals__[name], seen)


def _kept(name: str) -> bytes | None:
    """What is kept under a name, if it is whole."""
    folder = cache_folder()
    if folder is None:
        return None
    try:
        content = (pathlib.Path(folder) / name).read_bytes()
    except OSError:
        return None
    checksum, code = content[:_DIGEST], content[_DIGEST:]
    return code if hashlib.sha256(code).digest() == checksum else None


def _keep(name: str, code: bytes) -> None:
    """In one step, so that other processes find all of it or nothing."""
    folder = cache_folder()
    if folder is None:
        return
    path = pathlib.Path(folder) / name
    part = path.with_suffix(f".{os.getpid()}")  # with the rights that files have here, for others
    try:
        part.write_bytes(hashlib.sha256(code).digest() + code)
        part.replace(path)
    except OSError:  # the disk is full, or another process reads it on Windows
        part.unlink(missing_ok=True)
