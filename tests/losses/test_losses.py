"""Losses: values against their formulas, conjugates against numerical suprema."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from anynorm.losses import LOSSES, Loss, get_loss
from anynorm.norms import K12, L1, L2, LInf, Mahalanobis, SquaredL2, TopK
from tests.strategies import Chained, losses_for, mixing_matrix, vectors, weights_for

FORMULAS = {
    "hinge": lambda r: np.maximum(r, 0),
    "squared_hinge": lambda r: np.maximum(r, 0) ** 2,
    "absolute": np.abs,
    "squared": np.square,
    "logistic": lambda r: np.log1p(np.exp(-(1 - r))),
}


@pytest.mark.parametrize("name", FORMULAS)
def test_named_losses_are_their_formulas(name):
    r = np.array([-2.0, 0.0, 0.5, 3.0])
    w = np.array([1.0, 2.0, 0.0, 0.5])
    costs = FORMULAS[name](r)
    assert get_loss(name).value(r, 3.0) == pytest.approx(3 * costs.sum(), rel=1e-14)
    assert get_loss(name).value(r, 3.0, w) == pytest.approx(3 * (w * costs).sum(), rel=1e-14)


@pytest.mark.parametrize("far", [False, True])
def test_logistic_model_has_the_slope_of_the_loss_and_holds_far_where_it_is_wrong(far):
    r = np.append(np.linspace(-5.0, 40.0, 91), 2.0)
    cost = np.append(np.full(91, 3.0), 0.0)
    curve = get_loss("logistic").curve(cost)
    model = curve.model(r, far=far)
    np.testing.assert_allclose(model.bend * model.pull, curve.dual(r), rtol=1e-12, atol=1e-14)
    exact = model.bend == np.maximum(curve.curvature(r), 1e-15 * cost)
    assert exact[r <= 1.0].all()
    assert exact.all() == (not far)
    if far:
        wrong, d = np.flatnonzero((r > 1.0) & (cost > 0)), np.linspace(-60.0, 60.0, 241)[:, None]
        value = 3.0 * np.logaddexp(0.0, r[wrong] - 1.0) - curve.dual(r)[wrong] * d
        value = value + 0.5 * model.bend[wrong] * d**2
        assert (value >= 3.0 * np.logaddexp(0.0, r[wrong] - d - 1.0) - 1e-9).all()


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("weight", [0.5, 2.0])
def test_conjugates_are_suprema(name, weight):
    """g*(a) = sup_r a r - g(r) for one row, found by a line search over r."""
    C, w = 1.5, np.array([weight])
    signed = name in ("absolute", "squared")
    for a in (-0.3, 0.0, 0.2, 0.7):
        conjugate = get_loss(name).conjugate(np.array([a]), C, w)
        if a < 0 and not signed:
            assert conjugate == np.inf
            continue

        def fall(r, a=a):
            return C * weight * FORMULAS[name](np.array(r)) - a * r

        found = minimize_scalar(fall, bounds=(-60, 60), method="bounded", options={"xatol": 1e-10})
        assert conjugate == pytest.approx(-found.fun, abs=1e-6)


def test_conjugates_are_infinite_outside_the_ball():
    a = np.array([1.0, 0.5])
    for name in ("hinge", "absolute", "logistic"):
        loss = get_loss(name)
        assert np.isfinite(loss.conjugate(a, 1.0))
        assert loss.conjugate(a, 0.99) == np.inf
        assert loss.conjugate(a, 1.0, np.array([1.0, 0.4])) == np.inf
    assert Loss.from_slack(LInf()).conjugate(a, 1.4) == np.inf
    assert Loss.from_slack(LInf()).conjugate(a, 1.5) == 0.0
    assert Loss.from_slack(TopK(1.2)).conjugate(a, 1.2) == np.inf


def test_a_norm_that_is_not_monotone_allows_duals_below_a_feasible_one():
    """a is allowed when some e >= a has N*(e) <= C, though N*(a) itself may be larger."""
    norm = Mahalanobis(np.array([[1.0, 0.9], [0.9, 1.0]]))
    a = np.array([1.0, 0.0])
    least = norm.dual_value(np.array([1.0, 0.9]))
    assert least < norm.dual_value(a)
    assert Loss.from_slack(norm).conjugate(a, least * (1 + 1e-9)) == 0.0
    assert Loss.from_slack(norm).conjugate(a, least * (1 - 1e-9)) == np.inf
    assert Loss.from_slack(norm, "equality").conjugate(a, least * (1 + 1e-9)) == np.inf


def test_slacks_of_a_norm_that_is_not_monotone_may_exceed_the_residuals():
    norm = Mahalanobis(np.array([[1.0, -0.9], [-0.9, 1.0]]))
    r = np.array([1.0, -5.0])
    grid = min(norm.value([1.0, x]) for x in np.linspace(0, 2, 20001))
    assert Loss.from_slack(norm).value(r, 1.0) == pytest.approx(grid, rel=1e-6)
    assert grid < norm.value([1.0, 0.0])


@st.composite
def loss_case(draw):
    n = draw(st.integers(1, 6))
    loss = draw(losses_for(n))
    weighable = not isinstance(loss.slack, Mahalanobis | Chained) and hasattr(loss.slack, "weights")
    w = draw(weights_for(n)) if weighable and draw(st.booleans()) else None
    return loss, w, draw(vectors(n=n, scaled=False)), draw(vectors(n=n, scaled=False))


@given(loss_case(), st.sampled_from([0.1, 1.0, 20.0]))
@settings(max_examples=150, deadline=None)
def test_fenchel_young_for_every_loss(case, C):
    """a'r <= g(r) + g*(a) for every a that the loss allows."""
    loss, w, a, r = case
    a = loss.clip_dual(a, C, w)
    a = a * min(1.0, loss.largest_scale(a, C, w))
    conjugate = loss.conjugate(a, C, w)
    assert np.isfinite(conjugate)
    value = loss.value(r, C, w)
    assert a @ r <= value + conjugate + 1e-9 * (1 + value + abs(conjugate))


