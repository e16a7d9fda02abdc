"""Errors and their standard errors, against scikit-learn, formulas and resampling."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from anynorm.app.job.measures import estimate, predicted, score


def data(n=120, seed=0, classes=2):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    if classes == 2:
        return y, np.round(rng.normal(y - 0.5, 1.0), 1)  # rounded: ties
    return y, rng.normal(np.eye(classes)[y], 1.0)


def rows_of(y):
    return [np.arange(len(y))]


def test_the_error_has_the_binomial_standard_error_and_wilsons_interval():
    y, scores = data()
    found = estimate("error", y, scores, rows_of(y))
    wrong = int((predicted(scores) != y).sum())
    assert found.value == pytest.approx(wrong / len(y))
    share = wrong / len(y)
    assert found.standard_error == pytest.approx(np.sqrt(share * (1 - share) / (len(y) - 1)))
    reference = binomtest(wrong, len(y)).proportion_ci(method="wilson")
    assert (found.low, found.high) == pytest.approx((reference.low, reference.high))


def test_no_error_at_all_still_has_an_upper_bound():
    y = np.repeat([0, 1], 10)
    found = estimate("error", y, np.where(y == 1, 1.0, -1.0), rows_of(y))
    assert found.value == found.standard_error == 0.0
    assert found.high == pytest.approx(binomtest(0, 20).proportion_ci(method="wilson").high)


@pytest.mark.parametrize("classes", [2, 3])
def test_balanced_error_is_scikit_learns(classes):
    y, scores = data(classes=classes)
    found = estimate("balanced", y, scores, rows_of(y))
    assert found.value == pytest.approx(1 - balanced_accuracy_score(y, predicted(scores)))


def test_auc_with_ties_is_scikit_learns():
    y, scores = data()
    assert score("auc", y, scores) == pytest.approx(roc_auc_score(y, scores))


def test_auc_of_several_classes_is_the_mean_of_each_against_the_rest():
    y, scores = data(classes=3)
    each = [roc_auc_score(y == k, scores[:, k]) for k in range(3)]
    assert score("auc", y, scores) == pytest.approx(np.mean(each))


def test_auc_compares_no_scores_of_different_folds():
    y, scores = data()
    parts = np.array_split(np.arange(len(y)), 3)
    moved = scores.copy()
    for k, rows in enumerate(parts):
        moved[rows] += 100.0 * k
    expected = np.mean([roc_auc_score(y[rows], scores[rows]) for rows in parts])
    assert estimate("auc", y, moved, parts).value == pytest.approx(1 - expected)


@pytest.mark.parametrize("scoring", ["error", "balanced", "auc"])
def test_standard_errors_are_those_of_repeated_samples(scoring):
    drawn = [
        estimate(scoring, *pair, rows_of(pair[0])) for pair in (data(seed=s) for s in range(400))
    ]
    spread = np.std([each.value for each in drawn], ddof=1)
    assert np.mean([each.standard_error for each in drawn]) == pytest.approx(spread, rel=0.1)


@pytest.mark.parametrize("scoring", ["error", "balanced", "auc"])
def test_rows_given_three_times_as_groups_have_the_error_of_single_rows(scoring):
    y, scores = data(60)
    once = estimate(scoring, y, scores, rows_of(y))
    again = np.tile(np.arange(60), 3)
    thrice = estimate(scoring, y[again], scores[again], rows_of(again), again)
    assert thrice.value == pytest.approx(once.value)
    assert thrice.standard_error == pytest.approx(once.standard_error)
