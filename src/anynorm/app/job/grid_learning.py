"""Models without a path: every candidate of a small grid in every fold, prepared inside it."""

from __future__ import annotations

import time
from copy import copy
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from anynorm.app.job.learning import GridScores, Learned, Task, edge_words, pipeline_of
from anynorm.app.job.measures import all_classes, predicted, score
from anynorm.app.job.schedule import Schedule
from anynorm.design import Matrix
from anynorm.design.limits import ROUNDING
from anynorm.estimators._cross_validation import standard_error, tolerance_of
from anynorm.estimators._fitting import Report, deadline, run_all
from anynorm.estimators.budget_svc import BudgetSVC
from anynorm.estimators.least_norm_svc import LeastNormSVC
from anynorm.estimators.least_squares_svc import LeastSquaresSVC
from anynorm.estimators.linear_svc import LinearSVC
from anynorm.estimators.svc import SVC
from anynorm.kernels.gamma import resolve_gamma
from anynorm.problem.solution import Status

Candidate = dict[str, float]

_LINEAR_CS = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # each ten times the last, around the default 1
_KERNEL_CS = (0.1, 1.0, 10.0, 100.0)  # fewer, as they are tried with every width or budget
_WIDTHS = (0.25, 1.0, 4.0)  # gamma, in units of scikit-learn's "scale"
_BUDGETS = (10, 30, 100)  # of support vectors
_BUDGET_CS = (1.0, 10.0)  # fewer still: each fit chooses support vectors


@dataclass(frozen=True)
class GridDetail(GridScores):
    """The table of a search over a grid, simplest first.

    Attributes
    ----------
    candidates, scores, chosen : as in `GridScores`
    accuracies, sizes : ndarray of shape (candidates, folds)
        The folds' accuracies, and numbers of support vectors (of features, where a model is
        linear).
    reference : tuple of (str, float, float) or None, default=None
        A model to compare with: its name, its size and its accuracy, in the mean over the folds.
    """

    accuracies: np.ndarray
    sizes: np.ndarray
    reference: tuple[str, float, float] | None = None


def learn_grid(
    task: Task, schedule: Schedule, what: str, *, trial_of: type[Trial] | None = None
) -> Learned:
    """Choose from a grid by cross-validation; parameters as in `learn_path`.

    `trial_of` is how the candidates are tried, `Trial` where nothing is said.
    """
    preparation, X = task.prepared()
    candidates = candidates_of(task)
    schedule.begin(what, len(task.splits) * len(candidates) + 1)
    trial = (trial_of or Trial)(task, candidates, schedule, deadline(schedule.share_of_time()))
    trial.run()
    chosen = choose(task.options.rule, trial.scores, trial.sizes)
    model = fitted(task, candidates[chosen], X, task.labels, trial.time_for(1))
    schedule.step(model.certificate_.gap)
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=trial.scores[chosen],
        held_out=trial.held_out[chosen],
        choice={name: value for name, value in model.get_params().items() if name in _CHOSEN},
        selection_frequency=None,
        detail=GridDetail(candidates, trial.scores, chosen, trial.accuracies, trial.sizes),
        cut=trial.cut or model.certificate_.status is Status.TIME_LIMIT,
        at_edge=_edge(candidates, candidates[chosen], model),
    )


def _edge(candidates: list[Candidate], chosen: Candidate, model: Any) -> str:
    """Which of the chosen values are ends of the grid; widths are told as gamma."""
    tried = {name: [each[name] for each in candidates] for name in chosen}
    if "width" in tried:
        unit = model.gamma / chosen["width"]
        tried["gamma"] = [unit * width for width in tried.pop("width")]
        chosen = {**chosen, "gamma": unit * chosen["width"]}
    return edge_words(tried, chosen)


_CHOSEN = ("budget", "C", "gamma")


def candidates_of(task: Task) -> list[Candidate]:
    """What is tried, simplest first; "width" is gamma in units of "scale"."""
    model, budget, Cs = task.options.model, task.options.budget, task.options.C
    if model == "linear":
        return [{"C": C} for C in Cs or _LINEAR_CS]
    if model == "budget" and budget is None:
        budgets = [each for each in _BUDGETS if each < len(task.y)] or [2]
        tried = product(budgets, Cs or _BUDGET_CS)
        return [{"budget": each, "C": C, "width": 1.0} for each, C in tried]
    more = {} if budget is None else {"budget": budget}
    return [{**more, "C": C, "width": width} for C, width in product(Cs or _KERNEL_CS, _WIDTHS)]


