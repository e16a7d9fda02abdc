"""BudgetSVC: nu-SVMs where the budget binds, counts and shares, strict pruning."""

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import clone
from sklearn.datasets import make_moons

from anynorm import SVC, BudgetSVC
from anynorm.norms import TopK, TopK2
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


@SLACKS
@pytest.mark.parametrize("budget", [1, 2, 3, 8, 0.1])
def test_strict_keeps_the_largest_and_fits_them_again(budget, slack):
    model = BudgetSVC(budget, 2.0, slack=slack, gamma=GAMMA, tol=1e-6, strict=True).fit(X, Y)
    full = clone(model).set_params(strict=False).fit(X, Y)
    count = max(2, 8 if budget == 0.1 else budget)
    assert model.certificate_full_ == full.certificate_
    np.testing.assert_array_equal(model.n_support_full_, full.n_support_)
    assert full.n_support_.sum() > count >= model.n_support_.sum()
    assert (model.n_support_ >= 1).all()
    sizes = np.zeros(80)
    sizes[full.support_] = np.abs(full.dual_coef_[0])
    kept = np.argsort(-sizes, kind="stable")[:count]
    if len(np.unique(Y[kept])) == 1:
        kept[-1] = np.argmax(np.where(Y[kept[0]] != Y, sizes, -1))
    assert np.isin(model.support_, kept).all()
    norm = (TopK if slack == "l1" else TopK2)(0.1 * 80 if budget == 0.1 else budget)
    again = SVC(2.0, slack=norm, gamma=GAMMA, tol=1e-6).fit(X[kept], Y[kept])
    assert model.certificate_.primal == pytest.approx(again.certificate_.primal, rel=1e-5)
    assert model.certificate_.gap <= 1e-6
    ours, same = model.decision_function(X), again.decision_function(X)
    np.testing.assert_allclose(ours, same, atol=1e-2 * np.abs(same).max())


def test_strict_changes_nothing_where_the_budget_is_kept_anyway():
    rows, labels = make_moons(100, noise=0.05, random_state=0)
    model = BudgetSVC(50, 10.0, gamma=2.0, strict=True).fit(rows, labels)
    plain = BudgetSVC(50, 10.0, gamma=2.0).fit(rows, labels)
    assert plain.n_support_.sum() <= 50
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    assert model.certificate_ == model.certificate_full_


def test_strict_holds_in_each_binary_problem():
    model = BudgetSVC(6, 2.0, gamma=GAMMA, strict=True).fit(X3, Y3)
    assert ((model.dual_coef_ != 0).sum(axis=1) <= 6).all()
    for k, row in enumerate(model.dual_coef_):
        used = Y3[model.support_[row != 0]] == k
        assert used.any()
        assert not used.all()
    threads = BudgetSVC(6, 2.0, gamma=GAMMA, strict=True, n_jobs=2).fit(X3, Y3)
    np.testing.assert_array_equal(threads.support_, model.support_)


def test_strict_with_a_precomputed_kernel_and_sparse_rows():
    from scipy.sparse import csr_array
    from sklearn.metrics.pairwise import rbf_kernel

    plain = BudgetSVC(6, 2.0, gamma=GAMMA, strict=True, tol=1e-8).fit(X, Y)
    scores = plain.decision_function(X)
    sparse = BudgetSVC(6, 2.0, gamma=GAMMA, strict=True, tol=1e-8).fit(csr_array(X), Y)
    K = rbf_kernel(X, gamma=GAMMA)
    given = BudgetSVC(6, 2.0, kernel="precomputed", strict=True, tol=1e-8).fit(K, Y)
    np.testing.assert_allclose(sparse.decision_function(X), scores, atol=1e-5)
    np.testing.assert_allclose(given.decision_function(K), scores, atol=1e-5)


def test_warm_starts_come_from_the_fit_to_all_rows():
    model = BudgetSVC(6, 2.0, gamma=GAMMA, strict=True, warm_start=True).fit(X, Y)
    model.set_params(C=2.1).fit(X, Y)
    cold = BudgetSVC(6, 2.1, gamma=GAMMA, strict=True).fit(X, Y)
    assert model.certificate_full_.primal == pytest.approx(cold.certificate_full_.primal, rel=1e-3)
    assert model.certificate_full_.gap <= 1e-4
