"""The arguments and options that several commands have, with their help."""

from __future__ import annotations

import pathlib
from functools import partial
from typing import Annotated

import typer

# Options by the part of the help that they are in.
data_option = partial(typer.Option, rich_help_panel="The data")
choice_option = partial(typer.Option, rich_help_panel="The choice")
run_option = partial(typer.Option, rich_help_panel="The run")

Data = Annotated[
    pathlib.Path,
    typer.Argument(
        help="CSV, TSV, Excel, Parquet, Feather, JSON lines or svmlight, a row for each example; "
        "- is standard input.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    data_option("--target", "-t", help="The column of class labels."),
]
Id = Annotated[str | None, data_option("--id", help="The column of row names.")]
Group = Annotated[
    str | None,
    data_option(
        help="A column of groups, e.g. patients: rows of one are never on both sides of a fold."
    ),
]
Positive = Annotated[
    str | None,
    data_option(
        help="The label that positive weights speak for; the second in order by default. Of more "
        "than two classes the others become one."
    ),
]
Drop = Annotated[
    list[str] | None,
    data_option(help="A column to leave out, or a pattern such as 'meta_*'; can be repeated."),
]
Text = Annotated[
    list[str] | None,
    data_option(
        help="A column of numbers that are categories, e.g. postal codes; can be repeated."
    ),
]
Transpose = Annotated[
    bool,
    data_option(
        "--transpose",
        help="The file has a row for each feature and a column for each sample, as expression "
        "matrices have.",
    ),
]
Labels = Annotated[
    pathlib.Path | None,
    data_option(help="A file with the labels (and groups) of the samples, joined by their names."),
]
Format = Annotated[
    str | None,
    data_option(
        metavar="csv|tsv|excel|parquet|feather|jsonl|svmlight",
        help="What the file is, where its name does not say so.",
    ),
]
Scale = Annotated[
    str,
    choice_option(
        metavar="standard|none",
        help="Bring features to mean 0 and standard deviation 1, by the rows learnt from alone.",
    ),
]
MaxFeatures = Annotated[
    int | None,
    choice_option(help="The most features (of each class, if more than two); for --model sparse."),
]
Scoring = Annotated[
    str,
    choice_option(
        metavar="error|balanced|auc",
        help="What chooses: the error, the mean of the classes' errors, or the area under the ROC "
        "curve.",
    ),
]
ClassWeight = Annotated[
    str | None,
    choice_option(
        metavar="balanced|LABEL=WEIGHT,...",
        help="What rows of a class weigh in the fit; balanced: all classes the same in total.",
    ),
]
Cv = Annotated[
    str,
    choice_option(
        metavar="FOLDS|loo",
        help="The number of folds, or loo to leave one row (one group) out at a time.",
    ),
]
Seed = Annotated[int, run_option(help="Seeds the folds.")]
Jobs = Annotated[int, run_option("--jobs", "-j", help="Threads; -1 takes all cores.")]
TimeLimit = Annotated[
    float | None,
    run_option(metavar="SECONDS", help="The most seconds."),
]
Quiet = Annotated[
    bool,
    run_option("--quiet", "-q", help="Print problems and nothing else."),
]
Json = Annotated[
    bool,
    run_option("--json", help="Print the results as JSON."),
]
