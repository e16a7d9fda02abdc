"""scikit-learn's own estimator checks for the walk, with nothing in expected_failed_checks."""

import pytest
from sklearn.linear_model import LogisticRegression, Ridge, RidgeClassifier
from sklearn.svm import LinearSVC as Liblinear
from sklearn.utils.estimator_checks import parametrize_with_checks

from anynorm import Reweighted, ReweightedSVC, ReweightedSVCCV
from anynorm.losses import LOSSES

ESTIMATORS = [
    ReweightedSVC(),
    ReweightedSVC(n_rounds=1),
    ReweightedSVC(prune=False, intercept_scaling=1.0),
    *(ReweightedSVC(loss=loss, tol=1e-10) for loss in LOSSES),
    ReweightedSVCCV(Cs=[0.1, 10.0], max_rounds=3, cv=2),
    Reweighted(LogisticRegression()),
    Reweighted(Liblinear(loss="hinge", random_state=0), n_rounds=2),
    Reweighted(RidgeClassifier()),
    Reweighted(Ridge()),
]


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@parametrize_with_checks(ESTIMATORS)
def test_estimator_checks(estimator, check):
    check(estimator)
