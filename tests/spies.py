"""What tests put in the place of a solver or of a user at the keyboard."""

import _thread
import importlib
import threading
import time

import pytest

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


def calls_of_solver(monkeypatch, Model, pause=0.0):
    """The options of every call of Model's solver from now on, each delayed by `pause` seconds."""
    seen = []

    def spy(solve, problem, **options):
        seen.append(options | {"problem": problem, "thread": threading.get_ident()})
        time.sleep(pause)
        return solve(problem, **options)

    replace_solver(monkeypatch, Model, spy)
    return seen


def seconds_to_obey(model, X, y):
    """How long a fit goes on after Ctrl-C."""
    sent = []

    def interrupt():
        sent.append(time.monotonic())
        _thread.interrupt_main()

    timer = threading.Timer(0.15, interrupt)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
        return time.monotonic() - sent[0]
    finally:
        timer.cancel()
