"""Predictions for the rows of a data file, and their error where labels are known."""

from __future__ import annotations

import os
import pathlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, is_classifier

from anynorm.app.job.class_order import codes_of
from anynorm.app.job.measures import Estimate, estimate, predicted
from anynorm.app.job.narrowing import is_prepared, narrowed
from anynorm.app.job.results import probability_columns, score_columns
from anynorm.app.model_files import ModelFileError, load_metadata, load_model
from anynorm.app.tables import (
    SparseFrame,
    Table,
    TableError,
    match_columns,
    read_table,
)
from anynorm.app.tables.columns import numbers_of
from anynorm.app.tables.errors import counted, listed, near_names


@dataclass(frozen=True)
class Predicted:
    """What `run_predict` found.

    Attributes
    ----------
    table : DataFrame
        Names, labels where the file has them, predictions, decision values, and probabilities where
        the model has some.
    errors : list of Estimate
        Empty where no label is known.
    confusion : DataFrame or None
        How many rows of each class (rows) were predicted as which (columns).
    notes : list of str
        What was left out, filled in and not known.
    """

    table: pd.DataFrame
    errors: list[Estimate]
    confusion: pd.DataFrame | None
    notes: list[str]


def run_predict(
    model_file: str | os.PathLike[str], data: str | os.PathLike[str], **reading: Any
) -> Predicted:
    """Predict the rows of a file; columns are found by their names, those with weight alone.

    Parameters
    ----------
    model_file : path
        Written by ``anynorm fit`` or `save_model`.
    data : path
        As `read_table` takes it.
    **reading
        Options of `read_table`: target, id, drop, labels, transpose, format.  Target and id are
        those that the model was fitted with, where they are not given and the file has them.

    Returns
    -------
    Predicted
        The predictions, and their error where the file has the target.

    Raises
    ------
    ModelFileError, TableError
        Where a file cannot be used; says which columns are missing.
    """
    model, metadata = load_classifier(model_file)
    known = set(_kinds(model) or ())
    if is_prepared(model):
        model = narrowed(model)
    kinds = _kinds(model)
    reading = {name: value for name, value in reading.items() if value is not None}
    asked = {name: reading[name] for name in ("target", "id") if name in reading}
    for role in ("target", "id"):
        if metadata.get(role) is not None:
            reading.setdefault(role, metadata[role])
    text = [name for name, kind in (kinds or {}).items() if not isinstance(kind, str)]
    table = read_table(data, **reading, text=text, for_prediction=True)
    for role, name in asked.items():
        if name in table.absent:
            columns = [str(each) for each in table.features.columns]
            raise TableError(
                f"there is no column {name!r} for --{role}. {near_names(name, columns)}",
                source=table.source,
            )
    matrix, notes = _matrix(model, table, known)
    notes = [*table.notes, *notes]
    scores = np.asarray(model.decision_function(matrix))
    classes = np.asarray(model.classes_)
    out = pd.DataFrame({"id": table.ids})
    labelled = table.target is not None and any(str(label) for label in table.target.tolist())
    labels: Any = table.target if labelled else None
    if labels is not None:
        out["label"] = labels
    out["predicted"] = classes[predicted(scores)]
    out = out.assign(**score_columns(scores, classes))
    if hasattr(model, "predict_proba"):
        out = out.assign(**probability_columns(model.predict_proba(matrix), classes))
    if labels is None:
        return Predicted(out, [], None, notes)
    if metadata.get("file") == table.source.name and metadata.get("rows") == len(table):
        notes.append(
            f"The model learnt from a file {table.source.name} of as many rows: if it is this one, "
            "the error is too good."
        )
    errors, confusion = _judged(labels, scores, classes, str(metadata.get("scoring")), notes)
    return Predicted(out, errors, confusion, notes)


def load_classifier(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Return the classifier of a model file and what was kept with it."""
    if not pathlib.Path(path).exists():
        raise ModelFileError(f"{path}: there is no such file.")
    if pathlib.Path(path).is_dir():
        raise ModelFileError(f"{path}: this is a folder; give a model file.")
    model, metadata = load_model(path), load_metadata(path)
    if not isinstance(model, BaseEstimator) or not is_classifier(model):
        raise ModelFileError(
            f"{path} holds a {type(model).__name__}, which predicts no classes. Give a classifier."
        )
    return model, dict(metadata)


def _kinds(model: Any) -> dict[str, Any] | None:
    return model[0].kinds_ if is_prepared(model) else None


def _matrix(model: Any, table: Table, known: set[str]) -> tuple[Any, list[str]]:
    """Return what the model takes, and notes on the columns; those without weight are no news."""
    features = table.features
    try:
        if is_prepared(model):
            return features, model[0].news_in(features, known)
        names = getattr(model, "feature_names_in_", None)
        if names is not None:
            frame, notes = match_columns(features, list(names))
            return frame if not isinstance(frame, SparseFrame) else frame.matrix, notes
        width = model.n_features_in_
        if features.shape[1] != width:
            raise TableError(
                f"the model knows its {width:,} features by their order, not by name, and the file "
                f"has {features.shape[1]:,}."
            )
        if isinstance(features, SparseFrame):
            return features.matrix, []
        return numbers_of(features, list(features.columns)), []
    except TableError as error:
        raise TableError(f"{error}{_hint(model, table)}", source=table.source) from None


def _hint(model: Any, table: Table) -> str:
    """Say that the file seems to be lying on its side."""
    kinds = _kinds(model)
    names = getattr(model, "feature_names_in_", []) if kinds is None else list(kinds)
    needed = {str(name) for name in names}
    if isinstance(table.features, SparseFrame) or not needed:
        return ""
    first = table.features.iloc[:, 0].astype(str)
    found = len(needed & {*first, *table.ids})
    return " They are rows of this file: use --transpose." if 2 * found >= len(needed) else ""


def _judged(
    labels: Any,
    scores: np.ndarray,
    classes: np.ndarray,
    scoring: str,
    notes: list[str],
) -> tuple[list[Estimate], pd.DataFrame | None]:
    """Compare with the labels that the model knows."""
    y = codes_of(labels, classes)
    present = np.array([str(label) != "" for label in labels.tolist()])
    strange = present & (y < 0)
    rows = np.flatnonzero(y >= 0)
    if not present.all():
        notes.append(f"{counted(int((~present).sum()), 'row')} without a label.")
    if strange.any():
        unknown = listed(dict.fromkeys(labels[strange].tolist()))
        notes.append(
            f"{counted(int(strange.sum()), 'row')} with labels that the model does not know "
            f"({unknown}; it knows {listed(classes)}): not in the error."
        )
    if not len(rows):
        return [], None
    wanted = [scoring, "error"] if scoring in ("balanced", "auc") else ["error"]
    errors = [estimate(each, y[rows], scores[rows], [np.arange(len(rows))]) for each in wanted]
    confusion = pd.crosstab(
        pd.Categorical.from_codes(y[rows], classes.astype(str)),
        pd.Categorical.from_codes(predicted(scores[rows]), classes.astype(str)),
        dropna=False,
    )
    return [each for each in errors if np.isfinite(each.value)], confusion
