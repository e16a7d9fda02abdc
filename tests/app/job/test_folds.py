"""Folds: classes spread, groups together, refusals before any work."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import StandardScaler

from anynorm.app.job import FitOptions
from anynorm.app.job.folds import fold_numbers, make_splits, numbered_splits
from anynorm.app.job.options import OptionError
from anynorm.app.tables import Preparation
from anynorm.estimators._prepared_folds import PreparedFolds


def test_every_row_is_held_out_once_and_classes_are_spread():
    y = np.repeat([0, 1], [40, 10])
    splits, notes = make_splits(y, None, FitOptions(cv=5, seed=0))
    assert sorted(np.concatenate([test for _, test in splits])) == list(range(50))
    assert [int(y[test].sum()) for _, test in splits] == [2] * 5
    assert not notes


def test_groups_are_never_on_both_sides():
    y, groups = np.tile([0, 1], 30), np.repeat(np.arange(12), 5)
    splits, _ = make_splits(y, groups, FitOptions(cv=4, seed=0))
    assert all(not set(groups[train]) & set(groups[test]) for train, test in splits)


def test_the_seed_decides():
    y = np.tile([0, 1], 20)
    one, same, other = (make_splits(y, None, FitOptions(cv=4, seed=seed))[0] for seed in (0, 0, 1))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(one, same, strict=True))
    assert not all(np.array_equal(a[1], b[1]) for a, b in zip(one, other, strict=True))


def test_leave_one_out_takes_rows_or_groups():
    y = np.tile([0, 1], 6)
    assert len(make_splits(y, None, FitOptions(cv="loo", seed=0))[0]) == 12
    assert len(make_splits(y, np.repeat(np.arange(4), 3), FitOptions(cv="loo", seed=0))[0]) == 4


def test_fewer_folds_for_a_small_class_are_noted():
    splits, notes = make_splits(np.repeat([0, 1], [20, 3]), None, FitOptions(cv=5, seed=0))
    assert len(splits) == 3
    assert notes == ["3 folds instead of 5: the smaller class has 3 rows."]


@pytest.mark.parametrize(
    ("y", "groups"),
    [
        (np.repeat([0, 1], [20, 1]), None),
        (np.tile([0, 1], 5), np.zeros(10)),
        (np.repeat([0, 1], 5), np.repeat([0, 1], 5)),
    ],
)
def test_what_cannot_be_divided_is_refused(y, groups):
    with pytest.raises(OptionError, match=r"^--cv 5 .*--test FILE"):
        make_splits(y, groups, FitOptions(cv=5, seed=0))


def test_the_preparation_of_a_fold_knows_its_training_rows_alone():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 3)) * [1, 10, 100], columns=list("abc"))
    splits, _ = make_splits(np.tile([0, 1], 10), None, FitOptions(cv=4, seed=0))
    folds = PreparedFolds(frame, splits, Preparation())
    for fold, (train, test) in enumerate(splits):
        scaler = StandardScaler().fit(frame.to_numpy()[train])
        np.testing.assert_allclose(folds.train(fold), scaler.transform(frame.to_numpy()[train]))
        np.testing.assert_allclose(folds.test(fold), scaler.transform(frame.to_numpy()[test]))


@pytest.mark.parametrize("cv", [3, "loo"])
@pytest.mark.parametrize("groups", [None, np.arange(24) // 2])
def test_folds_are_known_by_their_numbers(cv, groups):
    splits, _ = make_splits(np.tile([0, 0, 1, 1], 6), groups, FitOptions(cv=cv))
    again = numbered_splits(fold_numbers(splits, 24))
    assert len(again) == len(splits)
    for one, other in zip(splits, again, strict=True):
        np.testing.assert_array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[1], other[1])
