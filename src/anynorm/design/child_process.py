"""Calls of other libraries that take long and look at no clock: a process of their own has them.

A thread could not be ended, and the process not end before it.  A process is ended at any time: by
Ctrl-C, and by whoever watches (`watch.py`).
"""

from __future__ import annotations

import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, cast

from anynorm.design.watch import look

Given = ParamSpec("Given")
Result = TypeVar("Result")

_GLANCE = 0.05  # seconds between two looks
_SERVE = "from anynorm.design.child_process import serve; serve()"


def in_child(
    function: Callable[Given, Result], *given: Given.args, **named: Given.kwargs
) -> Result:
    """Return ``function(*given, **named)``, computed by a process that ends with this call.

    All of it must be fit for pickle: functions of modules, arrays, numbers.  Where no interpreter
    can be started, as inside of other programs, it is computed here.

    Examples
    --------
    >>> from math import sqrt
    >>> from anynorm.design.child_process import in_child
    >>> in_child(sqrt, 9.0)
    3.0
    """
    if not sys.executable or getattr(sys, "frozen", False):
        return function(*given, **named)
    folders = [str(pathlib.Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    with tempfile.TemporaryFile() as question, tempfile.TemporaryFile() as answer:
        pickle.dump((function, given, named), question)
        question.seek(0)
        child = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=question,
            stdout=answer,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, folders))},
        )
        try:
            _wait_for(child)
        finally:
            child.kill()
            child.wait()
        if child.returncode:
            raise RuntimeError(f"the process for {function.__name__} ended: {child.returncode}")
        answer.seek(0)
        succeeded, result = pickle.load(answer)
    if not succeeded:
        raise result
    return cast(Result, result)


def _wait_for(child: subprocess.Popen[bytes]) -> None:
    """Wait for the end of a process, with a look from time to time."""
    while True:
        try:
            child.wait(_GLANCE)
        except subprocess.TimeoutExpired:
            look()
        else:
            return


def serve() -> None:
    """Answer the one question on standard input: what `in_child` starts a process for."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever waits, who ends this
    function, given, named = pickle.load(sys.stdin.buffer)
    answer: tuple[bool, Any]
    try:
        answer = True, function(*given, **named)
    except Exception as error:
        answer = False, error
    sys.stdout.buffer.write(pickle.dumps(answer))
