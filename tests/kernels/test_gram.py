"""Kernels: blocks against scikit-learn's kernels, sparse and dense, and clear errors."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel
from sklearn.svm import SVC

from anynorm.kernels import gram as gram_module
from anynorm.kernels import sums as kernel_sums
from anynorm.kernels.gram import Gram, make_gram, resolve_gamma

RNG = np.random.default_rng(0)
X = RNG.normal(size=(13, 4)) * (RNG.random((13, 4)) < 0.7)
X_NEW = RNG.normal(size=(5, 4))
BETA = RNG.normal(size=13) * (RNG.random(13) < 0.6)

KERNELS = {
    "linear": ({"kernel": "linear"}, linear_kernel),
    "rbf": ({"kernel": "rbf", "gamma": 0.3}, lambda A, B: rbf_kernel(A, B, gamma=0.3)),
    "poly": (
        {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
        lambda A, B: polynomial_kernel(A, B, gamma=0.5, degree=2, coef0=1.0),
    ),
    "callable": (
        {"kernel": lambda A, B: rbf_kernel(A, B, gamma=2.0)},
        lambda A, B: rbf_kernel(A, B, gamma=2.0),
    ),
}
FORMS = {
    "dense": lambda A: A,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
}


def many_blocks_even_here(monkeypatch):
    monkeypatch.setattr(gram_module, "_BLOCK_ENTRIES", 20)
    monkeypatch.setattr(gram_module, "_COLUMNS", 4)
    monkeypatch.setattr(kernel_sums, "_BLOCK_ENTRIES", 20)
    monkeypatch.setattr(kernel_sums, "_CACHED_BYTES", 100)
    monkeypatch.setattr(kernel_sums, "_CACHED_COLUMNS", 3)
    monkeypatch.setattr(kernel_sums, "_ROWS_PER_TASK", 4)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_blocks_products_and_predictions_agree_with_scikit_learn(name, form, monkeypatch):
    many_blocks_even_here(monkeypatch)
    options, reference = KERNELS[name]
    gram = make_gram(FORMS[form](X), **options)
    K = reference(X, X)
    assert gram.n == 13
    assert np.allclose(gram.block(slice(None), slice(None)), K, rtol=1e-12, atol=1e-13)
    assert np.allclose(gram.block([3, 0, 7], slice(2, 9, 3)), K[np.ix_([3, 0, 7], [2, 5, 8])])
    assert np.allclose(gram.diagonal(), np.diag(K))
    assert np.allclose(gram.matvec(BETA), K @ BETA)
    new = FORMS[form](X_NEW) if form != "csc" else sp.csr_matrix(X_NEW)
    assert np.allclose(gram.cross(new), reference(X_NEW, X))
    assert np.allclose(gram.cross(new, [1, 4]), reference(X_NEW, X[[1, 4]]))
    assert np.allclose(gram.predict(new, BETA), reference(X_NEW, X) @ BETA)
    assert np.array_equal(gram.predict(new, np.zeros(13)), np.zeros(5))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_sums_for_several_weights_threads_and_ways_to_store_rows(name, form, monkeypatch):
    many_blocks_even_here(monkeypatch)
    options, reference = KERNELS[name]
    gram = make_gram(FORMS[form](X), **options)
    weights = RNG.normal(size=(4, 3))
    expected = reference(X_NEW, X[[1, 4, 5, 12]]) @ weights
    sums = gram.sums([1, 4, 5, 12])
    for kind in FORMS.values():
        for n_jobs in (None, 2):
            assert np.allclose(sums(kind(X_NEW), weights, n_jobs), expected)
    assert np.array_equal(sums(X_NEW, weights, 2), sums(X_NEW, weights, 3))
    assert gram.sums([])(X_NEW, weights[:0]).shape == (5, 3)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_sums_in_float32_are_close_and_can_be_widened(name):
    options, reference = KERNELS[name]
    narrow = X.astype(np.float32)
    sums = make_gram(narrow, **options).sums(slice(None), np.float32)
    expected = reference(X_NEW, narrow.astype(np.float64)) @ BETA
    found = sums(X_NEW.astype(np.float32), BETA)
    assert found.dtype == np.float64
    assert 0 < np.abs(found - expected).max() < 1e-5
    assert np.allclose(sums.widened(narrow)(X_NEW, BETA), expected, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-14), (np.float32, 1e-5)])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1e3])
def test_many_values_are_compiled_and_the_same(dtype, error, gamma, monkeypatch):
    narrow = X.astype(dtype)
    sums = Gram.rbf(narrow, gamma).sums(slice(None), dtype)
    plain = sums(narrow, BETA)
    monkeypatch.setattr(kernel_sums, "WORTH_COMPILED", 0)
    monkeypatch.setattr(kernel_sums, "rbf_of_products", None)
    compiled = sums(narrow, BETA)
    exact = rbf_kernel(narrow.astype(np.float64), gamma=gamma) @ BETA
    assert np.allclose(compiled, plain, rtol=error, atol=error)
    assert np.allclose(compiled, exact, rtol=error, atol=error)


@pytest.mark.parametrize("p", [3, 780])
@pytest.mark.parametrize("worth", [0, np.inf])
@pytest.mark.parametrize("gamma", [1e20, 1e300])
def test_equal_rows_have_the_kernel_1_however_large_gamma(gamma, worth, p, monkeypatch):
    monkeypatch.setattr(kernel_sums, "WORTH_COMPILED", worth)
    once = np.random.default_rng(1).normal(size=(50, p)) + 3.0
    gram = Gram.rbf(np.vstack([once, once]), gamma)
    twins = np.kron(np.ones((2, 2)), np.eye(50))
    assert np.allclose(gram.block(slice(None), slice(None)), twins, rtol=0, atol=1e-300)
    beta = np.arange(100.0)
    assert np.allclose(gram.matvec(beta), twins @ beta, rtol=1e-15)


def test_lengths_beyond_float32_are_seen_in_the_sums(monkeypatch):
    monkeypatch.setattr(kernel_sums, "WORTH_COMPILED", 0)
    huge = np.full((1, 4), 1e30, dtype=np.float32)
    sums = Gram.rbf(X.astype(np.float32), 0.3).sums(slice(None), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not np.isnan(sums(huge, BETA)).any()
        apart = np.vstack([huge, -huge])
        assert np.isnan(Gram.rbf(apart, 0.3).sums([0], np.float32)(apart, np.ones(1))).any()


def test_precomputed_kernels_are_the_matrix():
    K = rbf_kernel(X, gamma=0.7)
    gram = make_gram(K, "precomputed")
    assert np.array_equal(gram.block([2, 5], [1]), K[[2, 5]][:, [1]])
    assert np.allclose(gram.matvec(BETA), K @ BETA)
    assert np.array_equal(gram.diagonal(), np.ones(13))
    new = rbf_kernel(X_NEW, X, gamma=0.7)
    assert np.allclose(gram.predict(new, BETA), new @ BETA)
    with pytest.raises(ValueError, match="must have 13 columns"):
        gram.cross(np.ones((2, 12)))


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_kernels_travel_to_other_processes(name):
    gram = make_gram(X, **KERNELS[name][0])
    assert np.array_equal(pickle.loads(pickle.dumps(gram)).matvec(BETA), gram.matvec(BETA))


def test_float32_rows_are_evaluated_in_float64():
    narrow = X.astype(np.float32)
    gram = Gram.rbf(narrow, 0.3)
    wide = rbf_kernel(narrow.astype(np.float64), gamma=0.3)
    assert gram.block(slice(None), slice(None)).dtype == np.float64
    assert np.allclose(gram.block(slice(None), slice(None)), wide, rtol=1e-13)


def test_far_from_the_origin_distances_keep_their_digits():
    """At an offset of 1e8 the expanded square would lose every digit of these distances."""
    gram = Gram.rbf(X + 1e8, 0.3)
    near = rbf_kernel((X + 1e8) - 1e8, gamma=0.3)
    assert np.allclose(gram.block(slice(None), slice(None)), near, rtol=1e-6)


@pytest.mark.parametrize("form", ["dense", "csr"])
def test_gamma_as_scikit_learn_reads_it(form):
    y = np.arange(13) % 2
    for gamma in ("scale", "auto"):
        theirs = SVC(gamma=gamma).fit(X, y)._gamma
        assert resolve_gamma(gamma, FORMS[form](X)) == pytest.approx(theirs, rel=1e-12)
    repeated = np.repeat(np.arange(13), np.arange(13) % 3)
    assert resolve_gamma("scale", FORMS[form](X), np.arange(13.0) % 3) == pytest.approx(
        resolve_gamma("scale", X[repeated]), rel=1e-12
    )
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0
    with pytest.raises(ValueError, match="gamma must be"):
        resolve_gamma("big", X)
    with pytest.raises(ValueError, match="gamma must be"):
        resolve_gamma(-1.0, X)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinite"),
        (lambda A, B: np.ones(len(A)), "matrix of shape"),
        (lambda A, B: A @ B, "could not be evaluated"),
        (lambda A, B: A @ B.T + np.arange(len(A))[:, None], "not symmetric"),
        ("gaussian", "kernel must be 'linear'"),
    ],
)
def test_bad_kernels_say_what_is_wrong(kernel, message):
    with pytest.raises(ValueError, match=message):
        make_gram(X, kernel)


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((2, 3)), "square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN or infinite"),
    ],
)
def test_bad_precomputed_matrices_say_what_is_wrong(K, message):
    with pytest.raises(ValueError, match=message):
        Gram.precomputed(K)


def test_float32_matrices_are_symmetric_up_to_their_own_rounding():
    K = rbf_kernel(X, gamma=0.7).astype(np.float32)
    K[0, 1] *= np.float32(1 + 1e-6)
    assert Gram.precomputed(K).n == 13
    with pytest.raises(ValueError, match="not symmetric"):
        Gram.precomputed(K.astype(np.float64))


def test_semidefiniteness_is_known_or_checked_by_the_spectrum():
    assert Gram.linear(X).is_psd() is True
    assert Gram.poly(X, coef0=-1.0).psd is None
    assert Gram.precomputed(X @ X.T).is_psd() is True
    assert Gram.precomputed(np.array([[0.0, 1.0], [1.0, 0.0]])).is_psd() is False
    assert Gram.precomputed(X @ X.T).is_psd(max_rows=5) is None
    assert Gram.from_callable(lambda A, B: -(A @ B.T), X, psd=False).is_psd() is False
