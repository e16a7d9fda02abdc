"""Half of a kernel matrix, and its factor in the same place, against LAPACK."""

import numpy as np
import pytest
import scipy.linalg

from anynorm.kernels.gram import Gram
from anynorm.kernels.half_matrix import Factor, HalfMatrix


@pytest.mark.parametrize("n", [1, 255, 256, 257, 700])
def test_factor_and_inverse_are_lapacks(n):
    rng = np.random.default_rng(1)
    X, d = rng.normal(size=(n, 4)), rng.uniform(0.1, 3.0, size=n)
    gram = Gram.rbf(X)
    half = HalfMatrix(gram, None, np.inf, lambda: None)
    H = gram.block(slice(None), slice(None)) + np.diag(d)
    B = np.random.default_rng(0).normal(size=(n, 3))
    np.testing.assert_allclose(half.product(B), (H - np.diag(d)) @ B, atol=1e-12)
    factor = Factor(half, d, lambda: None)
    np.testing.assert_allclose(factor.solve(B), scipy.linalg.solve(H, B), atol=1e-10)
    np.testing.assert_allclose(factor.inverse_diagonal(), np.diag(np.linalg.inv(H)), atol=1e-10)
