"""Products in float64 whatever the storage."""

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm import design

STORAGES = {
    "c": np.ascontiguousarray,
    "f": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "csr int64": lambda X: _int64(sp.csr_array(X)),
    "csr matrix": sp.csr_matrix,
}


def _int64(X):
    return sp.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)


@pytest.fixture(params=[(7, 5), (3000, 211), (1, 4), (400, 900)], ids=str)
def dense(request):
    X = np.random.default_rng(0).normal(size=request.param)
    X[np.abs(X) < 0.6] = 0.0
    return X


@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_products_equal_those_of_the_wide_matrix(dense, storage, dtype):
    stored = STORAGES[storage](dense.astype(dtype))
    wide = dense.astype(dtype).astype(np.float64)
    rng = np.random.default_rng(1)
    w, a = rng.normal(size=wide.shape[1]), rng.normal(size=wide.shape[0])
    close = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(design.matvec(stored, w), wide @ w, **close)
    np.testing.assert_allclose(design.rmatvec(stored, a), wide.T @ a, **close)
    np.testing.assert_allclose(design.row_norms_squared(stored, w**2), wide**2 @ w**2, **close)
    np.testing.assert_allclose(design.row_norms_squared(stored), (wide**2).sum(1), **close)
    np.testing.assert_allclose(design.column_norms_squared(stored, a**2), a**2 @ wide**2, **close)
    np.testing.assert_allclose(design.column_norms_squared(stored), (wide**2).sum(0), **close)


def test_float32_sums_are_accumulated_in_float64():
    X = np.full((1, 2**20), 0.1, dtype=np.float32)
    exact = 2**20 * np.float64(np.float32(0.1))
    assert design.matvec(X, np.ones(2**20))[0] == pytest.approx(exact, rel=1e-13)


def test_read_only_memory_maps_are_read_in_place(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(4))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    np.testing.assert_array_equal(design.matvec(X, np.arange(4.0)), np.arange(4.0))
    np.testing.assert_array_equal(design.rmatvec(X, np.arange(4.0)), np.arange(4.0))


def test_rows_are_taken_in_float64_and_csc_becomes_csr(dense):
    rows = np.array([0, dense.shape[0] - 1])
    part = design.take_rows(sp.csc_array(dense.astype(np.float32)), rows)
    assert part.format == "csr"
    assert part.dtype == np.float64
    np.testing.assert_array_equal(part.toarray(), dense.astype(np.float32)[rows])
