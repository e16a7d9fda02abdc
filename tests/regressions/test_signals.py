"""Ctrl-C: it ends a fit as a KeyboardInterrupt, and leaves a process that can go on.

Every test runs in a process of its own, which is interrupted from outside or from within.
"""

import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals are sent to processes")

ROOT = pathlib.Path(__file__).parents[2]
DATA = """
import numpy as np
rng = np.random.default_rng(0)
X, y = rng.normal(size=(1500, 20)), rng.integers(0, 4, 1500)
"""
IN_THREADS = (
    DATA
    + """
from anynorm import SVC
SVC(n_jobs=2).fit(X[:60], y[:60])  # compiled now
print("ready", flush=True)
while True:
    SVC(C=100.0, n_jobs=2).fit(X, y)
"""
)
# Numba takes what functions it knows from a list and then puts them into its tables: interrupted
# between the two, it has lost them for good.
WHILE_COMPILING = (
    DATA
    + """
import signal
from numba.core.typing.context import BaseContext
from anynorm import LinearSVC
insert, inserted = BaseContext.insert_function, []

def interrupt_once(self, function):
    inserted.append(function)
    if len(inserted) == 20:
        signal.raise_signal(signal.SIGINT)
    insert(self, function)

BaseContext.insert_function = interrupt_once
for attempt in range(2):
    try:
        model = LinearSVC(tol=1e-2).fit(csr_array(X[:300]), y[:300] > 1)
        print(model.certificate_.status.value, flush=True)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
""".replace("import signal", "import signal\nfrom scipy.sparse import csr_array", 1)
)


def process(script, **variables):
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), **variables}
    # shells that start the tests in the background have them ignore the signal
    command = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    return subprocess.Popen(
        [sys.executable, "-c", command + script],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("after", [0.02, 0.2, 0.5])
def test_an_interrupt_in_threads_ends_in_keyboard_interrupt(after):
    """Aborted (SIGABRT) in 2 of 20: threads were still at work when the interpreter ended."""
    running = process(IN_THREADS)
    assert running.stdout.readline() == "ready\n"
    time.sleep(after)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert running.returncode == -signal.SIGINT  # how Python ends after one that nobody caught


def test_an_interrupt_while_compiling_leaves_numba_whole():
    """Broke Numba for the process: every fit after it was a TypingError."""
    running = process(WHILE_COMPILING, ANYNORM_DISABLE_CACHE="1")
    output, errors = running.communicate(timeout=120)
    assert output.split() == ["interrupted", "optimal"], errors
