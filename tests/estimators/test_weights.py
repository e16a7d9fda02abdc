"""A row of weight k is that row k times; a row of weight 0 is not there."""

import numpy as np
import pytest
from sklearn.svm import SVC
from sklearn.utils.class_weight import compute_class_weight

from anynorm import LinearSVC
from anynorm.losses import LOSSES
from tests.estimators.plain import noisy_classes, objective_of

INTERCEPTS = {
    "free": {},
    "none": {"fit_intercept": False},
    "penalised": {"intercept_scaling": 1.5},
}


def assert_same(one, other, rtol=1e-7, atol=1e-8):
    np.testing.assert_array_equal(one.classes_, other.classes_)
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=rtol, atol=atol)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=atol)


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 2: 0.5}])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_equal_repetition(loss, intercept, class_weight):
    X, y = noisy_classes(n=40, p=3, n_classes=3, seed=4)
    times = np.random.default_rng(1).integers(0, 4, size=len(y))
    model = LinearSVC(loss=loss, class_weight=class_weight, tol=1e-12, **INTERCEPTS[intercept])
    repeated = LinearSVC(**model.get_params()).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    weighted = model.fit(X, y, sample_weight=times)
    assert_same(weighted, repeated)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_times_C_is_C_times_weights(loss):
    X, y = noisy_classes(n=40, p=3, seed=4)
    one = LinearSVC(C=3.0, loss=loss, tol=1e-12).fit(X, y)
    assert_same(LinearSVC(loss=loss, tol=1e-12).fit(X, y, sample_weight=3.0), one)
    assert_same(LinearSVC(loss=loss, tol=1e-12).fit(X, y, sample_weight=np.full(40, 3)), one)
    assert_same(LinearSVC(loss=loss, tol=1e-12, class_weight={0: 3, 1: 3}).fit(X, y), one)


def test_fractional_weights_against_libsvm():
    X, y = noisy_classes(n=60, p=4, seed=5)
    weights = np.random.default_rng(2).exponential(size=60)
    peer = SVC(kernel="linear", tol=1e-9).fit(X, y, sample_weight=weights)
    ours = LinearSVC(tol=1e-11).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, object])
def test_weights_of_any_real_dtype(dtype):
    X, y = noisy_classes(n=40, p=3, seed=4)
    weights = (np.arange(40) % 2).astype(dtype)
    model = LinearSVC(tol=1e-12).fit(X, y, sample_weight=weights)
    assert_same(model, LinearSVC(tol=1e-12).fit(X[1::2], y[1::2]))


def test_weights_are_left_alone():
    X, y = noisy_classes(n=40, p=3)
    weights = np.arange(40.0)
    weights.flags.writeable = False
    LinearSVC(class_weight="balanced").fit(X, y, sample_weight=weights)
    np.testing.assert_array_equal(weights, np.arange(40.0))


def test_balanced_weights_are_those_of_scikit_learn_without_sample_weight():
    X, y = noisy_classes(n=50, p=3, n_classes=3, seed=6)
    factors = compute_class_weight("balanced", classes=np.unique(y), y=y)
    balanced = LinearSVC(class_weight="balanced", tol=1e-12).fit(X, y)
    by_hand = LinearSVC(class_weight=dict(enumerate(factors)), tol=1e-12).fit(X, y)
    assert_same(balanced, by_hand)
    by_rows = LinearSVC(tol=1e-12).fit(X, y, sample_weight=factors[y])
    assert_same(balanced, by_rows)


def test_balanced_classes_have_equal_total_weight():
    X, y = noisy_classes(n=50, p=3, seed=6)
    weights = np.random.default_rng(3).uniform(0.1, 2.0, size=50)
    totals = np.bincount(y, weights)
    by_hand = weights * (totals.sum() / (2 * totals))[y]
    balanced = LinearSVC(class_weight="balanced", tol=1e-12).fit(X, y, sample_weight=weights)
    assert_same(balanced, LinearSVC(tol=1e-12).fit(X, y, sample_weight=by_hand))
    assert objective_of(balanced, X, y, by_hand) == pytest.approx(balanced.certificate_.primal)


@pytest.mark.parametrize("how", ["sample_weight", "class_weight"])
def test_a_class_without_weight_is_not_there(how):
    X, y = noisy_classes(n=60, p=3, n_classes=3, seed=7)
    if how == "sample_weight":
        model = LinearSVC(tol=1e-12).fit(X, y, sample_weight=(y != 1).astype(float))
    else:
        model = LinearSVC(tol=1e-12, class_weight={1: 0.0}).fit(X, y)
    assert model.classes_.tolist() == [0, 2]
    assert model.coef_.shape == (1, 3)
    assert_same(model, LinearSVC(tol=1e-12).fit(X[y != 1], y[y != 1]))


def test_balanced_does_not_count_a_class_without_weight():
    X, y = noisy_classes(n=60, p=3, n_classes=3, seed=7)
    model = LinearSVC(class_weight="balanced", tol=1e-12)
    one = model.fit(X, y, sample_weight=(y != 1).astype(float))
    other = LinearSVC(class_weight="balanced", tol=1e-12).fit(X[y != 1], y[y != 1])
    assert_same(one, other)


def test_a_class_weight_may_name_a_class_emptied_by_sample_weight():
    X, y = noisy_classes(n=60, p=3, n_classes=3, seed=7)
    model = LinearSVC(class_weight={0: 2.0, 1: 5.0}, tol=1e-12)
    one = model.fit(X, y, sample_weight=(y != 1).astype(float))
    other = LinearSVC(class_weight={0: 2.0}, tol=1e-12).fit(X[y != 1], y[y != 1])
    assert_same(one, other)


def test_class_weights_by_string_labels():
    X, y = noisy_classes(n=40, p=3, seed=8)
    names = np.array(["no", "yes"])[y]
    one = LinearSVC(class_weight={"yes": 4.0}, tol=1e-12).fit(X, names)
    other = LinearSVC(class_weight={1: 4.0}, tol=1e-12).fit(X, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
