"""Bad input: an error that names the argument and the remedy, before any work."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

import anynorm.solvers.linear
from anynorm import LinearSVC
from tests.estimators.plain import noisy_classes

X, Y = noisy_classes(n=20, p=3)


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Nothing here may get as far as the solver."""

    def refuse(problem, **options):
        raise AssertionError("the solver was called with bad input")

    monkeypatch.setattr(anynorm.solvers.linear, "solve_linear", refuse)


def changed(array, where, value):
    array = array.copy()
    array[where] = value
    return array


BAD_PARAMETERS = [
    *(("C", value, "positive") for value in (-1, 0, 0.0, np.nan, np.inf, -np.inf, "1", None, True)),
    ("C", [1.0], "positive"),
    ("C", 10**400, "positive"),
    ("loss", "hing", "'hinge', 'squared_hinge', 'absolute', 'squared', 'logistic'"),
    ("loss", None, "'hinge'"),
    ("loss", ["hinge"], "'hinge'"),
    ("fit_intercept", "yes", "True or False"),
    ("fit_intercept", None, "True or False"),
    ("intercept_scaling", 0, "positive"),
    ("intercept_scaling", -1.0, "positive"),
    ("intercept_scaling", np.nan, "positive"),
    ("intercept_scaling", "1", "positive"),
    ("class_weight", "balance", "'balanced'"),
    ("class_weight", 2.0, "dict"),
    ("class_weight", {0: -1.0}, "at least 0"),
    ("class_weight", {0: np.nan}, "finite"),
    ("class_weight", {0: "heavy"}, "finite"),
    ("class_weight", {7: 1.0}, "labels in y are 0, 1"),
    ("class_weight", {0: 1.0, "1": 2.0}, "labels in y are 0, 1"),
    ("tol", 0.0, "positive"),
    ("tol", -1e-3, "positive"),
    ("tol", np.nan, "positive"),
    ("tol", "tight", "positive"),
    ("max_iter", 0, "at least 1"),
    ("max_iter", -1, "at least 1"),
    ("max_iter", 10.5, "integer"),
    ("max_iter", None, "integer"),
    ("time_limit", 0, "positive"),
    ("time_limit", -2.0, "positive"),
    ("time_limit", np.nan, "positive"),
    ("time_limit", "1s", "seconds"),
    ("warm_start", 1, "True or False"),
    ("n_jobs", 0, "-1 uses all cores"),
    ("n_jobs", 1.5, "integer"),
    ("n_jobs", "all", "integer"),
    ("random_state", -1, "integer from 0"),
    ("random_state", 2**32, "integer from 0"),
    ("random_state", 1.0, "RandomState"),
    ("random_state", np.random.default_rng(0), "RandomState"),
    ("verbose", -1, "at least 0"),
    ("verbose", "loud", "integer"),
]


@pytest.mark.parametrize(("name", "value", "remedy"), BAD_PARAMETERS)
def test_a_bad_parameter_is_named(name, value, remedy):
    model = LinearSVC().set_params(**{name: value})  # accepted until fit, as in scikit-learn
    with pytest.raises(ValueError, match=rf"^{name} ") as caught:
        model.fit(X, Y)
    assert remedy in str(caught.value)
    assert not hasattr(model, "coef_")


