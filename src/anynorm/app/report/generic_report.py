"""Weights and out-of-fold results of any other model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anynorm.app.report.content import Report, optional, require_shape, texts


@dataclass(frozen=True, kw_only=True, eq=False)
class GenericReport(Report):
    """Any other model: its weights, where it has some, and its out-of-fold results.

    Parameters
    ----------
    coefs : array-like of shape (1, p) or (K, p), or None, default=None
        The weights of the features.
    class_names : sequence of str, default=()
        All K classes, which name the rows of `coefs`.
    """

    kind = "generic"
    scripts = ("generic.js",)

    coefs: ArrayLike | None = None
    class_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.coefs is not None:
            require_shape(self, "coefs", (None, None))
            self._check_features(np.shape(self.coefs)[1])

    def packed(self) -> dict[str, Any]:
        p = 0 if self.coefs is None else np.shape(self.coefs)[1]
        return self._shared(p) | {
            "coefs": optional(self.coefs, "f8"),
            "classes": texts(self.class_names),
        }