def fitted(
    task: Task, candidate: Candidate, X: Matrix, y: np.ndarray, time_limit: float | None
) -> Any:
    """The model of one candidate, fitted."""
    given: dict[str, Any] = {name: candidate[name] for name in ("C", "budget") if name in candidate}
    if "width" in candidate:
        given["gamma"] = candidate["width"] * resolve_gamma("scale", X)
    given["class_weight"] = task.class_weight
    if task.options.model == "budget":
        given["strict"] = True
    if task.options.model == "linear" and task.options.loss != "auto":
        given["loss"] = task.options.loss
    if task.options.model in ("linear", "budget"):
        given["random_state"] = task.options.seed
    model = _MODELS[task.options.model](**given, time_limit=time_limit).fit(task.placed(X), y)
    return copy(model)  # in memory, wherever it was fitted


def choose(rule: str, scores: np.ndarray, sizes: np.ndarray) -> int:
    """The candidate that a rule takes, the first of those that are as good.

    "best" takes the highest mean score, "one_se" the first within one standard error of it,
    "fewest" the smallest within 0.01 of it, or within one standard error where that is more.
    """
    mean, size = scores.mean(axis=1), sizes.mean(axis=1)
    top = int(mean.argmax())
    if rule == "fewest":
        enough = np.flatnonzero(mean >= mean[top] - tolerance_of(None, scores[top]) - ROUNDING)
        return int(enough[size[enough].argmin()])
    margin = standard_error(scores[top]) if rule == "one_se" else 0.0
    return int(np.argmax(mean >= mean[top] - margin - ROUNDING))


class Trial:
    """The scores of all candidates in all folds."""

    def __init__(
        self, task: Task, candidates: list[Candidate], schedule: Schedule, end: float | None
    ) -> None:
        self.task, self.folds, self.candidates = task, task.folds(), candidates
        self.schedule, self.end, self.cut = schedule, end, False
        shape = (len(candidates), len(task.splits))
        self.scores, self.accuracies, self.sizes = (np.empty(shape) for _ in range(3))
        self.left = shape[0] * shape[1] + 1
        self.held_out = task.no_scores(len(candidates))

    def run(self) -> None:
        """Fit every candidate in every fold."""
        run_all(len(self.task.splits), self.fold, report=None)

    def time_for(self, fits: int) -> float | None:
        """The seconds for one of so many fits that are still to be done."""
        return None if self.end is None else max(1e-3, (self.end - time.monotonic()) / fits)

    def fold(self, fold: int, _: Report | None) -> None:
        """Fit every candidate to the rows of one fold."""
        X, labels = self.folds.train(fold), self.task.labels[self.task.splits[fold][0]]
        held_out = self.folds.test(fold)
        for c, candidate in enumerate(self.candidates):
            model = fitted(self.task, candidate, X, labels, self.time_for(self.left))
            self.note(c, fold, model, self.task.placed(held_out), size_of(model))

    def note(self, c: int, fold: int, model: Any, held_out: Matrix, size: int) -> None:
        """Keep what the model of a candidate says of the rows that a fold held out."""
        test = self.task.splits[fold][1]
        y, scores = self.task.y[test], all_classes(model, held_out, self.task.classes)
        self.held_out[c, test] = scores
        self.scores[c, fold] = score(self.task.options.scoring, y, scores)
        self.accuracies[c, fold] = np.mean(predicted(scores) == y)
        self.sizes[c, fold] = size
        self.cut |= model.certificate_.status is Status.TIME_LIMIT
        self.left -= 1
        self.schedule.step(model.certificate_.gap)


def size_of(model: Any) -> int:
    """The number of support vectors, or of features where a model has weights."""
    if hasattr(model, "coef_"):
        return int(model.coef_.any(axis=0).sum())
    return len(model.support_)


_MODELS = {
    "budget": BudgetSVC,
    "least-norm": LeastNormSVC,
    "least-squares": LeastSquaresSVC,
    "linear": LinearSVC,
    "kernel": SVC,
}
