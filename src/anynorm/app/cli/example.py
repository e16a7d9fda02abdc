"""``anynorm example``: data to try the commands on."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

from anynorm.app.cli import output


def example(
    file: Annotated[
        pathlib.Path, typer.Argument(help="The CSV file to write.", show_default=True)
    ] = pathlib.Path("breast_cancer.csv"),
) -> None:
    """Write example data: measurements of 569 cell samples, benign or malignant.

    They are the breast cancer data that come with scikit-learn: no download.
    """
    with output.exit_codes():
        from sklearn.datasets import load_breast_cancer

        from anynorm.app.job.writing import write_text

        found = load_breast_cancer(as_frame=True)
        frame = found.frame.drop(columns="target")
        frame.insert(0, "sample", [f"sample-{row + 1:03d}" for row in range(len(frame))])
        frame.insert(1, "diagnosis", found.target_names[found.target])
        write_text(file, frame.to_csv(index=False))
        output.out().print(
            f"{len(frame)} rows and {frame.shape[1] - 2} features are in "
            f"{output.escape(str(file))}. Next:\n"
            f"  anynorm fit {output.escape(str(file))} --target diagnosis --id sample -o out"
        )
