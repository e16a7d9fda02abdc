"""Estimators as nodes of a graph: transformers turn rows into rows, models rows into scores."""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import is_classifier

import anynorm
from anynorm.app.onnx.graph import Graph
from anynorm.estimators._fitting import FittedClassifier
from anynorm.estimators._kernel_model import KernelClassifier
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._probabilities import CalibratedClassifier, ProbableClassifier
from anynorm.estimators.constrained_lasso import ConstrainedLasso
from anynorm.estimators.reweighted_any import Reweighted

Pair = tuple[np.ndarray, np.ndarray]


def translated(model: Any, dtype: str) -> Any:
    """Return the graph of a model, of which the numbers in and out have that dtype."""
    graph = Graph()
    *before, last = _steps(model)
    if hasattr(last, "preprocessor_"):
        before += _steps(last.preprocessor_)
    rows = _rows(graph, before[0] if before else last, dtype)
    for step in before:
        if step is not before[0] or not _named(step, "Preparation"):
            rows = _transformer(step)(graph, rows, step)
    scores, classes = _scores(graph, rows, last)
    if classes is None:
        graph.output("variable", graph.cast(scores, dtype), dtype, ["n"])
    else:
        _classified(graph, scores, classes, dtype)
        if isinstance(last, ProbableClassifier) and hasattr(last, "predict_proba"):
            proba = _probabilities(graph, scores, last)
            graph.output("probabilities", graph.cast(proba, dtype), dtype, ["n", len(classes)])
    return graph.model(type(last).__name__, anynorm.__version__)


def _steps(part: Any) -> list[Any]:
    """What a pipeline consists of; anything else is one step."""
    steps = [step for _, step in part.steps] if _named(part, "Pipeline") else [part]
    return [step for step in steps if step is not None and step != "passthrough"]


def _named(value: Any, *names: str) -> bool:
    """Whether a value is of a class of that name, of scikit-learn or of ours."""
    cls = type(value)
    return cls.__name__ in names and cls.__module__.split(".")[0] in ("sklearn", "anynorm")


def _rows(graph: Graph, first: Any, dtype: str) -> str:
    """Declare the inputs and return the rows of float64 that the other steps work on."""
    if _named(first, "Preparation"):
        return _prepared(graph, first, dtype)
    if _named(first, "Pipeline", "ColumnTransformer"):
        raise _without_translation(first)
    names = getattr(first, "feature_names_in_", None)
    return graph.cast(graph.input("X", dtype, first.n_features_in_, names), "float64")


def _without_translation(part: Any) -> ValueError:
    return ValueError(
        f"{type(part).__name__} has no translation to ONNX here. One flat pipeline of a "
        "Preparation, scalers and a linear or kernel model has; skl2onnx translates "
        "scikit-learn's own transformers."
    )


# Transformers: the name of rows in, the name of rows out.


def _transformer(step: Any) -> Callable[[Graph, str, Any], str]:
    for name, translate in _TRANSFORMERS.items():
        if _named(step, name):
            return translate
    raise _without_translation(step)


def _scaled(graph: Graph, operator: str, rows: str, scales: np.ndarray) -> str:
    """Rows times or over the scales.

    onnxruntime takes a single factor beside a matrix product into the product, as a float32: where
    there is one column, a choice of that column stands between them.
    """
    rows = graph.node(operator, rows, graph.constant(scales))
    return _columns(graph, rows, np.array([0])) if len(scales) == 1 else rows


def _centred_and_scaled(graph: Graph, rows: str, centre: Any, scales: Any) -> str:
    if centre is not None:
        rows = graph.node("Sub", rows, graph.constant(centre))
    return rows if scales is None else _scaled(graph, "Div", rows, scales)


def _standard_scaler(graph: Graph, rows: str, step: Any) -> str:
    return _centred_and_scaled(graph, rows, step.mean_ if step.with_mean else None, step.scale_)


def _min_max_scaler(graph: Graph, rows: str, step: Any) -> str:
    rows = _scaled(graph, "Mul", rows, step.scale_)
    rows = graph.node("Add", rows, graph.constant(step.min_))
    if not step.clip:
        return rows
    low, high = map(float, step.feature_range)
    return graph.node("Clip", rows, graph.constant(low), graph.constant(high))


def _simple_imputer(graph: Graph, rows: str, step: Any) -> str:
    gaps = step.missing_values
    kept = ~np.isnan(np.asarray(step.statistics_, dtype=np.float64))
    if not (isinstance(gaps, float) and math.isnan(gaps)) or step.add_indicator or not kept.all():
        raise _without_translation(step)
    statistics = graph.constant(np.asarray(step.statistics_, dtype=np.float64))
    return graph.node("Where", graph.node("IsNaN", rows), statistics, rows)


