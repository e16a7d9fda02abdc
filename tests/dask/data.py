"""Data of the tests: noisy classes, columns away from zero, and blocks of them."""

import dask
import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

LOSSES = ["hinge", "squared_hinge", "logistic", "squared", "absolute"]


def rows(n=1200, p=6, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) + 2.0
    scores = (X - 2.0) @ rng.standard_normal((p, n_classes)) + rng.standard_normal((n, n_classes))
    return X, np.array(["low", "mid", "top"])[scores.argmax(axis=1)]


def sparse_rows(n=1500, p=4500, seed=0):
    """More columns than matrices are made of."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, p, density=0.004, format="csr", random_state=rng)
    return X, (X @ rng.standard_normal(p) + 0.3 * rng.standard_normal(n) > 0).astype(int)


def in_blocks(X, sizes):
    """A Dask array of the rows of X, dense or sparse, in blocks of these sizes."""
    ends = np.cumsum(sizes)
    assert ends[-1] == X.shape[0]
    meta = sp.csr_matrix((0, X.shape[1])) if sp.issparse(X) else None
    parts = [
        da.from_delayed(
            dask.delayed(X[end - size : end]), (size, X.shape[1]), dtype=X.dtype, meta=meta
        )
        for size, end in zip(sizes, ends, strict=True)
    ]
    return da.concatenate(parts)


def same_optimum(apart, whole, tol):
    """Whether two fits of one problem agree as far as their certificates say."""
    one, other = apart.certificate_, whole.certificate_
    assert one.status == "optimal"
    assert one.dual <= other.primal * (1 + 1e-12)
    assert other.dual <= one.primal * (1 + 1e-12)
    assert abs(one.primal - other.primal) <= 2 * tol * other.primal
    assert one.zero_primal == pytest.approx(other.zero_primal, rel=1e-12)
