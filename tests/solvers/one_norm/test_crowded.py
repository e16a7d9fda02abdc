"""The central path of squared slacks where columns crowd: against CVXPY, and its own promises."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings

from anynorm.design import design_of
from anynorm.design.block_products import BlockProducts
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.one_norm import crowded, smooth
from anynorm.solvers.one_norm.smooth import solve_smooth
from tests.references import solve_primal
from tests.solvers.problems import BIASES, small_data


def words(n=700, p=900, seed=0, kind="tf-idf"):
    """Words in rows of unit length, or their counts; the classes are all but separable."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(p) + 10.0)
    drawn = rng.choice(p, size=(n, 40), p=frequency / frequency.sum())
    X = sp.csr_matrix((np.ones(n * 40), (np.repeat(np.arange(n), 40), drawn.ravel())), shape=(n, p))
    if kind == "tf-idf":
        X = X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))).tocsr()
    scores = X @ np.where(rng.random(p) < 0.1, rng.normal(size=p), 0.0)
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    y[rng.random(n) < 0.05] *= -1
    return X, y


def problem_of(X, y, C=100.0, **pieces):
    return Problem(y=y, C=C, loss=get_loss("squared_hinge"), X=X, regulariser="l1", **pieces)


@pytest.fixture
def steps(monkeypatch):
    """How often the path went on, however few the columns are."""
    taken, step = [], crowded.CrowdedPath.step

    def counted(self, in_time):
        moved = step(self, in_time)
        taken.append(moved)
        return moved

    monkeypatch.setattr(crowded.CrowdedPath, "step", counted)
    monkeypatch.setattr(smooth, "_FEW", 0)
    return taken


def assert_optimal(problem, tol=1e-7):
    solution = solve_smooth(problem, tol=tol)
    assert solution.status is Status.OPTIMAL, solution.certificate
    again = certify(problem, solution.coef, solution.intercept, solution.dual, tol=tol)
    assert again.gap <= tol
    return solution


@pytest.mark.parametrize("factor", [0, 4000])
@pytest.mark.parametrize("kind", ["tf-idf", "counts"])
@pytest.mark.parametrize("intercept", BIASES)
def test_the_path_finds_the_optimum_of_text(steps, monkeypatch, intercept, kind, factor):
    monkeypatch.setattr(crowded, "_FACTOR", factor)
    X, y = words(200, 400, kind=kind)
    problem = problem_of(X, y, intercept=intercept)
    solution = assert_optimal(problem)
    assert sum(steps) >= 5
    reference = solve_primal(problem_of(X.toarray(), y, intercept=intercept))
    assert solution.certificate.primal <= reference.value * (1 + 1e-6)
    assert solution.certificate.dual <= reference.value * (1 + 1e-6)


def test_zeros_are_exact_and_as_many_as_the_dual_says(steps):
    X, y = words(300, 500, seed=1)
    solution = assert_optimal(problem_of(X, y), tol=1e-9)
    pressure = np.abs(X.T @ (y * solution.dual))
    assert sum(steps) > 0
    assert np.all(solution.coef[pressure < 1 - 1e-3] == 0)
    assert np.count_nonzero(solution.coef) < 300


