"""One search from rows to a chosen model, whatever the model is."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from anynorm.app.job.folds import fold_numbers, make_splits, numbered_splits
from anynorm.app.job.measures import all_classes, all_probabilities
from anynorm.app.job.options import FitOptions, OptionError
from anynorm.design import Matrix
from anynorm.design.device import DevicePlace
from anynorm.design.device_design import DeviceDesign
from anynorm.estimators._ordered_labels import OrderedLabels
from anynorm.estimators._prepared_folds import PreparedFolds, Split


@dataclass(frozen=True)
class Task:
    """Rows to learn from, and how.

    Attributes
    ----------
    frame : DataFrame or SparseFrame
        The features as they were read.
    rows : DataFrame or NumberFrame
        The same in the form that is quickest to prepare in parts (`Preparation.as_numbers`).
    y : ndarray of shape (n,)
        The rows' classes, as places among `classes`.
    groups : ndarray of shape (n,) or None
        The rows' groups.
    classes : ndarray of shape (K,)
        The labels of the whole table; some may be missing in a part of its rows.
    preparation : transformer
        Not fitted; a copy is fitted to the rows, and others in every fold.
    options : FitOptions
        What to fit and how to choose.
    splits : list of (ndarray, ndarray)
        The folds in which candidates are compared.
    n_features, n_entries : int
        The number of features after the preparation, and of entries that are stored for all rows.
    judging : bool, default=False
        Whether the model that is chosen serves to judge the search alone.
    """

    frame: Any
    rows: Any
    y: np.ndarray
    groups: np.ndarray | None
    classes: np.ndarray
    preparation: Any
    options: FitOptions
    splits: list[Split]
    n_features: int
    n_entries: int
    judging: bool = False

    @property
    def n_problems(self) -> int:
        """The number of binary problems: one for two classes, otherwise one for each."""
        return 1 if len(self.classes) == 2 else len(self.classes)

    @property
    def class_weight(self) -> Any:
        """The weights of the classes, as estimators take them; of those alone that are there."""
        given = self.options.class_weight
        if not isinstance(given, dict):
            return given
        present = self.classes[np.unique(self.y)].tolist()
        return {label: given.get(str(label), 1.0) for label in present}

    def folds_within(self, rows: np.ndarray) -> np.ndarray:
        """The folds for some of the rows alone, as `fold_numbers` has them."""
        groups = None if self.groups is None else self.groups[rows]
        return fold_numbers(make_splits(self.y[rows], groups, self.options)[0], len(rows))

    def part(self, rows: np.ndarray, folds: np.ndarray) -> Task:
        """The same task for some of the rows, with the folds that `folds_within` gave."""
        groups = None if self.groups is None else self.groups[rows]
        part, splits = self.rows.iloc[rows], numbered_splits(folds)
        return replace(
            self,
            frame=part,
            rows=part,
            y=self.y[rows],
            groups=groups,
            splits=splits,
            judging=True,
        )

    @property
    def labels(self) -> OrderedLabels:
        """The rows' labels, for a model that is to have the classes in their order."""
        return OrderedLabels(self.classes[self.y], self.classes)

    def folds(self) -> PreparedFolds:
        """The rows of the folds, each prepared by itself."""
        return PreparedFolds(self.rows, self.splits, self.preparation)

    def no_scores(self, *shape: int) -> np.ndarray:
        """Room for decision values of all rows."""
        width = () if len(self.classes) == 2 else (len(self.classes),)
        return np.full((*shape, len(self.y), *width), np.nan)

    def prepared(self) -> tuple[Any, Matrix]:
        """The preparation, fitted to all rows, and their matrix."""
        preparation = copy(self.preparation)
        return preparation, preparation.fit_transform(self.frame)

    def placed(self, X: Matrix) -> Matrix:
        """A matrix on the device that is asked for, if one is."""
        device = self.options.device
        if device is None:
            return X
        if sp.issparse(X):
            raise OptionError(
                f"--device {device} takes tables of numbers; this one has text, or is mostly zero, "
                "and is sparse. Leave --device out, or drop the columns of text."
            )
        place = DevicePlace.named(device)
        return DeviceDesign(place.put(X), None, place)


@dataclass(frozen=True)
class GridScores:
    """The scores of the settings of a search.

    Attributes
    ----------
    candidates : list of dict
        What was tried: C, and what else changes.
    scores : ndarray of shape (candidates, folds)
        The folds' scores; NaN where a setting was left out.
    chosen : int
        The place of the choice.
    """

    candidates: list[dict[str, float]]
    scores: np.ndarray
    chosen: int


@dataclass(frozen=True)
class Learned:
    """The model that a search chose.

    Attributes
    ----------
    pipeline : Pipeline
        The preparation and the model, fitted.
    fold_scores : ndarray of shape (folds,)
        The scores of the choice on the rows that the folds held out: they chose it, so their
        mean is too good.
    held_out : ndarray of shape (n,) or (n, K)
        The decision values of the choice by the folds that held the rows out.
    choice : dict
        What was chosen, by name.
    selection_frequency : ndarray of shape (p,) or None
        The share of the folds that use the feature; None where all are used, or none has a weight.
    detail : object
        What else the search found, for the report.
    cut : bool
        Whether the time limit ended a part of the search.
    cut_words : str, default=""
        Where it did, in words.
    stopped : str, default=""
        Where and why the search ended by itself before all was tried, in words.
    still_rising : bool, default=False
        Whether --max-features ended the search where the score still rose.
    at_edge : str, default=""
        That the choice is at the edge of what was tried, in words.
    in_vain : bool, default=False
        Whether the time limit ended the search before it came to a model that is worth more than
        one without features.
    """

    pipeline: Pipeline
    fold_scores: np.ndarray
    held_out: np.ndarray
    choice: dict[str, Any]
    selection_frequency: np.ndarray | None
    detail: Any
    cut: bool
    cut_words: str = ""
    stopped: str = ""
    still_rising: bool = False
    at_edge: str = ""
    in_vain: bool = False

    @property
    def preparation(self) -> Any:
        """The fitted preparation."""
        return self.pipeline[0]

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.pipeline[-1]

    def scores(self, frame: Any, classes: np.ndarray) -> np.ndarray:
        """Decision values of other rows."""
        return all_classes(self.model, self.preparation.transform(frame), classes)

    def probabilities(self, frame: Any, classes: np.ndarray) -> np.ndarray | None:
        """Probabilities of other rows; None where the model has none."""
        if not hasattr(self.model, "predict_proba"):
            return None
        return all_probabilities(self.model, self.preparation.transform(frame), classes)


def edge_words(tried: dict[str, Any], chosen: dict[str, Any]) -> str:
    """Say which of the chosen values are the smallest or the largest that were tried.

    Examples
    --------
    >>> from anynorm.app.job.learning import edge_words
    >>> edge_words({"C": [1.0, 10.0, 100.0], "gamma": [0.5]}, {"C": 100.0, "gamma": 0.5})
    'C = 100 is the largest that was tried; a better one may lie beyond.'
    """
    found = []
    for name, values in tried.items():
        least, most = min(values), max(values)
        if least < most and chosen[name] in (least, most):
            which = "smallest" if chosen[name] == least else "largest"
            found.append(f"{name} = {chosen[name]:.4g} is the {which} that was tried")
    return f"{', '.join(found)}; a better one may lie beyond." if found else ""


def pipeline_of(preparation: Any, model: Any) -> Pipeline:
    """The fitted steps as the one thing that is saved."""
    return Pipeline([("prepare", preparation), ("model", model)])
