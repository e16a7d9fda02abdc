"""The stages of a search along exact paths: all folds to one C, then to twice that, and so on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anynorm.design import Matrix
from anynorm.design.threads import allowed
from anynorm.estimators._fitting import Report, run_all
from anynorm.estimators._searched_paths import FoldPaths
from anynorm.estimators._stopping import Stop, stop_at
from anynorm.estimators.checks.labels import labelled
from anynorm.estimators.paths.solution_path import SolutionPath

if TYPE_CHECKING:
    from anynorm.estimators._path_search import AllRows, PathSearch
    from anynorm.estimators.sparse_path import GrowingPath

_FIRST_STAGE = 4  # doublings of C before the scores are looked at: the rule asks for a factor of 10
_LAST_STAGE = 30  # doublings of C, after which a path is followed to its end
_LOOKS = 4  # places in every doubling of C at which the scores are looked at
_SAME_S = 1e-9  # relative: a step from a joint that is rounding

JOINTS_PER_ROW = 2.5
"""About the joints of a whole path, per row."""

MOST_TOGETHER = 20
"""The most folds whose rows are kept at the same time; more are followed one after the other."""


class SearchState(NamedTuple):
    """How far a search is.

    Attributes
    ----------
    doing : str
        What is being done, in words.
    share : float
        About how much of the search is done.
    score : float
        The best mean score so far, NaN where there is none.
    """

    doing: str
    share: float
    score: float


class Stages:
    """The paths of the folds, all followed to one C, then to twice that, and so on."""

    def __init__(self, search: PathSearch, all_rows: list[AllRows]) -> None:
        self.search, self.count = search, len(search.folds.splits)
        # With a limit the folds' time comes first; and just to the choice may be less than this.
        alone = search.estimator.time_limit is not None or not search.whole
        self.beside = [] if alone else all_rows
        self.prices, self.scores = np.empty(0), np.empty((0, 1))
        self.stage = 0
        self.beginning = 0.0  # the seconds that the last fold took to begin

    def run(self) -> tuple[list[FoldPaths], Stop | None]:
        """Follow until all have ended, or until going on cannot pay."""
        search = self.search
        if self.count > MOST_TOGETHER or not (
            search.estimator.stop_early or search.estimator.time_limit is not None
        ):
            return self._all_whole(), None
        folds = self._all_begun()
        least = min(1.0 / top if top > 0 else math.inf for fold in folds for top in fold.tops)
        stop = None
        self.stage = _FIRST_STAGE if math.isfinite(least) else _LAST_STAGE
        self.prices = np.array([least / 2])
        self.scores = np.array([[fold.scored(np.array([least / 2]))[0] for fold in folds]])
        while True:
            price = least * 2.0**self.stage if self.stage < _LAST_STAGE else math.inf
            self._follow(folds, price, least * 2.0 ** (self.stage - 1))
            if all(fold.ended for fold in folds) or any(fold.cut for fold in folds):
                break
            stop = self._look(folds, price)
            if stop is not None and search.estimator.stop_early:
                break
            stop = None
            self.stage += 1
        return [fold.done() for fold in folds], stop

    def _all_whole(self) -> list[FoldPaths]:
        """All folds followed to their ends, but for those that there is no time to begin."""
        done = self._each(lambda fold, report: self._whole(fold, report))
        return [fold for fold in done if fold is not None]

    def _all_begun(self) -> list[Any]:
        """All folds at s = 0, but for those that there is no time to begin."""
        begun = self._each(lambda fold, report: self._begun(fold))
        return [fold for fold in begun if fold is not None]

    def _follow(self, folds: list[Any], price: float, sure: float) -> None:
        """Follow the folds to a C, and all rows to a smaller one that they will need anyway."""

        def work(k: int, report: Report | None) -> None:
            if k < len(folds):
                folds[k].follow(price, report)
            else:
                self.beside[k - len(folds)].go_on(report, penalty_min=1.0 / sure)

        self._each(work, len(folds) + (len(self.beside) if math.isfinite(sure) else 0))

    def _each(
        self, work: Callable[[int, Report | None], Any], count: int | None = None
    ) -> list[Any]:
        """Do something in every fold, some at a time."""
        report = None if self.search.tell is None else self._report
        return run_all(self.count if count is None else count, work, report=report)

    def _begun(self, fold: int) -> FoldInProgress | None:
        """A fold; None where there is no time to begin it, but for the first."""
        end, now = self.search.deadline(1.0), time.monotonic()
        if fold > 0 and end is not None and now + self.beginning >= end:
            return None
        begun = FoldInProgress(self.search, fold)
        self.beginning = time.monotonic() - now
        return begun

    def _report(self, fold: int, state: Any) -> None:
        assert self.search.tell is not None
        best = self.scores.mean(axis=1).max(initial=math.nan) if len(self.scores) else math.nan
        whole = fold >= self.count
        rows = self.search.data.X.shape[0] if whole else len(self.search.folds.splits[fold][0])
        part = min(1.0, state.iteration / (JOINTS_PER_ROW * rows))
        where = "all rows" if whole else f"fold {fold + 1} of {self.count}"
        self.search.tell(
            SearchState(
                f"{where}, {state.iteration:,} pivots of the path",
                part * self.count / (self.count + 1),
                float(best),
            )
        )

    def _whole(self, fold: int, report: Report | None) -> FoldPaths | None:
        paths = self._begun(fold)
        if paths is None:
            return None
        paths.follow(math.inf, report)
        return paths.done()

    def _look(self, folds: Sequence[Fold], price: float) -> Stop | None:
        """The scores up to a C, and whether they say that this is enough."""
        since = self.prices[-1] if len(self.prices) > 1 else 2 * self.prices[0]
        count = max(1, round(_LOOKS * math.log2(price / since)))
        places = price * 2.0 ** (np.arange(1 - count, 1) / _LOOKS)
        if len(self.prices) == 1:
            places = np.append(since, places)
        found = self._each(lambda fold, report: folds[fold].scored(places), len(folds))
        self.prices = np.append(self.prices, places)
        self.scores = np.vstack([self.scores, np.column_stack(found)])
        return stop_at(self.prices, self.scores)


class Fold:
    """What the paths of one fold, as far as they are known, say about the rows held out."""

    def __init__(self, search: PathSearch, fold: int, paths: list[SolutionPath]) -> None:
        self.search, self.number, self.paths = search, fold, paths
        self.held_out: Matrix = search.folds.test(fold)
        self.weights = search.test_weights(fold)
        self.tops = [float(path.penalties[0]) for path in paths]
        self.seconds = 0.0

    @property
    def ended(self) -> bool:
        """Whether no path can be followed any further."""
        return all(path.stopped not in ("penalty_min", "s_max") for path in self.paths)

    @property
    def cut(self) -> bool:
        """Whether the time limit ended a path."""
        return any(path.stopped == "time_limit" for path in self.paths)

    def scored(self, prices: np.ndarray) -> np.ndarray:
        """The scores at some values of C."""
        return FoldPaths(self.paths, self.number, self.held_out, self.weights).scores_at(
            self.search, prices
        )

    def done(self) -> FoldPaths:
        """What is kept of the fold: its paths without the rows that they were made from."""
        where = f"fold {self.number + 1} of {len(self.search.folds.splits)}"
        for k, path in enumerate(self.paths):
            self.search.say(path, k, where, self.seconds / len(self.paths))
        paths = [path.detached() for path in self.paths]
        return FoldPaths(paths, self.number, self.held_out, self.weights)


class FoldInProgress(Fold):
    """The paths of one fold in progress."""

    def __init__(self, search: PathSearch, fold: int) -> None:
        train, _ = search.folds.splits[fold]
        X = search.folds.train(fold)
        data = labelled(search.estimator, X, search.y[train], search.weights_of(train))
        codes, places = search.data.codes[train], search.folds.places(fold)
        self.growing = [
            search.growing(data, codes, k, places) for k in range(search.data.n_problems)
        ]
        super().__init__(search, fold, [growing.follow(s_max=0.0) for growing in self.growing])

    def follow(self, price: float, report: Report | None, together: int | None = None) -> None:
        """Go on to a C, in this fold's share of the time that is left.

        So many folds are followed `together`; None: as many as there are threads.
        """
        began = time.monotonic()
        count = len(self.search.folds.splits)
        end = self.search.deadline(count / (count + 1))
        together = allowed() if together is None else together
        rounds = math.ceil((count - self.number) / max(1, min(count, together)))
        if end is not None:
            end = began + max(0.0, end - began) / rounds
        for k, growing in enumerate(self.growing):
            if self.paths[k].stopped in ("penalty_min", "s_max"):
                now = time.monotonic()
                part = None if end is None else now + max(0.0, end - now) / (len(self.paths) - k)
                self.paths[k] = self._followed(growing, self.paths[k], price, part, report)
        self.seconds += time.monotonic() - began

    def _followed(
        self,
        growing: GrowingPath,
        before: SolutionPath,
        price: float,
        deadline: float | None,
        report: Report | None,
    ) -> SolutionPath:
        limits: dict[str, Any] = {"deadline": deadline, "progress": report}
        path = growing.follow(penalty_min=1.0 / price, **limits)
        if path.stopped == "penalty_min" and path.n_joints == before.n_joints:
            # Nothing happens any more: perhaps this is the end.
            further = growing.follow(s_max=float(path.s[-1]) * (1 + _SAME_S), **limits)
            if further.stopped == "end":
                return further
        return path
