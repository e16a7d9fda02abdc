"""The estimator among scikit-learn's tools: parameters, pickles, pipelines, searches."""

import inspect
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.ensemble import BaggingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import permutation_importance
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from anynorm import LinearSVC, SparseSVC
from anynorm.losses import LOSSES
from tests.estimators.plain import noisy_classes

DEFAULTS = {
    "C": 1.0,
    "loss": "hinge",
    "fit_intercept": True,
    "intercept_scaling": None,
    "class_weight": None,
    "tol": 1e-4,
    "max_iter": 10_000,
    "time_limit": None,
    "warm_start": False,
    "n_jobs": None,
    "random_state": None,
    "verbose": 0,
}


@pytest.mark.parametrize(
    ("Model", "more"), [(LinearSVC, []), (SparseSVC, ["penalty_weights"])], ids=str
)
def test_signature(Model, more):
    names = [*list(DEFAULTS)[:2], *more, *list(DEFAULTS)[2:]]
    defaults = DEFAULTS | dict.fromkeys(more)
    parameters = list(inspect.signature(Model).parameters.values())
    assert {p.name: p.default for p in parameters} == defaults
    assert [p.name for p in parameters] == names
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters if p.name != "C")
    assert Model(3.0).C == 3.0
    assert Model().get_params() == defaults


def test_parameters_survive_clone_and_set_params():
    other = {
        "C": 2,
        "loss": "absolute",
        "fit_intercept": False,
        "intercept_scaling": 1.0,
        "class_weight": {0: 2.0},
        "tol": 1e-3,
        "max_iter": 5,
        "time_limit": 3.0,
        "warm_start": True,
        "n_jobs": 2,
        "random_state": 4,
        "verbose": 1,
    }
    assert clone(LinearSVC(**other)).get_params() == other
    assert LinearSVC().set_params(**other).get_params() == other
    assert repr(LinearSVC(C=2, loss="absolute")) == "LinearSVC(C=2, loss='absolute')"


def test_tags():
    tags = get_tags(LinearSVC())
    assert is_classifier(LinearSVC())
    assert tags.input_tags.sparse
    assert tags.classifier_tags.multi_class
    assert not tags.input_tags.allow_nan
    assert tags.target_tags.required


@pytest.mark.parametrize("store", ["pickle", "joblib"])
@pytest.mark.parametrize("sparsified", [False, True])
def test_a_stored_model_predicts_the_same(store, sparsified, tmp_path):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    model = LinearSVC(warm_start=True).fit(X, y)
    if sparsified:
        model.sparsify()
    if store == "pickle":
        other = pickle.loads(pickle.dumps(model))
    else:
        joblib.dump(model, tmp_path / "model")
        other = joblib.load(tmp_path / "model", mmap_mode="r")
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
    assert other.certificate_ == model.certificate_
    assert other.certificate_.status is model.certificate_.status
    other.fit(X, y)


def test_pipeline_and_grid_search():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LinearSVC())
    grid = {
        "linearsvc__C": [0.01, 1.0],
        "linearsvc__loss": list(LOSSES),
        "linearsvc__fit_intercept": [True, False],
    }
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.96
    assert search.best_estimator_[-1].certificate_.gap <= 1e-4


def test_search_in_other_processes():
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(LinearSVC(n_jobs=2), {"C": [0.1, 1.0]}, cv=3, n_jobs=2)
    assert search.fit(X, y).best_score_ > 0.9


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_by_calibration(method):
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifierCV(LinearSVC(), method=method, cv=3).fit(X, y)
    probability = model.predict_proba(X)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)
    assert model.score(X, y) > 0.9


def test_text_in_a_pipeline():
    texts = ["a good film", "a bad film", "good good", "bad bad", "very good", "very bad"]
    labels = ["up", "down"] * 3
    pipeline = make_pipeline(TfidfVectorizer(), LinearSVC(C=10.0)).fit(texts, labels)
    assert pipeline.predict(["so good", "so bad"]).tolist() == ["up", "down"]


def test_other_tools():
    X, y = load_iris(return_X_y=True)
    assert OneVsOneClassifier(LinearSVC()).fit(X, y).score(X, y) > 0.95
    assert (
        BaggingClassifier(LinearSVC(), n_estimators=3, random_state=0).fit(X, y).score(X, y) > 0.9
    )
    assert RFE(LinearSVC(), n_features_to_select=2).fit(X, y).support_.sum() == 2
    assert SelectFromModel(LinearSVC(), max_features=1).fit(X, y).get_support().sum() == 1
    model = LinearSVC().fit(X, y)
    importances = permutation_importance(model, X, y, n_repeats=2, random_state=0).importances_mean
    assert importances.argmax() in (2, 3)  # the petals


def test_weights_through_metadata_routing():
    X, y = noisy_classes(n=90, p=4, seed=9)
    weights = np.random.default_rng(0).integers(0, 3, size=90).astype(float)
    with config_context(enable_metadata_routing=True):
        model = LinearSVC(tol=1e-10).set_fit_request(sample_weight=True)
        model.set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler(with_mean=False).set_fit_request(), model)
        pipeline[0].set_fit_request(sample_weight=False)
        weighed = get_scorer("accuracy").set_score_request(sample_weight=True)
        search = GridSearchCV(pipeline, {"linearsvc__C": [0.5]}, cv=3, scoring=weighed)
        search.fit(X, y, sample_weight=weights)
        scores = cross_val_score(model, X, y, params={"sample_weight": weights}, cv=3)
    scaled = StandardScaler(with_mean=False).fit_transform(X)
    alone = LinearSVC(C=0.5, tol=1e-10).fit(scaled, y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_[-1].coef_, alone.coef_)
    assert scores.shape == (3,)


def test_predictions_do_not_need_numba(tmp_path):
    """Whoever only loads a model and predicts does not wait for a compiler."""
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    joblib.dump((LinearSVC().fit(X, y), X), tmp_path / "model")
    program = (
        "import sys, joblib; model, X = joblib.load(sys.argv[1]); print(model.predict(X).tolist());"
        "assert 'numba' not in sys.modules"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(LinearSVC().fit(X, y).predict(X).tolist())
