"""The X of a fit and the X of a prediction, checked once and not copied.

Dense arrays stay in C or Fortran order, sparse ones in CSR or CSC, both in float32 or float64
and with the indices they came with; a read-only memory map stays one.  A copy is made only
where the input is something else: another dtype or sparse format, strides that are neither
order, a frame that is not one block in memory, sparse entries stored twice or out of order.
"""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils.validation import (
    _check_feature_names,
    _check_n_features,
    _get_feature_names,
    check_array,
)

from anynorm.design import Matrix
from anynorm.design.blocks import ranges
from anynorm.design.checks import canonical, flat_blocks
from anynorm.design.device import DevicePlace, library_of, to_host
from anynorm.design.device_design import DeviceDesign
from anynorm.design.threads import run

LARGEST = 1e100
"""Beyond this a square, or a product of sums, may leave the range of float64."""

LARGEST_FEATURE = 1e75
"""Beyond this the square of a square, as of kernel values, may."""

_SMALLEST = 1e-100  # below this a square may
_BLOCKS_PER_TASK = 16  # of entries, a millisecond


def is_collection(X: Any) -> bool:
    """Whether something is a collection of Dask, which need not be installed."""
    return type(X).__module__.partition(".")[0] == "dask"


def column_names(X: Any) -> np.ndarray | None:
    """The names of a frame's columns, None where X has none."""
    names: np.ndarray | None = _get_feature_names(X)
    return names


def training_matrix(X: Any, caller: str) -> tuple[Matrix, np.ndarray | None]:
    """Check the X to learn from; returns it with its column names, if it is a frame with some.

    `caller` is the name of the estimator or function that it was given to.
    """
    names = column_names(X)
    X = usable_matrix(X, caller)
    _check_entries(X, names, LARGEST_FEATURE)
    return X, names


def known_matrix(X: Any, fitted: Any) -> Matrix:
    """Check an X against the one that something (an estimator, a path) was fitted to.

    The features are those of ``fitted.n_features_in_`` and ``fitted.feature_names_in_``.
    """
    _check_feature_names(fitted, X, reset=False)
    X = usable_matrix(X, type(fitted).__name__)
    _check_n_features(fitted, X, reset=False)
    _check_entries(X, getattr(fitted, "feature_names_in_", None), sys.float_info.max)
    return X


def check_squares(X: Matrix, name: str) -> None:
    """Raise where all entries are so small that their squares are not numbers any more."""
    largest = 0.0
    for block in flat_blocks(X):
        largest = max(largest, float(np.abs(block).max(initial=0.0)))
        if largest >= _SMALLEST:
            return
    if largest > 0:
        raise ValueError(
            f"{name} has no value beyond {_SMALLEST:g} ({largest:.1e} is the largest), whose "
            f"squares float64 cannot hold. Multiply {name} by a number, e.g. {1 / _SMALLEST:g}."
        )


def refuse_collection(X: Any, caller: str) -> None:
    """Raise where X is a collection of Dask."""
    if is_collection(X):
        raise TypeError(
            f"X is a Dask collection, which {caller} cannot use here without bringing all of it "
            "into memory; call X.compute() where it fits. LinearSVC, SparseSVC, ReweightedSVC, "
            "ReweightedSVCCV and BudgetSVC(strict=True) are fitted to collections, and classifiers "
            "predict them block by block."
        )


def usable_matrix(X: Any, caller: str) -> Matrix:
    """X as a dense array or CSR or CSC matrix of floats, whatever they are."""
    if isinstance(X, DeviceDesign):
        return X
    refuse_collection(X, caller)
    if library_of(X) is not None and not _is_readable(X):
        raise TypeError(
            f"X lives in {DevicePlace.of(X)}, which {caller} cannot use here. Give a NumPy array, "
            "e.g. X.cpu().numpy() in PyTorch."
        )
    try:
        if isinstance(X, list | tuple):
            X = np.asarray(X)
        if getattr(getattr(X, "dtype", None), "kind", "O") in "SUVMm":
            raise ValueError(f"could not convert string to float: X has dtype {X.dtype}")
        X = check_array(
            X,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
            estimator=caller,
            input_name="X",
        )
    except ValueError as error:
        raise ValueError(_explained(str(error))) from None
    if sp.issparse(X):
        return canonical(X, "X")
    return X if X.flags.c_contiguous or X.flags.f_contiguous else np.ascontiguousarray(X)


def _is_readable(X: Any) -> bool:
    """Whether NumPy can read an array of another library where it is."""
    try:
        np.asarray(X)
    except (TypeError, RuntimeError):
        return False
    return True


def _explained(message: str) -> str:
    """A message of the checks below us, with the argument's name and a remedy in it."""
    if "could not convert string" in message:
        return (
            f"X must hold numbers only ({message}). Encode text, e.g. with "
            "sklearn.preprocessing.OneHotEncoder; turn numbers stored as text into floats with "
            "X.astype(float)."
        )
    if "Complex data not supported" in message:
        return (
            "X is complex. Complex data not supported: give the real and imaginary parts as "
            "columns, e.g. np.hstack([X.real, X.imag])."
        )
    if "inhomogeneous" in message:
        return f"X must be a table whose rows all have the same length ({message})."
    if re.search(r"\bX\b", message):
        return message
    return f"X cannot be used: {message}"


def _check_entries(X: Matrix, names: np.ndarray | None, largest: float) -> None:
    """Raise where X has NaN, infinity or a value beyond `largest`."""
    if get_config()["assume_finite"]:
        return
    if isinstance(X, DeviceDesign):
        if not X.largest_entry() <= largest:
            _raise_for_entries(to_host(X.stored), names)
        return
    blocks = list(flat_blocks(X))
    parts = list(ranges(len(blocks), _BLOCKS_PER_TASK))

    def usable(k: int) -> bool:
        with np.errstate(invalid="ignore"):
            own = blocks[parts[k]]
            ends = [(float(block.min()), float(block.max())) for block in own]
        return all(low >= -largest and high <= largest for low, high in ends)

    if not all(run(usable, len(parts))):
        _raise_for_entries(X, names)


def _raise_for_entries(X: Matrix, names: np.ndarray | None) -> None:
    """Name the first column with an unusable entry, and its first row."""
    values = X.data if sp.issparse(X) else X
    tests = {
        "NaN": np.isnan(values),
        "infinity": np.isinf(values),
        f"a value beyond {LARGEST_FEATURE:g}": np.abs(values) > np.float64(LARGEST_FEATURE),
    }
    remedies = {
        "NaN": "Impute it, e.g. with sklearn.impute.SimpleImputer, or drop the rows.",
        "infinity": "Replace it by a finite value, or drop the rows.",
    }
    what, bad = next((what, bad) for what, bad in tests.items() if bad.any())
    rows, columns = _positions(X, bad)
    column = columns.min()
    name = int(column) if names is None else repr(str(names[column]))
    more = len(np.unique(columns)) - 1
    others = f", and in {more} more column{'s' if more > 1 else ''}" if more else ""
    remedy = remedies.get(what, "Rescale it, e.g. with sklearn.preprocessing.StandardScaler.")
    row = rows[columns == column].min()
    raise ValueError(f"X has {what} in column {name} (first at row {row}{others}). {remedy}")


def _positions(X: Matrix, bad: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the entries marked in `bad` (stored entries where X is sparse)."""
    if not sp.issparse(X):
        rows, columns = np.nonzero(bad)
        return rows, columns
    entries = np.flatnonzero(bad)
    major = np.searchsorted(X.indptr, entries, side="right") - 1
    minor = X.indices[entries]
    return (major, minor) if X.format == "csr" else (minor, major)
