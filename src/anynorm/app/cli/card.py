"""``anynorm card``: what a model file holds, its formula, and a compact copy of it."""

from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anynorm.app.cli import arguments, output

if TYPE_CHECKING:
    from anynorm.app.job.model_card import Card


def card(
    model: Annotated[
        pathlib.Path,
        typer.Argument(help="A model file, e.g. out/model.anynorm.", show_default=False),
    ],
    file: Annotated[
        pathlib.Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A compact model file to write: the columns with weight, and nothing of the "
            "search.",
        ),
    ] = None,
    quiet: arguments.Quiet = False,
    as_json: arguments.Json = False,
) -> None:
    """Show what a model is: its error, the columns it needs, and its formula.

    The weights of the formula are in the units of the file. With -o the model is written once more
    with what its predictions need alone, to hand it on.
    """
    with output.exit_codes(quiet=quiet):
        from anynorm.app.job.model_card import read_card, write_compact
        from anynorm.app.job.options import OptionError
        from anynorm.app.job.writing import usable_folder

        if file is not None:
            if file.exists() and model.exists() and file.samefile(model):
                raise OptionError(f"-o {file} is the model to read; choose another name.")
            usable_folder(file.parent).mkdir(parents=True, exist_ok=True)
        found = read_card(model)
        if file is not None:
            write_compact(found, file)
        if as_json:
            output.print_json(_values(found) | ({} if file is None else {"file": str(file)}))
        elif not quiet:
            _show(found)
            if file is not None:
                output.out().print(f"Written to {output.escape(str(file))}")


def _values(found: Card) -> dict[str, Any]:
    formula = found.formula
    rows = None if formula is None else formula.astype(object).where(formula.notna(), None)
    return found.metadata | {
        "columns": found.columns,
        "formula": None if rows is None else rows.to_dict("records"),
    }


def _show(found: Card) -> None:
    from anynorm.app.tables.errors import listed

    said, estimator = found.metadata, found.model[-1]
    classes = [str(label) for label in estimator.classes_]
    facts = [("Model", type(estimator).__name__)]
    if said.get("target") is not None:
        learnt = f" of {said['file']}" if said.get("file") else ""
        facts.insert(0, ("Target", f"{said['target']}{learnt}: {listed(classes, quote=False)}"))
    if isinstance(error := said.get("error"), dict):
        low, high = error["interval_95"]
        name = error["measure"][0].upper() + error["measure"][1:]
        facts.append(
            (
                name,
                f"{output.percent(error['value'])} ± {output.percent(error['standard_error'])} "
                f"(95 %: {output.percent(low)} to {output.percent(high)}; {error['judged_by']})",
            )
        )
    if hasattr(estimator, "certificate_"):
        facts.append(("Certificate", str(estimator.certificate_)))
    facts.append(("Columns", f"{len(found.columns):,}: {listed(found.columns, quote=False)}"))
    if found.formula is None:
        output.print_facts(output.out(), [*facts, ("Formula", "none: the model has no weights")])
        return
    above = (
        f"above 0 for {classes[1]}" if len(classes) == 2 else "the highest of the classes is said"
    )
    facts.append(("Formula", f"the constant and the sum of weight times value; {above}"))
    output.print_facts(output.out(), facts)
    columns = [name for name in found.formula if found.formula[name].notna().any()]
    rows = [
        [_cell(value) for value in row]
        for row in found.formula[columns].itertuples(index=False, name=None)
    ]
    header = [name.replace("_", " ") for name in columns]
    output.print_table(header, rows, texts=("class", "feature"))


def _cell(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value != value or value is None else f"{value:.6g}"
