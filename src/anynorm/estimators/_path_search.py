"""Cross-validation along exact paths: the paths of all folds, their scores, and the choice of s."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from anynorm.design import Matrix
from anynorm.design.blocks import row_ranges
from anynorm.design.limits import ROUNDING
from anynorm.estimators._cross_validation import Folds, score_columns, standard_error
from anynorm.estimators._fitting import Report, of_any, run_all, store_linear
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._messages import say, warn
from anynorm.estimators._probabilities import calibration_attributes
from anynorm.estimators.checks.labels import Labelled, labelled
from anynorm.estimators.paths.accuracy import Changes, accuracy_changes, accuracy_table
from anynorm.estimators.paths.solution_path import SolutionPath, used_features
from anynorm.estimators.sparse_path import followed, path_problem, warn_of_gaps


@dataclass(frozen=True)
class ScoreCurve:
    """Cross-validated scores along s, on intervals or (where low equals high) at points.

    Attributes
    ----------
    low, high : ndarray of shape (m,)
        The ends of the intervals, ascending.
    scores : ndarray of shape (m, folds)
        The folds' scores.
    features : ndarray of shape (m, folds)
        The numbers of features that the folds use.
    """

    low: np.ndarray
    high: np.ndarray
    scores: np.ndarray
    features: np.ndarray

    def joined(self) -> ScoreCurve:
        """The curve with neighbours joined where every fold has the same score and features."""
        both = np.hstack([self.scores, self.features])
        new = np.append(True, np.any(np.abs(np.diff(both, axis=0)) > ROUNDING, axis=1))
        last = np.append(new[1:], True)
        return ScoreCurve(self.low[new], self.high[last], self.scores[new], self.features[new])

    def choose(self, rule: str, tolerance: float) -> tuple[int, float]:
        """The place in the table that a rule takes, and s.

        "best" takes the highest mean score, "one_se" the smallest s within one standard error of
        it, "fewest" the fewest features within `tolerance` of it.  All take the middle of the
        leftmost stretch that is as good.
        """
        mean, used = self.scores.mean(axis=1), self.features.mean(axis=1)
        same = ROUNDING * max(1.0, float(np.abs(mean).max()))
        top = int(mean.argmax())
        if rule == "best":
            good = mean >= mean[top] - same
        elif rule == "one_se":
            enough = mean >= mean[top] - standard_error(self.scores[top]) - same
            good = np.abs(mean - mean[int(enough.argmax())]) <= same
        else:
            enough = mean >= mean[top] - tolerance - same
            good = enough & (used <= used[enough].min() + same)
        first = int(good.argmax())
        last = first + int(np.append(~good[first:], True).argmax()) - 1
        middle = self.low[first] + (self.high[last] - self.low[first]) / 2
        index = first + int(np.searchsorted(self.high[first : last + 1], middle))
        return index, float(np.clip(middle, self.low[index], self.high[index]))

    def results(self) -> dict[str, Any]:
        """The curve as scikit-learn's searches present their tables."""
        middle = self.low + (self.high - self.low) / 2
        return {
            "s_low": self.low,
            "s_high": self.high,
            "param_s": middle,
            "params": [{"s": s} for s in middle.tolist()],
            **score_columns(self.scores, self.features),
        }


@dataclass(frozen=True)
class FoldPaths:
    """The paths of one fold, by its number, and what they say about the rows held out."""

    fold: int
    paths: list[SolutionPath]
    changes: Changes


