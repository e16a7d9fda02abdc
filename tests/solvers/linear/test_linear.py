"""The linear engine: every method alone and the way they hand over, against CVXPY and Clarabel."""

import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.design import design_of
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear import coordinate_descent, solve, solve_linear
from anynorm.solvers.linear.augmented_lagrangian import solve_augmented
from anynorm.solvers.linear.coordinate_descent import DualState, descend_dual
from anynorm.solvers.linear.interior_point import solve_interior
from anynorm.solvers.linear.newton_system import NewtonSystem
from anynorm.solvers.linear.polish import polish_free_set
from tests.references import solve_primal
from tests.solvers.problems import BIASES, overlapping, small_data

LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "absolute"]
BOXED = ["hinge", "squared_hinge", "absolute"]


def methods_that_suit(problem):
    """The names of the methods that would be tried."""
    search = solve.Search(problem, 1e-6, Budget(100), None)
    return [method.name for method in solve.METHODS if method.suits(search)]


def problem_of(X, y, loss="hinge", C=1.0, **pieces):
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, **pieces)


def precision_of(problem):
    if problem.free_bias:
        return 0.0
    return 1.0 / problem.bias_feature**2 if problem.bias_feature else np.inf


# ---------------------------------------------------------------- the whole


@st.composite
def small_problems(draw):
    X, y, pieces, rng = draw(small_data())
    if draw(st.integers(0, 3)) == 0:
        p = X.shape[1]
        pieces["feature_scale"] = np.where(rng.random(p) < 0.3, 0.0, rng.uniform(0.1, 2.0, p))
    return problem_of(X, y, draw(st.sampled_from(LOSSES)), **pieces)


@settings(max_examples=120, deadline=None)
@given(small_problems())
def test_optimal_on_small_problems_of_every_kind(problem):
    solution = solve_linear(problem, tol=1e-8)
    assert abs(solution.certificate.gap) <= 1e-8
    reference = solve_primal(_dense(problem))
    allowance = 1e-6 * max(abs(reference.value), 1e-3 * problem.zero_primal())
    assert solution.certificate.primal <= reference.value + allowance
    assert solution.certificate.dual <= reference.value + allowance
    again = certify(problem, solution.coef, solution.intercept, solution.dual, tol=1e-8)
    assert again.primal == solution.certificate.primal
    assert again.dual == pytest.approx(solution.certificate.dual, rel=1e-9, abs=1e-300)


