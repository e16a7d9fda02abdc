"""``anynorm fit``: choose a model, judge it, write it with its report."""

from __future__ import annotations

import pathlib
import time
from typing import TYPE_CHECKING, Any

import typer

from anynorm.app.cli import arguments, fit_arguments, output

if TYPE_CHECKING:
    from anynorm.app.job import Fitted

_HINT = "This takes a while; --time-limit SECONDS ends it with the best model so far."
_SHOWN = 20  # features in the printed table; all are in features.csv
_SHOWN_OF_EACH = 5  # at the least, where there are several classes


def fit(
    data: arguments.Data,
    target: arguments.Target = None,
    folder: fit_arguments.Folder = pathlib.Path("out"),
    id: arguments.Id = None,
    group: arguments.Group = None,
    positive: arguments.Positive = None,
    drop: arguments.Drop = None,
    text: arguments.Text = None,
    transpose: arguments.Transpose = False,
    labels: arguments.Labels = None,
    format: arguments.Format = None,
    test: fit_arguments.Test = None,
    model: fit_arguments.Model = "sparse",
    loss: fit_arguments.Loss = "auto",
    C: fit_arguments.Cs = None,
    keep: fit_arguments.Keep = None,
    scale: arguments.Scale = "standard",
    max_features: arguments.MaxFeatures = None,
    budget: fit_arguments.Budget = None,
    scoring: arguments.Scoring = "error",
    class_weight: arguments.ClassWeight = None,
    cv: arguments.Cv = "5",
    repeats: fit_arguments.Repeats = 1,
    rule: fit_arguments.ChoiceRule = "auto",
    seed: arguments.Seed = 0,
    jobs: arguments.Jobs = -1,
    time_limit: arguments.TimeLimit = None,
    device: fit_arguments.Device = None,
    scheduler: fit_arguments.Scheduler = None,
    workers: fit_arguments.Workers = None,
    worker_timeout: fit_arguments.WorkerTimeout = None,
    quiet: arguments.Quiet = False,
    as_json: arguments.Json = False,
) -> None:
    """Choose a model by cross-validation, judge it honestly, and write it with a report.

    The folder gets model.anynorm, report.html (open it in a browser), features.csv and
    oof_predictions.csv; with --test also test_predictions.csv.
    """
    began = time.monotonic()
    with output.exit_codes(quiet=quiet):
        from anynorm.app.cli.fit_cluster import Cluster
        from anynorm.app.job import Doing, FitOptions, run_fit, write_results
        from anynorm.app.job.writing import FILES, usable_folder
        from anynorm.app.tables import read_table

        options = FitOptions(
            model=model, scale=scale, max_features=max_features, scoring=scoring, cv=cv, rule=rule,
            budget=budget, seed=seed, jobs=jobs, time_limit=time_limit, loss=loss,
            class_weight=class_weight, C=C, keep=tuple(keep or ()), repeats=repeats, device=device,
        )  # fmt: skip
        usable_folder(folder)
        _refuse_the_same(data, test)
        cluster = Cluster(scheduler, workers, worker_timeout)
        cluster.check(data)
        replaced = [file for file in (folder / name for name in FILES) if file.exists()]
        with output.progress_bar(hidden=quiet, hint=_HINT) as show:
            reading: dict[str, Any] = {
                "target": target, "id": id, "group": group, "positive": positive,
                "drop": tuple(drop or ()), "text": tuple(text or ()), "transpose": transpose,
                "labels": labels, "format": format,
            }  # fmt: skip
            if cluster.is_asked_for:
                fitted: Fitted = cluster.fit(data, test, reading, options, show, began)
            else:
                table = read_table(data, **reading)
                held = None if test is None else read_table(test, **reading, for_prediction=True)
                fitted = run_fit(table, options, test=held, show=show, began=began)
            show(Doing(1.0, "writing"))
            files = write_results(fitted, folder)
        if as_json:
            _print_json(fitted, files, replaced)
        elif not quiet:
            _print_result(fitted, files)
            _print_replaced(folder, replaced, files)
        _end(fitted)


def _refuse_the_same(data: pathlib.Path, test: pathlib.Path | None) -> None:
    """Raise where the rows to judge by are the file to learn from."""
    from anynorm.app.job import OptionError

    if test is not None and test.exists() and data.exists() and test.samefile(data):
        raise OptionError(
            f"--test {test} is the file to learn from: its error would be far too good. Give "
            "other rows, or leave --test out, for nested cross-validation."
        )


def _end(fitted: Fitted) -> None:
    """Say on standard error what is wrong with the result, and end with its exit code."""
    if fitted.no_better:
        output.err().print(f"[bold yellow]No better:[/] {output.escape(fitted.no_better)}")
    if not fitted.converged:
        for problem in fitted.problems or ["The model is not certified to its tolerance."]:
            output.err().print(f"[bold yellow]Not converged:[/] {output.escape(problem)}")
    if fitted.no_better:
        raise typer.Exit(output.NO_BETTER)
    if not fitted.converged:
        raise typer.Exit(output.NOT_CONVERGED)


def _print_json(fitted: Fitted, files: list[pathlib.Path], replaced: list[pathlib.Path]) -> None:
    """Everything, for programs."""
    from anynorm.app.job import summary

    names = {"files": files, "replaced": [file for file in replaced if file in files]}
    listed = {key: [str(file) for file in found] for key, found in names.items()}
    output.print_json(summary(fitted) | listed)


def _print_result(fitted: Fitted, files: list[pathlib.Path]) -> None:
    """The short result."""
    from anynorm.app.job.results import (
        BASELINE,
        choice_of,
        chosen_on,
        feature_table,
        n_chosen,
        repeats_words,
    )

    console, model = output.out(), fitted.learned.model
    n, p = fitted.n_rows, len(fitted.learned.preparation.get_feature_names_out())
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
            f"{output.percent(value)} ± {output.percent(error_of_mean)} ({chosen_on(fitted)})",
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
    counted = zip(fitted.class_counts.tolist(), fitted.classes.tolist(), strict=True)
    return ", ".join(f"{count:,} {label}" for count, label in counted)


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