def test_weights_penalties_and_repeated_columns(steps):
    X, y = words(150, 300, seed=2)
    X = sp.hstack([X, X[:, :100], sp.csr_matrix((150, 2))]).tocsr()  # duplicates, zero columns
    rng = np.random.default_rng(0)
    penalty = rng.uniform(0.5, 2.0, X.shape[1])
    penalty[::17] = np.inf
    weights = rng.integers(1, 4, 150).astype(float)
    pieces = {"penalty_weights": penalty, "sample_weight": weights, "intercept": "free"}
    solution = assert_optimal(problem_of(X, y, **pieces))
    assert sum(steps) > 0
    assert np.all(solution.coef[::17] == 0)
    reference = solve_primal(problem_of(X.toarray(), y, **pieces))
    assert solution.certificate.primal <= reference.value * (1 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(small_data())
def test_small_and_degenerate_data_are_solved_wherever_columns_crowd(data):
    X, y, pieces, _ = data
    problem = problem_of(X, y, **pieces)
    before = smooth._FEW
    smooth._FEW = 0
    try:
        solution = solve_smooth(problem, tol=1e-7)
    finally:
        smooth._FEW = before
    usual = solve_smooth(problem, tol=1e-7)
    assert solution.status is usual.status
    excess = solution.certificate.primal - usual.certificate.primal
    assert excess <= 2e-7 * max(usual.certificate.primal, 1e-10 * problem.zero_primal())


def test_crowds_of_columns_are_left_to_the_path_and_the_others_not(steps, monkeypatch):
    monkeypatch.setattr(smooth, "_FEW", 500)
    X, y = words(900, 1500, seed=3)
    assert_optimal(problem_of(X, y), tol=1e-6)
    assert sum(steps) > 5
    steps.clear()
    assert_optimal(problem_of(X, y, C=0.1), tol=1e-6)
    assert not steps


def test_other_units_change_no_digit_of_the_coefficients(steps):
    X, y = words(200, 300, seed=4)
    solution = assert_optimal(problem_of(X, y), tol=1e-6)
    scaled = problem_of(X * 4.0, y, penalty_weights=np.full(X.shape[1], 4.0))
    assert sum(steps) > 0
    np.testing.assert_array_equal(4.0 * assert_optimal(scaled, tol=1e-6).coef, solution.coef)


def test_a_deadline_ends_the_path(steps):
    X, y = words(1800, 3000, seed=3)  # for which it takes more than a second
    began = time.monotonic()
    solution = solve_smooth(problem_of(X, y), tol=1e-12, deadline=began + 0.2)
    assert solution.status is Status.TIME_LIMIT
    assert np.isfinite(solution.certificate.primal)
    assert solution.certificate.dual <= solution.certificate.primal


@pytest.mark.parametrize("scale", [1.0, 1e-40, 1e40])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_normal_products_of_a_block(form, scale):
    """However often they are asked for: sparse rows are put in order first, in short numbers."""
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(30, 20)) * (rng.random((30, 20)) < 0.3)
    root, w = rng.normal(size=30), rng.normal(size=20)
    weights = rng.random(30) * (rng.random(30) < 0.7)
    part = BlockProducts(design_of(form(X)).column_block(np.arange(20), np.arange(30), root))
    Z, most = root[:, None] * X, np.arange(1, 18)
    for _ in range(20):
        product = Z.T @ (weights * (Z @ w))
        size = 1e-6 * np.abs(product).max()
        np.testing.assert_allclose(part.normal(weights, w), product, rtol=0, atol=size)
        for columns in (most, most[:3]):
            some = Z[:, columns]
            np.testing.assert_allclose(
                part.normal(weights, w[columns], columns=columns),
                some.T @ (weights * (some @ w[columns])),
                rtol=0,
                atol=size,
            )


def test_what_a_system_leaves_costs_no_more_than_is_enough(monkeypatch):
    monkeypatch.setattr(crowded, "_FACTOR", 0)  # the diagonal alone
    rng = np.random.default_rng(0)
    Z, T, E = rng.normal(size=(60, 50)), rng.random(60) + 0.1, 1e-3 * rng.random(50)
    part = BlockProducts(
        design_of(sp.csr_matrix(Z)).column_block(np.arange(50), np.arange(60), np.ones(60))
    )
    system = crowded._System(part, T, E, (T[:, None] * Z**2).sum(axis=0), np.ones(60), False)
    left, cost = np.append(rng.normal(size=50), 0.0), rng.random(50)
    for enough in (1.0, 1e-2, 1e-4):
        x = system.solve(left.copy(), np.zeros(51), cost, enough, lambda: True)
        rest = left[:-1] - Z.T @ (T * (Z @ x[:-1])) - E * x[:-1]
        assert cost @ np.abs(rest) <= 1.01 * enough


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n", [15, 60])
@pytest.mark.parametrize("free_bias", [False, True])
def test_the_factor_of_the_smaller_side_is_the_inverse_of_the_system(form, n, free_bias):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 30)) * (rng.random((n, 30)) < 0.5)
    y, T, E = rng.choice([-1.0, 1.0], n), rng.random(n) + 0.1, rng.random(30) + 0.1
    Z = y[:, None] * X
    part = BlockProducts(design_of(form(X)).column_block(np.arange(30), np.arange(n), y))
    system = crowded._System(part, T, E, (T[:, None] * Z**2).sum(axis=0), y, free_bias)
    whole = np.zeros((31, 31))
    whole[:30, :30] = np.diag(E) + Z.T @ (T[:, None] * Z)
    whole[30, 30] = 1.0
    if free_bias:
        whole[30, :30] = whole[:30, 30] = Z.T @ (T * y)
        whole[30, 30] = T.sum()
    v = rng.normal(size=31)
    np.testing.assert_allclose(system._nearly_inverse()(v), np.linalg.solve(whole, v), rtol=1e-8)
    assert system.look == 1
    np.testing.assert_allclose(
        np.tril(part.row_gram(E)), np.tril(Z @ (E[:, None] * Z.T)), rtol=1e-12, atol=1e-13
    )
