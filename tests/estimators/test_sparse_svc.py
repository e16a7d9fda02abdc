"""What SparseSVC promises: the optimum, exact zeros, penalty weights, all kinds of input."""

import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import get_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC as Liblinear

from anynorm import KernelDictionary, LinearSVC, PolynomialDictionary, SparseSVC
from anynorm.datasets import make_relevant, make_skin
from anynorm.losses import LOSSES
from tests.estimators.plain import noisy_classes, objective_of
from tests.estimators.test_errors import BAD_PARAMETERS, BAD_WEIGHTS, BAD_X, BAD_Y
from tests.estimators.test_input import CONVERTED, SHARED
from tests.estimators.test_input import X as MATRIX
from tests.estimators.test_input import Y as LABELS
from tests.references import least_one_norm

INTERCEPTS = {
    "free": {},
    "none": {"fit_intercept": False},
    "penalised": {"intercept_scaling": 1.5},
}


# The optimum


@pytest.mark.parametrize("C", [0.02, 1.0, 100.0])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_optimum_is_that_of_other_solvers(loss, intercept, C):
    X, y = noisy_classes(n=40, p=6, seed=2)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 3.0, size=40)
    weights[::7] = 0.0
    penalties = np.array([1.0, 0.0, 0.3, np.inf, 2.0, 1.0])
    model = SparseSVC(
        C=C, loss=loss, penalty_weights=penalties, tol=1e-9, **INTERCEPTS[intercept]
    ).fit(X, y, sample_weight=weights)
    kind = {"free": "free", "none": None, "penalised": 1.5}[intercept]
    value = least_one_norm(
        X, y, C=C, loss=loss, intercept=kind, weights=weights, penalties=penalties
    )
    assert model.certificate_.gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(value, rel=1e-6)
    objective = objective_of(model, X, y, weights)
    assert model.certificate_.primal == pytest.approx(objective, rel=1e-10)
    assert model.coef_[0, 3] == 0.0
    if intercept == "none":
        assert model.intercept_[0] == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "p"), [(25, 80), (80, 25)])
