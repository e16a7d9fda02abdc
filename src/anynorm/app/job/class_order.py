"""Labels as places among the classes."""

from __future__ import annotations

from typing import Any

import numpy as np


def ordered_classes(target: np.ndarray, positive: Any) -> np.ndarray:
    """The labels, sorted; of two the positive one comes second."""
    classes = np.unique(target)
    if len(classes) == 2 and positive is not None and classes[0] == positive:
        return classes[::-1].copy()
    return classes


def codes_of(target: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The places of labels among the classes, which need not be sorted; -1 for other labels.

    Where one class is all but the positive one, any other label is in it; no label never is.
    """
    places = {str(label): place for place, label in enumerate(classes.tolist())}
    other = places.get(f"not {classes[-1]}", -1) if len(classes) == 2 else -1
    codes = [places.get(str(label), other if str(label) else -1) for label in target.tolist()]
    return np.array(codes, dtype=np.intp)
