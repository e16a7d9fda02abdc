"""Accuracy against the number of support vectors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from anynorm.app.report.content import (
    Report,
    array,
    numbers,
    optional,
    require_both,
    require_names,
    require_shape,
    texts,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class BudgetReport(Report):
    """Kernel models on budgets: accuracy against the number of support vectors.

    Parameters
    ----------
    budgets : array-like of shape (m,)
        The budgets that were tried.
    n_support : array-like of shape (m,)
        The numbers of support vectors (in the mean over the folds, or of the fit to all rows).
    accuracy, accuracy_se : array-like of shape (m,)
        The cross-validated accuracies and their standard errors (None where unknown).
    chosen : int, default=-1
        The place of the chosen budget.
    reference : tuple of (str, float, float) or None, default=None
        A model without a budget to compare with: its name, number of support vectors, accuracy.
    support_names, support_weights : sequences or None, default=None
        The names of the support vectors of the final model, and their dual coefficients, of shape
        (n_support,) or (K, n_support).
    support_labels : sequence of str or None, default=None
        Their classes.
    class_names : sequence of str, default=()
        All classes, which name the rows of `support_weights`.
    """

    kind = "budget"
    scripts = ("budget.js",)

    budgets: ArrayLike
    n_support: ArrayLike
    accuracy: ArrayLike
    accuracy_se: ArrayLike | None = None
    chosen: int = -1
    reference: tuple[str, float, float] | None = None
    support_names: Sequence[str] | None = None
    support_weights: ArrayLike | None = None
    support_labels: Sequence[str] | None = None
    class_names: Sequence[str] = ()

    def __post_init__(self) -> None:
        m = len(numbers(self.budgets))
        for name in ("n_support", "accuracy", "accuracy_se"):
            require_shape(self, name, (m,))
        if not -m <= self.chosen < m:
            raise ValueError(f"chosen must be a place among the {m} budgets; got {self.chosen!r}.")
        require_both(self, "support_names", "support_weights")
        if self.support_names is not None:
            n = np.atleast_2d(np.asarray(self.support_weights)).shape[1]
            require_names(self, "support_names", n)
            require_names(self, "support_labels", n)

    def packed(self) -> dict[str, Any]:
        m = len(np.asarray(self.budgets))
        weights, reference = self.support_weights, None
        if self.reference is not None:
            name, *values = self.reference
            reference = [str(name), *map(float, values)]
        return self._shared(0) | {
            "budgets": array(self.budgets, "f8"),
            "support": array(self.n_support, "f8"),
            "accuracy": array(self.accuracy, "f8"),
            "se": optional(self.accuracy_se, "f8"),
            "chosen": int(self.chosen) % m,
            "reference": reference,
            "supportNames": texts(self.support_names),
            "supportLabels": texts(self.support_labels),
            "supportWeights": None if weights is None else array(np.atleast_2d(weights), "f8"),
            "classes": texts(self.class_names),
        }
