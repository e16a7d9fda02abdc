"""Kernel matrices: blocks against scikit-learn's kernels, sparse and dense, and clear errors."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.kernels.gram import Gram, make_gram
from tests.kernels.cases import BETA, FORMS, KERNELS, X_NEW, X, many_blocks_even_here


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", KERNELS)
def test_blocks_products_and_predictions_agree_with_scikit_learn(name, form, monkeypatch):
    many_blocks_even_here(monkeypatch)
    options, reference = KERNELS[name]
    gram = make_gram(FORMS[form](X), **options)
    K = reference(X, X)
    assert gram.n == 13
    assert np.allclose(gram.block(slice(None), slice(None)), K, rtol=1e-12, atol=1e-13)
    assert np.allclose(gram.block([3, 0, 7], slice(2, 9, 3)), K[np.ix_([3, 0, 7], [2, 5, 8])])
    assert np.allclose(gram.diagonal(), np.diag(K))
    assert np.allclose(gram.matvec(BETA), K @ BETA)
    new = FORMS[form](X_NEW) if form != "csc" else sp.csr_matrix(X_NEW)
    assert np.allclose(gram.cross(new), reference(X_NEW, X))
    assert np.allclose(gram.cross(new, [1, 4]), reference(X_NEW, X[[1, 4]]))
    assert np.allclose(gram.predict(new, BETA), reference(X_NEW, X) @ BETA)
    assert np.array_equal(gram.predict(new, np.zeros(13)), np.zeros(5))


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_kernels_travel_to_other_processes(name):
    gram = make_gram(X, **KERNELS[name][0])
    assert np.array_equal(pickle.loads(pickle.dumps(gram)).matvec(BETA), gram.matvec(BETA))


def test_semidefiniteness_is_known_or_checked_by_the_spectrum():
    assert Gram.linear(X).semidefinite is True
    assert Gram.poly(X, coef0=-1.0).psd is None
    assert Gram.precomputed(X @ X.T).semidefinite is True
    assert Gram.precomputed(np.array([[0.0, 1.0], [1.0, 0.0]])).semidefinite is False
    assert Gram.from_callable(lambda A, B: -(A @ B.T), X, psd=False).semidefinite is False


def test_new_rows_may_be_stored_in_another_way():
    """Rows far from the origin could be dense in `fit` and not sparse afterwards."""
    gram = Gram.rbf(X + 7.0, 0.1)
    assert gram.origin is not None
    found = gram.cross(sp.csr_array(X_NEW + 7.0))
    np.testing.assert_array_equal(found, gram.cross(X_NEW + 7.0))


def test_a_part_is_the_matrix_of_its_rows():
    rows = np.array([9, 2, 5])
    for gram in (Gram.rbf(X + 9.0, 0.3), Gram.precomputed(X @ X.T), Gram.linear(X)):
        K = gram.block(slice(None), slice(None))
        part = gram.part(rows)
        np.testing.assert_allclose(
            part.block(slice(None), slice(None)), K[np.ix_(rows, rows)], rtol=1e-13
        )
        np.testing.assert_allclose(part.matvec(np.ones(3)), K[np.ix_(rows, rows)].sum(axis=1))
