"""Dictionaries: values against scikit-learn's kernels, every kind of input, clear errors."""

import pickle
import tracemalloc
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import (
    laplacian_kernel,
    linear_kernel,
    polynomial_kernel,
    rbf_kernel,
)
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from anynorm import KernelDictionary, LinearSVC, PolynomialDictionary
from anynorm.datasets import make_skin
from anynorm.design import limits

RNG = np.random.default_rng(0)
X = np.round(8 * RNG.normal(size=(30, 4))) / 8 * (RNG.random((30, 4)) < 0.7)
X_NEW = np.round(8 * RNG.normal(size=(7, 4))) / 8

KERNELS = {
    "rbf": ({"gamma": 0.3}, partial(rbf_kernel, gamma=0.3)),
    "rbf, scaled": ({}, partial(rbf_kernel, gamma=1 / (4 * X.var()))),
    "rbf, auto": ({"gamma": "auto"}, partial(rbf_kernel, gamma=0.25)),
    "poly": (
        {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
        partial(polynomial_kernel, gamma=0.5, degree=2, coef0=1.0),
    ),
    "linear": ({"kernel": "linear"}, linear_kernel),
    "callable": ({"kernel": laplacian_kernel}, laplacian_kernel),
}
FORMS = {
    "C order": np.ascontiguousarray,
    "Fortran order": np.asfortranarray,
    "float32": lambda A: A.astype(np.float32),
    "CSR": sp.csr_array,
    "CSC": sp.csc_matrix,
    "CSR, float32": lambda A: sp.csr_matrix(A.astype(np.float32)),
    "list": lambda A: A.tolist(),
    "frame": lambda A: pd.DataFrame(A, columns=list("abcd")),
}


@parametrize_with_checks(
    [KernelDictionary("poly", None, coef0=1.0), KernelDictionary("linear", 0.5)]
)
def test_estimator_checks(estimator, check):
    check(estimator)


def test_estimator_checks_with_a_function_as_kernel():
    assert all(done["status"] != "failed" for done in check_estimator(KernelDictionary(rbf_kernel)))


# Kernels at training rows


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels_are_those_of_scikit_learn(name, form, monkeypatch):
    monkeypatch.setattr(limits, "VALUES_AT_ONCE", 50)  # many blocks, even here
    options, reference = KERNELS[name]
    dictionary = KernelDictionary(n_components=None, **options).fit(FORMS[form](X))
    found = dictionary.transform(FORMS[form](X_NEW))
    narrow = "float32" in form
    assert found.dtype == (np.float32 if narrow else np.float64)
    np.testing.assert_allclose(found, reference(X_NEW, X), rtol=1e-6 if narrow else 1e-11)
    np.testing.assert_array_equal(dictionary.component_indices_, np.arange(30))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("given", "count"), [(8, 8), (100, 30), (0.3, 9), (1, 1), (1.0, 30)])
def test_a_part_of_the_rows(given, count, form):
    dictionary = KernelDictionary(n_components=given, gamma=0.3).fit(FORMS[form](X))
    rows = dictionary.component_indices_
    assert len(set(rows.tolist())) == dictionary.n_components_ == count
    assert sorted(rows) == rows.tolist()
    components = dictionary.components_
    components = components.toarray() if sp.issparse(components) else components
    np.testing.assert_array_equal(components, X[rows])
    np.testing.assert_allclose(
        dictionary.transform(FORMS[form](X_NEW)), rbf_kernel(X_NEW, X[rows], gamma=0.3), rtol=1e-6
    )


def test_the_width_is_that_of_all_rows():
    """Which rows were drawn must not change the kernel."""
    few = KernelDictionary(n_components=3).fit(X)
    assert few.gamma_ == pytest.approx(1 / (4 * X.var()))
    assert KernelDictionary("linear").fit(X).gamma_ is None


def test_a_tiny_share_is_one_row():
    assert KernelDictionary(n_components=1e-9).fit(X).n_components_ == 1


