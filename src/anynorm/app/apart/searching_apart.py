"""The choice of C (and of the number of rounds) by folds of rows that live apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anynorm.app.apart.counts import score_of
from anynorm.app.apart.dealt_blocks import Shown, SidedBlock, Sides, asked
from anynorm.app.apart.judging_apart import question_about
from anynorm.app.apart.models_apart import Contrast, ModelApart, SolvedApart, Starts
from anynorm.app.job.grid_learning import choose
from anynorm.app.job.options import FitOptions
from anynorm.app.job.schedule import Schedule
from anynorm.design.crew import Crew
from anynorm.estimators._fitting import is_over
from anynorm.estimators._score_curve import ScoreCurve
from anynorm.estimators._stopping import Stop, stop_at
from anynorm.problem.solution import Progress

LOOSE = 1e-2  # the gap of models that are only compared
_USUAL = 5  # values of C that a search takes, for the progress


class Rounds:
    """Tells a schedule of the rounds of a fit, and of the gap that was certified last."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule, self._what, self._part, self._score = schedule, "", 0.0, np.nan
        self._count, self._gap = 0, np.nan

    def begin(self, what: str, part: float, score: float = np.nan) -> None:
        """Say what is fitted next, how much of the search is done, and its best score so far."""
        self._what, self._part, self._score = what, part, score
        self._count, self._gap = 0, np.nan
        self._tell()

    def count(self) -> None:
        """Note that a round has ended."""
        self._count += 1
        self._tell()

    def certified(self, progress: Progress) -> None:
        """Note a certificate."""
        self._gap = progress.gap
        self._tell()

    def _tell(self) -> None:
        gap = f", gap {self._gap:.0e}" if np.isfinite(self._gap) else ""
        words = f"{self._what}, round {self._count}{gap}"
        self.schedule.tell(self._part, words, self._score)


@dataclass
class TableApart:
    """What the folds say of every candidate, simplest first.

    Attributes
    ----------
    candidates : list of dict
        C, and the rounds where the model has some.
    scores, sizes : list of ndarray of shape (folds,)
        The folds' scores and numbers of features.
    used : list of ndarray of shape (folds, p)
        Whether a fold uses a feature.
    shown : list of list of Shown
        Some rows with the decision values of this candidate, by the folds that held them out.
    """

    candidates: list[dict[str, float]] = field(default_factory=list)
    scores: list[np.ndarray] = field(default_factory=list)
    sizes: list[np.ndarray] = field(default_factory=list)
    used: list[np.ndarray] = field(default_factory=list)
    shown: list[list[Shown]] = field(default_factory=list)

    def chosen(self, rule: str) -> int:
        """The place of the candidate that the rule takes."""
        scores, sizes = np.array(self.scores), np.array(self.sizes)
        if rule != "steady":
            return choose(rule, scores, sizes)
        prices = np.array([each["C"] for each in self.candidates])
        places = np.log(prices / prices[0])
        return ScoreCurve(places, places, scores, sizes, float(prices[0])).choose(rule, None)[0]


class SearchApart:
    """Every candidate in every fold, C after C.

    Parameters
    ----------
    crew : Crew
        Of `DealtBlock`.
    model : ModelApart
        What is fitted.
    folds, left_out : sequence of int
        The parts that are held out in turn, and those that have no part in the search.
    n_classes, n_rows : int, int
        Of all rows that have one in the search.
    blind : float
        The score of the most frequent class.
    schedule : Schedule
        Told of the rounds.
    end : float or None
        The deadline.
    """

    def __init__(
        self,
        crew: Crew,
        model: ModelApart,
        folds: Sequence[int],
        left_out: Sequence[int],
        *,
        n_classes: int,
        n_rows: int,
        blind: float,
        schedule: Schedule,
        end: float | None,
    ) -> None:
        self.crew, self.model, self.folds, self.left_out = crew, model, folds, tuple(left_out)
        self.n_classes, self.n_rows, self.blind, self.end = n_classes, n_rows, blind, end
        self.rounds = Rounds(schedule)
        crew.on_round = self.rounds.count
        self.table, self.cut = TableApart(), False
        self.stop: Stop | None = None
        self._starts: list[Starts | None] = [None] * len(folds)
        self._best: list[np.ndarray] = []  # the scores of the best stage at every C

    def run(self, contrasts: Sequence[Contrast]) -> None:
        """Go on to larger C until it does not pay any more, or time is over."""
        options: FitOptions = self.model.options
        prices, signs = self.model.prices(contrasts), 0
        for number, C in enumerate(prices):
            if number and is_over(self.end):
                self.cut = True
                return
            self._try(C, number)
            found = None if options.C else self._stops(prices[: number + 1])
            signs = 0 if found is None else signs + 1
            if signs == self.model.patience:
                self.stop = found
                return

    @property
    def chosen(self) -> int:
        """The place of the choice among the candidates."""
        return self.table.chosen(self.model.options.rule)

    @property
    def choice(self) -> dict[str, float]:
        """What was chosen."""
        return self.table.candidates[self.chosen]

    def _stops(self, prices: Sequence[float]) -> Stop | None:
        """Whether going on cannot pay; a model without features comes before all others."""
        blind = np.full(len(self.folds), self.blind)
        tried = np.array([prices[0] / 100.0, *prices])
        return stop_at(tried, np.array([blind, *self._best]))

    def _try(self, C: float, number: int) -> None:
        """One C in all folds."""
        stages, n_folds = self.model.n_stages, len(self.folds)
        scores, sizes = np.empty((stages, n_folds)), np.empty((stages, n_folds))
        used: list[np.ndarray] = []
        shown: list[list[Shown]] = [[] for _ in range(stages)]
        best = max((float(each.mean()) for each in self._best), default=np.nan)
        for k, fold in enumerate(self.folds):
            part = (number + k / n_folds) / _USUAL
            self.rounds.begin(f"fold {k + 1} of {n_folds}, C = {C:.3g}", part, best)
            solved, seen = self._fold(C, k, fold)
            for stage in range(stages):
                scores[stage, k] = score_of(self.model.options.scoring, seen.confusion[stage])
                shown[stage] += [each.stage(stage) for each in seen.shown]
            used.append(np.any(solved.coef, axis=1))
            sizes[:, k] = used[-1].sum(axis=1)
        for stage in range(stages):
            rounds = {"rounds": float(stage + 1)} if stages > 1 else {}
            self.table.candidates.append({"C": float(C), **rounds})
            self.table.scores.append(scores[stage])
            self.table.sizes.append(sizes[stage])
            self.table.used.append(np.array([each[stage] for each in used]))
            self.table.shown.append(shown[stage])
        self._best.append(scores[scores.mean(axis=1).argmax()])

    def _fold(self, C: float, k: int, fold: int) -> tuple[SolvedApart, Any]:
        """The models of one fold, from those of the last C, and what they say of its rows."""
        sides = Sides((fold, *self.left_out), fold)
        crew = self.crew.turned(SidedBlock, sides, self.crew.shape[1])
        try:
            solved = self.model.solve(
                crew, C, self.model.n_stages,
                tol=LOOSE, end=self.end, starts=self._starts[k], progress=self.rounds.certified,
            )  # fmt: skip
            self._starts[k] = solved.starts
            seed = self.model.options.seed
            question = question_about(solved, self.n_classes, self.n_rows, seed)
            return solved, crew.ask(asked, question)
        finally:
            crew.close()
