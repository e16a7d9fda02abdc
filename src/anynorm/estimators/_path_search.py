"""Cross-validation along exact paths: those of all folds are followed together, to larger C."""

from __future__ import annotations

import contextlib
import math
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone

from anynorm.design import Matrix
from anynorm.design.threads import allowed, on_cluster
from anynorm.estimators._cross_validation import BALANCED, Folds, balanced_weights
from anynorm.estimators._fitting import Report, of_any, run_all
from anynorm.estimators._messages import say
from anynorm.estimators._searched_paths import FoldPaths, ScoredFolds, SearchedPaths
from anynorm.estimators._spread import Moment, spread
from anynorm.estimators._stopping import Stop, stop_at
from anynorm.estimators.checks.labels import Labelled, labelled
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.estimators.sparse_path import GrowingPath, path_problem

_FIRST_STAGE = 4  # doublings of C before the scores are looked at: the rule asks for a factor of 10
_LAST_STAGE = 30  # doublings of C, after which a path is followed to its end
_LOOKS = 4  # places in every doubling of C at which the scores are looked at
MOST_TOGETHER = 20
"""The most folds whose rows are kept at the same time; more are followed one after the other."""

_SAME_S = 1e-9  # relative: a step from a joint that is rounding

Tell = Callable[["SearchState"], None]


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


@dataclass(frozen=True)
class PathSearch:
    """The paths of all folds and of all rows.

    Attributes
    ----------
    estimator : SparseSVCCV
        Its parameters say what is solved and what is chosen; `cv` and `scoring` are not looked at.
    data, y, weights : Labelled, ndarray of shape (n,), ndarray of shape (n,) or None
        All rows, their labels, and their weights without those of the classes.
    scorer : callable, BALANCED or None
        ``scorer(estimator, X, y)`` for points at the joints; None is the accuracy for every s,
        and BALANCED the mean of the classes' accuracies, as exactly.
    began : float
        When the time that `estimator.time_limit` limits began, on `time.monotonic`'s clock.
    feature_names : ndarray of shape (p,) or None, default=None
        The names that paths know the features by.
    whole : bool, default=True
        Whether the paths of all rows go as far as those of the folds, or just to the choice.
    tell : callable or None, default=None
        Called with a `SearchState` as the work goes on.
    kept : mapping, default={}
        Attributes that the estimator gets beside those of the search.
    """

    estimator: Any
    data: Labelled
    y: np.ndarray
    weights: np.ndarray | None
    penalty_weights: np.ndarray | None
    folds: Folds
    scorer: Any
    began: float
    feature_names: np.ndarray | None = None
    whole: bool = True
    tell: Tell | None = None
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by_price(self) -> bool:
        """Whether the line along which is chosen is that of C, the same for several classes."""
        return self.data.n_problems > 1 and self.estimator.multiclass != "one_s"

    def run(self) -> SearchedPaths:
        """Follow the paths of the folds, and those of all rows as far as these say."""
        all_rows = [_AllRows(self, index) for index in range(self.data.n_problems)]
        apart = on_cluster(self.estimator.n_jobs)
        folds, stop = (_StagesApart(self) if apart else _Stages(self, all_rows)).run()
        scored = ScoredFolds(self, folds, stop)
        report = of_any(self._telling("all rows", len(folds) / (len(folds) + 1), scored.best))
        paths = run_all(
            self.data.n_problems,
            lambda index, progress: all_rows[index].followed(
                scored.end_for_all_rows(index, whole=self.whole), progress
            ),
            report=report,
        )
        return SearchedPaths(scored, paths)

    def weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        """The weights of some rows."""
        return None if self.weights is None else self.weights[rows]

    def test_weights(self, fold: int) -> np.ndarray:
        """What the rows that a fold holds out count in an accuracy."""
        test = self.folds.splits[fold][1]
        weights = np.ones(len(test)) if self.weights is None else self.weights[test]
        if not weights.any():
            raise ValueError(
                f"sample_weight is zero for all rows that fold {fold + 1} of cv holds out. Use "
                "fewer folds, or folds that spread the rows of positive weight."
            )
        return balanced_weights(self.y[test], weights) if self.scorer == BALANCED else weights

    def growing(
        self, data: Labelled, codes: np.ndarray, index: int, places: np.ndarray | None = None
    ) -> GrowingPath:
        """The path of binary problem `index` on the rows of `data`.

        `places` says where its features are among those of all rows, as `Folds.places` does.
        """
        signs = np.where(codes == self.data.positive(index), 1.0, -1.0)
        estimator, names, penalties = self.estimator, self.feature_names, self.penalty_weights
        if places is not None:
            names = None
            if penalties is not None:
                penalties = np.where(places >= 0, penalties[places], 1.0)
        problem = path_problem(
            data, signs, fit_intercept=estimator.fit_intercept, penalty_weights=penalties
        )
        return GrowingPath(
            problem,
            names,
            self.data.classes if self.data.n_problems == 1 else None,
            max_features=estimator.max_features,
        )

    def deadline(self, share: float) -> float | None:
        """When this share of the time is over."""
        limit = self.estimator.time_limit
        return None if limit is None else self.began + float(limit) * share

    def say(self, path: SolutionPath, index: int, where: str, seconds: float) -> None:
        """Print a line for a path that is done, where that is asked for."""
        if self.estimator.verbose:
            several = self.data.n_problems > 1
            label = f", class {self.data.classes.tolist()[index]!r}" if several else ""
            say(
                f"{type(self.estimator).__name__}: {where}{label}: {path.n_joints} joints to "
                f"s = {path.s[-1]:.4g}, up to {path.n_nonzero.max()} features, {seconds:.2f} s"
            )

    def _telling(self, where: str, share: float, score: float) -> Report | None:
        tell = self.tell
        if tell is None:
            return None
        return lambda state: tell(
            SearchState(f"{where}, {state.iteration:,} pivots of the path", share, score)
        )


