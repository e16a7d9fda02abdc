"""Threads that help inside compiled code: a loop is shared out in microseconds.

To start tasks through the interpreter takes half a millisecond for sixteen threads: each of them
needs its lock.  A team waits in compiled code instead, without the lock:

    in_parallel(team, task, count, (a, b, ...))     task(k, a, b, ...) for all k below count

inside a `loop`.  Whoever has time takes the next task, the caller too: helpers that are late, or
not there, cost nothing but their help.  Tasks write to places of their own, and none of them may
raise an error; so results do not depend on who did what.

All that is shared is a few numbers (`State`).  The word says which job is being done, how many
tasks it has and which is next, so that one exchange takes a task and shows that it belongs to the
job whose function was read: as long as a task that was taken is not done, the job does not end.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from enum import IntEnum
from typing import Any

import numpy as np
from numba.core import cgutils
from numba.np.arrayobj import make_array
from numpy.typing import NDArray

from anynorm.design.compiled import inner_loop, intrinsic, ir, loop, types

_BITS = 20  # for the number of tasks, and for the one that is next
_MOST = (1 << _BITS) - 1
_JOBS = (1 << 23) - 1  # as many have numbers of their own
_LEAVE = 1  # no task, and the second is next: helpers go home
_SPINS = 1000  # looks at the word, some 40 microseconds, before others may have the core
_PATIENCE = 3000  # such looks of a helper without work, some milliseconds, before it goes home
_APART = 16  # numbers from one to the next: two of them in one line of a cache would disturb


class State(IntEnum):
    """Where the numbers of a team are."""

    WORD = 0
    FUNCTION = _APART
    GIVEN = _APART + 1
    YIELD = _APART + 2
    DONE = 2 * _APART


def new_team() -> NDArray[np.int64]:
    """Return the state of a team that nobody helps yet.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.compiled import inner_loop, loop
    >>> from anynorm.design.team import in_parallel, new_team
    >>> @inner_loop
    ... def square(k, values):
    ...     values[k] *= values[k]
    >>> @loop
    ... def squares(team, values):
    ...     in_parallel(team, square, values.size, (values,))
    >>> values = np.arange(4.0)
    >>> squares(new_team(), values)
    >>> values
    array([0., 1., 4., 9.])
    """
    state = np.zeros(3 * _APART, np.int64)
    state[State.YIELD] = _yield_address()
    return state


def _yield_address() -> int:
    """Where the function is by which a thread lets others have its core."""
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread
    else:
        function = ctypes.CDLL(None).sched_yield
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


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
    """Add one to an entry, after all that was written before it."""

    def generate(context, builder, signature, given):
        place = _place(context, builder, signature.args[0], *given)
        builder.atomic_rmw("add", place, ir.Constant(ir.IntType(64), 1), "acq_rel")
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _exchange_entry(typingctx, array, index, before, after):
    """Put `after` in place of `before`; False where something else was there."""

    def generate(context, builder, signature, given):
        place = _place(context, builder, signature.args[0], *given[:2])
        found = builder.cmpxchg(place, given[2], given[3], "acq_rel", "acquire")
        return builder.extract_value(found, 1)

    return types.boolean(array, types.intp, types.int64, types.int64), generate


def _call_task(typingctx, function, given, k):
    """Do task k of a function at an address."""

    def generate(context, builder, signature, given):
        function = builder.inttoptr(given[0], _task_type().as_pointer())
        builder.call(function, given[1:])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _call_yield(typingctx, function):
    """Let others have the core."""

    def generate(context, builder, signature, given):
        plain = ir.FunctionType(ir.IntType(32), [])
        builder.call(builder.inttoptr(given[0], plain.as_pointer()), [])
        return context.get_dummy_value()

    return types.void(types.int64), generate


def _breathe(typingctx):
    """Tell the processor that this is a loop that waits."""

    def generate(context, builder, signature, given):
        if platform.machine().lower() in ("x86_64", "amd64"):
            plain = ir.FunctionType(ir.VoidType(), [])
            name = "llvm.x86.sse2.pause"
            builder.call(cgutils.get_or_insert_function(builder.module, plain, name), [])
        return context.get_dummy_value()

    return types.void(), generate


def _task_type() -> ir.FunctionType:
    """``void task(given, k)``."""
    return ir.FunctionType(ir.VoidType(), [ir.IntType(64), ir.IntType(64)])


def _task_of(typingctx, task, given):
    """The address of a function that does task k with what lies at an address."""
    wanted = (types.intp, *given.types)
    typingctx.resolve_function_type(task, wanted, {})

    def generate(context, builder, signature, given_values):
        compiled = task.dispatcher.get_compile_result(types.void(*wanted))
        context.active_code_library.add_linking_library(compiled.library)
        name = builder.module.get_unique_name(f"{builder.function.name}.task")
        outlined = ir.Function(builder.module, _task_type(), name)
        outlined.linkage = "internal"
        own = ir.IRBuilder(outlined.append_basic_block("entry"))
        kind = context.get_value_type(given)
        values = own.load(own.inttoptr(outlined.args[0], kind.as_pointer()))
        parts = [own.extract_value(values, i) for i in range(len(given.types))]
        context.call_internal_no_propagate(
            own, compiled.fndesc, compiled.signature, [outlined.args[1], *parts]
        )
        own.ret_void()
        return builder.ptrtoint(outlined, ir.IntType(64))

    return types.int64(task, given), generate


def _place_of(typingctx, given):
    """The address of a copy that lasts as long as the function that asks for it."""

    def generate(context, builder, signature, values):
        place = cgutils.alloca_once_value(builder, values[0])
        return builder.ptrtoint(place, ir.IntType(64))

    return types.int64(given), generate


_read: Any = intrinsic(_read_entry)
_write: Any = intrinsic(_write_entry)
_add_one: Any = intrinsic(_count_up)
_exchange: Any = intrinsic(_exchange_entry)
_do: Any = intrinsic(_call_task)
_let_others: Any = intrinsic(_call_yield)
_wait: Any = intrinsic(_breathe)
task_address: Any = intrinsic(_task_of)
place_address: Any = intrinsic(_place_of)

_WORD, _FUNCTION, _GIVEN = int(State.WORD), int(State.FUNCTION), int(State.GIVEN)
_YIELD, _DONE = int(State.YIELD), int(State.DONE)


@inner_loop
def _take(team):
    """Do the next task: 1 if one was done, 0 if there is none, -1 if there will be none."""
    word = _read(team, _WORD)
    k, count = word & _MOST, (word >> _BITS) & _MOST
    if k >= count:
        return -1 if k > count else 0
    function, given = _read(team, _FUNCTION), _read(team, _GIVEN)
    if _exchange(team, _WORD, word, word + 1):
        _do(function, given, k)
        _add_one(team, _DONE)
    return 1


@loop
def help_team(team):
    """Take tasks until there have been none for a while."""
    idle = 0
    while idle < _PATIENCE:
        found = _take(team)
        if found < 0:
            return
        idle = 0 if found else idle + 1
        if idle > _SPINS:
            _let_others(_read(team, _YIELD))
        else:
            _wait()


@inner_loop
def _announce(team, rest):
    """A new job, by what its word has besides the job's number."""
    job = ((_read(team, _WORD) >> (2 * _BITS)) + 1) & _JOBS
    _write(team, _WORD, (job << (2 * _BITS)) | rest)


@loop
def dismiss(team):
    """Send the helpers home."""
    _announce(team, _LEAVE)


@inner_loop
def lead(team, function, given, count):
    """Have the tasks of a function done; the job is over when this returns."""
    if team.size == 0 or count == 1 or count > _MOST:
        for k in range(count):
            _do(function, given, k)
        return
    _write(team, _FUNCTION, function)
    _write(team, _GIVEN, given)
    _write(team, _DONE, 0)
    _announce(team, count << _BITS)
    while _take(team) > 0:
        pass
    looks = 0
    while _read(team, _DONE) < count:
        looks += 1
        if looks > _SPINS:
            _let_others(_read(team, _YIELD))
        else:
            _wait()


@inner_loop
def in_parallel(team, task, count, given):
    """Call ``task(k, *given)`` for all k below `count`, on the threads of a team."""
    lead(team, task_address(task, given), place_address(given), count)
