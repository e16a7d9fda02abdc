"""``anynorm compare``: several models on the same folds, in one report."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anynorm.app.cli import arguments, output

if TYPE_CHECKING:
    from anynorm.app.job.comparing import Compared


def compare(
    data: arguments.Data,
    target: arguments.Target = None,
    folder: Annotated[
        pathlib.Path,
        typer.Option("--output", "-o", help="The folder for the page and a folder per model."),
    ] = pathlib.Path("compared"),
    models: Annotated[
        str,
        arguments.choice_option(
            metavar="MODEL,MODEL,...", help="The models of anynorm fit to compare."
        ),
    ] = "sparse,linear,kernel",
    id: arguments.Id = None,
    group: arguments.Group = None,
    positive: arguments.Positive = None,
    drop: arguments.Drop = None,
    text: arguments.Text = None,
    transpose: arguments.Transpose = False,
    labels: arguments.Labels = None,
    format: arguments.Format = None,
    scale: arguments.Scale = "standard",
    scoring: arguments.Scoring = "error",
    class_weight: arguments.ClassWeight = None,
    cv: arguments.Cv = "5",
    rule: Annotated[
        str,
        arguments.choice_option(
            metavar="best|one_se", help="How each model is chosen, as in anynorm fit."
        ),
    ] = "auto",
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    time_limit: arguments.TimeLimit = None,
    quiet: arguments.Quiet = False,
    as_json: arguments.Json = False,
) -> None:
    """Compare several models on the same folds, each judged by nested cross-validation.

    The folder gets compare.html, compare.csv, compare_predictions.csv, and for each model a folder
    with what anynorm fit writes.
    """
    with output.exit_codes(quiet=quiet):
        from anynorm.app.job.comparing import run_compare, write_comparison
        from anynorm.app.job.options import RULES, FitOptions, OptionError
        from anynorm.app.job.writing import usable_folder
        from anynorm.app.tables import read_table

        wanted = [name.strip() for name in models.split(",") if name.strip()]
        for name in wanted:
            if name not in RULES:
                raise OptionError(f"--models takes some of {', '.join(RULES)}; got {name}.")
        options = [
            FitOptions(
                model=name, scale=scale, scoring=scoring, cv=cv, rule=rule, seed=seed, jobs=jobs,
                time_limit=None if time_limit is None else time_limit / len(wanted),
                class_weight=class_weight,
            )
            for name in wanted
        ]  # fmt: skip
        usable_folder(folder)
        with output.progress_bar(hidden=quiet) as show:
            table = read_table(
                data, target=target, id=id, group=group, positive=positive,
                drop=tuple(drop or ()), text=tuple(text or ()), transpose=transpose,
                labels=labels, format=format,
            )  # fmt: skip
            found = run_compare(table, options, show=show)
            files = write_comparison(found, folder)
        if as_json:
            rows = [vars(row) for row in found.rows()]
            written = [str(file) for file in files]
            output.print_json({"best": found.best, "models": rows, "files": written})
        elif not quiet:
            _print(found, files)
        best = found.fits[found.best]
        if best.no_better:
            output.err().print(f"[bold yellow]No better:[/] {output.escape(best.no_better)}")
            raise typer.Exit(output.NO_BETTER)
        late = [model for model, fitted in found.fits.items() if not fitted.converged]
        if late:
            output.err().print(f"[bold yellow]Not converged:[/] {', '.join(late)}.")
            raise typer.Exit(output.NOT_CONVERGED)


def _print(found: Compared, files: list[pathlib.Path]) -> None:
    first: Any = next(iter(found.fits.values()))
    for note in first.table.notes:
        output.out().print(f"[dim]{output.escape(note)}[/]")
    output.print_facts(
        output.out(),
        [
            ("Rows", f"{len(first.oof.y):,}; {first.judged_by}"),
            ("Baseline", output.percent(first.baseline)),
            ("Lowest", found.best),
        ],
    )
    rows = [
        [
            row.name,
            output.percent(row.error),
            f"{output.percent(row.low)} to {output.percent(row.high)}",
            "" if row.name == found.best
            else f"{output.percent(row.more)} ± {output.percent(row.more_se)}",
            row.size,
            f"{row.seconds:.2f} s",
            row.choice,
        ]
        for row in found.rows()
    ]  # fmt: skip
    header = [
        "model",
        first.errors[0].measure,
        "95 %",
        "above the lowest",
        "uses",
        "time",
        "choice",
    ]
    output.print_table(header, rows, texts=("model", "choice"))
    output.out().print("Written to " + output.escape(", ".join(str(file) for file in files)))