def test_either_shape_and_every_storage(n, p, loss):
    rng = np.random.default_rng(5)
    X = sp.random_array((n, p), density=0.3, random_state=rng, format="csr")
    y = np.where(rng.random(n) < 0.4, -1.0, 1.0)
    value = least_one_norm(X, y, C=3.0, loss=loss)
    for given in (X, X.tocsc(), X.toarray(), np.asfortranarray(X.toarray())):
        model = SparseSVC(C=3.0, loss=loss, tol=1e-8).fit(given, y)
        assert model.certificate_.gap <= 1e-8
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("C", [0.05, 1.0, 10.0])
def test_liblinear_has_the_same_squared_hinge_model(C):
    X, y = make_relevant(n_samples=80, n_features=30, n_relevant=4, random_state=0)
    peer = Liblinear(
        C=C, penalty="l1", dual=False, fit_intercept=False, tol=1e-10, max_iter=1_000_000
    ).fit(X, y)
    ours = SparseSVC(C=C, loss="squared_hinge", fit_intercept=False, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(ours.coef_ == 0, peer.coef_ == 0)


@pytest.mark.parametrize("loss", LOSSES)
def test_classes_are_fitted_one_against_the_rest(loss):
    X, y = noisy_classes(n=60, p=5, n_classes=4)
    model = SparseSVC(C=0.3, loss=loss, tol=1e-9).fit(X, y)
    assert model.coef_.shape == (4, 5)
    for k, part in enumerate(model.certificate_.per_class):
        assert part.primal == pytest.approx(least_one_norm(X, y == k, C=0.3, loss=loss), rel=1e-6)
        alone = SparseSVC(C=0.3, loss=loss, tol=1e-9).fit(X, y == k)
        np.testing.assert_array_equal(alone.coef_[0], model.coef_[k])
        assert alone.certificate_.primal == part.primal
    scores = X @ model.coef_.T + model.intercept_
    np.testing.assert_array_equal(model.predict(X), scores.argmax(axis=1))
    assert model.certificate_.primal == pytest.approx(objective_of(model, X, y))


# Zeros


@pytest.mark.parametrize("loss", LOSSES)
def test_features_that_do_not_help_are_exact_zeros(loss):
    X, y = make_relevant(n_relevant=3, distance=5.0, random_state=0)
    model = SparseSVC(C=0.1, loss=loss, tol=1e-8).fit(X, y)
    assert set(np.flatnonzero(model.coef_[0])) >= {0, 1, 2}
    assert np.count_nonzero(model.coef_) < 80
    assert set(np.argsort(-np.abs(model.coef_[0]))[:3]) == {0, 1, 2}
    sparsified = clone(model).fit(X, y).sparsify()
    assert sparsified.coef_.nnz == np.count_nonzero(model.coef_)
    np.testing.assert_allclose(sparsified.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_a_small_C_uses_no_feature(loss, intercept):
    X, y = noisy_classes(n=40, p=6, seed=2)
    model = SparseSVC(C=1e-4, loss=loss, **INTERCEPTS[intercept]).fit(X, y)
    assert not model.coef_.any()
    assert model.certificate_.gap <= 1e-4


def test_the_number_of_features_is_at_most_that_of_the_rows():
    """A vertex of the linear programme has no more; 20 rows, 500 features."""
    X, y = make_relevant(n_samples=20, n_features=500, n_relevant=3, random_state=0)
    for C in (0.1, 1.0, 100.0):
        model = SparseSVC(C=C, tol=1e-9).fit(X, y)
        assert np.count_nonzero(model.coef_) <= 20


@pytest.mark.parametrize("loss", LOSSES)
def test_select_from_model_keeps_the_features_that_are_used(loss):
    X, y = make_relevant(n_relevant=4, random_state=0)
    for labels in (y, np.digitize(X[:, 0], [-1.0, 1.0])):
        selector = SelectFromModel(SparseSVC(C=0.1, loss=loss)).fit(X, labels)
        used = np.abs(selector.estimator_.coef_).sum(axis=0) > 1e-5
        np.testing.assert_array_equal(selector.get_support(), used)
        assert 0 < used.sum() < 100
        np.testing.assert_array_equal(used, (selector.estimator_.coef_ != 0).any(axis=0))
    pipeline = make_pipeline(SelectFromModel(SparseSVC(C=0.1)), LinearSVC()).fit(X, y)
    assert pipeline[-1].n_features_in_ < 30
    assert pipeline.score(X, y) > 0.85


# Penalty weights


@pytest.mark.parametrize("loss", LOSSES)
def test_a_penalty_weight_is_a_change_of_units(loss):
    """u_j |w_j| is the plain penalty of u_j w_j, the coefficient of x_j / u_j."""
    X, y = make_relevant(n_samples=60, n_features=20, n_relevant=4, random_state=1)
    u = np.random.default_rng(0).uniform(0.2, 5.0, size=20)
    weighted = SparseSVC(C=0.5, loss=loss, penalty_weights=u, tol=1e-10).fit(X, y)
    scaled = SparseSVC(C=0.5, loss=loss, tol=1e-10).fit(X / u, y)
    assert weighted.certificate_.primal == pytest.approx(scaled.certificate_.primal, rel=1e-9)
    np.testing.assert_allclose(u * weighted.coef_, scaled.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_feature_of_infinite_weight_is_left_out(loss):
    X, y = make_relevant(n_samples=60, n_features=20, n_relevant=4, random_state=1)
    u = np.where(np.arange(20) % 3 == 0, np.inf, 1.0)
    weighted = SparseSVC(C=0.5, loss=loss, penalty_weights=u, tol=1e-10).fit(X, y)
    without = SparseSVC(C=0.5, loss=loss, tol=1e-10).fit(X[:, u == 1], y)
    assert not weighted.coef_[0, u > 1].any()
    np.testing.assert_allclose(weighted.coef_[:, u == 1], without.coef_, rtol=1e-5, atol=1e-6)
    none = SparseSVC(C=0.5, loss=loss, penalty_weights=np.full(20, np.inf)).fit(X, y)
    assert not none.coef_.any()
    assert none.certificate_.gap <= 1e-4


@pytest.mark.parametrize("loss", LOSSES)
def test_a_feature_of_weight_zero_is_never_penalised(loss):
    """At a small C it is the only one used, as in a fit of that feature alone."""
    X, y = make_relevant(n_samples=60, n_features=20, n_relevant=4, random_state=1)
    u = np.where(np.arange(20) == 7, 0.0, 1.0)
    model = SparseSVC(C=1e-3, loss=loss, penalty_weights=u, tol=1e-7).fit(X, y)
    assert np.flatnonzero(model.coef_[0]).tolist() == [7]
    alone = least_one_norm(X[:, [7]], y, C=1e-3, loss=loss, penalties=np.zeros(1))
    assert model.certificate_.primal == pytest.approx(alone, rel=1e-5)


def test_no_penalty_at_all_is_the_least_loss():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
    for loss in LOSSES:
        model = SparseSVC(loss=loss, penalty_weights=np.zeros(4), tol=1e-8).fit(X, y)
        value = least_one_norm(X, y, loss=loss, penalties=np.zeros(4))
        assert model.certificate_.primal == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("kind", [list, tuple, pd.Series, lambda u: np.array(u, dtype=np.float32)])
def test_penalty_weights_of_any_kind(kind):
    X, y = noisy_classes(n=40, p=4)
    u = [0.5, 2.0, 1.0, 0.25]
    one = SparseSVC(penalty_weights=kind(u)).fit(X, y)
    np.testing.assert_array_equal(one.coef_, SparseSVC(penalty_weights=np.array(u)).fit(X, y).coef_)


BAD_PENALTIES = {
    "too short": (np.ones(3), r"has shape \(3,\) but X has 4 columns; give one weight per column"),
    "too long": (np.ones(5), r"has shape \(5,\) but X has 4 columns"),
    "a number": (2.0, r"has shape \(\) but X has 4 columns"),
    "two dimensions": (np.ones((1, 4)), r"has shape \(1, 4\)"),
    "negative": ([1.0, 1.0, -0.5, 1.0], "must be at least 0; column 2 has -0.5"),
    "NaN": ([1.0, np.nan, 1.0, 1.0], "must be at least 0; column 1 has nan"),
    "minus infinity": ([-np.inf, 1.0, 1.0, 1.0], "must be at least 0; column 0 has -inf. 0 leaves"),
    "strings": (["a"] * 4, "must be a 1-D array of numbers, one per column of X"),
    "objects": ([None, "a", 1, 2], "must hold numbers"),
    "complex": (np.ones(4) + 1j, "must be a 1-D array of numbers"),
    "sparse": (sp.csr_array(np.ones((1, 4))), "must be a 1-D array of numbers"),
    "a name": ("l1", "must be a 1-D array of numbers"),
}


@pytest.mark.parametrize("case", BAD_PENALTIES)
def test_bad_penalty_weights_are_named(case):
    X, y = noisy_classes(n=20, p=4)
    given, message = BAD_PENALTIES[case]
    model = SparseSVC(penalty_weights=given)
    with pytest.raises(ValueError, match=f"^penalty_weights {message}"):
        model.fit(X, y)
    assert not hasattr(model, "coef_")


def test_a_bad_penalty_weight_is_named_by_its_column():
    X, y = noisy_classes(n=20, p=2)
    with pytest.raises(ValueError, match="column 'VIM' has -1"):
        SparseSVC(penalty_weights=[1, -1]).fit(pd.DataFrame(X, columns=["age", "VIM"]), y)


# Parameters and input


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, value, _ in BAD_PARAMETERS if name != "class_weight"],
)
def test_a_bad_parameter_is_named(name, value):
    X, y = noisy_classes(n=20, p=3)
    with pytest.raises(ValueError, match=rf"^{name} must be "):
        SparseSVC().set_params(**{name: value}).fit(X, y)


@pytest.mark.parametrize("case", BAD_X)
def test_bad_X_is_named(case):
    given, message, remedy = BAD_X[case]
    with pytest.raises(ValueError, match=message) as caught:
        SparseSVC().fit(given, noisy_classes(n=20, p=3)[1])
    assert remedy in str(caught.value)


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_y_is_named(case):
    given, message, remedy = BAD_Y[case]
    with pytest.raises(ValueError, match=message) as caught:
        SparseSVC().fit(noisy_classes(n=20, p=3)[0], given)
    assert remedy in str(caught.value)


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_are_named(case):
    X, y = noisy_classes(n=20, p=3)
    given, message, _ = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=f"^sample_weight .*{message}"):
        SparseSVC().fit(X, y, sample_weight=given)


