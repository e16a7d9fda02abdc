"""A fitted model without what its predictions do not need: columns of no weight, and the search.

A sparse model of 2,000 columns asks for the few with weight alone, so that new rows need no others.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from anynorm.app.job.learning import pipeline_of
from anynorm.app.tables import Preparation
from anynorm.estimators._linear_model import LinearClassifier

# What a search leaves for its report, and a fit for the next one: no prediction reads it.
_OF_THE_SEARCH = (
    "path_", "paths_", "cv_results_", "oof_decision_function_", "oof_predict_proba_",
    "selection_frequency_", "history_", "_duals",
)  # fmt: skip


def is_prepared(model: Any) -> bool:
    """Whether a model takes tables: a pipeline that begins with a preparation."""
    return isinstance(model, Pipeline) and isinstance(model[0], Preparation)


def narrowed(pipeline: Pipeline) -> Pipeline:
    """The model with the columns that have weight alone, and nothing of its search.

    Parameters
    ----------
    pipeline : Pipeline
        A fitted preparation and what is behind it.  A model without weights of these columns (a
        kernel, further steps, or the same class for every row) keeps all of them.

    Returns
    -------
    Pipeline
        Predicts the same; the one that was given stays as it is.
    """
    if len(pipeline) != 2:
        return pipeline
    preparation, model = pipeline[0], copy(pipeline[-1])
    for name in _OF_THE_SEARCH:
        vars(model).pop(name, None)
    weights = weights_of(model)
    if weights is None or not weights.any():
        return pipeline_of(preparation, model)
    used = weights.any(axis=0)
    preparation, columns = preparation.narrowed(used)
    model.coef_ = np.ascontiguousarray(weights[:, columns])
    model.n_features_in_ = len(columns)
    return pipeline_of(preparation, model)


def weights_of(model: Any) -> np.ndarray | None:
    """The weights of a linear classifier's features, a row for each problem; None for others."""
    if not isinstance(model, LinearClassifier):
        return None
    return model.coef_.toarray() if sp.issparse(model.coef_) else np.asarray(model.coef_)
