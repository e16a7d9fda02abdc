"""Bad input to the kernel classifiers: an error that names the argument and the remedy."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel

from anynorm import SVC, BudgetSVC, LeastNormSVC
from anynorm.norms import L1, Mahalanobis, TopK
from tests.estimators.plain import noisy_classes
from tests.spies import replace_solver

X, Y = noisy_classes(n=20, p=3)
K = rbf_kernel(X)
MODELS = [SVC(), BudgetSVC(5), LeastNormSVC()]


@pytest.fixture(autouse=True)
def no_work(monkeypatch, request):
    """Nothing here may get as far as the solver, unless it says so."""
    if "fitted" in request.fixturenames:
        return

    def refuse(solve, problem, **options):
        raise AssertionError("the solver was called with bad input")

    replace_solver(monkeypatch, SVC, refuse)


@pytest.fixture(params=MODELS, ids=lambda model: type(model).__name__)
def fitted(request):
    return request.param.fit(X, Y)


BAD_PARAMETERS = [
    (SVC, "C", 0, "positive"),
    (SVC, "C", -1.0, "positive"),
    (LeastNormSVC, "C", 0.0, "positive"),
    (BudgetSVC, "C", np.nan, "positive"),
    (SVC, "slack", "l3", "'l1', 'l2', 'linf', 'squared_l2' or a norm of anynorm.norms"),
    (SVC, "slack", "hinge", "hinge and absolute are 'l1', squared_hinge and squared 'squared_l2'"),
    (SVC, "slack", "squared", "'squared_l2' the sum of their squares"),
    (SVC, "slack", None, "'l1', 'l2', 'linf', 'squared_l2'"),
    (SVC, "slack", TopK, "e.g. TopK(10)"),
    (BudgetSVC, "slack", "linf", "one of 'l1', 'l2'"),
    (BudgetSVC, "slack", L1(), "one of 'l1', 'l2'"),
    (SVC, "constraints", "equal", "'inequality', 'equality'"),
    (
        SVC,
        "kernel",
        "gaussian",
        "'linear', 'rbf', 'poly', 'precomputed', a kernel of anynorm.kernels or a function",
    ),
    (SVC, "kernel", None, "'linear', 'rbf', 'poly', 'precomputed'"),
    (SVC, "gamma", -1.0, "at least 0"),
    (SVC, "gamma", "big", "'scale', 'auto'"),
    (SVC, "gamma", np.nan, "at least 0"),
    (SVC, "degree", -1, "at least 0"),
    (SVC, "coef0", np.inf, "finite"),
    (SVC, "cache_size", 0, "megabytes"),
    (SVC, "cache_size", -5.0, "megabytes"),
    (SVC, "tol", 0.0, "positive"),
    (SVC, "max_iter", 0, "at least 1"),
    (SVC, "max_iter", -1, "at least 1"),
    (SVC, "time_limit", -1.0, "seconds"),
    (SVC, "n_jobs", 0, "-1 uses all cores"),
    (SVC, "class_weight", {0: -1.0}, "at least 0"),
    (SVC, "warm_start", 1, "True or False"),
    (SVC, "verbose", -1, "at least 0"),
    (BudgetSVC, "strict", "yes", "True or False"),
    *((BudgetSVC, "budget", value, "at least 1") for value in (0, -3, 0.0, 1.5, -0.1, np.nan)),
    *((BudgetSVC, "budget", value, "(0, 1]") for value in ("ten", None, True, [5], np.inf)),
]


@pytest.mark.parametrize(("Model", "name", "value", "remedy"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named(Model, name, value, remedy):
    model = (Model(5) if Model is BudgetSVC else Model()).set_params(**{name: value})
    with pytest.raises(ValueError, match=rf"^{name} must be ") as caught:
        model.fit(X, Y)
    assert remedy in str(caught.value)
    assert not hasattr(model, "support_")


def test_the_budget_is_told_as_in_the_documentation():
    with pytest.raises(ValueError, match=r"^budget must be at least 1 .* or in \(0, 1\] .*got 0\."):
        BudgetSVC(0).fit(X, Y)


def changed(array, where, value):
    array = array.copy()
    array[where] = value
    return array


BAD_KERNELS = {
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinite"),
    "infinity": (lambda A, B: np.full((len(A), len(B)), np.inf), "NaN or infinite"),
    "a vector": (lambda A, B: np.ones(len(A)), r"one number for each pair, a matrix of shape"),
    "a number": (lambda A, B: 1.0, "one number for each pair"),
    "too wide": (lambda A, B: np.ones((len(A), len(B) + 1)), "one number for each pair"),
    "one pair only": (lambda a, b: a @ b, "could not be evaluated"),
    "strings": (lambda A, B: np.full((len(A), len(B)), "k"), "could not be evaluated"),
    "not symmetric": (lambda A, B: A[:, :1] - B[:, :1].T, "not symmetric"),
}


@pytest.mark.parametrize("case", BAD_KERNELS)
def test_bad_functions_say_what_is_wrong(case):
    kernel, message = BAD_KERNELS[case]
    with pytest.raises(ValueError, match=f"kernel.*{message}"):
        SVC(kernel=kernel).fit(X, Y)


BAD_MATRICES = {
    "not square": (K[:, :5], r"square matrix.*\(20, 5\).*kernel\(X, X\) to fit"),
    "not symmetric": (changed(K, (0, 1), 5.0), r"not symmetric.*\(K \+ K.T\) / 2"),
    "NaN": (changed(K, (3, 3), np.nan), "X has NaN in column 3"),
    "sparse": (sp.csr_array(K), r"sparse.*toarray\(\)"),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_precomputed_matrices_say_what_is_wrong(case):
    given, message = BAD_MATRICES[case]
    with pytest.raises(ValueError, match=message):
        SVC(kernel="precomputed").fit(given, Y)


def test_a_norm_without_weights_says_so():
    model = SVC(slack=Mahalanobis(np.eye(20)))
    with pytest.raises(ValueError, match=r"weights cannot be used .* Mahalanobis.*repeat"):
        model.fit(X, Y, sample_weight=np.ones(20))
    with pytest.raises(ValueError, match="weights cannot be used with the norm Mahalanobis"):
        model.set_params(class_weight="balanced").fit(X, Y)


def test_a_norm_for_other_rows_says_so():
    with pytest.raises(ValueError, match="M is for 19 rows, but there are 20"):
        SVC(slack=Mahalanobis(np.eye(19))).fit(X, Y)


@pytest.mark.parametrize(
    ("given", "labels", "weights", "message"),
    [
        (changed(X, (17, 2), np.nan), Y, None, r"X has NaN in column 2 \(first at row 17\)"),
        (X, np.ones(20), None, "y has only one class"),
        (X, Y[:-1], None, "y has 19 entries but X has 20 rows"),
        (X, Y, -np.ones(20), "sample_weight must not be negative"),
        (X, Y, np.zeros(20), "sample_weight is zero for every row"),
        (X, Y, (Y == 0).astype(float), "only one class"),
    ],
)
def test_bad_data_are_named(given, labels, weights, message):
    for model in MODELS:
        with pytest.raises(ValueError, match=message):
            model.__class__(**model.get_params()).fit(given, labels, sample_weight=weights)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("method", ["predict", "decision_function"])
def test_an_unfitted_model_says_so(model, method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(model.__class__(**model.get_params()), method)(X)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X[:, :2], "X has 2 features, but .* is expecting 3 features"),
        (changed(X, (17, 2), np.nan), r"X has NaN in column 2 \(first at row 17\)"),
        (X[0], "X cannot be used: .*Reshape"),
        (X.astype(str), "X must hold numbers"),
    ],
)
def test_bad_X_for_predictions(fitted, given, message):
    for method in ("predict", "decision_function"):
        with pytest.raises(ValueError, match=f"(?s){message}"):
            getattr(fitted, method)(given)


def test_predictions_with_other_kernel_matrices(fitted):
    model = fitted.set_params(kernel="precomputed").fit(K, Y)
    try:
        with pytest.raises(ValueError, match=r"X has 19 features, but .* is expecting 20"):
            model.predict(K[:, :19])
    finally:
        model.set_params(kernel="rbf")


def test_a_kernel_that_fails_later_says_so(fitted):
    def sometimes(A, B):
        values = rbf_kernel(A, B)
        values[np.abs(A).max(axis=1) > 1e3] = np.nan
        return values

    model = SVC(kernel=sometimes).fit(X, Y)
    with pytest.raises(ValueError, match="NaN or infinite"):
        model.predict(1e4 * X)


def test_there_are_no_probabilities(fitted):
    assert not hasattr(fitted, "predict_proba")
