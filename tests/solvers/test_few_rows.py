"""Few rows, many dense columns: the same optimum as by the interior-point reference."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.losses import LOSSES, get_loss
from anynorm.problem import Problem
from anynorm.solution import Status
from anynorm.solvers.linear.few_rows import few_rows_suit, solve_few_rows
from tests.references import solve_primal

SUITED = ["hinge", "absolute", "squared_hinge"]


def wide_problem(loss, n=12, p=80, C=0.05, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, **more)


def solve(problem, tol=1e-7, max_iter=10_000, deadline=None, start=None):
    return solve_few_rows(problem, tol=tol, max_iter=max_iter, deadline=deadline, start=start)


@pytest.mark.parametrize("C", [1e-3, 0.05, 10.0])
@pytest.mark.parametrize("intercept", ["free", None, 1.5])
@pytest.mark.parametrize("loss", SUITED)
def test_against_the_reference(loss, intercept, C):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=12)
    weights[5] = 0.0
    scale = np.random.default_rng(2).uniform(0.0, 1.0, size=80)
    scale[:4] = 0.0
    problem = wide_problem(
        loss, C=C, intercept=intercept, sample_weight=weights, feature_scale=scale
    )
    found = solve(problem)
    reference = solve_primal(problem)
    assert found.status is Status.OPTIMAL
    assert found.certificate.gap <= 1e-7
    assert found.certificate.dual <= reference.value * (1 + 1e-8)
    assert found.certificate.primal == pytest.approx(reference.value, rel=1e-6)
    assert found.certificate.primal == pytest.approx(
        problem.objective(found.coef, found.intercept), rel=1e-12
    )
    assert not found.coef[:4].any()


@pytest.mark.parametrize("loss", SUITED)
def test_repeated_rows_and_centred_columns(loss):
    """A A' is singular: the certificate decides."""
    problem = wide_problem(loss, n=10)
    X = np.vstack([problem.X, problem.X])
    X -= X.mean(axis=0)
    doubled = Problem(y=np.r_[problem.y, problem.y], C=0.1, loss=get_loss(loss), X=X)
    found = solve(doubled, tol=1e-5)
    assert found.certificate.gap <= 1e-5


def test_a_start_saves_steps():
    problem = wide_problem("hinge", n=60, p=400, C=1.0)
    cold = solve(problem)
    warm = solve(problem, start=cold.dual)
    assert warm.certificate.gap <= 1e-7
    assert warm.n_iter <= cold.n_iter
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-4)


def test_limits_end_with_a_true_certificate():
    problem = wide_problem("hinge", n=60, p=400, C=1.0)
    optimum = solve(problem).certificate
    for cut in (
        solve(problem, tol=1e-8, max_iter=1),
        solve(problem, tol=1e-8, deadline=time.monotonic() - 1.0),
    ):
        assert cut.certificate.dual <= optimum.primal
        assert optimum.dual <= cut.certificate.primal


@pytest.mark.parametrize("loss", LOSSES)
def test_what_suits(loss):
    assert few_rows_suit(wide_problem(loss), 1e-4) == (loss in SUITED)
    assert not few_rows_suit(wide_problem(loss, p=20), 1e-4)
    assert not few_rows_suit(wide_problem(loss), 1e-12)
    problem = wide_problem(loss)
    sparse = Problem(y=problem.y, C=1.0, loss=problem.loss, X=sp.csr_array(problem.X))
    assert not few_rows_suit(sparse, 1e-4)
