"""A loss that the package does not know works wherever a loss goes, with its certificate."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from anynorm import LinearSVC, ReweightedSVC, ReweightedSVCCV, SparseSVC
from anynorm.kernels.gram import Gram
from anynorm.problem import Problem
from anynorm.solvers.kernel import solve_kernel
from anynorm.solvers.linear import solve_linear
from tests.estimators.plain import noisy_classes
from tests.losses.own_loss import SmoothedHinge
from tests.solvers.problems import BIASES

WIDTHS = [0.05, 0.5, 3.0]


def least_value(problem, X, width):
    """The optimum of the problem by another solver: Huber's function of the slacks."""
    w, b, xi = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(len(problem.y), nonneg=True)
    weights = problem.row_weights()
    loss = problem.C * cp.sum(cp.multiply(weights / (2 * width), cp.huber(xi, width)))
    if problem.regulariser == "l1":
        size = cp.norm1(w)
    else:
        size = cp.sum_squares(w) / 2
    rules = [cp.multiply(problem.y, X @ w + b) >= 1 - xi]
    if problem.intercept is None:
        rules.append(b == 0)
    elif not problem.free_bias:
        bias = b / problem.bias_feature
        size += cp.abs(bias) if problem.regulariser == "l1" else cp.square(bias) / 2
    return cp.Problem(cp.Minimize(size + loss), rules).solve(solver=cp.CLARABEL)


def data(n=60, p=5, seed=0):
    X, y = noisy_classes(n=n, p=p, seed=seed)
    return X, 2.0 * y - 1.0


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("intercept", BIASES)
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
def test_linear_optimum_is_that_of_another_solver(width, intercept, stored):
    X, y = data()
    weights = np.arange(60.0) % 3
    problem = Problem(
        y=y, C=0.7, loss=SmoothedHinge(width), X=stored(X), sample_weight=weights,
        intercept=intercept,
    )  # fmt: skip
    found = solve_linear(problem, tol=1e-8)
    best = least_value(problem, X, width)
    assert found.certificate.gap <= 1e-8
    assert found.certificate.primal == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("width", WIDTHS)
def test_kernel_optimum_is_that_of_another_solver(width):
    X, y = data()
    loss = SmoothedHinge(width)
    found = solve_kernel(Problem(y=y, C=2.0, loss=loss, gram=Gram.linear(X)), tol=1e-8)
    best = least_value(Problem(y=y, C=2.0, loss=loss, X=X), X, width)
    assert found.certificate.gap <= 1e-8
    assert found.certificate.primal == pytest.approx(best, rel=1e-6)


def test_many_sparse_rows_and_columns():
    X = sp.random_array((1500, 1200), density=0.02, format="csr", random_state=1)
    rng = np.random.default_rng(1)
    y = np.sign(X @ rng.normal(size=1200) + 0.1 * rng.normal(size=1500) + 1e-9)
    for C in (0.1, 10.0):
        problem = Problem(y=y, C=C, loss=SmoothedHinge(0.3), X=X)
        assert solve_linear(problem, tol=1e-6).certificate.gap <= 1e-6


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("Model", [LinearSVC, ReweightedSVC, SparseSVC, ReweightedSVCCV])
def test_every_estimator_with_a_loss_takes_it(Model, width):
    X, y = data()
    options = {"Cs": [0.1, 1.0]} if Model is ReweightedSVCCV else {"C": 1.0}
    model = clone(Model(loss=SmoothedHinge(width), tol=1e-5, **options)).fit(X, y)
    assert model.certificate_.gap <= 1e-5
    assert model.score(X, y) > 0.6
    if Model is SparseSVC:
        problem = Problem(y=y, C=1.0, loss=SmoothedHinge(width), X=X, regulariser="l1")
        best = least_value(problem, X, width)
        assert model.certificate_.primal == pytest.approx(best, rel=1e-4)


def test_genes_of_few_rows_and_many_columns():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(40) % 2, 1.0, -1.0)
    X = rng.normal(size=(40, 600)) + y[:, None] * (np.arange(600) < 5)
    model = ReweightedSVC(C=0.1, loss=SmoothedHinge(0.5), n_rounds=4, tol=1e-5).fit(X, y)
    assert model.certificate_.gap <= 1e-5
    assert all(record.certificate.gap <= 1e-5 for record in model.history_)
