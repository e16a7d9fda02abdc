"""What a model file holds, for people: how good the model is, what it needs, and its formula."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.pipeline import Pipeline

from anynorm.app.job.narrowing import is_prepared, narrowed, weights_of
from anynorm.app.job.predict import load_classifier
from anynorm.app.model_files import ModelFileError, save_model

MISSING = "if_missing"


@dataclass(frozen=True)
class Card:
    """A model in short.

    Attributes
    ----------
    model : Pipeline
        Without the columns that have no weight, and without its search.
    metadata : dict
        What was kept with it.
    columns : list of str
        The columns that new rows must have.
    formula : DataFrame or None
        The weights of the features in the units of the file, and what is taken where a value is
        missing; a row for each feature, and before them the constant, of each class where there
        are several.  None for models without weights.
    """

    model: Pipeline
    metadata: dict[str, Any]
    columns: list[str]
    formula: pd.DataFrame | None


def read_card(path: str | os.PathLike[str]) -> Card:
    """Return the card of a model that ``anynorm fit`` wrote."""
    found, metadata = load_classifier(path)
    if not is_prepared(found):
        raise ModelFileError(
            f"{path} holds a {type(found).__name__} that knows nothing of columns in files; a card "
            "is made of what anynorm fit writes."
        )
    model = narrowed(found)
    columns = [str(name) for name in model[0].feature_names_in_]
    return Card(model, metadata | {"columns": columns}, columns, _formula(model))


def write_compact(card: Card, path: str | os.PathLike[str]) -> None:
    """Write the model with what its predictions need, and nothing else."""
    save_model(card.model, path, metadata=card.metadata)


def _formula(model: Pipeline) -> pd.DataFrame | None:
    preparation, estimator = model[0], model[-1]
    weights = weights_of(estimator) if len(model) == 2 else None
    if weights is None:
        return None
    coefs, constants = preparation.to_original_units(weights, estimator.intercept_)
    names = [str(name) for name in preparation.get_feature_names_out()]
    medians = [] if preparation.imputer_ is None else preparation.imputer_.statistics_.tolist()
    filled = [None, *medians, *[None] * (len(names) - len(medians))]
    parts = []
    for k, coef in enumerate(coefs):
        values = [float(constants[k]), *coef.tolist()]
        part = pd.DataFrame({"feature": ["(constant)", *names], "weight": values, MISSING: filled})
        if len(coefs) > 1:
            part.insert(0, "class", str(estimator.classes_[k]))
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    return table[(table["weight"] != 0) | (table["feature"] == "(constant)")]
