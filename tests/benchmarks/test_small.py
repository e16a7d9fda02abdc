"""The benchmark of small models compares like with like."""

import numpy as np
import pytest

from benchmarks import small


def test_all_ways_see_the_same_rows_and_budgets():
    found = small.accuracies("skewed", 0, n_train=40, n_test=60, counts=[3, 6])
    assert found["n_test"] == 60
    for way in small.WAYS:
        assert len(found[way]) == 2
        assert all(0 <= share <= 1 for share in found[way])


def test_cholesky_takes_the_largest_rest_first():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    X[7] = X[3]  # a copy brings nothing: never both
    K = np.exp(-0.5 * ((X[:, None] - X) ** 2).sum(axis=2))
    pivots = small.cholesky_pivots(K, 29)
    assert len(set(pivots)) == 29
    assert len({3, 7} & set(pivots)) == 1
    second = K.diagonal() - K[:, pivots[0]] ** 2 / K[pivots[0], pivots[0]]
    assert pivots[1] == second.argmax()


def test_ahead_is_counted_in_standard_errors():
    ours = np.array([[0.90], [0.92], [0.91]])
    other = ours - np.array([[0.01], [0.02], [0.03]])
    over_draws = 0.01 / np.sqrt(3)
    assert small._in_errors(ours, other, 10**9) == pytest.approx(0.02 / over_draws)
    of_rows = np.sqrt(0.91 * 0.09 / (100 * 3))
    assert small._in_errors(ours, other, 100) == pytest.approx(0.02 / of_rows)


def test_real_tables_are_left_out_where_they_are_not(monkeypatch):
    monkeypatch.delenv("ANYNORM_DATA", raising=False)
    titles = [title for title, _ in small.Run(small.FULL, 0, 60.0).jobs()]
    assert titles == ["accuracy spam-like", "accuracy skewed", "large", "prediction"]
