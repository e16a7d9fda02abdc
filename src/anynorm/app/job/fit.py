"""The main job: choose a model by cross-validation, and say honestly how good it is."""

from __future__ import annotations

import fnmatch
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anynorm.app.job.budget_learning import with_other_budgets
from anynorm.app.job.class_order import codes_of, ordered_classes
from anynorm.app.job.cost import announcement, entries_of, method_for, other_loss_can
from anynorm.app.job.folds import fold_numbers, make_splits
from anynorm.app.job.judging import Held, plan_for
from anynorm.app.job.learning import Learned, Task
from anynorm.app.job.measures import Estimate, blind_error
from anynorm.app.job.options import FitOptions, OptionError
from anynorm.app.job.row_order import row_order
from anynorm.app.job.rows_to_judge import TestRows
from anynorm.app.job.schedule import Doing, Schedule, Show
from anynorm.app.job.searching import collected, learn
from anynorm.app.tables import Preparation, Table, TableError
from anynorm.app.tables.errors import near_names
from anynorm.design.limits import ROUNDING
from anynorm.design.threads import Threads
from anynorm.estimators._cross_validation import standard_error
from anynorm.problem.solution import Status

_UNEVEN = 9  # rows of the largest class for each of the smallest, from which on that is noted


@dataclass(frozen=True)
class Fitted:
    """What `run_fit` found.

    Attributes
    ----------
    table : Table
        The rows that were learnt from.
    options : FitOptions
        What was asked for.
    classes : ndarray
        The labels; a positive decision value of two speaks for the second.
    learned : Learned
        The model, and the search that chose it.
    errors : list of Estimate
        Of rows that had no part in fitting or choosing: first the measure that was asked for, then
        the plain error.
    judged_by : str
        Where these rows come from, in words.
    repeats : list of float
        The first of the errors by each of the nested cross-validations, that of `errors` first;
        empty where rows of a test file judge.
    baseline : float
        The first of the errors, of a model that always predicts the most frequent class.
    selection_error : tuple of float
        The cross-validated measure of the choice on the rows that chose it, which is too good,
        and its standard error over the folds.
    oof : Held
        All rows by models that did not learn from them; those of the nested cross-validation
        where there was one, otherwise those of the folds that chose.
    test : Held or None
        The rows of the test file.
    notes, problems : list of str
        What was done to the data; what did not go as it should.
    converged : bool
        Whether the model is certified to its tolerance, and no search was cut short.
    cut : bool
        Whether the time limit ended a part of the searches.
    seconds : float
        The time for everything.
    """

    table: Table
    options: FitOptions
    classes: np.ndarray
    learned: Learned
    errors: list[Estimate]
    judged_by: str
    repeats: list[float]
    baseline: float
    selection_error: tuple[float, float]
    oof: Held
    test: Held | None
    notes: list[str]
    problems: list[str]
    converged: bool
    cut: bool
    seconds: float

    @property
    def judged(self) -> Held:
        """The rows that the errors are those of."""
        return self.oof if self.test is None else self.test

    @property
    def class_counts(self) -> np.ndarray:
        """The number of rows of each class."""
        return np.bincount(self.oof.y, minlength=len(self.classes))

    @property
    def n_rows(self) -> int:
        """The number of rows that were learnt from."""
        return int(self.class_counts.sum())

    @property
    def training_scores(self) -> np.ndarray | None:
        """The decision values of the model, which has seen all classes, of the rows it learnt."""
        matrix = self.learned.preparation.transform(self.table.features)
        return np.asarray(self.learned.model.decision_function(matrix))

    @property
    def no_better(self) -> str:
        """That the model is no better than the most frequent class, in words; empty if it is."""
        error = self.errors[0]
        always = f"always predicting {self.classes.tolist()[int(self.class_counts.argmax())]}"
        if not getattr(self.learned.model, "coef_", np.ones(1)).any():
            # A model with few features may be one whose weights are too small to outvote the bias.
            most = self.options.max_features
            hint = "" if most is None else f" Try without --max-features {most}."
            return (
                f"The model uses no feature: it is {always}, with an {error.measure} of "
                f"{self.baseline:.1%}.{hint}"
            )
        if error.value < self.baseline - ROUNDING:
            return ""
        return (
            f"The model is no better than the most frequent class: its {error.measure} is "
            f"{error.value:.1%}, that of {always} {self.baseline:.1%}."
        )


