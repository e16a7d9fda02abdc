"""One table over C and rounds, and three ways to choose from it."""

import re

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    StratifiedKFold,
    cross_validate,
)

from anynorm import ReweightedSVC, ReweightedSVCCV
from anynorm.datasets import make_relevant
from anynorm.estimators.reweighted_svc_cv import choose
from tests.estimators.plain import noisy_classes

X, Y = make_relevant(n_samples=60, n_features=40, n_relevant=3, random_state=0)
CS = [0.01, 0.1, 1.0]


@pytest.mark.parametrize("scoring", [None, "accuracy", "roc_auc"])
def test_the_table_is_that_of_a_grid_search(scoring):
    """The folds are solved to ten times tol: enough digits for the same scores."""
    ours = ReweightedSVCCV(CS, max_rounds=4, cv=3, scoring=scoring, tol=1e-7).fit(X, Y)
    grid = {"C": CS, "n_rounds": [1, 2, 3, 4]}
    shuffled = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(ReweightedSVC(tol=1e-7), grid, cv=shuffled, scoring=scoring).fit(X, Y)
    assert ours.cv_results_["params"] == search.cv_results_["params"]
    for key in ("mean_test_score", "std_test_score", "split0_test_score"):
        np.testing.assert_allclose(ours.cv_results_[key], search.cv_results_[key], atol=1e-12)
    mean = search.cv_results_["mean_test_score"]  # equal means differ there in their last digit
    ranks = 1 + (mean[:, None] < mean - 1e-12).sum(axis=1)
    np.testing.assert_array_equal(ours.cv_results_["rank_test_score"], ranks)
    assert ours.best_score_ == pytest.approx(search.best_score_)
    np.testing.assert_array_equal(ours.cv_results_["param_C"], np.repeat(CS, 4))
    np.testing.assert_array_equal(ours.cv_results_["param_n_rounds"], np.tile([1, 2, 3, 4], 3))
    assert np.all(ours.cv_results_["max_gap"] <= 1e-6)
    features = ours.cv_results_["mean_n_features"].reshape(3, 4)
    assert np.all(features[:, -1] <= features[:, 0])
    assert features[0, -1] < 5


@pytest.mark.parametrize("rule", ["best", "paper", "one_se"])
def test_the_choice_is_fitted_to_all_rows(rule):
    model = ReweightedSVCCV(CS, max_rounds=5, cv=3, rule=rule).fit(X, Y)
    alone = ReweightedSVC(C=model.C_, n_rounds=model.n_rounds_).fit(X, Y)
    np.testing.assert_array_equal(model.coef_, alone.coef_)
    assert len(model.history_) == model.n_rounds_
    assert model.certificate_ == alone.certificate_
    chosen = model.cv_results_["params"][model.best_index_]
    assert chosen == {"C": model.C_, "n_rounds": model.n_rounds_}
    assert model.best_score_ == model.cv_results_["mean_test_score"][model.best_index_]
    np.testing.assert_array_equal(list(model.staged_predict(X))[-1], model.predict(X))


def table(means, spread=0.0):
    """Scores of two folds with the given means."""
    means = np.asarray(means, dtype=float)
    return np.stack([means - spread, means + spread], axis=2)


def test_best_takes_the_smallest_C_then_the_fewest_rounds():
    means = [[0.5, 0.8, 0.9], [0.9, 0.9, 0.7], [0.9, 0.1, 0.1]]
    assert choose("best", table(means), table(np.ones((3, 3)))) == (0, 2)
    assert choose("best", table(means[1:]), table(np.ones((2, 3)))) == (0, 0)


@pytest.mark.parametrize(
    ("column", "place"),
    [([0.9, 0.9, 0.9], 1), ([0.9, 0.9, 0.8, 0.9], 1), ([0.1, 0.9, 0.9, 0.9, 0.9], 2), ([0.9], 0)],
)
def test_the_papers_rule_is_the_rounded_down_median(column, place):
    means = np.column_stack([np.full(len(column), 0.5), column, column])
    assert choose("paper", table(means), table(np.ones(means.shape))) == (place, 1)


def test_one_standard_error_takes_the_sparsest():
    means = [[0.5, 0.88, 0.80], [0.7, 0.9, 0.89]]
    features = table([[30.0, 9.0, 1.0], [30.0, 20.0, 10.0]])
    # two folds, 0.9 -+ 0.02: the standard error is 0.02
    assert choose("one_se", table(means, spread=0.02), features) == (0, 1)
    assert choose("one_se", table(means, spread=0.005), features) == (1, 1)
    # "fewest" goes as far as it is told, or 0.01, or one standard error where that is more
    assert choose("fewest", table(means, spread=0.005), features, 0.02) == (0, 1)
    assert choose("fewest", table(means, spread=0.005), features, 0.0) == (1, 1)
    assert choose("fewest", table(means, spread=0.02), features) == (0, 1)


