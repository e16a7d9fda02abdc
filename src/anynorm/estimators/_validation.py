"""Input validation for every estimator: what was given, checked once and not copied.

Dense arrays stay in C or Fortran order, sparse ones in CSR or CSC, both in float32 or float64
and with the indices they came with; a read-only memory map stays one.  A copy is made only
where the input is something else: another dtype or sparse format, strides that are neither
order, a frame that is not one block in memory, sparse entries stored twice or out of order.

An error says which argument, what is wrong with it, where, and what to do.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import get_config
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from anynorm.design import Matrix
from anynorm.estimators._ordered_labels import OrderedLabels

LARGEST = 1e100
"""Beyond this a square, or a product of sums, may leave the range of float64."""

_BLOCK_ENTRIES = 1 << 16


@dataclass(frozen=True)
class Data:
    """A validated classification problem.

    Attributes
    ----------
    X : ndarray, CSR or CSC of shape (n, p)
        float32 or float64, the caller's memory wherever that is possible.
    codes : ndarray of shape (n,)
        The position of each row's label in `classes`; -1 for rows of a class that the weights
        have emptied (their weight is 0).
    classes : ndarray of shape (K,)
        The labels that have rows of positive weight, sorted (`OrderedLabels`: in their order).
    weights : ndarray of shape (n,) or None
        sample_weight times class_weight; None where all are 1.
    feature_names : ndarray of shape (p,) or None
        The column names of a frame.
    """

    X: Matrix
    codes: np.ndarray
    classes: np.ndarray
    weights: np.ndarray | None
    feature_names: np.ndarray | None

    @property
    def n_problems(self) -> int:
        """The number of binary problems: one for two classes, else one class against the rest."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    def positive(self, index: int) -> int:
        """The class, as its place in `classes`, that is +1 in binary problem `index`."""
        return 1 if self.n_problems == 1 else index

    def signs(self, index: int) -> np.ndarray:
        """The labels of binary problem `index` as -1.0 and +1.0."""
        return np.where(self.codes == self.positive(index), 1.0, -1.0)


def validate(estimator: Any, X: Any, y: Any, sample_weight: Any, *, least_classes: int = 2) -> Data:
    """Check what was given to `fit`; the estimator itself is not touched."""
    X, names = validate_matrix(estimator, X)
    return labelled(estimator, X, y, sample_weight, names, least_classes=least_classes)


def labelled(
    estimator: Any,
    X: Matrix,
    y: Any,
    sample_weight: Any,
    names: np.ndarray | None = None,
    *,
    least_classes: int = 2,
) -> Data:
    """The same for an X that is known to be usable, such as rows of one that was checked."""
    labels, codes = _encode(_usable_labels(estimator, y, X.shape[0]))
    if isinstance(y, OrderedLabels):
        labels, codes = y.reordered(labels, codes)
    weights = usable_weights(sample_weight, X.shape[0])
    weights = _with_class_weight(estimator.class_weight, labels, codes, weights)
    kept = _classes_with_weight(labels, codes, weights, least_classes)
    total = X.shape[0] if weights is None else float(weights.sum())
    C = float(getattr(estimator, "C", 1.0))
    if not 1 / LARGEST <= C * total <= LARGEST:
        raise ValueError(
            f"C={C:g} times the total weight of the rows, {total:g}, must lie between "
            f"{1 / LARGEST:g} and {LARGEST:g}. Choose another C, or divide sample_weight by its "
            "mean."
        )
    if len(kept) < len(labels):
        position = np.full(len(labels), -1)
        position[kept] = np.arange(len(kept))
        labels, codes = labels[kept], position[codes]
    return Data(X, codes, labels, weights, names)


def validate_matrix(estimator: Any, X: Any) -> tuple[Matrix, np.ndarray | None]:
    """Check the X given to `fit`; returns it with its column names, if it is a frame with some."""
    probe = copy.copy(estimator)
    X = _usable_matrix(probe, X, reset=True)
    names = getattr(probe, "feature_names_in_", None)
    _check_entries(X, names, LARGEST)
    return X, names


def validate_features(estimator: Any, X: Any) -> Matrix:
    """Check the X given to a fitted estimator against the one that it was fitted on."""
    X = _usable_matrix(estimator, X, reset=False)
    _check_entries(X, getattr(estimator, "feature_names_in_", None), sys.float_info.max)
    return X


