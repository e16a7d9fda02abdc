"""Arrays on a device: X, y and weights of one place; what is fitted or predicted goes back there.

Within a fit X is a `DeviceDesign`, labels and weights are NumPy's, as everything of one number per
row is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import numpy as np

from anynorm.design.device import (
    DevicePlace,
    dtype_of,
    is_out_of_memory,
    is_sparse_on_device,
    library_of,
    to_host,
)
from anynorm.design.device_design import DeviceDesign
from anynorm.design.limits import MEGABYTE


def from_device(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a `fit`: what it is given may live on a device, all of it on the same."""

    @wraps(fit)
    def fitted(self: Any, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> Any:
        given = {"X": X, "y": y, "sample_weight": sample_weight, "groups": groups}
        more = {} if groups is None else {"groups": groups}
        if not any(map(is_elsewhere, given.values())):
            return fit(self, X, y, sample_weight, **more)
        design = device_matrix(self, given)
        more = {name: to_host(value) for name, value in more.items()}
        try:
            return fit(self, design, to_host(y), to_host(sample_weight), **more)
        except Exception as error:
            if isinstance(error, MemoryError) or not is_out_of_memory(error):
                raise
            raise MemoryError(_too_large(self, design)) from error

    return fitted


def to_device(predict: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a prediction: it is an array of the device of X."""

    @wraps(predict)
    def predicted(self: Any, X: Any) -> Any:
        if not is_elsewhere(X):
            return predict(self, X)
        design = device_rows(X, type(self).__name__)
        return design.place.put(predict(self, design))

    return predicted


def device_matrix(estimator: Any, given: Mapping[str, Any]) -> DeviceDesign:
    """The X of a fit, after checking that all that is given lives in one place."""
    caller = type(estimator).__name__
    for name, value in given.items():
        if is_sparse_on_device(value):
            raise TypeError(
                f"{name} is a sparse array on a device, which {caller} cannot use. Give a dense "
                "one, e.g. X.to_dense(), or a sparse array of SciPy."
            )
    where = {name: _where(value) for name, value in given.items() if value is not None}
    if len(set(where.values())) > 1:
        parts = ", ".join(f"{name} is {_described(place)}" for name, place in where.items())
        raise TypeError(
            f"what is given to fit must live in one place, but {parts}. Move all of it to where X "
            "is, e.g. y.to(X.device) in PyTorch, or torch.as_tensor(y, device=X.device)."
        )
    if not estimator._runs_on_devices:
        raise TypeError(
            f"X lives in {where['X']}, where {caller} does not run: SVC and its kin, SVCCV, "
            "LinearSVC and min_norm_point do. Give NumPy arrays, e.g. X.cpu().numpy() in PyTorch."
        )
    return device_rows(given["X"], caller)


def followed(fitted: Mapping[str, Any], X: Any) -> dict[str, Any]:
    """Fitted attributes, the public arrays of numbers among them on the device of X."""
    if not isinstance(X, DeviceDesign):
        return dict(fitted)
    return {
        name: X.place.put(value) if _is_shown(name, value) else value
        for name, value in fitted.items()
    }


def where_lives(other: Any, X: Any) -> Any:
    """X where another matrix of rows is: on its device, or as it is."""
    if not isinstance(other, DeviceDesign) or isinstance(X, DeviceDesign):
        return X
    return DeviceDesign(other.place.put(X), None, other.place)


def in_memory(value: Any) -> Any:
    """A part of a fitted state, with NumPy's arrays in the place of a device's."""
    moved = getattr(value, "in_memory", None)
    return to_host(value) if moved is None else moved()


def _is_shown(name: str, value: Any) -> bool:
    return not name.startswith("_") and isinstance(value, np.ndarray) and value.dtype.kind in "biuf"


def is_elsewhere(value: Any) -> bool:
    """Whether a value is an array of a device's library, dense or sparse."""
    return library_of(value) is not None or is_sparse_on_device(value)


def _where(value: Any) -> DevicePlace | None:
    return DevicePlace.of(value) if library_of(value) is not None else None


def _described(place: DevicePlace | None) -> str:
    return "in NumPy's memory" if place is None else f"in {place}"


def device_points(A: Any, caller: str, *, kernel_matrix: bool) -> DeviceDesign:
    """Points that are the columns of a matrix on a device, checked."""
    if kernel_matrix:
        raise TypeError(
            f"A lives on a device, where {caller} takes points and no kernel matrix. Give it as a "
            "NumPy array, or the points."
        )
    design = device_rows(A, caller, "A")
    if not np.isfinite(design.largest_entry()):
        raise ValueError("A has NaN or infinite entries. Replace them by finite values.")
    return design


def device_rows(X: Any, caller: str, name: str = "X") -> DeviceDesign:
    """X as a design of floats; what its shape and type must be."""
    if is_sparse_on_device(X):
        raise TypeError(
            f"{name} is a sparse array on a device, which {caller} cannot use. Give a dense one, "
            f"e.g. {name}.to_dense(), or a sparse array of SciPy."
        )
    place, kind = DevicePlace.of(X), dtype_of(X).kind
    if len(X.shape) != 2:
        raise ValueError(
            f"{name} must be a table of rows and columns; got an array of {len(X.shape)} "
            f"dimensions. Reshape it, e.g. with {name}.reshape(-1, 1) for one feature."
        )
    if kind not in "fiub":
        raise ValueError(f"{name} must hold real numbers; got the type {X.dtype}.")
    try:
        place.put(np.zeros(1))
    except (TypeError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{place} has no float64, which certificates are computed in ({error}). Move {name} to "
            "the CPU, or to a device that has it."
        ) from error
    X = X.detach() if place.library == "PyTorch" else X
    narrow = dtype_of(X).name in ("float32", "float16")
    design = DeviceDesign(place.astype(X, np.float32 if narrow else np.float64), None, place)
    for count, axis in zip(design.shape, ("sample", "feature"), strict=True):
        if count == 0:
            raise ValueError(
                f"Found array with 0 {axis}(s) (shape={design.shape}) while a minimum of 1 is "
                f"required by {caller}."
            )
    return design


def _too_large(estimator: Any, X: DeviceDesign) -> str:
    """What to say where a fit has run out of a device's memory."""
    size = X.n * X.p * X.dtype.itemsize / MEGABYTE
    limit = getattr(estimator, "cache_size", None)
    rows = "" if limit is None else f", rows of the kernel matrix up to cache_size={limit:g} MB"
    remedy = "" if limit is None else "Lower cache_size, or "
    return (
        f"the fit ran out of the memory of {X.place}: besides X of {size:,.0f} MB it takes up to "
        f"three copies of it in float64{rows}, and about 2000 MB for blocks at work. "
        f"{remedy or 'Use '}{'use ' if remedy else ''}a device with more memory, or NumPy arrays."
    )
