"""Small immutable objects with parameters that scikit-learn can read and set.

An object is frozen when its constructor returns.  `set_params` is the one way to change it
afterwards: scikit-learn's nested parameters (``slack__k``) need a change in place.
Equality, hash and repr come from the constructor's parameters, arrays by their bytes.
"""

from __future__ import annotations

import functools
import inspect
import sys
from abc import ABCMeta
from typing import Any, Self

import numpy as np


class _FrozenWhenBuilt(ABCMeta):
    """Freezes an instance as soon as its constructor, of whatever subclass, has returned."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        instance = super().__call__(*args, **kwargs)
        object.__setattr__(instance, "_frozen", True)
        return instance


class Parameterised(metaclass=_FrozenWhenBuilt):
    """Base of norms and kernels: parameters, equality, hash and repr from the constructor."""

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_frozen", False):
            raise AttributeError(
                f"{type(self).__name__} is immutable; make a new one or use set_params({name}=...)"
            )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable; {name} cannot be deleted")

    @classmethod
    @functools.cache  # solvers ask for norms with other weights again and again
    def _parameter_names(cls) -> list[str]:
        if cls.__init__ is object.__init__:
            return []
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
        kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        return [p.name for p in parameters if p.kind not in kinds]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor's parameters by name (`deep` changes nothing here)."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters in place, checked as the constructor checks them."""
        known = self.get_params()
        for name in params:
            if name not in known:
                raise ValueError(
                    f"{type(self).__name__} has no parameter {name!r}; it has {sorted(known)}"
                )
        if params:
            changed = type(self)(**{**known, **params})
            self.__dict__.clear()
            self.__dict__.update(changed.__dict__)
        return self

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash((type(self), self._identity()))

    def _identity(self) -> tuple[Any, ...]:
        return tuple((name, _comparable(value)) for name, value in self.get_params().items())

    def __repr__(self) -> str:
        defaults = {
            name: parameter.default
            for name, parameter in inspect.signature(type(self).__init__).parameters.items()
        }
        shown = [
            f"{name}={_written(value)}"
            for name, value in self.get_params().items()
            if not (value is None and defaults[name] is None)
        ]
        return f"{type(self).__name__}({', '.join(shown)})"


def _comparable(value: Any) -> Any:
    """A hashable stand-in for `value`, equal where the values are equal."""
    if isinstance(value, np.ndarray):
        return ("array", value.shape, value.dtype.str, value.tobytes())
    try:
        hash(value)
    except TypeError:
        return (type(value).__name__, repr(value))
    return value


def _written(value: Any) -> str:
    """`value` as an expression that gives it back."""
    if isinstance(value, np.ndarray):
        with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
            return repr(value)
    if isinstance(value, np.generic):
        return repr(value.item())
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    return repr(value)
