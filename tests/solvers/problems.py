"""Data for the solvers' tests."""

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

BIASES = ["free", None, 1.0]


def overlapping(n=60, p=8, seed=0, shift=0.7):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(n, p)) + shift * y[:, None] * (np.arange(p) < 3)
    return X, y


@st.composite
def small_data(draw):
    """X, y, the other pieces of a problem, and a generator for what a test adds to them.

    Ties, duplicates, zero and constant columns, weights, scales; dense or sparse.
    """
    n, p = draw(st.integers(2, 12)), draw(st.sampled_from([1, 2, 4, 30]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind = draw(st.sampled_from(["normal", "whole", "binary", "repeated", "constant", "rank one"]))
    X = rng.normal(size=(n, p))
    if kind == "whole":
        X = rng.integers(-2, 3, (n, p)).astype(float)
    elif kind == "binary":
        X = rng.integers(0, 2, (n, p)).astype(float)
    elif kind == "repeated":
        X = X[rng.integers(0, max(1, n // 2), n)]
    elif kind == "constant":
        X[:, 0], X[:, -1] = 3.0, 0.0
    elif kind == "rank one":
        X = X[:, :1] * np.ones(p)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[0], y[-1] = 1.0, -1.0
    weights = None
    if draw(st.booleans()):
        weights = rng.integers(0, 4, n).astype(float)
        weights[0] = weights[-1] = 1.0
    kinds = [sp.csr_array, sp.csc_array, np.asfortranarray, np.ascontiguousarray]
    X = draw(st.sampled_from(kinds))(X * draw(st.sampled_from([1.0, 1e-3, 30.0])))
    pieces = {
        "C": draw(st.sampled_from([1e-3, 1.0, 50.0])),
        "sample_weight": weights,
        "intercept": draw(st.sampled_from(BIASES)),
    }
    return X, y, pieces, rng