def test_a_number_of_Cs_is_a_logarithmic_grid():
    model = ReweightedSVCCV(3, max_rounds=2, cv=2).fit(X, Y)
    np.testing.assert_allclose(np.unique(model.cv_results_["param_C"]), [1e-4, 1.0, 1e4])


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.float32])
def test_storage_and_threads_do_not_matter(kind):
    rounded = np.round(8 * X) / 8
    one = ReweightedSVCCV(CS, max_rounds=3, cv=3).fit(rounded, Y)
    two = ReweightedSVCCV(CS, max_rounds=3, cv=3, n_jobs=2).fit(kind(rounded), Y)
    assert (one.C_, one.n_rounds_) == (two.C_, two.n_rounds_)
    np.testing.assert_allclose(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-4, atol=1e-7)


def test_several_classes_with_names():
    features, codes = noisy_classes(n=60, p=6, n_classes=3)
    names = np.array(["ash", "birch", "cedar"])[codes]
    model = ReweightedSVCCV([0.1, 1.0], max_rounds=2, cv=3).fit(features, names)
    shuffled = StratifiedKFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(ReweightedSVC(), {"C": [0.1, 1.0], "n_rounds": [1, 2]}, cv=shuffled)
    search.fit(features, names)
    np.testing.assert_allclose(
        model.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )
    assert set(model.predict(features)) <= {"ash", "birch", "cedar"}


def test_splitters_groups_and_given_splits():
    groups = np.arange(60) // 6
    model = ReweightedSVCCV(CS, max_rounds=2, cv=GroupKFold(5)).fit(X, Y, groups=groups)
    splits = list(GroupKFold(5).split(X, Y, groups))
    same = ReweightedSVCCV(CS, max_rounds=2, cv=splits).fit(X, Y)
    np.testing.assert_array_equal(
        model.cv_results_["mean_test_score"], same.cv_results_["mean_test_score"]
    )
    with pytest.raises(ValueError, match="groups"):
        ReweightedSVCCV(CS, max_rounds=2, cv=GroupKFold(5)).fit(X, Y)


def test_groups_and_weights_are_routed():
    groups, weights = np.arange(60) // 6, np.arange(60) % 3 + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        model = ReweightedSVCCV([0.1], max_rounds=2, cv=GroupKFold(3))
        model.set_fit_request(groups=True, sample_weight=True).set_score_request(sample_weight=True)
        found = cross_validate(
            model, X, Y, params={"groups": groups, "sample_weight": weights}, cv=2
        )
    assert np.isfinite(found["test_score"]).all()


def test_weights_count_in_the_fit_and_in_the_score():
    weights = (np.arange(60) % 4 > 0).astype(float)
    splitter = KFold(3, shuffle=True, random_state=0)
    model = ReweightedSVCCV([0.1], max_rounds=2, cv=splitter).fit(X, Y, sample_weight=weights)
    expected = []
    for train, test in splitter.split(X):
        alone = ReweightedSVC(C=0.1, n_rounds=2).fit(X[train], Y[train], weights[train])
        kept = test[weights[test] > 0]
        expected.append(np.mean(alone.predict(X[kept]) == Y[kept]))
    assert model.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(expected))
    scored = ReweightedSVCCV([0.1], max_rounds=2, cv=splitter, scoring="accuracy")
    scored.fit(X, Y, sample_weight=weights)
    np.testing.assert_allclose(
        scored.cv_results_["mean_test_score"], model.cv_results_["mean_test_score"]
    )


def test_a_scorer_of_ones_own():
    scorer = make_scorer(roc_auc_score, response_method="decision_function")
    one = ReweightedSVCCV(CS, max_rounds=2, cv=3, scoring=scorer).fit(X, Y)
    two = ReweightedSVCCV(CS, max_rounds=2, cv=3, scoring="roc_auc").fit(X, Y)
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )


def test_balanced_classes_are_balanced_in_each_fold():
    options = {"class_weight": "balanced", "loss": "logistic"}
    ours = ReweightedSVCCV(CS, max_rounds=2, cv=StratifiedKFold(3), **options).fit(X[:45], Y[:45])
    search = GridSearchCV(ReweightedSVC(**options), {"C": CS, "n_rounds": [1, 2]}, cv=3)
    search.fit(X[:45], Y[:45])
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"]
    )


def test_progress_is_a_line_per_fold_and_C(capsys):
    ReweightedSVCCV([0.1, 1.0], max_rounds=2, cv=3, verbose=1).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all(
        re.match(r"ReweightedSVCCV: fold \d of 3, C=\S+: score \S+ in round", x) for x in lines
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("Cs", 0), ("Cs", -1), ("Cs", [1.0, -1.0]), ("Cs", []), ("Cs", "all"), ("Cs", None),
        ("Cs", [1.0, np.inf]), ("max_rounds", 0), ("max_rounds", 1.5), ("rule", "worst"),
        ("rule", None), ("scoring", 3),
    ],
)  # fmt: skip
def test_a_bad_parameter_is_named(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be "):
        ReweightedSVCCV().set_params(**{name: value}).fit(X, Y)


def test_a_fold_with_one_class_is_an_error():
    y = np.r_[np.zeros(30), np.ones(30)]
    with pytest.raises(ValueError, match="only one class"):
        ReweightedSVCCV(CS, cv=KFold(2)).fit(X, y)
