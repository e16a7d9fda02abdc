"""The main job on files that fit no memory: choose a model, judge it on rows that are held out.

The rows are dealt into `--cv` parts.  Without `--test` one of them judges: it is kept from the
choice, from the scale of the columns and from the model that it judges.  The others are the folds
that choose.  In the end the model is fitted to all rows.
"""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from anynorm.app.apart.counts import blind_error_of, estimate_of
from anynorm.app.apart.dealt_blocks import SidedBlock, Sides
from anynorm.app.apart.judging_apart import Judgement, held_of, judged
from anynorm.app.apart.models_apart import SolvedApart, Starts, check_options, model_apart
from anynorm.app.apart.reading_apart import Asked, RowsApart
from anynorm.app.apart.searching_apart import Rounds, SearchApart
from anynorm.app.apart.survey import JUDGE, Deal
from anynorm.app.job.fit import Fitted, balance_notes, check_weights
from anynorm.app.job.learning import GridScores, Learned, edge_words, pipeline_of
from anynorm.app.job.options import FitOptions, OptionError
from anynorm.app.job.schedule import Doing, Schedule, Show
from anynorm.app.job.searching import collected
from anynorm.app.tables import Preparation, Table
from anynorm.app.tables.errors import counted
from anynorm.design.crew import Crew
from anynorm.estimators._cross_validation import standard_error
from anynorm.estimators._fitting import deadline
from anynorm.problem.solution import Status

if TYPE_CHECKING:
    from distributed import Client

TOL = 1e-4  # the gap of the model that is kept, and of the one that is judged


@dataclass(frozen=True)
class FittedApart(Fitted):
    """What `run_fit_apart` found; `table` has the names of the columns, and no rows.

    Attributes
    ----------
    counts : ndarray of int
        The rows of each class.
    """

    counts: np.ndarray

    @property
    def class_counts(self) -> np.ndarray:
        """The rows of each class."""
        return self.counts

    @property
    def training_scores(self) -> None:
        """They are nowhere together."""
        return


def run_fit_apart(
    client: Client,
    wanted: Asked,
    options: FitOptions,
    *,
    show: Show | None = None,
    began: float | None = None,
) -> FittedApart:
    """Choose a model by the rows of Parquet files, fit it to all of them, and estimate its error.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster, see `connected`.
    wanted : Asked
        Which files, and which columns.
    options : FitOptions
        What to fit and how to choose.
    show : callable or None, default=None
        Called with a `Doing` as the work goes on.
    began : float or None, default=None
        When the time that is limited began, on `time.monotonic`'s clock; None is now.

    Returns
    -------
    FittedApart
        The model, its errors, and all that the report needs.

    Raises
    ------
    OptionError, TableError
        Where an option or the files cannot be used.
    """
    check_options(options)
    deal = _deal(options, judges=wanted.test is None)
    schedule = Schedule(show, 3 if deal.judges else 2, options.time_limit, began)

    def tell(words: str) -> None:
        if show is not None:
            show(Doing(0.0, "reading", words))

    rows = RowsApart.read(client, wanted, deal, tell)
    check_weights(options, rows.classes)
    test = None if wanted.test is None else rows.tested(wanted.test, tell)
    return _Job(rows, test, options, schedule).run()


def _deal(options: FitOptions, *, judges: bool) -> Deal:
    """How rows are dealt into parts."""
    folds = int(options.cv)
    if judges and folds < 3:
        raise OptionError(
            "--cv must be at least 3 on a cluster: one part of the rows judges, and two at the "
            "least choose. Or judge the model by other files, with --test."
        )
    return Deal(folds, options.seed, judges)


