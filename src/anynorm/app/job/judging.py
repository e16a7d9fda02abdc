"""How good a model is on rows that had no part in it: nested cross-validation, or a test file.

A plan is made before any work, as the rows of an outer fold may be too few to be divided again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from anynorm.app.job.folds import make_splits
from anynorm.app.job.learning import Learned, Task
from anynorm.app.job.measures import Estimate, estimate
from anynorm.app.job.options import FitOptions, OptionError
from anynorm.app.job.rows_to_judge import TestRows
from anynorm.app.job.schedule import Schedule
from anynorm.app.job.searching import collected, learn
from anynorm.estimators._messages import warn


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
class Judged:
    """What a plan found; attributes as in `Fitted`."""

    errors: list[Estimate]
    judged_by: str
    repeats: list[float]
    oof: Held
    test: Held | None
    problems: list[str]
    cut: bool


class Plan(Protocol):
    """How a model will be judged."""

    @property
    def n_searches(self) -> int:
        """The number of searches that it takes."""

    def judge(self, task: Task, learned: Learned, oof: Held, schedule: Schedule) -> Judged:
        """The errors of a search; `oof` is what the folds that chose say."""


def plan_for(task: Task, test: TestRows | None) -> Plan:
    """The test rows where there are some, nested cross-validation otherwise."""
    if test is None:
        return _Nested.of(task)
    if task.options.repeats > 1:
        raise OptionError(
            "--repeats repeats the nested cross-validation, and with --test there is none. Leave "
            "one of them out."
        )
    return _ByTestRows(test)


def _errors(
    options: FitOptions, held: Held, parts: list[np.ndarray], groups: np.ndarray | None
) -> list[Estimate]:
    """The measure that was asked for, then the plain error."""
    measures = dict.fromkeys([options.scoring, "error"])
    return [estimate(each, held.y, held.scores, parts, groups) for each in measures]


@dataclass(frozen=True)
class _ByTestRows:
    """By the rows of a test file."""

    rows: TestRows
    n_searches: int = 0

    def judge(self, task: Task, learned: Learned, oof: Held, schedule: Schedule) -> Judged:
        rows, classes = self.rows, task.classes
        held = Held(
            rows.ids,
            rows.y,
            learned.scores(rows.frame, classes),
            probabilities=learned.probabilities(rows.frame, classes),
        )
        return Judged(
            errors=_errors(task.options, held, [np.arange(len(rows.y))], rows.groups),
            judged_by=f"{len(rows.y)} rows of {rows.source}",
            repeats=[],
            oof=oof,
            test=held,
            problems=[],
            cut=False,
        )


@dataclass(frozen=True)
class _Nested:
    """By the same search in each fold of an outer cross-validation, perhaps several times."""

    inner: list[np.ndarray]
    again: list[_Repeat]

    @classmethod
    def of(cls, task: Task) -> _Nested:
        inner = [task.folds_within(train) for train, _ in task.splits]
        return cls(inner, _repeated(task))

    @property
    def n_searches(self) -> int:
        return len(self.inner) + sum(len(each.inner) for each in self.again)

    def judge(self, task: Task, learned: Learned, oof: Held, schedule: Schedule) -> Judged:
        with collected() as said:
            oof, cut = _nested(task, self.inner, schedule, oof)
        parts = [rows for _, rows in task.splits]
        errors = _errors(task.options, oof, parts, task.groups)
        repeats, problems = self._repeats(task, errors[0].value, oof, schedule)
        return Judged(
            errors=errors,
            judged_by=_nested_words(task.options, self.inner),
            repeats=repeats,
            oof=oof,
            test=None,
            problems=[*_of_nested(said, len(parts)), *problems],
            cut=cut,
        )

    def _repeats(
        self, task: Task, first: float, oof: Held, schedule: Schedule
    ) -> tuple[list[float], list[str]]:
        """The errors with all folds that were drawn, and what went wrong."""
        values, problems = [first], []
        for each in self.again:
            if schedule.is_over:
                problems.append(
                    f"--time-limit left time for {len(values)} of the {task.options.repeats} "
                    "nested cross-validations."
                )
                break
            with collected() as said:
                values.append(each.with_loss(task.options.loss).error(schedule, oof))
            said = [text for text in said if "--max-features" not in text]
            problems += [f"Of a repeated cross-validation, one search says: {x}" for x in said[:1]]
        return values, problems


def _of_nested(said: list[str], n_searches: int) -> list[str]:
    """What to tell of the warnings of the searches that judge."""
    of_all = [text for text in said if "searches that judge" in text]
    # the features are limited in all searches alike: what the first says is enough
    told = "--max-features", *(["--time-limit"] if of_all else [])
    others = [x for x in said if x not in of_all and not any(word in x for word in told)]
    words = f"Of the {n_searches} searches that judge the model, one says: "
    return of_all + [words + text for text in others[:1]]


def _nested(
    task: Task, inner: list[np.ndarray], schedule: Schedule, oof: Held
) -> tuple[Held, bool]:
    """Decision values of every row by a search that knew nothing of it; whether time was short."""
    scores, cut, unjudged = task.no_scores(), 0, 0
    probabilities: np.ndarray | None = np.full((len(task.y), len(task.classes)), np.nan)
    for number, (folds, (train, test)) in enumerate(zip(inner, task.splits, strict=True)):
        if schedule.is_over:
            scores[test] = oof.scores[test]
            found = None if oof.probabilities is None else oof.probabilities[test]
            unjudged += 1
        else:
            part, what = task.part(train, folds), f"judging it: part {number + 1} of {len(inner)}"
            learned = learn(part, schedule, what)
            scores[test] = learned.scores(task.rows.iloc[test], task.classes)
            found = learned.probabilities(task.rows.iloc[test], task.classes)
            cut += learned.cut
        if found is None or probabilities is None:
            probabilities = None
        else:
            probabilities[test] = found
    if cut:
        warn(
            f"time_limit ended {cut} of the {len(inner)} searches that judge the model before "
            "they were done: with more time the error may be smaller"
        )
    if unjudged:
        warn(
            f"time_limit left no time for {unjudged} of the {len(inner)} searches that judge the "
            "model: their rows are judged by the folds that chose it, which is too good"
        )
    oof = replace(oof, scores=scores, probabilities=probabilities)
    return oof, cut + unjudged > 0


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


def _repeated(task: Task) -> list[_Repeat]:
    """All but the first of the nested cross-validations that are asked for."""
    options = task.options
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
