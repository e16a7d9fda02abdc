"""Paths that broke down, or ended where they should have gone on."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from anynorm import sparse_svm_path
from anynorm.design.limits import VERIFIED


def flat_kernel(n, gamma):
    """Columns of a wide Gaussian kernel: all of them nearly constant, and nearly the same."""
    rng = np.random.default_rng(0)
    X = (rng.random((n, 40)) < rng.uniform(0.01, 0.5, 40)).astype(float)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-3)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=n) > 0.5, 1.0, -1.0)
    return rbf_kernel(X, gamma=gamma), y


@pytest.mark.parametrize(("n", "gamma"), [(200, 1e-4), (400, 1e-3)])
def test_nearly_constant_columns_have_an_exact_path(n, gamma):
    K, y = flat_kernel(n, gamma)
    path = sparse_svm_path(K, y, max_features=60)
    assert path.gaps.max() <= VERIFIED
    for s in path.s[[1, len(path.s) // 2, -1]]:
        assert path.certificate_at(s).gap <= VERIFIED
