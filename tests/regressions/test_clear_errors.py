"""Input that ended in a bare error, in a file nobody can load, or in waiting for ever."""

import os

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.feature_selection import RFE, SelectFromModel

from anynorm import SVC, LinearSVC, ModelFileError, load_model, save_model
from tests.estimators.plain import noisy_classes


def test_a_kernel_function_may_return_a_sparse_matrix():
    X, y = noisy_classes(n=40, p=4)
    model = SVC(kernel=lambda A, B: sp.csr_array(A @ B.T)).fit(X, y)
    plain = SVC(kernel="linear").fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("thing", [None, 3, "model", SVC, {"a": 1}], ids=repr)
def test_what_is_no_model_is_not_saved(thing, tmp_path):
    with pytest.raises(ModelFileError, match="model must be a fitted estimator or a path"):
        save_model(thing, tmp_path / "model.anynorm")
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in its files")
def test_a_pipe_is_no_model_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="no regular file"):
        load_model(tmp_path / "pipe")


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="this system has no /dev/zero")
def test_a_device_is_no_model_file():
    with pytest.raises(ModelFileError, match="no regular file"):
        load_model("/dev/zero")


@pytest.mark.parametrize("stored", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_linear_kernels_have_weights_of_features(stored, n_classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 5))
    y = np.argmax(X[:, :n_classes], axis=1)
    model = SVC(kernel="linear", tol=1e-8).fit(stored(X), y)
    assert model.coef_.shape == (1 if n_classes == 2 else 3, 5)
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(np.squeeze(scores), model.decision_function(stored(X)), atol=1e-9)
    if n_classes == 2:
        plain = LinearSVC(tol=1e-8).fit(X, y)
        np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)


def test_selection_by_weights_works_with_linear_kernels():
    X, y = noisy_classes(n=60, p=6)
    assert RFE(SVC(kernel="linear"), n_features_to_select=2).fit(X, y).support_.sum() == 2
    assert SelectFromModel(SVC(kernel="linear")).fit(X, y).get_support().any()


def test_other_kernels_have_none():
    X, y = noisy_classes(n=40, p=4)
    model = SVC().fit(X, y)
    assert not hasattr(model, "coef_")
    assert not hasattr(SVC(kernel="linear"), "coef_")
    with pytest.raises(AttributeError, match="linear kernels only; this model has kernel='rbf'"):
        _ = model.coef_
