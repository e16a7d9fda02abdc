"""What prepares X is learnt inside the folds: against scikit-learn's pipelines, fold by fold."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.svm import SVC as Libsvm

from anynorm import (
    SVCCV,
    ConstrainedLassoCV,
    Reweighted,
    ReweightedSVC,
    ReweightedSVCCV,
    SparseSVCCV,
    sparse_svm_path,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 8)) * np.geomspace(0.1, 100.0, 8)
Y = np.where(X[:, 0] / 0.1 + X[:, 7] / 100 + 0.5 * RNG.normal(size=60) > 0, "ill", "well")
X[3] *= 30.0  # an outlier: who scales with it has seen the fold that holds it out
FOLDS = list(StratifiedKFold(3, shuffle=True, random_state=1).split(X, Y))
SEARCHES = [
    SparseSVCCV(cv=FOLDS, preprocessor=StandardScaler()),
    ReweightedSVCCV([0.1, 1.0], max_rounds=2, cv=FOLDS, preprocessor=StandardScaler()),
    SVCCV([1.0], gammas=[0.1], cv=FOLDS, preprocessor=StandardScaler()),
]


def test_scaling_inside_the_folds_is_scikit_learns_pipeline_and_outside_is_not():
    setting = {"C": 10.0, "gamma": 0.1}
    inside = SVCCV([10.0], gammas=[0.1], cv=FOLDS, preprocessor=MinMaxScaler()).fit(X, Y)
    reference = cross_val_score(make_pipeline(MinMaxScaler(), Libsvm(**setting)), X, Y, cv=FOLDS)
    scores = [inside.cv_results_[f"split{k}_test_score"][0] for k in range(3)]
    np.testing.assert_allclose(scores, reference)
    outside = make_pipeline(MinMaxScaler(), SVCCV([10.0], gammas=[0.1], cv=FOLDS)).fit(X, Y)
    leaky = cross_val_score(Libsvm(**setting), MinMaxScaler().fit_transform(X), Y, cv=FOLDS)
    np.testing.assert_allclose(outside[-1].best_score_, leaky.mean())
    differences = np.abs(reference - leaky)
    with_outlier = [3 in test for _, test in FOLDS]
    assert (differences > 0.1).tolist() == with_outlier


def test_features_chosen_outside_of_the_folds_make_noise_look_predictable():
    noise, labels = RNG.normal(size=(60, 1000)), np.repeat([0, 1], 30)
    chosen = SelectKBest(k=15).fit_transform(noise, labels)
    assert SparseSVCCV().fit(chosen, labels).best_score_ > 0.85
    assert SparseSVCCV(preprocessor=SelectKBest(k=15)).fit(noise, labels).best_score_ < 0.7


def test_held_out_scores_are_those_of_paths_on_rows_scaled_by_their_fold():
    model = SparseSVCCV(cv=FOLDS, preprocessor=StandardScaler()).fit(X, Y)
    for train, test in FOLDS:
        scaler = StandardScaler().fit(X[train])
        path = sparse_svm_path(scaler.transform(X[train]), Y[train])
        expected = path.decision_function(scaler.transform(X[test]), s=model.s_)
        np.testing.assert_allclose(model.oof_decision_function_[test], expected, atol=1e-8)


def test_walks_are_made_of_rows_scaled_by_their_fold():
    model = ReweightedSVCCV([1.0], max_rounds=1, cv=FOLDS, preprocessor=StandardScaler(), tol=1e-8)
    model.fit(X, Y)
    for train, test in FOLDS:
        one = make_pipeline(StandardScaler(), ReweightedSVC(n_rounds=1, tol=1e-8))
        expected = one.fit(X[train], Y[train]).decision_function(X[test])
        np.testing.assert_allclose(model.oof_decision_function_[test], expected, atol=1e-3)


def test_the_radius_is_judged_on_rows_scaled_by_their_fold():
    y = X @ np.r_[30.0, np.zeros(6), 0.05]
    model = ConstrainedLassoCV(cv=FOLDS, preprocessor=StandardScaler()).fit(X, y)
    errors = []
    for train, test in FOLDS:
        scaler = StandardScaler().fit(X[train])
        path = ConstrainedLassoCV().path(scaler.transform(X[train]), y[train])
        found = path.predict(scaler.transform(X[test]), np.array([model.radius_]))[:, 0]
        errors.append(np.mean((y[test] - found) ** 2))
    np.testing.assert_allclose(-model.best_score_, np.mean(errors), rtol=1e-6)
    np.testing.assert_allclose(
        model.predict(X), StandardScaler().fit_transform(X) @ model.coef_ + model.intercept_
    )


@pytest.mark.parametrize("search", SEARCHES, ids=lambda model: type(model).__name__)
def test_predictions_begin_with_the_scaler_of_all_rows(search):
    model = clone(search).fit(X, Y)
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_allclose(model.preprocessor_.transform(X), scaled)
    assert model.n_features_in_ == 8
    without = clone(model).fit(X, Y)
    without.preprocessor_ = FunctionTransformer()
    np.testing.assert_array_equal(model.decision_function(X), without.decision_function(scaled))
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()
    assert model.score(X, Y) > 0.8


def test_no_preprocessor_is_the_same_as_one_that_does_nothing():
    plain = SparseSVCCV(cv=FOLDS).fit(X, Y)
    same = SparseSVCCV(cv=FOLDS, preprocessor=FunctionTransformer()).fit(X, Y)
    np.testing.assert_array_equal(plain.coef_, same.coef_)
    np.testing.assert_array_equal(plain.oof_decision_function_, same.oof_decision_function_)
    assert not hasattr(plain, "preprocessor_")


def test_sparse_rows_stay_sparse():
    class Seen(MaxAbsScaler):
        def transform(self, X):
            assert sp.issparse(X)
            return super().transform(X)

    rows = sp.csc_array(np.where(np.abs(X) > 0.05, X, 0.0))
    model = SparseSVCCV(cv=FOLDS, preprocessor=Seen()).fit(rows, Y)
    dense = SparseSVCCV(cv=FOLDS, preprocessor=MaxAbsScaler()).fit(rows.toarray(), Y)
    np.testing.assert_allclose(
        model.decision_function(rows), dense.decision_function(rows.toarray()), atol=1e-6
    )
    with pytest.raises(ValueError, match="sparse"):
        SparseSVCCV(preprocessor=StandardScaler()).fit(rows, Y)


def test_frames_of_text_and_gaps_are_what_the_preprocessor_takes():
    frame = pd.DataFrame({"size": X[:, 0], "site": np.array(["a", "b", "c"])[np.arange(60) % 3]})
    frame.loc[59, "site"] = "rare"  # in one fold's test rows: no column for it there
    columns = make_column_transformer(
        (StandardScaler(), ["size"]), (OneHotEncoder(handle_unknown="ignore"), ["site"])
    )
    penalties = np.r_[1.0, 2.0, 2.0, 2.0, 2.0]
    model = SparseSVCCV(cv=FOLDS, preprocessor=columns, penalty_weights=penalties).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["size", "site"]
    assert model.coef_.shape == (1, 5)
    names = model.preprocessor_.get_feature_names_out()
    assert model.path_.feature_names_in_.tolist() == names.tolist()
    used = dict.fromkeys(names, 0.0)
    for train, _ in FOLDS:
        fitted = clone(columns)
        matrix = fitted.fit_transform(frame.iloc[train])
        own = fitted.get_feature_names_out()
        path = sparse_svm_path(matrix, Y[train], penalty_weights=penalties[: len(own)])
        for name in own[path.coef_at(s=model.s_)[0] != 0]:
            used[name] += 1 / 3
    np.testing.assert_allclose(model.selection_frequency_, list(used.values()))
    assert len(set(model.selection_frequency_)) > 1
    scores = model.preprocessor_.transform(frame) @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.decision_function(frame), scores)


def test_documents_can_be_given_as_they_are():
    texts = ["good day", "bad day", "good night", "bad night", "so good", "so bad"] * 4
    model = SparseSVCCV(cv=3, preprocessor=TfidfVectorizer()).fit(texts, [1, 0] * 12)
    assert model.predict(["a good one", "a bad one"]).tolist() == [1, 0]


def test_weights_equal_repetition_in_the_preprocessor_too():
    weights = np.ones(60)
    weights[3], weights[5] = 0.0, 3.0
    model = SparseSVCCV(cv=FOLDS, preprocessor=StandardScaler()).fit(X, Y, sample_weight=weights)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    np.testing.assert_allclose(model.preprocessor_.mean_, repeated.mean(axis=0))
    least = MaxAbsScaler()  # whose fit takes no weights: rows of weight 0 are left out
    model = SparseSVCCV(cv=FOLDS, preprocessor=least).fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(model.preprocessor_.max_abs_, np.abs(repeated).max(axis=0))


def test_its_parameters_are_searched_like_others():
    search = SparseSVCCV(cv=3, preprocessor=SelectKBest())
    found = GridSearchCV(search, {"preprocessor__k": [1, 4]}, cv=2).fit(X, Y)
    assert found.best_params_["preprocessor__k"] in (1, 4)
    assert found.best_estimator_.coef_.shape[1] == found.best_params_["preprocessor__k"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (StandardScaler, "preprocessor must be None or a transformer"),
        ("standard", "preprocessor must be None or a transformer"),
        (FunctionTransformer(np.log), "FunctionTransformer makes of X cannot be used: X has NaN"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log")
def test_what_cannot_prepare_is_refused(wrong, message):
    for model in (SparseSVCCV(preprocessor=wrong), ConstrainedLassoCV(preprocessor=wrong)):
        with pytest.raises(ValueError, match=message):
            model.fit(-np.abs(X), np.arange(60) % 2)


def test_a_kernel_matrix_cannot_be_prepared():
    model = SVCCV(kernel="precomputed", preprocessor=StandardScaler())
    with pytest.raises(ValueError, match=r"preprocessor must be None with kernel='precomputed'"):
        model.fit(X @ X.T, Y)


def test_columns_that_change_are_named():
    model = SparseSVCCV(cv=FOLDS, preprocessor=FunctionTransformer()).fit(X, Y)
    with pytest.raises(ValueError, match="preprocessor_ makes 3 columns of X, but the model was"):
        model.predict(X[:, :3])


def test_the_walk_around_it_would_undo_it():
    inner = SVCCV([1.0], kernel="linear", preprocessor=StandardScaler())
    with pytest.raises(ValueError, match="estimator must not have a preprocessor"):
        Reweighted(inner).fit(X, Y)


def test_onnx_has_it():
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from anynorm import to_onnx

    for preprocessor in (StandardScaler(), make_pipeline(MinMaxScaler(), StandardScaler())):
        model = SparseSVCCV(cv=FOLDS, preprocessor=preprocessor).fit(X, Y)
        session = runtime.InferenceSession(to_onnx(model, dtype="float64").SerializeToString())
        labels, scores = session.run(None, {"X": X})
        np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-10)
        assert (labels == model.predict(X)).all()
    with pytest.raises(ValueError, match="SelectKBest has no translation"):
        to_onnx(SparseSVCCV(cv=FOLDS, preprocessor=SelectKBest(k=3)).fit(X, Y))
    several = OneVsRestClassifier(SparseSVCCV(cv=3, preprocessor=StandardScaler()))
    with pytest.raises(ValueError, match="StandardScaler has no translation"):
        to_onnx(several.fit(X, np.arange(60) % 3))
