"""Weights that a slack norm has of its own: one vector with the rows' weights, in every solver."""

import numpy as np
import pytest

from anynorm import SVC, LinearSVC
from anynorm.design import threads
from anynorm.kernels.gram import Gram
from anynorm.losses import Loss
from anynorm.norms import K12, L1, L2, LInf, Lp, Norm, SquaredL2, TopK, TopK2
from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.solvers.linear import solve_linear
from anynorm.solvers.one_norm import solve_one_norm


def data(n=220, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, rng.choice([0.0, 0.5, 1.0, 3.0], size=n)


@pytest.mark.parametrize("slack", [L1, SquaredL2])
@pytest.mark.parametrize("constraints", ["inequality", "equality"])
def test_linear_kernels_of_many_rows(slack, constraints):
    """SquaredL2(weights) raised an IndexError, L1(weights) ended at a gap of 0.28."""
    X, y, w = data()
    own = SVC(kernel="linear", slack=slack(weights=w), constraints=constraints, tol=1e-6)
    given = SVC(kernel="linear", slack=slack(), constraints=constraints, tol=1e-6)
    own.fit(X, y)
    given.fit(X, y, sample_weight=w)
    assert own.certificate_.gap <= 1e-6
    assert own.certificate_.primal == pytest.approx(given.certificate_.primal, rel=2e-6)


@pytest.mark.parametrize("solve", [solve_linear, solve_one_norm])
@pytest.mark.parametrize("slack", [L1, SquaredL2])
@pytest.mark.parametrize("constraints", ["inequality", "equality"])
def test_problems_over_features(solve, slack, constraints):
    X, y, w = data(60)
    norm = "l1" if solve is solve_one_norm else "l2"
    pieces = {"y": y, "C": 0.7, "X": X, "regulariser": norm}
    own = Problem(loss=Loss.from_slack(slack(w), constraints), sample_weight=w, **pieces)
    given = Problem(loss=Loss.from_slack(slack(), constraints), sample_weight=w * w, **pieces)
    found, other = solve(own, tol=1e-9), solve(given, tol=1e-9)
    assert found.certificate.gap <= 1e-9
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)


NORMS = [L1(), L2(), LInf(), Lp(3), SquaredL2(), TopK(4), TopK2(4), K12(4)]


@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_every_norm_in_the_kernel_solvers(norm):
    X, y, w = data(40)
    gram = Gram.rbf(X, 0.5)
    own = SVC(slack=norm.weighted(w), gamma=0.5, tol=1e-7).fit(X, y)
    given = SVC(slack=norm, gamma=0.5, tol=1e-7).fit(X, y, sample_weight=w)
    assert own.certificate_.primal == pytest.approx(given.certificate_.primal, rel=1e-6)
    problem = Problem(y=y, C=1.0, loss=Loss.from_slack(norm.weighted(w)), gram=gram)
    assert np.array_equal(problem.sample_weight, w)
    assert problem.loss == Loss.from_slack(norm)


def test_weights_for_other_rows_are_named():
    X, y, _ = data(40)
    with pytest.raises(ValueError, match="slack norm has 3 weights but there are 40 rows"):
        SVC(slack=L1(weights=np.ones(3))).fit(X, y)


def test_a_huge_residual_of_a_row_without_weight_costs_nothing():
    """Its 40th power was infinite, and infinity times the weight no number."""
    assert Lp(40.0, weights=[1.0, 0.0]).value([2.0, 1e12]) == 2.0


class Priced(Norm):
    """A norm of one's own with a price for each row."""

    def __init__(self, prices):
        self.prices = prices

    def value(self, xi):
        return float(self.prices @ np.abs(xi))

    def dual_value(self, a):
        return float((np.abs(a) / self.prices).max())

    def maximiser(self, a):
        i = int((np.abs(a) / self.prices).argmax())
        return np.sign(a[i]) * np.eye(len(a))[i] / self.prices[i]

    def dual_set(self, C, weights, signed):
        return Box.of(C * weights * self.prices, signed)


def test_many_rows_with_prices_that_a_norm_knows(monkeypatch):
    """The norm was asked for the loss of a block of rows, and met it with the prices of all."""
    monkeypatch.setattr(threads, "_ROWS", 64)
    X, y, _ = data(400)
    prices = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    found = LinearSVC(loss=Loss.from_slack(Priced(prices)), tol=1e-8).fit(X, y)
    given = LinearSVC(tol=1e-8).fit(X, y, sample_weight=prices)
    assert found.certificate_.primal == pytest.approx(given.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "squared", "absolute"])
def test_many_rows_without_weight_one_after_the_other(monkeypatch, loss):
    """The loss of a block of rows that all weigh nothing was an error: 'weights are all zero'."""
    monkeypatch.setattr(threads, "_ROWS", 64)
    X, y, w = data(400)
    w[:150] = 0.0
    found = LinearSVC(loss=loss, tol=1e-8).fit(X, y, sample_weight=w)
    kept = LinearSVC(loss=loss, tol=1e-8).fit(X[150:], y[150:], sample_weight=w[150:])
    assert found.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=1e-7)
