"""What the methods hand to each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class PrimalDual:
    """Scaled coefficients u (w = V u), bias and dual point."""

    u: np.ndarray
    bias: float
    dual: np.ndarray
