"""``anynorm fit``: choose a model, judge it, write it with its report."""

from __future__ import annotations

import pathlib
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anynorm.app.cli import arguments, output

if TYPE_CHECKING:
    from anynorm.app.job import Fitted

_HINT = "This takes a while; --time-limit SECONDS ends it with the best model so far."
_SHOWN = 20  # features in the printed table; all are in features.csv
_SHOWN_OF_EACH = 5  # at the least, where there are several classes


def fit(
    data: arguments.Data,
    target: arguments.Target = None,
    folder: Annotated[
        pathlib.Path,
        typer.Option("--output", "-o", help="The folder for the model, report and tables."),
    ] = pathlib.Path("out"),
    id: arguments.Id = None,
    group: arguments.Group = None,
    positive: arguments.Positive = None,
    drop: arguments.Drop = None,
    text: arguments.Text = None,
    transpose: arguments.Transpose = False,
    labels: arguments.Labels = None,
    format: arguments.Format = None,
    test: Annotated[
        pathlib.Path | None,
        arguments.data_option(
            help="Rows to judge the model by, laid out like the data; without them the error is "
            "that of nested cross-validation."
        ),
    ] = None,
    model: Annotated[
        str,
        arguments.choice_option(
            metavar="sparse|reweighted|budget|least-norm|least-squares|linear|kernel",
            help="sparse: the 1-norm SVM, chosen along its exact path. reweighted: the walk "
            "to it. budget: a kernel SVM with a limit on the number of support vectors. "
            "least-norm, least-squares: kernel SVMs with equality constraints. linear, kernel: "
            "the 2-norm SVM.",
        ),
    ] = "sparse",
    loss: Annotated[
        str,
        arguments.choice_option(
            metavar="auto|hinge|squared_hinge|logistic|squared|absolute",
            help="For --model sparse: hinge, the exact path; squared_hinge, a range of C, much "
            "faster on large data; auto, the path where it takes some seconds at the most. "
            "--model linear and reweighted have all five, and auto is the hinge.",
        ),
    ] = "auto",
    C: Annotated[
        str | None,
        arguments.choice_option(
            "--C", metavar="C,C,...", help="The values of C to choose from; not for --model sparse."
        ),
    ] = None,
    keep: Annotated[
        list[str] | None,
        arguments.choice_option(
            help="A column (or a pattern) that the sparse model uses in any case: it is not "
            "penalised; can be repeated. --drop leaves columns out."
        ),
    ] = None,
    scale: arguments.Scale = "standard",
    max_features: arguments.MaxFeatures = None,
    budget: Annotated[
        float | None,
        arguments.choice_option(
            help="The most support vectors, or a share of the rows; for --model budget."
        ),
    ] = None,
    scoring: arguments.Scoring = "error",
    class_weight: arguments.ClassWeight = None,
    cv: arguments.Cv = "5",
    repeats: Annotated[
        int,
        arguments.choice_option(
            help="How often the model is judged by nested cross-validation, with other folds each "
            "time: how much the error depends on them."
        ),
    ] = 1,
    rule: Annotated[
        str,
        arguments.choice_option(
            metavar="steady|best|one_se|fewest|paper",
            help="steady: the best score on average over a range of s; for --model sparse, and its "
            "default. best: the best score. one_se: the simplest within one standard error of it. "
            "fewest: the fewest features within 0.01 or one standard error of it. paper: for "
            "--model reweighted.",
        ),
    ] = "auto",
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    time_limit: arguments.TimeLimit = None,
    device: Annotated[
        str | None,
        arguments.run_option(
            metavar="cuda|cuda:1|...",
            help="Where models are fitted, by PyTorch or CuPy; for kernel models and linear.",
        ),
    ] = None,
    quiet: arguments.Quiet = False,
    as_json: arguments.Json = False,
) -> None:
    """Choose a model by cross-validation, judge it honestly, and write it with a report.

    The folder gets model.anynorm, report.html (open it in a browser), features.csv and
    oof_predictions.csv; with --test also test_predictions.csv.
    """
    began = time.monotonic()
    with output.exit_codes(quiet=quiet):
        from anynorm.app.job import Doing, FitOptions, OptionError, run_fit, summary, write_results
        from anynorm.app.job.writing import FILES, usable_folder
        from anynorm.app.tables import read_table

        options = FitOptions(
            model=model, scale=scale, max_features=max_features, scoring=scoring, cv=cv, rule=rule,
            budget=budget, seed=seed, jobs=jobs, time_limit=time_limit, loss=loss,
            class_weight=class_weight, C=C, keep=tuple(keep or ()), repeats=repeats, device=device,
        )  # fmt: skip
        usable_folder(folder)
        if test is not None and test.exists() and data.exists() and test.samefile(data):
            raise OptionError(
                f"--test {test} is the file to learn from: its error would be far too good. Give "
                "other rows, or leave --test out, for nested cross-validation."
            )
        replaced = [file for file in (folder / name for name in FILES) if file.exists()]
        with output.progress_bar(hidden=quiet, hint=_HINT) as show:
            reading: dict[str, Any] = {
                "target": target, "id": id, "group": group, "positive": positive,
                "drop": tuple(drop or ()), "text": tuple(text or ()), "transpose": transpose,
                "labels": labels, "format": format,
            }  # fmt: skip
            table = read_table(data, **reading)
            held = None if test is None else read_table(test, **reading, for_prediction=True)
            fitted = run_fit(table, options, test=held, show=show, began=began)
            show(Doing(1.0, "writing"))
            files = write_results(fitted, folder)
        if as_json:
            names = {"files": files, "replaced": [file for file in replaced if file in files]}
            listed = {key: [str(file) for file in found] for key, found in names.items()}
            output.print_json(summary(fitted) | listed)
        elif not quiet:
            _print_result(fitted, files)
            _print_replaced(folder, replaced, files)
        if fitted.no_better:
            output.err().print(f"[bold yellow]No better:[/] {output.escape(fitted.no_better)}")
        if not fitted.converged:
            for problem in fitted.problems or ["The model is not certified to its tolerance."]:
                output.err().print(f"[bold yellow]Not converged:[/] {output.escape(problem)}")
        if fitted.no_better:
            raise typer.Exit(output.NO_BETTER)
        if not fitted.converged:
            raise typer.Exit(output.NOT_CONVERGED)


