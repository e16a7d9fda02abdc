"""Reweighted around estimators that know nothing of it."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.linear_model import (
    Lasso,
    LogisticRegression,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

from anynorm import LinearSVC, Reweighted, ReweightedSVC
from anynorm.datasets import make_relevant
from anynorm.losses import LOSSES

X, Y = make_relevant(n_samples=80, n_features=30, n_relevant=3, random_state=0)


def regression(n=60, p=12, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, p))
    return features, features[:, :3] @ [2.0, -1.0, 0.5] + 0.3 * rng.normal(size=n) + 1.5


@pytest.mark.parametrize("alpha", [1.0, 10.0, 40.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge_walks_to_the_lasso(alpha, fit_intercept):
    A, b = regression()
    lasso = Lasso(alpha=alpha / len(b), fit_intercept=fit_intercept, tol=1e-12, max_iter=10**6)
    lasso.fit(A, b)
    walked = Reweighted(Ridge(alpha=alpha, fit_intercept=fit_intercept), n_rounds=200).fit(A, b)
    np.testing.assert_allclose(walked.coef_, lasso.coef_, atol=2e-3)
    np.testing.assert_allclose(walked.intercept_, lasso.intercept_, atol=2e-3)
    assert np.array_equal(walked.coef_ == 0, lasso.coef_ == 0)


@pytest.mark.parametrize("C", [0.05, 1.0])
def test_the_squared_loss_is_the_walk_of_ridge(C):
    ours = ReweightedSVC(C=C, loss="squared", n_rounds=5, prune=False, tol=1e-12).fit(X, Y)
    peer = Reweighted(Ridge(alpha=1 / (2 * C)), n_rounds=5, prune=False)
    peer.fit(X, np.where(ours.classes_[1] == Y, 1.0, -1.0))
    np.testing.assert_allclose(ours.coef_[0], peer.coef_, rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(ours.intercept_[0], peer.intercept_, rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_around_our_own_solver_it_is_ReweightedSVC(loss, fit_intercept):
    options = {"C": 0.3, "loss": loss, "fit_intercept": fit_intercept, "tol": 1e-11}
    inside = ReweightedSVC(n_rounds=4, prune=False, **options).fit(X, Y)
    around = Reweighted(LinearSVC(**options), n_rounds=4, prune=False).fit(X, Y)
    for one, other in zip(inside.history_, around.history_, strict=True):
        np.testing.assert_allclose(one.coef, other.coef, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(inside.predict(X), around.predict(X))


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
def test_around_liblinear_it_is_ReweightedSVC():
    options = {"C": 0.3, "loss": "hinge", "fit_intercept": False}
    peer = Liblinear(tol=1e-8, max_iter=200_000, random_state=0, **options)
    around = Reweighted(peer, n_rounds=3, prune=False).fit(X, Y)
    inside = ReweightedSVC(n_rounds=3, prune=False, tol=1e-9, **options).fit(X, Y)
    np.testing.assert_allclose(around.coef_, inside.coef_, rtol=1e-2, atol=1e-3)


ESTIMATORS = [
    Liblinear(random_state=0),
    LogisticRegression(),
    RidgeClassifier(),
    SGDClassifier(random_state=0),
    SVC(kernel="linear"),
]


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_coefficients_are_in_the_units_of_X(estimator, kind):
    if isinstance(estimator, SVC) and kind is not np.asarray:
        pytest.skip("scikit-learn's sparse SVC has a sparse coef_ of its own kind")
    model = Reweighted(estimator, n_rounds=4).fit(kind(X), Y)
    assert model.coef_.shape == np.shape(estimator.fit(X, Y).coef_)
    assert len(model.history_) == 4
    coef = model.coef_.ravel()
    scores = X @ coef + model.intercept_
    np.testing.assert_allclose(model.decision_function(kind(X)), scores, rtol=1e-6, atol=1e-8)
    labels = model.classes_[(scores > 0).astype(int)]
    np.testing.assert_array_equal(model.predict(kind(X)), labels)
    assert model.score(X, Y) == pytest.approx(np.mean(labels == Y))
    assert is_classifier(model)
    assert np.abs(coef[:3]).min() > np.median(np.abs(coef))


def test_probabilities_are_the_estimators():
    model = Reweighted(LogisticRegression(), n_rounds=3).fit(X, Y)
    scores = X @ model.coef_[0] + model.intercept_
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], 1 / (1 + np.exp(-scores)))
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    assert not hasattr(Reweighted(Ridge()), "predict_proba")
    assert not hasattr(Reweighted(RidgeClassifier()).fit(X, Y), "predict_proba")


def test_pruned_features_are_zeros_and_stay_out():
    model = Reweighted(LogisticRegression(C=0.1), n_rounds=10).fit(X, Y)
    counts = [record.n_nonzero for record in model.history_]
    assert counts[0] == 30
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] < 30
    np.testing.assert_array_equal(model.weights_ == 0, model.coef_[0] == 0)
    whole = Reweighted(LogisticRegression(C=0.1), n_rounds=10, prune=False).fit(X, Y)
    assert np.count_nonzero(whole.coef_) == 30
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-2)


def test_one_round_is_the_estimator_alone():
    model = Reweighted(LogisticRegression(), n_rounds=1).fit(X, Y)
    alone = LogisticRegression().fit(X, Y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def test_float32_stays_float32():
    seen = []

    class Spy(LogisticRegression):
        def fit(self, X, y):
            seen.append(X.dtype)
            return super().fit(X, y)

    Reweighted(Spy(), n_rounds=2).fit(X.astype(np.float32), Y)
    assert seen == [np.float32, np.float32]


def test_X_is_left_alone():
    for given in (X.copy(), sp.csr_array(X), sp.csc_array(X)):
        before = given.copy()
        Reweighted(LogisticRegression()).fit(given, Y)
        difference = given - before
        assert abs(difference).max() == 0


def test_regressors():
    A, b = regression()
    model = Reweighted(Ridge(alpha=5.0)).fit(A, b)
    assert is_regressor(model)
    assert model.coef_.shape == (12,)
    np.testing.assert_allclose(model.predict(A), A @ model.coef_ + model.intercept_)
    assert model.score(A, b) > 0.9


# Metadata


def test_weights_are_handed_over():
    weights = np.arange(80) % 3
    model = Reweighted(LogisticRegression(tol=1e-10)).fit(X, Y, sample_weight=weights)
    other = Reweighted(LogisticRegression(tol=1e-10))
    other.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-6)


def test_weights_are_routed():
    weights = np.arange(80) % 3
    with sklearn.config_context(enable_metadata_routing=True):
        inner = LogisticRegression().set_fit_request(sample_weight=True)
        inner.set_score_request(sample_weight=True)
        model = Reweighted(inner).fit(X, Y, sample_weight=weights)
        score = model.score(X, Y, sample_weight=weights)
        refused = Reweighted(LogisticRegression())
        with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError):
            refused.fit(X, Y, sample_weight=weights)
    plain = Reweighted(LogisticRegression()).fit(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert score == pytest.approx(np.average(plain.predict(X) == Y, weights=weights))


def test_clones_names_and_pipelines():
    model = Reweighted(LogisticRegression(C=3.0), n_rounds=2)
    assert clone(model).get_params()["estimator__C"] == 3.0
    frame = pd.DataFrame(X, columns=[f"gene{j}" for j in range(30)])
    fitted = model.fit(frame, Y)
    assert fitted.feature_names_in_.tolist() == frame.columns.tolist()
    np.testing.assert_array_equal(fitted.predict(frame), Y.dtype.type(1) * fitted.predict(frame))
    assert not hasattr(fitted.fit(X, Y), "feature_names_in_")
    pipeline = make_pipeline(StandardScaler(), Reweighted(LogisticRegression()))
    assert cross_val_score(pipeline, X, Y).mean() > 0.7


# Errors


def test_several_classes_name_OneVsRestClassifier():
    A, b = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="OneVsRestClassifier"):
        Reweighted(LogisticRegression()).fit(A, b)
    model = OneVsRestClassifier(Reweighted(LogisticRegression())).fit(A, b)
    assert model.score(A, b) > 0.9


class TwoRows(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.coef_ = np.ones((2, X.shape[1]))
        return self


def test_several_rows_of_coefficients_name_OneVsRestClassifier():
    with pytest.raises(ValueError, match=r"shape \(2, 30\).*OneVsRestClassifier"):
        Reweighted(TwoRows()).fit(X, Y)
    A, b = regression()
    with pytest.raises(ValueError, match="MultiOutputRegressor"):
        Reweighted(Ridge()).fit(A, np.column_stack([b, b]))


def test_an_estimator_without_coefficients_is_named():
    with pytest.raises(ValueError, match="KNeighborsClassifier has no coef_"):
        Reweighted(KNeighborsClassifier()).fit(X, Y)


@pytest.mark.parametrize("estimator", [None, 3, LogisticRegression])
def test_no_estimator(estimator):
    with pytest.raises(ValueError, match=r"^estimator must be an estimator"):
        Reweighted(estimator).fit(X, Y)


@pytest.mark.parametrize("n_rounds", [0, 1.5, None])
def test_bad_rounds(n_rounds):
    with pytest.raises(ValueError, match=r"^n_rounds must be"):
        Reweighted(Ridge(), n_rounds=n_rounds).fit(X, Y)


def test_all_coefficients_zero():
    A = np.zeros((10, 3))
    model = Reweighted(Ridge(), n_rounds=3).fit(A, np.arange(10.0))
    np.testing.assert_array_equal(model.coef_, 0.0)
    np.testing.assert_allclose(model.predict(A), 4.5)


def test_the_certificate_of_the_last_round_and_the_number_of_rounds():
    model = Reweighted(LinearSVC(C=0.1), n_rounds=4).fit(X, Y)
    assert model.n_iter_ == len(model.history_) == 4
    assert model.certificate_ == model.estimator_.certificate_
    assert not hasattr(Reweighted(Ridge()).fit(X, Y), "certificate_")
