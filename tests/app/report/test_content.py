"""Reports say what does not fit together before anything is written."""

import numpy as np
import pytest

from anynorm import sparse_svm_path
from anynorm.app.report import (
    BudgetReport,
    ClassView,
    Evaluation,
    GenericReport,
    PathReport,
    WalkReport,
)


@pytest.fixture(scope="module")
def path():
    return sparse_svm_path([[-1.0, 0.5], [1.0, 0.5], [2.0, -1.0]], [0, 1, 1])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"oof_s": [0.0, 1.0]}, "both oof_s and oof_scores"),
        ({"oof_s": [0.0], "oof_scores": np.zeros((1, 3))}, "needs target"),
        (
            {"oof_s": [0.0, 1.0], "oof_scores": np.zeros((2, 4)), "target": [True, False, True]},
            r"oof_scores of ClassView has shape \(2, 4\), not \(2, 3\)",
        ),
        ({"cv_s": [1.0, 0.5], "cv_error": [0.1, 0.2]}, "cv_s of ClassView must be finite numbers"),
        ({"cv_s": [0.0, 0.5], "cv_error": [0.1]}, r"cv_error of ClassView has shape \(1,\)"),
        ({"picks": {"best": 0.5}, "chosen": "fewest"}, "one of the picks .best.; got 'fewest'"),
        ({"training_scores": np.zeros((3, 1))}, "training_scores of ClassView"),
    ],
)
def test_a_class_view_names_what_is_wrong(path, more, message):
    with pytest.raises(ValueError, match=message):
        ClassView("a", path, **more)


def test_a_path_report_names_what_is_wrong(path):
    with pytest.raises(ValueError, match="at least one ClassView"):
        PathReport(title="t", classes=[])
    with pytest.raises(ValueError, match="feature_names of PathReport has 3 names for 2"):
        PathReport(title="t", classes=[ClassView("a", path)], feature_names=["a", "b", "c"])
    views = [ClassView("a", path, target=[True] * n) for n in (2, 3)]
    with pytest.raises(ValueError, match="same rows and features"):
        PathReport(title="t", classes=views)


def test_other_reports_name_what_is_wrong():
    with pytest.raises(ValueError, match="chosen_round must be from 1 to 2"):
        WalkReport(
            title="t", objectives=[2.0, 1.0], coefs=np.zeros((2, 1, 3)), class_names="ab",
            chosen_round=3,
        )  # fmt: skip
    with pytest.raises(ValueError, match=r"coefs of WalkReport has shape \(2, 3\)"):
        WalkReport(title="t", objectives=[2.0, 1.0], coefs=np.zeros((2, 3)), class_names="ab")
    with pytest.raises(ValueError, match="n_support of BudgetReport"):
        BudgetReport(title="t", budgets=[1, 2], n_support=[1], accuracy=[0.5, 0.6])
    with pytest.raises(ValueError, match="chosen must be a place among the 2 budgets"):
        BudgetReport(title="t", budgets=[1, 2], n_support=[1, 2], accuracy=[0.5, 0.6], chosen=2)
    with pytest.raises(ValueError, match="do not go with 3 class_names"):
        Evaluation("abc", [0, 1, 2], [0.1, 0.2, 0.3])
    with pytest.raises(ValueError, match=r"scales of GenericReport has shape \(2,\), not \(3\)"):
        GenericReport(title="t", coefs=np.zeros((1, 3)), scales=[1.0, 2.0])