def run_fit(
    table: Table,
    options: FitOptions,
    *,
    test: Table | None = None,
    show: Show | None = None,
    began: float | None = None,
) -> Fitted:
    """Choose a model, fit it to all rows, and estimate its error on rows that had no part in it.

    Parameters
    ----------
    table : Table
        The rows to learn from, with their labels.
    options : FitOptions
        What to fit and how to choose.
    test : Table or None, default=None
        Rows to judge the model by.  Without them the whole search is repeated in each fold of an
        outer cross-validation.
    show : callable or None, default=None
        Called with a `Doing` as the work goes on.
    began : float or None, default=None
        When the time that is limited began, on `time.monotonic`'s clock; None is now.

    Returns
    -------
    Fitted
        The model, its errors, and all that the report needs.

    Raises
    ------
    OptionError, TableError
        Where an option or the data cannot be used.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from anynorm.datasets import make_relevant
    >>> from anynorm import job, tables
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> table = tables.Table(pd.DataFrame(X).add_prefix("gene"), y, np.arange(len(y)).astype(str),
    ...                      None, None, "data.csv")
    >>> fitted = job.run_fit(table, job.FitOptions(cv=3, max_features=5))
    >>> fitted.errors[0].value <= 0.5, fitted.converged
    (True, True)
    """
    with Threads(options.jobs):
        return _fitted(table, options, test, show, began)


def _fitted(
    table: Table,
    options: FitOptions,
    test: Table | None,
    show: Show | None,
    began: float | None,
) -> Fitted:
    if table.target is None:
        raise TableError("say which column has the classes: --target NAME.", source=table.source)
    classes = ordered_classes(table.target, table.positive)
    y = codes_of(table.target, classes)
    check_weights(options, classes)
    whole = Preparation(scale=options.scale).fit(table.features)
    if options.keep:
        options = replace(options, keep=_kept(options.keep, list(whole.kinds_)))
    asked = None if test is None else TestRows.of(test, table, y, classes, whole)
    task, notes = _task(table, options, y, classes, whole)
    plan = plan_for(task, asked)
    searches = 1 + plan.n_searches
    if options.model == "sparse":
        loss, method_notes = method_for(task, searches)
        task = replace(task, options=replace(options, loss=loss))
        notes += method_notes
        if show is not None:
            show(Doing(0.0, "preparing", announcement(task, searches)))
    schedule = Schedule(show, searches, options.time_limit, began)
    task, learned, problems = _chosen(task, schedule)
    judged = plan.judge(task, learned, _by_folds(task, learned, table.ids), schedule)
    cut = learned.cut or judged.cut
    chosen_by = 1.0 - float(learned.fold_scores.mean()), standard_error(learned.fold_scores)
    problems += [*judged.problems, *_too_lenient(learned, judged.errors[0], chosen_by)]
    certified = learned.model.certificate_.status is Status.OPTIMAL
    return Fitted(
        table=table,
        options=options,
        classes=classes,
        learned=learned,
        errors=judged.errors,
        judged_by=judged.judged_by,
        repeats=judged.repeats,
        baseline=blind_error(options.scoring, (judged.test or judged.oof).y),
        selection_error=chosen_by,
        oof=judged.oof,
        test=judged.test,
        notes=[
            *table.notes,
            *whole.notes_,
            *notes,
            *_search_notes(learned),
            *balance_notes(options, np.bincount(y, minlength=len(classes)), classes),
            *([] if asked is None else asked.notes),
        ],
        problems=_all_problems(options, learned, problems, cut),
        converged=certified and not cut,
        cut=cut,
        seconds=schedule.seconds,
    )


def _task(
    table: Table, options: FitOptions, y: np.ndarray, classes: np.ndarray, whole: Preparation
) -> tuple[Task, list[str]]:
    """What is to be learnt, and notes on the folds."""
    splits, notes = make_splits(y, table.groups, options)
    if table.groups is None:
        notes += _order_notes(table.features, y, whole)
    n_features = len(whole.get_feature_names_out())
    task = Task(
        frame=table.features,
        rows=whole.as_numbers(table.features),
        y=y,
        groups=table.groups,
        classes=classes,
        preparation=Preparation(scale=options.scale, kinds=whole.kinds_),
        options=options,
        splits=splits,
        n_features=n_features,
        n_entries=entries_of(table.features, n_features),
    )
    return task, notes


def _by_folds(task: Task, learned: Learned, ids: np.ndarray) -> Held:
    """All rows by the folds that chose."""
    return Held(
        ids,
        task.y,
        learned.held_out,
        fold_numbers(task.splits, len(task.y)),
        getattr(learned.model, "oof_predict_proba_", None),
    )


