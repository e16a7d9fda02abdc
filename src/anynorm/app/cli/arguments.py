"""The arguments and options that several commands have, with their help."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

DATA, CHOICE, RUN = "The data", "The choice", "The run"
"""The parts of the help."""

Data = Annotated[
    pathlib.Path,
    typer.Argument(
        help="CSV, TSV, Parquet or svmlight; a row for each example.", show_default=False
    ),
]
Target = Annotated[
    str | None,
    typer.Option("--target", "-t", help="The column of class labels.", rich_help_panel=DATA),
]
Id = Annotated[
    str | None, typer.Option("--id", help="The column of row names.", rich_help_panel=DATA)
]
Group = Annotated[
    str | None,
    typer.Option(
        help="A column of groups, e.g. patients: rows of one are never on both sides of a fold.",
        rich_help_panel=DATA,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        help="The label that positive weights speak for; the second in order by default. Of more "
        "than two classes the others become one.",
        rich_help_panel=DATA,
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        help="A column to leave out, or a pattern such as 'meta_*'; can be repeated.",
        rich_help_panel=DATA,
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        help="A column of numbers that are categories, e.g. postal codes; can be repeated.",
        rich_help_panel=DATA,
    ),
]
Transpose = Annotated[
    bool,
    typer.Option(
        "--transpose",
        help="The file has a row for each feature and a column for each sample, as expression "
        "matrices have.",
        rich_help_panel=DATA,
    ),
]
Labels = Annotated[
    pathlib.Path | None,
    typer.Option(
        help="A file with the labels (and groups) of the samples, joined by their names.",
        rich_help_panel=DATA,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="csv|tsv|parquet|svmlight",
        help="What the file is, where its name does not say so.",
        rich_help_panel=DATA,
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        metavar="standard|none",
        help="Bring features to mean 0 and standard deviation 1, by the rows learnt from alone.",
        rich_help_panel=CHOICE,
    ),
]
MaxFeatures = Annotated[
    int | None,
    typer.Option(
        help="The most features (of each class, if more than two); for --model sparse.",
        rich_help_panel=CHOICE,
    ),
]
TimeLimit = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="The most seconds.", rich_help_panel=RUN),
]
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="Print problems and nothing else.", rich_help_panel=RUN),
]
Json = Annotated[
    bool,
    typer.Option("--json", help="Print the results as JSON.", rich_help_panel=RUN),
]
