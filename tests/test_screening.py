"""Screening is safe: nothing that it fixes differs from an optimum found to the last digits."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss, get_loss
from anynorm.losses.bias import optimal_bias
from anynorm.norms import L2, LInf, TopK
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Solution, Status
from anynorm.screening import bias_bounds, safe_ball, screen
from anynorm.solvers.kernel import solve_kernel
from anynorm.solvers.linear import solve_linear
from anynorm.solvers.one_norm import solve_one_norm
from tests.references import solve_primal
from tests.strategies import grid_problem

TWO_NORM = ["hinge", "squared_hinge", "absolute", "squared", "logistic"]
SMOOTH = ["squared_hinge", "logistic", "squared"]


def reference(problem):
    """The reference's optimum; what its solver gives up on is left out."""
    try:
        return solve_primal(problem)
    except cp.error.SolverError:
        reject()


def rough(problem, point, seed, size):
    """A solution made from a reference by noise of a relative size, with any duals."""
    rng = np.random.default_rng(seed)
    coef = point.coef * (1 + size * rng.normal(size=len(point.coef)))
    coef = coef + size * rng.normal(size=len(coef)) * (rng.random(len(coef)) < 0.3)
    dual = np.abs(point.dual) if not problem.loss.signed else point.dual
    dual = dual * (1 + size * rng.normal(size=len(dual)))
    if problem.feature_scale is not None:
        coef = np.where(problem.feature_scale == 0, 0.0, coef)
    if problem.penalty_weights is not None:
        coef = np.where(np.isinf(problem.penalty_weights), 0.0, coef)
    found = certify(problem, coef, point.intercept, dual, tol=1.0)
    return Solution(dual, found, 1, coef, point.intercept)


def assert_rows_agree(problem, report, best):
    """The rows that are fixed, against the margins of the reference."""
    margins = problem.y * (problem.scores(best.coef) + best.intercept)
    weighs = problem.row_weights() > 0
    allowed = 1e-5 * (1 + np.abs(margins))
    zero = report.zero_rows & weighs
    assert np.all(margins[zero] >= 1 - allowed[zero])
    upper = report.bound_rows & (report.dual_values > 0)
    assert np.all(margins[upper] <= 1 + allowed[upper])
    lower = report.bound_rows & (report.dual_values < 0)
    assert np.all(margins[lower] >= 1 - allowed[lower])


@settings(max_examples=150, deadline=None)
@given(
    problem=st.sampled_from(TWO_NORM).flatmap(lambda name: grid_problem(loss=get_loss(name))),
    seed=st.integers(0, 1000),
    size=st.sampled_from([0.0, 1e-8, 1e-4, 1e-2, 0.3]),
)
def test_nothing_fixed_disagrees_with_the_reference(problem, seed, size):
    if problem.regulariser == "l1" and not problem.loss.smooth:
        return
    best = reference(problem)
    report = screen(problem, rough(problem, best, seed, size))
    if problem.regulariser == "l1":
        scale = np.maximum(np.abs(problem.X).max(axis=0), 1e-300)
        assert np.all(np.abs(best.coef[report.zero_features]) * scale[report.zero_features] < 1e-4)
    else:
        assert_rows_agree(problem, report, best)


def exact(problem):
    """The optimum to a relative gap of 1e-11."""
    if problem.gram is not None:
        return solve_kernel(problem, tol=1e-11)
    solve = solve_one_norm if problem.regulariser == "l1" else solve_linear
    return solve(problem, tol=1e-11)


def data(n, p, seed, shift=1.0, integer=False):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    X = rng.normal(size=(n, p)) + shift * y[:, None] * (np.arange(p) < 3)
    if integer:
        X = np.round(X)
    X[n // 2 : n // 2 + n // 8] = X[: n // 8]
    y[n // 2 : n // 2 + n // 8] = y[: n // 8]
    X[:, -1] = 0.0
    return X, y


def pieces_of(kind, X):
    if kind == "linear kernel":
        return {"gram": Gram.linear(X)}
    if kind == "rbf":
        return {"gram": Gram.rbf(X, 0.2)}
    if kind == "sparse":
        return {"X": sp.csr_array(X)}
    return {"X": X}


@pytest.mark.parametrize("integer", [False, True])
@pytest.mark.parametrize("kind", ["features", "sparse", "linear kernel", "rbf"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "absolute"])
def test_rows_fixed_along_a_solve_keep_their_values(loss, kind, integer):
    X, y = data(120, 5, 3, integer=integer)
    weights = np.random.default_rng(0).choice([0.0, 0.5, 1.0, 3.0], size=len(y))
    problem = Problem(y=y, C=0.7, loss=get_loss(loss), sample_weight=weights, **pieces_of(kind, X))
    best = exact(problem)
    solve = solve_linear if problem.gram is None else solve_kernel
    for tol in (0.3, 1e-2, 1e-4, 1e-8):
        report = screen(problem, solve(problem, tol=tol))
        fixed = ~np.isnan(report.dual_values)
        np.testing.assert_allclose(
            best.dual[fixed], report.dual_values[fixed], atol=1e-4 * problem.C * weights.max()
        )
        assert np.array_equal(fixed, report.zero_rows | report.bound_rows)
        low, high = report.bias_interval
        assert low <= best.intercept <= high
    margins = y * (problem.scores(best.coef) + best.intercept)
    clear = (margins > 1.02) | ((margins < 0.98) & (loss != "squared_hinge"))
    assert np.all(fixed[clear])
    assert clear.mean() > 0.2


@pytest.mark.parametrize("intercept", ["free", None, 1.0])
@pytest.mark.parametrize("loss", SMOOTH)
def test_features_fixed_along_a_solve_are_zero(loss, intercept):
    X, y = data(80, 60, 5)
    X[:, 10] = X[:, 1]
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.0], size=len(y))
    penalty = np.ones(60)
    penalty[[4, 7]] = 0.0, np.inf
    problem = Problem(
        y=y, C=0.1, loss=get_loss(loss), X=X, regulariser="l1", intercept=intercept,
        sample_weight=weights, penalty_weights=penalty,
    )  # fmt: skip
    best = exact(problem)
    shares = []
    for tol in (0.1, 1e-2, 1e-4, 1e-8):
        report = screen(problem, solve_one_norm(problem, tol=tol))
        assert not np.any(report.zero_features[np.abs(best.coef) > 1e-6])
        assert report.zero_features[7]
        assert not report.zero_features[4]
        assert not report.zero_rows.any()
        shares.append(report.zero_features.mean())
    zero = np.mean(np.abs(best.coef) < 1e-9)
    assert shares[0] <= shares[-1]
    assert shares[-1] >= 0.8 * zero


