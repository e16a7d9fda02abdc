"""A path that is followed in parts is the path that is followed in one go."""

import time

import numpy as np
import pytest

from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.one_norm import PathInProgress, follow_path


def noisy(n=80, p=12, seed=0, far=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) + far
    y = np.where(X[:, 0] - far + 0.8 * rng.normal(size=n) > 0, 1.0, -1.0)
    return Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1")


def assert_same(record, whole, count=None):
    count = len(whole.s) if count is None else count
    for name in ("s", "penalties", "intercepts", "losses", "gaps"):
        np.testing.assert_array_equal(getattr(record, name)[:count], getattr(whole, name)[:count])
    end = whole.indptr[count]
    np.testing.assert_array_equal(record.data[:end], whole.data[:end])


@pytest.mark.parametrize("far", [0.0, 1e7])
def test_parts_by_penalty_make_the_same_path(far):
    problem = noisy(far=far)
    whole = follow_path(problem)
    path = PathInProgress(problem)
    for share in (0.8, 0.3, 0.1, 0.01):
        penalty = share * whole.penalties[0]
        record = path.follow(penalty_min=penalty)
        assert record.stopped == "penalty_min"
        assert record.penalties[-1] == pytest.approx(penalty)
        assert_same(record, whole, int(np.sum(whole.penalties > penalty)))
    record = path.follow()
    assert record.stopped == "end"
    assert_same(record, whole)
    assert_same_duals(record, whole)


def assert_same_duals(record, whole):
    np.testing.assert_array_equal(record.dual_indptr, whole.dual_indptr)
    np.testing.assert_array_equal(record.dual_values, whole.dual_values)


def test_parts_by_s_and_by_time_make_the_same_path():
    problem = noisy(seed=3)
    whole = follow_path(problem)
    path = PathInProgress(problem)
    part = path.follow(s_max=0.4 * whole.s[-1])
    assert part.stopped == "s_max"
    assert part.s[-1] == pytest.approx(0.4 * whole.s[-1])
    late = path.follow(deadline=time.monotonic())
    assert late.stopped == "time_limit"
    assert late.gaps.max() <= 1e-9
    record = path.follow()
    assert_same(record, whole)
    assert_same_duals(record, whole)


def test_a_path_of_one_segment_can_be_left_and_taken_up_again():
    """A fold of two rows was given the model without features: its path ended in the first part."""
    X, y = np.array([[2.0, 1.0], [-2.0, 0.0]]), np.array([1.0, -1.0])
    path = PathInProgress(Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1"))
    first = path.follow(s_max=0.0)
    assert (first.s.tolist(), first.stopped) == ([0.0], "s_max")
    assert path.follow(s_max=0.2).s[-1] == pytest.approx(0.2)
    for _ in range(2):
        record = path.follow(penalty_min=0.1)
        assert record.stopped == "end"
        assert record.s[-1] == pytest.approx(0.5)
        assert record.penalties[-1] == 0.0
