"""scikit-learn's own estimator checks for the kernel classifiers, none expected to fail."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from anynorm import SVC, BudgetSVC, LeastNormSVC
from anynorm.norms import TopK


def one_plus_square(A, B):
    """A callable kernel for dense and sparse rows."""
    products = A @ B.T
    return (1.0 + np.asarray(getattr(products, "toarray", lambda: products)())) ** 2


CHECKED = [
    SVC(),
    SVC(slack=TopK(7), constraints="equality"),
    SVC(slack="squared_l2", kernel="poly", coef0=1.0),
    SVC(kernel=one_plus_square),
    SVC(kernel="linear", slack="l2", tol=1e-10),
    SVC(kernel="precomputed"),
    BudgetSVC(3),
    BudgetSVC(0.5, slack="l2", tol=1e-10),
    BudgetSVC(5, strict=True),
    LeastNormSVC(),
]


@parametrize_with_checks(CHECKED)
def test_estimator_checks(estimator, check):
    check(estimator)


def checks_of_the_largest_slack():
    """All checks but one, which wants every row given to the heavier of two overlapping classes.

    The largest slack does not depend on the weights of rows, but for those of weight 0.
    """
    for instance, check in estimator_checks_generator(SVC(slack="linf")):
        name = getattr(check, "func", check).__name__
        if name != "check_class_weight_classifiers":
            yield pytest.param(instance, check, id=name)


@pytest.mark.parametrize(("estimator", "check"), list(checks_of_the_largest_slack()))
def test_estimator_checks_of_the_largest_slack(estimator, check):
    check(estimator)
