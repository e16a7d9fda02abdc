"""A re-weighted model, explored round by round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from anynorm.app.report.content import (
    Report,
    array,
    fold_scores,
    number,
    numbers,
    optional,
    require_shape,
    texts,
)
from anynorm.estimators._cross_validation import standard_error


@dataclass(frozen=True, kw_only=True, eq=False)
class WalkReport(Report):
    """A re-weighted model, round by round.

    Parameters
    ----------
    objectives : array-like of shape (rounds,)
        The 1-norm objective after each round.
    coefs : array-like of shape (rounds, 1, p) or (rounds, K, p)
        The coefficients after each round.
    class_names : sequence of str
        All K classes.
    bound : float or None, default=None
        A value that no objective can go below.
    cv_error, cv_error_se : array-like of shape (rounds,) or None, default=None
        The mean error over the folds after each round and its standard error.
    chosen_round : int or None, default=None
        The round that the model stops at, counted from 1; None is the last.
    """

    kind = "walk"
    scripts = ("walk.js",)

    objectives: ArrayLike
    coefs: ArrayLike
    class_names: Sequence[str]
    bound: float | None = None
    cv_error: ArrayLike | None = None
    cv_error_se: ArrayLike | None = None
    chosen_round: int | None = None

    def __post_init__(self) -> None:
        rounds = len(numbers(self.objectives))
        problems = 1 if len(self.class_names) == 2 else len(self.class_names)
        require_shape(self, "coefs", (rounds, problems, None))
        require_shape(self, "cv_error", (rounds,))
        require_shape(self, "cv_error_se", (rounds,))
        self._check_features(np.shape(self.coefs)[2])
        if self.chosen_round is not None and not 1 <= self.chosen_round <= rounds:
            raise ValueError(
                f"chosen_round must be from 1 to {rounds}, the number of rounds; "
                f"got {self.chosen_round!r}."
            )

    @classmethod
    def of(cls, model: Any, **shared: Any) -> WalkReport:
        """Return the report of a fitted `ReweightedSVC` or `ReweightedSVCCV`.

        Parameters
        ----------
        model : ReweightedSVC or ReweightedSVCCV
            The model, whose rounds are shown, with their errors where they were cross-validated.
        **shared : dict
            What all reports have, and the class names.

        Returns
        -------
        WalkReport
            The content.
        """
        history = model.history_
        found: dict[str, Any] = {}
        if hasattr(model, "cv_results_"):
            table = model.cv_results_
            at_C = np.flatnonzero(table["param_C"] == model.C_)[: len(history)]
            scores = fold_scores(table)[at_C]
            found["cv_error"] = 1.0 - scores.mean(axis=1)
            found["cv_error_se"] = [standard_error(row) for row in scores]
        return cls(
            objectives=[record.objective for record in history],
            coefs=np.array([record.coef for record in history]),
            bound=max(record.l1_certificate.dual for record in history),
            chosen_round=len(history),
            **found,
            **shared,
        )

    def packed(self) -> dict[str, Any]:
        coefs = np.asarray(self.coefs, dtype=np.float64)
        rounds, problems, p = coefs.shape
        flat = sp.csr_array(coefs.reshape(rounds * problems, p))
        return self._shared(p) | {
            "objectives": array(self.objectives, "f8"),
            "bound": None if self.bound is None else number(self.bound),
            "counts": array((coefs != 0).any(axis=1).sum(axis=1), "i4"),
            "indptr": array(flat.indptr, "i4"),
            "indices": array(flat.indices, "i4"),
            "values": array(flat.data, "f8"),
            "classes": texts(self.class_names),
            "error": optional(self.cv_error, "f8"),
            "se": optional(self.cv_error_se, "f8"),
            "chosen": int(self.chosen_round or rounds) - 1,
        }
