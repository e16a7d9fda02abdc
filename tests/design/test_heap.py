"""Freed memory stays at hand where Dask would have it given back."""

import subprocess
import sys

import pytest

CODE = """
import resource
from contextlib import nullcontext
import numpy as np
from anynorm.design.heap import kept_heap

def faults(context):
    with context:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(200):
            np.ones(100_000)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults(nullcontext())
print(faults(nullcontext()), faults(kept_heap()), faults(nullcontext()))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a variable of glibc")
@pytest.mark.parametrize("variable", ["65536", ""])
def test_arrays_are_not_fetched_from_the_system_anew(variable):
    environment = {"MALLOC_TRIM_THRESHOLD_": variable} if variable else {}
    found = subprocess.run(
        [sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=True
    )
    before, within, after = map(int, found.stdout.split())
    pages = 200 * 800_000 // 4096
    if not variable:
        assert max(before, within, after) < 0.1 * pages
        return
    assert within < 0.1 * pages
    assert before > 0.9 * pages or before == within  # another C library
    assert after > 0.5 * before  # as Dask wants it
