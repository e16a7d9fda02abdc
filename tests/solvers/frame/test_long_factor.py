"""The Cholesky factor in parts: that of LAPACK, and ended where it is watched."""

import numpy as np
import pytest
import scipy.linalg

from anynorm.design.watch import watched
from anynorm.solvers.frame import long_factor
from anynorm.solvers.frame.budget import Budget, OutOfTime
from anynorm.solvers.frame.long_factor import lower_factor


@pytest.fixture(params=["C", "F"])
def matrix(request, monkeypatch):
    monkeypatch.setattr(long_factor, "_AT_ONCE", 10)
    monkeypatch.setattr(long_factor, "_WIDTH", 7)
    A = np.random.default_rng(0).normal(size=(45, 60))
    return np.array(A @ A.T, order=request.param)


def test_in_parts_it_is_the_factor_of_lapack(matrix):
    given = matrix.copy()
    found = np.tril(lower_factor(matrix))
    expected = scipy.linalg.cholesky(matrix, lower=True)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_array_equal(matrix, given)


@pytest.mark.parametrize("place", [0, 20, 44])
def test_there_is_none_of_a_matrix_that_is_not_definite(matrix, place):
    matrix[place, place] = -1.0
    assert lower_factor(matrix) is None


def test_it_is_ended_between_its_parts(matrix):
    looks = []

    def end():
        looks.append(1)
        if len(looks) == 3:
            raise TimeoutError

    with pytest.raises(TimeoutError), watched(end):
        lower_factor(matrix)


def test_a_deadline_ends_what_its_budget_watches(matrix):
    with pytest.raises(OutOfTime), Budget(1, deadline=0.0).watched():
        lower_factor(matrix)
    with Budget(1).watched():
        assert lower_factor(matrix) is not None
