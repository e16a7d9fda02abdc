"""The stages of a search along exact paths, the folds on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import math
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from joblib import effective_n_jobs
from joblib.parallel import get_active_backend
from sklearn.base import clone

from anynorm.estimators._path_stages import Fold, FoldInProgress, Stages
from anynorm.estimators._spread import Moment, spread
from anynorm.estimators._stopping import Stop
from anynorm.estimators.paths.solution_path import SolutionPath

if TYPE_CHECKING:
    from anynorm.estimators._path_search import PathSearch
    from anynorm.estimators._searched_paths import FoldPaths


class StagesApart(Stages):
    """Stages whose folds are on the workers of a cluster, and the paths of all rows afterwards.

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
        return [Fold(self.search, fold, paths) for fold, (paths, _) in found]

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


_kept: dict[str, dict[int, tuple[FoldInProgress, int]]] = {}
"""On a worker: for each search the folds that it has, by number, and how many stops they are at."""


def _followed_here(shared: _SharedSearch, order: _Order) -> tuple[list[SolutionPath], float]:
    """The paths of a fold on the worker that was asked, and the seconds that they have taken."""
    folds = _kept.setdefault(shared.name, {})
    known = folds.pop(order.fold, None)
    if known is None:
        began = shared.began.here
        assert began is not None
        known = FoldInProgress(replace(shared.search, began=began), order.fold), 0
    fold, made = known
    for price in order.stops[made:]:
        fold.follow(price, None, shared.together)
    folds[order.fold] = fold, len(order.stops)
    return [path.detached() for path in fold.paths], fold.seconds


def _forget(name: str) -> None:
    """Drop the folds of a search."""
    _kept.pop(name, None)
