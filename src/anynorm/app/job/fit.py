"""The main job: choose a model by cross-validation, and say honestly how good it is."""

from __future__ import annotations

import fnmatch
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from anynorm.app.job.cost import announcement, entries_of, method_for, other_loss_can
from anynorm.app.job.folds import fold_numbers, make_splits
from anynorm.app.job.grid_learning import learn_grid, with_other_budgets
from anynorm.app.job.kernel_learning import learn_kernel
from anynorm.app.job.learning import Learned, Task
from anynorm.app.job.measures import Estimate, blind_error, estimate
from anynorm.app.job.options import FitOptions, OptionError
from anynorm.app.job.path_learning import learn_path
from anynorm.app.job.price_learning import learn_prices
from anynorm.app.job.row_order import row_order
from anynorm.app.job.schedule import Doing, Schedule, Show
from anynorm.app.job.walk_learning import learn_walk
from anynorm.app.tables import Preparation, Table, TableError
from anynorm.app.tables.errors import near_names
from anynorm.design.limits import ROUNDING
from anynorm.design.threads import Threads
from anynorm.estimators._cross_validation import standard_error
from anynorm.estimators._messages import warn
from anynorm.problem.solution import Status

_LEARN = {"reweighted": learn_walk, "kernel": learn_kernel}
_LEARN_SPARSE = {"hinge": learn_path, "squared_hinge": learn_prices}
_UNEVEN = 9  # rows of the largest class for each of the smallest, from which on that is noted


