"""Threads that help inside compiled code: a loop is shared out in microseconds.

To start tasks through the interpreter takes half a millisecond for sixteen threads: each of them
needs its lock.  A team waits in compiled code instead, without the lock.

    share_out(state, n_threads, function, count, a, b, ...)

calls ``function(k, k + 1, a, b, ...)`` for all k below count.  The function is a `loop` over parts
of the work, without a result.  Whoever has time takes the next part, the caller too: helpers that
are late, or not there, cost nothing but their help.  Parts write to places of their own, and none
of them may raise an error; all threads run the very code that one thread alone runs.  So results
do not depend on who did what.

Each thread has a lane, a stretch of parts that follow each other, and goes to those of others when
its own is empty.  Parts that are neighbours often write to one stretch of memory.  If two threads
do them at the same time, the cores fetch it from each other, ahead of time and in vain: two threads
made rows of a kernel more slowly than one.

All that is shared is a few numbers (`State`).  The word of a lane says which job is being done,
where the lane ends and which part is next, so that one exchange takes a part and shows that it
belongs to the job whose function was read: as long as a part is not done, the job does not end.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from enum import IntEnum
from typing import Any

import numpy as np
from numba import typeof
from numba.core import cgutils
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from anynorm.design.compiled import inner_loop, intrinsic, ir, loop, types

_BITS = 20  # for the end of a lane, and for the part that is next
_MOST = (1 << _BITS) - 1  # parts that a word can tell
_JOBS = (1 << 23) - 1  # as many have numbers of their own
_LEAVE = 1  # no part, and the second is next: helpers go home
_MOST_LANES = 64  # more threads than this have lanes in common
_PAUSES = 16  # of the processor between two looks at the word, half a microsecond
_SPINS = 300  # such looks before others may have the core
_PATIENCE = 10_000  # looks of a helper without work, some milliseconds, before it goes home
_APART = 16  # numbers from one to the next: two of them in one line of a cache would disturb


class State(IntEnum):
    """Where the numbers of a team are."""

    FUNCTION = 0
    GIVEN = 1
    YIELD = 2
    N_LANES = 3
    DONE = _APART
    ARRIVED = 2 * _APART
    LANES = 3 * _APART  # the word of the first one; the others follow


def new_team() -> NDArray[np.int64]:
    """Return the state of a team that nobody helps yet.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.dense_loops import copy_rows
    >>> from anynorm.design.team import new_team, share_out
    >>> X, out = np.eye(3), np.empty((2, 3))
    >>> share_out(new_team(), 2, copy_rows, 2, 1, X, np.array([2, 0]), out)
    >>> out
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    state = np.zeros(State.LANES + _MOST_LANES * _APART, np.int64)
    state[State.YIELD], state[State.N_LANES] = _yield_address(), 1
    return state


def share_out(
    state: NDArray[np.int64], n_threads: int, function: Any, count: int, *given: Any
) -> None:
    """Have a compiled function called for all parts below `count`, by the threads of a team."""
    key = function, *map(_kind, given)
    address = _addresses.get(key)
    if address is None:
        address = _addresses[key] = _code_address(function, given)
    _lead(state, min(n_threads, _MOST_LANES), address, count, *given)


def _kind(value: Any) -> Any:
    """What there is one version of compiled code for."""
    if isinstance(value, np.ndarray):
        return value.dtype.num, value.ndim, value.flags.num
    return type(value)


def _code_address(function: Any, given: tuple[Any, ...]) -> int:
    """Where the code of a function is, for things of such kinds; it is compiled if it must be."""
    kinds = types.intp, types.intp, *map(typeof, given)
    if kinds not in function.overloads:
        function.compile(kinds)
    compiled = function.overloads[kinds]
    return int(compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name))


_addresses: dict[Any, int] = {}


