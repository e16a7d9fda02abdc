"""The options that ``anynorm fit`` alone has, with their help."""

from __future__ import annotations

import pathlib
from typing import Annotated

import typer

from anynorm.app.cli.arguments import choice_option, data_option, run_option

Folder = Annotated[
    pathlib.Path,
    typer.Option("--output", "-o", help="The folder for the model, report and tables."),
]
Test = Annotated[
    pathlib.Path | None,
    data_option(
        help="Rows to judge the model by, laid out like the data; without them the error is "
        "that of nested cross-validation."
    ),
]
Model = Annotated[
    str,
    choice_option(
        metavar="sparse|reweighted|budget|least-norm|least-squares|linear|kernel",
        help="sparse: the 1-norm SVM, chosen along its exact path. reweighted: the walk "
        "to it. budget: a kernel SVM with a limit on the number of support vectors. "
        "least-norm, least-squares: kernel SVMs with equality constraints. linear, kernel: "
        "the 2-norm SVM.",
    ),
]
Loss = Annotated[
    str,
    choice_option(
        metavar="auto|hinge|squared_hinge|logistic|squared|absolute",
        help="For --model sparse: hinge, the exact path; squared_hinge, a range of C, much "
        "faster on large data; auto, the path where it takes some seconds at the most. "
        "--model linear and reweighted have all five, and auto is the hinge.",
    ),
]
Cs = Annotated[
    str | None,
    choice_option(
        "--C", metavar="C,C,...", help="The values of C to choose from; not for --model sparse."
    ),
]
Keep = Annotated[
    list[str] | None,
    choice_option(
        help="A column (or a pattern) that the sparse model uses in any case: it is not "
        "penalised; can be repeated. --drop leaves columns out."
    ),
]
Budget = Annotated[
    float | None,
    choice_option(help="The most support vectors, or a share of the rows; for --model budget."),
]
Repeats = Annotated[
    int,
    choice_option(
        help="How often the model is judged by nested cross-validation, with other folds each "
        "time: how much the error depends on them."
    ),
]
ChoiceRule = Annotated[
    str,
    choice_option(
        metavar="steady|best|one_se|fewest|paper",
        help="steady: the best score on average over a range of s; for --model sparse, and its "
        "default. best: the best score. one_se: the simplest within one standard error of it. "
        "fewest: the fewest features within 0.01 or one standard error of it. paper: for "
        "--model reweighted.",
    ),
]
Scheduler = Annotated[
    str | None,
    run_option(
        metavar="ADDRESS",
        help="A Dask scheduler, such as tcp://host:8786, whose workers read DATA, a folder or a "
        "quoted pattern of Parquet files that may be larger than memory.",
    ),
]
Workers = Annotated[
    int | None,
    run_option(metavar="N", help="The same with so many processes of this machine."),
]
WorkerTimeout = Annotated[
    float | None,
    run_option(
        metavar="SECONDS",
        help="How long a cluster may be without any worker; a minute unless Dask is configured "
        "otherwise.",
    ),
]
Device = Annotated[
    str | None,
    run_option(
        metavar="cuda|cuda:1|...",
        help="Where models are fitted, by PyTorch or CuPy; for kernel models and linear.",
    ),
]
