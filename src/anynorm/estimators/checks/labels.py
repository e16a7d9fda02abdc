"""What there is one of per row or column: labels, targets, weights; and all of it together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from anynorm.design import Matrix
from anynorm.design.checks import numbers
from anynorm.estimators._messages import warn
from anynorm.estimators._ordered_labels import OrderedLabels
from anynorm.estimators.checks.matrices import LARGEST, training_matrix


@dataclass(frozen=True)
class Labelled:
    """Rows with their labels and weights, checked.

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
    def storage(self) -> str:
        """How X is stored, in words."""
        kind = self.X.format.upper() if sp.issparse(self.X) else "dense"
        return f"{kind}, {self.X.dtype}"

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


def validate(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, C: float | None = None
) -> Labelled:
    """Check what was given to the `fit` of a classifier, which itself is not touched.

    `C` is the largest one that is fitted, that of the estimator by default.
    """
    X, names = training_matrix(X, type(estimator).__name__)
    return labelled(estimator, X, y, sample_weight, names, C=C)


def labelled(
    estimator: Any,
    X: Matrix,
    y: Any,
    sample_weight: Any,
    names: np.ndarray | None = None,
    *,
    C: float | None = None,
) -> Labelled:
    """The same for an X that is known to be usable, such as rows of one that was checked."""
    return labelled_rows(
        X,
        y,
        sample_weight,
        caller=type(estimator).__name__,
        names=names,
        class_weight=estimator.class_weight,
        C=float(getattr(estimator, "C", 1.0) if C is None else C),
    )


def labelled_rows(
    X: Matrix,
    y: Any,
    sample_weight: Any,
    *,
    caller: str,
    names: np.ndarray | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    C: float = 1.0,
) -> Labelled:
    """Check labels and weights for the rows of a usable X, given to what is called `caller`."""
    labels, codes = encode(usable_labels(y, X.shape[0], caller))
    if isinstance(y, OrderedLabels):
        labels, codes = y.reordered(labels, codes)
    weights = usable_weights(sample_weight, X.shape[0])
    weights = _with_class_weight(class_weight, labels, codes, weights)
    kept = _classes_with_weight(labels, codes, weights)
    check_total(C, X.shape[0] if weights is None else float(weights.sum()))
    if len(kept) < len(labels):
        position = np.full(len(labels), -1)
        position[kept] = np.arange(len(kept))
        labels, codes = labels[kept], position[codes]
    return Labelled(X, codes, labels, weights, names)


def check_total(C: float, total: float) -> None:
    """Raise where C times the weight of all rows is beyond what float64 can square."""
    if not 1 / LARGEST <= C * total <= LARGEST:
        raise ValueError(
            f"C={C:g} times the total weight of the rows, {total:g}, must lie between "
            f"{1 / LARGEST:g} and {LARGEST:g}. Choose another C, or divide sample_weight by its "
            "mean."
        )


def usable_penalties(penalty_weights: Any, data: Labelled) -> np.ndarray | None:
    """Check the weights of the features' penalties: one per column of X, at least 0, perhaps inf.

    Returns float64, or None where there are none.
    """
    if penalty_weights is None:
        return None
    weights = np.array(numbers(penalty_weights, "penalty_weights", "column of X"))
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


def usable_targets(y: Any, n_rows: int, caller: str) -> np.ndarray:
    """Check the targets of a regression: one finite number per row of X; returns float64."""
    if y is None:
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None. Give one number per row "
            "of X."
        )
    if not sp.issparse(y) and np.asarray(y).dtype.kind == "c":
        raise ValueError("y is complex. Complex data not supported: give real numbers.")
    if not sp.issparse(y) and np.asarray(y).dtype.kind in "SU":
        raise ValueError(f"y must hold numbers, not text; {caller} is a regressor.")
    y = one_column(numbers(y, "y", "row of X"))
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


def one_column(y: Any) -> np.ndarray:
    """Y as a 1-D array, with scikit-learn's warning where it is a column of a matrix."""
    if np.asarray(y).ndim == 2:
        flat = column_or_1d(y)  # raises where there are more columns than one
        warn(
            "A column-vector y was passed when a 1d array was expected. Please change the shape "
            "of y to (n_samples,), for example using ravel().",
            DataConversionWarning,
        )
        return flat
    return column_or_1d(y)


def usable_labels(y: Any, n_rows: int, caller: str) -> np.ndarray:
    """Check class labels, one for each of the rows; returns a 1-D array."""
    if y is None:
        raise ValueError(
            f"{caller} requires y to be passed, but the target y is None. "
            "Give one class label per row of X."
        )
    if sp.issparse(y):
        raise ValueError("y must be a 1-D array of class labels, not sparse; use y.toarray().")
    if np.asarray(y).dtype.kind == "c":
        raise ValueError(
            "y is complex. Complex data not supported: give class labels that are integers or "
            "strings."
        )
    y = one_column(y)
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
        return np.array([_is_missing(label) for label in y], dtype=bool)
    return np.zeros(len(y), dtype=bool)


def _is_missing(label: Any) -> bool:
    # Comparisons with pandas' NA, which need not be installed, are neither true nor false.
    return label is None or type(label).__name__ == "NAType" or bool(label != label)


def encode(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sorted labels, and the place of each row's label among them."""
    two = _two_whole_labels(y)
    if two is not None:
        return two
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


def _two_whole_labels(y: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """The same for two whole numbers, which need no sorting; None for anything else."""
    if y.dtype.kind not in "biuf" or not len(y):
        return None
    labels = np.array([y.min(), y.max()])
    codes = y == labels[1]
    if not (labels == np.floor(labels)).all() or not np.all(codes | (y == labels[0])):
        return None
    return (labels, codes.astype(np.intp)) if labels[0] < labels[1] else None


def usable_weights(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Check the weights of the rows, at least 0 and not all 0; None where there are none."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, Real):
        sample_weight = np.full(n_rows, float(sample_weight))
    weights = numbers(sample_weight, "sample_weight", "row of X")
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
    totals = np.bincount(codes, weights=weights, minlength=len(labels))
    factors = class_factors(class_weight, labels, totals)
    return factors[codes] if weights is None else weights * factors[codes]


def class_factors(
    class_weight: str | Mapping[Any, float], labels: np.ndarray, totals: np.ndarray
) -> np.ndarray:
    """The factor of each class; `totals` are the sums of its rows' weights."""
    if isinstance(class_weight, str):
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
    return factors


def _classes_with_weight(
    labels: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> np.ndarray:
    """Places in `labels` of the classes, at least two, that have a row of positive weight."""
    if weights is None:
        kept = np.arange(len(labels))
    else:
        kept = np.unique(codes[weights > 0])
    check_classes(labels, kept)
    return kept


def check_classes(labels: np.ndarray, kept: np.ndarray) -> None:
    """Raise where fewer than two classes, `kept` being their places, have weight."""
    if len(kept) >= 2:
        return
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