BAD_X = {
    "NaN": (changed(X, (17, 2), np.nan), r"X has NaN in column 2 \(first at row 17\)", "Imputer"),
    "infinity": (changed(X, (3, 1), np.inf), r"X has infinity in column 1 \(first at row 3", "fin"),
    "-infinity": (changed(X, (3, 1), -np.inf), r"X has infinity in column 1 \(first at", "finite"),
    "NaN, float32": (changed(X.astype("f4"), (4, 0), np.nan), "X has NaN in column 0", "Imputer"),
    "NaN, Fortran": (changed(np.asfortranarray(X), (9, 1), np.nan), "NaN in column 1", "row 9"),
    "NaN in CSR": (changed(sp.csr_array(X), (8, 2), np.nan), r"NaN in column 2 \(first", "row 8"),
    "NaN in CSC": (changed(sp.csc_array(X), (8, 2), np.nan), r"NaN in column 2 \(first", "row 8"),
    "NaN in two columns": (
        changed(changed(X, (17, 2), np.nan), (5, 1), np.nan),
        r"X has NaN in column 1 \(first at row 5, and in 1 more column\)",
        "SimpleImputer",
    ),
    "NaN in a frame": (
        pd.DataFrame(changed(X, (17, 1), np.nan), columns=["age", "VIM_Hs.42", "size"]),
        r"X has NaN in column 'VIM_Hs.42' \(first at row 17\)",
        "sklearn.impute.SimpleImputer, or drop the rows",
    ),
    "missing in a nullable frame": (
        pd.DataFrame(changed(X, (2, 0), np.nan), columns=list("abc")).convert_dtypes(),
        "X has NaN in column 'a'",
        "SimpleImputer",
    ),
    "too large": (changed(X, (6, 0), 1e200), "X has a value beyond 1e.75 in column 0", "Scaler"),
    "complex": (X + 1j, "X is complex", r"X.real, X.imag"),
    "complex, sparse": (sp.csr_array(X + 1j), "X is complex", r"X.real, X.imag"),
    "strings": (np.full(X.shape, "a"), "X must hold numbers", "OneHotEncoder"),
    "strings of numbers": (X.astype(str), "X must hold numbers", r"X.astype(float)"),
    "list of strings": ([["a", "b"]] * 20, "X must hold numbers", "OneHotEncoder"),
    "objects that are strings": (changed(X.astype(object), (0, 0), "a"), "X must hold", "'a'"),
    "a text column": (pd.DataFrame({"a": ["x"] * 20, "b": Y}), "X must hold numbers", "OneHot"),
    "dates": (np.full(X.shape, "2020-01-01", dtype="M8[D]"), "X must hold numbers", "datetime"),
    "no rows": (X[:0], "X cannot be used: .*0 sample", "minimum of 1"),
    "no columns": (X[:, :0], "X cannot be used: .*0 feature", "minimum of 1"),
    "one dimension": (X[:, 0], "X cannot be used: Expected 2D", "reshape(-1, 1)"),
    "three dimensions": (X[:, :, None], "X cannot be used: .*dim 3", "<= 2"),
    "a scalar": (3.0, "X cannot be used: Expected 2D", "Reshape"),
    "ragged rows": ([[1, 2], [3]] * 10, "X must be a table", "same length"),
}


@pytest.mark.parametrize("case", BAD_X)
def test_bad_X_is_named(case):
    given, message, remedy = BAD_X[case]
    model = LinearSVC()
    with pytest.raises(ValueError, match=message) as caught:
        model.fit(given, Y)
    assert remedy in str(caught.value)
    assert not hasattr(model, "coef_")
    assert not hasattr(model, "n_features_in_")


def test_a_broken_sparse_matrix_is_refused_rather_than_read():
    broken = sp.csr_array(X)
    broken.indices[5] = 99
    with pytest.raises(ValueError, match=r"X is a broken sparse matrix.*outside 0\.\.2"):
        LinearSVC().fit(broken, Y)


def test_an_object_that_is_no_number_is_a_type_error():
    with pytest.raises(TypeError, match="must be a string or a real number"):
        LinearSVC().fit(changed(X.astype(object), (0, 0), {}), Y)


BAD_Y = {
    "missing": (None, "requires y", "one class label per row"),
    "too short": (Y[:-1], "y has 19 entries but X has 20 rows", "one label per row"),
    "too long": (np.append(Y, 1), "y has 21 entries but X has 20 rows", "one label per row"),
    "empty": ([], "y has 0 entries", "one label per row"),
    "one class": (np.ones(20), r"y has only one class \(1.0\)", "at least two"),
    "one class of strings": (["a"] * 20, r"y has only one class \('a'\)", "at least two"),
    "NaN": (changed(Y.astype(float), 4, np.nan), r"y has NaN or None \(first at row 4\)", "Drop"),
    "infinity": (changed(Y.astype(float), 4, np.inf), r"y has infinity \(first at row 4", "Drop"),
    "None": (changed(Y.astype(object), 7, None), r"y has NaN or None \(first at row 7", "Drop"),
    "NA": (
        pd.Series(Y).astype("string").where(np.arange(20) != 7),
        r"y has NaN or None \(first at row 7",
        "Drop",
    ),
    "numbers": (X[:, 0] + 0.1234, "y must hold class labels .*continuous", "y > 0"),
    "complex": (Y + 1j, "y is complex", "integers or strings"),
    "two columns": (np.column_stack([Y, Y]), "y should be a 1d array", "shape"),
    "mixed types": (changed(np.array(["a"] * 20, dtype=object), 3, 1), "y m", "str"),
    "sparse": (sp.csr_array(Y[:, None]), "y must be a 1-D array", "toarray"),
}


