"""Model files: fitted estimators as data, without pickle.

A file is a zip of one JSON tree per part and of plain arrays.  Loading builds objects of a fixed
list of classes from data; it never runs code from the file, and what is damaged, truncated, forged
or newer than this version is refused with a `ModelFileError`.  docs/model-files.md has the format.
"""

from __future__ import annotations

import os
import reprlib
import warnings
from collections.abc import Mapping
from typing import Any

from anynorm.app.model_files.container import Container, ModelFileError, write_container

__all__ = ["ModelFileError", "load_metadata", "load_model", "save_model"]

_PATHS = ("SolutionPath", "LassoPath")
_MODEL, _METADATA = "model.json", "metadata.json"


def save_model(
    model: Any, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted model to a file that `load_model` reads, without pickle.

    Parameters
    ----------
    model : estimator, SolutionPath or LassoPath
        A fitted estimator of anynorm, a scikit-learn pipeline of known parts around one, or a
        path.
    path : str or path-like
        The file, usually named ``*.anynorm``.  It is replaced in one step: an error or Ctrl-C
        leaves what was there.
    metadata : mapping or None, default=None
        Anything that is to be kept with the model: strings, numbers, arrays of them, lists, dicts.

    Raises
    ------
    ModelFileError
        Where the model holds something that is not data, such as a kernel that is a function.
    sklearn.exceptions.NotFittedError
        Where the estimator is not fitted.

    See Also
    --------
    load_model : Reads it.

    Examples
    --------
    >>> import os, tempfile
    >>> from anynorm import LinearSVC, load_model, save_model
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = LinearSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.anynorm")
    ...     save_model(model, path, metadata={"target": "status"})
    ...     loaded = load_model(path)
    >>> same = loaded.decision_function(X) == model.decision_function(X)
    >>> print(f"{same.sum()} of {len(same)} scores the same, to the last bit")
    100 of 100 scores the same, to the last bit
    >>> print(loaded.certificate_)
    optimal: primal ..., dual ..., relative gap ... (tol 1e-04)
    """
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted

    from anynorm import LassoPath, SolutionPath
    from anynorm.app.model_files.tree import Encoder

    is_path = type(model) in (SolutionPath, LassoPath)
    if isinstance(model, type) or not (hasattr(model, "get_params") or is_path):
        raise ModelFileError(
            f"model must be a fitted estimator or a path; got {reprlib.repr(model)}."
        )
    if isinstance(model, BaseEstimator):
        check_is_fitted(model)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ModelFileError(f"metadata must be a dict or None; got {type(metadata).__name__}.")
    encoder = Encoder()
    documents = {
        _MODEL: encoder.document(model, "the model"),
        _METADATA: encoder.document(dict(metadata or {}), "metadata"),
    }
    write_container(path, documents, encoder.arrays, _versions())


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read a model from a file that `save_model` wrote.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    estimator or SolutionPath
        The model, which predicts bit for bit what the saved one did on the same machine.

    Raises
    ------
    ModelFileError
        Where the file is damaged, truncated, changed, of a newer format, or no model file.

    Warns
    -----
    UserWarning
        Where the model has parts of scikit-learn that another version of it wrote.

    See Also
    --------
    load_metadata : Reads what was saved with the model, alone.

    Examples
    --------
    >>> import os, tempfile
    >>> from anynorm import SVC, load_model, save_model
    >>> model = SVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, os.path.join(folder, "model.anynorm"))
    ...     load_model(os.path.join(folder, "model.anynorm")).predict([[0.4], [2.6]])
    array(['low', 'high'], dtype='<U4')
    """
    model, classes, written_by = _read(path, _MODEL)
    if not hasattr(type(model), "get_params") and type(model).__name__ not in _PATHS:
        raise ModelFileError(f"{path} cannot be loaded: what it holds is no model.")
    theirs, ours = written_by.get("sklearn"), _versions()["sklearn"]
    if theirs != ours and any(name.startswith("sklearn.") for name in classes):
        warnings.warn(
            f"{path} has parts of scikit-learn {theirs}, and this is scikit-learn {ours}. Compare "
            "some predictions with known ones, or save the model again with this version.",
            UserWarning,
            stacklevel=2,
        )
    return model


def load_metadata(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the metadata that was saved with a model, without the model.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    dict
        What was given to `save_model`; empty where nothing was.

    Raises
    ------
    ModelFileError
        Where the file cannot be read.

    Examples
    --------
    >>> import os, tempfile
    >>> from anynorm import LinearSVC, load_metadata, save_model
    >>> model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, os.path.join(folder, "model.anynorm"), metadata={"target": "status"})
    ...     load_metadata(os.path.join(folder, "model.anynorm"))
    {'target': 'status'}
    """
    metadata, _, _ = _read(path, _METADATA)
    if not isinstance(metadata, dict):
        raise ModelFileError(f"{path} cannot be loaded: its metadata are damaged.")
    return metadata


def _read(path: str | os.PathLike[str], name: str) -> tuple[Any, set[str], dict[str, str]]:
    """The value of a document, the classes in it, and the versions that wrote it."""
    from anynorm.app.model_files.tree import Decoder

    with Container(path) as container:
        tree = container.document(name)
        decoder = Decoder(container)
        try:
            return decoder.decode(tree), decoder.classes, container.written_by
        except ModelFileError:
            raise
        except ModuleNotFoundError as error:
            raise container.error(
                f"it needs {error.name}, which is not installed; pip install 'anynorm[cli]'"
            ) from error
        except Exception as error:  # of whatever kind a forged tree may provoke
            raise container.error(f"its content is damaged ({error})") from error


def _versions() -> dict[str, str]:
    import numpy
    import scipy
    import sklearn

    from anynorm import __version__

    return {
        "anynorm": __version__,
        "sklearn": sklearn.__version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
    }
