"""Every kind of input gives the same answer, from the memory it came in."""

import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from anynorm import LinearSVC, SparseSVC
from anynorm.estimators.checks.labels import validate
from tests.estimators.plain import noisy_classes, objective_of
from tests.spies import calls_of_solver

X, Y = noisy_classes(n=50, p=4, n_classes=3)
X[X < 0] = 0.0  # some zeros for the sparse kinds


def as_int64(matrix):
    matrix = matrix.copy()
    matrix.indices = matrix.indices.astype(np.int64)
    matrix.indptr = matrix.indptr.astype(np.int64)
    return matrix


def memory_map(folder, array):
    path = folder / "X.npy"
    np.save(path, array)
    return np.load(path, mmap_mode="r")


def read_only(matrix):
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


# Kinds that are used where they lie.
SHARED = {
    "C order": lambda f: np.ascontiguousarray(X),
    "Fortran order": lambda f: np.asfortranarray(X),
    "float32, C order": lambda f: X.astype(np.float32),
    "float32, Fortran order": lambda f: np.asfortranarray(X, dtype=np.float32),
    "memory map": lambda f: memory_map(f, X),
    "memory map, Fortran order": lambda f: memory_map(f, np.asfortranarray(X)),
    "memory map, float32": lambda f: memory_map(f, X.astype(np.float32)),
    "CSR array": lambda f: sp.csr_array(X),
    "CSR matrix": lambda f: sp.csr_matrix(X),
    "CSC array": lambda f: sp.csc_array(X),
    "CSC matrix": lambda f: sp.csc_matrix(X),
    "CSR, float32": lambda f: sp.csr_array(X.astype(np.float32)),
    "CSC, float32": lambda f: sp.csc_array(X.astype(np.float32)),
    "CSR, int64 indices": lambda f: as_int64(sp.csr_array(X)),
    "CSC, int64 indices": lambda f: as_int64(sp.csc_array(X)),
    "CSR, int64 indices, float32": lambda f: as_int64(sp.csr_array(X.astype(np.float32))),
    "CSR, read-only": lambda f: read_only(sp.csr_array(X)),
    "CSC, read-only": lambda f: read_only(sp.csc_array(X)),
}
# Kinds that have to be converted.
CONVERTED = {
    "list": lambda f: X.tolist(),
    "whole numbers": lambda f: np.asarray(8 * X, dtype=np.int32) / np.float16(8),
    "float16": lambda f: X.astype(np.float16),
    "big endian": lambda f: X.astype(">f8"),
    "every other row": lambda f: np.repeat(X, 2, axis=0)[::2],
    "every other column": lambda f: np.repeat(X, 2, axis=1)[:, ::2],
    "rows backwards": lambda f: np.ascontiguousarray(X[::-1])[::-1],
    "objects": lambda f: X.astype(object),
    "COO": lambda f: sp.coo_array(X),
    "BSR": lambda f: sp.bsr_array(X),
    "LIL": lambda f: sp.lil_array(X),
    "DOK": lambda f: sp.dok_array(X),
    "DIA": lambda f: sp.dia_array(X),
    "CSR, indices out of order": lambda f: out_of_order(X),
    "CSR, entries in two halves": lambda f: in_halves(X),
    "CSR, zeros stored": lambda f: with_zeros(X),
}


def out_of_order(X):
    """The stored entries of each row in reverse order."""
    matrix = sp.csr_array(X)
    for start, stop in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        matrix.indices[start:stop] = matrix.indices[start:stop][::-1].copy()
        matrix.data[start:stop] = matrix.data[start:stop][::-1].copy()
    matrix.has_sorted_indices = False
    return matrix


def in_halves(X):
    """Every entry stored twice, at half its value."""
    matrix = sp.csr_array(X)
    return sp.csr_array(
        (np.repeat(matrix.data / 2, 2), np.repeat(matrix.indices, 2), 2 * matrix.indptr),
        shape=X.shape,
    )


def with_zeros(X):
    """All entries stored, the zeros too."""
    n, p = X.shape
    return sp.csr_array((X.ravel().copy(), np.tile(np.arange(p), n), p * np.arange(n + 1)))


@pytest.fixture(scope="module")
def reference():
    return LinearSVC(tol=1e-10).fit(X, Y)


def buffers(matrix):
    if sp.issparse(matrix):
        return [matrix.data, matrix.indices, matrix.indptr]
    return [matrix]