class _Job:
    """What comes after the files were looked at."""

    def __init__(
        self, rows: RowsApart, test: RowsApart | None, options: FitOptions, schedule: Schedule
    ) -> None:
        self.rows, self.test, self.options, self.schedule = rows, test, options, schedule
        self.model = model_apart(options, _class_weight(options, rows.classes))
        self.hold, self.K = rows.holds(), len(rows.classes)

    def run(self) -> FittedApart:
        """Choose, judge, fit to all rows."""
        with collected() as problems:
            search, judgement, starts = self._chosen_and_judged()
            self.schedule.begin("fitting to all rows")
            preparation = self.rows.preparation(self.options.scale, judging=True)
            crew = self.rows.crew(preparation, dealt=False, hold=self.hold)
            try:
                solved = self._fit(crew, search, "all rows", starts)
            finally:
                crew.close()
            fitted = self.model.stored(search.choice["C"], solved, TOL, self.rows.classes)
            if self.test is not None:
                judgement = self._by_test(self.test, solved, preparation)
        assert judgement is not None
        learned = self._learned(search, fitted, preparation)
        return self._result(learned, judgement, search, problems)

    def _chosen_and_judged(self) -> tuple[SearchApart, Judgement | None, Starts | None]:
        """The search, what the part that judges says of its choice, and where all rows begin."""
        rows, judges = self.rows, self.rows.deal.judges
        preparation = rows.preparation(self.options.scale, judging=False)
        left_out = [JUDGE] if judges else []
        counts = rows.counts(judging=False)
        crew = rows.crew(preparation, dealt=True, hold=self.hold)
        try:
            self.schedule.begin("choosing the model")
            search = SearchApart(
                crew,
                self.model,
                [part for part in range(rows.deal.folds) if part not in left_out],
                left_out,
                n_classes=self.K,
                n_rows=int(counts.sum()),
                blind=1.0 - blind_error_of(self.options.scoring, counts),
                schedule=self.schedule,
                end=deadline(self.schedule.share_of_time()),
            )
            search.run(rows.contrasts(preparation, self.model.class_weight))
            if not judges:
                return search, None, None
            return search, *self._by_held_out(crew, search)
        finally:
            crew.close()

    def _by_held_out(self, crew: Crew, search: SearchApart) -> tuple[Judgement, Starts]:
        """What the part that judges says of the choice, fitted to all others, and that fit."""
        self.schedule.begin("judging it")
        sided = crew.turned(SidedBlock, Sides((JUDGE,), JUDGE), crew.shape[1])
        try:
            solved = self._fit(sided, search, "the rows that do not judge", None)
            n = int(self.rows.counts(judging=True).sum())
            return judged(sided, solved, self.K, n, self.options.seed), solved.starts
        finally:
            sided.close()

    def _by_test(self, test: RowsApart, solved: SolvedApart, preparation: Preparation) -> Judgement:
        """What the test files say of the model of all rows."""
        crew = test.crew(preparation, dealt=False, hold=False)
        sided = crew.turned(SidedBlock, Sides((), JUDGE), crew.shape[1])
        try:
            n = int(test.counts().sum())
            return judged(sided, solved, self.K, n, self.options.seed)
        finally:
            sided.close()
            crew.close()

    def _fit(
        self, crew: Crew, search: SearchApart, what: str, starts: Starts | None
    ) -> SolvedApart:
        """The choice, fitted to the rows that have weight."""
        rounds = Rounds(self.schedule)
        crew.on_round = rounds.count
        rounds.begin(what, 0.0)
        solved = self.model.solve(
            crew,
            search.choice["C"],
            int(search.choice.get("rounds", 1)),
            tol=TOL,
            end=deadline(self.schedule.share_of_time()),
            starts=starts,
            progress=rounds.certified,
        )
        self.schedule.end()
        return solved

    def _learned(self, search: SearchApart, fitted: Any, preparation: Preparation) -> Learned:
        table, chosen, choice = search.table, search.chosen, search.choice
        tried = sorted({each["C"] for each in table.candidates})
        short = fitted.certificate_.status is Status.TIME_LIMIT
        words = f"--time-limit ended the search at C = {tried[-1]:.3g}" if search.cut else ""
        return Learned(
            pipeline=pipeline_of(preparation, fitted),
            fold_scores=table.scores[chosen],
            held_out=held_of(table.shown[chosen], self.K).scores,
            choice={name: int(x) if name == "rounds" else x for name, x in choice.items()},
            selection_frequency=table.used[chosen].mean(axis=0) if self.model.selects else None,
            detail=GridScores(table.candidates, np.array(table.scores), chosen),
            cut=search.cut or short,
            cut_words=words,
            stopped="" if search.stop is None else str(search.stop),
            at_edge="" if search.stop else edge_words({"C": tried}, {"C": choice["C"]}),
        )

    def _result(
        self, learned: Learned, judgement: Judgement, search: SearchApart, problems: list[str]
    ) -> FittedApart:
        rows, options, confusion = self.rows, self.options, judgement.confusion
        judged_here = self.test is None
        by_folds = held_of(search.table.shown[search.chosen], self.K)
        wanted, count = rows.wanted, int(confusion.sum())
        return FittedApart(
            table=Table(
                features=pd.DataFrame(columns=list(rows.kinds), dtype=np.float64),
                target=None,
                ids=judgement.held.ids,
                groups=None,
                positive=wanted.positive,
                source=pathlib.Path(rows.files.source),
                target_name=wanted.target,
                id_name=wanted.id,
            ),
            options=options,
            classes=rows.classes,
            learned=learned,
            errors=[
                estimate_of(each, confusion) for each in dict.fromkeys([options.scoring, "error"])
            ],
            judged_by=self._judged_by(count),
            repeats=[],
            baseline=blind_error_of(options.scoring, confusion.sum(axis=1)),
            selection_error=(
                1.0 - float(learned.fold_scores.mean()),
                standard_error(learned.fold_scores),
            ),
            oof=judgement.held if judged_here else by_folds,
            test=None if judged_here else judgement.held,
            notes=[*rows.notes, *self._notes(learned, judgement)],
            problems=[f"{learned.cut_words}.", *problems] if learned.cut_words else problems,
            converged=learned.model.certificate_.status is Status.OPTIMAL and not learned.cut,
            cut=learned.cut,
            seconds=self.schedule.seconds,
            counts=rows.counts(),
        )

    def _judged_by(self, count: int) -> str:
        if self.test is not None:
            return f"{counted(count, 'row')} of {self.test.files.source}"
        return f"{counted(count, 'row')} held out, one of {self.rows.deal.folds} parts"

    def _notes(self, learned: Learned, judgement: Judgement) -> list[str]:
        notes = []
        if self.options.scale == "standard":
            notes.append("Every column was brought to mean 0 and standard deviation 1.")
        if learned.stopped:
            notes.append(f"Where the search stopped: {learned.stopped}.")
        if learned.at_edge:
            notes.append(learned.at_edge)
        shown, count = len(judgement.held.y), int(judgement.confusion.sum())
        if shown < count:
            notes.append(
                f"Errors are those of all {count:,} rows that judge; the files and the pictures "
                f"have {shown:,} of them, drawn at random."
            )
        return [*notes, *balance_notes(self.options, self.rows.counts(), self.rows.classes)]


def _class_weight(options: FitOptions, classes: np.ndarray) -> Any:
    """The weights of the classes by their places."""
    given = options.class_weight
    if not isinstance(given, dict):
        return given
    return {k: given.get(str(label), 1.0) for k, label in enumerate(classes.tolist())}
