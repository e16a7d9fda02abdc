"""BudgetSVC: nu-SVMs where the budget binds, counts and shares, strict limits of the count."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.metrics.pairwise import rbf_kernel

from anynorm import SVC, BudgetSVC
from anynorm.norms import Mahalanobis, TopK, TopK2
from anynorm.problem.solution import Status
from tests.estimators.plain import noisy_classes

X, Y = noisy_classes(n=80, p=3)
X3, Y3 = noisy_classes(n=90, p=3, n_classes=3)
GAMMA = 0.3
SLACKS = pytest.mark.parametrize("slack", ["l1", "l2"])


@pytest.mark.parametrize(("budget", "C"), [(10, 0.5), (25, 0.5), (10, 5.0), (40, 0.05)])
def test_a_binding_budget_is_a_nu_SVM_rescaled(budget, C):
    """With sum(a) = B C at the optimum, a / C solves the nu-SVM of nu = B / n, up to a scale.

    libsvm scales its nu-SVM so that the margin is 1: f_nu = f / rho, where our margin's elbow,
    1 - z at the B-th largest slack z, is rho.
    """
    model = BudgetSVC(budget, C, gamma=GAMMA, tol=1e-9).fit(X, Y)
    assert np.abs(model.dual_coef_).sum() == pytest.approx(budget * C, rel=1e-9)
    theirs = svm.NuSVC(nu=budget / 80, gamma=GAMMA, tol=1e-10).fit(X, Y)
    ours, rescaled = model.decision_function(X), theirs.decision_function(X)
    margins = (2 * Y - 1) * ours
    slacks = np.sort(np.maximum(1 - margins, 0))[::-1]
    rho = 1 - slacks[budget - 1]
    np.testing.assert_allclose(rescaled * rho, ours, atol=2e-4 * np.abs(ours).max())


@SLACKS
def test_a_budget_beyond_the_rows_does_not_bind(slack):
    plain = SVC(slack=slack, gamma=GAMMA, tol=1e-8).fit(X, Y)
    for budget in (80, 81, 10**6, 1.0):
        model = BudgetSVC(budget, slack=slack, gamma=GAMMA, tol=1e-8).fit(X, Y)
        assert model.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize(("slack", "norm"), [("l1", TopK), ("l2", TopK2)])
def test_counts_and_shares(slack, norm):
    weights = np.random.default_rng(0).integers(1, 4, size=80)
    for given, k in [(20, 20), (0.25, 0.25 * weights.sum()), (np.float32(0.25), None), (1, 1)]:
        model = BudgetSVC(given, 2.0, slack=slack, gamma=GAMMA, tol=1e-8)
        model.fit(X, Y, sample_weight=weights)
        same = SVC(2.0, slack=norm(0.25 * weights.sum() if k is None else k), gamma=GAMMA, tol=1e-8)
        same.fit(X, Y, sample_weight=weights)
        assert model.certificate_.primal == pytest.approx(same.certificate_.primal, rel=1e-7)
        assert model.certificate_.status is Status.OPTIMAL


@SLACKS
def test_without_strict_both_numbers_are_the_same(slack):
    model = BudgetSVC(10, slack=slack, gamma=GAMMA).fit(X3, Y3)
    assert model.certificate_full_ == model.certificate_
    np.testing.assert_array_equal(model.n_support_full_, model.n_support_)


def strict(budget, C=2.0, **given):
    return BudgetSVC(budget, C, strict=True, **{"gamma": GAMMA, "tol": 1e-6} | given)


def objective_of(model, X, codes, kernel, weights=1.0):
    """1/2 beta'K beta + C sum of weighted slacks, over the binary problems, written out."""
    K, total = kernel(model.support_vectors_, model.support_vectors_), 0.0
    scores = kernel(X, model.support_vectors_) @ model.dual_coef_.T + model.intercept_
    for k, beta in enumerate(model.dual_coef_):
        y = np.where(codes == (1 if len(model.classes_) == 2 else k), 1.0, -1.0)
        total += 0.5 * beta @ K @ beta
        total += model.C * np.sum(weights * np.maximum(1 - y * scores[:, k], 0))
    return total


def rbf(A, B):
    return rbf_kernel(A, B, gamma=GAMMA)


@pytest.mark.parametrize("budget", [1, 0.1])
def test_strict_bounds_the_count_with_all_slacks_in_the_objective(budget):
    model = strict(budget).fit(X, Y)
    full = SVC(2.0, gamma=GAMMA, tol=1e-6).fit(X, Y)
    assert 1 <= len(model.support_) <= (8 if budget == 0.1 else budget) < len(full.support_)
    assert model.certificate_.gap <= 1e-6
    assert model.certificate_.primal == pytest.approx(objective_of(model, X, Y, rbf), rel=1e-8)
    assert model.certificate_full_.primal == model.certificate_.primal
    assert model.certificate_full_.dual == pytest.approx(full.certificate_.dual, rel=1e-5)
    np.testing.assert_array_equal(model.n_support_full_, full.n_support_)