def _polynomial_dictionary(graph: Graph, rows: str, step: Any) -> str:
    first, second = np.triu_indices(step.n_features_in_, k=1)
    products = graph.node("Mul", _columns(graph, rows, first), _columns(graph, rows, second))
    mixed = graph.node("Concat", rows, products, axis=1)
    mixed = _scaled(graph, "Mul", mixed, np.full(step.n_features_in_ + len(first), math.sqrt(2)))
    return graph.node("Concat", mixed, graph.node("Mul", rows, rows), axis=1)


_TRANSFORMERS: dict[str, Callable[[Graph, str, Any], str]] = {
    "StandardScaler": _standard_scaler,
    "RobustScaler": lambda graph, rows, step: _centred_and_scaled(
        graph, rows, step.center_, step.scale_
    ),
    "MaxAbsScaler": lambda graph, rows, step: _scaled(graph, "Div", rows, step.scale_),
    "MinMaxScaler": _min_max_scaler,
    "SimpleImputer": _simple_imputer,
    "KernelDictionary": lambda graph, rows, step: _kernel_values(
        graph, rows, step._gram, step.components_
    ),
    "PolynomialDictionary": _polynomial_dictionary,
}


def _columns(graph: Graph, rows: str, places: np.ndarray) -> str:
    return graph.node("Gather", rows, graph.constant(places.astype(np.int64)), axis=1)


def _prepared(graph: Graph, step: Any, dtype: str) -> str:
    """The command's preparation: gaps filled, categories spread, columns scaled."""
    numeric = [name for name, kind in step.kinds_.items() if isinstance(kind, str)]
    categorical = [name for name in step.kinds_ if name not in set(numeric)]
    parts = []
    if numeric:
        title = "numbers" if categorical else "X"
        numbers = graph.cast(graph.input(title, dtype, len(numeric), numeric), "float64")
        imputed = step.imputer_ is not None  # nothing to fill in a sparse table
        parts.append(_simple_imputer(graph, numbers, step.imputer_) if imputed else numbers)
    if categorical:
        texts = graph.input("categories", "str", len(categorical), categorical)
        for place, levels in enumerate(step.encoder_.categories_):
            column = _columns(graph, texts, np.array([place]))
            parts.append(_spread(graph, column, list(levels), step.kinds_[categorical[place]]))
    rows = parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)
    return rows if step.scaler_ is None else _standard_scaler(graph, rows, step.scaler_)


def _spread(graph: Graph, column: str, levels: list[str], known: Any) -> str:
    """A column of zeros and ones per level; "" is that of missing values, unless it was known."""
    from anynorm.app.tables.columns import MISSING_LEVEL

    texts = [*levels, ""] if MISSING_LEVEL in levels and "" not in known else levels
    found = graph.node(
        "OneHotEncoder", column, domain="ai.onnx.ml", cats_strings=list(texts), zeros=1
    )
    found = graph.node("Reshape", found, graph.constant(np.array([-1, len(texts)])))
    found = graph.cast(found, "float64")
    if len(texts) == len(levels):
        return found
    join = np.eye(len(texts), len(levels))
    join[-1, levels.index(MISSING_LEVEL)] = 1.0
    return graph.node("MatMul", found, graph.constant(join))


# Models: the name of rows in, the name of scores out, with the classes or None.


def _scores(graph: Graph, rows: str, model: Any) -> tuple[str, np.ndarray | None]:
    """Scores of shape (n,) for two classes or a regression, else (n, K)."""
    model = copy(model) if isinstance(model, FittedClassifier) else model  # in memory
    classes = model.classes_ if is_classifier(model) else None
    if isinstance(model, KernelClassifier):
        return _kernel_scores(graph, rows, model), classes
    found = _linear_parts(model)
    if found is None:
        raise _without_translation(model)
    return _weighted(graph, rows, *found), classes


def _linear_parts(model: Any) -> Pair | None:
    """Coefficients of shape (k, p) and intercepts of shape (k,), None where there are none."""
    if _named(model, "OneVsRestClassifier"):
        for each in model.estimators_:
            if hasattr(each, "preprocessor_"):  # of each class another
                raise _without_translation(each.preprocessor_)
        parts = [_linear_parts(each) for each in model.estimators_]
        if any(part is None for part in parts):
            return None
        coefs, intercepts = zip(*parts, strict=True)
        return np.vstack(coefs), np.concatenate(intercepts)
    if not isinstance(model, LinearClassifier | ConstrainedLasso | Reweighted):
        return None
    intercept = np.asarray(model.intercept_, dtype=np.float64).ravel()
    return np.atleast_2d(_dense(model.coef_)), intercept


def _weighted(graph: Graph, rows: str, weights: np.ndarray, intercepts: np.ndarray) -> str:
    """``rows @ weights.T + intercepts``, through the columns alone that have a weight."""
    used = np.flatnonzero(weights.any(axis=0))
    used = used if len(used) else np.array([0])  # a product needs a column
    if len(used) < weights.shape[1]:
        rows, weights = _columns(graph, rows, used), weights[:, used]
    product = graph.node("MatMul", rows, graph.constant(weights.T))
    scores = graph.node("Add", product, graph.constant(intercepts))
    if len(weights) > 1:
        return scores
    return graph.node("Reshape", scores, graph.constant(np.array([-1])))


