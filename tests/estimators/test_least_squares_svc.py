"""LeastSquaresSVC: scikit-learn's checks, its attributes, leave-one-out, input of every kind."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut, cross_val_predict
from sklearn.utils.estimator_checks import parametrize_with_checks

from anynorm import LeastSquaresSVC
from anynorm.problem.solution import Status
from tests.estimators.plain import noisy_classes
from tests.spies import seconds_to_obey


@parametrize_with_checks(
    [
        LeastSquaresSVC(solver="cg", tol=1e-10),
        LeastSquaresSVC(solver="cholesky", kernel="linear", leave_one_out=True),
        LeastSquaresSVC(kernel="poly", coef0=1.0, C=0.1),
    ]
)
def test_estimator_checks(estimator, check):
    check(estimator)


# What a fit gives


@pytest.mark.parametrize("solver", ["auto", "cholesky", "cg"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_scores_are_those_of_the_duals(n_classes, solver):
    X, y = noisy_classes(n=80, n_classes=n_classes)
    model = LeastSquaresSVC(C=2.0, gamma=0.1, solver=solver, tol=1e-8).fit(X, y)
    K = rbf_kernel(X, model.support_vectors_, gamma=0.1)
    scores = K @ model.dual_coef_.T + model.intercept_
    expected = scores.ravel() if n_classes == 2 else scores
    np.testing.assert_allclose(model.decision_function(X), expected, atol=1e-9)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.n_support_.sum() == len(model.support_) == 80
    assert model.dual_coef_.shape == (1 if n_classes == 2 else n_classes, 80)
    assert len(model.certificate_.per_class) == len(model.intercept_)
    assert model.certificate_.status is Status.OPTIMAL
    # beta = 2 C y xi, row by row, is the system itself.
    for k in range(len(model.intercept_)):
        positive = model.classes_[1 if n_classes == 2 else k]
        signs = np.where(y[model.support_] == positive, 1.0, -1.0)
        residuals = signs - scores[model.support_, k]
        np.testing.assert_allclose(model.dual_coef_[k], 4.0 * residuals, atol=1e-3)


def test_linear_kernel_is_ridge_regression_on_the_labels():
    X, y = noisy_classes(n=70, p=4)
    model = LeastSquaresSVC(C=0.3, kernel="linear", tol=1e-12).fit(X, y)
    ridge = RidgeClassifier(alpha=1 / 0.6, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), ridge.decision_function(X), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_leave_one_out_is_scikit_learns_cross_validation(n_classes, C):
    X, y = noisy_classes(n=40, n_classes=n_classes)
    model = LeastSquaresSVC(C=C, gamma=0.2, leave_one_out=True, tol=1e-8).fit(X, y)
    options = {"cv": LeaveOneOut(), "method": "decision_function"}
    scores = cross_val_predict(LeastSquaresSVC(C=C, gamma=0.2, tol=1e-8), X, y, **options)
    np.testing.assert_allclose(model.loo_decision_function_, scores, rtol=1e-6, atol=1e-6)
    labels = (scores > 0).astype(int) if n_classes == 2 else scores.argmax(axis=1)
    assert model.loo_error_ == pytest.approx(np.mean(labels != y))
    assert model.loo_score_ == pytest.approx(np.mean(labels == y))


def test_leave_one_out_with_weights_and_the_only_row_of_a_class():
    X, y = noisy_classes(n=30, n_classes=3)
    y[y == 2] = 1
    y[7] = 2
    w = np.random.default_rng(0).integers(0, 3, size=30).astype(float)
    w[7] = 1.5
    weights = {0: 1.0, 1: 0.5, 2: 2.0}
    model = LeastSquaresSVC(C=3.0, gamma=0.2, leave_one_out=True, class_weight=weights)
    model.fit(X, y, sample_weight=w)
    wrong = model.classes_[model.loo_decision_function_.argmax(axis=1)] != y
    assert model.loo_error_ == pytest.approx(w @ wrong / w.sum())
    for i in (0, 3, 7):
        rest = np.arange(30) != i
        for k in range(3):
            again = LeastSquaresSVC(C=3.0, gamma=0.2)
            row_weights = w * np.array([weights[label] for label in y])
            if row_weights[rest] @ (y[rest] == k) > 0:
                again.fit(X[rest], y[rest] == k, sample_weight=row_weights[rest])
                expected = again.decision_function(X[[i]])[0]
            else:
                expected = -1.0
            assert model.loo_decision_function_[i, k] == pytest.approx(expected, abs=1e-9)


def test_leave_one_out_attributes_are_those_of_the_last_fit():
    X, y = noisy_classes(n=20)
    model = LeastSquaresSVC(leave_one_out=True).fit(X, y)
    assert model.loo_decision_function_.shape == (20,)
    model.set_params(leave_one_out=False).fit(X, y)
    assert not hasattr(model, "loo_decision_function_")
    assert not hasattr(model, "loo_error_")


def test_weights_are_repetitions():
    X, y = noisy_classes(n=40, n_classes=3)
    w = np.random.default_rng(0).integers(0, 4, size=40)
    weighted = LeastSquaresSVC(tol=1e-8).fit(X, y, sample_weight=w)
    repeated = LeastSquaresSVC(tol=1e-8).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-9
    )


# Input


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.asfortranarray])
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly"])
def test_storage_does_not_matter(kind, kernel):
    X, y = noisy_classes(n=60)
    options = {"kernel": kernel, "gamma": 0.1, "tol": 1e-8}
    plain = LeastSquaresSVC(**options).fit(X, y)
    other = LeastSquaresSVC(**options).fit(kind(X), y)
    np.testing.assert_allclose(
        other.decision_function(kind(X)), plain.decision_function(X), atol=1e-8
    )


def test_float32_rows_give_the_same_model():
    X, y = noisy_classes(n=60)  # exact in float32
    plain = LeastSquaresSVC(gamma=0.125).fit(X, y)
    narrow = LeastSquaresSVC(gamma=0.125).fit(X.astype(np.float32), y)
    np.testing.assert_allclose(narrow.dual_coef_, plain.dual_coef_, atol=1e-9)
    np.testing.assert_allclose(
        narrow.decision_function(X.astype(np.float32)), plain.decision_function(X), atol=1e-3
    )


def test_precomputed_and_callable_kernels_are_the_named_one():
    X, y = noisy_classes(n=60)
    fit, new = X[:40], X[40:]
    named = LeastSquaresSVC(gamma=0.3, tol=1e-8).fit(fit, y[:40])
    given = LeastSquaresSVC(kernel="precomputed", tol=1e-8).fit(rbf_kernel(fit, gamma=0.3), y[:40])
    called = LeastSquaresSVC(kernel=lambda A, B: rbf_kernel(A, B, gamma=0.3), tol=1e-8)
    called.fit(fit, y[:40])
    expected = named.decision_function(new)
    scores = given.decision_function(rbf_kernel(new, fit, gamma=0.3))
    np.testing.assert_allclose(scores, expected, atol=1e-9)
    np.testing.assert_allclose(called.decision_function(new), expected, atol=1e-9)


def test_clones_and_pickles():
    X, y = noisy_classes(n=30, n_classes=3)
    model = LeastSquaresSVC(C=3.0, leave_one_out=True).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert clone(model).get_params() == model.get_params()


def test_indefinite_kernels_warn_and_predict():
    X, y = noisy_classes(n=50)
    model = LeastSquaresSVC(C=100.0, kernel=lambda A, B: np.tanh(A @ B.T - 1.0))
    with pytest.warns(ConvergenceWarning, match="not positive semidefinite"):
        model.fit(X, y)
    assert model.certificate_.status is Status.UNCERTIFIED
    assert set(model.predict(X)) <= {0, 1}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"C": 0.0}, "C must be"),
        ({"solver": "svd"}, "solver must be one of 'auto', 'cholesky', 'cg'"),
        ({"leave_one_out": 1}, "leave_one_out must be True or False"),
        ({"leave_one_out": True, "solver": "cg"}, "Use solver='cholesky'"),
        ({"kernel": "sigmoid"}, "kernel must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"cache_size": 0}, "cache_size must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"kernel": lambda A, B: A @ B.T * np.nan}, "NaN"),
        ({"kernel": lambda A, B: A}, "one number for each pair"),
        ({"kernel": "precomputed"}, "square"),
    ],
)
def test_errors_say_what_to_do(options, message):
    X, y = noisy_classes(n=20)
    with pytest.raises(ValueError, match=message):
        LeastSquaresSVC(**options).fit(X, y)


# Limits


def test_a_time_limit_is_kept_and_said():
    X, y = noisy_classes(n=3000)
    model = LeastSquaresSVC(time_limit=1e-6, leave_one_out=True)
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        model.fit(X, y)
    assert model.certificate_.status is Status.TIME_LIMIT
    assert np.isnan(model.loo_error_)


@pytest.mark.parametrize("solver", ["cholesky", "cg"])
def test_control_c_is_heard(solver):
    X, y = noisy_classes(n=6000, p=10)
    model = LeastSquaresSVC(C=1e4, solver=solver, tol=1e-14, leave_one_out=solver == "cholesky")
    assert seconds_to_obey(lambda: model.fit(X, y)) < 1.0
    assert not hasattr(model, "classes_")


def test_progress_is_printed(capsys):
    X, y = noisy_classes(n=40, n_classes=3)
    LeastSquaresSVC(verbose=2).fit(X, y)
    printed = capsys.readouterr().out
    assert "class 2 against the rest: iteration 1" in printed
    assert "40 rows, 5 features" in printed


def test_warm_starts_save_iterations_of_conjugate_gradients():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 5))
    labels = (rows[:, 0] + rng.normal(size=400) > 0).astype(int)
    cold = LeastSquaresSVC(C=1.05, solver="cg", tol=1e-8).fit(rows, labels)
    warm = LeastSquaresSVC(C=1.0, solver="cg", tol=1e-8, warm_start=True).fit(rows, labels)
    warm.set_params(C=1.05).fit(rows, labels)
    assert warm.n_iter_ < cold.n_iter_
    assert warm.certificate_.gap <= 1e-8
    np.testing.assert_allclose(
        warm.decision_function(rows), cold.decision_function(rows), atol=1e-3
    )
    assert warm.fit(rows[:300], labels[:300]).certificate_.gap <= 1e-8  # another shape: anew
