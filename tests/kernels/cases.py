"""Rows, kernels with references that are not ours, and ways to store rows."""

import numpy as np
import scipy.sparse as sp
from sklearn.metrics.pairwise import linear_kernel, polynomial_kernel, rbf_kernel

from anynorm.design import limits
from anynorm.kernels import gram, sums

RNG = np.random.default_rng(0)
X = RNG.normal(size=(13, 4)) * (RNG.random((13, 4)) < 0.7)
X_NEW = RNG.normal(size=(5, 4))
BETA = RNG.normal(size=13) * (RNG.random(13) < 0.6)

KERNELS = {
    "linear": ({"kernel": "linear"}, linear_kernel),
    "rbf": ({"kernel": "rbf", "gamma": 0.3}, lambda A, B: rbf_kernel(A, B, gamma=0.3)),
    "poly": (
        {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
        lambda A, B: polynomial_kernel(A, B, gamma=0.5, degree=2, coef0=1.0),
    ),
    "callable": (
        {"kernel": lambda A, B: rbf_kernel(A, B, gamma=2.0)},
        lambda A, B: rbf_kernel(A, B, gamma=2.0),
    ),
}
FORMS = {
    "dense": lambda A: A,
    "fortran": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_matrix,
}


def many_blocks_even_here(monkeypatch):
    monkeypatch.setattr(limits, "VALUES_AT_ONCE", 20)
    monkeypatch.setattr(gram.Gram, "_columns_at_once", 4)
    monkeypatch.setattr(limits, "CACHED_BYTES", 100)
    monkeypatch.setattr(sums, "_CACHED_COLUMNS", 3)
    monkeypatch.setattr(sums, "_ROWS_PER_TASK", 4)
