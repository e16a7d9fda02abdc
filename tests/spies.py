"""What tests put in the place of a solver or of a user at the keyboard."""

import _thread
import importlib
import threading
import time

import pytest

from anynorm.design import threads

_SOLVERS = {
    "LinearSVC": ("anynorm.solvers.linear", "solve_linear"),
    "SparseSVC": ("anynorm.solvers.one_norm", "solve_one_norm"),
    "SVC": ("anynorm.solvers.kernel", "solve_kernel"),
    "BudgetSVC": ("anynorm.solvers.kernel", "solve_kernel"),
    "LeastNormSVC": ("anynorm.solvers.kernel", "solve_kernel"),
}


def replace_solver(monkeypatch, Model, stand_in):
    """Have `stand_in(solve, problem, **options)` called where Model would call its solver."""
    module, name = _SOLVERS[Model.__name__]
    solve = getattr(importlib.import_module(module), name)
    monkeypatch.setattr(
        f"{module}.{name}", lambda problem, **options: stand_in(solve, problem, **options)
    )


class Stopwatch:
    """Seconds that this process was at work, whatever else the machine has to do."""

    def __init__(self):
        self._began = time.monotonic(), time.process_time()

    @property
    def seconds(self):
        """The lesser of the wall's clock, which others slow down, and the CPU's, of all threads."""
        wall, cpu = self._began
        return min(time.monotonic() - wall, time.process_time() - cpu)


def calls_of_solver(monkeypatch, Model, n_threads=1):
    """The options of every call of Model's solver from now on.

    Each call waits until `n_threads` threads have called, or half a minute.
    """
    seen, all_called = [], threading.Event()

    def spy(solve, problem, **options):
        seen.append(options | {"problem": problem, "thread": threading.get_ident()})
        if len({call["thread"] for call in seen}) >= n_threads:
            all_called.set()
        all_called.wait(30.0)
        return solve(problem, **options)

    replace_solver(monkeypatch, Model, spy)
    return seen


def seconds_to_obey(work):
    """How long a piece of work goes on after Ctrl-C."""
    sent = []

    def interrupt():
        sent.append(Stopwatch())
        _thread.interrupt_main()

    timer = threading.Timer(0.15, interrupt)

    def interrupted():
        timer.start()
        work()

    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        return sent[0].seconds
    finally:
        timer.cancel()


def divided_work(monkeypatch):
    """A list of how many tasks each piece of work had that was divided among threads."""
    seen, begin = [], threads._SharedTasks.__init__

    def noted(shared, task, count, share):
        seen.append(count)
        begin(shared, task, count, share)

    share_out = threads._Team.share_out

    def noted_parts(team, n_helpers, function, count, *given):
        seen.append(count)
        share_out(team, n_helpers, function, count, *given)

    monkeypatch.setattr(threads._SharedTasks, "__init__", noted)
    monkeypatch.setattr(threads._Team, "share_out", noted_parts)
    return seen
