"""``anynorm path``: the joints of the exact path as a table."""

from __future__ import annotations

import math
import pathlib
from typing import TYPE_CHECKING, Annotated

import typer

from anynorm.app.cli import arguments, output

if TYPE_CHECKING:
    from anynorm.app.job.joints import Followed


def path(
    data: arguments.Data,
    target: arguments.Target = None,
    file: Annotated[
        pathlib.Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A CSV file for the table, instead of the terminal; a second file beside it "
            "gets the weights of the features at every joint.",
        ),
    ] = None,
    id: arguments.Id = None,
    positive: arguments.Positive = None,
    drop: arguments.Drop = None,
    text: arguments.Text = None,
    transpose: arguments.Transpose = False,
    labels: arguments.Labels = None,
    format: arguments.Format = None,
    scale: arguments.Scale = "standard",
    max_features: arguments.MaxFeatures = None,
    max_joints: Annotated[
        int | None,
        arguments.choice_option(help="Stop after that many joints."),
    ] = None,
    s_max: Annotated[float | None, arguments.choice_option(help="Stop at that s.")] = None,
    time_limit: arguments.TimeLimit = None,
    quiet: arguments.Quiet = False,
    as_json: arguments.Json = False,
) -> None:
    """Follow the exact path of the 1-norm SVM on all rows and show its joints.

    A joint is a bound s on the sum of the absolute weights at which the slope of the weights
    changes: features enter or leave, or a row reaches the margin.
    """
    with output.exit_codes(quiet=quiet):
        from anynorm.app.job import follow
        from anynorm.app.job.options import FitOptions, OptionError
        from anynorm.app.tables import read_table

        FitOptions(scale=scale, max_features=max_features, time_limit=time_limit)
        if max_joints is not None and max_joints < 1:
            raise OptionError("--max-joints must be at least 1.")
        if s_max is not None and not 0 <= s_max < math.inf:
            raise OptionError("--s-max must be a finite number of at least 0.")
        table = read_table(
            data,
            target=target,
            id=id,
            positive=positive,
            drop=tuple(drop or ()),
            text=tuple(text or ()),
            transpose=transpose,
            labels=labels,
            format=format,
        )
        found = follow(
            table,
            scale=scale,
            max_features=max_features,
            max_joints=max_joints,
            s_max=s_max,
            time_limit=time_limit,
        )
        _show(found, file, quiet=quiet, as_json=as_json)
        if not found.converged:
            output.err().print(
                f"[bold yellow]Not converged:[/] the path ends at s = {found.path.s[-1]:.6g} "
                f"({found.path.stopped}), its largest gap is {found.path.gaps.max():.1e}."
            )
            raise typer.Exit(output.NOT_CONVERGED)


def _show(found: Followed, file: pathlib.Path | None, *, quiet: bool, as_json: bool) -> None:
    from anynorm.app.job.writing import write_text

    joints, path = found.joints(), found.path
    if file is not None:
        weights = file.with_name(f"{file.stem}_weights{file.suffix}")
        write_text(file, joints.to_csv(index=False))
        write_text(weights, found.weights().to_csv(index=False))
    if as_json:
        values = {
            "stopped": path.stopped,
            "n_joints": path.n_joints,
            "joints": joints.astype(object).to_dict("records"),
        }
        output.print_json(values)
    elif file is None and not quiet:
        rows = (
            [
                str(row.joint),
                *(f"{x:.6g}" for x in (row.s, row.C, row.loss)),
                str(row.features),
                f"{row.gap:.1e}",
                f"{row.enters}",
                f"{row.leaves}",
            ]
            for row in joints.itertuples()
        )
        header = ["joint", "s", "C", "loss", "features", "gap", "enters", "leaves"]
        output.print_table(header, rows, texts=("enters", "leaves"))
    if not quiet and not as_json:
        end = "its end" if path.stopped == "end" else path.stopped
        where = "" if file is None else f"; written to {file} and {weights}"
        output.err().print(
            f"{path.n_joints:,} joints to {end} at s = {path.s[-1]:.6g}, up to "
            f"{path.n_nonzero.max():,} of {path.n_features_in_:,} features, largest gap "
            f"{path.gaps.max():.1e}{output.escape(where)}"
        )
