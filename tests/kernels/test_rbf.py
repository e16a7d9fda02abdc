"""The Gaussian kernel: digits far from the origin, at large gamma, and in compiled loops."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from anynorm.kernels import RBF
from anynorm.kernels import sums as sums_module
from anynorm.kernels.gram import Gram
from tests.kernels.cases import BETA, X


@pytest.mark.parametrize(("dtype", "error"), [(np.float64, 1e-14), (np.float32, 1e-5)])
@pytest.mark.parametrize("gamma", [0.0, 0.3, 1e3])
def test_many_values_are_compiled_and_the_same(dtype, error, gamma, monkeypatch):
    narrow = X.astype(dtype)
    sums = Gram.rbf(narrow, gamma).sums(slice(None), dtype)
    plain = sums(narrow, BETA)
    monkeypatch.setattr(sums_module, "WORTH_COMPILED", 0)
    monkeypatch.setattr(RBF, "of_products", None)
    compiled = sums(narrow, BETA)
    exact = rbf_kernel(narrow.astype(np.float64), gamma=gamma) @ BETA
    assert np.allclose(compiled, plain, rtol=error, atol=error)
    assert np.allclose(compiled, exact, rtol=error, atol=error)


@pytest.mark.parametrize("p", [3, 780])
@pytest.mark.parametrize("worth", [0, np.inf])
@pytest.mark.parametrize("gamma", [1e20, 1e300])
def test_equal_rows_have_the_kernel_1_however_large_gamma(gamma, worth, p, monkeypatch):
    monkeypatch.setattr(sums_module, "WORTH_COMPILED", worth)
    once = np.random.default_rng(1).normal(size=(50, p)) + 3.0
    gram = Gram.rbf(np.vstack([once, once]), gamma)
    twins = np.kron(np.ones((2, 2)), np.eye(50))
    assert np.allclose(gram.block(slice(None), slice(None)), twins, rtol=0, atol=1e-300)
    beta = np.arange(100.0)
    assert np.allclose(gram.matvec(beta), twins @ beta, rtol=1e-15)


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
