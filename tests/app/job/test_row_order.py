"""Rows in runs of one kind are seen, and nothing else is."""

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.app.job.row_order import row_order


def runs(n_groups=40, size=4, p=30, noise=0.3, seed=0):
    """Groups of rows that are alike, one after the other, with a class each."""
    rng = np.random.default_rng(seed)
    X = np.repeat(rng.normal(size=(n_groups, p)), size, axis=0)
    y = np.repeat(rng.permutation(n_groups) % 2, size)
    return X + noise * rng.normal(size=X.shape), y


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("p", [3, 30, 300])
def test_runs_are_seen(p, kind):
    X, y = runs(p=p, noise=0.1)
    found = row_order(kind(X), y)
    assert found.ordered
    assert found.share > 0.3
    assert found.by_chance == pytest.approx(2 * 2 / len(y))
    assert "--group COLUMN" in found.note()


def test_runs_of_both_classes_are_seen():
    X, _ = runs()
    assert row_order(X, np.arange(len(X)) % 2).ordered


def test_runs_in_a_long_table_are_seen():
    X, y = runs(n_groups=3000, p=5, noise=0.05)
    assert row_order(X, y).ordered
    shuffled = np.random.default_rng(0).permutation(len(y))
    assert not row_order(X[shuffled], y[shuffled]).ordered


@pytest.mark.parametrize("seed", range(20))
def test_a_random_order_is_not_taken_for_runs(seed):
    X, y = runs(seed=seed)
    shuffled = np.random.default_rng(seed).permutation(len(y))
    found = row_order(X[shuffled], y[shuffled])
    assert not found.ordered
    assert found.share < 0.1


def test_the_share_by_chance_is_what_random_orders_have():
    X, y = runs(n_groups=30, size=2)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(len(y)) for _ in range(400)]
    shares = [row_order(X[order], y[order]).share for order in orders]
    assert np.mean(shares) == pytest.approx(row_order(X, y).by_chance, rel=0.2)


def test_classes_one_after_the_other_are_no_runs():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 50)
    assert not row_order(rng.normal(size=(150, 6)) + 3 * y[:, None], y).ordered


def test_a_few_rows_say_nothing():
    found = row_order(np.arange(10.0)[:, None], np.arange(10) % 2)
    assert not found.ordered
