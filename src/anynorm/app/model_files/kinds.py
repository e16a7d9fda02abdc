"""The classes that a model file may hold, and how their objects are taken apart and put together.

The name in a file is only ever looked up in the table below; nothing else is imported.  The public
estimators of anynorm are in it by themselves: a class says which private attributes belong to its
fitted state (``_kept``, ``_kernel_of_rows``), and its family in `fitted` how that is checked.
Estimators are put together without their constructors: parameters and fitted attributes are set,
by the names that the class has.  Values are data, so no attribute can be a function.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from typing import Any

import numpy as np

from anynorm import norms
from anynorm.app.model_files import fitted
from anynorm.app.model_files.container import ModelFileError
from anynorm.design.device import to_host
from anynorm.kernels import KERNELS, FunctionKernel, Kernel

State = dict[str, Any]

_KERNEL = "anynorm.kernels.Kernel"
_SHARED_PRIVATE = ("_sklearn_output_config", "_metadata_request")
# Files keep the names that their classes had when the format was made.
_MOVED = {
    "anynorm.certificate": "anynorm.problem.certificate",
    "anynorm.path_record": "anynorm.problem.path_record",
    "anynorm.tables": "anynorm.app.tables",
}
_METHODS = (
    "fit", "partial_fit", "predict", "predict_proba", "predict_log_proba", "decision_function",
    "score", "split", "transform", "inverse_transform",
)  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """A class of the table.

    Attributes
    ----------
    name : str
        Its name in the file.
    pack : callable
        Takes an object apart into a dict of values.
    unpack : callable
        Makes an object of such a dict, or raises where it makes none.
    """

    name: str
    pack: Callable[[Any], State]
    unpack: Callable[[State], Any]


def kind_of(value: Any) -> Kind | None:
    """Return the kind of an object, None where its very class is not in the table."""
    if _is_named_kernel(value):
        return KINDS[_KERNEL]
    for name in _by_last_name().get(type(value).__name__, ()):
        if type(value) is class_named(name):
            return KINDS[name]
    return None


def kind_named(name: Any) -> Kind | None:
    """Return the kind of a name, None where it is not in the table."""
    return KINDS.get(name) if isinstance(name, str) else None


def class_named(name: str) -> type:
    """Import a class of the table by its name in the file."""
    module, _, last = name.rpartition(".")
    module = _MOVED.get(module, module)
    return getattr(importlib.import_module(module), last)


@cache
def _by_last_name() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in KINDS:
        found.setdefault(name.rpartition(".")[2], []).append(name)
    return found


def _parameters(cls: type) -> dict[str, inspect.Parameter]:
    """The constructor's parameters by name."""
    if cls.__init__ is object.__init__:  # type: ignore[misc]
        return {}
    found = list(inspect.signature(cls.__init__).parameters.values())[1:]  # type: ignore[misc]
    return {p.name: p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _is_fitted_name(name: str) -> bool:
    return name.isidentifier() and name.endswith("_") and not name.startswith("_")


def _estimator(
    name: str,
    private: Iterable[str] = (),
    *,
    left_out: Iterable[str] = (),
    check: Callable[[State], None] | None = None,
    mend: Callable[[State], State] = dict,
) -> Kind:
    """An estimator: its parameters, its fitted attributes and the private ones named here.

    `mend` brings the state that an older version had written up to date.
    """
    known = frozenset({*private, *_SHARED_PRIVATE})

    def pack(value: Any) -> State:
        state = {key: to_host(item) for key, item in vars(value).items() if key not in left_out}
        parameters = _parameters(type(value))
        for key in state:
            if key not in parameters and key not in known and not _is_fitted_name(key):
                raise ModelFileError(
                    f"{type(value).__name__} has an attribute {key!r} that a model file does not "
                    "know. Delete it, and give save_model what is to be kept as metadata."
                )
        if "_metadata_request" in state:
            request = state["_metadata_request"]
            state["_metadata_request"] = {
                method: dict(getattr(request, method).requests) for method in _METHODS
            }
        return state

    def unpack(state: State) -> Any:
        cls = class_named(name)
        return _assembled(cls, _complete(cls, mend(state), known), check)

    return Kind(name, pack, unpack)


def _complete(cls: type, state: State, private: Iterable[str]) -> State:
    """The state with defaults for parameters that are newer than the file."""
    parameters = _parameters(cls)
    unknown = {k for k in state if k not in parameters and k not in private}
    unknown = {key for key in unknown if not _is_fitted_name(key)}
    if cls.__module__.startswith("sklearn."):  # its parameters come and go with its versions
        state = {key: value for key, value in state.items() if key not in unknown}
    elif unknown:
        raise ValueError(f"{cls.__name__} has no attribute {sorted(unknown)[0]!r}")
    for key, parameter in parameters.items():
        if key not in state:
            fitted.require(parameter.default is not parameter.empty, f"{cls.__name__}'s {key}")
            state = {**state, key: parameter.default}
    return state


def _assembled(cls: type, state: State, check: Callable[[State], None] | None) -> Any:
    if check is not None:
        check(state)
    value: Any = object.__new__(cls)
    requests = state.pop("_metadata_request", None)
    value.__dict__.update(state)
    if requests is not None:
        value.__dict__["_metadata_request"] = _metadata_request(value, requests)
    return value


def _metadata_request(owner: Any, requests: Any) -> Any:
    from sklearn.utils.metadata_routing import MetadataRequest

    found = MetadataRequest(owner=owner)
    for method, wanted in requests.items():
        fitted.require(method in _METHODS, "a metadata request")
        for parameter, alias in wanted.items():
            getattr(found, method).add_request(param=parameter, alias=alias)
    return found


def _with_kernel(
    name: str, attribute: str, private: Iterable[str], check: Callable[[State], None]
) -> Kind:
    """An estimator with a kernel of fixed rows, which is kept as its name and parameters."""
    plain = _estimator(name, private=(*private, attribute))

    def pack(value: Any) -> State:
        state = plain.pack(value)
        evaluator = state.pop(attribute, None)
        if evaluator is not None:
            state["_kernel"] = _kept(type(value).__name__, evaluator)
        return state

    def unpack(state: State) -> Any:
        cls, kernel = class_named(name), state.pop("_kernel", None)
        state = _complete(cls, state, (*private, *_SHARED_PRIVATE))
        if kernel is not None:
            fitted.check_kernel(kernel, state)
            check({**state, "_kernel": kernel})
            state[attribute] = _restored(attribute, kernel, state)
        return _assembled(cls, state, None)

    return Kind(name, pack, unpack)


def _is_named_kernel(value: Any) -> bool:
    return isinstance(value, Kernel) and KERNELS.get(value.name) is type(value)


def _pack_kernel(kernel: Kernel) -> State:
    """A kernel that is a parameter: the name says which class of `KERNELS` it is."""
    return {"name": kernel.name, "parameters": kernel.get_params()}


def _unpack_kernel(state: State) -> Kernel:
    fitted.require(set(state) == {"name", "parameters"}, "a kernel")
    fitted.require(isinstance(state["name"], str) and state["name"] in KERNELS, "a kernel's name")
    return KERNELS[state["name"]](**state["parameters"])


def _kept(owner: str, evaluator: Any) -> State:
    """What a file keeps of the kernel of an evaluator, a `Gram` or `KernelSums`."""
    kernel = evaluator.kernel
    if not _is_named_kernel(kernel):
        what = "a function"
        if not isinstance(kernel, FunctionKernel):
            what = f"an object of the class {type(kernel).__module__}.{type(kernel).__qualname__}"
        raise ModelFileError(
            f"{owner} was fitted with a kernel that is {what}, which a model file cannot hold. "
            "Fit it with a named kernel or kernel='precomputed'."
        )
    parameters = kernel.get_params()
    if kernel.translation_invariant:
        parameters["origin"] = evaluator.origin
    dtype = getattr(evaluator, "dtype", np.dtype(np.float64))
    return {"name": kernel.name, "parameters": parameters, "dtype": dtype}


def _restored(attribute: str, kept: State, state: State) -> Any:
    """The kernel of the support vectors or of a dictionary's rows, as `fit` had made it."""
    from anynorm.kernels.gram import Gram

    parameters = dict(kept["parameters"])
    origin = parameters.pop("origin", None)
    kernel = KERNELS[kept["name"]](**parameters)
    if attribute == "_gram":
        return Gram(kernel, state["components_"], origin)
    points = state["support_"].astype(np.intp) if kernel.takes_matrix else state["support_vectors_"]
    return Gram(kernel, points, origin).sums(slice(None), kept["dtype"])


def _record(name: str) -> Kind:
    """A dataclass or a named tuple: its fields."""

    def names() -> tuple[str, ...]:
        cls: Any = class_named(name)
        return tuple(f.name for f in fields(cls)) if is_dataclass(cls) else cls._fields

    def pack(value: Any) -> State:
        return {key: getattr(value, key) for key in names()}

    def unpack(state: State) -> Any:
        fitted.require(set(state) == set(names()), name)
        return class_named(name)(**state)

    return Kind(name, pack, unpack)


def _constructed(name: str) -> Kind:
    """An object that its constructor makes, and checks, from its parameters."""

    def pack(value: Any) -> State:
        given = vars(value) | vars(value).get("cvargs", {})
        return {key: given[key] for key in _parameters(type(value)) if key in given}

    def unpack(state: State) -> Any:
        cls = class_named(name)
        fitted.require(set(state) <= set(_parameters(cls)), name)
        return cls(**state)

    return Kind(name, pack, unpack)


def _pack_certificate(value: Any) -> State:
    return {key: getattr(value, key) for key in value.__dataclass_fields__} | {
        "status": value.status.value
    }


def _unpack_certificate(state: State) -> Any:
    from anynorm.problem.certificate import Certificate
    from anynorm.problem.solution import Status

    certificate = Certificate(**(state | {"status": Status(state["status"])}))
    numbers = ("primal", "dual", "gap", "tol", "zero_primal")
    parts = certificate.per_class
    fitted.require(
        all(isinstance(getattr(certificate, n), int | float | np.floating) for n in numbers)
        and isinstance(parts, tuple)
        and all(isinstance(part, Certificate) for part in parts),
        "a certificate",
    )
    return certificate


def _pack_path(value: Any) -> State:
    return {
        "record": value._record,
        "n_features": value.n_features_in_,
        "total_weight": value._total_weight,
        "feature_names": getattr(value, "feature_names_in_", None),
        "classes": getattr(value, "classes_", None),
    }


def _unpack_path(state: State) -> Any:
    from anynorm.estimators.paths.solution_path import SolutionPath

    record, names = state.pop("record"), state.get("feature_names")
    fitted.check_record(record, state["n_features"])
    fitted.require(isinstance(state["total_weight"], float), "a path's weight")
    fitted.require(names is None or np.shape(names) == (state["n_features"],), "a path's names")
    return SolutionPath.from_record(record, **state)


def _pack_lasso_path(value: Any) -> State:
    kept = value.__getstate__()
    return {name: kept[name] for name in _LASSO_PATH if name in kept}


def _unpack_lasso_path(state: State) -> Any:
    from anynorm.estimators.paths.lasso_path import LassoPath
    from anynorm.problem.certificate import Certificate

    fitted.require({*_LASSO_PATH} - {"feature_names_in_"} <= set(state) <= {*_LASSO_PATH}, "a path")
    fitted.check_lasso_path(state)
    fitted.require(all(type(each) is Certificate for each in state["certificates"]), "a path")
    path = object.__new__(LassoPath)
    vars(path).update(_design=None, _target=None)
    vars(path).update({name: state[name] for name in _LASSO_PATH if name in state})
    return path


_LASSO_PATH = (
    "radii", "alphas", "coefs", "intercepts", "certificates", "gaps", "n_nonzero", "n_joints",
    "stopped", "n_features_in_", "feature_names_in_",
)  # fmt: skip


def public_estimators() -> dict[str, type]:
    """The estimators that ``import anynorm`` offers, by name."""
    from sklearn.base import BaseEstimator

    import anynorm

    classes = {name: getattr(anynorm, name) for name in anynorm.__all__ if name[0].isupper()}
    return {name: cls for name, cls in classes.items() if issubclass(cls, BaseEstimator)}


def _ours() -> Iterable[Kind]:
    for last, cls in public_estimators().items():
        name, check = f"anynorm.{last}", fitted.check_of(cls)
        private, kernel = getattr(cls, "_kept", ()), getattr(cls, "_kernel_of_rows", None)
        if kernel is None:
            yield _estimator(name, private, check=check)
        else:
            yield _with_kernel(name, kernel, private, check)
    yield _estimator("anynorm.tables.Preparation")
    yield Kind("anynorm.SolutionPath", _pack_path, _unpack_path)
    yield Kind("anynorm.LassoPath", _pack_lasso_path, _unpack_lasso_path)
    yield Kind("anynorm.certificate.Certificate", _pack_certificate, _unpack_certificate)
    yield _record("anynorm.path_record.PathRecord")
    yield _record("anynorm.estimators.reweighted_svc.WalkRecord")
    yield _record("anynorm.estimators.reweighted_any.BlackBoxRound")
    yield Kind(_KERNEL, _pack_kernel, _unpack_kernel)
    for name in sorted({*norms.__all__} - {"Norm", "get_norm"}):
        yield _constructed(f"anynorm.norms.{name}")


def _mended_imputer(state: State) -> State:
    """What older versions of scikit-learn have not: the dtype of the values to fill in."""
    lacking = "_fit_dtype" in state and _keeps_fill_dtype()
    return {"_fill_dtype": state["_fit_dtype"]} | state if lacking else state


@cache
def _keeps_fill_dtype() -> bool:
    """Whether the imputer of the installed scikit-learn has it."""
    from sklearn.impute import SimpleImputer

    return hasattr(SimpleImputer().fit([[0.0]]), "_fill_dtype")


def _scikit_learn() -> Iterable[Kind]:
    for name, private in {
        "compose.ColumnTransformer": (
            "_columns", "_transformer_to_input_indices", "_remainder", "_n_features",
            "_name_to_fitted_passthrough",
        ),
        "impute.MissingIndicator": ("_n_features", "_precomputed"),
        "linear_model.ElasticNet": (),
        "linear_model.HuberRegressor": (),
        "linear_model.Lasso": ("l1_ratio",),
        "linear_model.LinearRegression": (),
        "linear_model.LogisticRegression": (),
        "linear_model.Ridge": (),
        "linear_model.RidgeClassifier": ("_label_binarizer",),
        "multiclass.OneVsRestClassifier": (),
        "preprocessing.FunctionTransformer": (),
        "preprocessing.LabelBinarizer": (),
        "preprocessing.MaxAbsScaler": (),
        "preprocessing.MinMaxScaler": (),
        "preprocessing.Normalizer": (),
        "preprocessing.OneHotEncoder": (
            "_infrequent_enabled", "_infrequent_indices", "_default_to_infrequent_mappings",
            "_drop_idx_after_grouping", "_n_features_outs",
        ),
        "preprocessing.RobustScaler": (),
        "preprocessing.StandardScaler": (),
        "svm.LinearSVC": (),
        "svm.LinearSVR": (),
    }.items():  # fmt: skip
        yield _estimator(f"sklearn.{name}", private=private)
    yield _estimator(
        "sklearn.impute.SimpleImputer", private=("_fit_dtype", "_fill_dtype"), mend=_mended_imputer
    )
    yield _estimator(
        "sklearn.linear_model.SGDClassifier",
        private=("_expanded_class_weight", "C"),
        left_out=("_loss_function_",),  # of use to partial_fit, which makes it anew
    )
    yield _estimator(
        "sklearn.pipeline.Pipeline",
        left_out=("memory",),  # a folder of pickles, which `fit` would open
        mend=lambda state: {key: value for key, value in state.items() if key != "memory"},
    )
    yield _estimator("sklearn.linear_model.SGDRegressor", private=("C",))
    yield _constructed("sklearn.compose.make_column_selector")
    for name in (
        "GroupKFold", "GroupShuffleSplit", "KFold", "LeaveOneGroupOut", "LeaveOneOut",
        "PredefinedSplit", "RepeatedKFold", "RepeatedStratifiedKFold", "ShuffleSplit",
        "StratifiedGroupKFold", "StratifiedKFold", "StratifiedShuffleSplit", "TimeSeriesSplit",
    ):  # fmt: skip
        yield _constructed(f"sklearn.model_selection.{name}")


KINDS: dict[str, Kind] = {kind.name: kind for kind in (*_ours(), *_scikit_learn())}
"""Every class that a model file may hold, by its public name."""
