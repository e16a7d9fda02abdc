"""Linear kernels of few features: solved over the features, certified as kernel problems."""

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss
from anynorm.norms import L1, SquaredL2
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.kernel import solve_kernel
from tests.references import solve_primal


def data(n=400, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 - 0.3 + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(
    ("slack", "constraints"),
    [(L1(), "inequality"), (L1(), "equality"), (SquaredL2(), "inequality")],
)
def test_same_optimum_as_over_the_features(slack, constraints, stored, C):
    X, y = data()
    weights = np.random.default_rng(1).uniform(0.5, 2, len(y))
    loss = Loss.from_slack(slack, constraints)
    problem = Problem(y=y, C=C, loss=loss, gram=Gram.linear(stored(X)), sample_weight=weights)
    found = solve_kernel(problem, tol=1e-7)
    assert found.status is Status.OPTIMAL
    over_features = Problem(y=y, C=C, loss=loss, X=X, sample_weight=weights)
    best = solve_primal(over_features).value
    assert found.certificate.primal == pytest.approx(best, rel=1e-5)
    w = X.T @ (y * found.coef)
    assert over_features.objective(w, found.intercept) == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("C", [1.0, 1e3])
@pytest.mark.parametrize(
    ("slack", "constraints"),
    [(L1(), "inequality"), (L1(), "equality"), (SquaredL2(), "inequality")],
)
def test_degenerate_rows_and_columns(slack, constraints, C):
    rng = np.random.default_rng(2)
    X = rng.integers(-1, 2, (300, 4)).astype(float)  # few different rows, labels of both kinds
    X[:, 1], X[:, 2], X[:, 3] = 0.0, 5.0, X[:, 0]  # zero, constant and repeated columns
    y = np.where(X[:, 0] + rng.standard_normal(300) > 0, 1.0, -1.0)
    loss = Loss.from_slack(slack, constraints)
    found = solve_kernel(Problem(y=y, C=C, loss=loss, gram=Gram.linear(X)), tol=1e-6)
    assert found.status is Status.OPTIMAL
    best = solve_primal(Problem(y=y, C=C, loss=loss, X=X)).value
    assert found.certificate.primal == pytest.approx(best, rel=1e-5)


def test_limits_hold_for_linear_kernels():
    X, y = data()
    problem = Problem(y=y, C=1e4, loss=Loss.from_slack(L1()), gram=Gram.linear(X))
    stopped = solve_kernel(problem, tol=1e-12, max_iter=1)
    assert stopped.status is Status.MAX_ITER
    assert stopped.certificate.gap > 1e-12
