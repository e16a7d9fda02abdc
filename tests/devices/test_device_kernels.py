"""Kernel matrices of rows on a device: blocks, sums and rows, within the memory that is allowed."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from anynorm.design.device_design import DeviceDesign
from anynorm.kernels import DistanceKernel
from anynorm.kernels.device_gram import DeviceGram, DeviceSums
from anynorm.kernels.gram import Gram
from anynorm.kernels.rows import KernelRows

N = 400
X = np.random.default_rng(0).standard_normal((N, 5))


class Cauchy(DistanceKernel):
    psd = True

    def __init__(self, gamma=0.5):
        self.gamma = gamma

    def of_distances(self, squares):
        return 1.0 / (1.0 + self.gamma * squares)


KERNELS = {
    "linear": (Gram.linear, lambda A, B: A @ B.T),
    "rbf": (lambda X: Gram.rbf(X, 0.3), lambda A, B: np.exp(-0.3 * cdist(A, B) ** 2)),
    "poly": (lambda X: Gram.poly(X, 0.5, 2, 1.0), lambda A, B: (0.5 * A @ B.T + 1.0) ** 2),
    "cubic": (lambda X: Gram.poly(X, 0.5, 3, 0.0), lambda A, B: (0.5 * A @ B.T) ** 3),
    "own": (lambda X: Gram.of(Cauchy(), X), lambda A, B: 1 / (1 + 0.5 * cdist(A, B) ** 2)),
    "function": (
        lambda X: Gram.from_callable(lambda A, B: (A @ B.T + 1.0) ** 2, X),
        lambda A, B: (A @ B.T + 1.0) ** 2,
    ),
}


def design(library, values):
    return DeviceDesign(library.array(values))


@pytest.mark.parametrize("shift", [0.0, 100.0])
@pytest.mark.parametrize("name", KERNELS)
def test_blocks_and_sums_are_the_kernel_s(library, name, shift):
    make, kernel = KERNELS[name]
    points = X + shift
    gram = make(design(library, points))
    assert isinstance(gram, DeviceGram)
    K = kernel(points, points)
    size = np.abs(K).max()
    index = np.array([3, 50, 7])
    np.testing.assert_allclose(gram.block(index, slice(None)), K[index], atol=1e-11 * size)
    beta = np.zeros(N)
    beta[index] = [1.0, -2.0, 0.5]
    np.testing.assert_allclose(gram.matvec(beta), K @ beta, atol=1e-11 * size)
    betas = np.random.default_rng(1).standard_normal((N, 3))
    np.testing.assert_allclose(gram.matmat(betas), K @ betas, atol=1e-9 * size)
    np.testing.assert_allclose(gram.diagonal(), np.diagonal(K), atol=1e-11 * size)
    part = gram.part(index)
    np.testing.assert_allclose(
        part.block(slice(None), [1]), K[np.ix_(index, [50])], atol=1e-11 * size
    )


@pytest.mark.parametrize("name", ["rbf", "poly", "linear", "own"])
def test_sums_in_float32_are_close(library, name):
    make, kernel = KERNELS[name]
    gram = make(design(library, X.astype(np.float32)))
    sums = gram.sums(np.arange(100), np.float32)
    assert isinstance(sums, DeviceSums)
    weights = np.random.default_rng(2).standard_normal((100, 2))
    expected = kernel(X, X[:100]) @ weights
    np.testing.assert_allclose(sums(X, weights), expected, atol=2e-5 * np.abs(expected).max())


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("exact", [False, True])
def test_rows_are_those_of_the_kernel(library, name, exact):
    make, kernel = KERNELS[name]
    gram = make(design(library, X))
    rows = KernelRows(gram, 1 << 20, exact=exact)
    K = kernel(X, X)
    size, index = np.abs(K).max(), np.array([3, 50, 7, 399])
    error = 10 * rows.entry_error + 1e-11 * size
    slots = rows.load(index)
    scores, weights = np.zeros(N), np.array([1.0, -2.0, 0.5, 3.0])
    rows.add(scores, slots, weights)
    np.testing.assert_allclose(scores, weights @ K[index], atol=error)
    square = rows.square(slots, index, np.empty((0, 0)), np.full(4, -1))
    np.testing.assert_allclose(square, K[np.ix_(index, index)], atol=error)
    assert np.array_equal(square, square.T)
    rows.release(slots)
    columns = np.array([0, 17])
    found = rows.entries(index, columns, np.float32)
    np.testing.assert_allclose(found, K[np.ix_(index, columns)], atol=error)


def test_rows_make_room_for_others_within_the_limit(library):
    gram = Gram.rbf(design(library, X), 0.2)
    rows = KernelRows(gram, 0)
    assert rows.capacity == 64
    assert rows.buffer.shape[0] == 64 * N
    K = np.exp(-0.2 * cdist(X, X) ** 2)
    for start in range(0, N, 50):
        slots = rows.load(np.arange(start, start + 50))
        scores = np.zeros(N)
        rows.add(scores, slots, np.ones(50))
        np.testing.assert_allclose(scores, K[start : start + 50].sum(axis=0), atol=1e-4)
        rows.release(slots)


def test_rows_of_a_part_use_the_same_memory(library):
    gram = Gram.rbf(design(library, X), 0.2)
    rows = KernelRows(gram, 1 << 20)
    rows.release(rows.load(np.arange(10)))
    kept = np.arange(0, N, 2)
    part = rows.shrunk(kept)
    assert part.n == 200
    assert part.buffer is rows.buffer
    K, scores = np.exp(-0.2 * cdist(X[kept], X[kept]) ** 2), np.zeros(200)
    part.add_any(scores, np.arange(200), np.ones(200))
    np.testing.assert_allclose(scores, K.sum(axis=0), atol=1e-3)


def test_sums_go_block_by_block(library, monkeypatch):
    monkeypatch.setattr("anynorm.kernels.device_gram.VALUES_AT_A_LAUNCH", 500)
    monkeypatch.setattr("anynorm.kernels.device_gram._COLUMNS", 30)
    gram, beta = Gram.rbf(design(library, X), 0.2), np.ones(N)
    np.testing.assert_allclose(
        gram.matvec(beta), np.exp(-0.2 * cdist(X, X) ** 2).sum(axis=0), rtol=1e-12
    )


def test_too_large_a_cache_is_refused_with_what_it_takes(library, monkeypatch):
    gram = Gram.rbf(design(library, X), 0.2)
    monkeypatch.setattr("anynorm.design.device.DevicePlace.bytes_left", lambda self: 1e5)
    with pytest.raises(MemoryError, match=r"take 1 MB .* 0 MB are left\. Lower cache_size"):
        KernelRows(gram, 1 << 21)


def test_a_kernel_that_leaves_the_device_says_so(library):
    with pytest.raises(ValueError, match="must return an array of"):
        Gram.from_callable(lambda A, B: np.zeros((A.shape[0], B.shape[0])), design(library, X))


def test_a_device_is_thought_to_be_faster_than_a_core(library, monkeypatch):
    gram = Gram.rbf(design(library, X), 0.2)
    slow = gram.cost(N, N)
    monkeypatch.setattr("anynorm.design.device.DevicePlace.speed", 10.0)
    assert gram.cost(N, N) == pytest.approx(slow / 10.0 if library.device != "cuda" else slow * 3)
    assert KernelRows(gram, 1 << 20).speed == 10.0