class _AllRows:
    """The path of all rows in one binary problem: the longest of all, and begun beside the others.

    How far it has to go is known when the folds are done; that it has to go to half of their C
    is known before.
    """

    def __init__(self, search: PathSearch, index: int) -> None:
        self.search, self.index = search, index
        self.growing: GrowingPath | None = None
        self.path: SolutionPath | None = None
        self.seconds = 0.0

    def go_on(self, report: Report | None, **end: float | None) -> SolutionPath:
        """Follow the path on to an end."""
        began = time.monotonic()
        if self.growing is None:
            search = self.search
            self.growing = search.growing(search.data, search.data.codes, self.index)
        self.path = self.growing.follow(**end, progress=report)
        self.seconds += time.monotonic() - began
        return self.path

    def followed(self, end: dict[str, float], report: Report | None) -> SolutionPath:
        """The path to its end; once more from its beginning where it has gone further already."""
        path = self.path
        if path is not None and (
            path.s[-1] > end.get("s_max", math.inf)
            or path.penalties[-1] < end.get("penalty_min", 0.0)
        ):
            self.growing = None
        path = self.go_on(report, **end, deadline=self.search.deadline(1.0))
        self.search.say(path, self.index, "all rows", self.seconds)
        return path


class _Stages:
    """The paths of the folds, all followed to one C, then to twice that, and so on."""

    def __init__(self, search: PathSearch, all_rows: list[_AllRows]) -> None:
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

    def _begun(self, fold: int) -> _FoldInProgress | None:
        """A fold; None where there is no time to begin it, but for the first."""
        end, now = self.search.deadline(1.0), time.monotonic()
        if fold > 0 and end is not None and now + self.beginning >= end:
            return None
        begun = _FoldInProgress(self.search, fold)
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

    def _look(self, folds: Sequence[_Fold], price: float) -> Stop | None:
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


JOINTS_PER_ROW = 2.5
"""About the joints of a whole path, per row."""


class _Fold:
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


class _FoldInProgress(_Fold):
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


class _StagesApart(_Stages):
    """The same with the folds on the workers of a cluster, and the paths of all rows afterwards.

    A worker keeps the folds that it has followed, and goes on from there; where a fold comes to
    another one, that follows it anew, stage by stage: with the same result.
    """

    def __init__(self, search: PathSearch) -> None:
        super().__init__(search, [])
        quiet = clone(search.estimator).set_params(verbose=0)
        alone = replace(search, estimator=quiet, tell=None, kept={})
        together = int(effective_n_jobs(search.estimator.n_jobs))
        self.shared = _SharedSearch(alone, uuid.uuid4().hex, together, Moment.of(search.began))
        self.stops: tuple[float, ...] = ()

    def run(self) -> tuple[list[FoldPaths], Stop | None]:
        """Follow until all have ended, or until going on cannot pay; then free the workers."""
        try:
            return super().run()
        finally:
            with contextlib.suppress(OSError):  # a cluster that is gone keeps nothing
                get_active_backend()[0].client.run(_forget, self.shared.name)

    def _all_whole(self) -> list[FoldPaths]:
        folds = self._all_begun()
        self._follow(folds, math.inf, math.inf)
        return [fold.done() for fold in folds]

    def _all_begun(self) -> list[Any]:
        every = range(self.count)
        found = zip(every, self._followed(every), strict=True)
        return [_Fold(self.search, fold, paths) for fold, (paths, _) in found]

    def _follow(self, folds: list[Any], price: float, sure: float) -> None:
        self.stops = *self.stops, price
        still = [fold for fold in folds if not fold.ended]
        found = self._followed([fold.number for fold in still])
        for fold, (paths, seconds) in zip(still, found, strict=True):
            fold.paths, fold.seconds = paths, seconds

    def _followed(self, folds: Sequence[int]) -> list[tuple[list[SolutionPath], float]]:
        """The paths of some folds to the last stop, and the seconds that each has taken."""
        return spread(_followed_here, self.shared, [_Order(fold, self.stops) for fold in folds])


class _SharedSearch(NamedTuple):
    """What the workers know: a search, its name, how many folds run at once, when it began."""

    search: PathSearch
    name: str
    together: int
    began: Moment


class _Order(NamedTuple):
    """A fold, and the values of C that it is followed to, one after the other."""

    fold: int
    stops: tuple[float, ...]


_kept: dict[str, dict[int, tuple[_FoldInProgress, int]]] = {}
"""On a worker: for each search the folds that it has, by number, and how many stops they are at."""


def _followed_here(shared: _SharedSearch, order: _Order) -> tuple[list[SolutionPath], float]:
    """The paths of a fold on the worker that was asked, and the seconds that they have taken."""
    folds = _kept.setdefault(shared.name, {})
    known = folds.pop(order.fold, None)
    if known is None:
        began = shared.began.here
        assert began is not None
        known = _FoldInProgress(replace(shared.search, began=began), order.fold), 0
    fold, made = known
    for price in order.stops[made:]:
        fold.follow(price, None, shared.together)
    folds[order.fold] = fold, len(order.stops)
    return [path.detached() for path in fold.paths], fold.seconds


def _forget(name: str) -> None:
    """Drop the folds of a search."""
    _kept.pop(name, None)
