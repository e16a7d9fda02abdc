"""SVCCV: the table, the choice, and what it shares, against GridSearchCV and single fits."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.svm import SVC as Libsvm

from anynorm import SVC, SVCCV, BudgetSVC
from anynorm.estimators._kernel_grid import choose
from anynorm.kernels import RBF
from anynorm.norms import Mahalanobis, TopK

X, Y = make_moons(240, noise=0.3, random_state=0)
CS, GAMMAS = [0.1, 1.0, 10.0], [0.25, 1.0, 4.0]
FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)


def fitted(**given):
    return SVCCV(**{"Cs": CS, "gammas": GAMMAS, "cv": FOLDS} | given).fit(X, Y)


def grid(model, C, gamma):
    """The place of a setting in the table."""
    table = model.cv_results_
    return int(np.flatnonzero((table["param_C"] == C) & (table["param_gamma"] == gamma))[0])


def test_the_table_is_that_of_a_search_by_libsvm():
    ours = fitted(tol=1e-6, stop_early=False)
    peer = GridSearchCV(Libsvm(tol=1e-6), {"gamma": GAMMAS, "C": CS}, cv=FOLDS).fit(X, Y)
    for params, mean in zip(
        peer.cv_results_["params"], peer.cv_results_["mean_test_score"], strict=True
    ):
        place = grid(ours, params["C"], params["gamma"])
        assert ours.cv_results_["mean_test_score"][place] == pytest.approx(mean)
    assert ours.best_score_ == pytest.approx(peer.best_score_)


def test_every_fit_is_certified():
    table = fitted(stop_early=False).cv_results_
    assert table["max_gap"].max() <= 1e-3
    for fold in range(4):
        assert set(table[f"split{fold}_status"]) == {"optimal"}
        assert (table[f"split{fold}_gap"] <= 1e-3).all()


def test_scores_of_held_out_rows_are_those_of_single_fits():
    model = fitted(tol=1e-7)
    expected = np.empty(len(Y))
    for train, test in FOLDS.split(X, Y):
        one = SVC(C=model.C_, gamma=model.gamma_, tol=1e-7).fit(X[train], Y[train])
        expected[test] = one.decision_function(X[test])
    assert np.abs(model.oof_decision_function_ - expected).max() < 1e-2
    assert model.best_score_ == pytest.approx(
        np.mean([accuracy_score(Y[t], expected[t] > 0) for _, t in FOLDS.split(X, Y)])
    )


def test_the_model_is_that_of_svc_with_the_choice():
    model = fitted(tol=1e-7)
    alone = SVC(C=model.C_, gamma=model.gamma_, tol=1e-7).fit(X, Y)
    assert np.allclose(model.decision_function(X), alone.decision_function(X), atol=1e-2)
    assert model.certificate_.gap <= 1e-7
    assert model.best_params_ == {"gamma": model.gamma_, "C": model.C_}


@pytest.mark.parametrize("rule", ["best", "fewest"])
def test_what_is_left_out_could_not_have_been_chosen(rule):
    given = {"Cs": [0.01, 0.1, 1.0, 10.0], "gammas": [1.0, 0.5, 2.0, 5000.0, 1e-5], "rule": rule}
    short, whole = fitted(**given), fitted(**given, stop_early=False)
    left = np.isnan(short.cv_results_["mean_test_score"])
    assert left.any()
    assert not np.isnan(whole.cv_results_["mean_test_score"]).any()
    assert short.best_params_ == whole.best_params_
    for name in ("mean_test_score", "mean_n_support"):
        assert np.array_equal(short.cv_results_[name][~left], whole.cv_results_[name][~left])
    assert "skipped" in set(short.cv_results_["split3_status"][left])
    assert short.cv_results_["rank_test_score"][left].min() > np.count_nonzero(~left)


def test_the_standard_error_rule_leaves_nothing_out():
    table = fitted(rule="one_se", gammas=[1.0, 5000.0]).cv_results_
    assert not np.isnan(table["mean_test_score"]).any()


def test_rules():
    scores = np.array([[0.80, 0.80], [0.90, 0.86], [0.90, 0.88], [0.90, 0.88], [np.nan, 1.0]])
    sizes = np.array([[5, 5], [40, 40], [30, 30], [10, 10], [1, 1]])
    order = [4, 0, 1, 3, 2]
    assert choose("best", scores, sizes, order, 0.0) == 3
    assert choose("one_se", scores, sizes, order, 0.0) == 1
    assert choose("fewest", scores, sizes, order, 0.05) == 3
    assert choose("fewest", scores, sizes, order, 0.10) == 0


@pytest.mark.parametrize("n_jobs", [2, 5])
def test_the_same_bits_for_any_number_of_threads(n_jobs):
    one, more = fitted(), fitted(n_jobs=n_jobs)
    for name in ("mean_test_score", "max_gap"):
        assert np.array_equal(one.cv_results_[name], more.cv_results_[name], equal_nan=True)
    assert np.array_equal(one.oof_decision_function_, more.oof_decision_function_)
    assert np.array_equal(one.dual_coef_, more.dual_coef_)


def test_a_small_cache_changes_no_score():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(900, 3))
    labels = np.sin(2 * points[:, 0]) + points[:, 1] > 0
    wide = SVCCV(Cs=CS, gammas=2, cv=3, tol=1e-6).fit(points, labels)
    tight = SVCCV(Cs=CS, gammas=2, cv=3, tol=1e-6, cache_size=0.3).fit(points, labels)
    assert tight.best_params_ == wide.best_params_
    assert np.allclose(tight.oof_decision_function_, wide.oof_decision_function_, atol=0.05)
    assert np.nanmax(tight.cv_results_["max_gap"]) <= 1e-6


def test_several_classes_and_sparse_rows():
    flowers, kinds = load_iris(return_X_y=True)
    dense = SVCCV(Cs=CS, gammas=3, cv=FOLDS).fit(flowers, kinds)
    sparse = SVCCV(Cs=CS, gammas=3, cv=FOLDS).fit(sp.csr_array(flowers), kinds)
    assert dense.oof_decision_function_.shape == (150, 3)
    assert dense.best_score_ > 0.95
    assert sparse.best_params_["C"] == dense.best_params_["C"]
    assert np.allclose(sparse.oof_decision_function_, dense.oof_decision_function_, atol=0.05)


def test_weights_are_repetitions():
    splits = [
        (np.arange(0, 240, 2), np.arange(1, 240, 2)),
        (np.arange(1, 240, 2), np.arange(0, 240, 2)),
    ]
    rng = np.random.default_rng(3)
    weights = rng.integers(0, 3, 240).astype(float)
    given = {"Cs": CS, "gammas": 3, "tol": 1e-7, "calibration": "sigmoid"}
    weighted = SVCCV(cv=splits, **given).fit(X, Y, sample_weight=weights)
    rows = np.repeat(np.arange(240), weights.astype(int))
    place = [
        (np.flatnonzero(np.isin(rows, a)), np.flatnonzero(np.isin(rows, b))) for a, b in splits
    ]
    repeated = SVCCV(cv=place, **given).fit(X[rows], Y[rows])
    assert weighted.best_params_["C"] == repeated.best_params_["C"]
    assert weighted.gamma_ == pytest.approx(repeated.gamma_)
    assert weighted.best_score_ == pytest.approx(repeated.best_score_)
    assert np.allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=2e-3)


def test_groups_stay_together():
    groups = np.arange(240) // 4
    model = SVCCV(Cs=[1.0], gammas=["scale"], cv=3).fit(X, Y, groups=groups)
    assert np.isfinite(model.oof_decision_function_).all()


def test_kernels_are_searched():
    model = fitted(kernel=["linear", "rbf", RBF(gamma=2.0)])
    table = model.cv_results_
    assert list(dict.fromkeys(map(str, table["param_kernel"]))) == [
        "linear",
        "rbf",
        "RBF(gamma=2.0)",
    ]
    assert len(table["params"]) == 3 + 9 + 3
    assert model.kernel_ != "linear"
    straight = fitted(kernel="linear")
    assert straight.coef_.shape == (1, 2)
    assert not hasattr(straight, "gamma_")


def test_a_precomputed_kernel():
    model = fitted(gammas=[1.0])
    K = RBF(gamma=1.0).pairs(X, X)
    given = SVCCV(Cs=CS, cv=FOLDS, kernel="precomputed").fit(K, Y)
    assert given.C_ == model.C_
    assert np.allclose(given.oof_decision_function_, model.oof_decision_function_, atol=0.05)
    with pytest.raises(ValueError, match="sparse"):
        SVCCV(kernel="precomputed").fit(sp.csr_array(K), Y)


@pytest.mark.parametrize("slack", ["l1", "l2"])
def test_budgets_are_searched(slack):
    model = fitted(budget=[5, 0.5], slack=slack, gammas=[1.0], tol=1e-4)
    assert set(model.cv_results_["param_budget"]) == {5, 0.5}
    count = 5 if model.budget_ == 5 else 120
    alone = BudgetSVC(count, C=model.C_, gamma=1.0, slack=slack, tol=1e-4).fit(X, Y)
    assert np.allclose(model.decision_function(X), alone.decision_function(X), atol=0.1)


@pytest.mark.parametrize(
    "given",
    [
        {"slack": "squared_l2"},
        {"slack": "linf"},
        {"slack": "l2"},
        {"slack": TopK(20)},
        {"constraints": "equality"},
        {"slack": "squared_l2", "constraints": "equality"},
        {"slack": Mahalanobis(lambda rows: np.eye(len(rows)))},
    ],
    ids=str,
)
def test_any_slack(given):
    model = fitted(Cs=[0.1, 1.0], gammas=[1.0], **given)
    C = model.C_
    expected = np.empty(len(Y))
    for train, test in FOLDS.split(X, Y):
        one = SVC(C=C, gamma=1.0, tol=1e-3, **given).fit(X[train], Y[train])
        expected[test] = one.decision_function(X[test])
    assert np.abs(model.oof_decision_function_ - expected).max() < 0.15
    assert np.nanmax(model.cv_results_["max_gap"]) <= 1e-3


def test_other_scorers():
    model = fitted(scoring="roc_auc")
    assert 0.9 < model.best_score_ < 1.0

    def own(estimator, rows, labels):
        return float(np.mean(estimator.predict(rows.copy()) == labels))

    assert fitted(scoring=own).best_score_ == fitted(stop_early=False).best_score_


def test_a_class_that_a_fold_lacks():
    labels = np.where(np.arange(60) < 3, 2, np.arange(60) % 2)
    rows = np.random.default_rng(0).normal(size=(60, 2)) + 3 * labels[:, None]
    model = SVCCV(Cs=[1.0], gammas=["scale"], cv=KFold(3)).fit(rows, labels)
    assert (model.oof_decision_function_[:3, 2] == -1.0).all()


def test_a_time_limit_leaves_a_model():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1500, 5))
    labels = rng.random(1500) < 0.5
    with pytest.warns(UserWarning, match="time_limit"):
        model = SVCCV(Cs=[1e-2, 1e3], gammas=5, time_limit=0.05).fit(points, labels)
    assert np.isfinite(model.decision_function(points)).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"gammas": 0}, "gammas must be"),
        ({"gammas": ["wide"]}, "gammas must be"),
        ({"Cs": []}, "Cs must be"),
        ({"budget": [0]}, "budget must be"),
        ({"budget": 5, "slack": "linf"}, "slack must be one of 'l1', 'l2'"),
        ({"kernel": ["rbf", "precomputed"]}, "'precomputed' goes alone"),
        ({"kernel": []}, "kernel must be"),
        ({"rule": "paper"}, "rule must be"),
        ({"calibration": "beta"}, "calibration must be"),
        ({"stop_early": 1}, "stop_early must be"),
    ],
)
def test_errors_name_the_parameter(given, message):
    with pytest.raises(ValueError, match=message):
        SVCCV(**given).fit(X, Y)


def test_lines_for_each_kernel(capsys):
    fitted(verbose=1)
    assert capsys.readouterr().out.count("SVCCV: RBF(gamma=") >= 3
