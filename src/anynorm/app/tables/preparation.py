"""Frames to matrices of numbers by scikit-learn's transformers, with notes in plain words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted

from anynorm.app.tables.columns import Kinds, kinds_of, levels_of, match_columns, numbers_of
from anynorm.app.tables.errors import TableError, counted, listed
from anynorm.app.tables.number_frame import NumberFrame
from anynorm.app.tables.svmlight import SparseFrame

__all__ = ["Preparation", "match_columns"]

Array = NDArray[np.float64]


class Preparation(TransformerMixin, BaseEstimator):
    """Columns of a data frame to a matrix of numbers.

    Numbers and truth values: missing ones become the median (`SimpleImputer`). Categories: a
    column of zeros and ones for each value (`OneHotEncoder`), one column where there are two;
    missing is a value like any other, and values that were not there in `fit` count as none of
    them. Dates and columns without any value are left out. Then every column is brought to mean
    0 and standard deviation 1 (`StandardScaler`). Sparse features are divided by their standard
    deviation and not centred.

    Parameters
    ----------
    scale : {"standard", "none"}
        Whether columns are scaled.
    kinds : dict, optional
        What each column is: "number", "boolean", or the list of its categories. Found in `fit`
        where it is not given. The `kinds_` of one preparation make others, fitted to parts of
        the rows, give the same columns.
    max_levels : int
        The most categories that a column of text may have.

    Attributes
    ----------
    kinds_ : dict
        What each column that is used is.
    feature_names_in_ : ndarray of str
        The columns that are used.
    sparse_ : bool
        Whether it was fitted to a `SparseFrame`.
    imputer_, encoder_, scaler_ : transformers, or None where they have nothing to do
        (or, the imputer, where rows came as a `NumberFrame`)
    notes_ : list of str
        What was done, in plain language.

    Examples
    --------
    >>> import pandas as pd
    >>> from anynorm import tables
    >>> organs = ["lung", "skin", "eye", "eye"]
    >>> frame = pd.DataFrame({"dose": [1.0, 2.0, None, 3.0], "organ": organs})
    >>> preparation = tables.Preparation().fit(frame)
    >>> preparation.get_feature_names_out().tolist()
    ['dose', 'organ=eye', 'organ=lung', 'organ=skin']
    >>> for note in preparation.notes_:
    ...     print(note)
    Missing numbers became the median of their column: 'dose' (1 row).
    Categories became columns of zeros and ones: 'organ' (eye, lung, skin).
    Every column was brought to mean 0 and standard deviation 1.
    """

    def __init__(
        self,
        scale: str = "standard",
        *,
        kinds: Mapping[str, str | list[str]] | None = None,
        max_levels: int = 100,
    ) -> None:
        self.scale = scale
        self.kinds = kinds
        self.max_levels = max_levels

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find out what the columns are, and their medians and scales.

        Parameters
        ----------
        X : pandas.DataFrame or SparseFrame
        y : ignored

        Returns
        -------
        self : Preparation
        """
        self._fitted_matrix(X)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Do both in one go: the columns are read once.

        Parameters
        ----------
        X : pandas.DataFrame or SparseFrame
        y, **params : ignored

        Returns
        -------
        matrix : ndarray of float64 (CSR matrix for a SparseFrame)
        """
        matrix = self._fitted_matrix(X)
        return matrix if self.scaler_ is None else self.scaler_.transform(matrix)

    def _fitted_matrix(self, X: Any) -> Any:
        """Fit everything; the matrix before it is scaled."""
        if self.scale not in ("standard", "none"):
            raise ValueError(f"scale must be 'standard' or 'none'; got {self.scale!r}.")
        if len(X) == 0:
            raise TableError("there are no rows to prepare.")
        sparse, ready = isinstance(X, SparseFrame), isinstance(X, NumberFrame)
        if not ready:
            X = _frame(X)
        notes: list[str] = []
        if self.kinds is not None:
            kinds: Kinds = dict(self.kinds)
        elif ready:
            kinds = dict.fromkeys((str(name) for name in X.columns), "number")
        else:
            kinds, notes = kinds_of(X, self.max_levels)
        self.kinds_ = kinds
        self.sparse_ = sparse
        self.feature_names_in_ = np.array(list(kinds), dtype=object)
        self.n_features_in_ = len(kinds)
        frame, _ = match_columns(X, list(kinds))
        self.imputer_ = self.encoder_ = self.scaler_ = None
        matrix = frame.matrix if ready else self._fit_parts(frame, notes)
        if self.scale == "standard":
            self.scaler_ = StandardScaler(with_mean=not sparse).fit(matrix)
            notes.append(
                "Every column was divided by its standard deviation (not centred: it is sparse)."
                if sparse
                else "Every column was brought to mean 0 and standard deviation 1."
            )
        self.notes_ = notes
        return matrix

    def _fit_parts(self, frame: pd.DataFrame, notes: list[str]) -> Array:
        """Fit the imputer and the encoder, and return their columns side by side."""
        numeric, categorical = self._names()
        if numeric:
            values = numbers_of(frame, numeric)
            # Without missing values NumPy's medians, of which scikit-learn's are, take a fifth.
            whole = not np.isnan(values).any()
            self.imputer_ = _imputer().fit(_medians(values) if whole else values)
            notes += self._filled(values, "their column")
        if categorical:
            self.encoder_ = _encoder([_spread(self.kinds_[name]) for name in categorical])
            each = [f"{x!r} ({listed(self.kinds_[x], quote=False)})" for x in categorical]
            notes.append(
                f"Categories became columns of zeros and ones: {listed(each, quote=False)}."
            )
        return self._side_by_side(frame)

    def _filled(self, values: Array, of: str) -> list[str]:
        """A note on the numbers that are missing, where some are."""
        counts = np.isnan(values).sum(axis=0)
        missing = [
            f"{name!r} ({counted(int(count), 'row')})"
            for name, count in zip(self._names()[0], counts, strict=True)
            if count
        ]
        listing = listed(missing, quote=False)
        return [f"Missing numbers became the median of {of}: {listing}."] if missing else []

    def transform(self, X: Any) -> Any:
        """Return the matrix of numbers.

        Parameters
        ----------
        X : pandas.DataFrame or SparseFrame
            With the columns of `fit`, found by name; others are ignored.

        Returns
        -------
        matrix : ndarray of float64 (CSR matrix for a SparseFrame)
        """
        check_is_fitted(self, "kinds_")
        frame, _ = match_columns(self._same_storage(X), list(self.kinds_))
        matrix = frame.matrix if isinstance(frame, NumberFrame) else self._side_by_side(frame)
        return matrix if self.scaler_ is None else self.scaler_.transform(matrix)

    def _side_by_side(self, frame: pd.DataFrame) -> Array:
        numeric, categorical = self._names()
        parts: list[Array] = []
        if numeric:
            values = numbers_of(frame, numeric)
            parts.append(values if self.imputer_ is None else self.imputer_.transform(values))
        if self.encoder_ is not None:
            parts.append(self.encoder_.transform(levels_of(frame, categorical)))
        return parts[0] if len(parts) == 1 else np.hstack(parts)

    def _same_storage(self, X: Any) -> Any:
        """Refuse a sparse frame where columns were learnt, and a table where numbers were."""
        sparse = isinstance(X, SparseFrame)
        if sparse != self.sparse_:
            have, want = ("svmlight", "a table") if sparse else ("a table", "svmlight")
            raise TableError(
                f"the rows are from {have} but the model learnt from {want}: give the same kind."
            )
        return X if isinstance(X, NumberFrame) else _frame(X)

    def as_numbers(self, X: Any) -> Any:
        """The rows in the form that is quickest to prepare again and again, in parts.

        That is a `NumberFrame` where they are numbers alone, none of them missing; otherwise X.
        """
        frame, _ = match_columns(self._same_storage(X), list(self.kinds_))
        numeric, categorical = self._names()
        if categorical or isinstance(frame, NumberFrame):
            return frame
        matrix = numbers_of(frame, numeric)
        return frame if np.isnan(matrix).any() else NumberFrame(matrix, numeric)

    def _names(self) -> tuple[list[str], list[str]]:
        """Return the columns of numbers and those of categories."""
        numeric = [name for name, kind in self.kinds_.items() if isinstance(kind, str)]
        return numeric, [x for x, kind in self.kinds_.items() if not isinstance(kind, str)]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the matrix's columns: as they were, or ``column=value``."""
        check_is_fitted(self, "kinds_")
        numeric, categorical = self._names()
        spread = [f"{x}={level}" for x in categorical for level in _spread(self.kinds_[x])]
        return np.array([*numeric, *spread], dtype=object)

    def columns_behind(self) -> list[str]:
        """Return the column that each column of the matrix comes from."""
        check_is_fitted(self, "kinds_")
        numeric, categorical = self._names()
        return [*numeric, *(x for x in categorical for _ in _spread(self.kinds_[x]))]

    def news_in(self, X: Any, known: Collection[str] = ()) -> list[str]:
        """Return notes on new rows: missing numbers, categories that were not there in `fit`.

        Columns in `known` are not worth a note, though none of them is used.

        Examples
        --------
        >>> import pandas as pd
        >>> from anynorm import tables
        >>> preparation = tables.Preparation().fit(pd.DataFrame({"organ": ["lung", "skin", "eye"]}))
        >>> preparation.news_in(pd.DataFrame({"organ": ["lung", "brain", "brain"]}))
        ["'organ' has values that the model does not know, in 2 rows: 'brain'."]
        """
        check_is_fitted(self, "kinds_")
        frame, notes = match_columns(self._same_storage(X), list(self.kinds_), known)
        if isinstance(frame, SparseFrame):
            return notes
        numeric, categorical = self._names()
        if numeric:
            values = numbers_of(frame, numeric)
            notes += self._filled(values, "the rows that the model learnt from")
        for name, values in zip(categorical, levels_of(frame, categorical).T, strict=True):
            known = set(self.kinds_[name])
            new = [value for value in values if value not in known]
            if new:
                notes.append(
                    f"{name!r} has values that the model does not know, in "
                    f"{counted(len(new), 'row')}: {listed(dict.fromkeys(new))}."
                )
        return notes

    def narrowed(self, used: NDArray[np.bool_]) -> tuple[Preparation, NDArray[np.intp]]:
        """Return the preparation of the columns behind some features alone.

        Parameters
        ----------
        used : ndarray of bool of shape (p,)
            The features that are needed; of a column of categories one brings all.

        Returns
        -------
        preparation : Preparation
            Asks for the columns of these features alone.
        columns : ndarray of int
            The places of its features among the p.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from anynorm import tables
        >>> frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0], "organ": ["eye", "lung"]})
        >>> preparation = tables.Preparation().fit(frame)
        >>> small, columns = preparation.narrowed(np.array([False, True, False]))
        >>> list(small.kinds_), columns.tolist()
        (['b'], [1])
        >>> small.transform(frame[["b"]]).tolist()
        [[-1.0], [1.0]]
        """
        check_is_fitted(self, "kinds_")
        numeric, of = self._names()[0], self.columns_behind()
        kept = {name for name, needed in zip(of, used, strict=True) if needed}
        columns = np.flatnonzero([name in kept for name in of])
        out = Preparation(self.scale, max_levels=self.max_levels)
        out.kinds_ = {name: kind for name, kind in self.kinds_.items() if name in kept}
        out.sparse_, out.notes_ = self.sparse_, list(self.notes_)
        out.feature_names_in_ = np.array(list(out.kinds_), dtype=object)
        out.n_features_in_ = len(out.kinds_)
        out.imputer_ = out.encoder_ = out.scaler_ = None
        places = np.flatnonzero([name in kept for name in numeric])
        if self.imputer_ is not None and len(places):
            out.imputer_ = _imputer().fit(self.imputer_.statistics_[None, places])
        levels = [_spread(kind) for kind in out.kinds_.values() if not isinstance(kind, str)]
        if levels:
            out.encoder_ = _encoder(levels)
        if self.scaler_ is not None:
            out.scaler_ = copy(self.scaler_)
            out.scaler_.n_features_in_ = len(columns)
            for name in ("mean_", "var_", "scale_"):
                values = getattr(self.scaler_, name)
                setattr(out.scaler_, name, None if values is None else values[columns])
        return out, columns

    @classmethod
    def of_numbers(
        cls, kinds: Mapping[str, str], medians: Array, scaled: tuple[Array, Array, int] | None
    ) -> Preparation:
        """Return the preparation of columns of numbers of which all that it takes is known.

        Parameters
        ----------
        kinds : dict
            The columns, each "number" or "boolean".
        medians : ndarray of shape (p,)
            What missing numbers become.
        scaled : (mean, variance, n) or None
            Of the columns, over n rows; None leaves them as they are.

        Returns
        -------
        preparation : Preparation
            As if it was fitted to rows that say so.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> from anynorm import tables
        >>> about = np.array([2.0]), np.array([9.0]), 100
        >>> preparation = tables.Preparation.of_numbers({"dose": "number"}, np.array([1.0]), about)
        >>> preparation.transform(pd.DataFrame({"dose": [5.0, np.nan]})).tolist()
        [[1.0], [-0.3333333333333333]]
        """
        out = cls("none" if scaled is None else "standard", kinds=dict(kinds))
        out.kinds_, out.sparse_, out.notes_ = dict(kinds), False, []
        out.feature_names_in_ = np.array(list(kinds), dtype=object)
        out.n_features_in_ = len(kinds)
        out.imputer_, out.encoder_ = _imputer().fit(medians[None]), None
        out.scaler_ = None
        if scaled is not None:
            mean, variance, n = scaled
            # Two rows at mean -+ deviation have the same moments, and what is constant is left so.
            spread = np.sqrt(variance)
            out.scaler_ = StandardScaler().fit(np.array([mean - spread, mean + spread]))
            out.scaler_.n_samples_seen_ = n
        return out

    def scale_of(self, name: str) -> float:
        """Return the standard deviation by which a column of the matrix was divided, or 1."""
        names = list(self.get_feature_names_out())
        if name not in names:
            raise ValueError(f"there is no column {name!r}; see get_feature_names_out().")
        return float(self.scales_[names.index(name)])

    @property
    def scales_(self) -> Array:
        """The numbers by which the matrix's columns were divided."""
        if self.scaler_ is None:
            return np.ones(len(self.get_feature_names_out()))
        return np.asarray(self.scaler_.scale_)

    def to_original_units(self, coef: Any, intercept: Any) -> tuple[Array, Any]:
        """Return weights and bias for unscaled columns, given those for the scaled ones.

        Parameters
        ----------
        coef : array of shape (p,) or (K, p)
        intercept : float or array of shape (K,)

        Returns
        -------
        coef, intercept

        Examples
        --------
        >>> import pandas as pd
        >>> from anynorm import tables
        >>> frame = pd.DataFrame({"length": [10.0, 20.0, 30.0]})
        >>> preparation = tables.Preparation().fit(frame)
        >>> coef, intercept = preparation.to_original_units([2.0], 1.0)
        >>> scaled = preparation.transform(frame) @ [2.0] + 1.0
        >>> print(scaled.round(3), (frame.to_numpy() @ coef + intercept).round(3))
        [-1.449  1.     3.449] [-1.449  1.     3.449]
        """
        coef = np.asarray(coef, dtype=np.float64) / self.scales_
        if self.scaler_ is None or not self.scaler_.with_mean:
            return coef, intercept
        return coef, intercept - coef @ self.scaler_.mean_


