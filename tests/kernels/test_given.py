"""Kernels that are given: their matrix or a function of rows, and what can be wrong with them."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics.pairwise import rbf_kernel

from anynorm.kernels.gram import Gram, make_gram
from tests.kernels.cases import BETA, X_NEW, X


def test_precomputed_kernels_are_the_matrix():
    K = rbf_kernel(X, gamma=0.7)
    gram = make_gram(K, "precomputed")
    assert np.array_equal(gram.block([2, 5], [1]), K[[2, 5]][:, [1]])
    assert np.allclose(gram.matvec(BETA), K @ BETA)
    assert np.array_equal(gram.diagonal(), np.ones(13))
    new = rbf_kernel(X_NEW, X, gamma=0.7)
    assert np.allclose(gram.predict(new, BETA), new @ BETA)
    with pytest.raises(ValueError, match="must have 13 columns"):
        gram.cross(np.ones((2, 12)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN or infinite"),
        (lambda A, B: np.ones(len(A)), "matrix of shape"),
        (lambda A, B: A @ B, "could not be evaluated"),
        (lambda A, B: A @ B.T + np.arange(len(A))[:, None], "not symmetric"),
        ("gaussian", "kernel must be 'linear'"),
    ],
)
def test_bad_kernels_say_what_is_wrong(kernel, message):
    with pytest.raises(ValueError, match=message):
        make_gram(X, kernel)


@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((2, 3)), "square"),
        (np.array([[1.0, 2.0], [0.0, 1.0]]), "not symmetric"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "NaN or infinite"),
    ],
)
def test_bad_precomputed_matrices_say_what_is_wrong(K, message):
    with pytest.raises(ValueError, match=message):
        Gram.precomputed(K)


@pytest.mark.parametrize(
    "rows", [X.astype(np.float32), X, sp.csr_array(X)], ids=["float32", "float64", "csr"]
)
def test_functions_are_symmetric_up_to_the_rounding_of_their_own_type(rows):
    """On some processors float32 products of (A, B) are rounded in another way than of (B, A)."""

    def rounded(A, B):
        wide = np.exp((A @ B.T).toarray() if sp.issparse(A) else np.asarray(A @ B.T, float))
        return wide.astype(np.float32) * np.float32(1 + 1e-6 * (A[0, 0] > B[0, 0]))

    assert make_gram(rows, rounded).n == 13
    with pytest.raises(ValueError, match="not symmetric"):
        make_gram(X, lambda A, B: rounded(A, B).astype(float))


def test_float32_matrices_are_symmetric_up_to_their_own_rounding():
    K = rbf_kernel(X, gamma=0.7).astype(np.float32)
    K[0, 1] *= np.float32(1 + 1e-6)
    assert Gram.precomputed(K).n == 13
    with pytest.raises(ValueError, match="not symmetric"):
        Gram.precomputed(K.astype(np.float64))
