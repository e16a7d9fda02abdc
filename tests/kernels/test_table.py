"""The table of named kernels is all that anybody knows of a name."""

import numpy as np
import pytest

import anynorm.kernels
from anynorm import SVC, KernelDictionary, kernel_lasso, load_model, save_model
from anynorm.kernels import (
    KERNELS,
    RBF,
    DistanceKernel,
    FunctionKernel,
    Poly,
    Precomputed,
    kernel_of,
    takes_matrix,
)

X = np.random.default_rng(0).normal(size=(80, 3))
Y = np.where(X[:, 0] + X[:, 1] ** 2 > 0.8, "yes", "no")


class Cauchy(DistanceKernel):
    name = "cauchy"
    psd = True

    def __init__(self, gamma="scale"):
        self.gamma = gamma

    def of_distances(self, squares):
        return 1 / (1 + self.gamma * squares)


def test_a_line_in_the_table_makes_a_kernel_known_everywhere(monkeypatch, tmp_path):
    with pytest.raises(ValueError, match="kernel must be"):
        SVC(kernel="cauchy").fit(X, Y)
    monkeypatch.setitem(KERNELS, "cauchy", Cauchy)
    for make in (SVC, KernelDictionary):
        named = make(kernel="cauchy", gamma=0.7).fit(X, Y)
        given = make(kernel=Cauchy(0.7)).fit(X, Y)
        use = "decision_function" if make is SVC else "transform"
        expected = getattr(given, use)(X)
        np.testing.assert_array_equal(getattr(named, use)(X), expected)
        save_model(named, tmp_path / "model.anynorm")
        loaded = load_model(tmp_path / "model.anynorm")
        np.testing.assert_array_equal(getattr(loaded, use)(X), expected)
    assert KernelDictionary("cauchy").fit(X).get_feature_names_out()[0] == "cauchy_row0"
    coef = kernel_lasso(X[:9].T, X[20], kernel="cauchy", gamma=0.7).coef
    np.testing.assert_array_equal(coef, kernel_lasso(X[:9].T, X[20], kernel=Cauchy(0.7)).coef)


@pytest.mark.parametrize("name", KERNELS)
def test_every_named_kernel_is_public_and_known_by_its_name(name):
    kernel = KERNELS[name]()
    assert kernel.name == name
    assert getattr(anynorm.kernels, type(kernel).__name__) is type(kernel)
    assert kernel_of(name) == kernel


def test_a_named_kernel_takes_the_parameters_that_it_has():
    given = {"gamma": 0.5, "degree": 2, "coef0": 1.0}
    assert kernel_of("rbf", **given) == RBF(0.5)
    assert kernel_of("poly", **given) == Poly(0.5, 2, 1.0)
    assert kernel_of("precomputed", **given) == Precomputed()
    assert kernel_of(RBF(2.0), **given) == RBF(2.0)
    assert kernel_of(np.dot, **given) == FunctionKernel(np.dot)


def test_only_a_given_matrix_has_rows_of_kernel_values():
    assert takes_matrix("precomputed")
    assert takes_matrix(Precomputed())
    assert not any(map(takes_matrix, ("rbf", RBF(), np.dot, "unknown", None, 3)))
