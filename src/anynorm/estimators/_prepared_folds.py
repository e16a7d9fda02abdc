"""Rows that a transformer prepares: anew inside each fold, by what its training rows say alone."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils import _safe_indexing, get_tags, indexable
from sklearn.utils.validation import _num_features, has_fit_parameter

from anynorm.design import Matrix
from anynorm.design.device_design import DeviceDesign
from anynorm.estimators.checks.matrices import (
    column_names,
    known_matrix,
    refuse_collection,
    training_matrix,
)

Split = tuple[np.ndarray, np.ndarray]


def fit_transformer(
    transformer: Any, X: Any, y: np.ndarray | None, weights: np.ndarray | None
) -> tuple[Any, Matrix]:
    """A fitted clone of a transformer, and what it makes of the rows that it was fitted to.

    Weights equal repetition here too: rows of weight 0 have no part in it, and a `fit` that takes
    ``sample_weight`` gets the others.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from anynorm.estimators._prepared_folds import fit_transformer
    >>> X = np.array([[0.0], [1.0], [9.0]])
    >>> fit_transformer(StandardScaler(), X, None, np.array([3.0, 1.0, 0.0]))[0].mean_
    array([0.25])
    """
    transformer = clone(transformer)
    given = {}
    if weights is not None and has_fit_parameter(transformer, "sample_weight"):
        given["sample_weight"] = weights
    if weights is None or weights.all():
        if hasattr(transformer, "fit_transform"):
            made = transformer.fit_transform(X, y, **given)
        else:
            made = transformer.fit(X, y, **given).transform(X)
        return transformer, usable(made, transformer)
    rows = np.flatnonzero(weights)
    given = {name: values[rows] for name, values in given.items()}
    transformer.fit(rows_of(X, rows), None if y is None else y[rows], **given)
    return transformer, transformed(transformer, X)


def transformed(transformer: Any, X: Any) -> Matrix:
    """What a fitted transformer makes of rows, checked."""
    return usable(transformer.transform(X), transformer)


def usable(made: Any, transformer: Any) -> Matrix:
    """What a transformer has made of X, checked as an X is."""
    try:
        return training_matrix(made, type(transformer).__name__)[0]
    except ValueError as error:
        raise ValueError(
            f"what the preprocessor {type(transformer).__name__} makes of X cannot be used: {error}"
        ) from None


def rows_of(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, a sparse matrix or a frame of any kind."""
    return X.iloc[rows] if hasattr(X, "iloc") else _safe_indexing(X, rows)


def names_made_by(transformer: Any) -> np.ndarray | None:
    """The names of the features that a fitted transformer makes, None where it does not say."""
    try:
        return np.asarray(transformer.get_feature_names_out(), dtype=object)
    except (AttributeError, ValueError):  # it has no names for them, or none for the ones before
        return None


class PreparedFolds:
    """Rows that are prepared for each fold by what its training rows say alone.

    A clone of the `transformer`, which is not fitted, is fitted in every fold.  `names` are those
    of the features that are made of all rows; None where every fold makes the same ones.
    """

    def __init__(
        self,
        X: Any,
        splits: list[Split],
        transformer: Any,
        *,
        y: np.ndarray | None = None,
        weights: np.ndarray | None = None,
        names: np.ndarray | None = None,
    ) -> None:
        self.splits = splits
        self._X, self._transformer = X, transformer
        self._y, self._weights = y, weights
        self._names = names
        self._held_out: dict[int, Matrix] = {}
        self._places: dict[int, np.ndarray | None] = {}

    def train(self, fold: int) -> Matrix:
        """The prepared rows to learn from."""
        train, test = self.splits[fold]
        y = None if self._y is None else self._y[train]
        weights = None if self._weights is None else self._weights[train]
        fitted, matrix = fit_transformer(self._transformer, rows_of(self._X, train), y, weights)
        held_out = transformed(fitted, rows_of(self._X, test))
        self._held_out[fold] = held_out.tocsr() if sp.issparse(held_out) else held_out
        self._places[fold] = self._places_of(fitted)
        return matrix

    def test(self, fold: int) -> Matrix:
        """The rows that are held out, prepared like those to learn from."""
        if fold not in self._held_out:
            self.train(fold)
        return self._held_out[fold]

    def places(self, fold: int) -> np.ndarray | None:
        """Where the fold's features are among those of all rows, -1 where they are not.

        None where both are the same.
        """
        if fold not in self._places:
            self.train(fold)
        return self._places[fold]

    def _places_of(self, fitted: Any) -> np.ndarray | None:
        own = None if self._names is None else names_made_by(fitted)
        if self._names is None or own is None or np.array_equal(own, self._names):
            return None
        known = {name: place for place, name in enumerate(self._names)}
        return np.array([known.get(name, -1) for name in own], dtype=np.intp)


@dataclass(frozen=True)
class PreparedRows:
    """All rows of a fit, and what the preprocessor of its estimator makes of them.

    Attributes
    ----------
    X, y, weights : array-like, ndarray of shape (n,), ndarray of shape (n,) or None
        The rows as they were given, with their labels or targets and their weights.
    transformer : object
        The preprocessor, fitted to all of them.
    matrix : ndarray or sparse matrix of shape (n, p)
        What it has made of them.
    """

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    transformer: Any
    matrix: Matrix

    @classmethod
    def of(cls, estimator: Any, X: Any, y: np.ndarray, weights: np.ndarray | None) -> PreparedRows:
        """Fit the preprocessor of an estimator to all rows."""
        refuse_collection(X, type(estimator).__name__)
        if isinstance(X, DeviceDesign):
            raise TypeError(
                f"X lives in {X.place}, and a preprocessor prepares rows in memory. Give NumPy "
                "arrays, or prepare the rows first and leave preprocessor out."
            )
        (X,) = indexable(X)
        return cls(X, y, weights, *fit_transformer(estimator.preprocessor, X, y, weights))

    @property
    def names(self) -> np.ndarray | None:
        """The names of the features that the model has, where X has names."""
        return None if column_names(self.X) is None else names_made_by(self.transformer)

    @property
    def attributes(self) -> dict[str, Any]:
        """What the estimator keeps: the fitted preprocessor, and what its X was like.

        Text has no number of features.
        """
        try:
            width = _num_features(self.X)
        except TypeError:
            width = None
        return {
            "preprocessor_": self.transformer,
            "n_features_in_": width,
            "feature_names_in_": column_names(self.X),
        }

    def folds(self, splits: list[Split]) -> PreparedFolds:
        """The same rows, prepared in each fold by itself."""
        return PreparedFolds(
            self.X,
            splits,
            clone(self.transformer),
            y=self.y,
            weights=self.weights,
            names=names_made_by(self.transformer),
        )


class PreparedEstimator:
    """Mixin of estimators that have a preprocessor: their predictions begin with it."""

    preprocessor: Any
    preprocessor_: Any

    def _rows(self, X: Any) -> Matrix:
        """The rows of X as the model knows them."""
        if not hasattr(self, "preprocessor_"):
            return known_matrix(X, self)
        made = transformed(self.preprocessor_, X)
        points = getattr(self, "support_vectors_", None)
        width = (self.coef_ if points is None else points).shape[-1]  # type: ignore[attr-defined]
        if made.shape[1] != width:
            raise ValueError(
                f"preprocessor_ makes {made.shape[1]} columns of X, but the model was fitted to "
                f"{width}. Give the columns that X had in fit."
            )
        return made

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        if self.preprocessor is not None:
            tags.input_tags = copy(get_tags(self.preprocessor).input_tags)
            tags.input_tags.allow_nan = False  # it may, and leave them there
        return tags
