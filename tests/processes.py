"""Functions that test_harness calls in processes of their own; they import next to nothing."""

import os
import time

from benchmarks import harness


def answer(value):
    return {"value": value, "threads": os.environ["OMP_NUM_THREADS"], "process": os.getpid()}


def count(pause):
    yield from range(3)
    time.sleep(pause)
    yield 3


def peak(megabytes, resets):
    """The peak of work that frees all it takes, by the system's own peak or by looking often."""
    if not resets:
        harness._reset_peak = lambda: False

    def work():
        block = b"1" * (megabytes * 2**20)
        time.sleep(0.5)  # a thread that looks gets its turn, however busy the machine
        return len(block)

    return harness.peak_memory(work)


def threads_ours(share):
    """How many threads BLAS has in each run of work that sleeps; two are there at first."""
    from threadpoolctl import ThreadpoolController, threadpool_limits

    counts = []

    def work():
        [library, *_] = ThreadpoolController().select(user_api="blas").lib_controllers
        counts.append(library.get_num_threads())
        time.sleep(share)

    import numpy as np

    assert np.__config__
    with threadpool_limits(2):
        harness.timed(work, repeats=0)
    return counts
