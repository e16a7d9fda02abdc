"""How precise the rows of a kernel matrix are kept and made."""

from __future__ import annotations

from typing import Any

import numpy as np

from anynorm.design.limits import FLOAT32_ROUNDING
from anynorm.kernels.gram import Gram
from anynorm.kernels.kernel import ACCURATE

_SMALLEST = 1e-30  # the least entry, and 1 over it the largest, that float32 has digits for


def precision_of(gram: Gram, exact: bool) -> tuple[Any, float, bool]:
    """Return the dtype of rows, the error of entries, and whether float32 products make them."""
    size = float(np.abs(gram.diagonal()).max(initial=0.0))
    if exact or not (size == 0 or _SMALLEST <= size <= 1 / _SMALLEST):
        return np.float64, 0.0, False
    relative = gram.float32_error()
    if relative <= ACCURATE:
        return np.float32, relative * size, True
    return np.float32, FLOAT32_ROUNDING * size, False
