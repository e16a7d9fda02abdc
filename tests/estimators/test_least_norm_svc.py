"""LeastNormSVC: epsilon-SVR with epsilon = 0 on targets of -1 and +1, and what it promises."""

import numpy as np
import pytest
from sklearn import svm

from anynorm import SVC, LeastNormSVC
from tests.estimators.plain import noisy_classes

X, Y = noisy_classes(n=80, p=3)


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(
    "kernel", [{"gamma": 0.5}, {"kernel": "linear"}, {"kernel": "poly", "coef0": 1.0, "degree": 2}]
)
def test_it_is_libsvms_SVR_without_a_tube(kernel, C):
    weights = np.random.default_rng(0).integers(1, 4, size=80)
    gamma = kernel.get("gamma", 0.2)
    ours = LeastNormSVC(C, tol=1e-9, **kernel | {"gamma": gamma}).fit(X, Y, weights)
    theirs = svm.SVR(epsilon=0, C=C, tol=1e-9, **kernel | {"gamma": gamma})
    theirs.fit(X, 2.0 * Y - 1.0, weights)
    np.testing.assert_allclose(ours.decision_function(X), theirs.predict(X), atol=2e-3)
    assert ours.certificate_.gap <= 1e-9
    assert np.abs(ours.dual_coef_).max() <= 3 * C * (1 + 1e-12)


def test_it_is_a_corner_of_SVC():
    rows, labels = noisy_classes(n=90, p=3, n_classes=3)
    ours = LeastNormSVC(2.0, tol=1e-8).fit(rows, labels)
    same = SVC(2.0, slack="l1", constraints="equality", tol=1e-8).fit(rows, labels)
    np.testing.assert_array_equal(ours.dual_coef_, same.dual_coef_)
    np.testing.assert_array_equal(ours.intercept_, same.intercept_)


def test_duals_of_either_sign_and_rows_fitted_exactly():
    model = LeastNormSVC(1.0, gamma=2.0, tol=1e-9).fit(X, Y)
    signs = 2.0 * Y - 1.0
    a = np.zeros(80)
    a[model.support_] = model.dual_coef_[0]
    a *= signs
    residuals = 1 - signs * model.decision_function(X)
    assert (a < 0).any()
    np.testing.assert_allclose(residuals[np.abs(a) < 1 - 1e-6], 0, atol=1e-6)
    beyond = np.abs(residuals) > 1e-6
    np.testing.assert_allclose(a[beyond], np.sign(residuals[beyond]), atol=1e-9)
