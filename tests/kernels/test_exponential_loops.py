"""The compiled exponential against numpy's."""

import numpy as np
import pytest

from anynorm.kernels.exponential_loops import (
    exp_in_place_32,
    exp_of_products,
)

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("loop", "dtype", "error"),
    [(exp_of_products, np.float64, 1e-14), (exp_of_products, np.float32, 2e-5)],
)
def test_exponentials_of_distances(loop, dtype, error):
    A, B = RNG.normal(size=(7, 3)), RNG.normal(size=(11, 3))
    values = (A @ B.T).astype(dtype)
    rows, columns = ((rows**2).sum(axis=1).astype(dtype) for rows in (A, B))
    loop(values, rows, columns, dtype(0.7))
    expected = np.exp(-0.7 * ((A[:, None] - B) ** 2).sum(axis=2))
    np.testing.assert_allclose(values, expected, rtol=error)


def test_exponentials_in_place_over_the_whole_range():
    exponents = np.linspace(-120.0, 3.0, 4096).reshape(64, 64).astype(np.float32)
    expected = np.exp(np.minimum(exponents.astype(np.float64), 0.0))
    exp_in_place_32(exponents)
    np.testing.assert_allclose(exponents, expected, rtol=3e-7, atol=1.7e-38)
