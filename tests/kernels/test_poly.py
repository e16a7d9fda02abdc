"""The polynomial kernel: where it is known to be positive semidefinite, and its powers."""

import numpy as np
import pytest

from anynorm.kernels import Poly


@pytest.mark.parametrize(
    ("parameters", "known"),
    [
        ({}, True),
        ({"degree": 2.0, "coef0": 1.0}, True),
        ({"degree": 0}, True),
        ({"degree": 2.5}, None),
        ({"coef0": -0.1}, None),
    ],
)
def test_semidefinite_for_whole_degrees_and_constants_that_are_not_negative(parameters, known):
    assert Poly(**parameters).psd is known
    assert Poly().set_params(**parameters).psd is known


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 2.5, 7])
def test_float32_powers_are_those_of_numpy(degree):
    terms = np.random.default_rng(0).uniform(0.1, 3.0, size=(5, 9)).astype(np.float32)
    expected = terms.astype(np.float64) ** degree
    found = Poly(gamma=1.0, degree=degree).of_float32_terms(terms)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_gamma_beyond_float32_is_no_infinity():
    values = np.zeros((2, 2), dtype=np.float32)
    assert np.array_equal(Poly(gamma=1e300, degree=1).of_products(values, None, None), values)