@dataclass(frozen=True)
class Held:
    """Rows that a model had no part in, and what it says about them.

    Attributes
    ----------
    ids : ndarray of str
        Their names.
    y : ndarray of int
        Their classes, as places.
    scores : ndarray of shape (n,) or (n, K)
        Their decision values.
    folds : ndarray of int or None
        The fold that held each row out, counted from 1; None for a file of its own.
    probabilities : ndarray of shape (n, K) or None
        Those of the classes, where the model has some.
    """

    ids: np.ndarray
    y: np.ndarray
    scores: np.ndarray
    folds: np.ndarray | None = None
    probabilities: np.ndarray | None = None


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
    def no_better(self) -> str:
        """That the model is no better than the most frequent class, in words; empty if it is."""
        error = self.errors[0]
        counts = np.bincount(self.oof.y, minlength=len(self.classes))
        always = f"always predicting {self.classes.tolist()[int(counts.argmax())]}"
        if not getattr(self.learned.model, "coef_", np.ones(1)).any():
            return (
                f"The model uses no feature: it is {always}, with an {error.measure} of "
                f"{self.baseline:.1%}."
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
    _check_weights(options, classes)
    whole = Preparation(scale=options.scale).fit(table.features)
    if options.keep:
        options = replace(options, keep=_kept(options.keep, list(whole.kinds_)))
    held = None if test is None else _Asked.of(test, table, y, classes, whole)
    splits, fold_notes = make_splits(y, table.groups, options)
    if table.groups is None:
        fold_notes += _order_notes(table.features, y, whole)
    task = Task(
        frame=table.features,
        rows=whole.as_numbers(table.features),
        y=y,
        groups=table.groups,
        classes=classes,
        preparation=Preparation(scale=options.scale, kinds=whole.kinds_),
        options=options,
        splits=splits,
        n_features=len(whole.get_feature_names_out()),
        n_entries=entries_of(table.features, len(whole.get_feature_names_out())),
    )
    # made before any work: the rows of an outer fold may be too few to be divided again
    inner = [task.folds_within(train) for train, _ in splits] if held is None else []
    again = _repeated(task, held is None)
    searches = 1 + len(inner) + sum(len(each.inner) for each in again)
    if options.model == "sparse":
        loss, method_notes = method_for(task, searches)
        task = replace(task, options=replace(options, loss=loss))
        fold_notes += method_notes
        if show is not None:
            show(Doing(0.0, "preparing", announcement(task, searches)))
    schedule = Schedule(show, searches, options.time_limit, began)
    task, learned, problems = _chosen(task, schedule)
    again = [each.with_loss(task.options.loss) for each in again]
    oof = Held(
        table.ids,
        y,
        learned.held_out,
        fold_numbers(splits, len(y)),
        getattr(learned.model, "oof_predict_proba_", None),
    )
    if held is None:
        with _collected() as later:
            oof, cut_later = _nested(task, inner, schedule, oof)
        problems += [each for each in later if "searches that judge" in each]
        # the features are limited in all searches alike: what the first says is enough
        later = [x for x in later if "searches that judge" not in x and "--max-features" not in x]
        if later:
            problems.append(
                f"Of the {len(splits)} searches that judge the model, one says: {later[0]}"
            )
        judged, asked = oof, [rows for _, rows in splits]
        groups, judged_by = table.groups, _nested_words(options, inner)
    else:
        judged = Held(
            held.ids,
            held.y,
            learned.scores(held.frame, classes),
            probabilities=learned.probabilities(held.frame, classes),
        )
        asked, cut_later = [np.arange(len(held.y))], False
        groups, judged_by = held.groups, f"{len(held.y)} rows of {held.source}"
    wanted = dict.fromkeys([options.scoring, "error"])
    if learned.stopped:
        fold_notes.append(f"Where the search stopped: {learned.stopped}.")
    if learned.at_edge:
        fold_notes.append(learned.at_edge)
    cut = learned.cut or cut_later
    if cut and learned.cut_words:
        problems.insert(0, f"{learned.cut_words}; the model is the best of those.")
    if learned.still_rising and not any("--max-features" in each for each in problems):
        problems.append(
            f"--max-features {options.max_features} ended the search where the error still fell. "
            "Raise it, or leave it out."
        )
    errors = [estimate(each, judged.y, judged.scores, asked, groups) for each in wanted]
    repeats = [] if held is not None else [errors[0].value]
    for each in again:
        if schedule.is_over:
            problems.append(
                f"--time-limit left time for {len(repeats)} of the {options.repeats} nested "
                "cross-validations."
            )
            break
        with _collected() as later:
            repeats.append(each.error(schedule, oof))
        later = [text for text in later if "--max-features" not in text]
        problems += [f"Of a repeated cross-validation, one search says: {x}" for x in later[:1]]
    certified = learned.model.certificate_.status is Status.OPTIMAL
    return Fitted(
        table=table,
        options=options,
        classes=classes,
        learned=learned,
        errors=errors,
        judged_by=judged_by,
        repeats=repeats,
        baseline=blind_error(options.scoring, judged.y),
        selection_error=(
            1.0 - float(learned.fold_scores.mean()),
            standard_error(learned.fold_scores),
        ),
        oof=oof,
        test=None if held is None else judged,
        notes=[
            *table.notes,
            *whole.notes_,
            *fold_notes,
            *_balance_notes(options, y, classes),
            *([] if held is None else held.notes),
        ],
        problems=problems,
        converged=certified and not cut,
        cut=cut,
        seconds=schedule.seconds,
    )


def ordered_classes(target: np.ndarray, positive: Any) -> np.ndarray:
    """The labels, sorted; of two the positive one comes second."""
    classes = np.unique(target)
    if len(classes) == 2 and positive is not None and classes[0] == positive:
        return classes[::-1].copy()
    return classes


def codes_of(target: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The places of labels among the classes, which need not be sorted; -1 for other labels.

    Where one class is all but the positive one, any other label is in it; no label never is.
    """
    places = {str(label): place for place, label in enumerate(classes.tolist())}
    other = places.get(f"not {classes[-1]}", -1) if len(classes) == 2 else -1
    codes = [places.get(str(label), other if str(label) else -1) for label in target.tolist()]
    return np.array(codes, dtype=np.intp)


def _check_weights(options: FitOptions, classes: np.ndarray) -> None:
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
            raise OptionError(
                f"--keep {pattern}: there is no such column. {near_names(pattern, columns)}"
            )
        found += names
    return tuple(dict.fromkeys(found))


def _balance_notes(options: FitOptions, y: np.ndarray, classes: np.ndarray) -> list[str]:
    """A hint where one class is so rare that a model which ignores it has a small error."""
    counts = np.bincount(y, minlength=len(classes))
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


def _learn(task: Task, schedule: Schedule, what: str) -> Learned:
    if task.options.model == "sparse":
        return _LEARN_SPARSE[task.options.loss](task, schedule, what)
    return _LEARN.get(task.options.model, learn_grid)(task, schedule, what)


def _chosen(task: Task, schedule: Schedule) -> tuple[Task, Learned, list[str]]:
    """The model of all rows, how it was found, and what went wrong.

    Where time was over before the exact path came to anything, the other loss has what is left.
    """
    what, options = "choosing the model", task.options
    with _collected() as problems:
        learned = _learn(task, schedule, what)
        if options.model == "budget" and options.time_limit is None:
            learned = with_other_budgets(task, learned)
    if not learned.in_vain or not other_loss_can(task) or schedule.is_over:
        return task, learned, problems
    task = replace(task, options=replace(options, loss="squared_hinge"))
    schedule.again()
    with _collected() as problems:
        learned = _learn(task, schedule, what)
    words = [
        "--time-limit is too short for the exact path of the hinge loss, which came to no model of "
        "use; the squared hinge loss over a range of C was searched instead",
        *([learned.cut_words] if learned.cut_words else []),
    ]
    return task, replace(learned, cut=True, cut_words="; ".join(words)), problems


def _nested(
    task: Task, inner: list[np.ndarray], schedule: Schedule, oof: Held
) -> tuple[Held, bool]:
    """Decision values of every row by a search that knew nothing of it; whether time was short."""
    scores, cut, unjudged = task.no_scores(), False, 0
    probabilities: np.ndarray | None = np.full((len(task.y), len(task.classes)), np.nan)
    for number, (folds, (train, test)) in enumerate(zip(inner, task.splits, strict=True)):
        if schedule.is_over:
            scores[test] = oof.scores[test]
            found = None if oof.probabilities is None else oof.probabilities[test]
            unjudged += 1
        else:
            part, what = task.part(train, folds), f"judging it: part {number + 1} of {len(inner)}"
            learned = _learn(part, schedule, what)
            scores[test] = learned.scores(task.rows.iloc[test], task.classes)
            found = learned.probabilities(task.rows.iloc[test], task.classes)
            cut = cut or learned.cut
        if found is None or probabilities is None:
            probabilities = None
        else:
            probabilities[test] = found
    if unjudged:
        warn(
            f"time_limit left no time for {unjudged} of the {len(inner)} searches that judge the "
            "model: their rows are judged by the folds that chose it, which is too good"
        )
    oof = replace(oof, scores=scores, probabilities=probabilities)
    return oof, cut or unjudged > 0


@dataclass(frozen=True)
class _Repeat:
    """A nested cross-validation with other folds: those of another seed."""

    task: Task
    inner: list[np.ndarray]

    def with_loss(self, loss: str) -> _Repeat:
        """The same with the loss that was decided on."""
        return replace(self, task=replace(self.task, options=replace(self.task.options, loss=loss)))

    def error(self, schedule: Schedule, oof: Held) -> float:
        """The measure that was asked for, of rows by searches that knew nothing of them."""
        found, _ = _nested(self.task, self.inner, schedule, oof)
        asked = [rows for _, rows in self.task.splits]
        return estimate(self.task.options.scoring, oof.y, found.scores, asked).value


def _repeated(task: Task, nested: bool) -> list[_Repeat]:
    """All but the first of the nested cross-validations that are asked for."""
    options = task.options
    if options.repeats > 1 and not nested:
        raise OptionError(
            "--repeats repeats the nested cross-validation, and with --test there is none. Leave "
            "one of them out."
        )
    found = []
    for number in range(1, options.repeats):
        other = replace(options, seed=(options.seed + number) % 2**32)
        splits, _ = make_splits(task.y, task.groups, other)
        one = replace(task, options=other, splits=splits)
        found.append(_Repeat(one, [one.folds_within(train) for train, _ in splits]))
    return found


def _nested_words(options: FitOptions, inner: list[np.ndarray]) -> str:
    if options.cv == "loo":
        return f"nested cross-validation, each of {len(inner)} left out in turn"
    fewest = min(folds.max() for folds in inner)
    return f"nested cross-validation, {fewest} folds within {len(inner)} folds"


@contextmanager
def _collected() -> Iterator[list[str]]:
    """Warnings of solvers, as sentences about the command's options."""
    problems: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        yield problems
    for warning in caught:
        if not issubclass(warning.category, ConvergenceWarning):
            warnings.warn_explicit(
                warning.message, warning.category, warning.filename, warning.lineno
            )
            continue
        text = str(warning.message)
        for name in ("time_limit", "max_features"):
            text = text.replace(name, f"--{name.replace('_', '-')}")
        text = text if text.startswith("--") else text[0].upper() + text[1:]
        if text not in problems:
            problems.append(text)


@dataclass(frozen=True)
class _Asked:
    """The rows of a test file, matched with those that were learnt from."""

    frame: Any
    ids: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None
    source: str
    notes: list[str]

    @classmethod
    def of(
        cls,
        test: Table,
        table: Table,
        learnt: np.ndarray,
        classes: np.ndarray,
        preparation: Any,
    ) -> _Asked:
        if test.target is None:
            raise TableError(
                f"--test needs the column {table.target_name!r}, to compare predictions with.",
                source=test.source,
            )
        known = np.array([str(label) != "" for label in test.target.tolist()])
        rows = np.flatnonzero(known)
        y = codes_of(test.target[rows], classes)
        if not len(rows) or (y < 0).any():
            strange = sorted({str(label) for label in test.target[rows][y < 0]})
            message = "no row has a label."
            if strange:
                message = (
                    f"the label {strange[0]!r} does not occur in {table.source}, so no model of it "
                    "can be judged by these rows."
                )
            raise TableError(message, source=test.source, column=table.target_name)
        frame = test.features.iloc[rows]
        notes = [f"Test rows: {note}" for note in preparation.news_in(frame)]
        if len(rows) < len(known):
            notes.append(f"Test rows: {len(known) - len(rows)} without a label were left out.")
        again = _seen_before(
            preparation.transform(table.features), learnt, preparation.transform(frame), y
        )
        if again:
            notes.append(
                f"{again:,} of {len(rows):,} test rows are the same as rows to learn from. If they "
                "are the same samples, the error is too good."
            )
        groups = None if test.groups is None else test.groups[rows]
        return cls(frame, test.ids[rows], y, groups, str(test.source), notes)


def _seen_before(X: Any, y: np.ndarray, X_test: Any, y_test: np.ndarray) -> int:
    """How many test rows have the same features and class as a row that was learnt from."""

    def marks(matrix: Any, classes: np.ndarray) -> list[bytes]:
        if sp.issparse(matrix):
            matrix = matrix.tocsr()
            rows = [
                matrix.indices[a:b].tobytes() + matrix.data[a:b].tobytes()
                for a, b in pairwise(matrix.indptr)
            ]
        else:
            rows = [row.tobytes() for row in np.ascontiguousarray(matrix)]
        return [b"%d " % place + row for place, row in zip(classes.tolist(), rows, strict=True)]

    learnt = set(marks(X, y))
    return sum(mark in learnt for mark in marks(X_test, y_test))
