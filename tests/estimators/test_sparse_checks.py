"""scikit-learn's own estimator checks for the 1-norm SVM, none of them expected to fail."""

import pytest
from sklearn.utils.estimator_checks import (
    check_class_weight_balanced_linear_classifier,
    estimator_checks_generator,
    parametrize_with_checks,
)

from anynorm import SparseSVC
from anynorm.estimators.sparse_svc import SPARSE_LOSSES as LOSSES

WITH_INTERCEPT = [
    SparseSVC(),
    SparseSVC(intercept_scaling=1.0),
    *(SparseSVC(loss=loss, tol=1e-10) for loss in LOSSES),
    SparseSVC(loss="squared_hinge", intercept_scaling=1.0, tol=1e-10),
]
WITHOUT_INTERCEPT = [
    SparseSVC(fit_intercept=False),
    *(SparseSVC(loss=loss, fit_intercept=False, tol=1e-10) for loss in ("logistic", "absolute")),
]


@parametrize_with_checks(WITH_INTERCEPT)
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


@pytest.mark.parametrize("loss", LOSSES)
def test_the_check_for_linear_classifiers(loss):
    """Reserved by scikit-learn for subclasses of its private mixin; it holds for us too."""
    check_class_weight_balanced_linear_classifier("SparseSVC", SparseSVC(loss=loss))
