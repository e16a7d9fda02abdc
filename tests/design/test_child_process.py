"""Long calls in a process of their own: results and errors come back, and nobody need wait."""

import math
import os
import subprocess
import sys
import time

import numpy as np
import pytest

from anynorm.design.child_process import in_child
from anynorm.design.watch import watched


def test_results_and_errors_come_back():
    big = np.arange(300_000.0)  # more than fits into a pipe
    assert np.array_equal(in_child(np.negative, big), -big)
    assert in_child(os.getpid) != os.getpid()
    with pytest.raises(ValueError, match=r"math domain error|expected a nonnegative"):
        in_child(math.sqrt, -1.0)


def test_a_process_that_dies_is_an_error():
    with pytest.raises(RuntimeError, match="_exit ended: 3"):
        in_child(os._exit, 3)


def test_a_look_ends_the_wait():
    def too_late():
        raise TimeoutError

    begin = time.monotonic()
    with pytest.raises(TimeoutError), watched(too_late):
        in_child(time.sleep, 20.0)
    assert time.monotonic() - begin < 10.0


def test_an_interrupt_ends_the_wait_and_the_child():
    code = """
import signal, threading, time
from anynorm.design.child_process import in_child
threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT)).start()
try:
    in_child(time.sleep, 60.0)
except KeyboardInterrupt:
    print("interrupted")
"""
    begin = time.monotonic()
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")
    assert time.monotonic() - begin < 30.0


def test_without_an_interpreter_it_is_done_here(monkeypatch):
    monkeypatch.setattr(sys, "executable", "")
    assert in_child(os.getpid) == os.getpid()
