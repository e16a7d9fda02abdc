"""Values as a JSON tree, and back.

None, booleans, integers, finite floats, strings and lists are themselves.  Everything else is an
object with a "type", as docs/model-files.md lists them.  Objects of known classes are taken apart
and put together by `anynorm.app.model_files.kinds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from anynorm.app.model_files.container import Container, ModelFileError, is_storable
from anynorm.app.model_files.kinds import kind_named, kind_of

_DEEPEST = 100  # levels: a damaged file must not end in a RecursionError
_SCALARS = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64",
)  # fmt: skip
_SCALAR_TYPES = frozenset({*_SCALARS, "number", "integer", "floating", "object_", "str_"})
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_SPARSE = {
    ("csr", "array"): sp.csr_array,
    ("csr", "matrix"): sp.csr_matrix,
    ("csc", "array"): sp.csc_array,
    ("csc", "matrix"): sp.csc_matrix,
}
_REMEDIES = {
    "kernel": "Give the kernel matrix with kernel='precomputed', or a named kernel",
    "M": "Give the matrix itself, as Mahalanobis(M(X))",
    "cv": "Nothing that was fitted depends on it any more: set_params(cv=None) before saving",
    "scoring": "Nothing that was fitted depends on it any more: set_params(scoring=None) before "
    "saving",
}


class Encoder:
    """Turns values into a tree; arrays are collected in ``arrays`` by the names of their members.

    An object that occurs twice in a document is written once, an array once for all documents.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._members: dict[int, str] = {}
        self._objects: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no id is used again

    def document(self, value: Any, where: str) -> Any:
        """Return the tree of a value that is a document of its own."""
        self._objects = {}
        return self.encode(value, where)

    def encode(self, value: Any, where: str) -> Any:
        """Return the tree of a value within a document; `where` is its name in messages."""
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return value if math.isfinite(value) else {"type": "float", "value": str(value)}
        if type(value) is list:
            return [self.encode(item, f"{where}[{k}]") for k, item in enumerate(value)]
        for check, encode in self._ENCODERS:
            if check(value):
                return encode(self, value, where)
        return self._object(value, where)

    def _tuple(self, value: tuple[Any, ...], where: str) -> Any:
        return {"type": "tuple", "items": self.encode(list(value), where)}

    def _dict(self, value: dict[Any, Any], where: str) -> Any:
        items = [
            [self.encode(key, f"a key of {where}"), self.encode(item, f"{where}[{key!r}]")]
            for key, item in value.items()
        ]
        return {"type": "dict", "items": items}

    def _slice(self, value: slice, where: str) -> Any:
        return {"type": "slice", "items": [value.start, value.stop, value.step]}

    def _scalar(self, value: np.generic, where: str) -> Any:
        if value.dtype.name not in _SCALARS:
            raise _unstorable(value, where)
        item = self.encode(value.item(), where)
        return {"type": "number", "dtype": value.dtype.name, "value": item}

    def _dtype(self, value: np.dtype[Any], where: str) -> Any:
        if value.hasobject and value.str != "|O":
            raise _unstorable(value, where)
        return {"type": "dtype", "value": value.str}

    def _scalar_type(self, value: type, where: str) -> Any:
        if value.__name__ not in _SCALAR_TYPES:
            raise _unstorable(value, where)
        return {"type": "scalar_type", "value": value.__name__}

    def _array(self, value: np.ndarray, where: str) -> Any:
        if type(value) is not np.ndarray and not isinstance(value, np.memmap):
            raise _unstorable(value, where)
        if value.dtype.kind == "O":
            items = self.encode(value.ravel().tolist(), where)
            return {"type": "objects", "shape": list(value.shape), "items": items}
        if not is_storable(value.dtype):
            raise _unstorable(value, where)
        return {"type": "array", "member": self._member(value)}

    def _member(self, value: np.ndarray) -> str:
        if id(value) not in self._members:
            name = f"arrays/{len(self.arrays)}.npy"
            self.arrays[name] = value
            self._members[id(value)] = name
            self._alive.append(value)
        return self._members[id(value)]

    def _sparse(self, value: Any, where: str) -> Any:
        container = "array" if isinstance(value, sp.sparray) else "matrix"
        if (value.format, container) not in _SPARSE:
            raise ModelFileError(
                f"{where} is a sparse matrix in the format {value.format!r}; convert it with "
                ".tocsr() before saving."
            )
        parts = {part: getattr(value, part) for part in ("data", "indices", "indptr")}
        return {
            "type": "sparse",
            "format": value.format,
            "container": container,
            "shape": list(value.shape),
            **{part: self._array(array, where) for part, array in parts.items()},
        }

    def _random_state(self, value: np.random.RandomState, where: str) -> Any:
        state: Any = value.get_state(legacy=True)
        if state[0] != "MT19937":
            raise _unstorable(value, where)
        return {"type": "random_state", "state": self.encode(list(state[1:]), where)}

    def _object(self, value: Any, where: str) -> Any:
        if id(value) in self._objects:
            return {"type": "again", "object": self._objects[id(value)]}
        kind = kind_of(value)
        if kind is None:
            raise _unstorable(value, where)
        self._objects[id(value)] = len(self._objects)
        self._alive.append(value)
        name = type(value).__name__
        parts = sorted(kind.pack(value).items())  # so that equal models are equal files
        state = {key: self.encode(item, f"{name}'s {key}") for key, item in parts}
        return {"type": "object", "class": kind.name, "state": state}

    _ENCODERS: ClassVar[tuple[tuple[Callable[[Any], bool], Callable[..., Any]], ...]] = (
        (lambda value: type(value) is tuple, _tuple),
        (lambda value: type(value) is dict, _dict),
        (lambda value: isinstance(value, slice), _slice),
        (lambda value: type(value) is np.str_, lambda encoder, value, where: str(value)),
        (lambda value: isinstance(value, np.generic), _scalar),
        (lambda value: isinstance(value, np.dtype), _dtype),
        (lambda value: isinstance(value, type) and issubclass(value, np.generic), _scalar_type),
        (lambda value: isinstance(value, np.ndarray), _array),
        (sp.issparse, _sparse),
        (lambda value: type(value) is np.random.RandomState, _random_state),
    )