@dataclass(frozen=True)
class PathSearch:
    """The paths of all folds and of all rows.

    Attributes
    ----------
    estimator : SparseSVCCV
        Its parameters say what is solved and what is chosen; `cv` and `scoring` are not looked at.
    data, y, weights : Labelled, ndarray of shape (n,), ndarray of shape (n,) or None
        All rows, their labels, and their weights without those of the classes.
    scorer : callable or None
        ``scorer(estimator, X, y)`` for points at the joints; None is the accuracy for every s.
    began : float
        When the time that `estimator.time_limit` limits began, on `time.monotonic`'s clock.
    feature_names : ndarray of shape (p,) or None, default=None
        The names that paths know the features by.
    report, on_path : callable or None, default=None
        Called with the progress of every path, and with every path when it is done.
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
    report: Report | None = None
    on_path: Callable[[SolutionPath], None] | None = None

    def run(self) -> SearchedPaths:
        """Follow the paths of every fold, then those of all rows."""
        report = of_any(self.report)
        folds = run_all(len(self.folds.splits), self._follow_fold, report=report)
        paths = run_all(self.data.n_problems, self._follow_all_rows, report=report)
        return SearchedPaths(self, [fold for fold in folds if fold is not None], paths)

    def _follow_all_rows(self, index: int, progress: Report | None) -> SolutionPath:
        return self._follow(self.data, self.data.codes, index, None, progress)

    def _follow_fold(self, fold: int, progress: Report | None) -> FoldPaths | None:
        """The paths of a fold; None where there is no time for it, but for the first."""
        if self._is_late(fold):
            return None
        train, test = self.folds.splits[fold]
        X = self.folds.train(fold)
        data = labelled(self.estimator, X, self.y[train], self.weights_of(train))
        paths: list[SolutionPath] = []
        for k in range(self.data.n_problems):
            if self._is_late(fold):
                return None
            path = self._follow(data, self.data.codes[train], k, fold, progress)
            paths.append(path.detached())
        return FoldPaths(fold, paths, self._changes(paths, test, fold))

    def _is_late(self, fold: int) -> bool:
        """Whether the time is over, before a fold without which there is a choice."""
        limit = self._deadline(None)
        return fold > 0 and limit is not None and time.monotonic() >= limit

    def _follow(
        self,
        data: Labelled,
        codes: np.ndarray,
        index: int,
        fold: int | None,
        progress: Report | None,
    ) -> SolutionPath:
        """The path of binary problem `index` on the rows of `data`; `fold` None means all rows."""
        signs = np.where(codes == self.data.positive(index), 1.0, -1.0)
        estimator, began = self.estimator, time.monotonic()
        problem = path_problem(
            data, signs, fit_intercept=estimator.fit_intercept, penalty_weights=self.penalty_weights
        )
        binary = self.data.n_problems == 1
        path = followed(
            problem,
            self.feature_names,
            self.data.classes if binary else None,
            max_features=estimator.max_features,
            deadline=self._deadline(fold),
            progress=progress,
        )
        if self.on_path is not None:
            self.on_path(path)
        if estimator.verbose:
            where = "all rows" if fold is None else f"fold {fold + 1} of {len(self.folds.splits)}"
            label = "" if binary else f", class {self.data.classes.tolist()[index]!r}"
            say(
                f"{type(estimator).__name__}: {where}{label}: {path.n_joints} joints to "
                f"s = {path.s[-1]:.4g}, up to {path.n_nonzero.max()} features, "
                f"{time.monotonic() - began:.2f} s"
            )
        return path

    def _deadline(self, fold: int | None) -> float | None:
        """When the paths of a fold must end: every fold and the model get an even share."""
        limit = self.estimator.time_limit
        if limit is None:
            return None
        share = 1.0 if fold is None else (fold + 1) / (len(self.folds.splits) + 1)
        return self.began + float(limit) * share

    def weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        """The weights of some rows."""
        return None if self.weights is None else self.weights[rows]

    def _changes(self, paths: Sequence[SolutionPath], test: np.ndarray, fold: int) -> Changes:
        weights = np.ones(len(test)) if self.weights is None else self.weights[test]
        if not weights.any():
            raise ValueError(
                f"sample_weight is zero for all rows that fold {fold + 1} of cv holds out. Use "
                "fewer folds, or folds that spread the rows of positive weight."
            )
        return accuracy_changes(paths, self.folds.test(fold), self.data.codes[test], weights)


@dataclass(frozen=True)
class SearchedPaths:
    """What a search found.

    Attributes
    ----------
    search : PathSearch
        What was searched.
    folds : list of FoldPaths
        The paths of the folds; those for which there was no time are not there.
    paths : list of SolutionPath
        Those of all rows: one for two classes, otherwise each class against the rest.
    """

    search: PathSearch
    folds: list[FoldPaths]
    paths: list[SolutionPath]

    @cached_property
    def curve(self) -> ScoreCurve:
        """The scores along s: on intervals for the accuracy, else at the joints."""
        paths = [path for fold in self.folds for path in fold.paths]
        end = max(path.s[-1] for path in paths)
        end = min([end, *(path.s[-1] for path in paths if path.stopped == "time_limit")])
        if self.search.scorer is None:
            places = np.unique(np.concatenate([path.knots.s for path in paths]))
            edges, scores = accuracy_table([fold.changes for fold in self.folds], places, end)
            middles = edges[:-1] + np.diff(edges) / 2
            return ScoreCurve(edges[:-1], edges[1:], scores, self._counts(middles)).joined()
        joints = np.unique(np.concatenate([path.s for path in paths]))
        joints = joints[joints <= end]
        scores = np.column_stack([self._scores(fold, joints) for fold in self.folds])
        if not np.isfinite(scores).all():
            raise ValueError(
                "scoring gives no finite number for some fold. Choose another, or folds that hold "
                "out rows of every class."
            )
        return ScoreCurve(joints, joints, scores, self._counts(joints))

    def _scores(self, fold: FoldPaths, joints: np.ndarray) -> np.ndarray:
        """What the scorer says about a fold at every joint."""
        search, paths = self.search, fold.paths
        scorer, test = search.scorer, search.folds.splits[fold.fold][1]
        X, y, weights = search.folds.test(fold.fold), search.y[test], search.weights_of(test)
        given = {} if weights is None else {"sample_weight": weights}
        found = np.empty(len(joints))
        for block in row_ranges(len(joints), X.shape[0] * len(paths)):
            part = joints[block]
            scores = np.stack([path.knots.scores(X, part) for path in paths], axis=2)
            for k, s in enumerate(part):
                stage = _Stage(paths, s, search.data.classes, X, scores[:, k])
                found[block.start + k] = scorer(stage, X, y, **given)
        return found

    def _counts(self, s: np.ndarray) -> np.ndarray:
        """The numbers of features that the folds use at every s."""
        counts = np.empty((len(s), len(self.folds)))
        for column, fold in enumerate(self.folds):
            widest = max(int(path.n_nonzero.max()) for path in fold.paths) * len(fold.paths)
            for block in row_ranges(len(s), widest):
                counts[block, column] = np.diff(used_features(fold.paths, s[block]).indptr)
        return counts

    def held_out_scores(self, s: np.ndarray, index: int) -> np.ndarray:
        """The decision values (len(s), n) of all rows in a problem, by folds that held them out.

        That is the mean where several folds held a row out, NaN where none did.
        """
        n = len(self.search.y)
        total, count = np.zeros((len(s), n)), np.zeros(n)
        for fold in self.folds:
            test, X = self.search.folds.splits[fold.fold][1], self.search.folds.test(fold.fold)
            total[:, test] += fold.paths[index].knots.scores(X, s).T
            count[test] += 1
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    def selection_frequency(self, s: float) -> np.ndarray:
        """The share of the folds that use each feature, for at least one class."""
        place = np.array([s])
        used = [used_features(fold.paths, place).toarray()[0] > 0 for fold in self.folds]
        return np.mean(used, axis=0)

    def pick(self, rule: str) -> tuple[int, float]:
        """The row of the curve that a rule takes, and s."""
        return self.curve.choose(rule, float(self.search.estimator.score_tolerance))

    def keep(self) -> None:
        """Give the estimator the point that its rule picks, and warn of paths that ended early."""
        estimator = self.search.estimator
        index, s = self.pick(estimator.rule)
        tol = float(estimator.tol)
        # A path that a limit cut short before s gives its last point.
        ends = [min(s, float(path.s[-1])) for path in self.paths]
        solutions = [
            path.solution_at(end, tol=tol) for path, end in zip(self.paths, ends, strict=True)
        ]
        store_linear(estimator, self.search.data, solutions, self._attributes(index, s))
        self._warn_of_time(s)
        warn_of_gaps([*(path for fold in self.folds for path in fold.paths), *self.paths])

    def is_cut(self, s: float) -> bool:
        """Whether the time limit ended a path of a fold, or one of all rows before s."""
        return bool(self._short()) or self._missing() > 0 or self._ends_before(s)

    def _missing(self) -> int:
        """The number of folds for which there was no time."""
        return len(self.search.folds.splits) - len(self.folds)

    def _short(self) -> list[SolutionPath]:
        """The paths of the folds that the time limit ended."""
        return [path for fold in self.folds for path in fold.paths if path.stopped == "time_limit"]

    def _ends_before(self, s: float) -> bool:
        return any(path.stopped == "time_limit" and path.s[-1] < s for path in self.paths)

    def _attributes(self, index: int, s: float) -> dict[str, Any]:
        """What `SparseSVCCV` keeps of the choice of s, which is in row `index` of the curve."""
        prices = [path.knots.price(path.knots.segment(s)) for path in self.paths]
        several = len(self.paths) > 1
        place = np.array([s])
        held_out = [self.held_out_scores(place, k)[0] for k in range(len(self.paths))]
        scores = np.column_stack(held_out) if several else held_out[0]
        found: dict[str, Any] = {
            "s_": np.full(len(self.paths), s) if several else s,
            "C_": np.array(prices) if several else prices[0],
            "paths_": self.paths,
            "best_index_": index,
            "best_score_": float(self.curve.scores[index].mean()),
            "cv_results_": self.curve.results(),
            "oof_decision_function_": scores,
            "selection_frequency_": self.selection_frequency(s),
        }
        found |= calibration_attributes(
            self.search.estimator.calibration,
            scores,
            self.search.data.codes,
            self.search.weights,
            [test for _, test in self.search.folds.splits],
        )
        return found if several else found | {"path_": self.paths[0]}

    def _warn_of_time(self, s: float) -> None:
        """Warn where time_limit cut a path short, or left no time for a fold."""
        short, missing = self._short(), self._missing()
        if missing:
            warn(
                f"time_limit left no time for {missing} of the {missing + len(self.folds)} folds; "
                "s was chosen by the others. Raise time_limit, or set max_features."
            )
        if short:
            warn(
                f"time_limit ended {len(short)} paths of the folds, the first at s = "
                f"{min(path.s[-1] for path in short):.3g}; s was chosen up to there. Raise "
                "time_limit, or set max_features."
            )
        if self._ends_before(s):
            warn(
                f"time_limit ended the path of all rows before the chosen s = {s:.3g}; the model "
                "is the last point that was reached. Raise time_limit, or set max_features."
            )


class _Stage(LinearClassifier):
    """A point of a fold's paths as a fitted classifier, for scorers."""

    def __init__(
        self,
        paths: Sequence[SolutionPath],
        s: float,
        classes: np.ndarray,
        known: Matrix,
        scores: np.ndarray,
    ) -> None:
        self.classes_ = classes
        self.n_features_in_ = paths[0].n_features_in_
        self.intercept_ = np.array([np.interp(s, p.knots.s, p.knots.intercepts) for p in paths])
        self._paths, self._s, self._known, self._scores = paths, s, known, scores

    @cached_property
    def coef_(self) -> np.ndarray:
        """The coefficients, which few scorers ask for."""
        return np.array([path.knots.solution(self._s)[0] for path in self._paths])

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of X, which are at hand for the rows that were held out."""
        if X is not self._known:
            return super().decision_function(X)
        return self._scores[:, 0] if self._scores.shape[1] == 1 else self._scores
