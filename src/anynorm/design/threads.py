"""Threads: our own, on fixed blocks of work, and those of the linear algebra library held at one.

A BLAS starts as many threads as there are cores for products that one core does in microseconds,
and adds up in another order with each number of them.  So whatever a user calls is an
`entry_point`: BLAS has one thread while it runs, and our own code is what runs at the same time,

    run(task, count)        task(0), ..., task(count - 1), on as many threads as are allowed
    share(function, count, ...)     the same for a compiled loop over short parts (`team.py`)

in blocks whose size depends on the data alone and whose results are put together in their order.
So results are the same bits for any number of threads, and no fit is slower for having more cores.

How many threads are allowed is said once, by the entry point (`n_jobs` of an estimator).  Work that
runs as one of several tasks has its share of them: never are more than `n_jobs` busy.
"""

from __future__ import annotations

import atexit
import contextvars
import itertools
import multiprocessing
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial, wraps
from numbers import Integral
from typing import Any, ParamSpec, TypeVar

import numpy as np

from anynorm.design.blocks import ranges
from anynorm.design.watch import look, watched

Given = ParamSpec("Given")
Result = TypeVar("Result")

_AT_A_TIME = 64  # results that are waited for together
_ROWS = 1 << 16  # half a megabyte of each vector: some tenths of a millisecond, from the cache
_PATIENCE = 0.3  # seconds that an interrupted run waits for tasks of other threads to end
_LAST_PATIENCE = 5.0  # the same at the end of the process, where a thread left over would crash it


