"""Rows of kernel matrices on demand: those of the kernel, within the memory that there is."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.kernels.gram import Gram
from anynorm.kernels.row_stores import FEW_POINTS
from anynorm.kernels.rows import KernelRows


def rows_of_features(n):
    return np.random.default_rng(0).standard_normal((n, 5))


def kinds_of_gram():
    return {
        "linear": Gram.linear,
        "rbf": lambda X: Gram.rbf(X, 0.3),
        "poly": lambda X: Gram.poly(X, 0.5, 2, 1.0),
        "poly 2.5": lambda X: Gram.poly(np.abs(X), 0.5, 2.5, 1.0),
        "sparse rbf": lambda X: Gram.rbf(sp.csr_array(X), 0.3),
        "sparse poly": lambda X: Gram.poly(sp.csr_array(X), 0.5, 3, 0.5),
        "sparse linear": lambda X: Gram.linear(sp.csr_array(X)),
        "precomputed": lambda X: Gram.precomputed(X @ X.T),
        "callable": lambda X: Gram.from_callable(lambda A, B: (A @ B.T + 1) ** 2, X),
        "far away": lambda X: Gram.rbf(X * 1e4, 1e-4),
        "tiny": lambda X: Gram.linear(X * 1e-20),
        "huge": lambda X: Gram.linear(X * 1e20),
    }


@pytest.mark.parametrize("n", [400, FEW_POINTS + 1])
@pytest.mark.parametrize("kind", kinds_of_gram())
def test_rows_are_those_of_the_kernel(kind, n):
    X = rows_of_features(n)
    gram = kinds_of_gram()[kind](X)
    rows = KernelRows(gram, 1 << 20)
    K = gram.block(slice(None), slice(None))
    index = np.array([3, 50, 7, 399])
    slots = rows.load(index)
    scores, weights = np.zeros(n), np.array([1.0, -2.0, 0.5, 3.0])
    rows.add(scores, slots, weights)
    size = np.abs(K).max()
    np.testing.assert_allclose(
        scores, weights @ K[index], atol=10 * rows.entry_error + 1e-15 * size
    )
    square = rows.square(slots, index, np.empty((0, 0)), np.full(4, -1))
    np.testing.assert_allclose(
        square, K[np.ix_(index, index)], atol=2 * rows.entry_error + 1e-15 * size
    )
    rows.release(slots)


@pytest.mark.parametrize("n", [400, FEW_POINTS + 1])
@pytest.mark.parametrize("sharers", [1, 3])
def test_all_rows_come_with_some_in_front_and_are_named(n, sharers):
    gram = Gram.rbf(rows_of_features(n), 0.3)
    rows = KernelRows(gram, 1 << 24, sharers=sharers)
    assert rows.all_fit
    rows.release(rows.load(np.array([7, 300, 2])))
    first = np.array([0, 5, 300, 301])
    K, order = rows.matrix(first)
    assert sorted(order[:4]) == sorted(first)
    assert np.array_equal(np.sort(order), np.arange(n))
    np.testing.assert_allclose(K, gram.block(order, slice(None)), atol=10 * rows.entry_error)
    slots = rows.load(np.array([5, 9]))  # rows are still found after they have moved
    scores = np.zeros(n)
    rows.add(scores, slots, np.array([1.0, -2.0]))
    rows.release(slots)
    expected = np.array([1.0, -2.0]) @ gram.block([5, 9], slice(None))
    np.testing.assert_allclose(scores, expected, atol=30 * rows.entry_error + 1e-12)
    assert not KernelRows(Gram.rbf(rows_of_features(2000), 0.3), 1 << 20).all_fit


def test_rows_make_room_for_others_but_not_while_they_are_held():
    n = FEW_POINTS + 1
    gram = Gram.rbf(rows_of_features(n), 0.2)
    rows = KernelRows(gram, 0)
    assert rows.capacity == 64
    K = gram.block(slice(None), slice(None))
    held = rows.load(np.arange(30))
    for start in (30, 60, 90, 120):
        slots = rows.load(np.arange(start, start + 30))
        scores = np.zeros(n)
        rows.add(scores, slots, np.ones(30))
        np.testing.assert_allclose(scores, K[start : start + 30].sum(axis=0), atol=1e-4)
        rows.release(slots)
    scores = np.zeros(n)
    rows.add(scores, held, np.ones(30))
    np.testing.assert_allclose(scores, K[:30].sum(axis=0), atol=1e-4)
    with pytest.raises(MemoryError, match="raise cache_size"):
        rows.load(np.arange(100, 140))


def test_rows_that_were_forgotten_leave_no_places_behind():
    """Two rows got one place: a fit of 40,000 rows took three times as long, with wrong scores."""
    n = 2 * FEW_POINTS
    gram = Gram.rbf(rows_of_features(n), 0.2)
    rows = KernelRows(gram, 0)
    K = gram.block(slice(None), slice(None))
    for some in (range(32), range(32, 64), range(64, 80)):  # places are put in order by their age
        rows.release(rows.load(np.array(some)))
    rows.shrunk(np.arange(100, n))
    rows.release(rows.load(np.arange(100, 140)))
    slots = rows.load(np.arange(200, 230))
    assert len(set(slots)) == 30
    scores = np.zeros(n)
    rows.add(scores, slots, np.ones(30))
    np.testing.assert_allclose(scores, K[200:230].sum(axis=0), atol=1e-4)


def test_few_points_have_their_whole_matrix_and_need_no_compiler():
    X = rows_of_features(50)
    gram = Gram.rbf(X, 0.2)
    rows, K = KernelRows(gram, 0, sharers=3), gram.block(slice(None), slice(None))
    assert rows.are_exact
    assert rows.capacity == 50
    beta = np.random.default_rng(1).standard_normal((50, 3))
    np.testing.assert_allclose(rows.exact_scores(beta), K @ beta, atol=1e-13)
    some = np.array([4, 40])
    np.testing.assert_allclose(rows.exact_scores(beta[:, 0], some), (K @ beta[:, 0])[some])
    slots = rows.load(some)
    square = rows.square(slots, some, np.empty((0, 0)), np.full(2, -1))
    assert np.array_equal(square, square.T)
    part = KernelRows(gram, 0)
    part.load(some)
    kept = np.array([3, 4, 30, 40])
    np.testing.assert_allclose(part.shrunk(kept).exact_scores(np.eye(4)), K[np.ix_(kept, kept)])
    code = "import sys; from anynorm import SVC; SVC().fit([[0.0], [1.0]], [0, 1]); "
    code += "assert 'numba' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
