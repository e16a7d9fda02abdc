"""Data for the benchmarks, from fixed seeds, and the folder in which processes share them."""

import pathlib
from typing import Any

import numpy as np
import scipy.sparse as sp


def dense_classification(
    n: int, p: int, *, informative: int = 10, flip: float = 0.05, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian features, the first ones informative, a share of the labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    k = min(informative, p)
    w = np.zeros(p)
    w[:k] = rng.choice([-1.0, 1.0], k) * rng.uniform(0.5, 1.5, k)
    y = np.where(X @ w + 0.3 * rng.standard_normal(n) > 0, 1.0, -1.0)
    y[rng.random(n) < flip] *= -1
    return X, y


def microarray(
    n: int, p: int, *, informative: int = 30, shift: float = 0.8, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Few rows and many columns in correlated groups, standardised; the first ones informative."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) < int(0.7 * n), 1.0, -1.0)
    groups = rng.standard_normal((n, max(1, p // 50)))
    X = 0.6 * groups[:, rng.integers(0, groups.shape[1], p)] + 0.8 * rng.standard_normal((n, p))
    X[:, :informative] += shift * y[:, None]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = rng.permutation(n)
    return np.ascontiguousarray(X[order]), y[order]


def sparse_text(
    n: int = 50_000,
    p: int = 50_000,
    *,
    row_entries: int = 75,
    informative: int = 500,
    flip: float = 0.05,
    seed: int = 0,
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Text-like CSR: words by a power law, tf-idf weights, rows of unit norm."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(p) + 10.0) ** 1.05
    cumulative = np.cumsum(frequency / frequency.sum())
    words = np.searchsorted(cumulative, rng.random((n, 2 * row_entries)))
    words = np.minimum(words, p - 1)
    rows = np.repeat(np.arange(n), 2 * row_entries)
    counts = sp.csr_matrix((np.ones(rows.size), (rows, words.ravel())), shape=(n, p))
    counts.sum_duplicates()

    # Keep at most row_entries words of each row, drawn at random.
    row_of = np.repeat(np.arange(n), np.diff(counts.indptr))
    order = np.argsort(row_of + rng.random(counts.nnz))
    rank = np.arange(counts.nnz) - counts.indptr[row_of]
    keep = np.zeros(counts.nnz, dtype=bool)
    keep[order[rank < row_entries]] = True

    word, count, row = counts.indices[keep], counts.data[keep], row_of[keep]
    documents = np.bincount(word, minlength=p)
    value = (1 + np.log(count)) * (np.log((1 + n) / (1 + documents)) + 1)[word]
    value /= np.sqrt(np.bincount(row, weights=value**2, minlength=n))[row]
    X = sp.csr_matrix((value, (row, word)), shape=(n, p))
    X.sort_indices()

    w = np.zeros(p)
    w[rng.choice(min(5000, p), min(informative, p), replace=False)] = rng.standard_normal(
        min(informative, p)
    )
    scores = X @ w
    y = np.where(scores - np.median(scores) > 0, 1.0, -1.0)
    y[rng.random(n) < flip] *= -1
    return X, y


def save(folder: pathlib.Path, name: str, X: np.ndarray | sp.csr_matrix, y: np.ndarray) -> None:
    """Keep a data set for the processes of this run."""
    np.save(folder / f"{name}.y.npy", y)
    if sp.issparse(X):
        sp.save_npz(folder / f"{name}.npz", X, compressed=False)
    else:
        np.save(folder / f"{name}.npy", X)


def load(folder: pathlib.Path, name: str) -> tuple[Any, np.ndarray]:
    """Read a data set that `save` kept."""
    y = np.load(folder / f"{name}.y.npy")
    if (folder / f"{name}.npz").exists():
        return sp.load_npz(folder / f"{name}.npz"), y
    return np.load(folder / f"{name}.npy"), y