def entry_point(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Decorate what users call; its threads are those of the estimator that it is a method of.

    Examples
    --------
    >>> from anynorm.design.threads import allowed, entry_point
    >>> @entry_point
    ... def threads():
    ...     return allowed()
    >>> threads()
    1
    """

    @wraps(function)
    def entered(*given: Given.args, **named: Given.kwargs) -> Result:
        owner = given[0] if given and hasattr(given[0], "get_params") else None
        with Threads(getattr(owner, "n_jobs", None)):
            return function(*given, **named)

    return entered


class Threads:
    """A context with one thread for BLAS, and as many of ours as `n_jobs` says.

    Within another such context, None and -1 are what that one has left for the work at hand.  BLAS
    has one number of threads for the whole process.  It is what it was before as soon as no such
    context is open any more, in whatever thread, and however they have ended.

    Examples
    --------
    >>> from anynorm.design.threads import Threads, allowed
    >>> with Threads(3):
    ...     allowed()
    3
    """

    def __init__(self, n_jobs: int | None) -> None:
        self._n_jobs = n_jobs
        self._blas = _BlasHeld()

    def __enter__(self) -> None:
        self._before = getattr(_thread, "allowed", 0)
        self._blas.__enter__()
        _thread.allowed = _asked_for(self._n_jobs, self._before)

    def __exit__(self, *error: object) -> None:
        _thread.allowed = self._before
        self._blas.__exit__()


def allowed() -> int:
    """How many threads the work at hand may use, this one included."""
    return max(1, getattr(_thread, "allowed", 0))


def on_cluster(n_jobs: int | None) -> bool:
    """Whether joblib has been told to use a Dask cluster, which is for more than one thread.

    Work that is one of the cluster's tasks itself stays where it is.
    """
    return n_jobs != 1 and not _in_a_task_of_dask() and _joblib_uses_dask()


def run(task: Callable[[int], Result], count: int) -> list[Result]:
    """Return ``[task(0), ..., task(count - 1)]``, computed by as many threads as are allowed.

    The first error ends the run: tasks that have not begun are left out, those at work end when
    they next `look` (`watch.py`).

    Examples
    --------
    >>> from anynorm.design.threads import run
    >>> run(lambda k: k**2, 4)
    [0, 1, 4, 9]
    """
    n_threads = min(count, allowed())
    if n_threads <= 1:
        return [task(k) for k in range(count)]
    _dismiss_team()  # the tasks need its threads
    shared = _SharedTasks(task, count, allowed() // n_threads)
    settings = np.geterr()  # which are part of the context from NumPy 2 on
    for _ in range(n_threads - 1):
        _helpers.call(partial(contextvars.copy_context().run, shared.help, settings))
    try:
        shared.work()
        shared.wait()
    except BaseException:  # Ctrl-C outside of a task
        shared.wait(_PATIENCE)
        raise
    return shared.results


def one_by_one(task: Callable[[int], Result], count: int) -> list[Result]:
    """Return what `run` does, each task with all threads that are allowed, after the last one."""
    return [task(k) for k in range(count)]


def each(task: Callable[[int], Result], count: int) -> Iterator[Result]:
    """Yield what `run` returns, with few results in memory: for sums of long parts.

    One thread has one of them at a time.
    """
    if allowed() == 1:
        yield from map(task, range(count))
        return
    for start in range(0, count, _AT_A_TIME):
        results = run(partial(_shifted, task, start), min(_AT_A_TIME, count - start))
        results.reverse()
        while results:  # let go of one by one, as helpers may hold the list
            yield results.pop()


def by_rows(task: Callable[[slice], Result], n: int) -> list[Result]:
    """Return what a task makes of blocks of n rows, of one block where they are few: for sums.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.threads import by_rows
    >>> v = np.ones(200_000)
    >>> by_rows(lambda rows: float(v[rows].sum()), len(v))
    [65536.0, 65536.0, 65536.0, 3392.0]
    """
    if n <= 2 * _ROWS:
        return [task(slice(0, n))]
    places = list(ranges(n, _ROWS))
    return run(lambda k: task(places[k]), len(places))


def _shifted(task: Callable[[int], Result], start: int, k: int) -> Result:
    return task(start + k)


def share(function: Callable[..., None], count: int, *given: Any) -> None:
    """Call a compiled ``function(first, last, *given)`` for 0..count, by as many as are allowed.

    The function loops over parts of the work that are microseconds long, write to places of their
    own and raise no error.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.design.dense_loops import copy_rows
    >>> from anynorm.design.threads import share
    >>> X, out = np.eye(3), np.empty((2, 3))
    >>> share(copy_rows, 2, 1, X, np.array([2, 0]), out)
    >>> out
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    n_threads = min(count, allowed())
    if n_threads <= 1:
        function(0, count, *given)
        return
    if getattr(_thread, "team", None) is None:
        _thread.team = _Team()
    _thread.team.share_out(n_threads - 1, function, count, *given)


def _dismiss_team() -> None:
    own = getattr(_thread, "team", None)
    if own is not None:
        own.dismiss()


class _Team:
    """Threads that help the one that it belongs to, and how many are there."""

    def __init__(self) -> None:
        from anynorm.design import team  # imports Numba: where it is needed

        self._code, self._state = team, team.new_team()
        self._present, self._lock = 0, threading.Lock()

    def share_out(self, n_helpers: int, function: Any, count: int, *given: Any) -> None:
        """Call for as many helpers as are missing, and begin without waiting for them."""
        if self._present < n_helpers:
            with self._lock:
                missing, self._present = n_helpers - self._present, n_helpers
            for _ in range(missing):
                _helpers.call(self._serve)
        self._code.share_out(self._state, n_helpers + 1, function, count, *given)

    def dismiss(self) -> None:
        """Send the helpers home, if there are any."""
        if self._present:
            self._code.dismiss(self._state)

    def _serve(self) -> None:
        try:
            self._code.help_team(self._state)
        finally:
            with self._lock:
                self._present -= 1


class _Over(BaseException):
    """The run that a task belongs to has failed; not an error that solvers could mend."""


class _SharedTasks:
    """Tasks that several threads take one after the other."""

    def __init__(self, task: Callable[[int], Any], count: int, share: int) -> None:
        self._task, self._count, self._share = task, count, share
        self._next, self._left, self._lock = itertools.count(), count, threading.Lock()
        self._done = threading.Event()
        self._errors: dict[int, BaseException] = {}
        self._patience: float | None = None
        self.failed = False
        self.results: list[Any] = [None] * count

    def work(self) -> None:
        """Take tasks until there are none left."""
        before = getattr(_thread, "allowed", 0)
        _thread.allowed = self._share
        try:
            while (k := next(self._next)) < self._count:
                try:
                    with watched(self._obey):
                        look()
                        self.results[k] = self._task(k)
                except _Over:
                    pass
                except BaseException as error:
                    self.failed = True
                    self._errors[k] = error
                    if not isinstance(error, Exception):
                        self._patience = _PATIENCE
                finally:
                    with self._lock:
                        self._left -= 1
                        if not self._left:
                            self._done.set()
        except BaseException:
            self.failed = True
            raise
        finally:
            _thread.allowed = before

    def help(self, settings: Any) -> None:
        """Work in a thread of its own, with NumPy's settings of the one that waits."""
        with np.errstate(**settings):
            self.work()

    def _obey(self) -> None:
        if self.failed:
            raise _Over

    def wait(self, seconds: float | None = None) -> None:
        """Wait until no task is at work any more, then raise the first error."""
        try:
            self._done.wait(seconds or self._patience)
        except BaseException:
            self.failed = True
            raise
        interrupts = [e for e in self._errors.values() if not isinstance(e, Exception)]
        if interrupts:  # Ctrl-C in a task of this thread makes errors of others
            raise interrupts[0]
        if self._errors:
            raise self._errors[min(self._errors)]


class _Helpers:
    """Threads that wait for work; there are as many as were ever needed at once."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock, self._idle = threading.Lock(), 0
        self._threads: list[threading.Thread] = []

    def call(self, function: Callable[[], None]) -> None:
        """Have a function called by a helper."""
        with self._lock:
            self._idle -= 1
            if self._idle < 0:
                self._idle += 1
                thread = threading.Thread(target=self._serve, name="anynorm", daemon=True)
                thread.start()
                self._threads.append(thread)
        self._calls.put(function)

    def _serve(self) -> None:
        while (function := self._calls.get()) is not None:
            function()
            del function
            with self._lock:
                self._idle += 1

    def end(self) -> None:
        """End the helpers: a process must not end while one of them is in compiled code."""
        for _ in self._threads:
            self._calls.put(None)
        for thread in self._threads:
            thread.join(_LAST_PATIENCE)


class _BlasHeld:
    """One of those that hold BLAS at one thread; the first takes the number, the last returns it.

    Where Ctrl-C strikes between the two, the end of the object lets go.
    """

    __slots__ = ("__weakref__",)

    def __enter__(self) -> None:
        with _lock:
            first = not _holds
            _holds.add(id(self))
            if (
                first and not _before
            ):  # there are some where Ctrl-C has struck as they were given back
                _before[:] = [(library, library.get_num_threads()) for library in _libraries()]
            for library, count in _before:
                if count != 1:
                    _set_threads(library, 1)

    def __exit__(self, *error: object) -> None:
        with _lock:
            if id(self) in _holds:
                _holds.discard(id(self))
                if not _holds:
                    _give_back()

    __del__ = __exit__


def _libraries() -> list[Any]:
    """The linear algebra libraries of NumPy and SciPy; to look for them takes milliseconds."""
    if not _found:
        import scipy.linalg  # noqa: F401  it brings a library of its own, which is to be found
        from threadpoolctl import ThreadpoolController

        _found.extend(ThreadpoolController().select(user_api="blas").lib_controllers)
    return _found


def _give_back() -> None:
    for library, count in _before:
        if count != 1:
            _set_threads(library, count)
    _before.clear()


def _set_threads(library: Any, count: int) -> None:
    """Set the number of threads of a library, from whatever thread of ours."""
    # threadpoolctl from 3.8 on lets one thread set it, and ignores all others without a word
    free = getattr(library, "clear_controlling_thread", lambda force: None)
    free(force=True)
    library.set_num_threads(count)
    free(force=True)


def _asked_for(n_jobs: int | None, outer: int) -> int:
    """The number of threads that `n_jobs` means, in work that may use `outer` (0: it is the first).

    Where others have started us beside our like, in workers of joblib or Dask, only what they have
    left us is used.  What is no number of threads is for others to complain about.
    """
    if n_jobs is not None and not (isinstance(n_jobs, Integral) and n_jobs):
        n_jobs = 1
    if outer:
        return outer if n_jobs is None or n_jobs < 0 else min(outer, n_jobs)
    from joblib import effective_n_jobs

    count = int(effective_n_jobs(n_jobs))
    return count if count == 1 else min(count, _left_by_others(count))


def _in_a_task_of_dask() -> bool:
    if "distributed" not in sys.modules:
        return False
    from distributed.worker import thread_state

    return hasattr(thread_state, "execution_state")


def _joblib_uses_dask() -> bool:
    if "distributed" not in sys.modules:
        return False
    from joblib._dask import DaskDistributedBackend
    from joblib.parallel import get_active_backend

    return isinstance(get_active_backend()[0], DaskDistributedBackend)


def _left_by_others(count: int) -> int:
    """How many of `count` threads are meant for us by those who run us in one of their workers."""
    import joblib
    from joblib.parallel import get_active_backend

    if _in_a_task_of_dask():
        return 1
    if _joblib_uses_dask():
        return min(count, joblib.cpu_count())  # the cluster's cores are not this machine's
    if not (get_active_backend()[0].nesting_level or 0):
        return count
    if multiprocessing.parent_process() is None:
        return 1
    return max(1, int(os.environ.get("OMP_NUM_THREADS", "1")))  # joblib sets it for its processes


def _begin_anew() -> None:
    """After a fork: the other threads are not there any more."""
    global _lock, _helpers
    _lock, _helpers = threading.RLock(), _Helpers()
    _thread.team = None
    _holds.clear()
    _give_back()


_thread = threading.local()
_helpers = _Helpers()
_lock = threading.RLock()  # of one thread again where the end of an object comes in between
_holds: set[int] = set()
_before: list[tuple[Any, int]] = []
_found: list[Any] = []
atexit.register(lambda: _helpers.end())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)
