"""What a fitted state must be like, so that predictions with it can go wrong in no worse way.

A file that was changed on purpose can have right digests and wrong numbers.  Compiled code trusts
shapes and indices; these checks make sure that it can.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from anynorm.estimators._kernel_model import KernelClassifier
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators.constrained_lasso import ConstrainedLasso
from anynorm.estimators.dictionaries import KernelDictionary, PolynomialDictionary
from anynorm.estimators.reweighted_any import Reweighted
from anynorm.kernels import KERNELS, takes_matrix
from anynorm.problem.path_record import PathRecord

State = dict[str, Any]


def require(condition: bool, what: str) -> None:
    """Raise a ValueError that says what is damaged."""
    if not condition:
        raise ValueError(f"{what} is damaged")


def is_matrix(value: Any, shape: tuple[int | None, ...]) -> bool:
    """Whether a value is an array of real numbers of that shape, None being any length."""
    if not isinstance(value, np.ndarray) and not (sp.issparse(value) and len(shape) == 2):
        return False
    same = len(value.shape) == len(shape) and all(
        wanted in (None, length) for wanted, length in zip(shape, value.shape, strict=True)
    )
    return same and value.dtype.kind in "fiu"


def check_of(cls: type) -> Callable[[State], None]:
    """The check of an estimator's family: of the first of its base classes that has one.

    An estimator without a family is refused, because nobody would know what its arrays must be.
    """
    for base in cls.__mro__:
        if base in _FAMILIES:
            return _FAMILIES[base]
    raise TypeError(f"{cls.__name__} has no family whose fitted state can be checked")


def check_linear_classifier(state: State) -> None:
    """Check ``coef_``, ``intercept_`` and ``classes_`` of a linear classifier."""
    if "coef_" not in state:
        return
    rows = _check_classes(state)
    require(is_matrix(state["coef_"], (rows, _width(state))), "coef_")
    require(is_matrix(state.get("intercept_"), (rows,)), "intercept_")
    check_duals(state)
    check_calibration(state, rows)


def check_kernel_classifier(state: State) -> None:
    """Check the support vectors and what multiplies them."""
    if "dual_coef_" not in state:
        return
    rows = _check_classes(state)
    require(is_matrix(state["dual_coef_"], (rows, None)), "dual_coef_")
    n_support = state["dual_coef_"].shape[1]
    require(is_matrix(state.get("intercept_"), (rows,)), "intercept_")
    require(is_matrix(state.get("support_"), (n_support,)), "support_")
    require(state["support_"].dtype.kind == "i", "support_")
    if takes_matrix(state["_kernel"]["name"]):
        require(bool(np.all(state["support_"] >= 0)), "support_")
        require(bool(np.all(state["support_"] < _n_features(state))), "support_")
    else:
        shape = (n_support, _width(state))
        require(is_matrix(state.get("support_vectors_"), shape), "support_vectors_")
    check_duals(state)
    check_calibration(state, rows)


def check_kernel(kernel: Any, state: State) -> None:
    """Check the name and the parameters of a kernel, and the origin of its rows."""
    rows: Any = state.get("support_vectors_", state.get("components_"))
    n_features = rows.shape[1] if len(getattr(rows, "shape", ())) == 2 else None
    require(isinstance(kernel, dict) and set(kernel) == {"name", "parameters", "dtype"}, "a kernel")
    name, parameters = kernel["name"], kernel["parameters"]
    require(isinstance(name, str) and name in KERNELS, "a kernel's name")
    expected = set(KERNELS[name]().get_params())
    if KERNELS[name].translation_invariant:
        expected.add("origin")
    require(isinstance(parameters, dict), "a kernel's parameters")
    require(set(parameters) == expected, "a kernel's parameters")
    for key, value in parameters.items():
        if key == "origin":
            require(value is None or is_matrix(value, (n_features,)), "a kernel's origin")
        else:
            real = isinstance(value, int | float | np.integer | np.floating)
            require(real and np.isfinite(value), f"a kernel's {key}")
    require(kernel["dtype"] in (np.dtype(np.float32), np.dtype(np.float64)), "a kernel's dtype")


def check_lasso(state: State) -> None:
    """Check the coefficients of a regression."""
    if "coef_" in state:
        require(is_matrix(state["coef_"], (_width(state),)), "coef_")
        require(isinstance(state.get("intercept_"), float | np.floating), "intercept_")


def check_reweighted(state: State) -> None:
    """Check the weights of the features."""
    if "coef_" in state:
        require(is_matrix(state.get("weights_"), (_n_features(state),)), "weights_")
        require(hasattr(state.get("estimator_"), "predict"), "estimator_")


def check_dictionary(state: State) -> None:
    """Check the rows at which basis functions sit."""
    if "components_" in state:
        count = state.get("n_components_")
        require(type(count) is int and count >= 1, "n_components_")
        require(is_matrix(state["components_"], (count, _n_features(state))), "components_")
        require(is_matrix(state.get("component_indices_"), (count,)), "component_indices_")


def check_nothing(state: State) -> None:
    """No check: the class reads no array that it has fitted."""


def check_duals(state: State) -> None:
    """Check the dual variables that a warm start begins with."""
    duals = state.get("_duals")
    if duals is not None:
        require(isinstance(duals, list) and len(duals) > 0, "_duals")
        require(all(is_matrix(a, (None,)) and a.dtype == np.float64 for a in duals), "_duals")
        require(len({len(a) for a in duals}) == 1, "_duals")


def check_calibration(state: State, rows: int) -> None:
    """Check the functions that make probabilities of scores."""
    calibration = state.get("calibration_")
    if calibration is None:
        return
    require(isinstance(calibration, dict), "calibration_")
    if calibration.get("method") == "sigmoid":
        parts = [calibration.get(name) for name in ("slope", "offset")]
        require(all(is_matrix(part, (rows,)) for part in parts), "calibration_")
        return
    require(calibration.get("method") == "isotonic", "calibration_")
    corners = [calibration.get(name) for name in ("scores", "probabilities")]
    require(all(isinstance(part, list) and len(part) == rows for part in corners), "calibration_")
    for x, p in zip(*corners, strict=True):
        require(is_matrix(x, (None,)) and len(x) > 0 and is_matrix(p, (len(x),)), "calibration_")


def check_record(record: Any, p: Any) -> None:
    """Check the knots of a path."""
    require(isinstance(record, PathRecord) and type(p) is int and p >= 1, "a path")
    require(is_matrix(record.s, (None,)) and len(record.s) > 0, "a path's s")
    n = len(record.s)
    for name in ("s", "penalties", "intercepts", "losses", "gaps"):
        values = getattr(record, name)
        require(is_matrix(values, (n,)) and values.dtype == np.float64, f"a path's {name}")
    require(bool(np.all(np.diff(record.s) >= 0)), "a path's s")
    joint = record.joint
    require(isinstance(joint, np.ndarray) and joint.shape == (n,), "a path's joint")
    require(joint.dtype == np.bool_ and bool(joint.any()), "a path's joint")
    for values, places, ends in (
        (record.data, record.indices, record.indptr),
        (record.dual_values, record.dual_rows, record.dual_indptr),
    ):
        require(is_matrix(values, (None,)) and values.dtype == np.float64, "a path's values")
        require(is_matrix(places, (len(values),)) and places.dtype.kind == "i", "a path's places")
        require(is_matrix(ends, (n + 1,)) and ends.dtype.kind == "i", "a path's rows")
        require(ends[0] == 0 and ends[-1] == len(values), "a path's rows")
        require(bool(np.all(np.diff(ends) >= 0)), "a path's rows")
        require(bool(np.all(places >= 0)), "a path's places")
    require(bool(np.all(record.indices < p)), "a path's places")
    require(isinstance(record.stopped, str) and type(record.n_pivots) is int, "a path's end")


def check_lasso_path(state: State) -> None:
    """Check the joints of a Lasso path."""
    p, n = _n_features(state), state["n_joints"]
    require(type(n) is int and n >= 1 and isinstance(state["stopped"], str), "a path")
    for name in ("radii", "alphas", "intercepts", "gaps", "n_nonzero"):
        require(is_matrix(state[name], (n,)), f"a path's {name}")
    require(bool(np.all(np.diff(state["radii"]) > 0)), "a path's radii")
    require(sp.issparse(state["coefs"]) and is_matrix(state["coefs"], (n, p)), "a path's coefs")
    require(len(state["certificates"]) == n, "a path's certificates")


def _n_features(state: State) -> int:
    p = state.get("n_features_in_")
    require(type(p) is int and p >= 1, "n_features_in_")
    names = state.get("feature_names_in_")
    require(names is None or np.shape(names) == (p,), "feature_names_in_")
    return p  # type: ignore[return-value]


def _width(state: State) -> int | None:
    """The number of features of the model; of any number where predictions compare it.

    They do with a preprocessor, which makes the model's features of those of X.
    """
    if "preprocessor_" not in state:
        return _n_features(state)
    require(hasattr(state["preprocessor_"], "transform"), "preprocessor_")
    if "n_features_in_" in state:
        _n_features(state)
    return None


def _check_classes(state: State) -> int:
    """The number of binary problems of the classes."""
    classes = state.get("classes_")
    require(isinstance(classes, np.ndarray) and classes.ndim == 1, "classes_")
    n = len(classes)  # type: ignore[arg-type]
    require(n >= 1, "classes_")
    return 1 if n <= 2 else n


_FAMILIES: dict[type, Callable[[State], None]] = {
    LinearClassifier: check_linear_classifier,
    KernelClassifier: check_kernel_classifier,
    KernelDictionary: check_dictionary,
    PolynomialDictionary: check_nothing,
    ConstrainedLasso: check_lasso,
    Reweighted: check_reweighted,
}
"""How the fitted state of a class, and of those that derive from it, is checked."""
