"""Long calls of BLAS and LAPACK: SciPy's bits, and other threads run."""

import threading
import time

import numpy as np
import pytest
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf

from anynorm.design.unlocked import add_square, factor_rows, lower_cholesky, solve_rows


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


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("n", [1, 2, 130])
def test_factors_in_place_solve_what_SciPy_solves(kind, n):
    rng = np.random.default_rng(n)
    whole = np.full((n + 3, n + 5), np.nan, dtype=kind)  # whose rows A's are parts of
    A = whole[2 : n + 2, 1 : n + 1]
    root = rng.standard_normal((n, n))
    A[:] = square = root @ root.T + n * np.eye(n)
    assert factor_rows(A)
    rounding = 100 * n * np.finfo(kind).eps
    np.testing.assert_allclose(np.tril(A), np.linalg.cholesky(square), rtol=0, atol=rounding * n)
    longer = np.asfortranarray(rng.standard_normal((n + 2, 3)), dtype=kind)
    right = longer[1 : n + 1]
    expected = solve_triangular(np.tril(A).astype(float), right.astype(float), lower=True)
    solve_rows(A, right)
    np.testing.assert_allclose(right, expected, rtol=0, atol=rounding)
    beside = np.delete(whole, np.s_[2 : n + 2], axis=0)
    assert np.isnan(beside).all()
    assert np.isnan(whole[:, 0]).all()
    assert np.isnan(whole[:, n + 1 :]).all()


def test_memory_in_another_order_is_refused():
    with pytest.raises(ValueError, match="neighbours"):
        factor_rows(np.asfortranarray(np.eye(3)))
    with pytest.raises(ValueError, match="type and length"):
        solve_rows(np.eye(3, dtype=np.float32), np.ones((3, 1), order="F"))
    with pytest.raises(ValueError, match="float64"):
        add_square(np.zeros((3, 3), order="F"), np.ones((3, 2), dtype=np.float32, order="F"))


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
    # Between two calls the lock is free anyway.
    assert np.diff(inside).max() < 0.2 * (ended - began)
