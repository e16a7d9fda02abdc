"""Features of the span of some rows: their products are the kernel's, in memory or not."""

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.kernels.gram import Gram
from anynorm.kernels.landmarks import LandmarkDesign, Landmarks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 3))
ROWS = np.array([3, 30, 7, 11, 49, 20])
K = np.exp(-0.4 * ((X[:, None] - X) ** 2).sum(axis=2))
GRAMS = {
    "dense": Gram.rbf(X, 0.4),
    "far": Gram.rbf(X + 1000.0, 0.4),
    "sparse": Gram.rbf(sp.csr_array(X), 0.4),
    "precomputed": Gram.precomputed(K),
}


@pytest.mark.parametrize("gram", GRAMS.values(), ids=GRAMS)
def test_features_have_the_products_of_the_projected_kernel(gram):
    landmarks = Landmarks.of(gram, ROWS)
    assert sorted(landmarks.rows) == sorted(ROWS)
    Z = landmarks.features(np.arange(50))
    exact = K[:, ROWS] @ np.linalg.solve(K[np.ix_(ROWS, ROWS)], K[ROWS])
    np.testing.assert_allclose(Z @ Z.T, exact, atol=1e-9)
    w = RNG.normal(size=6)
    np.testing.assert_allclose(K[:, landmarks.rows] @ landmarks.weights(w), Z @ w, atol=1e-8)


@pytest.mark.parametrize("gram", GRAMS.values(), ids=GRAMS)
def test_a_design_that_is_not_stored_has_the_same_products(gram):
    landmarks = Landmarks.of(gram, ROWS)
    lazy, stored = landmarks.design(memory=50 * 6 * 8 - 1), landmarks.design(memory=50 * 6 * 8)
    assert isinstance(lazy, LandmarkDesign)
    assert not isinstance(stored, LandmarkDesign)
    w, a, some = RNG.normal(size=6), RNG.normal(size=50), np.array([1, 4, 40])
    a[10:20] = 0.0
    scale = RNG.uniform(0.5, 2.0, size=6)
    for one, other in ((lazy, stored), (lazy.scaled(scale), stored.scaled(scale))):
        for mine, theirs in (
            (one.matvec(w), other.matvec(w)),
            (one.matvec(w, rows=some), other.matvec(w, rows=some)),
            (one.matvec(np.outer(w, [1, 2])), other.matvec(np.outer(w, [1, 2]))),
            (one.rmatvec(a), other.rmatvec(a)),
            (one.rmatvec(np.outer(a, [1, 2])), other.rmatvec(np.outer(a, [1, 2]))),
            (one.rmatvec(a[some], rows=some), other.rmatvec(a[some], rows=some)),
            (one.dense_rows(some), other.dense_rows(some)),
            (one.take_rows(some).dense(), other.take_rows(some).dense()),
            (one.dense_columns(np.array([0, 5])), other.dense_columns(np.array([0, 5]))),
            (one.take_columns(np.array([2])).dense(), other.take_columns(np.array([2])).dense()),
            (one.row_norms_squared(), other.row_norms_squared()),
            (one.column_norms_squared(), other.column_norms_squared()),
            (one.weighted_gram(some, a[some] ** 2), other.weighted_gram(some, a[some] ** 2)),
        ):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)
    assert lazy.entries_at(some, np.array([0, 1, 2])) == pytest.approx(
        stored.entries_at(some, np.array([0, 1, 2]))
    )
    assert lazy.entries() == stored.entries() == 300


def test_rows_in_the_span_of_others_are_left_out():
    rows = np.vstack([X[:4], X[:4], np.zeros((1, 3))])
    linear = Landmarks.of(Gram.linear(rows), np.arange(9))
    assert len(linear.rows) == 3
    assert len(set(Landmarks.of(Gram.rbf(rows, 1.0), np.arange(9)).rows % 4)) == 4
    assert len(Landmarks.of(Gram.linear(np.zeros((3, 2))), np.arange(3)).rows) == 0