@given(loss_case())
@settings(max_examples=100, deadline=None)
def test_largest_scale_is_the_edge(case):
    loss, w, a, _ = case
    a = loss.clip_dual(a, 1.0, w)
    t = loss.largest_scale(a, 1.0, w)
    if np.isfinite(t):
        assert np.isfinite(loss.conjugate(t * a, 1.0, w))
        assert loss.conjugate(1.0001 * t * a, 1.0, w) == np.inf
    else:
        assert isinstance(loss.slack, SquaredL2) or not a.any()


def test_losses_are_found_by_name_or_by_slack():
    assert get_loss(LOSSES["hinge"]) is LOSSES["hinge"]
    assert Loss.from_slack("l1").name == "hinge"
    assert Loss.from_slack(SquaredL2(), "equality").name == "squared"
    assert Loss.from_slack(K12(2)).slack == K12(2)
    assert [loss.name for loss in LOSSES.values() if loss.smooth] == [
        "squared_hinge",
        "squared",
        "logistic",
    ]
    with pytest.raises(ValueError, match=r"absolute.*hinge.*logistic.*squared.*got 'huber'"):
        get_loss("huber")
    with pytest.raises(ValueError, match="constraints must be"):
        Loss.from_slack(L2(), "both")


def test_weights_with_a_norm_that_has_none_are_refused():
    with pytest.raises(ValueError, match="weighted form"):
        Loss.from_slack(Mahalanobis(mixing_matrix(2))).value([1.0, 1.0], 1.0, np.array([1.0, 2.0]))


def test_clipping_removes_signs_rows_and_the_excess_over_a_box():
    a = np.array([-1.0, 5.0, np.nan, np.inf])
    w = np.array([1.0, 0.5, 1.0, 1.0])
    assert get_loss("hinge").clip_dual(a, 2.0, w).tolist() == [0.0, 1.0, 0.0, 0.0]
    assert get_loss("absolute").clip_dual(a, 0.5).tolist() == [-0.5, 0.5, 0.0, 0.0]
    zero = np.array([1.0, 0.0, 1.0, 1.0])
    assert Loss.from_slack(L2(), "equality").clip_dual(a, 1.0, zero).tolist() == [-1.0, 0, 0, 0]
    assert L1(zero).dual_value(get_loss("logistic").clip_dual(a, 1.0, zero)) == 0.0


def test_the_largest_scale_that_is_allowed_is_taken_to_the_last_digit():
    loss, a = get_loss("logistic"), np.array([0.1, 0.2])
    assert loss.best_scale(a, 0.0, 2.0, 1.0) == 2.0
    # Beyond the best one it is a limit alone: each entropy is largest at a half.
    assert loss.best_scale(a[:1], 0.0, 10.0, 1.0) == pytest.approx(5.0, rel=1e-9)
    assert loss.best_scale(a[:1], 0.0, 7.0, 1.0, np.ones(1)) == pytest.approx(5.0, rel=1e-9)