def _unstorable(value: Any, where: str) -> ModelFileError:
    what = f"a {type(value).__module__}.{type(value).__qualname__}"
    if callable(value) and hasattr(value, "__qualname__"):
        what = f"the {'class' if isinstance(value, type) else 'function'} {value.__qualname__}"
    elif isinstance(value, np.ndarray):
        what = f"an array of {value.dtype}"
    remedy = _REMEDIES.get(where.rsplit("'s ", 1)[-1])
    if hasattr(value, "best_estimator_"):
        remedy = "Save its best_estimator_"
    return ModelFileError(
        f"{where} is {what}, which a model file cannot hold: it holds data of known classes, never "
        f"code. {remedy or 'See docs/model-files.md for what it holds'}."
    )


class Decoder:
    """Turns a tree into values; arrays are read when they are met."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._arrays: dict[str, np.ndarray] = {}
        self._objects: list[Any] = []
        self.classes: set[str] = set()

    def decode(self, tree: Any, depth: int = 0) -> Any:
        """Return the value of a tree."""
        if depth > _DEEPEST:
            raise ValueError(f"it is nested deeper than {_DEEPEST} levels")
        if isinstance(tree, list):
            return [self.decode(item, depth + 1) for item in tree]
        if not isinstance(tree, dict):
            return tree
        given = dict(tree)
        decode = self._DECODERS.get(given.pop("type", None))
        if decode is None:
            raise ValueError(f"it has a value of an unknown type {tree.get('type')!r}")
        return decode(self, depth=depth + 1, **given)

    def _tuple(self, items: list[Any], depth: int) -> tuple[Any, ...]:
        return tuple(self._list(items, depth))

    def _list(self, items: Any, depth: int) -> list[Any]:
        if not isinstance(items, list):
            raise ValueError("a list is expected")
        return [self.decode(item, depth) for item in items]

    def _dict(self, items: list[Any], depth: int) -> dict[Any, Any]:
        return {self.decode(key, depth): self.decode(value, depth) for key, value in items}

    def _slice(self, items: list[Any], depth: int) -> slice:
        start, stop, step = items
        for end in items:
            if end is not None and type(end) is not int:
                raise ValueError("a slice has ends that are no integers")
        return slice(start, stop, step)

    def _number(self, dtype: str, value: Any, depth: int) -> np.generic:
        if dtype not in _SCALARS:
            raise ValueError(f"{dtype!r} is no type of numbers")
        item = self.decode(value, depth)
        number = np.dtype(dtype).type(item)
        if type(item) not in (bool, int, float) or (number.item() != item and item == item):
            raise ValueError(f"{item!r} is no {dtype}")
        return number

    def _dtype(self, value: str, depth: int) -> np.dtype[Any]:
        dtype = np.dtype(value)
        if value != "|O" and not is_storable(dtype):
            raise ValueError(f"the dtype {value!r} is not known")
        return dtype

    def _scalar_type(self, value: str, depth: int) -> type:
        if value not in _SCALAR_TYPES:
            raise ValueError(f"{value!r} is no type of numbers")
        return getattr(np, "bool_" if value == "bool" else value)

    def _array(self, member: str, depth: int) -> np.ndarray:
        if member not in self._arrays:
            self._arrays[member] = self._container.array(member)
        return self._arrays[member]

    def _object_array(self, shape: list[int], items: list[Any], depth: int) -> np.ndarray:
        if not all(type(length) is int and length >= 0 for length in shape):
            raise ValueError("an array's shape is damaged")
        values = self._list(items, depth)
        if math.prod(shape) != len(values):
            raise ValueError(f"an array of shape {shape} has {len(values)} entries")
        if not all(value is None or isinstance(value, str | int | float) for value in values):
            raise ValueError("an array has entries that are neither strings nor numbers")
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array.reshape(shape)

    def _sparse(
        self,
        format: str,
        container: str,
        shape: list[int],
        data: Any,
        indices: Any,
        indptr: Any,
        depth: int,
    ) -> Any:
        parts = tuple(self.decode(part, depth) for part in (data, indices, indptr))
        for part, kinds in zip(parts, ("fiub", "i", "i"), strict=True):
            if not isinstance(part, np.ndarray) or part.ndim != 1 or part.dtype.kind not in kinds:
                raise ValueError("a sparse matrix has a part that is no array of numbers")
        rows, columns = shape
        matrix = _SPARSE[format, container](parts, shape=(rows, columns))
        matrix.check_format(full_check=True)  # compiled code trusts the indices
        return matrix

    def _random_state(self, state: list[Any], depth: int) -> np.random.RandomState:
        key, position, has_gauss, gauss = self._list(state, depth)
        if not (type(position) is int and 0 <= position <= 624 and key.shape == (624,)):
            raise ValueError("a random state is damaged")
        generator = np.random.RandomState()
        generator.set_state(("MT19937", key, position, has_gauss, gauss))
        return generator

    def _object(self, state: dict[str, Any], depth: int, **given: Any) -> Any:
        name = given.pop("class")
        kind = kind_named(name)
        if kind is None or given:
            raise ValueError(
                f"it has an object of the class {name!r}, which this version of anynorm does not "
                "know; upgrade anynorm"
            )
        self.classes.add(kind.name)
        place = len(self._objects)
        self._objects.append(None)
        parts = {key: self.decode(value, depth) for key, value in state.items()}
        self._objects[place] = value = kind.unpack(parts)
        return value

    def _again(self, object: int, depth: int) -> Any:
        value = self._objects[object] if type(object) is int and object >= 0 else None
        if value is None:
            raise ValueError("it refers to an object that is not there")
        return value

    _DECODERS: ClassVar[dict[Any, Callable[..., Any]]] = {
        "float": lambda decoder, value, depth: _FLOATS[value],
        "tuple": _tuple,
        "dict": _dict,
        "slice": _slice,
        "number": _number,
        "dtype": _dtype,
        "scalar_type": _scalar_type,
        "array": _array,
        "objects": _object_array,
        "sparse": _sparse,
        "random_state": _random_state,
        "object": _object,
        "again": _again,
    }