def test_strict_changes_nothing_where_the_budget_is_kept_anyway():
    rows, labels = make_moons(100, noise=0.05, random_state=0)
    plain = SVC(10.0, gamma=2.0).fit(rows, labels)
    assert plain.n_support_.sum() <= 50
    model = BudgetSVC(50, 10.0, gamma=2.0, strict=True).fit(rows, labels)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert model.certificate_ == model.certificate_full_ == plain.certificate_


@pytest.mark.parametrize("shared", [True, False])
def test_classes_share_support_vectors_or_have_their_own(shared):
    model = strict(9, shared=shared).fit(X3, Y3)
    used = (model.dual_coef_ != 0).sum(axis=1)
    assert (used <= 9).all()
    assert (len(model.support_) <= 9) == shared
    assert model.certificate_.primal == pytest.approx(objective_of(model, X3, Y3, rbf), rel=1e-8)
    assert len(model.certificate_full_.per_class) == 3
    assert (model.n_support_ <= model.n_support_full_).all()
    threads = clone(model).set_params(n_jobs=2).fit(X3, Y3)
    np.testing.assert_array_equal(threads.dual_coef_, model.dual_coef_)


def test_weights_of_rows_and_classes_count_in_a_strict_budget():
    weights = np.random.default_rng(0).integers(1, 4, size=80).astype(float)
    model = strict(6, class_weight={1: 3.0}).fit(X, Y, sample_weight=weights)
    both = weights * np.where(Y == 1, 3.0, 1.0)
    expected = objective_of(model, X, Y, rbf, both)
    assert model.certificate_.primal == pytest.approx(expected, rel=1e-8)
    assert model.certificate_.gap <= 1e-6


@pytest.mark.parametrize("slack", ["squared_l2", "l2", "linf", TopK(6)], ids=str)
def test_a_strict_budget_has_any_slack_of_SVC(slack):
    model = strict(5, slack=slack).fit(X, Y)
    full = SVC(2.0, slack=slack, gamma=GAMMA, tol=1e-6).fit(X, Y)
    assert len(model.support_) <= 5
    assert model.certificate_.gap <= 1e-6
    assert model.certificate_full_.dual == pytest.approx(full.certificate_.dual, rel=1e-4)
    assert model.certificate_.primal >= full.certificate_.dual


def test_a_norm_for_given_rows_cannot_have_a_strict_budget():
    with pytest.raises(ValueError, match="strict=True chooses support vectors by parts of the"):
        strict(5, slack=Mahalanobis(np.eye(80))).fit(X, Y)


def test_strict_with_a_precomputed_kernel_sparse_rows_and_float32():
    plain = strict(6).fit(X, Y)
    scores = plain.decision_function(X)
    sparse = strict(6).fit(csr_array(X), Y)
    given = strict(6, kernel="precomputed").fit(rbf(X, X), Y)
    narrow = strict(6).fit(X.astype(np.float32), Y)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), scores, atol=1e-4)
    np.testing.assert_allclose(given.decision_function(rbf(X, X)), scores, atol=1e-4)
    np.testing.assert_allclose(narrow.decision_function(X), scores, atol=1e-3)


def test_a_linear_kernel_far_from_the_origin_is_in_the_span_of_the_rows_as_they_are():
    far = X + 1e4
    model = strict(2, kernel="linear", C=0.1, tol=1e-4).fit(far, Y)
    assert len(model.support_) <= 2
    scores = far @ (far[model.support_].T @ model.dual_coef_[0]) + model.intercept_
    np.testing.assert_allclose(model.decision_function(far), scores, atol=1e-4)
    assert model.score(far, Y) > 0.6


def test_the_choice_is_that_of_the_random_state():
    first, again = strict(6, random_state=3).fit(X, Y), strict(6, random_state=3).fit(X, Y)
    np.testing.assert_array_equal(first.dual_coef_, again.dual_coef_)
    others = [strict(6, random_state=seed).fit(X, Y) for seed in range(4, 9)]  # some find the same
    assert any(first.support_.tolist() != other.support_.tolist() for other in others)


def test_a_warm_start_compares_the_support_vectors_of_before():
    model = strict(6, warm_start=True).fit(X, Y)
    assert len(model._duals[0]) == 80
    again = model.set_params(C=2.1).fit(X, Y)
    assert again.certificate_full_.gap < 1
    assert again.certificate_.gap <= 1e-6
    assert len(again.support_) <= 6


def test_predictions_cost_what_the_budget_says():
    model = strict(7).fit(X, Y)
    assert model._sums.width == len(model.support_vectors_) == model.dual_coef_.shape[1] <= 7