def _imputer() -> SimpleImputer:
    """Medians for what is missing; a column may have no value in a part of the rows: 0 there."""
    return SimpleImputer(strategy="median", keep_empty_features=True)


def _encoder(levels: list[list[str]]) -> OneHotEncoder:
    """Columns of zeros and ones for these categories; the rows say nothing that they do not."""
    categories = [np.array(each, dtype=object) for each in levels]
    first = np.array([[each[0] for each in levels]], dtype=object)
    return OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False).fit(
        first
    )


def _medians(values: Array) -> Array:
    """The medians of the columns, as a matrix of one row."""
    return np.median(np.ascontiguousarray(values.T), axis=1)[None]


def _spread(levels: Any) -> list[str]:
    """Return the categories that get a column: all, or the second of two."""
    return list(levels) if len(levels) != 2 else list(levels[1:])


def _frame(X: Any) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        raise TypeError(
            f"Preparation works on data frames with named columns; got {type(X).__name__}. "
            "pandas.DataFrame(X, columns=names) makes one."
        )
    if not all(isinstance(name, str) for name in X.columns):
        X = X.set_axis([str(name) for name in X.columns], axis=1)
    if not X.columns.is_unique:
        double = X.columns[X.columns.duplicated()][0]
        raise TableError(f"two columns have the name {double!r}. Give one another name.")
    return X
