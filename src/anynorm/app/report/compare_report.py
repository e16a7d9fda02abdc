"""Several models side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from anynorm.app.report.content import Report, number


@dataclass(frozen=True)
class ModelRow:
    """One of the models.

    Attributes
    ----------
    name, choice : str
        What it is called, and what was chosen.
    error, low, high : float
        Its error on rows that its search knew nothing of, with a 95 % interval.
    more, more_se : float
        By how much its error is above that of the best, row by row, and the standard error.
    size : str
        How many features or support vectors it uses.
    gap : float
        The relative duality gap of its certificate.
    seconds : float
        The time for everything.
    report : str
        Where its own report is, seen from the page; empty where there is none.
    """

    name: str
    choice: str
    error: float
    low: float
    high: float
    more: float
    more_se: float
    size: str
    gap: float
    seconds: float
    report: str = ""


@dataclass(frozen=True, kw_only=True, eq=False)
class CompareReport(Report):
    """Several models that were judged by the same folds.

    Parameters
    ----------
    models : sequence of ModelRow
        At least two.
    best : str
        The name of the one with the lowest error.
    baseline : float
        The error of always predicting the most frequent class.
    """

    kind = "compare"
    scripts = ("compare.js",)

    models: Sequence[ModelRow]
    best: str
    baseline: float

    def __post_init__(self) -> None:
        if len(self.models) < 2:
            raise ValueError("CompareReport needs two models or more.")
        if self.best not in [row.name for row in self.models]:
            raise ValueError(f"best must be the name of one of the models; got {self.best!r}.")

    def packed(self) -> dict[str, Any]:
        return self._shared(0) | {
            "models": [
                {
                    key: number(value) if isinstance(value, float) else value
                    for key, value in vars(row).items()
                }
                for row in self.models
            ],
            "best": self.best,
            "baseline": number(self.baseline),
        }