@pytest.fixture(scope="module")
def values():
    return {loss: SparseSVC(C=0.7, loss=loss, tol=1e-9).fit(MATRIX, LABELS) for loss in LOSSES}


@pytest.mark.parametrize("kind", [*SHARED, *CONVERTED])
def test_every_kind_of_input_gives_the_same_optimum(kind, tmp_path, values):
    given = {**SHARED, **CONVERTED}[kind](tmp_path)
    for loss, reference in values.items():
        model = SparseSVC(C=0.7, loss=loss, tol=1e-9).fit(given, LABELS)
        assert model.certificate_.gap <= 1e-9
        assert model.certificate_.primal == pytest.approx(reference.certificate_.primal, rel=1e-8)
        assert model.coef_.dtype == np.float64
        scores = reference.decision_function(MATRIX)
        np.testing.assert_allclose(model.decision_function(given), scores, rtol=1e-3, atol=1e-4)


def test_frames_give_their_column_names():
    X, y = noisy_classes(n=40, p=3)
    model = SparseSVC().fit(pd.DataFrame(X, columns=["a", "b", "c"]), y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(model.fit(X, y), "feature_names_in_")


# Weights


@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 2: 0.5}])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_weights_equal_repetition(loss, intercept, class_weight):
    rng = np.random.default_rng(4)
    y = np.arange(40) % 3
    X = rng.normal(size=(40, 3)) + rng.normal(size=(3, 3))[y]
    times = rng.integers(0, 4, size=40)
    model = SparseSVC(
        C=0.8, loss=loss, class_weight=class_weight, tol=1e-11, **INTERCEPTS[intercept]
    )
    weighted = clone(model).fit(X, y, sample_weight=times)
    repeated = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(y, times))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-10)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, rtol=1e-5, atol=1e-6)