def _search_notes(learned: Learned) -> list[str]:
    """Where the search ended."""
    stopped = [f"Where the search stopped: {learned.stopped}."] if learned.stopped else []
    return [*stopped, learned.at_edge] if learned.at_edge else stopped


def _all_problems(
    options: FitOptions, learned: Learned, problems: list[str], cut: bool
) -> list[str]:
    """What did not go as it should, what the time limit did first."""
    found = list(problems)
    if cut and learned.cut_words:
        found.insert(0, f"{learned.cut_words}; the model is the best of those.")
    if learned.still_rising and not any("--max-features" in each for each in problems):
        found.append(
            f"--max-features {options.max_features} ended the search where the error still fell. "
            "Raise it, or leave it out."
        )
    return found


def _too_lenient(learned: Learned, error: Estimate, chosen_by: tuple[float, float]) -> list[str]:
    """That time ended the search for the model before it came as far as those that judge it."""
    value, spread = chosen_by
    if not learned.cut or value <= error.value + spread:
        return []
    return [
        "--time-limit let the searches that judge the model, on fewer rows, come further than its "
        f"own: its {error.measure} is rather that of the folds which chose it, {value:.1%}."
    ]


def check_weights(options: FitOptions, classes: np.ndarray) -> None:
    """Raise where --class-weight names a class that is not there."""
    labels = [str(label) for label in classes.tolist()]
    given = options.class_weight if isinstance(options.class_weight, dict) else {}
    strange = [label for label in given if str(label) not in labels]
    if strange:
        raise OptionError(
            f"--class-weight names {strange[0]!r}, which is no class; there are "
            f"{', '.join(labels[:6])}{', ...' if len(labels) > 6 else ''}."
        )


def _kept(patterns: tuple[str, ...], columns: list[str]) -> tuple[str, ...]:
    """The columns that --keep names; raises where one is not there."""
    found: list[str] = []
    for pattern in patterns:
        names = [pattern] if pattern in columns else fnmatch.filter(columns, pattern)
        if not names:
            parts = [part.strip() for part in pattern.split(",")]
            again = " ".join(f"--keep {part}" for part in parts)
            raise OptionError(
                f"--keep takes one column, or a pattern, and can be repeated: {again}"
                if len(parts) > 1 and set(parts) <= set(columns)
                else f"--keep {pattern}: there is no such column. {near_names(pattern, columns)}"
            )
        found += names
    return tuple(dict.fromkeys(found))


def balance_notes(options: FitOptions, counts: np.ndarray, classes: np.ndarray) -> list[str]:
    """A hint where one class is so rare that a model which ignores it has a small error."""
    most, least = int(counts.argmax()), int(counts.argmin())
    if counts[most] < _UNEVEN * counts[least]:
        return []
    missing = [
        *(["--scoring balanced chooses by the mean of the classes' errors"]
          if options.scoring == "error" else []),
        *(["--class-weight balanced lets all classes weigh the same in the fit"]
          if options.class_weight is None else []),
    ]  # fmt: skip
    if not missing:
        return []
    return [
        f"The classes are of very different size ({counts[most]} {classes[most]}, {counts[least]} "
        f"{classes[least]}): a model that ignores the small one has a small error. "
        f"{', and '.join(missing)}."
    ]


def _order_notes(frame: Any, y: np.ndarray, whole: Preparation) -> list[str]:
    """What the order of the rows says, where it says anything."""
    alike = Preparation(scale="standard", kinds=whole.kinds_).fit(frame)
    order = row_order(alike.transform(frame), y)
    return [order.note()] if order.ordered else []


def _chosen(task: Task, schedule: Schedule) -> tuple[Task, Learned, list[str]]:
    """The model of all rows, how it was found, and what went wrong.

    Where time was over before the exact path came to anything, the other loss has what is left.
    """
    what, options = "choosing the model", task.options
    with collected() as problems:
        learned = learn(task, schedule, what)
        if options.model == "budget" and options.time_limit is None:
            learned = with_other_budgets(task, learned)
    if not learned.in_vain or not other_loss_can(task) or schedule.is_over:
        return task, learned, problems
    task = replace(task, options=replace(options, loss="squared_hinge"))
    schedule.again()
    with collected() as problems:
        learned = learn(task, schedule, what)
    words = [
        "--time-limit is too short for the exact path of the hinge loss, which came to no model of "
        "use; the squared hinge loss over a range of C was searched instead",
        *([learned.cut_words] if learned.cut_words else []),
    ]
    return task, replace(learned, cut=True, cut_words="; ".join(words)), problems
