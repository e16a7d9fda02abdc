"""Functions that test_benchmarks calls in processes of their own; they import next to nothing."""

import os
import time


def answer(value):
    return {"value": value, "threads": os.environ["OMP_NUM_THREADS"], "process": os.getpid()}


def count(pause):
    yield from range(3)
    time.sleep(pause)
    yield 3