def _kernel_scores(graph: Graph, rows: str, model: Any) -> str:
    sums, weights = model._sums, np.asarray(model.dual_coef_, dtype=np.float64)
    if weights.shape[1] == 0:
        width = model.n_features_in_ if sums.kernel.takes_matrix else sums.columns.shape[1]
        constant = np.zeros((len(weights), width))
        return _weighted(graph, rows, constant, model.intercept_)
    if sums.kernel.is_inner_product:
        return _weighted(graph, rows, weights @ _dense(model.support_vectors_), model.intercept_)
    points = model.support_ if sums.kernel.takes_matrix else model.support_vectors_
    return _weighted(graph, _kernel_values(graph, rows, sums, points), weights, model.intercept_)


def _kernel_values(graph: Graph, rows: str, evaluator: Any, points: Any) -> str:
    """The kernel of all rows with the points, as its `Gram` or `KernelSums` computes it."""
    points = _dense(points)
    if evaluator.origin is not None:
        rows = graph.node("Sub", rows, graph.constant(evaluator.origin))
        points = points - evaluator.origin
    return evaluator.kernel.onnx(graph, rows, points)


def _dense(points: Any) -> np.ndarray:
    return np.asarray(points.toarray() if sp.issparse(points) else points, dtype=np.float64)


def _classified(graph: Graph, scores: str, classes: np.ndarray, dtype: str) -> None:
    """Declare the labels and the scores."""
    if len(classes) <= 2:
        chosen = graph.cast(graph.node("Greater", scores, graph.constant(0.0)), "int64")
    else:
        chosen = graph.node("ArgMax", scores, axis=1, keepdims=0)
    labels, kind = _labels(classes)
    graph.output("label", graph.node("Gather", graph.constant(labels), chosen), kind, ["n"])
    shape = ["n"] if len(classes) <= 2 else ["n", len(classes)]
    graph.output("scores", graph.cast(scores, dtype), dtype, shape)


def _probabilities(graph: Graph, scores: str, model: Any) -> str:
    """Probabilities of shape (n, K), as `ProbableClassifier` has them."""
    binary = len(model.classes_) == 2
    if binary:
        scores = graph.node("Reshape", scores, graph.constant(np.array([-1, 1])))
    if isinstance(model, CalibratedClassifier):
        parts = _calibrated(graph, scores, model.calibration_)
    else:
        parts = graph.node("Sigmoid", scores)
    if binary:
        rest = graph.node("Sub", graph.constant(1.0), parts)
        return graph.node("Concat", rest, parts, axis=1)
    total = graph.node("ReduceSum", parts, graph.constant([1]))
    none = graph.node("Equal", total, graph.constant(0.0))
    divided = graph.node("Div", parts, graph.node("Where", none, graph.constant(1.0), total))
    return graph.node("Where", none, graph.constant(1.0 / len(model.classes_)), divided)


def _calibrated(graph: Graph, scores: str, calibration: dict[str, Any]) -> str:
    """A sigmoid of the scores, or straight lines between corners."""
    if calibration["method"] == "sigmoid":
        steep = graph.node("Mul", scores, graph.constant(-calibration["slope"]))
        return graph.node(
            "Sigmoid", graph.node("Sub", steep, graph.constant(calibration["offset"]))
        )
    columns = zip(calibration["scores"], calibration["probabilities"], strict=True)
    parts = [
        _interpolated(graph, _columns(graph, scores, np.array([k])), x, p)
        for k, (x, p) in enumerate(columns)
    ]
    return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)


def _interpolated(graph: Graph, column: str, x: np.ndarray, p: np.ndarray) -> str:
    """p(x) between corners: what each piece adds, by how far the score has come in it."""
    if len(x) == 1:
        nothing = graph.node("Mul", column, graph.constant(0.0))
        return graph.node("Add", nothing, graph.constant(float(p[0])))
    come = graph.node("Sub", column, graph.constant(x[None, :-1]))
    share = graph.node("Div", come, graph.constant(np.diff(x)[None]))
    share = graph.node("Clip", share, graph.constant(0.0), graph.constant(1.0))
    added = graph.node("MatMul", share, graph.constant(np.diff(p)[:, None]))
    return graph.node("Add", added, graph.constant(float(p[0])))


def _labels(classes: np.ndarray) -> tuple[np.ndarray, str]:
    """The labels in a type that ONNX has, and its name."""
    values = classes.tolist()
    known = ((str, "str"), (bool, "bool"), (int, "int64"), (int | float, "float64"))
    for kind, name in known:
        if all(isinstance(value, kind) for value in values):
            return np.array(values, dtype=name), name
    raise ValueError(
        "the class labels have no type in ONNX; use strings, integers, booleans or floats."
    )
