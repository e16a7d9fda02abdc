"""Models as ONNX graphs, for programs without Python.

    rows -> float64 -> preparation, scaling, dictionary -> scores -> labels

Whatever type comes in, the graph computes in float64, as the models do, so that labels are theirs.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from anynorm.app.atomic import atomic_file

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["to_onnx"]

_DTYPES = ("float32", "float64")


def to_onnx(
    model: Any, path: str | os.PathLike[str] | None = None, *, dtype: str = "float32"
) -> ModelProto:
    """Translate a fitted model, with its preparation of the data, into an ONNX graph.

    Parameters
    ----------
    model : estimator
        A fitted classifier or regression of anynorm, `Reweighted`, a `OneVsRestClassifier` around
        it, or a scikit-learn pipeline that ends in one of these and has before it any of
        `StandardScaler`, `MinMaxScaler`, `MaxAbsScaler`, `RobustScaler`, `SimpleImputer`,
        `KernelDictionary`, `PolynomialDictionary` and the command's `Preparation`.
    path : str, path-like or None, default=None
        Where to write the graph, usually named ``*.onnx``; None writes nothing.
    dtype : {"float32", "float64"}, default="float32"
        The type of the numbers that go in and come out.  The graph computes in float64.

    Returns
    -------
    onnx.ModelProto
        The graph.  Its inputs are dense and two-dimensional: ``X``, or, where a `Preparation` has
        categories, ``numbers`` and ``categories`` (strings).  NaN is a missing number, "" a missing
        category.  The names of their columns are in the metadata, as JSON, under the names of the
        inputs.  Its outputs are ``label`` and ``scores`` (the `decision_function`) of a classifier,
        and ``probabilities`` where it has `predict_proba`; ``variable`` of a regression.

    Raises
    ------
    ValueError
        Where the model has a part that has no translation; the message says which.
    ImportError
        Where onnx is not installed.

    Examples
    --------
    >>> from anynorm import LinearSVC, to_onnx
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> graph = to_onnx(LinearSVC().fit(X, y)).graph
    >>> [value.name for value in graph.input], [value.name for value in graph.output]
    (['X'], ['label', 'scores'])
    """
    from sklearn.utils.validation import check_is_fitted

    if dtype not in _DTYPES:
        raise ValueError(f"dtype must be 'float32' or 'float64'; got {dtype!r}.")
    try:
        from anynorm.app.onnx.translation import translated
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        raise ImportError("to_onnx needs the package onnx: pip install 'anynorm[onnx]'") from error
    check_is_fitted(model)
    proto = translated(model, dtype)
    if path is not None:
        with atomic_file(path) as file:
            file.write(proto.SerializeToString(deterministic=True))
    return proto