def test_centred_columns_screen_more_than_plain_ones():
    X, y = data(200, 40, 2)
    X = X + 50.0  # a large mean, which a free bias takes up
    problem = Problem(y=y, C=0.05, loss=get_loss("squared_hinge"), X=X, regulariser="l1")
    solution = solve_one_norm(problem, tol=1e-4)
    assert screen(problem, solution).zero_features.sum() > 20


@settings(max_examples=60, deadline=None)
@given(
    grid_problem(loss=get_loss("hinge"), kernels=False),
    st.integers(0, 1000),
    st.floats(0.0, 0.5),
)
def test_ball_and_interval_hold_the_optimum(problem, seed, size):
    if problem.regulariser == "l1":
        return
    best = reference(problem)
    solution = rough(problem, best, seed, size)
    scores = problem.scores(solution.coef)
    bias = solution.intercept
    if problem.free_bias:
        bias = optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)
    dual = np.zeros(problem.n_rows)
    ball = safe_ball(problem, solution.coef, bias, dual)
    shift = best.intercept if problem.bias_feature else 0.0
    away = np.abs(problem.scores(best.coef) + shift - ball.centre)
    assert np.all(away <= ball.radius * ball.lengths * (1 + 1e-5) + 1e-5)
    low, high = bias_bounds(problem, ball)
    inside = optimal_bias(
        problem.loss, problem.scores(best.coef), problem.y, problem.C, problem.sample_weight
    )
    if problem.free_bias:
        assert low - 1e-4 * (1 + abs(inside)) <= inside <= high + 1e-4 * (1 + abs(inside))


@pytest.mark.parametrize("slack", [L2(), LInf(), TopK(3)])
def test_other_norms_of_the_slacks(slack):
    X, y = data(60, 4, 7, shift=2.0)
    problem = Problem(y=y, C=2.0, loss=Loss.from_slack(slack), gram=Gram.rbf(X, 0.1))
    best = solve_primal(problem)
    report = screen(problem, solve_kernel(problem, tol=1e-7))
    assert not report.bound_rows.any()
    assert np.all(best.dual[report.zero_rows] < 1e-5)
    # The interval of the bias is known for norms whose best bias falls as scores rise.
    margins = y * (problem.scores(best.coef) + best.intercept)
    assert np.all(report.zero_rows[margins > 1.01]) or isinstance(slack, TopK)


def test_a_kernel_without_weak_duality_fixes_nothing():
    K = np.array([[1.0, 3.0], [3.0, 1.0]])
    problem = Problem(
        y=np.array([1.0, -1.0]), C=1.0, loss=get_loss("hinge"), gram=Gram.precomputed(K)
    )
    point = np.array([1.0, 1.0])
    found = certify(problem, point, 0.0, point, tol=1e-3)
    report = screen(problem, Solution(point, found, 1, point))
    assert found.status is Status.UNCERTIFIED
    assert not report.zero_rows.any()
    assert not report.bound_rows.any()


def test_one_class_and_one_row():
    for y in (np.array([1.0]), np.array([1.0, 1.0])):
        X = np.arange(len(y), dtype=float)[:, None]
        for loss in TWO_NORM:
            problem = Problem(y=y, C=1.0, loss=get_loss(loss), X=X)
            report = screen(problem, solve_linear(problem, tol=1e-8))
            assert not report.bound_rows.any()


def test_the_1_norm_with_a_hinge_is_refused():
    X, y = data(20, 3, 0)
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1")
    with pytest.raises(ValueError, match=r"1-norm.*got 'hinge'"):
        screen(problem, Solution(np.zeros(20), None, 0, np.zeros(3)))


def test_the_report_reads_well():
    X, y = data(60, 4, 1)
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    report = screen(problem, solve_linear(problem, tol=1e-6))
    text = str(report)
    assert f"{report.zero_rows.sum()} of 60 rows are no support vectors" in text
    assert np.array_equal(report.kept_rows, np.flatnonzero(~report.zero_rows))
    assert len(report.kept_features) == 4
