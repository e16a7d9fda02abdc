"""Solutions for rising C, against single fits of the same problems."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm import SparseSVC
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.one_norm import RisingPrice


def noisy(n=120, p=30, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def rising_of(X, y, **more):
    loss = get_loss("squared_hinge")
    return RisingPrice(Problem(y=y, C=1.0, loss=loss, X=X, regulariser="l1", **more))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_each_is_near_the_solution_of_a_single_fit(storage, weighted):
    X, y = noisy()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) if weighted else None
    rising = rising_of(storage(X), y, sample_weight=weights)
    for step in range(1, 6):
        C = rising.first * 10 ** (step / 2)
        assert rising.advance(C)
        alone = SparseSVC(C=C, loss="squared_hinge", tol=1e-8).fit(X, y, sample_weight=weights)
        slack = np.maximum(0.0, 1.0 - y * (X @ rising.coef + rising.intercept)) ** 2
        value = (
            np.abs(rising.coef).sum() + C * (slack if weights is None else weights * slack).sum()
        )
        assert value <= alone.certificate_.primal * (1 + 0.01)


def test_below_the_first_price_nothing_is_used():
    X, y = noisy(seed=2)
    rising = rising_of(X, y)
    assert (
        SparseSVC(C=0.999 * rising.first, loss="squared_hinge", tol=1e-9).fit(X, y).coef_.any() == 0
    )
    assert SparseSVC(C=1.01 * rising.first, loss="squared_hinge", tol=1e-9).fit(X, y).coef_.any()
    assert not rising.coef.any()


def test_one_class_alone_uses_nothing():
    X, _ = noisy()
    rising = rising_of(X, -np.ones(len(X)))
    assert rising.first == np.inf
    assert not rising.coef.any()
    assert rising.intercept < 0


def test_a_deadline_is_told():
    X, y = noisy()
    rising = rising_of(X, y)
    assert not rising.advance(100 * rising.first, time.monotonic())
