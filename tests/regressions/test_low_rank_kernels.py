"""Kernels of low rank at large C: polynomials of few features, RBF with a tiny gamma.

Block SMO crawled there, with gaps of 1 when its time was over; they are solved over a factor of the
kernel now, as linear kernels are over their features.
"""

import numpy as np
import pytest

from anynorm import SVC, BudgetSVC
from anynorm.kernels.gram import Gram
from anynorm.losses import Loss
from anynorm.norms import K12, L1, L2, LInf, Lp, SquaredL2, TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.kernel.features import features_of, may_have_low_rank
from tests.references import solve_primal

NORMS = {
    "l1": lambda n: L1(),
    "squared": lambda n: SquaredL2(),
    "linf": lambda n: LInf(),
    "few of the largest": lambda n: TopK(n // 20),
    "half of the largest": lambda n: TopK(n // 2),
    "k12": lambda n: K12(n // 20),
    "topk2": lambda n: TopK2(n // 20),
    "l2": lambda n: L2(),
    "lp": lambda n: Lp(1.5),
}
KERNELS = {
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.2, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": 1e-4},
}

every_norm = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
every_constraint = pytest.mark.parametrize("constraints", ["inequality", "equality"])
every_kernel = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


def noisy(n, p=4):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    noise = 0.5 * rng.normal(size=n)
    return X, np.where(X[:, 0] * X[:, 1] + X[:, 2] + noise > 0, 1, -1)


def monomials(X, gamma):
    """The features whose inner products are (gamma x'z + 1)^2."""
    pairs = [(i, j) for i in range(X.shape[1]) for j in range(i)]
    products = np.column_stack([np.sqrt(2.0) * X[:, i] * X[:, j] for i, j in pairs])
    return np.column_stack([gamma * X**2, gamma * products, np.sqrt(2.0 * gamma) * X])


@pytest.mark.parametrize("C", [1e4, 1e6, 1e8])
@every_kernel
@every_constraint
@every_norm
def test_large_C_is_certified(norm, constraints, kernel, C):
    """The tolerance was missed at C = 1e4 and above, whatever the time."""
    X, y = noisy(300)
    model = SVC(C, slack=norm(300), constraints=constraints, **kernel).fit(X, y)
    assert model.certificate_.status is Status.OPTIMAL


@pytest.mark.parametrize("C", [1e4, 1e8])
@every_constraint
@every_norm
def test_the_value_is_that_of_another_solver_over_the_monomials(norm, constraints, C):
    X, y = noisy(250)
    model = SVC(C, slack=norm(250), constraints=constraints, **KERNELS["poly"]).fit(X, y)
    loss = Loss.from_slack(norm(250), constraints)
    # With C = 1e8 an optimum is the least loss, and the regulariser nothing to Clarabel's digits.
    scale = 1e4 / C
    problem = Problem(y=y.astype(float), C=1e4, loss=loss, X=monomials(X, 0.2))
    value = solve_primal(problem).value
    assert scale * model.certificate_.primal == pytest.approx(value, rel=2e-4)


@every_kernel
def test_weights_are_repetition(kernel):
    X, y = noisy(250)
    weights = np.arange(250) % 3 + 1.0
    again = np.repeat(np.arange(250), weights.astype(int))
    model = BudgetSVC(100, C=1e6, tol=1e-5, **kernel).fit(X, y, sample_weight=weights)
    repeated = BudgetSVC(100, C=1e6, tol=1e-5, **kernel).fit(X[again], y[again])
    assert model.certificate_.status is repeated.certificate_.status is Status.OPTIMAL
    assert model.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-5)


@every_kernel
def test_predictions_are_those_of_the_certified_function(kernel):
    """With a large C the coefficients are not the duals; the decision function goes with them."""
    X, y = noisy(300)
    model = SVC(1e8, slack=TopK(15), **kernel).fit(X, y)
    slacks = np.maximum(0.0, 1.0 - y * model.decision_function(X))
    loss = 1e8 * np.sort(slacks)[-15:].sum()
    assert loss <= model.certificate_.primal * (1 + 1e-6)
    assert loss == pytest.approx(model.certificate_.primal, rel=1e-3)


@pytest.mark.parametrize(("gamma", "low"), [(1e-4, True), (1.0, False)])
def test_a_factor_is_made_only_where_it_is_small(gamma, low):
    """A factor as wide as the matrix is no help; some rows say so before any is made."""
    X, y = noisy(400)
    gram = Gram.rbf(X, gamma)
    problem = Problem(y=y.astype(float), C=1e4, loss=Loss.from_slack(L1()), gram=gram)
    assert may_have_low_rank(problem) is low
    features = features_of(problem, tol=1e-4, budget=Budget(1))
    assert (features is not None) is low
    if low:
        K = gram.block(slice(None), slice(None))
        assert np.abs(features.X @ features.X.T - K).max() <= 1e-11
