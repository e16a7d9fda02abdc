"""Several models on the same rows and the same folds, and how much they differ."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from anynorm.app.job.fit import Fitted, run_fit
from anynorm.app.job.measures import MEASURES, predicted
from anynorm.app.job.options import FitOptions, OptionError
from anynorm.app.job.results import BASELINE, choice_of, n_chosen, versions
from anynorm.app.job.schedule import Doing, Show
from anynorm.app.job.writing import REPORT, staged, write_results
from anynorm.app.report import CompareReport, ModelRow, write_report
from anynorm.app.tables import Table

PAGE, TABLE, ROWS = "compare.html", "compare.csv", "compare_predictions.csv"


@dataclass(frozen=True)
class Compared:
    """What `run_compare` found: the fits by model, all judged by the same rows.

    Attributes
    ----------
    fits : dict of str to Fitted
        In the order that was asked for.
    """

    fits: dict[str, Fitted]

    @property
    def best(self) -> str:
        """The model of the lowest error; the first of those."""
        return min(self.fits, key=lambda model: self.fits[model].errors[0].value)

    def rows(self) -> list[ModelRow]:
        """A row for each model, with the difference of its error from that of the best."""
        return [self._row(model, found) for model, found in self.fits.items()]

    def _row(self, model: str, found: Fitted) -> ModelRow:
        error, estimator = found.errors[0], found.learned.model
        linear = hasattr(estimator, "coef_")
        size = n_chosen(found) if linear else len(estimator.support_)
        more, spread = self._difference(model)
        return ModelRow(
            name=model,
            choice=f"{type(estimator).__name__}, {choice_of(found)}",
            error=error.value,
            low=error.low,
            high=error.high,
            more=more,
            more_se=spread,
            size=f"{size:,} {'features' if linear else 'support vectors'}",
            gap=float(estimator.certificate_.gap),
            seconds=found.seconds,
            report=f"{model}/{REPORT}",
        )

    def _difference(self, model: str) -> tuple[float, float]:
        """How much more often a model is wrong than the best, row by row, and its standard error.

        Rows of one group are not independent: theirs are summed first.
        """
        wrong = [
            (predicted(each.oof.scores) != each.oof.y).astype(np.float64)
            for each in (self.fits[model], self.fits[self.best])
        ]
        difference = wrong[0] - wrong[1]
        mean, groups = float(difference.mean()), self.fits[model].table.groups
        parts = (difference - mean) / len(difference)
        if groups is not None:
            parts = np.bincount(np.unique(groups, return_inverse=True)[1].ravel(), weights=parts)
        return mean, float(np.sqrt(len(parts) / max(1, len(parts) - 1) * (parts @ parts)))

    def table(self) -> pd.DataFrame:
        """The rows as a table."""
        return pd.DataFrame([vars(row) for row in self.rows()])

    def predictions(self) -> pd.DataFrame:
        """What each model says of each row that its search knew nothing of."""
        first = next(iter(self.fits.values()))
        classes = first.classes
        table = pd.DataFrame({"id": first.oof.ids, "label": classes[first.oof.y]})
        for model, found in self.fits.items():
            table[f"predicted_{model}"] = classes[predicted(found.oof.scores)]
        return table.assign(fold=first.oof.folds)

    def report(self) -> CompareReport:
        """The page."""
        first = next(iter(self.fits.values()))
        measure = MEASURES[first.options.scoring]
        counts = np.bincount(first.oof.y, minlength=len(first.classes))
        each = ", ".join(f"{n} {label}" for n, label in zip(counts, first.classes, strict=True))
        best, source = self.fits[self.best], pathlib.Path(first.table.source).name
        return CompareReport(
            title=f"{first.table.target_name or 'target'} from {source}",
            facts={
                "Lowest " + measure: f"{best.errors[0].value:.1%} ({self.best})",
                "Baseline": f"{first.baseline:.1%} ({BASELINE})",
                "Rows": f"{len(first.oof.y)} ({each})",
                "Judged by": first.judged_by,
            },
            notes=list(dict.fromkeys(note for found in self.fits.values() for note in found.notes)),
            caution=best.no_better,
            measure=measure,
            models=self.rows(),
            best=self.best,
            baseline=first.baseline,
            versions=", ".join(f"{name} {version}" for name, version in versions().items()),
        )


def run_compare(
    table: Table, options: Sequence[FitOptions], *, show: Show | None = None
) -> Compared:
    """Fit several models with the same folds, each judged by nested cross-validation.

    Parameters
    ----------
    table : Table
        The rows to learn from, with their labels.
    options : sequence of FitOptions
        One for each model, with the same seed, folds and scoring.
    show : callable or None, default=None
        Called with a `Doing` as the work goes on.

    Returns
    -------
    Compared
        The fits, and their differences.
    """
    models = [each.model for each in options]
    if len(set(models)) < max(2, len(models)):
        raise OptionError(f"--models needs two different models or more; got {', '.join(models)}.")
    if len({(each.seed, each.cv, each.scoring) for each in options}) > 1:
        raise OptionError("models are compared with the same --seed, --cv and --scoring.")
    fits = {}
    for number, each in enumerate(options):

        def tell(doing: Doing, before: int = number, model: str = each.model) -> None:
            if show is not None:
                share = (before + doing.share) / len(options)
                show(replace(doing, share=share, what=f"{model}: {doing.what}", left=None))

        fits[each.model] = run_fit(table, each, show=tell)
    return Compared(fits)


def write_comparison(found: Compared, folder: str | os.PathLike[str]) -> list[pathlib.Path]:
    """Write the page and the tables, and the results of each model into a folder of its own."""
    for model, fitted in found.fits.items():
        write_results(fitted, pathlib.Path(folder, model))
    with staged(folder) as stage:
        found.table().to_csv(stage / TABLE, index=False)
        found.predictions().to_csv(stage / ROWS, index=False)
        write_report(found.report(), stage / PAGE)
    return [pathlib.Path(folder, name) for name in (PAGE, TABLE, ROWS)]