def test_draws_are_repeatable():
    def rows(**options):
        return KernelDictionary(n_components=10, **options).fit(X).component_indices_.tolist()

    assert rows() == rows() == rows(random_state=0)
    assert rows(random_state=1) == rows(random_state=np.random.RandomState(1)) != rows()
    generator = np.random.RandomState(1)
    assert rows(random_state=generator) != rows(random_state=generator)
    before = np.random.get_state()[1].copy()
    rows()
    np.testing.assert_array_equal(np.random.get_state()[1], before)


def test_names_say_which_row():
    dictionary = KernelDictionary(n_components=3, random_state=3).fit(X)
    expected = [f"rbf_row{row}" for row in dictionary.component_indices_]
    assert dictionary.get_feature_names_out().tolist() == expected
    named = KernelDictionary(laplacian_kernel, n_components=1, random_state=3).fit(X)
    assert named.get_feature_names_out()[0].startswith("laplacian_kernel_row")
    other = KernelDictionary(partial(rbf_kernel, gamma=2.0), None).fit(X)
    assert other.get_feature_names_out()[29] == "kernel_row29"
    frame = dictionary.set_output(transform="pandas").transform(X_NEW)
    assert frame.columns.tolist() == expected


@pytest.mark.parametrize("sparse", [False, True])
def test_memory_is_that_of_the_result(sparse):
    """Distances and their exponentials are made a block at a time."""
    rows = np.random.default_rng(0).normal(size=(20_000, 5))
    given = sp.csr_array(rows) if sparse else rows
    dictionary = KernelDictionary(n_components=200).fit(given)
    dictionary.transform(given[:300])  # compiled before memory is counted
    tracemalloc.start()
    found = dictionary.transform(given)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < found.nbytes + 6 * 8 * limits.VALUES_AT_ONCE


# Polynomials


@pytest.mark.parametrize(("p", "count"), [(1, 2), (2, 5), (4, 14), (6, 27), (8, 44), (10, 65)])
def test_the_numbers_of_functions_are_the_papers(p, count):
    rows = RNG.normal(size=(5, p))
    dictionary = PolynomialDictionary().fit(rows)
    assert dictionary.transform(rows).shape == (5, count)
    assert len(set(dictionary.get_feature_names_out())) == count


@pytest.mark.parametrize("form", FORMS)
def test_inner_products_are_the_polynomial_kernel(form):
    given = FORMS[form](X)
    found = PolynomialDictionary().fit_transform(given)
    assert sp.issparse(found) == sp.issparse(given)
    assert found.dtype == (np.float32 if "float32" in form else np.float64)
    dense = found.toarray() if sp.issparse(found) else found
    kernel = polynomial_kernel(X, degree=2, gamma=1.0, coef0=1.0) - 1
    np.testing.assert_allclose(dense @ dense.T, kernel, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_columns_are_what_their_names_say(form):
    dictionary = PolynomialDictionary().fit(FORMS[form](X))
    found = dictionary.transform(FORMS[form](X))
    dense = found.toarray() if sp.issparse(found) else found
    symbols = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "d": X[:, 3], "sqrt2": np.sqrt(2)}
    for column, name in zip(dense.T, dictionary.get_feature_names_out(list("abcd")), strict=True):
        np.testing.assert_allclose(column, eval(name.replace("^", "**"), symbols), rtol=1e-6)
    if sp.issparse(found):
        assert found.format == "csr"
        assert found.has_sorted_indices
        assert found.nnz == np.count_nonzero(dense)


def test_names_come_from_the_frame():
    dictionary = PolynomialDictionary().fit(pd.DataFrame(X[:, :2], columns=["age", "size"]))
    expected = ["sqrt2*age", "sqrt2*size", "sqrt2*age*size", "age^2", "size^2"]
    assert dictionary.get_feature_names_out().tolist() == expected


def test_make_skin_has_the_same_dictionary():
    inputs, _ = make_skin(n_noise=2, random_state=0)
    basis, _ = make_skin(n_noise=2, dictionary=True, random_state=0)
    np.testing.assert_array_equal(PolynomialDictionary().fit_transform(inputs), basis)


# Among scikit-learn's tools


