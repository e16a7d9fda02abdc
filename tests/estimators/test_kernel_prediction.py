"""Predictions of kernel classifiers: against the formula, in every storage and precision."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from anynorm import SVC
from anynorm.design import limits
from anynorm.kernels import sums as sums_module
from tests.estimators.plain import noisy_classes

KERNELS = {
    "linear": ({"kernel": "linear"}, lambda A, B: A @ B.T),
    "rbf": ({"kernel": "rbf", "gamma": 0.2}, lambda A, B: rbf_kernel(A, B, gamma=0.2)),
    "poly": (
        {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
        lambda A, B: polynomial_kernel(A, B, gamma=0.5, degree=2, coef0=1.0),
    ),
    "callable": ({"kernel": rbf_kernel}, rbf_kernel),
}
STORAGE = {"dense": np.asarray, "csr": sp.csr_array, "csc": sp.csc_array}
X, Y = noisy_classes(n=90, p=5, n_classes=3)
X_NEW = noisy_classes(n=40, p=5, seed=1)[0]


def formula(model, reference, new):
    rows = X[model.support_]
    return reference(new, rows) @ model.dual_coef_.T + model.intercept_


@pytest.mark.parametrize("stored", STORAGE)
@pytest.mark.parametrize("name", KERNELS)
def test_scores_are_the_formula_for_any_storage_of_either_side(name, stored):
    options, reference = KERNELS[name]
    model = SVC(**options).fit(STORAGE[stored](X), Y)
    expected = formula(model, reference, X_NEW)
    for kind in STORAGE.values():
        np.testing.assert_allclose(model.decision_function(kind(X_NEW)), expected, atol=1e-11)
    np.testing.assert_array_equal(model.predict(X_NEW), expected.argmax(axis=1))
    vectors = model.support_vectors_
    vectors = vectors.toarray() if sp.issparse(vectors) else vectors
    np.testing.assert_array_equal(vectors, X[model.support_])


@pytest.mark.parametrize(
    ("name", "offset"), [("linear", 0.0), ("rbf", 0.0), ("rbf", 50.0), ("poly", 0.0)]
)
def test_float32_is_kept_where_X_is_and_left_where_it_is_not(name, offset):
    options, reference = KERNELS[name]
    narrow = (X + offset).astype(np.float32)
    new = (X_NEW + offset).astype(np.float32)
    model = SVC(C=0.1, **options).fit(narrow, Y)
    assert model.support_vectors_.dtype == np.float32
    np.testing.assert_array_equal(model.support_vectors_, narrow[model.support_])
    rows = narrow[model.support_].astype(np.float64)
    expected = reference(new.astype(np.float64), rows) @ model.dual_coef_.T + model.intercept_
    np.testing.assert_allclose(model.decision_function(new), expected, atol=2e-3)
    wide = model.decision_function(new.astype(np.float64))
    np.testing.assert_allclose(wide, expected, atol=1e-9)
    if not offset:
        assert np.abs(model.decision_function(new) - expected).max() > 0


def test_float32_is_not_used_where_it_would_show():
    """Points far from each other compared to the kernel's width: float32 has no digits left."""
    narrow = (100 * X).astype(np.float32)
    model = SVC(C=1e4, gamma=0.2, tol=1e-2).fit(narrow, Y == 0)
    wide = SVC(C=1e4, gamma=0.2, tol=1e-2).fit(narrow.astype(np.float64), Y == 0)
    scores = model.decision_function(narrow)
    np.testing.assert_allclose(scores, wide.decision_function(narrow), rtol=1e-6)
    np.testing.assert_allclose(scores * (2 * (Y == 0) - 1), 1.0, rtol=1e-2)


@pytest.mark.parametrize("name", KERNELS)
def test_any_number_of_threads_and_any_blocks_give_the_same_scores(name, monkeypatch):
    model = SVC(**KERNELS[name][0]).fit(X, Y)
    whole = model.decision_function(X_NEW)
    monkeypatch.setattr(sums_module, "_ROWS_PER_TASK", 7)
    monkeypatch.setattr(sums_module, "_CACHED_COLUMNS", 5)
    monkeypatch.setattr(limits, "CACHED_BYTES", 256)
    monkeypatch.setattr(limits, "VALUES_AT_ONCE", 300)
    one = model.decision_function(X_NEW)
    np.testing.assert_allclose(one, whole, rtol=1e-12, atol=1e-12)
    for n_jobs in (2, 3, -1):
        np.testing.assert_array_equal(model.set_params(n_jobs=n_jobs).decision_function(X_NEW), one)


def test_models_travel_and_rows_can_be_scored_one_by_one():
    model = SVC(gamma=0.2).fit(X, Y)
    scores = model.decision_function(X_NEW)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X_NEW), scores)
    alone = np.vstack([model.decision_function(row[None]) for row in X_NEW])
    np.testing.assert_allclose(alone, scores, rtol=1e-11, atol=1e-11)


def test_attributes_are_as_scikit_learn_has_them():
    model = SVC(gamma=0.2).fit(X, Y)
    assert model.dual_coef_.shape == (3, len(model.support_))
    assert (np.diff(Y[model.support_]) >= 0).all()  # ordered by class
    np.testing.assert_array_equal(model.n_support_, np.bincount(Y[model.support_]))
    np.testing.assert_allclose(model.dual_coef_.sum(axis=1), 0, atol=1e-10)
    signs = np.where(Y[model.support_] == np.arange(3)[:, None], 1, -1)
    assert (model.dual_coef_ * signs >= 0).all()
    assert (np.abs(model.dual_coef_) <= 1 + 1e-12).all()


def test_the_side_of_a_constant_model_and_empty_batches():
    model = SVC(gamma=0.2).fit(X, Y == 0)
    assert model.decision_function(X_NEW).shape == (40,)
    far = np.full((2, 5), 1e6)
    np.testing.assert_allclose(model.decision_function(far), model.intercept_[0], atol=1e-12)