def test_weights_through_metadata_routing():
    X, y = make_relevant(n_samples=90, n_features=10, n_relevant=4, random_state=0)
    weights = np.random.default_rng(0).integers(0, 3, size=90).astype(float)
    with config_context(enable_metadata_routing=True):
        model = SparseSVC().set_fit_request(sample_weight=True)
        scaler = StandardScaler(with_mean=False).set_fit_request(sample_weight=False)
        weighed = get_scorer("accuracy").set_score_request(sample_weight=True)
        pipeline = make_pipeline(scaler, model)
        search = GridSearchCV(pipeline, {"sparsesvc__C": [0.5]}, cv=3, scoring=weighed)
        search.fit(X, y, sample_weight=weights)
    scaled = StandardScaler(with_mean=False).fit_transform(X)
    alone = SparseSVC(C=0.5).fit(scaled, y, sample_weight=weights)
    np.testing.assert_array_equal(search.best_estimator_[-1].coef_, alone.coef_)


# Among scikit-learn's tools


@pytest.mark.parametrize("sparsified", [False, True])
def test_a_stored_model_predicts_the_same_without_numba(sparsified, tmp_path):
    X, y = noisy_classes(n=60, p=4, n_classes=3)
    model = SparseSVC(warm_start=True, penalty_weights=[1.0, np.inf, 2.0, 0.0]).fit(X, y)
    if sparsified:
        model.sparsify()
    other = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X))
    assert other.certificate_ == model.certificate_
    other.fit(X, y)
    joblib.dump((model, X), tmp_path / "model")
    program = (
        "import sys, joblib; model, X = joblib.load(sys.argv[1]); print(model.predict(X).tolist());"
        "assert 'numba' not in sys.modules"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "model")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.strip() == str(model.predict(X).tolist())


def test_pipelines_searches_and_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SparseSVC())
    grid = {"sparsesvc__C": [0.02, 0.2], "sparsesvc__loss": list(LOSSES)}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, y)
    assert search.best_score_ > 0.96
    X, y = load_iris(return_X_y=True)
    search = GridSearchCV(SparseSVC(n_jobs=2), {"C": [0.1, 1.0]}, cv=3, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.9
    calibrated = CalibratedClassifierCV(SparseSVC(), cv=3).fit(X, y)
    np.testing.assert_allclose(calibrated.predict_proba(X).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("dictionary", "C"), [(PolynomialDictionary(), 0.1), (KernelDictionary(n_components=None), 1.0)]
)
def test_the_non_linear_machine_uses_few_basis_functions(dictionary, C):
    X, y = make_skin(200, n_noise=2, random_state=0)
    test, truth = make_skin(1000, n_noise=2, random_state=1)
    pipeline = make_pipeline(dictionary, SparseSVC(C=C)).fit(X, y)
    dense = make_pipeline(clone(dictionary), LinearSVC(C=C)).fit(X, y)
    assert pipeline.score(test, truth) > 0.85
    used, everything = (np.count_nonzero(fit[-1].coef_) for fit in (pipeline, dense))
    assert used < 0.5 * everything
    names = pipeline[0].get_feature_names_out()
    assert len(names[pipeline[-1].coef_[0] != 0]) == used
    if isinstance(dictionary, PolynomialDictionary):  # the squared radius tells the classes apart
        largest = names[np.argsort(-np.abs(pipeline[-1].coef_[0]))[:2]]
        assert set(largest) == {"x0^2", "x1^2"}


def test_bad_penalty_weights_leave_the_model_as_it_was():
    X, y = noisy_classes(n=60, p=4)
    model = SparseSVC().fit(X, y)
    before = dict(vars(model))
    model.set_params(penalty_weights=[1.0])
    with pytest.raises(ValueError, match="penalty_weights"):
        model.fit(X, y)
    assert vars(model) == before | {"penalty_weights": [1.0]}
