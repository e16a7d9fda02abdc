"""The exact cross-validated curve, against scoring folds point by point, and what is chosen."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    get_scorer,
    make_scorer,
    roc_auc_score,
)
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    cross_validate,
)
from sklearn.pipeline import make_pipeline

from anynorm import LinearSVC, SparseSVCCV, sparse_svm_path
from anynorm.datasets import make_relevant
from anynorm.estimators._cross_validation import splits_of
from anynorm.estimators._path_stages import Stages
from anynorm.estimators._score_curve import ScoreCurve
from tests.estimators.plain import noisy_classes

X, Y = make_relevant(n_samples=60, n_features=15, n_relevant=3, random_state=1)
THREE, CODES = noisy_classes(n=45, p=4, n_classes=3, seed=2)
FOLDS = list(StratifiedKFold(3).split(X, Y))


def fold_paths(train, features=X, labels=Y, weights=None):
    """One path for two classes, one for each class against the rest otherwise."""
    part = None if weights is None else weights[train]
    classes = np.unique(labels)
    if len(classes) == 2:
        return [sparse_svm_path(features[train], labels[train], sample_weight=part)]
    return [
        sparse_svm_path(features[train], (labels == label)[train], sample_weight=part)
        for label in classes
    ]


def predicted(paths, classes, features, s):
    scores = np.column_stack([path.decision_function(features, s=s) for path in paths])
    if len(paths) == 1:
        return classes[(scores[:, 0] > 0).astype(int)]
    return classes[scores.argmax(axis=1)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("features", "labels"), [(X, Y), (THREE, CODES)], ids=["two", "three"])
def test_the_curve_is_exact_on_every_interval(features, labels, weighted):
    weights = np.arange(len(labels)) % 3 + 0.5 if weighted else None
    folds = list(StratifiedKFold(3).split(features, labels))
    model = SparseSVCCV(cv=folds, multiclass="one_s", stop_early=False)
    model.fit(features, labels, sample_weight=weights)
    results = model.cv_results_
    low, high = results["s_low"], results["s_high"]
    assert low[0] == 0
    np.testing.assert_array_equal(low[1:], high[:-1])
    rng = np.random.default_rng(0)
    for number, (train, test) in enumerate(folds):
        paths = fold_paths(train, features, labels, weights)
        share = None if weights is None else weights[test]
        for k in range(0, len(low), 3):
            if high[k] - low[k] < 1e-9:
                continue
            s = low[k] + rng.uniform(0.01, 0.99) * (high[k] - low[k])
            labels_at = predicted(paths, model.classes_, features[test], s)
            expected = accuracy_score(labels[test], labels_at, sample_weight=share)
            assert results[f"split{number}_test_score"][k] == pytest.approx(expected)
    splits = np.array([results[f"split{k}_test_score"] for k in range(3)])
    np.testing.assert_allclose(results["mean_test_score"], splits.mean(axis=0))
    np.testing.assert_allclose(results["std_test_score"], splits.std(axis=0))
    assert results["rank_test_score"][model.best_index_] == 1
    ends = [
        path.s[-1] for train, _ in folds for path in fold_paths(train, features, labels, weights)
    ]
    assert high[-1] == pytest.approx(max(ends))


@pytest.mark.parametrize("scoring", ["accuracy", "balanced_accuracy"])
def test_with_one_C_for_all_classes_the_curve_is_exact_too(scoring):
    weights = np.arange(len(CODES)) % 3 + 0.5
    folds = list(StratifiedKFold(3).split(THREE, CODES))
    model = SparseSVCCV(cv=folds, scoring=scoring).fit(THREE, CODES, sample_weight=weights)
    results = model.cv_results_
    low, high = results["C_low"], results["C_high"]
    np.testing.assert_array_equal(low[1:], high[:-1])
    score = {"accuracy": accuracy_score, "balanced_accuracy": balanced_accuracy_score}[scoring]
    for number, (train, test) in enumerate(folds):
        paths = fold_paths(train, THREE, CODES, weights)
        for k in range(0, len(low), 3):
            if high[k] < low[k] * (1 + 1e-9):
                continue
            price = low[k] ** 0.3 * high[k] ** 0.7
            places = [path.coef_at(C=price) for path in paths]
            values = np.column_stack([THREE[test] @ coef + b for coef, b in places])
            labels_at = model.classes_[values.argmax(axis=1)]
            expected = score(CODES[test], labels_at, sample_weight=weights[test])
            assert results[f"split{number}_test_score"][k] == pytest.approx(expected)
            used = np.any([coef != 0 for coef, _ in places], axis=0).sum()
            if len(folds) == 1:
                assert results["mean_n_features"][k] == used
    best = results["mean_test_score"][model.best_index_]
    assert best == results["mean_test_score"].max() == model.best_score_
    chosen = results["param_C"][model.best_index_]
    paths = fold_paths(np.arange(45), THREE, CODES, weights)
    assert low[model.best_index_] <= chosen <= high[model.best_index_]
    for k, path in enumerate(paths):
        np.testing.assert_allclose(model.coef_[k], path.coef_at(s=model.s_[k])[0], atol=1e-9)


def test_classes_with_places_of_their_own_score_no_worse():
    one = SparseSVCCV(cv=3).fit(THREE, CODES)
    each = SparseSVCCV(cv=3, multiclass="each").fit(THREE, CODES)
    assert each.best_score_ >= one.best_score_
    labels = each.classes_[each.oof_decision_function_.argmax(axis=1)]
    assert np.mean(labels == CODES) == pytest.approx(each.best_score_)
    assert each.certificate_.gap <= 1e-9


def test_the_number_of_features_is_exact_on_every_interval():
    results = SparseSVCCV(cv=FOLDS).fit(X, Y).cv_results_
    paths = [fold_paths(train)[0] for train, _ in FOLDS]
    for k in range(0, len(results["s_low"]), 5):
        low, high = results["s_low"][k], results["s_high"][k]
        if high - low < 1e-9:
            continue
        for share in (0.1, 0.9):
            coefs = [path.coef_at(s=low + share * (high - low))[0] for path in paths]
            counts = [np.count_nonzero(coef) for coef in coefs]
            assert results["mean_n_features"][k] == pytest.approx(np.mean(counts))


def test_the_best_is_the_middle_of_the_widest_best_stretch():
    model = SparseSVCCV(cv=FOLDS).fit(X, Y)
    results = model.cv_results_
    best = np.isclose(results["mean_test_score"], results["mean_test_score"].max(), atol=1e-12)
    stretches, least = {}, results["s_high"].min()
    for k in np.flatnonzero(best):
        first = next(i for i in range(k, -1, -1) if i == 0 or not best[i - 1])
        stretches[first] = max(results["s_low"][first], least), results["s_high"][k]
    low, high = max(stretches.values(), key=lambda ends: ends[1] / ends[0])
    assert low <= model.s_ <= high
    assert model.s_ == pytest.approx((low + high) / 2)
    assert model.best_score_ == results["mean_test_score"].max()
    assert results["s_low"][model.best_index_] <= model.s_ <= results["s_high"][model.best_index_]


@pytest.mark.parametrize("rule", ["best", "steady", "one_se", "fewest"])
def test_the_model_is_the_chosen_point_of_its_path(rule):
    model = SparseSVCCV(cv=FOLDS, rule=rule, score_tolerance=0.03).fit(X, Y)
    alone = sparse_svm_path(X, Y)
    coef, intercept = alone.coef_at(s=model.s_)
    np.testing.assert_allclose(model.coef_, [coef], atol=1e-12)
    assert model.intercept_[0] == pytest.approx(intercept, abs=1e-10)
    assert model.path_.n_joints == alone.n_joints
    assert model.paths_ == [model.path_]
    assert model.certificate_.gap <= 1e-9
    assert model.certificate_.primal == pytest.approx(alone.certificate_at(model.s_).primal)
    margins = np.where(model.classes_[1] == Y, 1, -1) * model.decision_function(X)
    price = np.abs(coef).sum() + model.C_ * np.maximum(0, 1 - margins).sum()
    assert model.certificate_.primal == pytest.approx(price)
    results, k = model.cv_results_, model.best_index_
    top = results["mean_test_score"].argmax()
    if rule == "one_se":
        scores = [results[f"split{f}_test_score"][top] for f in range(3)]
        enough = results["mean_test_score"][top] - np.std(scores, ddof=1) / np.sqrt(3)
        assert results["mean_test_score"][k] >= enough - 1e-12
        assert np.all(
            results["mean_test_score"][results["s_high"] < model.s_][:-1] < enough + 1e-12
        )
    if rule == "fewest":
        enough = results["mean_test_score"] >= results["mean_test_score"][top] - 0.03 - 1e-12
        assert enough[k]
        assert results["mean_n_features"][k] == results["mean_n_features"][enough].min()


def curve(means, features, edges=None, spread=0.0):
    edges = np.arange(len(means) + 1.0) if edges is None else np.asarray(edges)
    scores = np.column_stack([np.subtract(means, spread), np.add(means, spread)])
    return ScoreCurve(edges[:-1], edges[1:], scores, np.column_stack([features, features]) * 1.0)


def test_rules_on_a_curve_by_hand():
    means, features = [0.5, 0.8, 0.9, 0.9, 0.7, 0.9], [1, 2, 3, 4, 5, 1]
    assert curve(means, features).choose("best", 0.0) == (2, 3.0)
    assert curve(means, features, [0, 1, 2, 3, 7, 8, 9]).choose("best", 0.0) == (3, 4.5)
    # the last stretch is the widest by its factor
    assert curve(means, features, [0, 1, 2, 3, 4, 5, 50]).choose("best", 0.0) == (5, 27.5)
    # two folds, 0.9 -+ 0.11: the standard error is 0.11
    assert curve(means, features, spread=0.11).choose("one_se", 0.0) == (1, 1.5)
    assert curve(means, features, spread=0.01).choose("one_se", 0.0) == (2, 3.0)
    assert curve(means, features).choose("fewest", 0.0) == (5, 5.5)
    assert curve(means, features[::-1]).choose("fewest", 0.1) == (5, 5.5)
    assert curve(means[:5], features[:5]).choose("fewest", 0.1) == (1, 1.5)
    # no tolerance given: one standard error, so that "one_se" does not have fewer features
    assert curve(means[:5], features[:5], spread=0.11).choose("fewest", None) == (1, 1.5)
    assert curve(means[:5], features[:5], spread=0.01).choose("fewest", None) == (2, 2.5)
    assert curve(means[:5], [3, 2, 2, 9, 1]).choose("fewest", 0.1) == (1, 2.0)


def averages(curve, places, factor):
    """The scores of a curve of s, averaged over windows by a sum over many points."""
    middles = np.exp(np.linspace(-1, 1, 4001) * np.log(factor) / 2)
    found = []
    for place in places:
        at = np.clip(np.searchsorted(curve.high, place * middles), 0, len(curve.high) - 1)
        found.append(curve.scores.mean(axis=1)[at].mean())
    return np.array(found)


def test_the_steady_rule_averages_over_a_factor_of_four():
    rng = np.random.default_rng(3)
    edges = np.append(0.0, np.sort(np.exp(rng.uniform(-5, 5, 60))))
    means = 0.9 - 0.03 * np.log(edges[1:]) ** 2 / 5 + rng.normal(0, 0.02, 60)
    found = curve(means, np.ones(60), edges)
    index, s = found.choose("steady", None)
    assert edges[index] <= s <= edges[index + 1]
    places = np.geomspace(edges[1], edges[-1], 801)
    assert averages(found, [s], 4.0)[0] >= averages(found, places, 4.0).max() - 1e-3
    assert index != means.argmax()


def test_a_high_step_by_accident_is_not_steady():
    edges = [0, 1, 10, 10.1, 40, 400]
    found = curve([0.5, 0.6, 0.9, 0.8, 0.7], np.ones(5), edges)
    assert found.choose("best", None)[0] == 2
    assert found.choose("steady", None)[0] == 3
    # a short range has a window of a quarter of it
    edges = np.exp([0.0, 0.3, 0.6, 0.7, 1.0])
    assert curve([0.6, 0.9, 0.6, 0.7], np.ones(4), edges).choose("steady", None)[0] == 1
    # a curve that does not fall is taken in the middle of where it is level
    level = curve([0.5, 0.8, 0.8], np.ones(3), [0, 1, 16, 256])
    assert level.choose("steady", None) == (2, pytest.approx((2 * 256) ** 0.5))
    # by its factor the first interval, which begins at 0, is no stretch at all
    assert curve([0.9, 0.5], np.ones(2), [0, 2, 4]).choose("steady", None) == (0, 1.0)
    one = curve([0.5], [0], [0, 0])
    assert one.choose("steady", None) == (0, 0.0)


def test_steady_points_count_as_far_as_the_middle_to_the_next():
    places = np.log([1.0, 3.0, 10.0, 30.0, 100.0, 300.0])
    scores = np.array([[0.5], [0.9], [0.6], [0.85], [0.85], [0.8]])
    found = ScoreCurve(places, places, scores, np.ones((6, 1)), 2.0)
    assert found.choose("best", None)[0] == 1
    index, C = found.choose("steady", None)
    assert (index, C) == (4, pytest.approx(200.0))


def test_points_instead_of_intervals():
    points = np.array([0.0, 1.0, 2.0, 4.0, 8.0])
    scores = np.array([[0.5], [0.9], [0.9], [0.9], [0.9]])
    assert ScoreCurve(points, points, scores, scores).choose("best", 0.0) == (4, 8.0)
    assert ScoreCurve(points[:4], points[:4], scores[:4], scores[:4]).choose("best", 0.0) == (
        3,
        4.0,
    )


def test_neighbours_that_are_the_same_are_joined():
    joined = curve([0.5, 0.5, 0.6, 0.6], [1, 1, 1, 2]).joined()
    np.testing.assert_array_equal(joined.low, [0.0, 2.0, 3.0])
    np.testing.assert_array_equal(joined.high, [2.0, 3.0, 4.0])


def test_the_balanced_accuracy_is_exact_too():
    weights = np.arange(60) % 2 + 1.0
    model = SparseSVCCV(cv=FOLDS, scoring="balanced_accuracy").fit(X, Y, sample_weight=weights)
    results = model.cv_results_
    for number, (train, test) in enumerate(FOLDS):
        (path,) = fold_paths(train, weights=weights)
        for k in range(0, len(results["s_low"]), 5):
            low, high = results["s_low"][k], results["s_high"][k]
            if high - low < 1e-9:
                continue
            labels_at = predicted([path], model.classes_, X[test], low + 0.4 * (high - low))
            expected = balanced_accuracy_score(Y[test], labels_at, sample_weight=weights[test])
            assert results[f"split{number}_test_score"][k] == pytest.approx(expected)


@pytest.mark.parametrize("scoring", ["roc_auc", "callable"])
def test_other_scorers_are_evaluated_at_the_joints(scoring):
    weights = np.arange(60) % 2 + 1.0
    given = scoring
    if scoring == "callable":
        given = make_scorer(roc_auc_score, response_method="decision_function")
    model = SparseSVCCV(cv=FOLDS, scoring=given, max_features=5).fit(X, Y, sample_weight=weights)
    results = model.cv_results_
    paths = [
        sparse_svm_path(X[train], Y[train], sample_weight=weights[train], max_features=5)
        for train, _ in FOLDS
    ]
    joints = np.unique(np.concatenate([path.s for path in paths]))
    np.testing.assert_allclose(results["param_s"], joints, atol=1e-12)
    np.testing.assert_array_equal(results["s_low"], results["s_high"])
    scorer = get_scorer("roc_auc")
    for number, (path, (_, test)) in enumerate(zip(paths, FOLDS, strict=True)):
        for k in range(0, len(joints), 7):
            stage = LinearSVC()
            # A fold whose path stopped before stays at its last point.
            coef, intercept = path.coef_at(s=min(joints[k], path.s[-1]))
            stage.coef_, stage.intercept_ = coef[None], np.array([intercept])
            stage.classes_, stage.n_features_in_ = path.classes_, X.shape[1]
            expected = scorer(stage, X[test], Y[test], sample_weight=weights[test])
            found = results[f"split{number}_test_score"][k]
            assert found == pytest.approx(expected, abs=1e-9)
    assert model.s_ in joints
    mean = results["mean_test_score"]
    assert mean[model.best_index_] == pytest.approx(mean.max())


def test_the_name_accuracy_is_the_exact_curve_too():
    one, two = SparseSVCCV(cv=3).fit(X, Y), SparseSVCCV(cv=3, scoring="accuracy").fit(X, Y)
    assert one.s_ == two.s_
    np.testing.assert_array_equal(one.cv_results_["s_low"], two.cv_results_["s_low"])


def test_decision_values_of_rows_that_were_held_out():
    model = SparseSVCCV(cv=FOLDS).fit(X, Y)
    for train, test in FOLDS:
        (path,) = fold_paths(train)
        expected = path.decision_function(X[test], s=model.s_)
        np.testing.assert_allclose(model.oof_decision_function_[test], expected, atol=1e-9)
    accuracy = np.mean((model.oof_decision_function_ > 0) == (model.classes_[1] == Y))
    assert accuracy == pytest.approx(model.best_score_)


def test_rows_held_out_often_or_never():
    often = SparseSVCCV(cv=RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0))
    assert np.isfinite(often.fit(X, Y).oof_decision_function_).all()
    splits = list(ShuffleSplit(2, test_size=0.2, random_state=0).split(X))
    model = SparseSVCCV(cv=splits).fit(X, Y)
    held_out = np.union1d(splits[0][1], splits[1][1])
    np.testing.assert_array_equal(np.flatnonzero(~np.isnan(model.oof_decision_function_)), held_out)


def test_selection_frequency():
    model = SparseSVCCV(cv=FOLDS).fit(X, Y)
    used = [fold_paths(train)[0].coef_at(s=model.s_)[0] != 0 for train, _ in FOLDS]
    np.testing.assert_allclose(model.selection_frequency_, np.mean(used, axis=0))


def test_several_classes():
    names = np.array(["ash", "birch", "cedar"])[CODES]
    model = SparseSVCCV(cv=3).fit(THREE, names)
    assert model.coef_.shape == (3, 4)
    assert model.s_.shape == model.C_.shape == (3,)
    assert len(model.paths_) == 3
    assert not hasattr(model, "path_")
    assert len(model.certificate_.per_class) == 3
    assert model.certificate_.gap <= 1e-9
    assert model.oof_decision_function_.shape == (45, 3)
    for k, label in enumerate(model.classes_):
        coef, intercept = sparse_svm_path(THREE, names == label).coef_at(s=model.s_[k])
        np.testing.assert_allclose(model.coef_[k], coef, atol=1e-9)
        assert model.intercept_[k] == pytest.approx(intercept, abs=1e-9)
    model.fit(X, Y)
    assert isinstance(model.s_, float)
    assert model.path_ is model.paths_[0]
    model.fit(THREE, names)
    assert not hasattr(model, "path_")


def test_a_fold_may_lack_a_class_of_several():
    rows = np.flatnonzero(CODES == 2)
    folds = [(np.setdiff1d(np.arange(45), rows), rows), *StratifiedKFold(2).split(THREE, CODES)]
    model = SparseSVCCV(cv=folds).fit(THREE, CODES)
    np.testing.assert_array_equal(model.cv_results_["split0_test_score"], 0.0)


def test_storage_and_threads_do_not_matter():
    rounded = np.round(8 * X) / 8
    one = SparseSVCCV(cv=3).fit(rounded, Y)
    for kind in (sp.csr_array, sp.csc_array, np.float32, pd.DataFrame):
        two = SparseSVCCV(cv=3, n_jobs=2).fit(kind(rounded), Y)
        assert two.s_ == pytest.approx(one.s_, rel=1e-7)
        assert two.best_score_ == pytest.approx(one.best_score_)
        np.testing.assert_allclose(two.coef_, one.coef_, atol=1e-7)


@pytest.mark.parametrize("too_far", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_path_of_all_rows_begins_beside_the_folds_and_is_the_same(monkeypatch, too_far, n_jobs):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 40))
    y = np.where(X[:, :3].sum(axis=1) + 0.5 * rng.normal(size=150) > 0, 1, -1)
    follow, stages = Stages._follow, []

    def noted(self, folds, price, sure):
        stages.append(sure / price)
        follow(self, folds, price, 64 * sure if too_far else sure)

    monkeypatch.setattr(Stages, "_follow", noted)
    model = SparseSVCCV(n_jobs=n_jobs).fit(X, y)
    assert model.path_.stopped == "s_max"  # the folds have stopped it
    assert set(stages) == {0.5}
    path = sparse_svm_path(X, y, s_max=float(model.path_.s[-1]))
    np.testing.assert_allclose(model.path_.s, path.s, rtol=1e-12)
    np.testing.assert_allclose(model.path_.penalties, path.penalties, rtol=1e-9)


def test_max_features():
    model = SparseSVCCV(cv=3, max_features=2).fit(X, Y)
    assert np.count_nonzero(model.coef_) <= 2
    assert model.path_.stopped == "max_features"
    assert model.cv_results_["mean_n_features"].max() <= 2


def test_penalty_weights_reach_every_path():
    u = np.ones(15)
    u[0], u[1] = np.inf, 0.0
    model = SparseSVCCV(cv=3, penalty_weights=u).fit(X, Y)
    assert model.coef_[0, 0] == 0
    assert model.selection_frequency_[:2].tolist() == [0.0, 1.0]


def test_balanced_classes_are_balanced_in_each_fold():
    part = np.arange(45)
    folds = list(StratifiedKFold(3).split(X[part], Y[part]))
    model = SparseSVCCV(cv=folds, class_weight="balanced").fit(X[part], Y[part])
    for train, test in folds:
        counts = {label: np.sum(Y[train] == label) for label in np.unique(Y)}
        weights = np.array([len(train) / (2 * counts[label]) for label in Y[train]])
        path = sparse_svm_path(X[train], Y[train], sample_weight=weights)
        expected = path.decision_function(X[test], s=model.s_)
        np.testing.assert_allclose(model.oof_decision_function_[test], expected, atol=1e-8)


def test_features_that_are_zero_are_not_selected():
    assert SparseSVCCV.penalty == "l1"
    selector = SelectFromModel(SparseSVCCV(cv=3)).fit(X, Y)
    used = np.abs(selector.estimator_.coef_[0]) > 1e-5
    np.testing.assert_array_equal(selector.get_support(), used)
    assert 0 < used.sum() < 15
    pipeline = make_pipeline(SelectFromModel(SparseSVCCV(cv=3)), LinearSVC()).fit(X, Y)
    assert pipeline[-1].n_features_in_ == used.sum()


def test_splitters_groups_and_given_splits():
    groups = np.arange(60) // 6
    model = SparseSVCCV(cv=GroupKFold(5)).fit(X, Y, groups=groups)
    same = SparseSVCCV(cv=list(GroupKFold(5).split(X, Y, groups))).fit(X, Y)
    assert model.s_ == same.s_
    with pytest.raises(ValueError, match="groups"):
        SparseSVCCV(cv=GroupKFold(5)).fit(X, Y)


def test_a_number_of_folds_means_shuffled_ones_and_keeps_groups_together():
    groups = np.arange(60) // 6
    for kind, given in ((StratifiedKFold, None), (StratifiedGroupKFold, groups)):
        splitter = kind(4, shuffle=True, random_state=0)
        expected = SparseSVCCV(cv=list(splitter.split(X, Y, given))).fit(X, Y)
        for found in (SparseSVCCV(cv=4), SparseSVCCV(cv=splitter)):
            found.fit(X, Y, groups=given)
            np.testing.assert_array_equal(
                found.oof_decision_function_, expected.oof_decision_function_
            )


@pytest.mark.parametrize("cv", [2, 5, None])
@pytest.mark.parametrize("sizes", [[6] * 10, [1, 2, 3, 4, 5, 6, 7, 8, 9, 15], [20, 20, 5, 5, 10]])
def test_no_group_is_on_both_sides_of_a_fold(cv, sizes):
    groups = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    splits = splits_of(cv, Y, groups)
    assert len(splits) == (5 if cv is None else cv)
    for train, test in splits:
        assert not set(groups[train]) & set(groups[test])
        assert len(train) + len(test) == 60
    held_out = np.sort(np.concatenate([test for _, test in splits]))
    np.testing.assert_array_equal(held_out, np.arange(60))


def test_fewer_groups_than_folds_are_an_error():
    with pytest.raises(ValueError, match=r"^cv=5 needs at least 5 groups, .* groups has 3"):
        SparseSVCCV(cv=5).fit(X, Y, groups=np.arange(60) % 3)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        SparseSVCCV(cv=5).fit(X, Y, groups=np.arange(59))


def test_groups_and_weights_are_routed():
    groups, weights = np.arange(60) // 6, np.arange(60) % 3 + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        model = SparseSVCCV(cv=GroupKFold(3))
        model.set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(
            model, X, Y, params={"groups": groups, "sample_weight": weights}, cv=2
        )
    assert np.isfinite(found["test_score"]).all()


def test_a_pickle_is_small_and_predicts_the_same():
    wide = np.hstack([X, np.zeros((60, 5000))])
    model = SparseSVCCV(cv=3).fit(wide, Y)
    stored = pickle.dumps(model)
    assert len(stored) < wide.nbytes / 4
    again = pickle.loads(stored)
    np.testing.assert_array_equal(again.predict(wide), model.predict(wide))
    np.testing.assert_array_equal(again.path_.s, model.path_.s)
    assert again.path_.certificate_at(model.s_).gap <= 1e-9


def test_a_time_limit_warns_and_still_gives_a_model():
    rows, labels = make_relevant(n_samples=1500, n_features=400, n_relevant=30, random_state=0)
    SparseSVCCV(cv=2).fit(X, Y)  # compiled before the clock starts
    with pytest.warns(sklearn.exceptions.ConvergenceWarning, match=r"^time_limit ended"):
        model = SparseSVCCV(cv=2, time_limit=0.6).fit(rows, labels)
    assert np.isfinite(model.coef_).all()
    assert model.certificate_.gap <= 1e-9


def test_progress_is_a_line_per_path(capsys):
    SparseSVCCV(cv=3, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert all(
        re.match(r"SparseSVCCV: (fold \d of 3|all rows): \d+ joints to s = \S+, up to \d+", line)
        for line in lines
    )
    SparseSVCCV(cv=2, verbose=1).fit(THREE, CODES)
    assert "SparseSVCCV: fold 2 of 2, class 1: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rule", "paper"), ("rule", None), ("scoring", 3), ("score_tolerance", -0.1),
        ("score_tolerance", "x"), ("multiclass", "one"), ("stop_early", 1),
        ("max_features", 0), ("max_features", 1.5), ("tol", 0.0),
        ("fit_intercept", "yes"), ("time_limit", 0), ("n_jobs", 0), ("verbose", -1),
        ("class_weight", "heavy"), ("penalty_weights", [1.0, 2.0]), ("penalty_weights", "u"),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_named(name, value):
    with pytest.raises(ValueError, match=rf"^{name} "):
        SparseSVCCV().set_params(**{name: value}).fit(X, Y)


def test_folds_that_cannot_be_used():
    y = np.r_[np.zeros(30), np.ones(30)]
    with pytest.raises(ValueError, match="only one class"):
        SparseSVCCV(cv=KFold(2)).fit(X, y)
    weights = np.ones(60)
    weights[:20] = 0
    with pytest.raises(ValueError, match="sample_weight is zero for all rows that fold 1"):
        SparseSVCCV(cv=KFold(3)).fit(X, Y, sample_weight=weights)


def test_a_scorer_without_an_answer_is_an_error():
    def unknown(estimator, X, y):
        return np.nan

    with pytest.raises(ValueError, match=r"^scoring gives no finite number"):
        SparseSVCCV(cv=2, scoring=unknown, max_features=2).fit(X, Y)
