"""Products of a large sparse X: the same as SciPy's, and the same bits on any number of threads."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

from anynorm import LinearSVC
from anynorm.design import design_of, sparse
from anynorm.design.threads import Threads

RNG = np.random.default_rng(0)


@pytest.fixture
def even_here(monkeypatch):
    """Parts of small data."""
    monkeypatch.setattr(sparse, "ENTRIES_PER_TASK", 20)
    monkeypatch.setattr(sparse, "_PER_SUM", 1)
    monkeypatch.setattr(sparse, "_GATHERED", 10)


def matrix(form, shape, dtype, index):
    """A matrix that may only be read, with empty rows and columns."""
    X = sp.random(*shape, density=0.3, random_state=0, dtype=np.float64).tolil()
    X[shape[0] // 3] = 0.0
    X = X.asformat(form).astype(dtype)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    for array in (X.data, X.indices, X.indptr):
        array.flags.writeable = False
    return X


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("shape", [(203, 17), (5, 101), (1, 1)])
def test_products_and_sums(even_here, shape, scaled, form, dtype, index):
    X = matrix(form, shape, dtype, index)
    scale = RNG.random(shape[1]) if scaled else None
    whole = X.toarray().astype(np.float64) * (1.0 if scale is None else scale)
    w, a = RNG.normal(size=shape[1]), RNG.normal(size=shape[0])
    rows = RNG.permutation(shape[0])[: shape[0] // 2 + 1]

    def results():
        design = design_of(X, scale)
        found = [design.matvec(w), design.rmatvec(a)]
        found += [design.matvec(w, rows=rows), design.rmatvec(a[rows], rows=rows)]  # makes CSR
        found += [design.matvec(w), design.matvec(np.outer(w, [1.0, 2.0]))]
        _ = design.centred(None, False)  # makes CSC
        found += [design.rmatvec(a), design.rmatvec(np.outer(a, [1.0, 2.0]))]
        found += [*design.hessian_product(rows, a[rows], w)]
        found += [design.column_norms_squared(a[rows], rows=rows), design.row_norms_squared()]
        return [*found, design.matvec(w, rows=rows[:0]), design.rmatvec(a[:0], rows=rows[:0])]

    some = whole[rows]
    left, right, part, sums = whole @ w, a @ whole, some @ w, a[rows] @ some
    expected = [left, right, part, sums, left, np.outer(left, [1, 2]), right]
    bent = a[rows] * part
    expected += [np.outer(right, [1, 2]), bent @ some, bent.sum(), a[rows] @ some**2]
    expected += [(whole**2).sum(axis=1)]
    expected += [np.zeros(0), np.zeros(shape[1])]
    found = results()
    for value, known in zip(found, expected, strict=True):
        np.testing.assert_allclose(value, known, rtol=1e-12, atol=1e-12)
    with Threads(3):
        for value, same in zip(found, results(), strict=True):
            assert np.array_equal(value, same)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("form", ["csr", "csc"])
def test_parts_copy_no_entry(even_here, form, transposed):
    """SciPy copies the entries of a part whenever it makes a container of it, as in `.T`."""
    X = matrix(form, (203, 17), np.float64, np.int64)
    storage = sparse.SparseStorage(X)
    parts = storage._parts_of(X, 4, transposed)
    assert len(parts) == 4
    for place, part in parts:
        assert np.shares_memory(part.data, X.data)
        assert np.shares_memory(part.indices, X.indices)
        own = X.toarray()[place] if form == "csr" else X.toarray()[:, place]
        assert np.array_equal(part.toarray(), own.T if transposed else own)


def test_a_product_that_gathers_has_the_bits_of_scipy(even_here):
    X, w = matrix("csr", (203, 17), np.float64, np.int32), RNG.normal(size=17)
    with Threads(3):
        assert np.array_equal(design_of(X).matvec(w), X @ w)


def test_sums_of_wide_data_have_few_parts():
    """Each part has a sum for every column: they must not cost more than the product."""
    assert sparse._scattered_parts(4e6, 50_000) == 10
    assert sparse._scattered_parts(4e6, 5_000_000) == 1
    assert sparse._scattered_parts(1e12, 10) == sparse._MOST_PARTS


def test_a_fit_is_the_same_on_any_number_of_threads(even_here):
    X = sp.random(400, 60, density=0.2, random_state=1, format="csr")
    y = X[:, :10].toarray().sum(axis=1) > 1.0
    one, three = (
        LinearSVC(10.0, loss="logistic", tol=1e-9, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 3)
    )
    assert np.array_equal(one.coef_, three.coef_)
    peer = LogisticRegression(C=10.0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(one.coef_, peer.coef_, atol=1e-4)
