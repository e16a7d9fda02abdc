"""The rule that ends a search where going on cannot pay, by hand and in searches."""

import numpy as np
import pytest

from anynorm import SparseSVCCV
from anynorm.estimators._stopping import stop_at

PRICES = np.array([0.5, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0])
SPREAD = np.array([-0.02, 0.0, 0.02])  # a standard error of 0.0115


def stopped(*means):
    found = stop_at(PRICES[: len(means)], np.array(means)[:, None] + SPREAD)
    return None if found is None else found.reason


def test_scores_that_fell_by_a_standard_error_end_a_search():
    assert stopped(0.5, 0.6, 0.7, 0.9, 0.7) is None  # 0.9 is in the last factor of ten
    assert stopped(0.5, 0.6, 0.9, 0.88, 0.88, 0.88) == "fallen"
    assert stopped(0.5, 0.6, 0.9, 0.88, 0.88, 0.89) == "level"  # within one standard error


def test_scores_that_stay_level_end_a_search():
    assert stopped(0.5, 0.6, 0.8, 0.9, 0.902, 0.902) == "level"
    assert stopped(0.5, 0.6, 0.8, 0.9, 0.902, 0.904) is None  # a gain of 0.35 standard errors


def test_nothing_ends_a_search_that_has_learnt_nothing():
    assert stopped(0.9, 0.9, 0.8, 0.8, 0.8, 0.8, 0.8) is None
    assert stopped(0.9, 0.9, 0.9, 0.9, 0.905, 0.905, 0.905) is None


def test_the_last_factor_of_ten_must_not_be_all_there_is():
    assert stopped(0.5, 0.9, 0.7) is None
    assert stopped(0.5, 0.9, 0.7, 0.7) == "fallen"


def test_a_stop_says_where_and_why():
    scores = np.array([0.5, 0.6, 0.9, 0.8, 0.8, 0.8])[:, None] + SPREAD
    assert str(stop_at(PRICES[:6], scores)) == (
        "cross-validation ended at C = 100: from a tenth of that C on no score comes within one "
        "standard error of the best"
    )


def noisy(n=300, p=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    return X, (X[:, 0] + X[:, 1] + rng.normal(size=n) > 0).astype(int)


def test_a_search_that_stops_early_chooses_as_the_whole_one_does_up_to_there():
    X, y = noisy()
    early, whole = SparseSVCCV(cv=4).fit(X, y), SparseSVCCV(cv=4, stop_early=False).fit(X, y)
    assert early.stopped_.startswith("cross-validation ended at C = ")
    assert whole.stopped_ == ""
    assert whole.path_.stopped == "end"
    assert early.path_.n_joints < 0.9 * whole.path_.n_joints
    short, long = early.cv_results_, whole.cv_results_
    end = short["s_high"][-1]
    known = int(np.sum(long["s_high"] < end))
    np.testing.assert_allclose(short["s_low"][:known], long["s_low"][:known], atol=1e-12)
    np.testing.assert_array_equal(short["mean_test_score"][:known], long["mean_test_score"][:known])
    scores = [short[f"split{fold}_test_score"][early.best_index_] for fold in range(4)]
    error = np.std(scores, ddof=1) / 2
    assert long["mean_test_score"].max() <= early.best_score_ + error
    assert early.path_.s[-1] >= early.s_


@pytest.mark.parametrize("multiclass", ["one_C", "one_s", "each"])
def test_searches_for_several_classes_stop_early_too(multiclass):
    X, y = noisy(n=240)
    y = y + (X[:, 2] > 1.0)
    model = SparseSVCCV(cv=3, multiclass=multiclass).fit(X, y)
    assert model.stopped_
    assert model.score(X, y) > 0.6
    assert all(path.s[-1] >= s for path, s in zip(model.paths_, model.s_, strict=True))


def test_threads_do_not_change_where_a_search_stops():
    X, y = noisy(seed=1)
    one, two = SparseSVCCV(cv=3).fit(X, y), SparseSVCCV(cv=3, n_jobs=2).fit(X, y)
    assert one.stopped_ == two.stopped_
    np.testing.assert_array_equal(one.coef_, two.coef_)