def _yield_address() -> int:
    """Where the function is by which a thread lets others have its core."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


# ---------------------------------------------------------------- what Numba has no words for


def _place(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> Any:
    """The place of an entry of an array."""
    return builder.gep(make_array(kind)(context, builder, array).data, [index])


def _read_entry(typingctx, array, index):
    """An entry as it is now, and with it all that was written before it."""

    def generate(context, builder, signature, given):
        place = _place(context, builder, signature.args[0], *given)
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(array, types.intp), generate


def _write_entry(typingctx, array, index, value):
    """An entry, after all that was written before it."""

    def generate(context, builder, signature, given):
        place = _place(context, builder, signature.args[0], *given[:2])
        builder.store_atomic(given[2], place, "release", 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


def _count_up(typingctx, array, index):
    """Add one to an entry, after all that was written before it; what it was."""

    def generate(context, builder, signature, given):
        place = _place(context, builder, signature.args[0], *given)
        return builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "acq_rel")

    return types.int64(array, types.intp), generate


def _exchange_entry(typingctx, array, index, before, after):
    """Put `after` in place of `before`; False where something else was there."""

    def generate(context, builder, signature, given):
        place = _place(context, builder, signature.args[0], *given[:2])
        found = builder.cmpxchg(place, given[2], given[3], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(array, types.intp, types.int64, types.int64), generate


def _call_part(typingctx, function, given, k):
    """Do part k by the function at an address, with what lies at another one."""

    def generate(context, builder, signature, values):
        builder.call(builder.inttoptr(values[0], _part_type().as_pointer()), values[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _call_yield(typingctx, function):
    """Let others have the core."""

    def generate(context, builder, signature, values):
        plain = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(values[0], plain.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _breathe(typingctx):
    """Tell the processor that this is a loop that waits."""

    def generate(context, builder, signature, values):
        if platform.machine().lower() in ("x86_64", "amd64"):
            plain = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            pause = cgutils.get_or_insert_function(builder.module, plain, name)
            for _ in range(_PAUSES):
                builder.call(pause, [])
        return context.get_dummy_value()

    return types.void(), generate


def _part_type() -> ir.FunctionType:
    """``void part(place, k)``."""
    return ir.FunctionType(ir.VoidType(), [ir.IntType(64), ir.IntType(64)])


def _part_function(typingctx, given):
    """The address of a function that does part k with ``(code, *given)`` that lie at a place.

    It calls the code, at its address, as Numba's functions call each other.
    """
    kinds = types.intp, types.intp, *given.types[1:]

    def generate(context, builder, signature, _):
        convention = context.call_conv
        name = builder.module.get_unique_name(f"{builder.function.name}.part")
        function = ir.Function(builder.module, _part_type(), name)
        function.linkage = "internal"
        own = ir.IRBuilder(function.append_basic_block("entry"))
        place, k = function.args
        whole = own.load(own.inttoptr(place, context.get_value_type(given).as_pointer()))
        code, *values = (own.extract_value(whole, i) for i in range(len(given.types)))
        code_type = convention.get_function_type(types.none, kinds)
        result, error = (own.alloca(kind.pointee) for kind in code_type.args[:2])
        following = own.add(k, ir.Constant(k.type, 1))
        packer = convention._get_arg_packer(kinds)
        arguments = packer.as_arguments(own, [k, following, *values])
        own.call(own.inttoptr(code, code_type.as_pointer()), [result, error, *arguments])
        own.ret_void()
        return builder.ptrtoint(function, ir.IntType(64))

    return types.int64(given), generate


def _place_of(typingctx, given):
    """The address of a copy that lasts as long as the function that asks for it."""

    def generate(context, builder, signature, values):
        return builder.ptrtoint(cgutils.alloca_once_value(builder, values[0]), ir.IntType(64))

    return types.int64(given), generate


_read: Any = intrinsic(_read_entry)
_write: Any = intrinsic(_write_entry)
_add_one: Any = intrinsic(_count_up)
_exchange: Any = intrinsic(_exchange_entry)
_do: Any = intrinsic(_call_part)
_let_others: Any = intrinsic(_call_yield)
_wait: Any = intrinsic(_breathe)
_part_address: Any = intrinsic(_part_function)
_address_of: Any = intrinsic(_place_of)

# ---------------------------------------------------------------- the work of a team

_FUNCTION, _GIVEN, _YIELD = int(State.FUNCTION), int(State.GIVEN), int(State.YIELD)
_N_LANES, _DONE, _ARRIVED = int(State.N_LANES), int(State.DONE), int(State.ARRIVED)
_LANES = int(State.LANES)


@inner_loop
def _take(state, own):
    """Do the next part, of the own lane if it has one: 1 if one was there, 0 if there is none.

    -1 if there will be none.
    """
    n_lanes = _read(state, _N_LANES)
    for k in range(n_lanes):
        lane = _LANES + (own + k) % n_lanes * _APART
        word = _read(state, lane)
        part, end = word & _MOST, (word >> _BITS) & _MOST
        if part > end:
            return -1
        if part < end:
            function, given = _read(state, _FUNCTION), _read(state, _GIVEN)
            if _exchange(state, lane, word, word + 1):
                _do(function, given, part)
                _add_one(state, _DONE)
            return 1
    return 0


@inner_loop
def _announce(state, lane, job, rest):
    """What a lane has to do, by what its word has besides the job's number."""
    _write(state, _LANES + lane * _APART, (job << (2 * _BITS)) | rest)


@inner_loop
def _next_job(state):
    """The number of the job that follows."""
    return ((_read(state, _LANES) >> (2 * _BITS)) + 1) & _JOBS


@inner_loop
def _have_done(state, n_lanes, function, given, count):
    """Have all parts done; the job is over when this returns."""
    _write(state, _FUNCTION, function)
    _write(state, _GIVEN, given)
    _write(state, _N_LANES, n_lanes)
    _write(state, _DONE, 0)
    job = _next_job(state)
    for lane in range(n_lanes):
        begin, end = lane * count // n_lanes, (lane + 1) * count // n_lanes
        _announce(state, lane, job, (end << _BITS) | begin)
    while _take(state, 0) > 0:
        pass
    looks = 0
    while _read(state, _DONE) < count:
        looks += 1
        _wait()
        if looks > _SPINS:
            _let_others(_read(state, _YIELD))


@loop
def _lead(state, n_lanes, code, count, *given):
    """Have compiled code called for all parts, as many at a time as the word can tell."""
    whole = (code, *given)
    function, place = _part_address(whole), _address_of(whole)
    if count <= _MOST:
        _have_done(state, n_lanes, function, place, count)
    else:
        for k in range(count):
            _do(function, place, k)


@loop
def help_team(state):
    """Take parts until there have been none for a while."""
    own, idle = _add_one(state, _ARRIVED), 0
    while idle < _PATIENCE:
        # The caller has the first lane.
        found = _take(state, 1 + own % max(1, _read(state, _N_LANES) - 1))
        if found < 0:
            return
        idle = 0 if found else idle + 1
        if idle:
            _wait()
        if idle > _SPINS:
            _let_others(_read(state, _YIELD))


@loop
def dismiss(state):
    """Send the helpers home."""
    _announce(state, 0, _next_job(state), _LEAVE)
