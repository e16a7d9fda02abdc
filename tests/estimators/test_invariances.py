"""Changes of the data whose effect on the optimum is known, on small data full of ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from anynorm import LinearSVC
from anynorm.losses import LOSSES
from tests.estimators.plain import objective_of

few = settings(max_examples=15, deadline=None)


@st.composite
def problems(draw):
    """Rows of small whole numbers, with duplicates, zero columns and any balance of labels."""
    n, p = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    X = draw(arrays(np.int64, (n, p), elements=st.integers(-2, 2))).astype(np.float64)
    y = np.array([0, 1, *draw(st.lists(st.integers(0, 1), min_size=n - 2, max_size=n - 2))])
    C = draw(st.sampled_from([0.03, 0.7, 20.0]))
    intercept = draw(st.sampled_from([{}, {"fit_intercept": False}, {"intercept_scaling": 2.0}]))
    return X, y, {"C": C, **intercept}


def fit(X, y, **parameters):
    model = LinearSVC(tol=1e-10, **parameters).fit(X, y)
    assert model.certificate_.gap <= 1e-10
    assert model.certificate_.primal == pytest.approx(objective_of(model, X, y), rel=1e-9, abs=1e-9)
    return model


def assert_same_optimum(one, other, coef=1.0, value=1.0):
    """`one` has the coefficients of `other` times `coef`, and its objective times `value`."""
    np.testing.assert_allclose(one.coef_, coef * other.coef_, atol=3e-5, rtol=3e-5)
    assert one.certificate_.primal == pytest.approx(value * other.certificate_.primal, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@few
@given(problem=problems())
def test_other_names_for_the_classes_turn_the_signs(loss, problem):
    X, y, parameters = problem
    one = fit(X, y, loss=loss, **parameters)
    other = fit(X, 1 - y, loss=loss, **parameters)
    assert_same_optimum(one, other, coef=-1.0)
    np.testing.assert_allclose(one.intercept_, -other.intercept_, atol=3e-5, rtol=3e-5)


@pytest.mark.parametrize("loss", LOSSES)
@few
@given(problem=problems(), data=st.data())
def test_the_order_of_rows_and_columns_does_not_matter(loss, problem, data):
    X, y, parameters = problem
    rows = data.draw(st.permutations(range(X.shape[0])))
    columns = data.draw(st.permutations(range(X.shape[1])))
    one = fit(X, y, loss=loss, **parameters)
    other = fit(X[rows][:, columns], y[rows], loss=loss, **parameters)
    one.coef_ = one.coef_[:, columns]
    assert_same_optimum(one, other)


@pytest.mark.parametrize("loss", LOSSES)
@few
@given(problem=problems(), scale=st.sampled_from([1e-3, 0.3, 50.0]))
def test_other_units_change_C_by_their_square(loss, problem, scale):
    """w -> w / s and C -> C / s^2 when X -> s X."""
    X, y, parameters = problem
    one = fit(X, y, loss=loss, **parameters)
    changed = parameters | {"C": parameters["C"] / scale**2}
    if "intercept_scaling" in changed:
        changed["intercept_scaling"] *= scale
    other = fit(scale * X, y, loss=loss, **changed)
    assert_same_optimum(one, other, coef=scale, value=scale**2)


@pytest.mark.parametrize("loss", LOSSES)
@few
@given(problem=problems(), shift=st.sampled_from([-3.0, 0.1, 100.0]))
def test_a_free_intercept_takes_up_a_shift(loss, problem, shift):
    X, y, parameters = problem
    one = fit(X, y, loss=loss, C=parameters["C"])
    other = fit(X + shift, y, loss=loss, C=parameters["C"])
    assert_same_optimum(one, other)


@pytest.mark.parametrize("loss", LOSSES)
@few
@given(problem=problems())
def test_a_row_twice_is_a_row_of_weight_two(loss, problem):
    X, y, parameters = problem
    one = fit(np.vstack([X, X[:1]]), np.append(y, y[0]), loss=loss, **parameters)
    weights = np.ones(len(y))
    weights[0] = 2.0
    other = LinearSVC(tol=1e-10, loss=loss, **parameters).fit(X, y, sample_weight=weights)
    assert_same_optimum(one, other)
    np.testing.assert_allclose(one.intercept_, other.intercept_, atol=3e-5, rtol=3e-5)
