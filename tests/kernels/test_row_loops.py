"""Loops over rows in slots, against numpy."""

import numpy as np

from anynorm.kernels.row_loops import STRIP, add_rows, compact, small_square, take_columns

RNG = np.random.default_rng(0)
STORE = RNG.normal(size=(9, 2500)).astype(np.float32)
SLOTS = np.array([7, 0, 3, 8, 1, 5])


def test_combinations_of_rows_are_added():
    weights, scores = RNG.normal(size=6), RNG.normal(size=2500)
    expected = scores + weights @ STORE[SLOTS].astype(np.float64)
    add_rows(0, 1, STORE, SLOTS, weights, scores, 0)
    add_rows(0, -(-2500 // STRIP) - 1, STORE, SLOTS, weights, scores, STRIP)
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-14)


def test_squares_take_what_is_known_and_the_rest_from_the_rows():
    index = np.array([4, 2400, 17])
    known, place = np.array([[1.0, 2.0], [2.0, 3.0]]), np.array([1, -1, 0])
    found = np.empty((3, 3))
    small_square(0, 1, STORE, SLOTS[:3], index, known, place, found)
    assert np.array_equal(found, found.T)
    assert (found[0, 0], found[2, 2], found[2, 0]) == (3.0, 1.0, 2.0)
    assert found[1, 0] == STORE[SLOTS[1], 4]
    assert found[2, 1] == STORE[SLOTS[2], 2400]


def test_columns_are_taken_out_and_moved_to_the_front():
    columns, slots = np.array([0, 5, 2499]), np.array([1, 4, 6])
    out = np.empty((3, 3))
    take_columns(0, 3, STORE, slots, columns, out)
    np.testing.assert_array_equal(out, STORE[np.ix_(slots, columns)])
    flat = STORE.copy().ravel()
    compact(flat.reshape(STORE.shape), slots, columns, flat)
    np.testing.assert_array_equal(flat[:9], STORE[np.ix_(slots, columns)].ravel())