@pytest.mark.parametrize("dictionary", [KernelDictionary(gamma=0.5), PolynomialDictionary()])
def test_pipelines_searches_clones_and_pickles(dictionary):
    rows, y = make_skin(200, random_state=0)
    test, truth = make_skin(500, random_state=1)
    pipeline = make_pipeline(dictionary, LinearSVC())
    grid = {"linearsvc__C": [0.1, 1.0]}
    if isinstance(dictionary, KernelDictionary):
        grid["kerneldictionary__n_components"] = [20, 0.5, None]
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(rows, y)
    assert search.score(test, truth) > 0.85  # a straight line would have 0.5
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(
        again.decision_function(test), search.best_estimator_.decision_function(test)
    )
    fresh = clone(search.best_estimator_).fit(rows, y)
    np.testing.assert_array_equal(fresh.decision_function(test), again.decision_function(test))


# Errors


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("kernel", "gauss", "'linear', 'rbf', 'poly', a kernel of anynorm.kernels or a function"),
        ("kernel", "precomputed", "needs no dictionary"),
        ("kernel", None, "function of two sets"),
        ("n_components", 0, "at least 1"),
        ("n_components", -3, "at least 1"),
        ("n_components", 0.0, "(0, 1]"),
        ("n_components", 1.5, "(0, 1]"),
        ("n_components", np.nan, "(0, 1]"),
        ("n_components", True, "None (all rows)"),
        ("n_components", "all", "None (all rows)"),
        ("gamma", -1.0, "at least 0"),
        ("gamma", np.inf, "finite"),
        ("gamma", "wide", "'scale'"),
        ("gamma", None, "'scale'"),
        ("degree", -1, "at least 0"),
        ("degree", "2", "finite"),
        ("coef0", np.nan, "finite"),
        ("coef0", 10**400, "finite"),
        ("random_state", -1, "RandomState"),
    ],
)
def test_a_bad_parameter_is_named(name, value, remedy):
    dictionary = KernelDictionary().set_params(**{name: value})
    with pytest.raises(ValueError, match=rf"^{name} must be ") as caught:
        dictionary.fit(X)
    assert remedy in str(caught.value)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinite"),
        (lambda A, B: np.ones(len(A)), "one number for each pair"),
        (lambda A, B: A @ B, "could not be evaluated"),
    ],
)
def test_a_bad_kernel_says_what_is_wrong(kernel, message):
    with pytest.raises(ValueError, match=message):
        KernelDictionary(kernel).fit(X)


@pytest.mark.parametrize("dictionary", [KernelDictionary(), PolynomialDictionary()])
def test_bad_data_are_named(dictionary):
    dictionary = clone(dictionary).fit(X)
    before = dict(vars(dictionary))
    broken = X.copy()
    broken[4, 2] = np.nan
    for method in (dictionary.fit, dictionary.transform):
        with pytest.raises(ValueError, match=r"X has NaN in column 2 \(first at row 4\)"):
            method(broken)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        dictionary.transform(X[:, :3])
    assert vars(dictionary) == before
    with pytest.raises(NotFittedError):
        clone(dictionary).transform(X)
    with pytest.raises(NotFittedError):
        clone(dictionary).get_feature_names_out()


@pytest.mark.parametrize(
    "dictionary", [KernelDictionary("poly", gamma=1.0), PolynomialDictionary()]
)
@pytest.mark.parametrize("form", ["float32", "CSR, float32"])
def test_float32_that_overflows_is_an_error(dictionary, form):
    """cuml #1352: squares of float32 values became inf, and the fit went on with them."""
    given = FORMS[form](1e20 * X)
    with pytest.raises(ValueError, match=r"beyond float32\. Rescale it"):
        clone(dictionary).fit(given).transform(given)
    wide = clone(dictionary).fit(1e20 * X).transform(1e20 * X)
    assert np.isfinite(wide).all()


def test_names_of_an_earlier_frame_are_forgotten():
    for dictionary in (KernelDictionary(), PolynomialDictionary()):
        dictionary.fit(pd.DataFrame(X, columns=list("abcd")))
        assert dictionary.feature_names_in_.tolist() == list("abcd")
        assert not hasattr(dictionary.fit(X), "feature_names_in_")
