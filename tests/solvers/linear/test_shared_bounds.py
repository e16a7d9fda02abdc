"""Slack norms whose duals share a budget or a ball, over features: another solver, odd data."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.losses import Loss
from anynorm.norms import K12, L2, LInf, Lp, TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.linear import solve_linear
from tests.references import solve_primal
from tests.solvers.problems import BIASES, overlapping, small_data

NORMS = [LInf(), TopK(3), TopK(7.5), TopK2(4), K12(5), L2(), Lp(1.0), Lp(1.2), Lp(3.0), Lp(40.0)]
CONSTRAINTS = ["inequality", "equality"]

every_norm = pytest.mark.parametrize("norm", NORMS, ids=repr)
every_constraint = pytest.mark.parametrize("constraints", CONSTRAINTS)


@every_norm
@every_constraint
@pytest.mark.parametrize("intercept", BIASES)
def test_the_value_is_that_of_another_solver(norm, constraints, intercept):
    X, y = overlapping(shift=0.4)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    weights[::7] = 0.0
    loss = Loss.from_slack(norm, constraints)
    problem = Problem(y=y, C=3.0, loss=loss, X=X, sample_weight=weights, intercept=intercept)
    found = solve_linear(problem, tol=1e-8)
    assert found.status is Status.OPTIMAL
    assert found.certificate.primal == pytest.approx(solve_primal(problem).value, rel=1e-6)
    assert np.all(found.dual[weights == 0] == 0.0)


@settings(max_examples=60, deadline=None)
@given(small_data(), st.sampled_from(NORMS), st.sampled_from(CONSTRAINTS))
def test_odd_data_are_certified(data, norm, constraints):
    """Ties, duplicates, dependent and constant columns, rows without weight, one class alone."""
    X, y, pieces, _ = data
    problem = Problem(y=y, X=X, loss=Loss.from_slack(norm, constraints), **pieces)
    found = solve_linear(problem, tol=1e-6)
    assert found.status in (Status.OPTIMAL, Status.NEGLIGIBLE)


def test_one_class_alone_has_no_cost():
    X = np.random.default_rng(0).normal(size=(20, 3))
    problem = Problem(y=np.ones(20), C=1.0, loss=Loss.from_slack(TopK(3)), X=X)
    found = solve_linear(problem)
    assert found.certificate.primal == 0.0
    assert found.status is Status.OPTIMAL


@every_norm
@every_constraint
def test_duals_give_the_coefficients(norm, constraints):
    """A kernel model has nothing but its duals, at any C; none of them is there by rounding."""
    X, y = overlapping(n=200, p=4, shift=0.4)
    problem = Problem(y=y, C=1e6, loss=Loss.from_slack(norm, constraints), X=sp.csr_array(X))
    found = solve_linear(problem, tol=1e-6)
    assert found.status is Status.OPTIMAL
    assert problem.objective(X.T @ (y * found.dual), found.intercept) == pytest.approx(
        found.certificate.primal, rel=1e-6
    )
    used = np.abs(found.dual)
    assert used[used > 0].min() > 1e-9 * used.max()


def test_a_fit_ends_in_time_with_what_it_has():
    X, y = overlapping(n=2000, p=50)
    problem = Problem(y=y, C=1.0, loss=Loss.from_slack(TopK2(20)), X=X)
    late = solve_linear(problem, deadline=0.0)
    assert late.status is Status.TIME_LIMIT
    few = solve_linear(problem, max_iter=3)
    assert few.status is Status.MAX_ITER
    at_zero = problem.zero_primal() * (1 + 1e-12)
    assert few.certificate.dual <= few.certificate.primal <= at_zero
