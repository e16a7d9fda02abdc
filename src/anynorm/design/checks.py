"""Checks of arrays that are given to functions, and errors that say what is wrong with them.

(Estimators have checks of their own, which know scikit-learn's rules and the columns' names.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from anynorm.design.interface import Matrix

Array = NDArray[np.float64]


def real_matrix(A: Any, name: str) -> Matrix:
    """Return a matrix of real numbers, dense or sparse; its entries are not looked at."""
    A = A if sp.issparse(A) else np.asarray(A)
    if A.ndim != 2:
        raise ValueError(f"{name} must be a matrix; got an array of {A.ndim} dimensions.")
    if A.dtype.kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got the type {A.dtype}.")
    return A


def finite_matrix(A: Any, name: str) -> Matrix:
    """Return a float matrix, dense, CSC or CSR, after checking that its entries are finite."""
    if sp.issparse(A):
        if A.dtype.kind not in "fiub":
            raise ValueError(f"{name} must hold real numbers; got the type {A.dtype}.")
        A = A if A.format in ("csc", "csr") else A.tocsc()
        A = A if A.dtype in (np.float32, np.float64) else A.astype(np.float64)
        if not A.has_canonical_format:  # entries stored twice would be squared apart
            A = A.copy()
            A.sum_duplicates()
        values = A.data
    else:
        A = np.asarray(A)
        if A.dtype not in (np.float32, np.float64):
            A = _floats(A, name)
        values = A
    if A.ndim != 2:
        raise ValueError(f"{name} must be a matrix; got an array of {A.ndim} dimensions.")
    for length, axis in zip(A.shape, ("rows", "columns"), strict=True):
        if length == 0:
            raise ValueError(f"{name} has no {axis}; give at least one.")
    if not np.isfinite(values).all():
        raise ValueError(f"{name} has NaN or infinite entries. Replace them by finite values.")
    return A


def finite_vector(values: Any, name: str, length: int, unit: str) -> Array:
    """Return float64 numbers, after checking that there is one for each `unit`, and finite."""
    out = _floats(values, name)
    if out.shape != (length,):
        raise ValueError(
            f"{name} has shape {out.shape}; give {length} numbers, one for each {unit}."
        )
    if not np.isfinite(out).all():
        raise ValueError(f"{name} has NaN or infinite entries. Replace them by finite values.")
    return out


def _floats(values: Any, name: str) -> Array:
    if np.iscomplexobj(values):
        raise ValueError(f"{name} is complex; give real numbers.")
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold numbers ({error}).") from None


def positive(value: Any, name: str) -> float:
    """Return a number, after checking that it is positive and finite."""
    try:
        number = math.nan if isinstance(value, bool | np.bool_ | str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be a positive, finite number; got {value!r}.")
    return number


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
