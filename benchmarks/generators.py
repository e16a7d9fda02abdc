"""Data for the benchmarks, from fixed seeds, and the folder in which processes share them."""

import dataclasses
import pathlib
from collections.abc import Callable
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


def word_counts(n: int, p: int, *, tfidf: bool = False, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Counts of words by a power law, a fifth of them leaning to one class; perhaps tf-idf."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    rate = 40.0 / np.log(p) / (np.arange(p) + 5.0)
    lean = np.where(rng.random(p) < 0.2, rng.normal(size=p), 0.0)
    X = sp.csr_matrix(rng.poisson(rate * np.exp(0.5 * y[:, None] * lean)).astype(float))
    return (_tfidf(X) if tfidf else X), y


def topics(n: int, p: int, *, classes: int = 3, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Counts of words by a power law likewise, a fifth of them leaning to or from each class."""
    rng = np.random.default_rng(seed)
    y = rng.integers(classes, size=n)
    rate = 40.0 / np.log(p) / (np.arange(p) + 5.0)
    lean = np.where(rng.random((classes, p)) < 0.2, rng.normal(size=(classes, p)), 0.0)
    return sp.csr_matrix(rng.poisson(rate * np.exp(0.5 * lean[y])).astype(float)), y


def newsgroups(n: int, p: int, *, tfidf: bool = False, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of four newsgroups, two against two, and their p most frequent words."""
    from anynorm.datasets import load_dataset

    X, group = load_dataset("news20_train", dtype=np.float64, return_X_y=True)
    rows = np.flatnonzero(np.isin(group, [0, 15, 18, 19]))
    rows = np.sort(np.random.default_rng(seed).permutation(rows)[:n])
    X = sp.csr_matrix(X[rows])
    words = np.sort(np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")[:p])
    X, y = X[:, words], np.where(group[rows] < 18, 1.0, -1.0)
    return (_tfidf(X) if tfidf else X), y


def _tfidf(X: sp.csr_matrix) -> sp.csr_matrix:
    """Logarithms of counts, weighted by the rarity of the words, in rows of unit norm."""
    X = X.copy()
    rarity = np.log((1 + X.shape[0]) / (1 + np.bincount(X.indices, minlength=X.shape[1]))) + 1
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X.data /= np.repeat(np.maximum(norms, 1e-300), np.diff(X.indptr))
    return X


def letters(n: int, p: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of four letters, three zeros and ones for each, as those of the splice sites."""
    rng = np.random.default_rng(seed)
    code = np.vstack([np.eye(3), np.zeros((1, 3))])
    X = code[rng.integers(0, 4, (n, p // 3))].reshape(n, -1)
    w = np.zeros(X.shape[1])
    middle = slice(int(0.4 * w.size), int(0.6 * w.size))
    w[middle] = 1.5 * rng.standard_normal(len(w[middle]))
    scores = X @ w
    noise = 0.5 * rng.logistic(size=n)
    return X, np.where(scores - np.median(scores) + noise > 0, 1.0, -1.0)


def marks(n: int, p: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Correlated whole numbers from -2 to 2, as answers in a questionnaire."""
    rng = np.random.default_rng(seed)
    X = 0.5 * rng.standard_normal((n, 10)) @ rng.standard_normal((10, p))
    X = np.clip(np.round(X + rng.standard_normal((n, p))), -2, 2)
    w = np.zeros(p)
    w[:15] = rng.standard_normal(min(15, p))
    scores = X @ w
    return X, np.where(scores - np.median(scores) + rng.standard_normal(n) > 0, 1.0, -1.0)


def curved_boundary(
    n: int, p: int = 20, *, flip: float = 0.05, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian features, a curved boundary in the first six, a share of the labels flipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    f = np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] ** 2 - 0.5
    y = np.where(f + 0.3 * X[:, 4] * X[:, 5] > 0, 1.0, -1.0)
    y[rng.random(n) < flip] *= -1
    return X, y


def two_sides(
    n: int, p: int, *, apart: float, curved: bool, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """n points on the two sides of a plane, or of a wavy surface, with room in between."""
    rng = np.random.default_rng(seed)
    if curved:
        X = rng.uniform(-3, 3, size=(2 * n, p))
        height = np.sin(1.5 * X[:, 0]) + np.cos(1.3 * X[:, 1]) + 0.3 * X[:, 2]
        X, height = X[np.abs(height) > apart][:n], height[np.abs(height) > apart][:n]
        return X, np.sign(height)
    X, w = rng.standard_normal((n, p)), rng.standard_normal(p)
    w /= np.linalg.norm(w)
    y = np.where(X @ w > 0, 1.0, -1.0)
    return X + apart * y[:, None] * w, y


def planted_margin(n: int, margin: float = 0.5, *, seed: int = 0) -> np.ndarray:
    """n unit points in R^n, float32 columns, whose best margin is about `margin`.

    It lies along the first axis.  Along the second one a hundredth of the points is turned against
    the others, so that the mean of all points does not separate them.
    """
    rng = np.random.default_rng(seed)
    across, turned = 0.7, 0.01
    A = rng.standard_normal((n, n), dtype=np.float32)
    A[:2] = 0.0
    rest = 1 - margin**2 - across**2
    A *= np.sqrt(rest / np.einsum("ij,ij->j", A, A, dtype=np.float64)).astype(np.float32)
    A[0] = margin
    A[1] = np.where(rng.permutation(n) < turned * n, -across, across)
    return A


def digit_like(
    n: int, p: int = 780, *, clusters: int = 20, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Clusters in [0, 1]^p with mostly zeros, mixed in part; every other cluster is positive."""
    rng = np.random.default_rng(seed)
    centres = rng.random((clusters, p)) * (rng.random((clusters, p)) < 0.25)
    cluster = rng.integers(0, clusters, n)
    X = centres[cluster] * (rng.random((n, p)) < 0.75)
    X += 0.25 * rng.random((n, p)) * (rng.random((n, p)) < 0.05)
    mixture = 0.45 * rng.random(n)[:, None]
    X = (1 - mixture) * X + mixture * X[rng.permutation(n)]
    return X, np.where(cluster % 2 == 0, 1.0, -1.0)


def hull(n: int, d: int, *, shift: float = 0.15, seed: int = 0) -> np.ndarray:
    """n Gaussian points around ``shift * sqrt(d)`` times the first axis, the columns of a matrix.

    0 is outside their hull unless n is very much larger than d or the shift is small.
    """
    rng = np.random.default_rng(seed)
    return rng.standard_normal((d, n)) + shift * np.sqrt(d) * np.eye(d, 1)


def dense_regression(
    n: int, p: int, *, informative: int = 50, ratio: float = 3.0, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian columns, a few of which make the target, with `ratio` times less noise."""
    rng = np.random.default_rng(seed)
    X = np.asfortranarray(rng.standard_normal((n, p)))
    w = np.zeros(p)
    w[rng.choice(p, informative, replace=False)] = rng.standard_normal(informative)
    signal = X @ w
    return X, signal + rng.standard_normal(n) * signal.std() / ratio


def skewed_table(
    n: int, p: int, *, seed: int = 0, strength: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """Mostly zeros and a long tail, as shares of words in mails: like spambase.

    The larger the strength, the more a word says about the class.
    """
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    share = rng.uniform(0.05, 0.35, p)
    effect = rng.normal(0, 1.2, p) * (rng.random(p) < 0.7)
    topics = rng.normal(size=(n, 6)) @ rng.normal(0, 0.6, (6, p))
    chance = 1 / (
        1 + np.exp(-(np.log(share / (1 - share)) + strength * effect * y[:, None] + topics))
    )
    X = (rng.random((n, p)) < chance) * np.exp(rng.normal(-0.5, 1.3, (n, p)))
    X[:, -2:] = np.exp(rng.normal(3, 1.5, (n, 2)) + 0.5 * y[:, None])
    return np.round(X, 2), y


def correlated_bands(n: int, p: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers of four bands, each measured p / 4 times; six classes: like satimage."""
    rng = np.random.default_rng(seed)
    y = rng.choice(6, n, p=[0.24, 0.11, 0.21, 0.10, 0.11, 0.23])
    centres = rng.normal(0, 1, (6, 4)) * [18, 22, 18, 14] + [70, 84, 99, 83]
    centres[3] = (centres[2] + centres[5]) / 2
    bands = centres[y] + rng.normal(0, 7, (n, 4))
    X = np.repeat(bands[:, None, :], p // 4, axis=1) + rng.normal(0, 5, (n, p // 4, 4))
    return np.round(X.reshape(n, -1)), y


def letter_codes(n: int, p: int, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of four letters, three columns of 0 and 1 for each; three classes: like dna."""
    rng = np.random.default_rng(seed)
    length = p // 3
    y = rng.choice(3, n, p=[0.24, 0.24, 0.52])
    chances = np.repeat(rng.dirichlet(np.full(4, 20.0), (1, length)), 3, axis=0)
    middle = length // 2
    for kind in range(2):
        chances[kind, middle - 4 : middle + 4] = rng.dirichlet(np.full(4, 0.5), 8)
        near = slice(middle - 16, middle - 4)
        chances[kind, near] = 0.6 * chances[kind, near] + 0.4 * rng.dirichlet(np.full(4, 0.7), 12)
    drawn = rng.random((n, length, 1)) > np.cumsum(chances, axis=2)[y]
    letters = np.minimum(drawn.sum(axis=2), 3)
    return (letters[:, :, None] == np.arange(3)).reshape(n, -1).astype(float), y


@dataclasses.dataclass(frozen=True)
class Data:
    """Generated data: which generator, rows, columns and seed."""

    kind: str
    n: int
    p: int
    seed: int

    def __str__(self) -> str:
        return f"{self.kind} {self.n} x {self.p}"

    def load(self, folder: str) -> tuple[Any, np.ndarray]:
        """Read the data from the folder, where the first process that needs them puts them."""
        place, name = pathlib.Path(folder), f"{self.kind}-{self.n}-{self.p}-{self.seed}"
        if not (place / f"{name}.y.npy").exists():
            save(place, name, *_GENERATORS[self.kind](self.n, self.p, seed=self.seed))
        return load(place, name)


_GENERATORS: dict[str, Callable[..., tuple[Any, np.ndarray]]] = {
    "microarray": microarray,
    "dense": dense_classification,
    "text": lambda n, p, seed: sparse_text(n, p, informative=n // 100, seed=seed),
    "counts": word_counts,
    "tf-idf": lambda n, p, seed: word_counts(n, p, tfidf=True, seed=seed),
    "newsgroup counts": newsgroups,
    "newsgroup tf-idf": lambda n, p, seed: newsgroups(n, p, tfidf=True, seed=seed),
    "binary": letters,
    "whole numbers": marks,
    "curved": curved_boundary,
    "digit-like": digit_like,
    "skewed": skewed_table,
    "bands": correlated_bands,
    "codes": letter_codes,
}


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
