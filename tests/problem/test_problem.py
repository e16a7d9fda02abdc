"""Problems: objectives against their formulas, weak duality everywhere, shapes checked."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss, get_loss
from anynorm.norms import L2, Mahalanobis, TopK
from anynorm.problem import Problem
from anynorm.problem.repair import repair_dual
from tests.strategies import grid_problem, vectors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3))
Y = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
W = np.array([1.0, -0.5, 2.0])


def hinge_problem(**changes):
    pieces = {"y": Y, "C": 2.0, "loss": get_loss("hinge"), "X": X, **changes}
    return Problem(**pieces)


def hinge(coef, b):
    return 2.0 * np.maximum(1 - Y * (X @ coef + b), 0).sum()


def test_objectives_are_their_formulas():
    b = 0.3
    assert hinge_problem().objective(W, b) == pytest.approx(0.5 * W @ W + hinge(W, b))
    l1 = hinge_problem(regulariser="l1")
    assert l1.objective(W, b) == pytest.approx(np.abs(W).sum() + hinge(W, b))
    weighted = hinge_problem(regulariser="l1", penalty_weights=np.array([0.0, 2.0, 1.0]))
    assert weighted.objective(W, b) == pytest.approx(3.0 + hinge(W, b))
    scaled = hinge_problem(feature_scale=np.array([2.0, 1.0, 0.5]))
    assert scaled.objective(W, b) == pytest.approx(0.5 * (0.25 + 0.25 + 16) + hinge(W, b))
    constant = hinge_problem(intercept=0.5)
    assert constant.objective(W, b) == pytest.approx(0.5 * W @ W + 0.5 * 0.36 + hinge(W, b))
    sparse = hinge_problem(intercept=0.5, regulariser="l1")
    assert sparse.objective(W, b) == pytest.approx(np.abs(W).sum() + 0.6 + hinge(W, b))


def test_a_regularised_bias_is_a_constant_feature():
    """Primal and dual values are those of X with one more column."""
    wide = hinge_problem(X=np.column_stack([X, np.full(6, 0.5)]), intercept=None)
    bias = hinge_problem(intercept=0.5)
    assert bias.objective(W, 0.4) == pytest.approx(wide.objective(np.append(W, 0.8)))
    a = RNG.random(6)
    assert bias.dual_objective(a) == pytest.approx(wide.dual_objective(a))


def test_a_bias_too_large_to_be_squared_costs_infinitely_much():
    # Powers of floats beyond 1e154 raise OverflowError; products are infinite.
    assert hinge_problem(intercept=1.0).objective(W, 1e200) == np.inf


def test_points_outside_the_domain_cost_infinitely_much():
    assert hinge_problem(intercept=None).objective(W, 1.0) == np.inf
    dropped = hinge_problem(feature_scale=np.array([0.0, 1.0, 1.0]))
    assert dropped.objective(W, 0.0) == np.inf
    assert np.isfinite(dropped.objective(W * [0, 1, 1], 0.0))
    left_out = hinge_problem(regulariser="l1", penalty_weights=np.array([np.inf, 1.0, 1.0]))
    assert left_out.objective(W, 0.0) == np.inf
    assert np.isfinite(left_out.objective(W * [0, 1, 1], 0.0))
    ones = np.ones(6)
    assert hinge_problem().dual_objective(ones) == pytest.approx(6 - 0.5 * ((X.T @ Y) ** 2).sum())
    assert hinge_problem().dual_objective(np.arange(6.0) / 3) == -np.inf  # sum(y a) is not 0
    assert hinge_problem().dual_objective(2.1 * ones) == -np.inf  # outside the box
    assert hinge_problem().dual_objective(-ones) == -np.inf  # wrong sign
    assert hinge_problem(regulariser="l1").dual_objective(ones) == -np.inf  # ||X'(ya)|| > 1


def test_a_kernel_problem_is_the_linear_one_in_its_feature_space():
    a = RNG.random(6)
    for intercept in (None, "free", 0.7):
        linear = hinge_problem(intercept=intercept)
        kernel = hinge_problem(X=None, gram=Gram.linear(X), intercept=intercept)
        coef = X.T @ (Y * a)
        b = 0.0 if intercept is None else 0.2
        assert kernel.objective(a, b) == pytest.approx(linear.objective(coef, b))
        feasible = repair_dual(linear, a)
        assert kernel.dual_objective(feasible) == pytest.approx(linear.dual_objective(feasible))


def test_sparse_and_narrow_storage_give_the_same_values():
    a = repair_dual(hinge_problem(), RNG.random(6))
    for form in (sp.csr_array, sp.csc_matrix, np.asfortranarray):
        problem = hinge_problem(X=form(X))
        assert problem.objective(W, 0.1) == pytest.approx(hinge_problem().objective(W, 0.1))
        assert problem.dual_objective(a) == pytest.approx(hinge_problem().dual_objective(a))


@st.composite
def problem_and_points(draw):
    problem = draw(grid_problem())
    coef = draw(vectors(n=problem.n_coefs, scaled=False))
    coef = coef * draw(st.sampled_from([0.0, 0.1, 1.0]))
    if problem.feature_scale is not None:
        coef = np.where(problem.feature_scale == 0, 0.0, coef)
    if problem.penalty_weights is not None:
        coef = np.where(np.isinf(problem.penalty_weights), 0.0, coef)
    b = 0.0 if problem.intercept is None else draw(st.sampled_from([0.0, -1.0, 0.37, 50.0]))
    return problem, coef, b, draw(vectors(n=problem.n_rows, scaled=False))


@given(problem_and_points())
@settings(max_examples=200, deadline=None)
def test_weak_duality_on_random_feasible_points(case):
    """D <= P for every cell, every primal point and every repaired dual."""
    problem, coef, b, a = case
    primal = problem.objective(coef, b)
    repaired = repair_dual(problem, a)
    dual = problem.dual_objective(repaired)
    assert np.isfinite(primal)
    assert np.isfinite(dual)
    assert dual <= primal + 1e-9 * (primal + problem.zero_primal())


def test_shapes_and_combinations_are_checked():
    for changes, message in (
        ({"X": None}, "exactly one of X and gram"),
        ({"gram": Gram.linear(X)}, "exactly one of X and gram"),
        ({"y": Y[:5]}, "y must have shape"),
        ({"sample_weight": np.ones(5)}, "sample_weight must have shape"),
        ({"feature_scale": np.ones(2)}, "feature_scale must have shape"),
        ({"penalty_weights": np.ones(3)}, "penalty_weights go with the 1-norm"),
        ({"regulariser": "l1", "feature_scale": np.ones(3)}, "feature_scale goes with"),
        ({"regulariser": "elastic"}, "regulariser must be"),
        ({"intercept": "fitted"}, "intercept must be"),
        ({"X": None, "gram": Gram.linear(X), "regulariser": "l1"}, "needs features"),
    ):
        with pytest.raises(ValueError, match=message):
            hinge_problem(**changes)


def test_a_norm_of_the_data_is_resolved_with_the_problem():
    loss = Loss.from_slack(Mahalanobis(lambda rows: np.eye(len(rows)) * 4))
    problem = hinge_problem(loss=loss)
    twice = hinge_problem(loss=Loss.from_slack(L2()))
    assert problem.zero_primal() == pytest.approx(2 * twice.zero_primal())
    kernel = hinge_problem(loss=loss, X=None, gram=Gram.rbf(X))
    assert kernel.zero_primal() == pytest.approx(2 * twice.zero_primal())


def test_zero_primal_counts_weights():
    w = np.array([1.0, 0.0, 2.0, 0.0, 0.5, 1.0])
    assert hinge_problem(sample_weight=w).zero_primal() == pytest.approx(9.0)
    top = hinge_problem(loss=Loss.from_slack(TopK(2)), sample_weight=w)
    assert top.zero_primal() == pytest.approx(4.0)