def _dense(problem):
    X = problem.X.toarray() if sp.issparse(problem.X) else problem.X
    return problem_of(
        X, problem.y, problem.loss.name, problem.C, sample_weight=problem.sample_weight,
        intercept=problem.intercept, feature_scale=problem.feature_scale,
    )  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_small_problems_are_solved_to_the_last_digit_at_any_tol(loss):
    X, y = overlapping()
    rough = solve_linear(problem_of(X, y, loss), tol=1e-2)
    fine = solve_linear(problem_of(X, y, loss), tol=1e-12)
    np.testing.assert_allclose(rough.coef, fine.coef, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", BIASES)
def test_span_of_few_examples_gives_the_same_as_all_columns(loss, intercept, monkeypatch):
    X, y = overlapping(n=20, p=400)
    problem = problem_of(X, y, loss, intercept=intercept)
    assert "Newton's method in the rows' span" in methods_that_suit(problem)
    rotated = solve_linear(problem, tol=1e-10)
    monkeypatch.setattr(solve, "_LARGEST_SPAN", 0)
    plain = solve_linear(problem, tol=1e-10)
    np.testing.assert_allclose(rotated.coef, plain.coef, rtol=1e-6, atol=1e-9)
    assert rotated.status is plain.status is Status.OPTIMAL


@pytest.mark.parametrize("loss", [*BOXED, "squared"])
@pytest.mark.parametrize("intercept", BIASES)
def test_sparse_data_of_two_large_sides_by_coordinate_descent(loss, intercept):
    X = sp.random_array((1500, 1200), density=0.02, format="csr", random_state=1)
    rng = np.random.default_rng(1)
    y = np.sign(X @ rng.normal(size=1200) + 0.1 * rng.normal(size=1500) + 1e-9)
    problem = problem_of(X, y, loss, intercept=intercept)
    assert "dual coordinate descent" in methods_that_suit(problem)
    found = solve_linear(problem, tol=1e-6)
    dense = solve_linear(problem_of(X.toarray(), y, loss, intercept=intercept), tol=1e-8)
    assert found.status is Status.OPTIMAL
    assert found.certificate.primal == pytest.approx(dense.certificate.primal, rel=2e-6)


def test_slow_descent_hands_over_and_the_newton_method_finishes():
    rng = np.random.default_rng(0)
    X = sp.random_array((1100, 1050), density=0.05, format="csr", random_state=2)
    X = X @ sp.diags_array(10.0 ** rng.uniform(-2, 3, 1050))
    y = np.where(rng.random(1100) < 0.5, 1.0, -1.0)
    solution = solve_linear(problem_of(X.tocsr(), y, C=100.0), tol=1e-5)
    assert solution.status is Status.OPTIMAL


def test_order_depends_on_the_seed_alone():
    X = sp.random_array((1300, 1200), density=0.02, format="csr", random_state=3)
    y = np.where(np.random.default_rng(0).random(1300) < 0.5, 1.0, -1.0)
    problem = problem_of(X, y, intercept=None)
    first, again, other = (solve_linear(problem, tol=1e-3, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.coef, again.coef)
    assert not np.array_equal(first.coef, other.coef)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start_from_the_solution_needs_no_more_steps(loss):
    X, y = overlapping(n=400, p=20)
    problem = problem_of(X, y, loss)
    cold = solve_linear(problem, tol=1e-8)
    warm = solve_linear(problem, tol=1e-8, start=cold.dual)
    assert warm.status is Status.OPTIMAL
    assert warm.n_iter <= cold.n_iter
    np.testing.assert_allclose(warm.coef, cold.coef, atol=1e-7)


def test_a_useless_start_does_no_harm():
    X, y = overlapping()
    start = np.full(y.size, np.nan)
    start[::2] = 1e9
    solution = solve_linear(problem_of(X, y), tol=1e-8, start=start)
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_deadline_in_the_past_stops_at_once_and_says_so(loss):
    X, y = overlapping(n=3000, p=50)
    problem = problem_of(X, y, loss, C=100.0)
    solution = solve_linear(problem, tol=1e-12, deadline=time.monotonic() - 1.0)
    assert solution.status is Status.TIME_LIMIT
    assert solution.certificate.gap > 1e-12
    assert solution.certificate.primal <= problem.zero_primal()


def test_iterations_run_out_and_the_status_says_so():
    X, y = overlapping(n=3000, p=50)
    solution = solve_linear(problem_of(X, y, C=100.0), tol=1e-9, max_iter=3)
    assert solution.status is Status.MAX_ITER
    assert solution.n_iter <= 3


def test_progress_reports_certified_values_that_close():
    X, y = overlapping(n=3000, p=50)
    seen = []
    solution = solve_linear(problem_of(X, y, C=10.0), tol=1e-6, progress=seen.append)
    assert seen
    assert seen[-1].gap <= 1e-6
    gaps = [report.gap for report in seen]
    assert gaps == sorted(gaps, reverse=True)
    assert seen[-1].primal == solution.certificate.primal


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("intercept", BIASES)
def test_a_feature_at_1e12_and_one_at_1e_12(loss, storage, intercept):
    X, y = overlapping(n=100, p=10)
    X[:, 4] *= 1e12
    X[:, 5] *= 1e-12
    solution = solve_linear(problem_of(storage(X), y, loss, intercept=intercept), tol=1e-4)
    assert solution.status is Status.OPTIMAL
    # An unpenalised column stands for the huge one; the tiny one is as good as absent.
    reference = solve_primal(
        problem_of(
            X * np.where(np.arange(10) == 4, 1e-12, 1.0), y, loss, intercept=intercept,
            feature_scale=np.where(np.arange(10) == 4, 1e4, 1.0),
        )
    )  # fmt: skip
    assert solution.certificate.primal == pytest.approx(reference.value, rel=2e-4)


def test_values_beyond_reach_never_give_a_model_worse_than_none():
    X, y = overlapping(n=40, p=3)
    problem = problem_of(X * 1e60, y, "absolute")
    solution = solve_linear(problem, tol=1e-6)
    assert np.all(np.isfinite(solution.coef))
    assert solution.certificate.primal <= problem.zero_primal()


# ---------------------------------------------------------------- the methods one by one


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("intercept", BIASES)
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_augmented_lagrangian_alone_reaches_the_gap(loss, intercept, C):
    X, y = overlapping(n=300, p=12)
    problem = problem_of(X, y, loss, C, intercept=intercept)
    found = solve_augmented(
        design_of(X), y, problem.dual_set, precision_of(problem),
        None, tol=1e-6, budget=Budget(1000),
        accept=lambda at: certify(problem, at.u, at.bias, at.dual, tol=1e-6).gap <= 1e-6,
    )  # fmt: skip
    assert certify(problem, found.u, found.bias, found.dual, tol=1e-6).status is Status.OPTIMAL


@pytest.mark.parametrize("loss", BOXED)
@pytest.mark.parametrize("intercept", BIASES)
@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
def test_interior_point_alone_reaches_the_gap(loss, intercept, C):
    X, y = overlapping(n=300, p=12)
    problem = problem_of(X, y, loss, C, intercept=intercept)
    found, _ = solve_interior(
        design_of(X), y, problem.dual_set, precision_of(problem),
        tol=1e-7, budget=Budget(1000),
    )  # fmt: skip
    assert certify(problem, found.u, found.bias, found.dual, tol=1e-5).status is Status.OPTIMAL


@pytest.mark.parametrize("loss", [*BOXED, "squared"])
@pytest.mark.parametrize("intercept", BIASES)
@pytest.mark.parametrize("scaled", [False, True])
def test_coordinate_descent_alone_reaches_the_gap(loss, intercept, scaled):
    X, y = overlapping(n=100, p=250)
    scale = np.linspace(0.2, 1.5, 250) if scaled else None
    problem = problem_of(sp.csr_array(X), y, loss, 0.1, intercept=intercept, feature_scale=scale)
    state = DualState(np.zeros(100), np.zeros(250), 0.0)
    done = descend_dual(
        design_of(problem.X, scale), y, problem.dual_set,
        precision_of(problem), state, tol=1e-6, seed=0, budget=Budget(2000),
        check=lambda at: certify(problem, at.coef, at.bias, at.dual, tol=1e-5).gap <= 1e-5,
        finish=lambda _: False,
    )  # fmt: skip
    assert done
    assert certify(problem, state.coef, state.bias, state.dual, tol=1e-5).status is Status.OPTIMAL


@pytest.mark.parametrize("loss", [*BOXED, "squared"])
@pytest.mark.parametrize("intercept", BIASES)
@pytest.mark.parametrize("scaled", [False, True])
def test_moves_of_some_epochs_are_combined(loss, intercept, scaled, monkeypatch):
    """As good as they say, and what belongs to the dual stays with it."""
    X = sp.random_array((300, 500), density=0.05, format="csr", random_state=0)
    y = np.where(X @ np.random.default_rng(0).normal(size=500) > 0, 1.0, -1.0)
    scale = np.where(np.arange(500) % 7, np.linspace(0.2, 1.5, 500), 0.0) if scaled else None
    problem = problem_of(X, y, loss, 30.0, intercept=intercept, feature_scale=scale)
    epochs = []
    for first in (10**9, 15):
        monkeypatch.setattr(coordinate_descent, "_EPOCHS", first)
        state = DualState(np.zeros(300), np.zeros(500), 0.0)
        assert descend_dual(
            design_of(X, scale), y, problem.dual_set,
            precision_of(problem), state, tol=1e-7, seed=0, budget=Budget(20_000),
            check=lambda at: certify(problem, at.coef, at.bias, at.dual, tol=1e-6).gap <= 1e-6,
            finish=lambda _: False, patient=True,
        )  # fmt: skip
        V = np.ones(500) if scale is None else scale
        np.testing.assert_allclose(state.coef, V**2 * (X.T @ (y * state.dual)), atol=1e-9)
        epochs.append(state.epochs)
    # Of the absolute loss none were enough while gains by rounding counted.
    assert epochs[1] < (0.7 if loss == "squared" and scaled else 1.0) * epochs[0]


@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared_hinge", "squared"])
@pytest.mark.parametrize("intercept", BIASES)
def test_polish_from_a_rough_dual_is_exact(loss, intercept):
    X, y = overlapping(n=80, p=6)
    problem = problem_of(X, y, loss, 0.3, intercept=intercept)
    box = problem.dual_set
    exact = solve_linear(problem, tol=1e-10)
    # Variables at a bound stay there; the free ones lose their digits.
    free = (exact.dual > box.lower + 1e-9) & (exact.dual < box.upper - 1e-9)
    rough = np.where(free, exact.dual * 1.01, exact.dual)
    rough = np.clip(rough, box.lower, box.upper)
    found = polish_free_set(design_of(X), y, box, precision_of(problem), rough, exact.intercept)
    assert found is not None
    u, bias, dual = found
    assert certify(problem, u, bias, dual, tol=1e-12).gap <= 1e-12


@pytest.mark.parametrize("precision", [0.0, np.inf, 0.5])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("route", ["_by_columns", "_by_rows", "_by_iteration"])
def test_newton_systems_agree_with_the_matrix_written_out(precision, storage, scaled, route):
    X, _ = overlapping(n=40, p=9)
    rng = np.random.default_rng(0)
    rows = np.sort(rng.choice(40, 25, replace=False))
    weights, gradient, bias_gradient = rng.uniform(0.1, 3.0, 25), rng.normal(size=9), 0.7
    scale = np.linspace(0.0, 2.0, 9) if scaled else None
    system = NewtonSystem(
        design_of(storage(X), scale), rows, weights, precision, Budget(1), forcing=1e-12
    )
    d, e = getattr(system, route)()(gradient, bias_gradient)

    A = X[rows] * (np.ones(9) if scale is None else scale)
    A = np.column_stack([A, np.ones(25)])
    matrix = A.T @ (weights[:, None] * A) + np.diag([*np.ones(9), precision])
    rhs = -np.append(gradient, bias_gradient)
    if np.isinf(precision):
        expected = np.append(np.linalg.solve(matrix[:9, :9], rhs[:9]), 0.0)
    else:
        expected = np.linalg.solve(matrix, rhs)
    np.testing.assert_allclose(np.append(d, e), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "csr"])
def test_updated_gram_equals_one_made_anew(storage):
    X, _ = overlapping(n=200, p=7)
    features = design_of(storage(X))
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, 200)
    for _ in range(30):  # more than the updates allowed before a fresh start
        weights[rng.choice(200, 9, replace=False)] = rng.choice([0.0, 1.0, 2.5], 9)
        rows = np.flatnonzero(weights)
        expected = X[rows].T @ (weights[rows, None] * X[rows])
        found = features.weighted_gram(rows, weights[rows], None)
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
        center = weights[rows] @ X[rows] / weights[rows].sum()
        moved = X[rows] - center
        found = features.weighted_gram(rows, weights[rows], center)
        np.testing.assert_allclose(
            found, moved.T @ (weights[rows, None] * moved), rtol=1e-9, atol=1e-9
        )


def test_a_warm_start_is_kept_where_there_is_no_time_at_all():
    X, y = overlapping(n=300, p=12)
    problem = problem_of(X, y)
    known = solve_linear(problem, tol=1e-6)
    late = solve_linear(problem, tol=1e-12, start=known.dual, deadline=time.monotonic() - 1.0)
    assert late.certificate.gap < 0.5
    assert late.certificate.dual >= known.certificate.dual * (1 - 1e-6)
