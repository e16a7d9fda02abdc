"""Rows in float32: as accurate as they say, and not by products where these have no digits."""

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.kernels import RBF, Linear, Poly
from anynorm.kernels.gram import Gram
from anynorm.kernels.row_makers import RowMaker

X = np.random.default_rng(0).normal(size=(400, 6))
INDEX = np.array([5, 399, 17])


def made(maker):
    store = np.empty((3, 400), maker.dtype)
    maker.make(INDEX, store, np.arange(3))
    return store


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, lambda rows: rows + 3.0])
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.3), Poly(0.5, 3, 1.0), Poly(0.5, 2)], ids=str)
def test_rows_are_as_accurate_as_they_say(kernel, form):
    gram = Gram.of(kernel, form(X))
    maker = RowMaker(gram, exact=False)
    assert maker.dtype == np.float32
    assert maker.own_bytes > 0
    error = np.abs(made(maker) - gram.block(INDEX, slice(None))).max()
    assert 0 < error <= maker.error


def test_exact_rows_and_points_far_apart_are_float64():
    near, far = Gram.rbf(X, 0.3), Gram.rbf(1e3 * X, 0.3)
    np.testing.assert_allclose(
        made(RowMaker(near, exact=True)), near.block(INDEX, slice(None)), rtol=1e-13
    )
    expected = far.block(INDEX, slice(None)).astype(np.float32)
    np.testing.assert_allclose(made(RowMaker(far, exact=False)), expected, rtol=1e-6)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("p", [1, 6, 300])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("kernel", [Linear(), RBF(0.01), Poly(0.5, 2, 1.0)], ids=str)
def test_a_row_is_the_same_whatever_is_made_with_it(kernel, form, p, exact):
    points = np.random.default_rng(1).normal(size=(400, p))
    points[points < -1] = 0.0
    maker = RowMaker(Gram.of(kernel, form(points)), exact)
    together, alone = (np.empty((400, 400), maker.dtype) for _ in range(2))
    maker.make(np.arange(400), together, np.arange(400))
    for places in np.split(np.random.default_rng(0).permutation(400), [1, 3, 10, 50, 51, 200]):
        maker.make(places, alone, places)
    np.testing.assert_array_equal(alone, together)


def test_values_beyond_float32_are_float64():
    assert RowMaker(Gram.linear(1e20 * X), exact=False).dtype == np.float64
    assert RowMaker(Gram.linear(1e-20 * X), exact=False).dtype == np.float64
