"""``anynorm predict``: classes of new rows, and the error where their labels are known."""

from __future__ import annotations

import pathlib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anynorm.app.cli import arguments, output

if TYPE_CHECKING:
    from anynorm.app.job.predict import Predicted

_MOST_SHOWN = 12  # classes in the printed table


def predict(
    model: Annotated[
        pathlib.Path,
        typer.Argument(help="A model file, e.g. out/model.anynorm.", show_default=False),
    ],
    data: arguments.Data,
    file: Annotated[
        pathlib.Path | None,
        typer.Option(
            "--output", "-o", help="The CSV file for the predictions; without it they are printed."
        ),
    ] = None,
    target: Annotated[
        str | None,
        arguments.data_option(
            "--target",
            "-t",
            help="The column to compare with; by default that of the fit, if the file has it.",
        ),
    ] = None,
    id: arguments.Id = None,
    transpose: arguments.Transpose = False,
    labels: arguments.Labels = None,
    format: arguments.Format = None,
    quiet: arguments.Quiet = False,
    as_json: arguments.Json = False,
) -> None:
    """Predict the classes of the rows of a file.

    Columns are found by name: their order does not matter, and others are ignored. Where the file
    has the target column, the error is printed too.
    """
    with output.exit_codes(quiet=quiet):
        from anynorm.app.job.options import OptionError
        from anynorm.app.job.predict import run_predict
        from anynorm.app.job.writing import write_text

        if file is not None and any(
            each is not None and each.exists() and file.exists() and file.samefile(each)
            for each in (data, model, labels)
        ):
            raise OptionError(f"-o {file} is one of the files to read; choose another name.")
        found = run_predict(
            model, data, target=target, id=id, transpose=transpose, labels=labels, format=format
        )
        text = found.table.to_csv(index=False)
        if file is not None:
            write_text(file, text)
        if as_json:
            output.print_json(_summary(found, file))
        elif file is None:
            sys.stdout.write(text)
        if not quiet and not as_json:
            _print_result(found, file)


def _print_result(found: Predicted, file: pathlib.Path | None) -> None:
    """Notes, counts and errors; where the predictions are printed these go to stderr."""
    console = output.out() if file is not None else output.err()
    for note in found.notes:
        console.print(f"[dim]{output.escape(note)}[/]")
    counts = found.table["predicted"].value_counts(sort=False)
    each = ", ".join(f"{count:,} {label}" for label, count in counts.items())
    facts = [("Predicted", f"{len(found.table):,} rows: {each}")]
    facts += [output.error_fact(x, f"{x.n_rows:,} rows with labels") for x in found.errors]
    output.print_facts(console, facts)
    confusion = found.confusion
    if file is not None and confusion is not None and len(confusion) <= _MOST_SHOWN:
        header = ["label", *(f"as {name}" for name in confusion.columns)]
        rows = [
            [str(x), *map(str, row)]
            for x, row in zip(confusion.index, confusion.to_numpy(), strict=True)
        ]
        output.print_table(header, rows, texts=("label",))
    if file is not None:
        console.print(f"Written to {output.escape(str(file))}")


def _summary(found: Predicted, file: pathlib.Path | None) -> dict[str, Any]:
    from anynorm.app.job.results import estimate_values

    counts = found.table["predicted"].value_counts(sort=False)
    values: dict[str, Any] = {
        "rows": len(found.table),
        "predicted": {str(label): int(count) for label, count in counts.items()},
        "errors": [estimate_values(each) for each in found.errors],
        "notes": found.notes,
    }
    if found.confusion is not None:
        values["confusion"] = {
            str(name): {str(x): int(k) for x, k in row.items()}
            for name, row in found.confusion.to_dict("index").items()
        }
    if file is None:
        values["predictions"] = found.table.to_dict("records")
    else:
        values["file"] = str(file)
    return values
