"""scikit-learn's own estimator checks, with nothing in expected_failed_checks."""

import pytest
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.svm import LinearSVC as Liblinear
from sklearn.utils.estimator_checks import (
    check_class_weight_balanced_linear_classifier,
    estimator_checks_generator,
    parametrize_with_checks,
)

from anynorm import (
    SVCCV,
    ConstrainedLassoCV,
    LinearSVC,
    Reweighted,
    ReweightedSVC,
    SparseSVC,
    SparseSVCCV,
)
from anynorm.losses import LOSSES
from tests.estimators.public import ESTIMATORS, made

AS_THEY_ARE = [made(Model, Cs=[0.1, 10.0], max_rounds=3, cv=2) for Model in ESTIMATORS]
WITH_INTERCEPT = [
    LinearSVC(intercept_scaling=1.0),
    *(LinearSVC(loss=loss, tol=1e-10) for loss in LOSSES),
    LinearSVC(loss="squared_hinge", intercept_scaling=1.0, tol=1e-10),
    SparseSVC(intercept_scaling=1.0),
    *(SparseSVC(loss=loss, tol=1e-10) for loss in LOSSES),
    SparseSVC(loss="squared_hinge", intercept_scaling=1.0, tol=1e-10),
    SparseSVCCV(cv=2, rule="one_se", max_features=5),
    SparseSVCCV(cv=2, rule="fewest", scoring="balanced_accuracy"),
    SparseSVCCV(cv=2, preprocessor=StandardScaler(with_mean=False)),
    SVCCV(Cs=[1.0], gammas=1, cv=2, preprocessor=MaxAbsScaler()),
    ConstrainedLassoCV(cv=2, preprocessor=StandardScaler(with_mean=False)),
    ReweightedSVC(n_rounds=1),
    ReweightedSVC(prune=False, intercept_scaling=1.0),
    *(ReweightedSVC(loss=loss, tol=1e-10) for loss in LOSSES),
    Reweighted(Liblinear(loss="hinge", random_state=0), n_rounds=2),
    Reweighted(RidgeClassifier()),
    Reweighted(Ridge()),
]
WITHOUT_INTERCEPT = [
    LinearSVC(fit_intercept=False),
    *(LinearSVC(loss=loss, fit_intercept=False, tol=1e-10) for loss in ("hinge", "absolute")),
    SparseSVC(fit_intercept=False),
    *(SparseSVC(loss=loss, fit_intercept=False, tol=1e-10) for loss in ("logistic", "absolute")),
]


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@parametrize_with_checks([*AS_THEY_ARE, *WITH_INTERCEPT])
def test_estimator_checks(estimator, check):
    check(estimator)


def checks_without_intercept():
    """All checks but one, which wants every row given to the heavier of two overlapping classes.

    A hyperplane through the origin cannot do that: scikit-learn's LinearSVC fails it too when it is
    given fit_intercept=False.
    """
    for estimator in WITHOUT_INTERCEPT:
        for instance, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            if name != "check_class_weight_classifiers":
                yield pytest.param(instance, check, id=f"{estimator}-{name}")


@pytest.mark.parametrize(("estimator", "check"), list(checks_without_intercept()))
def test_estimator_checks_without_intercept(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        *(LinearSVC(loss=loss) for loss in LOSSES),
        *(SparseSVC(loss=loss) for loss in LOSSES),
    ],
    ids=str,
)
def test_the_check_for_linear_classifiers(estimator):
    """Reserved by scikit-learn for subclasses of its private mixin; it holds for us too."""
    check_class_weight_balanced_linear_classifier(type(estimator).__name__, estimator)