@pytest.mark.parametrize("case", BAD_Y)
def test_bad_y_is_named(case):
    given, message, remedy = BAD_Y[case]
    with pytest.raises(ValueError, match=message) as caught:
        LinearSVC().fit(X, given)
    assert remedy in str(caught.value)


ONES = np.ones(20)
BAD_WEIGHTS = {
    "negative": (changed(ONES, 3, -1), "row 3 has -1", "weight 0"),
    "all zero": (0 * ONES, "zero for every row", "positive"),
    "zero": (0.0, "zero for every row", "positive"),
    "NaN": (changed(ONES, 3, np.nan), "row 3 has nan", "weight 0"),
    "infinity": (changed(ONES, 3, np.inf), "row 3 has inf", "weight 0"),
    "too short": (ONES[:-1], r"shape \(19,\) but X has 20 rows", "one weight per row"),
    "two columns": (np.ones((20, 2)), r"shape \(20, 2\)", "1-D"),
    "complex": (ONES + 1j, "real numbers", "one per row"),
    "strings": (["heavy"] * 20, "real numbers", "one per row"),
    "objects": ([object()] * 20, "must hold numbers", "one per row"),
    "one class left": (Y.astype(float), "only one class", "at least two classes"),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights_are_named(case):
    given, message, remedy = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=f"^sample_weight .*{message}") as caught:
        LinearSVC().fit(X, Y, sample_weight=given)
    assert remedy in str(caught.value)


def test_class_weights_that_leave_one_class():
    with pytest.raises(ValueError, match="class_weight leave too little: only one class"):
        LinearSVC(class_weight={0: 0.0}).fit(X, Y)


def test_class_weights_and_sample_weights_that_leave_nothing():
    with pytest.raises(ValueError, match="no class has rows of positive weight"):
        LinearSVC(class_weight={0: 0.0}).fit(X, Y, sample_weight=(Y == 0).astype(float))


@pytest.mark.parametrize(
    ("C", "weight"), [(1e200, 1e200), (1e308, None), (1e-300, None), (1e-60, 1e-60), (1.0, 1e-200)]
)
def test_C_and_weights_beyond_what_float64_can_square(C, weight):
    with pytest.raises(ValueError, match=r"^C=1.* times the total weight .* divide sample_weight"):
        LinearSVC(C=C).fit(X, Y, sample_weight=weight)


def test_one_row():
    with pytest.raises(ValueError, match="only one class"):
        LinearSVC().fit(X[:1], Y[:1])


def fitted():
    model = LinearSVC()
    model.coef_, model.intercept_ = np.ones((1, 3)), np.zeros(1)
    model.classes_, model.n_features_in_ = np.array([0, 1]), 3
    return model


@pytest.mark.parametrize("method", ["predict", "decision_function"])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (changed(X, (17, 2), np.nan), r"X has NaN in column 2 \(first at row 17\)"),
        (X[:, :2], "X has 2 features, but LinearSVC is expecting 3 features"),
        (X + 1j, "X is complex"),
        (X.astype(str), "X must hold numbers"),
        (X[0], "X cannot be used: .*Reshape"),
    ],
)
def test_bad_X_for_predictions(method, given, message):
    with pytest.raises(ValueError, match=f"(?s){message}"):
        getattr(fitted(), method)(given)


def test_large_values_are_no_matter_for_predictions():
    scores = fitted().decision_function(changed(X, (0, 0), 1e300))
    assert scores[0] == 1e300


@pytest.mark.parametrize("method", ["sparsify", "densify"])
def test_nothing_to_convert_before_fit(method):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(LinearSVC(), method)()


def test_no_probabilities():
    assert not hasattr(fitted(), "predict_proba")
