"""Long calls of BLAS and LAPACK: SciPy's bits, and other threads run."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf

from anynorm.design.unlocked import add_square, lower_cholesky


@pytest.mark.parametrize("n", [1, 20, 127, 128, 300])
def test_results_are_those_of_SciPy(n):
    rng = np.random.default_rng(n)
    block = np.asfortranarray(rng.standard_normal((n, n + 3)))
    out = np.asfortranarray(rng.standard_normal((n, n)))
    expected = dsyrk(1.0, block, beta=1.0, c=out, lower=1)
    add_square(out, block)
    np.testing.assert_array_equal(np.tril(out), np.tril(expected))
    A = np.tril(block @ block.T)
    found, expected = lower_cholesky(A), dpotrf(A, lower=1, clean=0)[0]
    np.testing.assert_array_equal(np.tril(found), np.tril(expected))


@pytest.mark.parametrize("n", [3, 200])
def test_what_is_not_positive_definite_has_no_factor(n):
    assert lower_cholesky(-np.eye(n)) is None


def test_nothing_is_added_by_no_columns():
    out = np.ones((200, 200), order="F")
    add_square(out, np.empty((200, 0), order="F"))
    np.testing.assert_array_equal(out, 1.0)


def test_other_threads_run_meanwhile():
    A = np.eye(2500) + 0.1
    beats: list[float] = []
    over = threading.Event()

    def beat():
        while not over.is_set():
            beats.append(time.perf_counter())
            time.sleep(1e-4)

    thread = threading.Thread(target=beat)
    thread.start()
    began = time.perf_counter()
    for _ in range(3):
        lower_cholesky(A)
    ended = time.perf_counter()
    over.set()
    thread.join()
    inside = [began, *(t for t in beats if began < t < ended), ended]
    assert np.diff(inside).max() < 0.5 * (ended - began)
