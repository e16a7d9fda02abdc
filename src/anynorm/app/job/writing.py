"""The files of a fit, written so that none is ever half there."""

from __future__ import annotations

import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anynorm.app.atomic import atomic_file
from anynorm.app.job.fit import Fitted
from anynorm.app.job.options import OptionError
from anynorm.app.job.reporting import content_of
from anynorm.app.job.results import feature_table, prediction_table, summary

MODEL, REPORT = "model.anynorm", "report.html"
FEATURES, OOF, TEST = "features.csv", "oof_predictions.csv", "test_predictions.csv"
FILES = (MODEL, REPORT, FEATURES, OOF, TEST)
"""All that a fit may write."""


def write_results(fitted: Fitted, folder: str | os.PathLike[str]) -> list[pathlib.Path]:
    """Write the model, the report and the tables, all or none of them.

    Parameters
    ----------
    fitted : Fitted
        What to write.
    folder : path
        Where to; it is made where it is missing, and files of the same names are replaced.

    Returns
    -------
    list of Path
        The files.
    """
    from anynorm.app.model_files import save_model
    from anynorm.app.report import write_report

    with staged(folder) as stage:
        save_model(fitted.learned.pipeline, stage / MODEL, metadata=metadata_of(fitted))
        feature_table(fitted).to_csv(stage / FEATURES, index=False)
        prediction_table(fitted.oof, fitted.classes).to_csv(stage / OOF, index=False)
        if fitted.test is not None:
            prediction_table(fitted.test, fitted.classes).to_csv(stage / TEST, index=False)
        write_report(content_of(fitted), stage / REPORT)
    names = [MODEL, REPORT, FEATURES, OOF, *([] if fitted.test is None else [TEST])]
    return [pathlib.Path(folder, name) for name in names]


def metadata_of(fitted: Fitted) -> dict[str, Any]:
    """What is kept with the model: what the columns were, and how it was chosen and judged."""
    found = summary(fitted)
    kept = (
        "model",
        "target",
        "classes",
        "positive",
        "rows",
        "error",
        "selection_error",
        "versions",
    )
    return {name: found[name] for name in kept} | {
        "scoring": fitted.options.scoring,
        "seed": fitted.options.seed,
        "id": fitted.table.id_name,
        "file": pathlib.Path(fitted.table.source).name,
        "columns": [str(name) for name in fitted.learned.preparation.feature_names_in_],
    }


@contextmanager
def staged(folder: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """A folder to write into, whose files then take their places in `folder`, each in one step.

    Whatever goes wrong before leaves `folder` as it was.
    """
    target = usable_folder(folder)
    target.mkdir(parents=True, exist_ok=True)
    stage = pathlib.Path(tempfile.mkdtemp(prefix=".anynorm-", dir=target))
    try:
        yield stage
        for file in sorted(stage.iterdir()):
            os.replace(file, target / file.name)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def write_text(file: str | os.PathLike[str], text: str) -> None:
    """Write a file in one step, and its folder where that is missing."""
    usable_folder(pathlib.Path(file).parent).mkdir(parents=True, exist_ok=True)
    with atomic_file(file) as out:
        out.write(text.encode())


def usable_folder(folder: str | os.PathLike[str]) -> pathlib.Path:
    """The folder of results; an `OptionError` where it cannot be one."""
    target = pathlib.Path(folder)
    nearest = next(part for part in (target, *target.absolute().parents) if part.exists())
    if not nearest.is_dir():
        raise OptionError(f"-o {folder} cannot be a folder: {nearest} is a file. Choose another.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise OptionError(f"-o {folder} cannot be written to: no permission. Choose another.")
    return target