def validate_penalties(penalty_weights: Any, data: Data) -> np.ndarray | None:
    """Check the weights of the features' penalties: one per column of X, at least 0, perhaps inf.

    Returns float64, or None where there are none.
    """
    if penalty_weights is None:
        return None
    if sp.issparse(penalty_weights) or np.asarray(penalty_weights).dtype.kind not in "biufO":
        raise ValueError("penalty_weights must be a 1-D array of numbers, one per column of X.")
    try:
        weights = np.array(penalty_weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"penalty_weights must hold numbers, one per column ({error}).") from None
    if weights.shape != data.X.shape[1:]:
        raise ValueError(
            f"penalty_weights has shape {weights.shape} but X has {data.X.shape[1]} columns; give "
            "one weight per column, in a 1-D array."
        )
    unusable = ~(weights >= 0)
    if unusable.any():
        j = int(unusable.argmax())
        name = j if data.feature_names is None else repr(str(data.feature_names[j]))
        raise ValueError(
            f"penalty_weights must be at least 0; column {name} has {weights[j]:g}. 0 leaves a "
            "feature without a penalty, infinity leaves it out."
        )
    return weights


def _usable_matrix(estimator: Any, X: Any, *, reset: bool) -> Matrix:
    try:
        if isinstance(X, list | tuple):
            X = np.asarray(X)
        if getattr(getattr(X, "dtype", None), "kind", "O") in "SUVMm":
            raise ValueError(f"could not convert string to float: X has dtype {X.dtype}")
        X = validate_data(
            estimator,
            X,
            reset=reset,
            accept_sparse=("csr", "csc"),
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
        )
    except ValueError as error:
        raise ValueError(_explained(str(error))) from None
    return _canonical(X) if sp.issparse(X) else _contiguous(X)


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


def _contiguous(X: np.ndarray) -> np.ndarray:
    if X.flags.c_contiguous or X.flags.f_contiguous:
        return X
    return np.ascontiguousarray(X)


def _canonical(X: Matrix) -> Matrix:
    """X itself, or a copy without repeated entries where it has some (or may have)."""
    width = X.shape[1] if X.format == "csr" else X.shape[0]
    if X.nnz and not (X.indices.min() >= 0 and X.indices.max() < width):
        raise ValueError(
            f"X is a broken sparse matrix: it has an index outside 0..{width - 1}. Build it again, "
            "e.g. from (row, column, value) triplets with scipy.sparse.coo_array."
        )
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _check_entries(X: Matrix, names: np.ndarray | None, largest: float) -> None:
    """Raise where X has NaN, infinity or a value beyond `largest`."""
    if get_config()["assume_finite"]:
        return
    for block in flat_blocks(X):
        with np.errstate(invalid="ignore"):
            low, high = float(block.min()), float(block.max())
        if not (low >= -largest and high <= largest):
            _raise_for_entries(X, names)


def flat_blocks(X: Matrix) -> Iterator[np.ndarray]:
    """The stored entries of X, in parts."""
    flat = X.data if sp.issparse(X) else X.ravel(order="K")
    for start in range(0, len(flat), _BLOCK_ENTRIES):
        yield flat[start : start + _BLOCK_ENTRIES]


def _raise_for_entries(X: Matrix, names: np.ndarray | None) -> None:
    """Name the first column with an unusable entry, and its first row."""
    values = X.data if sp.issparse(X) else X
    tests = {
        "NaN": np.isnan(values),
        "infinity": np.isinf(values),
        f"a value beyond {LARGEST:g}": np.abs(values) > np.asarray(LARGEST, dtype=np.float64),
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


def usable_targets(estimator: Any, y: Any, n_rows: int) -> np.ndarray:
    """Check the targets of a regression: one finite number per row of X; returns float64."""
    name = type(estimator).__name__
    if y is None:
        raise ValueError(
            f"{name} requires y to be passed, but the target y is None. Give one number per row "
            "of X."
        )
    if sp.issparse(y) or np.asarray(y).dtype.kind == "c":
        raise ValueError("y must be a 1-D array of real numbers, neither sparse nor complex.")
    y = column_or_1d(y, warn=True)
    try:
        y = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"y must hold numbers ({error}); {name} is a regressor.") from None
    if len(y) != n_rows:
        raise ValueError(
            f"y has {len(y)} entries but X has {n_rows} rows; give one number per row."
        )
    usable = np.abs(y) <= LARGEST
    if not usable.all():
        row = int((~usable).argmax())
        beyond = "infinity" if np.isinf(y[row]) else f"a value beyond {LARGEST:g}"
        what = "NaN" if np.isnan(y[row]) else beyond
        raise ValueError(f"y has {what} (first at row {row}). Drop or replace such targets.")
    return y


