"""Few rows, many dense columns: the same optimum as by the interior-point reference."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.design import design_of
from anynorm.losses import LOSSES, get_loss
from anynorm.losses.bias import optimal_bias
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.linear import solve_linear, walk, walk_over_C
from anynorm.solvers.linear.few_rows import FewRows, RowsDual, few_rows_suit, weighted_gram
from tests.references import solve_primal

SUITED = ["hinge", "absolute", "squared_hinge"]


def wide_problem(loss, n=12, p=80, C=0.05, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, **more)


def solve(problem, tol=1e-7, max_iter=10_000, deadline=None, start=None):
    assert few_rows_suit(problem, tol)
    return walk(problem, n_rounds=1, tol=tol, max_iter=max_iter, deadline=deadline, start=start)[0]


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


def test_the_matrix_of_some_rows():
    X = np.random.default_rng(0).normal(size=(9, 5000))
    weights = np.random.default_rng(1).uniform(size=5000)
    rows = np.array([1, 4, 8])
    whole = (X * weights) @ X.T
    columns = FewRows(design_of(X)).columns
    np.testing.assert_allclose(weighted_gram(columns, weights), whole, rtol=1e-12)
    np.testing.assert_allclose(
        weighted_gram(columns, weights, rows), whole[np.ix_(rows, rows)], rtol=1e-12
    )
    np.testing.assert_allclose(FewRows(design_of(X)).gram, X @ X.T, rtol=1e-12)


@pytest.mark.parametrize("most", [3, 1])
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_the_bias_of_rows_with_weights_or_without_is_the_optimal_one(loss, most):
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 7, 40):
        for _ in range(20):
            scores = np.round(rng.normal(size=n), 1)
            y = rng.choice([-1.0, 1.0], size=n)
            weights = rng.integers(0 if most > 1 else 1, max(most, 2), size=n).astype(float)
            if not weights.any():
                continue
            problem = Problem(
                y=y, C=0.7, loss=get_loss(loss), X=np.zeros((n, 1)), sample_weight=weights
            )
            expected = optimal_bias(problem.loss, scores, y, 0.7, weights)
            found = RowsDual.of(problem).middle_bias(scores)
            assert found == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("intercept", ["free", None])
@pytest.mark.parametrize("loss", SUITED)
def test_every_round_is_the_solution_of_its_problem(loss, intercept):
    for C in (0.01, 0.1, 10.0):
        problem = wide_problem(loss, n=30, p=200, C=C, intercept=intercept)
        for found in walk(problem, n_rounds=6, tol=1e-6):
            inner = replace(problem, feature_scale=found.feature_scale)
            certificate = found.certificate
            assert certificate.gap <= 1e-6
            checked = certify(inner, found.coef, found.intercept, found.dual, tol=1e-6)
            assert certificate.primal == pytest.approx(checked.primal, rel=1e-9)
            assert certificate.dual == pytest.approx(checked.dual, rel=1e-9)
            best = solve_linear(inner, tol=1e-9).certificate
            assert certificate.primal <= best.primal * (1 + 2e-6)


@pytest.mark.parametrize("loss", SUITED)
def test_walks_over_C_are_certified_for_their_own_C(loss):
    Cs = [1e-3, 1e-2, 0.1, 1.0, 10.0, 1e4]
    problem = wide_problem(loss, n=30, p=400)
    for C, (rounds,) in zip(Cs, walk_over_C([problem], Cs, n_rounds=5), strict=True):
        own = replace(problem, C=C)
        for found in rounds:
            inner = replace(own, feature_scale=found.feature_scale)
            checked = certify(inner, found.coef, found.intercept, found.dual, tol=1e-4)
            assert checked.gap <= 1e-4
            assert found.certificate.primal == pytest.approx(checked.primal, rel=1e-8)
            assert found.certificate.dual == pytest.approx(checked.dual, rel=1e-8)
            assert found.certificate.zero_primal == own.zero_primal()
            l1 = replace(own, regulariser="l1").objective(found.coef, found.intercept)
            assert found.objective == pytest.approx(l1, rel=1e-9)
        for before, found in pairwise(rounds):
            assert found.objective <= before.objective * (1 + 2e-4)


def test_rounds_at_no_bound_are_those_of_every_larger_C():
    problem = wide_problem("hinge", n=30, p=400)
    small, large = walk_over_C([problem], [10.0, 1e6], n_rounds=5)
    for one, other in zip(small[0], large[0], strict=True):
        assert one.coef is other.coef
        assert (1 - problem.y * (one.scores + one.intercept)).max() <= 0
    alone = walk(replace(problem, C=1e6), n_rounds=5)
    for one, other in zip(large[0], alone, strict=True):
        assert one.objective == pytest.approx(other.objective, rel=2e-3)


def test_problems_on_the_same_rows_do_not_disturb_each_other():
    first, second = wide_problem("hinge", n=30, p=400), wide_problem("hinge", n=30, p=400)
    second = replace(second, y=-np.roll(second.y, 3))
    Cs = [0.01, 1.0]
    together = list(walk_over_C([first, second], Cs, n_rounds=4))
    for k, problem in enumerate((first, second)):
        for (alone,), both in zip(walk_over_C([problem], Cs, n_rounds=4), together, strict=True):
            for one, other in zip(alone, both[k], strict=True):
                np.testing.assert_array_equal(one.coef, other.coef)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_storage_does_not_matter(order, dtype):
    problem = wide_problem("hinge", n=20, p=200)
    X = np.round(8 * problem.X) / 8
    one = walk(replace(problem, X=X), n_rounds=4)
    other = walk(replace(problem, X=np.asarray(X, dtype=dtype, order=order)), n_rounds=4)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_allclose(a.coef, b.coef, rtol=1e-9, atol=1e-12)


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
    small = replace(problem, X=sp.csr_array(problem.X))
    assert few_rows_suit(small, 1e-4) == (loss in SUITED)
    large = replace(problem, X=sp.csr_array((problem.n_rows, 10**6)))
    assert not few_rows_suit(large, 1e-4)


def test_a_small_sparse_problem_walks_as_its_dense_copy():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 200)) * (rng.random((30, 200)) < 0.1)
    y = np.where(rng.random(30) < 0.5, 1.0, -1.0)
    dense = Problem(y=y, C=10.0, loss=get_loss("hinge"), X=X)
    for one, other in zip(
        walk(dense, n_rounds=4), walk(replace(dense, X=sp.csr_array(X)), n_rounds=4), strict=True
    ):
        np.testing.assert_array_equal(one.coef, other.coef)
        assert other.certificate.gap <= 1e-4
