"""What LinearSVC's 2-norm makes of inputs on which other packages fail.

Each test tells the story in its first line; test_hard_inputs has what SparseSVC shares.
"""

import numpy as np
import pytest

from anynorm import LinearSVC, ReweightedSVC, ReweightedSVCCV
from anynorm.losses import LOSSES, get_loss
from anynorm.problem import Problem
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.interior_point import solve_interior
from tests.references import least_one_norm, least_two_norm, solve_primal
from tests.regressions.data import KINDS, overlapping


@pytest.mark.parametrize("kind", KINDS)
def test_one_feature_at_1e12_and_one_at_1e_minus_12(kind):
    """The large one costs no penalty and the small one cannot help: a programme in one variable."""
    X, y = overlapping(p=2, seed=1)
    model = LinearSVC(tol=1e-6).fit(kind(X * [1e12, 1e-12]), y)
    assert model.certificate_.gap <= 1e-6
    value = least_one_norm(X[:, :1], y, penalties=np.zeros(1))
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_duplicated_columns_share_the_weight(kind, loss):
    """Equal columns make every normal matrix singular; the 2-norm shares the weight evenly."""
    X, y = overlapping(seed=12)
    doubled = np.column_stack([X, X[:, 0]])
    model = LinearSVC(loss=loss, tol=1e-9).fit(kind(doubled), y)
    assert model.certificate_.gap <= 1e-9
    assert model.coef_[0, 0] == pytest.approx(model.coef_[0, -1], rel=1e-9, abs=1e-12)
    value = least_two_norm(X * [np.sqrt(2), 1, 1], y, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", KINDS)
def test_one_example_per_class(kind, loss):
    """Two rows, four features: more unknowns than examples, solved by hand."""
    X = np.array([[1.0, 0.0, 2.0, 0.0], [-1.0, 0.0, 0.0, 3.0]])
    model = LinearSVC(C=10.0, loss=loss, tol=1e-10).fit(kind(X), [1, 0])
    assert model.certificate_.gap <= 1e-10
    difference = X[0] - X[1]
    np.testing.assert_allclose(
        model.coef_[0] / np.linalg.norm(model.coef_), difference / np.linalg.norm(difference)
    )
    scores = model.decision_function(kind(X))
    assert scores.sum() == pytest.approx(0.0, abs=1e-9)
    if loss in ("hinge", "absolute"):  # margins of exactly 1: w = 2 d / ||d||^2
        np.testing.assert_allclose(model.coef_[0], 2 * difference / (difference @ difference))
    value = least_two_norm(X, np.array([1, 0]), C=10.0, loss=loss)
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


def test_the_interior_point_method_goes_on_while_its_gap_rises_and_its_equations_are_not_met():
    """It ended at a gap of 1, and so did rounds of walks at 2000 x 400."""
    rng = np.random.default_rng(3)
    X, w = rng.standard_normal((400, 100)), np.zeros(100)
    w[:5] = rng.standard_normal(5)
    y, scale = np.where(X @ w > 0, 1.0, -1.0), np.sqrt(np.abs(w) + 0.02 * rng.random(100))
    problem = Problem(y=y, C=2000.0, loss=get_loss("hinge"), X=X, feature_scale=scale)
    features = problem.design.scaled(scale)
    found, _ = solve_interior(
        features, y, problem.dual_set, 0.0, tol=1e-5, budget=Budget(1000, None)
    )
    coef = scale * found.u
    primal = problem.objective(coef, problem.best_bias(X @ coef))
    assert primal == pytest.approx(solve_primal(problem).value, rel=1e-4)


@pytest.mark.parametrize("C", [10.0, 1000.0])
@pytest.mark.parametrize("seed", range(4))
def test_rounds_of_logistic_loss_on_columns_with_a_mean_are_solved(seed, C):
    """The duals of the last round were a start far away, where Newton's method found no curvature.

    It ended at a gap of 1, or in an OverflowError.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((60, 30)) + 10
    y = np.where(X[:, 0] + 0.3 * rng.standard_normal(60) > 10, 1, -1)
    model = ReweightedSVC(C, n_rounds=5, loss="logistic").fit(X, y)
    assert max(one.certificate.gap for one in model.history_) <= 1e-4
    search = ReweightedSVCCV([C], max_rounds=5, cv=3, loss="logistic").fit(X, y)
    assert search.cv_results_["max_gap"].max() <= 1e-3
