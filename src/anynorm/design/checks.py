"""Checks of arrays and numbers that a user gave, by the name of the argument.

An error says which argument, what is wrong with it and what to do.  What only estimators take
(parameters, labels, weights of rows and classes) is checked in `anynorm.estimators.checks`, by
means of these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design.interface import Matrix
from anynorm.design.limits import BLOCK_ENTRIES

Array = NDArray[np.float64]


def finite_matrix(A: Any, name: str) -> Matrix:
    """Return a float matrix, dense, CSC or CSR, after checking that its entries are finite."""
    if sp.issparse(A):
        if A.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers; got the type {A.dtype}.")
        A = A if A.format in ("csc", "csr") else A.tocsc()
        A = canonical(A if A.dtype in (np.float32, np.float64) else A.astype(np.float64), name)
    else:
        A = np.asarray(A)
        if A.dtype not in (np.float32, np.float64):
            A = _floats(A, name)
    if A.ndim != 2:
        raise ValueError(f"{name} must be a matrix; got an array of {A.ndim} dimensions.")
    for length, axis in zip(A.shape, ("rows", "columns"), strict=True):
        if length == 0:
            raise ValueError(f"{name} has no {axis}; give at least one.")
    if not all(np.isfinite(block).all() for block in flat_blocks(A)):
        raise ValueError(f"{name} has NaN or infinite entries. Replace them by finite values.")
    return A


def canonical(X: Matrix, name: str) -> Matrix:
    """A CSR or CSC matrix itself, or a copy without repeated entries where it may have some."""
    width = X.shape[1] if X.format == "csr" else X.shape[0]
    if X.nnz and not (X.indices.min() >= 0 and X.indices.max() < width):
        raise ValueError(
            f"{name} is a broken sparse matrix: it has an index outside 0..{width - 1}. Build it "
            "again, e.g. from (row, column, value) triplets with scipy.sparse.coo_array."
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def flat_blocks(X: Matrix) -> Iterator[np.ndarray]:
    """The stored entries of X, in parts."""
    flat = X.data if sp.issparse(X) else X.ravel(order="K")
    for start in range(0, len(flat), BLOCK_ENTRIES):
        yield flat[start : start + BLOCK_ENTRIES]


def finite_vector(values: Any, name: str, length: int, each: str) -> Array:
    """Return float64 numbers, after checking that there is one per `each`, and finite."""
    out = numbers(values, name, each)
    if out.shape != (length,):
        raise ValueError(f"{name} has shape {out.shape}; give {length} numbers, one per {each}.")
    if not np.isfinite(out).all():
        raise ValueError(f"{name} has NaN or infinite entries. Replace them by finite values.")
    return out


def numbers(values: Any, name: str, each: str) -> Array:
    """Return float64 numbers of any shape, which are meant to be one per `each`."""
    given = np.asarray(values)  # an object, where the values are sparse
    if sp.issparse(values) or given.dtype.kind not in "biufO":
        raise ValueError(
            f"{name} must be a 1-D array of numbers, one per {each} (real numbers, neither sparse "
            "nor complex)."
        )
    return _floats(given, name, f", one per {each}")


def _floats(values: np.ndarray, name: str, each: str = "") -> Array:
    if values.dtype.kind == "c":
        raise ValueError(f"{name} is complex; give real numbers.")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers{each} ({error}).") from None


def positive(value: Any, name: str) -> float:
    """Return a number, after checking that it is positive and finite."""
    if not is_positive(value):
        raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
    return float(value)


def is_positive(value: Any) -> bool:
    """Whether a value is a positive, finite number."""
    try:
        return is_real(value) and 0.0 < float(value) < math.inf
    except OverflowError:
        return False


def is_real(value: Any) -> bool:
    """Whether a value is a real number, and not True or False."""
    return isinstance(value, Real) and not isinstance(value, bool)


def signs(y: Any, n: int) -> Array:
    """Return two labels as -1.0 and +1.0, the larger one as +1.0."""
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}; give {n} labels, one for each row of X.")
    labels = np.unique(y)
    if len(labels) > 2 or (len(labels) == 1 and labels[0] not in (-1, 1)):
        raise ValueError(
            f"y must have two labels; got {len(labels)}. For one class leave y out; for more use "
            "anynorm.SVC(slack='squared_l2')."
        )
    return np.where(y == labels[-1], 1.0, -1.0) if len(labels) == 2 else y.astype(np.float64)
