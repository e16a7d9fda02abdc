"""Sums of kernel values: every storage, precision, block and thread gives the same."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from anynorm.design.threads import Threads
from anynorm.kernels import sums as sums_module
from anynorm.kernels.gram import Gram, gram_of, make_gram
from tests.kernels.cases import BETA, FORMS, KERNELS, RNG, X_NEW, X, many_blocks_even_here


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
            with Threads(n_jobs):
                assert np.allclose(sums(kind(X_NEW), weights), expected)
    with Threads(2):
        two = sums(X_NEW, weights)
    with Threads(3):
        assert np.array_equal(sums(X_NEW, weights), two)
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
    wide = gram_of(sums.kernel, narrow, sums.origin).sums(slice(None))
    assert np.allclose(wide(X_NEW, BETA), expected, rtol=1e-12)


def test_lengths_beyond_float32_are_seen_in_the_sums(monkeypatch):
    monkeypatch.setattr(sums_module, "WORTH_COMPILED", 0)
    huge = np.full((1, 4), 1e30, dtype=np.float32)
    sums = Gram.rbf(X.astype(np.float32), 0.3).sums(slice(None), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not np.isnan(sums(huge, BETA)).any()
        apart = np.vstack([huge, -huge])
        assert np.isnan(Gram.rbf(apart, 0.3).sums([0], np.float32)(apart, np.ones(1))).any()


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", ["rbf", rbf_kernel])
def test_sums_carry_their_own_rows_alone(kernel, form):
    """A pickled model of a sparse X, or of a function, had all training rows in it."""
    many = form(np.ones((5000, 4)) * np.arange(5000)[:, None])
    sums = make_gram(many, kernel).sums([0, 1])
    assert len(pickle.dumps(sums)) < 3000


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("count", [1, 47, 240, 1000])
def test_sums_from_compiled_code_are_those_of_numpy(count, dtype, monkeypatch):
    """Blocks, panels and pairs of blocks that are filled up, and several of each."""
    monkeypatch.setattr(sums_module, "WORTH_COMPILED", 0)
    monkeypatch.setattr(sums_module, "_MOST_BLOCKS", 3)
    rows, columns = RNG.normal(size=(101, 5)), RNG.normal(size=(count, 5))
    weights = RNG.normal(size=(count, 2))
    rows, columns = rows.astype(dtype), columns.astype(dtype)
    sums = Gram.rbf(columns, 0.3).sums(slice(None), dtype)
    error = 1e-12 if dtype == np.float64 else 1e-4
    for points in (rows, columns):
        expected = rbf_kernel(points.astype(float), columns.astype(float), 0.3) @ weights
        np.testing.assert_allclose(sums(points, weights), expected, atol=error)
        np.testing.assert_allclose(sums(points, weights[:, 0]), expected[:, 0], atol=error)
    one = sums.among_columns(weights[:, 0])
    np.testing.assert_allclose(one, expected[:, 0], atol=error)
    with Threads(3):
        assert np.array_equal(sums.among_columns(weights[:, 0]), one)
        assert np.array_equal(sums(rows, weights)[60:], sums(rows[60:], weights))
