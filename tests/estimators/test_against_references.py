"""The optimum is the one that other packages find, where they solve the same problem."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.svm import SVC, SVR, LinearSVR
from sklearn.svm import LinearSVC as Liblinear

from anynorm import LinearSVC
from anynorm.losses import LOSSES, get_loss
from anynorm.problem import Problem
from tests.estimators.plain import noisy_classes, objective, objective_of
from tests.references import solve_primal

CS = [0.01, 1.0, 100.0]


def binary(n=80, p=4, seed=1):
    X, y = noisy_classes(n, p, seed=seed)
    return X, np.where(y == 1, 1.0, -1.0)


def check_optimum(model, reference, *, rtol=1e-6, atol=1e-7):
    """Compare with a (coef, intercept) found by another package."""
    coef, intercept = reference
    np.testing.assert_allclose(model.coef_.ravel(), np.ravel(coef), rtol=rtol, atol=atol)
    np.testing.assert_allclose(model.intercept_, np.ravel(intercept), rtol=rtol, atol=atol)


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("intercept", [{"fit_intercept": False}, {"intercept_scaling": 2.5}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_liblinear(loss, intercept, C):
    X, y = binary()
    peer = Liblinear(C=C, loss=loss, tol=1e-10, max_iter=1_000_000, **intercept).fit(X, y)
    ours = LinearSVC(C=C, loss=loss, tol=1e-10, **intercept).fit(X, y)
    assert ours.certificate_.gap <= 1e-10
    theirs = objective(
        loss, X, y, C, peer.coef_[0], np.ravel(peer.intercept_)[0], None, ours.intercept_scaling
    )
    assert ours.certificate_.primal <= theirs * (1 + 1e-9)
    assert theirs <= ours.certificate_.primal * (1 + 1e-6)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_logistic_regression(fit_intercept, C):
    X, y = binary()
    peer = LogisticRegression(
        C=C, fit_intercept=fit_intercept, solver="newton-cholesky", tol=1e-12, max_iter=1000
    ).fit(X, y)
    ours = LinearSVC(C=C, loss="logistic", fit_intercept=fit_intercept, tol=1e-12).fit(X, y)
    check_optimum(ours, (peer.coef_, peer.intercept_))


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_ridge(fit_intercept, C):
    """1/2 ||w||^2 + C sum (1 - m)^2 is Ridge on targets of -1 and +1 with alpha = 1 / (2C)."""
    X, y = binary()
    peer = Ridge(alpha=1 / (2 * C), fit_intercept=fit_intercept, solver="cholesky").fit(X, y)
    ours = LinearSVC(C=C, loss="squared", fit_intercept=fit_intercept, tol=1e-13).fit(X, y)
    check_optimum(ours, (peer.coef_, np.atleast_1d(peer.intercept_)))


@pytest.mark.parametrize("C", CS)
def test_libsvm_has_the_same_unpenalised_intercept(C):
    X, y = binary()
    peer = SVC(C=C, kernel="linear", tol=1e-9).fit(X, y)
    ours = LinearSVC(C=C, tol=1e-11).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.coef_, rtol=1e-5, atol=1e-6)
    theirs = objective("hinge", X, y, C, peer.coef_[0], peer.intercept_[0])
    assert ours.certificate_.dual <= theirs * (1 + 1e-12)
    assert theirs == pytest.approx(ours.certificate_.primal, rel=1e-7)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_absolute_loss_is_regression_on_the_signs(C):
    """|1 - y f| = |y - f| for y of -1 and +1: support vector regression with epsilon = 0."""
    X, y = binary()
    free = SVR(C=C, kernel="linear", epsilon=0.0, tol=1e-9).fit(X, y)
    ours = LinearSVC(C=C, loss="absolute", tol=1e-11).fit(X, y)
    np.testing.assert_allclose(ours.coef_, free.coef_, rtol=1e-5, atol=1e-6)
    none = LinearSVR(C=C, epsilon=0.0, fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    theirs = objective("absolute", X, y, C, none.fit(X, y).coef_)
    ours = LinearSVC(C=C, loss="absolute", fit_intercept=False, tol=1e-11).fit(X, y)
    assert ours.certificate_.primal <= theirs * (1 + 1e-10)
    assert theirs <= ours.certificate_.primal * (1 + 1e-4)


@pytest.mark.parametrize("C", CS)
@pytest.mark.parametrize("intercept", ["free", None, 0.5])
@pytest.mark.parametrize("loss", LOSSES)
def test_every_problem_by_an_interior_point_solver(loss, intercept, C):
    X, y = binary(n=40, seed=2)
    weights = np.random.default_rng(0).uniform(0.5, 3.0, size=40)
    weights[::7] = 0.0
    problem = Problem(
        y=y, C=C, loss=get_loss(loss), X=X, sample_weight=weights, intercept=intercept
    )
    reference = solve_primal(problem)
    ours = LinearSVC(
        C=C,
        loss=loss,
        fit_intercept=intercept is not None,
        intercept_scaling=None if intercept == "free" else intercept,
        tol=1e-10,
    ).fit(X, y, sample_weight=weights)
    assert ours.certificate_.gap <= 1e-10
    assert ours.certificate_.dual <= reference.value * (1 + 1e-7)
    assert ours.certificate_.primal <= reference.value * (1 + 1e-7)
    assert objective_of(ours, X, y, weights) == pytest.approx(ours.certificate_.primal, rel=1e-12)
    check_optimum(ours, (reference.coef, ours.intercept_), rtol=1e-3, atol=1e-4)
    if intercept is None:
        assert ours.intercept_ == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "p"), [(30, 60), (60, 30)])
def test_sparse_and_dense_problems_of_either_shape(n, p, loss):
    rng = np.random.default_rng(5)
    X = sp.random_array((n, p), density=0.2, random_state=rng, format="csr")
    y = np.where(rng.random(n) < 0.4, -1.0, 1.0)
    reference = solve_primal(Problem(y=y, C=3.0, loss=get_loss(loss), X=X, intercept="free"))
    for given in (X, X.tocsc(), X.toarray()):
        ours = LinearSVC(C=3.0, loss=loss, tol=1e-9).fit(given, y)
        assert ours.certificate_.gap <= 1e-9
        assert ours.certificate_.primal == pytest.approx(reference.value, rel=1e-7)
        np.testing.assert_allclose(ours.coef_[0], reference.coef, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
def test_intercept_is_optimal_for_the_coefficients(loss):
    """Moving b alone cannot lower the objective, even at a loose tol."""
    X, y = binary(n=61)
    model = LinearSVC(loss=loss, tol=1e-2).fit(X, y)
    best = objective_of(model, X, y)
    for step in (-1e-3, 1e-3, -0.1, 0.1):
        moved = objective(loss, X, y, 1.0, model.coef_[0], model.intercept_[0] + step)
        assert best <= moved * (1 + 1e-12)
