"""The 1-norm SVM with the squared hinge loss: C rises from fold to fold alike, and stops in time.

For large data, on which the exact path of the hinge loss would take too long.  Every C starts from
the solution of the last one, the folds are compared at each, and the search ends where going on
cannot pay (`anynorm.estimators._stopping`).
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from anynorm.app.job.grid_learning import choose
from anynorm.app.job.learning import GridScores, Learned, Task, pipeline_of
from anynorm.app.job.measures import score
from anynorm.app.job.schedule import Schedule
from anynorm.design.threads import allowed
from anynorm.estimators._fitting import Report, deadline, run_all
from anynorm.estimators._linear_model import linear_scores
from anynorm.estimators._score_curve import ScoreCurve
from anynorm.estimators._stopping import Stop, stop_at
from anynorm.estimators.checks.labels import labelled
from anynorm.estimators.sparse_svc import SparseSVC
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Status

LOSS = "squared_hinge"
_STEP = math.sqrt(10.0)  # from one C to the next
_MOST = 16  # values of C: a factor of 1e8
_USUAL = 8  # values of C that a search takes, for the progress
_CERTIFIED = 1e-4  # the gap of the model that is kept: the default of estimators
_LOOSE = 1e-2  # the gap of models that are only compared
_NEARER = 5  # more values of C where --max-features lies between two
_TOO_SHORT = 0.1  # seconds that are left, in which nothing is found any more
_HALVINGS = 8  # of the range of C, where the model of all rows has too many features


def learn_prices(task: Task, schedule: Schedule, what: str) -> Learned:
    """Choose C by cross-validation; parameters as in `learn_path`."""
    schedule.begin(what)
    trial = _RisingFolds(task, schedule, deadline(schedule.share_of_time()))
    trial.run()
    chosen = trial.chosen
    preparation, X = task.prepared()
    schedule.tell(_RisingFolds.SHARE, "the model of all rows", trial.best)
    model = _fitted(task, trial.prices, chosen, X, trial.end_for_the_model())
    schedule.end()
    used = [found[chosen] for found in trial.used]
    frequency = np.zeros(X.shape[1])
    for columns in used:
        frequency[columns] += 1 / len(used)
    detail = GridScores([{"C": C} for C in trial.prices.tolist()], trial.scores, chosen)
    return Learned(
        pipeline=pipeline_of(preparation, model),
        fold_scores=trial.scores[chosen],
        held_out=trial.held_out[chosen],
        choice={"C": model.C},
        selection_frequency=frequency,
        detail=detail,
        cut=trial.cut or model.certificate_.status is Status.TIME_LIMIT,
        stopped="" if trial.stop is None else str(trial.stop),
        still_rising=trial.still_rising,
        cut_words=trial.cut_words,
    )


def _fitted(task: Task, prices: np.ndarray, chosen: int, X: Any, end: float | None) -> SparseSVC:
    """The model of all rows at the chosen C, or at a smaller one where it has too many features."""
    most, labels = task.options.max_features, task.labels
    low, high = float(prices[0]), float(prices[chosen])

    def fit(C: float) -> SparseSVC:
        left = None if end is None else max(1e-3, end - time.monotonic())
        model = SparseSVC(
            C=C,
            loss=LOSS,
            class_weight=task.class_weight,
            n_jobs=task.options.jobs,
            time_limit=left,
            tol=_LOOSE if task.judging else _CERTIFIED,
        )
        return model.fit(X, labels)

    def is_wide(model: SparseSVC) -> bool:
        return most is not None and int(np.count_nonzero(model.coef_, axis=1).max()) > most

    model = fit(high)
    if not is_wide(model):
        return model
    widest = None
    for _ in range(_HALVINGS):
        middle = math.sqrt(low * high)
        model = fit(middle)
        if is_wide(model):
            high = middle
        else:
            low, widest = middle, model
    return fit(low) if widest is None else widest


class _RisingFolds:
    """The folds with rising C."""

    SHARE = 0.9  # of a search: what the folds take

    def __init__(self, task: Task, schedule: Schedule, end: float | None) -> None:
        self.task, self.schedule, self.end = task, schedule, end
        self.count = len(task.splits)
        self.prices, self.scores = np.empty(0), np.empty((0, self.count))
        self.sizes, self.held_out = np.empty((0, self.count)), task.no_scores(0)
        self.used: list[list[np.ndarray]] = [[] for _ in range(self.count)]
        self.stop: Stop | None = None
        self.cut = self.full = False

    @property
    def best(self) -> float:
        """The best mean score so far."""
        return float(self.scores.mean(axis=1).max()) if len(self.scores) else math.nan

    @property
    def chosen(self) -> int:
        """The place of the C that the rule takes."""
        rule = self.task.options.rule
        if rule != "steady":
            return choose(rule, self.scores, self.sizes)
        places, least = np.log(self.prices / self.prices[0]), float(self.prices[0])
        return ScoreCurve(places, places, self.scores, self.sizes, least).choose(rule, None)[0]

    @property
    def still_rising(self) -> bool:
        """Whether --max-features ended the search where the score still rose."""
        mean, late = self.scores.mean(axis=1), self.prices > self.prices[-1] / _STEP
        return self.full and mean[late].max() > mean[~late].max(initial=-math.inf)

    @property
    def cut_words(self) -> str:
        """Where the time limit ended the search, in words."""
        if not self.cut:
            return ""
        return (
            f"--time-limit ended the search at C = {self.prices[-1]:.3g}, after "
            f"{len(self.prices) - 1} values of C in every fold"
        )

    def end_for_the_model(self) -> float | None:
        """When the time for the model of all rows is over: without it, the search is lost."""
        left = self.schedule.time_left()
        if self.end is None or left is None:
            return self.end
        return max(self.end, time.monotonic() + left / 2)

    def run(self) -> None:
        """Go on to larger C until it does not pay any more, or time is over."""
        folds = run_all(self.count, lambda fold, _: _PricedFold(self.task, fold), report=None)
        least = min(fold.first for fold in folds)
        self._enter(folds, least / 2 if math.isfinite(least) else 1.0)
        for step in range(_MOST if math.isfinite(least) else 0):
            price = least * _STEP ** (step + 1)
            if not self._all_advance(folds, price, step):
                return
            if self._too_wide(folds):
                self.full = True
                self._come_nearer(folds, price)
                return
            self._enter(folds, price)
            self.stop = stop_at(self.prices, self.scores)
            if self.stop is not None:
                return

    def _all_advance(self, folds: list[_PricedFold], price: float, step: int) -> bool:
        """Have all folds go on to a C; False where time was short.

        While nothing has been found, a search may take half of what is left for all of them.
        """
        while not all(run_all(self.count, self._advance(folds, price, step), report=None)):
            left = self.schedule.time_left()
            if left is None or left < _TOO_SHORT or self.best > float(self.scores[0].mean()):
                self.cut = True
                return False
            self.end = deadline(left / 2)
        return True

    def _too_wide(self, folds: list[_PricedFold]) -> bool:
        most = self.task.options.max_features
        return most is not None and max(fold.widest for fold in folds) > most

    def _come_nearer(self, folds: list[_PricedFold], high: float) -> None:
        """More values of C below the one at which some fold has too many features."""
        for _ in range(_NEARER):
            price = math.sqrt(self.prices[-1] * high)
            if not self._all_advance(folds, price, len(self.prices)):
                return
            if self._too_wide(folds):
                high = price
            else:
                self._enter(folds, price)

    def _advance(self, folds: list[_PricedFold], price: float, step: int) -> Any:
        def advance(number: int, _: Report | None) -> bool:
            now = time.monotonic()
            end = self.end
            if end is not None:
                # every fold gets its share of the time, and so does the model of all rows
                rounds = math.ceil((self.count - number) / max(1, min(self.count, allowed())))
                end = now + max(0.0, end - now) * self.count / (self.count + 1) / rounds
            found = folds[number].advance(price, end)
            part = (step + (number + 1) / self.count) / _USUAL
            doing = f"fold {number + 1} of {self.count}, C = {price:.3g}"
            self.schedule.tell(min(1.0, part) * self.SHARE, doing, self.best)
            return found

        return advance

    def _enter(self, folds: list[_PricedFold], price: float) -> None:
        """A row of the table."""
        held_out = self.task.no_scores(1)
        scores, sizes = np.empty(self.count), np.empty(self.count)
        for k, fold in enumerate(folds):
            values = fold.decision_values()
            held_out[0, fold.test] = values
            scores[k] = score(self.task.options.scoring, self.task.y[fold.test], values)
            self.used[k].append(fold.used())
            sizes[k] = len(self.used[k][-1])
        self.prices = np.append(self.prices, price)
        self.scores = np.vstack([self.scores, scores])
        self.sizes = np.vstack([self.sizes, sizes])
        self.held_out = np.concatenate([self.held_out, held_out])


class _PricedFold:
    """The models of one fold: one for two classes, otherwise each class against the rest."""

    def __init__(self, task: Task, fold: int) -> None:
        from anynorm.solvers.one_norm import RisingPrice  # Numba

        self.task, folds = task, task.folds()
        train, self.test = task.splits[fold]
        X, y = folds.train(fold), task.y[train]
        if isinstance(X, np.ndarray):
            X = np.asfortranarray(X)  # read by columns, again and again
        self.held_out = folds.test(fold)
        self.present = np.array([1]) if len(task.classes) == 2 else np.unique(y)
        weighted = SparseSVC(class_weight=task.class_weight)
        weights = labelled(weighted, X, task.labels[train], None).weights
        self.rising = [
            RisingPrice(
                Problem(
                    y=np.where(y == label, 1.0, -1.0),
                    C=1.0,
                    loss=get_loss(LOSS),
                    X=X,
                    regulariser="l1",
                    sample_weight=weights,
                )
            )
            for label in self.present
        ]

    @property
    def first(self) -> float:
        """The C at which the first feature enters."""
        return min(rising.first for rising in self.rising)

    @property
    def widest(self) -> int:
        """The most features that a class uses."""
        return max(int(np.count_nonzero(rising.coef)) for rising in self.rising)

    def advance(self, price: float, end: float | None) -> bool:
        """Go on to a C; False where time was short."""
        done = [rising.advance(price, end) for rising in self.rising]
        return all(done)

    def used(self) -> np.ndarray:
        """The features that some class uses."""
        return np.flatnonzero(np.any([rising.coef != 0 for rising in self.rising], axis=0))

    def decision_values(self) -> np.ndarray:
        """Those of the rows that were held out."""
        coefs = np.array([rising.coef for rising in self.rising])
        intercepts = np.array([rising.intercept for rising in self.rising])
        found = linear_scores(self.held_out, coefs, intercepts)
        if len(self.task.classes) == 2:
            return found
        scores = np.full((len(self.test), len(self.task.classes)), -np.inf)
        scores[:, self.present] = found.reshape(len(self.test), -1)
        return scores
