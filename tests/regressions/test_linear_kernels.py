"""Linear kernels of few features at large C, for every slack norm and both constraints.

Block SMO crawled there, as the duals say little about the coefficients; all of these are solved
over the features now.
"""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from anynorm import SVC, BudgetSVC
from anynorm.losses import Loss
from anynorm.norms import K12, L2, LInf, Lp, TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from tests.references import solve_primal

NORMS = {
    "linf": lambda n: LInf(),
    "few of the largest": lambda n: TopK(n // 20),
    "half of the largest": lambda n: TopK(n // 2),
    "k12": lambda n: K12(n // 20),
    "topk2": lambda n: TopK2(n // 20),
    "l2": lambda n: L2(),
    "lp": lambda n: Lp(1.5),
}
CONSTRAINTS = ["inequality", "equality"]

every_norm = pytest.mark.parametrize("norm", NORMS.values(), ids=NORMS)
every_constraint = pytest.mark.parametrize("constraints", CONSTRAINTS)


def noisy(n, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.parametrize("n", [300, 2000])
@pytest.mark.parametrize("C", [1.0, 1e2, 1e4, 1e6])
@every_constraint
@every_norm
def test_large_C_is_certified_in_seconds(norm, constraints, C, n):
    """2000 x 5 missed 1e-4 after 20 s at C = 1e4 and 1e6, by up to a gap of 1."""
    X, y = noisy(n)
    model = SVC(C, kernel="linear", slack=norm(n), constraints=constraints, time_limit=30.0)
    model.fit(X, y)
    assert model.certificate_.status is Status.OPTIMAL


@pytest.mark.parametrize("C", [1.0, 1e4])
@every_constraint
@every_norm
def test_the_value_is_that_of_another_solver(norm, constraints, C):
    X, y = noisy(250)
    model = SVC(C, kernel="linear", slack=norm(250), constraints=constraints, tol=1e-7)
    model.fit(X, y)
    assert model.certificate_.status is Status.OPTIMAL
    loss = Loss.from_slack(norm(250), constraints)
    problem = Problem(y=y.astype(float), C=C, loss=loss, X=X)
    assert model.certificate_.primal == pytest.approx(solve_primal(problem).value, rel=1e-5)


@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_budgets_and_weights_too(slack):
    """BudgetSVC has these norms, and rows that count more than once."""
    X, y = noisy(1000)
    weights = np.arange(1000) % 3 + 1.0
    model = BudgetSVC(200, C=1e5, slack=slack, kernel="linear", tol=1e-6, time_limit=30.0)
    model.fit(X, y, sample_weight=weights)
    assert model.certificate_.status is Status.OPTIMAL
    repeated = np.repeat(np.arange(1000), weights.astype(int))
    again = BudgetSVC(200, C=1e5, slack=slack, kernel="linear", tol=1e-6, time_limit=30.0)
    again.fit(X[repeated], y[repeated])
    assert again.certificate_.primal == pytest.approx(model.certificate_.primal, rel=2e-6)


def test_a_kernel_model_is_never_worse_than_none():
    """X * 1e10: duals as large as C lost the coefficients, 1e14 times the value at zero."""
    X, y = noisy(300)
    with pytest.warns(ConvergenceWarning):
        model = SVC(1e9, kernel="linear", slack=TopK(150), max_iter=20_000).fit(X * 1e10, y)
    assert model.certificate_.primal <= model.certificate_.zero_primal
