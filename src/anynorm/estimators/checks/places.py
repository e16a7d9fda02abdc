"""Places on a path that a user asks for."""

from __future__ import annotations

from typing import Any

import numpy as np

from anynorm.design.checks import is_real
from anynorm.estimators.checks.parameters import is_integer


def at_least_zero(value: Any, name: str) -> float:
    """The value as a float; an error names it where it is no number of at least 0."""
    if not is_real(value) or not float(value) >= 0:
        raise ValueError(f"{name} must be a number of at least 0; got {value!r}.")
    return float(value)


def places_on_path(values: Any, name: str) -> np.ndarray:
    """One number of at least 0, or a 1-D array of them."""
    places = np.asarray(values, dtype=np.float64)
    if places.ndim > 1 or np.isnan(places).any() or np.any(places < 0):
        raise ValueError(f"{name} must be a number of at least 0, or a 1-D array of such numbers.")
    return places


def only_one(given: dict[str, Any]) -> None:
    """Check that a place on a path is given in exactly one way."""
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        *others, last = given
        raise ValueError(
            f"a place on the path is given by exactly one of {', '.join(others)} and {last}; got "
            f"{' and '.join(names) if names else 'none of them'}."
        )


def feature_count(n_features: Any) -> int:
    """The number of features as an int; an error where it is none."""
    if not is_integer(n_features) or n_features < 0:
        raise ValueError(f"n_features must be an integer of at least 0; got {n_features!r}.")
    return int(n_features)