def _usable_labels(estimator: Any, y: Any, n_rows: int) -> np.ndarray:
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None. "
            "Give one class label per row of X."
        )
    if sp.issparse(y):
        raise ValueError("y must be a 1-D array of class labels, not sparse; use y.toarray().")
    if np.asarray(y).dtype.kind == "c":
        raise ValueError("y is complex; give class labels that are integers or strings.")
    y = column_or_1d(y, warn=True)
    if len(y) != n_rows:
        raise ValueError(f"y has {len(y)} entries but X has {n_rows} rows; give one label per row.")
    missing = _missing(y)
    if missing.any():
        kind = "infinity" if y.dtype.kind == "f" and np.isinf(y).any() else "NaN or None"
        raise ValueError(
            f"y has {kind} (first at row {int(missing.argmax())}). Drop the rows without a label."
        )
    return y


def _missing(y: np.ndarray) -> np.ndarray:
    if y.dtype.kind == "f":
        return ~np.isfinite(y)
    if y.dtype.kind == "O":
        return np.array([label is None or label != label for label in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def _encode(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted labels, and the place of each row's label among them."""
    try:
        labels, codes = np.unique(y, return_inverse=True)
    except TypeError:
        raise ValueError(
            "y mixes labels of different types that cannot be ordered. Make them all strings, "
            "e.g. with y.astype(str)."
        ) from None
    try:
        check_classification_targets(y)
    except ValueError as error:
        raise ValueError(
            f"y must hold class labels ({error}). For classes cut from numbers use e.g. y > 0."
        ) from None
    return labels, codes.reshape(-1)


def usable_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Check the weights of the rows, at least 0 and not all 0; None where there are none."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    if sp.issparse(sample_weight) or np.asarray(sample_weight).dtype.kind not in "biufO":
        raise ValueError("sample_weight must be a 1-D array of real numbers, one per row of X.")
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight must hold numbers, one per row of X ({error}).") from None
    if weights.shape != (n_rows,):
        raise ValueError(
            f"sample_weight has shape {weights.shape} but X has {n_rows} rows; give one weight "
            "per row, in a 1-D array."
        )
    if not np.isfinite(weights).all():
        row = int((~np.isfinite(weights)).argmax())
        raise ValueError(
            f"sample_weight must be finite; row {row} has {weights[row]}. Give that row the "
            "weight 0 to leave it out."
        )
    if weights.min() < 0:
        row = int((weights < 0).argmax())
        raise ValueError(
            f"sample_weight must not be negative; row {row} has {weights[row]:g}. Give that row "
            "the weight 0 to leave it out."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight is zero for every row. Give rows of at least two classes a positive "
            "weight."
        )
    return weights


def _with_class_weight(
    class_weight: str | Mapping[Any, float] | None,
    labels: np.ndarray,
    codes: np.ndarray,
    weights: np.ndarray | None,
) -> np.ndarray | None:
    """The row weights times their classes' weights.

    "balanced" gives every class the same total weight, and counts a row as often as it weighs:
    class totals are sums of `weights`, and a class without weight does not count.
    """
    if class_weight is None:
        return weights
    if isinstance(class_weight, str):
        totals = np.bincount(codes, weights=weights, minlength=len(labels))
        present = totals > 0
        factors = np.zeros(len(labels))
        factors[present] = totals.sum() / (present.sum() * totals[present])
    else:
        known = labels.tolist()
        unknown = [label for label in class_weight if label not in known]
        if unknown:
            raise ValueError(
                f"class_weight has the label {unknown[0]!r}, which is not in y. The labels in y "
                f"are {', '.join(map(repr, known[:10]))}{', ...' if len(known) > 10 else ''}."
            )
        factors = np.array([float(class_weight.get(label, 1.0)) for label in known])
    return factors[codes] if weights is None else weights * factors[codes]


def _classes_with_weight(
    labels: np.ndarray, codes: np.ndarray, weights: np.ndarray | None, least: int
) -> np.ndarray:
    """Places in `labels` of the classes, at least `least`, that have a row of positive weight."""
    if weights is None:
        kept = np.arange(len(labels))
    else:
        kept = np.unique(codes[weights > 0])
    if len(kept) >= least:
        return kept
    if len(labels) == 1:
        raise ValueError(
            f"y has only one class ({labels.tolist()[0]!r}); a classifier needs rows of at least "
            "two. Check how the rows were chosen, or use sklearn.svm.OneClassSVM."
        )
    left = f"only one class ({labels.tolist()[kept[0]]!r}) has" if len(kept) else "no class has"
    raise ValueError(
        f"sample_weight and class_weight leave too little: {left} rows of positive weight. Give "
        "rows of at least two classes a positive weight."
    )