def _print_result(fitted: Fitted, files: list[pathlib.Path]) -> None:
    """The short result."""
    from anynorm.app.job.measures import MEASURES
    from anynorm.app.job.results import BASELINE, choice_of, feature_table, n_chosen, repeats_words

    console, model = output.out(), fitted.learned.model
    n, p = len(fitted.table.ids), len(fitted.learned.preparation.get_feature_names_out())
    for note in fitted.notes:
        console.print(f"[dim]{output.escape(note)}[/]")
    for problem in fitted.problems if fitted.converged else []:
        console.print(f"[yellow]{output.escape(problem)}[/]")
    features = "1 feature" if p == 1 else f"{p:,} features"
    facts = [("Data", f"{n:,} rows ({_counts(fitted)}), {features}")]
    facts += [output.error_fact(error, fitted.judged_by) for error in fitted.errors]
    facts.insert(2, ("Baseline", f"{output.percent(fitted.baseline)} ({BASELINE})"))
    if len(fitted.repeats) > 1:
        facts.insert(2, ("Repeated", repeats_words(fitted.repeats).replace("%", " %")))
    value, error_of_mean = fitted.selection_error
    facts.append(
        (
            "Selection error",
            f"{output.percent(value)} ± {output.percent(error_of_mean)} "
            f"({MEASURES[fitted.options.scoring]} on the folds that chose the model: too good)",
        )
    )
    chosen = choice_of(fitted)
    facts.append(("Model", f"{type(model).__name__}, {chosen}, rule {fitted.options.rule}"))
    if hasattr(model, "coef_"):
        facts.append(("Features", f"{n_chosen(fitted):,} of {p:,}{_speaks_for(fitted)}"))
    else:
        facts.append(("Support vectors", f"{len(model.support_):,} of {n:,} rows"))
    facts.append(("Certificate", str(model.certificate_)))
    facts.append(("Time", f"{fitted.seconds:.2f} s"))
    output.print_facts(console, facts)
    if hasattr(model, "coef_"):
        table = feature_table(fitted)
        chosen_in_folds = fitted.learned.selection_frequency is not None
        _print_features(table if chosen_in_folds else table.drop(columns="selection_frequency"))
    console.print("Written to " + output.escape(", ".join(str(file) for file in files)))


def _print_replaced(
    folder: pathlib.Path, replaced: list[pathlib.Path], files: list[pathlib.Path]
) -> None:
    """That the folder had results before, and which of them are still there."""
    if not replaced:
        return
    stale = [file.name for file in replaced if file not in files]
    left = f"; {', '.join(stale)} is still the one of before" if stale else ""
    where = output.escape(str(folder))
    output.out().print(f"[yellow]{where} had the results of an earlier fit: replaced{left}.[/]")


def _counts(fitted: Fitted) -> str:
    labels, y = fitted.classes.tolist(), fitted.oof.y.tolist()
    return ", ".join(f"{y.count(k):,} {label}" for k, label in enumerate(labels))


def _speaks_for(fitted: Fitted) -> str:
    if len(fitted.classes) > 2:
        return ", one class against the rest"
    return f"; a positive weight speaks for {fitted.classes.tolist()[1]}"


def _print_features(table: Any) -> None:
    """The heaviest features, of every class."""
    used = table[table["weight"] != 0]
    shown = used.head(_SHOWN)
    if "class" in used:
        each = used.groupby("class", sort=False)
        shown = each.head(max(_SHOWN_OF_EACH, _SHOWN // each.ngroups) if each.ngroups else _SHOWN)
    header = {
        "class": "class", "feature": "feature", "weight": "weight",
        "weight_original_units": "in original units", "s_at_entry": "enters at s",
        "selection_frequency": "in folds",
    }  # fmt: skip
    columns = [name for name in header if name in used and used[name].notna().any()]
    rows = []
    for _, row in shown.iterrows():
        cells = [str(row[name]) for name in columns if name in ("class", "feature")]
        for name in columns[len(cells) :]:
            share = name == "selection_frequency"
            cells.append(f"{100 * row[name]:.0f} %" if share else f"{row[name]:.4g}")
        rows.append(cells)
    if rows:
        output.print_table([header[name] for name in columns], rows, texts=("class", "feature"))
    if len(used) > len(shown):
        output.out().print(f"... and {len(used) - len(shown):,} more in features.csv")