@pytest.mark.parametrize("kind", [*SHARED, *CONVERTED])
def test_every_kind_of_input_gives_the_same_answer(kind, tmp_path, reference):
    given = {**SHARED, **CONVERTED}[kind](tmp_path)
    model = LinearSVC(tol=1e-10).fit(given, Y)
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(model.intercept_, reference.intercept_, rtol=1e-7, atol=1e-9)
    assert model.certificate_.gap <= 1e-10
    assert model.coef_.dtype == model.intercept_.dtype == np.float64
    scores = reference.decision_function(X)
    np.testing.assert_allclose(model.decision_function(given), scores, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(model.predict(given), reference.predict(X))


@pytest.mark.parametrize("Model", [LinearSVC, SparseSVC])
@pytest.mark.parametrize("kind", SHARED)
def test_input_is_used_where_it_lies(kind, Model, tmp_path, monkeypatch):
    calls = calls_of_solver(monkeypatch, Model)
    given = SHARED[kind](tmp_path)
    before = [part.copy() for part in buffers(given)]
    Model().fit(given, Y)
    assert len(calls) == 3
    for call in calls:
        for used, own in zip(buffers(call["problem"].X), buffers(given), strict=True):
            assert np.shares_memory(used, own)
            assert used.dtype == own.dtype
    for part, old in zip(buffers(given), before, strict=True):
        np.testing.assert_array_equal(part, old)


@pytest.mark.parametrize("kind", CONVERTED)
def test_what_must_be_converted_is_not_changed(kind, tmp_path):
    given = CONVERTED[kind](tmp_path)
    before = given.copy() if kind == "list" else given.copy().astype(float)
    LinearSVC().fit(given, Y)
    if sp.issparse(given):
        np.testing.assert_array_equal(given.toarray(), before.toarray())
        assert given.nnz == before.nnz
    else:
        np.testing.assert_array_equal(np.asarray(given, dtype=float), np.asarray(before))


@pytest.mark.parametrize("kind", ["C order", "Fortran order", "CSR array", "CSC matrix"])
def test_validation_needs_next_to_no_memory(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 1000))
    y = rng.integers(2, size=len(X))
    given = {
        "C order": X,
        "Fortran order": np.asfortranarray(X),
        "CSR array": sp.csr_array(X),
        "CSC matrix": sp.csc_matrix(X),
    }[kind]
    estimator = LinearSVC()
    validate(estimator, given, y, None)
    tracemalloc.start()
    validate(estimator, given, y, np.ones(len(X)))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.05 * X.nbytes


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames_give_their_column_names(frame, reference):
    names = ["width", "height", "weight", "age"]
    given = frame({name: X[:, j] for j, name in enumerate(names)})
    model = LinearSVC(tol=1e-10).fit(given, Y)
    assert model.feature_names_in_.tolist() == names
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(model.predict(given), reference.predict(X))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(given[names[::-1]])
    model.fit(X, Y)
    assert not hasattr(model, "feature_names_in_")


def test_a_pandas_frame_of_one_block_is_not_copied(monkeypatch):
    calls = calls_of_solver(monkeypatch, LinearSVC)
    frame = pd.DataFrame(X, columns=list("abcd"))
    LinearSVC().fit(frame, Y)
    assert all(np.shares_memory(call["problem"].X, frame.to_numpy()) for call in calls)


def test_nullable_and_sparse_frames_are_read(reference):
    nullable = pd.DataFrame(X, columns=list("abcd")).astype("Float64")
    sparse = pd.DataFrame.sparse.from_spmatrix(sp.csr_matrix(X), columns=list("abcd"))
    for given in (nullable, sparse):
        model = LinearSVC(tol=1e-10).fit(given, Y)
        np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-7, atol=1e-9)
        assert model.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["ash", "birch", "cedar"])[Y],
        np.array(["ash", "birch", "cedar"], dtype=object)[Y],
        Y.astype(np.float64) - 1,
        Y.astype(np.uint8),
        Y.tolist(),
        pd.Series(Y + 5),
        pd.Series(np.array(["ash", "birch", "cedar"])[Y], dtype="category"),
        pl.Series(Y + 5),
    ],
    ids=["str", "object", "float", "uint8", "list", "Series", "category", "polars"],
)
def test_labels_of_any_kind(labels, reference):
    model = LinearSVC(tol=1e-10).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, np.unique(np.asarray(labels)))
    np.testing.assert_allclose(model.coef_, reference.coef_, rtol=1e-7, atol=1e-9)
    expected = np.unique(np.asarray(labels))[reference.predict(X)]
    np.testing.assert_array_equal(model.predict(X), expected)


def test_two_classes_of_booleans():
    y = Y > 0
    model = LinearSVC(tol=1e-10).fit(X, y)
    assert model.predict(X).dtype == bool
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    assert model.decision_function(X).shape == (50,)
    assert objective_of(model, X, y) == pytest.approx(model.certificate_.primal, rel=1e-12)


def test_float32_data_keep_float64_accuracy():
    """Sums are accumulated in float64, so the gap of float32 data can reach 1e-10."""
    X, y = noisy_classes(n=400, p=20, seed=3)
    X = (X + np.random.default_rng(0).normal(size=X.shape)).astype(np.float32)
    narrow = LinearSVC(tol=1e-10).fit(X, y)
    wide = LinearSVC(tol=1e-10).fit(X.astype(np.float64), y)
    assert narrow.certificate_.gap <= 1e-10
    np.testing.assert_allclose(narrow.coef_, wide.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(
        narrow.decision_function(X), wide.decision_function(X.astype(np.float64)), rtol=1e-6
    )
