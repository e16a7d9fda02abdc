"""Cross-validation along exact paths: those of all folds are followed together, to larger C."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anynorm.design.threads import on_cluster
from anynorm.estimators._cross_validation import BALANCED, Folds, balanced_weights
from anynorm.estimators._fitting import Report, of_any, run_all
from anynorm.estimators._messages import say
from anynorm.estimators._path_stages import SearchState, Stages
from anynorm.estimators._searched_paths import ScoredFolds, SearchedPaths
from anynorm.estimators._stages_apart import StagesApart
from anynorm.estimators.checks.labels import Labelled
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.estimators.sparse_path import GrowingPath, path_problem

Tell = Callable[[SearchState], None]


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
        all_rows = [AllRows(self, index) for index in range(self.data.n_problems)]
        apart = on_cluster(self.estimator.n_jobs)
        folds, stop = (StagesApart(self) if apart else Stages(self, all_rows)).run()
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


class AllRows:
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
