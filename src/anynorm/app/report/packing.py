"""Numbers and names as JSON: arrays in base64, everything else as text."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any

import numpy as np


def array(values: Any, dtype: str) -> str:
    """Return the numbers in base64, as little-endian `dtype` ("f8", "f4", "i4", "u1")."""
    flat = np.ascontiguousarray(values, dtype="<" + dtype)
    return base64.b64encode(flat.tobytes()).decode("ascii")


def optional(values: Any, dtype: str) -> str | None:
    """Return the same of numbers that may be None."""
    return None if values is None else array(values, dtype)


def texts(names: Sequence[Any] | None) -> list[str] | None:
    """Return names as texts."""
    return None if names is None else [str(name) for name in names]


def number(value: float) -> float | None:
    """Return a number, None where it is not finite, which JSON has not."""
    return float(value) if math.isfinite(value) else None
