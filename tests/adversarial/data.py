"""Rows, labels and weights: ordinary, degenerate, at all scales, and the ways to store them."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

FOLDER = tempfile.TemporaryDirectory(prefix="anynorm-adversarial-")
"""Where memory maps lie."""


@dataclass(frozen=True)
class Rows:
    """What is given to an estimator, and the same as plain float64 arrays."""

    given: Any
    X: np.ndarray
    labels: np.ndarray
    weights: np.ndarray | None
    words: str

    @property
    def w(self) -> np.ndarray:
        """The weights, ones where there are none."""
        return np.ones(len(self.X)) if self.weights is None else self.weights


def size(rng, most: int) -> int:
    """From 1 on: small numbers are as likely as large ones."""
    return int(np.exp(rng.uniform(0.0, np.log(most + 1))))


def price(rng) -> float:
    """Values of C, of a radius and the like, mostly ordinary ones."""
    if rng.random() < 0.5:
        return float(rng.choice([0.01, 0.1, 1.0, 10.0, 100.0]))
    return float(10.0 ** rng.uniform(-8, 8))


def scale(rng) -> float:
    """A factor of all entries: mostly 1, powers of two and ten."""
    draw = rng.random()
    if draw < 0.6:
        return 1.0
    return float(2.0 ** rng.integers(-60, 61) if draw < 0.8 else 10.0 ** rng.uniform(-8, 8))


def shift(rng) -> float:
    """What is added to all entries: mostly nothing."""
    return float(rng.choice([0.0] * 7 + [1e4, -1e6, 1e8]))


def table(rng, n: int, p: int) -> tuple[np.ndarray, str]:
    """Entries of size 1, in words too; ties, equal rows and columns, constants and zeros."""
    kind = str(rng.choice(["normal", "whole", "normal", "low rank", "heavy", "few values"]))
    if kind == "normal":
        X = rng.normal(size=(n, p))
    elif kind == "whole":
        X = rng.integers(-2, 3, size=(n, p)).astype(float)
    elif kind == "low rank":
        X = rng.normal(size=(n, 1)) @ rng.normal(size=(1, p)) + (0.1 * (rng.random((n, p)) < 0.1))
    elif kind == "heavy":
        X = rng.standard_t(1.5, size=(n, p)).clip(-1e3, 1e3)
    else:
        X = (rng.random((n, p)) < 0.3).astype(float)
    for spoil in rng.permutation(list(SPOILS))[: rng.integers(0, 3)]:
        SPOILS[spoil](rng, X)
        kind += f", {spoil}"
    return X, kind


def _equal_rows(rng, X):
    X[rng.integers(len(X), size=len(X) // 2)] = X[rng.integers(len(X))]


def _equal_columns(rng, X):
    X[:, rng.integers(X.shape[1])] = X[:, rng.integers(X.shape[1])]


def _constant_column(rng, X):
    X[:, rng.integers(X.shape[1])] = rng.choice([0.0, 1.0, -7.0])


def _uneven_columns(rng, X):
    X *= 10.0 ** rng.uniform(-4, 4, size=X.shape[1])


def _zero_rows(rng, X):
    X[rng.random(len(X)) < 0.3] = 0.0


SPOILS = {
    "equal rows": _equal_rows,
    "equal columns": _equal_columns,
    "a constant column": _constant_column,
    "uneven columns": _uneven_columns,
    "zero rows": _zero_rows,
}


def labels_for(rng, X, n_classes: int) -> np.ndarray:
    """Labels that follow a direction, or nothing, or are one row against all others."""
    n, draw = len(X), rng.random()
    if draw < 0.15:
        codes = np.zeros(n, dtype=int)
        codes[rng.integers(n)] = 1
    elif draw < 0.4:
        codes = rng.integers(n_classes, size=n)
    else:
        size = np.abs(X).max(axis=0)
        scores = (X / np.where(size > 0, size, 1.0)) @ rng.normal(size=X.shape[1])
        scores += rng.choice([0.0, 0.5]) * rng.normal(size=n)
        cuts = np.quantile(scores, np.arange(1, n_classes) / n_classes)
        codes = np.searchsorted(cuts, scores)
    named = rng.random() < 0.2
    return np.array(["ant", "bee", "cat"])[codes] if named else codes.astype(int)


def weights_for(rng, n: int) -> np.ndarray | None:
    """None, whole numbers with zeros among them, or any."""
    draw = rng.random()
    if draw < 0.6:
        return None
    if draw < 0.8:
        return rng.integers(0, 4, size=n).astype(float)
    return 10.0 ** rng.uniform(-3, 3, size=n)


def stored(rng, X: np.ndarray) -> tuple[Any, np.ndarray, str]:
    """X as it may be given, with its values in float64 and how it is stored."""
    way = str(rng.choice(list(STORED))) if rng.random() < 0.7 else "dense"
    given = STORED[way](X)
    values = given.toarray() if sp.issparse(given) else np.asarray(given)
    return given, values.astype(np.float64), way


def _narrow(X):
    with np.errstate(over="ignore"):
        return X.astype(np.float32)


def _wide_indices(X):
    out = sp.csr_array(X)
    out.indices, out.indptr = out.indices.astype(np.int64), out.indptr.astype(np.int64)
    return out


def _mapped(X):
    path = Path(FOLDER.name) / "X.npy"
    path.unlink(missing_ok=True)  # an older map of it stays what it was
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def _frozen(X):
    X = X.copy()
    X.flags.writeable = False
    return X


STORED = {
    "dense": np.array,
    "Fortran": np.asfortranarray,
    "float32": _narrow,
    "read-only": _frozen,
    "a memory map": _mapped,
    "every second row of more": lambda X: np.repeat(X, 2, axis=0)[::2],
    "CSR": sp.csr_array,
    "CSC": sp.csc_matrix,
    "CSR with 64-bit indices": _wide_indices,
    "float32 CSR": lambda X: sp.csr_matrix(_narrow(X)),
    "COO": sp.coo_array,
    "a frame": lambda X: pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])]),
    "lists": lambda X: X.tolist(),
}


def rows(rng, *, most_rows: int, most_columns: int, classes=(2, 2, 2, 3)) -> Rows:
    """Draw rows with labels and weights."""
    n, p = size(rng, most_rows), size(rng, most_columns)
    X, kind = table(rng, n, p)
    labels = labels_for(rng, X, int(rng.choice(classes)))
    factor, offset = scale(rng), shift(rng)
    given, X, way = stored(rng, factor * (X + offset))
    weights = weights_for(rng, n)
    words = f"{n} x {p} {kind}, times {factor:.3g}, plus {offset:g}, as {way}"
    if weights is not None:
        words += ", weighted"
    return Rows(given, X, labels, weights, words)
