"""What the paths of the folds say: the exact curve of the scores, and the place that is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from anynorm.design import Matrix
from anynorm.design.blocks import row_ranges
from anynorm.estimators._cross_validation import BALANCED
from anynorm.estimators._fitting import run_all, store_linear
from anynorm.estimators._linear_model import LinearClassifier
from anynorm.estimators._messages import warn
from anynorm.estimators._probabilities import calibration_attributes
from anynorm.estimators._score_curve import ScoreCurve
from anynorm.estimators._stopping import Stop
from anynorm.estimators.paths.accuracy import (
    Changes,
    accuracy_changes,
    accuracy_table,
    knots_at,
    price_changes,
)
from anynorm.estimators.paths.solution_path import SolutionPath, used_features
from anynorm.estimators.sparse_path import warn_of_gaps

if TYPE_CHECKING:
    from anynorm.estimators._path_search import PathSearch

_MOST_PLACES = 2000  # at which a scorer is called in every fold
_LEFT = ("time_limit", "penalty_min")  # of paths that go on beyond what is known
_CANDIDATES = 64  # values of C that a class tries by itself
_SWEEPS = 3  # over the classes, each of which then has its own C


class FoldPaths(NamedTuple):
    """The paths of one fold, and the rows that were held out with what they count."""

    paths: list[SolutionPath]
    number: int
    held_out: Matrix
    weights: np.ndarray

    def decision_values(self, places: Sequence[np.ndarray]) -> np.ndarray:
        """The scores (n, m, problems) of the held-out rows at m places s on each path."""
        pairs = zip(self.paths, places, strict=True)
        return np.stack([path.knots.scores(self.held_out, s) for path, s in pairs], axis=2)

    def scores_at(self, search: PathSearch, prices: np.ndarray) -> np.ndarray:
        """The scores of the fold where all classes have one of these values of C."""
        places = [path.knots.s[knots_at(path, prices)] for path in self.paths]
        found = np.empty(len(prices))
        for block in row_ranges(len(prices), self.held_out.shape[0] * len(self.paths)):
            part = [s[block] for s in places]
            values = self.decision_values(part)
            found[block] = self.judged(search, values, part)
        return found

    def judged(
        self, search: PathSearch, values: np.ndarray, places: Sequence[np.ndarray]
    ) -> np.ndarray:
        """The score of each of m sets (n, m, problems) of decision values."""
        test = search.folds.splits[self.number][1]
        if search.scorer is None or search.scorer == BALANCED:
            only = values.shape[2] == 1
            labels = (values[:, :, 0] > 0) if only else values.argmax(axis=2)
            right = labels == search.data.codes[test][:, None]
            return np.asarray(self.weights @ right) / self.weights.sum()
        weights = search.weights_of(test)
        given = {} if weights is None else {"sample_weight": weights}
        y, classes = search.y[test], search.data.classes
        found = np.empty(values.shape[1])
        for k in range(len(found)):
            s = [float(each[k]) for each in places]
            stage = _Stage(self.paths, s, classes, self.held_out, values[:, k])
            found[k] = search.scorer(stage, self.held_out, y, **given)
        if not np.isfinite(found).all():
            raise ValueError(
                "scoring gives no finite number for some fold. Choose another, or folds that hold "
                "out rows of every class."
            )
        return found


class Choice(NamedTuple):
    """What a rule takes.

    Attributes
    ----------
    row : int
        Its row of the curve.
    place : float
        s or C there.
    prices : ndarray or None
        The C of each class, where s is not the same for all.
    score : float
        Its mean score over the folds.
    """

    row: int
    place: float
    prices: np.ndarray | None
    score: float


@dataclass(frozen=True)
class ScoredFolds:
    """The paths of the folds, their scores along s or C, and where they stopped early.

    Folds for which there was no time are not there.
    """

    search: PathSearch
    folds: list[FoldPaths]
    stop: Stop | None

    @cached_property
    def best(self) -> float:
        """The highest mean score."""
        return float(self.curve.scores.mean(axis=1).max())

    @property
    def all_paths(self) -> list[SolutionPath]:
        """The paths of all folds."""
        return [path for fold in self.folds for path in fold.paths]

    @property
    def short(self) -> list[SolutionPath]:
        """The paths of the folds that the time limit ended."""
        return [path for path in self.all_paths if path.stopped == "time_limit"]

    @property
    def missing(self) -> int:
        """The number of folds for which there was no time."""
        return len(self.search.folds.splits) - len(self.folds)

    @cached_property
    def curve(self) -> ScoreCurve:
        """The scores along s or C: on intervals for accuracies, else at the joints."""
        return self._along_C() if self.search.by_price else self._along_s()

    def _along_s(self) -> ScoreCurve:
        paths = self.all_paths
        end = max(path.s[-1] for path in paths)
        # Nothing is known beyond the end of a path that was left before its end.
        left = [path.s[-1] for path in paths if path.stopped in _LEFT]
        end = min([end, *left])
        if self._by_steps:
            places = np.unique(np.concatenate([path.knots.s for path in paths]))
            edges, scores = accuracy_table(self._changes(None), places, end)
            middles = edges[:-1] + np.diff(edges) / 2
            return ScoreCurve(edges[:-1], edges[1:], scores, self._counts(middles)).joined()
        joints = np.unique(np.concatenate([path.s for path in paths]))
        joints = _thinned(joints[joints <= end])
        found = self._in_folds(lambda fold: self._scores(fold, joints))
        return ScoreCurve(joints, joints, np.column_stack(found), self._counts(joints))

    def _along_C(self) -> ScoreCurve:
        paths = self.all_paths
        penalties = np.concatenate([path.knots.penalties for path in paths])
        penalties = penalties[penalties > 0]
        # A path that a limit ended is taken to stay where it is, one that time ended is not.
        left = [
            path.penalties[-1] for path in paths if path.stopped in ("time_limit", "penalty_min")
        ]
        least, last = (1 / penalties.max(), 1 / penalties.min()) if len(penalties) else (1.0, 1.0)
        least, last = least / 2, min([2 * last, *(1 / penalty for penalty in left)])
        end = float(np.log(last / least))
        places = np.log(np.unique(1 / penalties) / least)
        if self._by_steps:
            edges, scores = accuracy_table(self._changes(least), places, end)
            middles = edges[:-1] + np.diff(edges) / 2
            counts = self._counts_at_prices(least * np.exp(middles))
            return ScoreCurve(edges[:-1], edges[1:], scores, counts, least).joined()
        joints = _thinned(np.append(0.0, places[places < end]))
        prices = least * np.exp(joints) * (1 + _AFTER)
        found = self._in_folds(lambda fold: self.folds[fold].scores_at(self.search, prices))
        counts = self._counts_at_prices(prices)
        return ScoreCurve(joints, joints, np.column_stack(found), counts, least)

    @property
    def _by_steps(self) -> bool:
        return self.search.scorer is None or self.search.scorer == BALANCED

    def _in_folds(self, work: Any) -> list[Any]:
        return run_all(len(self.folds), lambda fold, _: work(fold), report=None)

    def _changes(self, least: float | None) -> list[Changes]:
        codes = self.search.data.codes

        def changes(fold: int) -> Changes:
            paths, number, held_out, weights = self.folds[fold]
            given = paths, held_out, codes[self.search.folds.splits[number][1]], weights
            return accuracy_changes(*given) if least is None else price_changes(*given, least)

        return self._in_folds(changes)

    def _scores(self, fold: int, joints: np.ndarray) -> np.ndarray:
        """What the scorer says about a fold at every s."""
        paths = self.folds[fold]
        found = np.empty(len(joints))
        for block in row_ranges(len(joints), paths.held_out.shape[0] * len(paths.paths)):
            places = [joints[block]] * len(paths.paths)
            values = paths.decision_values(places)
            found[block] = paths.judged(self.search, values, places)
        return found

    def _counts(self, s: np.ndarray) -> np.ndarray:
        """The numbers of features that the folds use at every s, which are those of a segment."""
        found = self._in_folds(lambda fold: _features_along(self.folds[fold].paths, s))
        return np.column_stack(found)

    def _counts_at_prices(self, prices: np.ndarray) -> np.ndarray:
        """The numbers of features that the folds use at every C."""
        found = self._in_folds(lambda fold: _features_at(self.folds[fold].paths, prices))
        return np.column_stack(found)

    def places(self, paths: Sequence[SolutionPath], choice: Choice) -> list[float]:
        """The s of a choice on each of some paths, their last where they do not reach it."""
        if choice.prices is None:
            return [min(choice.place, float(path.s[-1])) for path in paths]
        pairs = zip(paths, choice.prices, strict=True)
        return [float(path.knots.s[knots_at(path, np.array([C]))[0]]) for path, C in pairs]

    def held_out_scores(self, s: np.ndarray, index: int) -> np.ndarray:
        """The decision values (len(s), n) of all rows in a problem, by folds that held them out.

        That is the mean where several folds held a row out, NaN where none did.
        """
        return self._held_out([s] * len(self.folds), index)

    def held_out(self, choice: Choice, index: int) -> np.ndarray:
        """The decision values (n,) of all rows at a choice."""
        places = [np.array([self.places(fold.paths, choice)[index]]) for fold in self.folds]
        return self._held_out(places, index)[0]

    def held_out_at_prices(self, prices: np.ndarray, index: int) -> np.ndarray:
        """The decision values (len(prices), n) of all rows at some values of C."""
        places = []
        for fold in self.folds:
            path = fold.paths[index]
            places.append(path.knots.s[knots_at(path, prices)])
        return self._held_out(places, index)

    def _held_out(self, places: Sequence[np.ndarray], index: int) -> np.ndarray:
        n = len(self.search.y)
        total, count = np.zeros((len(places[0]), n)), np.zeros(n)
        for fold, s in zip(self.folds, places, strict=True):
            test = self.search.folds.splits[fold.number][1]
            total[:, test] += fold.paths[index].knots.scores(fold.held_out, s).T
            count[test] += 1
        return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)

    def selection_frequency(self, choice: Choice) -> np.ndarray:
        """The share of the folds that use each feature, for at least one class."""
        used = []
        for fold in self.folds:
            pairs = zip(fold.paths, self.places(fold.paths, choice), strict=True)
            own = np.any([path.knots.solution(s)[0] != 0 for path, s in pairs], axis=0)
            places = self.search.folds.places(fold.number)
            if places is not None:
                found = np.zeros(self.search.data.X.shape[1], dtype=bool)
                found[places[own & (places >= 0)]] = True
                own = found
            used.append(own)
        return np.mean(used, axis=0)

    def pick(self, rule: str) -> Choice:
        """What a rule takes."""
        estimator, several = self.search.estimator, self.search.data.n_problems
        index, place = self.curve.choose(rule, estimator.score_tolerance)
        score = float(self.curve.scores[index].mean())
        prices = np.full(several, place) if self.search.by_price else None
        choice = Choice(index, place, prices, score)
        return self._each_its_own(choice) if self.search.estimator.multiclass == "each" else choice

    def _each_its_own(self, choice: Choice) -> Choice:
        """Classes move from one C for all, one after the other, while the score rises."""
        if choice.prices is None:
            return choice
        low, high = self.curve.values(self.curve.low[0]), self.curve.values(self.curve.high[-1])
        tried = np.append(np.geomspace(low, high, _CANDIDATES), choice.place)
        tables = {}
        for fold in self.folds:
            places = [path.knots.s[knots_at(path, tried)] for path in fold.paths]
            tables[fold.number] = places, fold.decision_values(places)
        at, best = np.full(len(choice.prices), _CANDIDATES), choice.score
        for _ in range(_SWEEPS):
            before = best
            for k in range(len(at)):
                means = np.mean([self._moved(fold, at, k, tables) for fold in self.folds], axis=0)
                if means.max() > best + _GAIN:
                    at[k], best = int(means.argmax()), float(means.max())
            if best == before:
                break
        return choice._replace(prices=tried[at], score=best)

    def _moved(self, fold: FoldPaths, at: np.ndarray, k: int, tables: Any) -> np.ndarray:
        """The scores of a fold where class k has any of the candidates, the others theirs."""
        places, values = tables[fold.number]
        several = np.arange(len(at))
        moved = np.repeat(values[:, at, several][:, None, :], _CANDIDATES + 1, axis=1)
        moved[:, :, k] = values[:, :, k]
        s = [np.full(_CANDIDATES + 1, places[j][at[j]]) for j in several]
        s[k] = places[k]
        return fold.judged(self.search, moved, s)

    def end_for_all_rows(self, index: int, *, whole: bool) -> dict[str, float]:
        """How far the path of all rows has to go: as the folds', or just to the choice."""
        choice = self.pick(self.search.estimator.rule)
        if choice.prices is not None:
            price = float(choice.prices[index])
            if whole:
                price = max(price, float(self.curve.values(self.curve.high[-1])))
            ended = self.stop is None and whole and not self.short
            return {} if ended else {"penalty_min": 1.0 / price}
        if whole and self.stop is None and not self.short:
            return {}
        return {"s_max": float(self.curve.high[-1]) if whole else choice.place}


_AFTER = 1e-9  # relative: prices just after those at which a path moves on
_GAIN = 1e-9  # of a score: less is rounding


@dataclass(frozen=True)
class SearchedPaths:
    """What a search found.

    Attributes
    ----------
    scored : ScoredFolds
        The paths of the folds and their scores.
    paths : list of SolutionPath
        Those of all rows: one for two classes, otherwise each class against the rest.
    """

    scored: ScoredFolds
    paths: list[SolutionPath]

    def keep(self) -> Choice:
        """Give the estimator the point that its rule picks, and warn of paths that ended early."""
        scored = self.scored
        search = scored.search
        estimator = search.estimator
        choice = scored.pick(estimator.rule)
        places = scored.places(self.paths, choice)
        solutions = [
            path.solution_at(s, tol=float(estimator.tol))
            for path, s in zip(self.paths, places, strict=True)
        ]
        found = self._attributes(choice, places) | dict(search.kept)
        store_linear(estimator, search.data, solutions, found)
        self._warn(choice)
        warn_of_gaps([*scored.all_paths, *self.paths])
        return choice

    def is_cut(self, choice: Choice) -> bool:
        """Whether the time limit ended a path of a fold, or one of all rows before the choice."""
        missing = self.scored.missing > 0
        return missing or bool(self.scored.short) or self._ends_before(choice)

    def _ends_before(self, choice: Choice) -> bool:
        return any(
            path.stopped == "time_limit"
            and (
                path.s[-1] < choice.place
                if choice.prices is None
                else path.penalties[-1] * choice.prices[k] > 1
            )
            for k, path in enumerate(self.paths)
        )

    def _attributes(self, choice: Choice, places: list[float]) -> dict[str, Any]:
        """What `SparseSVCCV` keeps of the choice."""
        scored, several = self.scored, len(self.paths) > 1
        pairs = list(zip(self.paths, places, strict=True))
        prices = [path.knots.price(path.knots.segment(s)) for path, s in pairs]
        held_out = [scored.held_out(choice, k) for k in range(len(self.paths))]
        scores = np.column_stack(held_out) if several else held_out[0]
        found: dict[str, Any] = {
            "s_": np.array(places) if several else choice.place,
            "C_": np.array(prices) if several else prices[0],
            "paths_": self.paths,
            "best_index_": choice.row,
            "best_score_": choice.score,
            "cv_results_": scored.curve.results(),
            "oof_decision_function_": scores,
            "selection_frequency_": scored.selection_frequency(choice),
            "stopped_": "" if scored.stop is None else str(scored.stop),
        }
        search = scored.search
        found |= calibration_attributes(
            search.estimator.calibration,
            scores,
            search.data.codes,
            search.weights,
            [test for _, test in search.folds.splits],
        )
        return found if several else found | {"path_": self.paths[0]}

    def _warn(self, choice: Choice) -> None:
        """Warn where a limit cut paths short."""
        short, missing = self.scored.short, self.scored.missing
        if missing:
            warn(
                f"time_limit left no time for {missing} of the {missing + len(self.scored.folds)} "
                "folds; the choice was made by the others. Raise time_limit, or set max_features."
            )
        if short:
            warn(
                f"time_limit ended {len(short)} paths of the folds, the first at s = "
                f"{min(path.s[-1] for path in short):.3g}; the choice was made up to there. Raise "
                "time_limit, or set max_features."
            )
        if self._ends_before(choice):
            warn(
                "time_limit ended the path of all rows before the chosen place; the model is the "
                "last point that was reached. Raise time_limit, or set max_features."
            )
        if self.cut_while_rising:
            warn(
                f"max_features={self.scored.search.estimator.max_features} ended the paths where "
                f"the score was still rising, to {self.scored.best:.3f}. Raise it, or leave it out."
            )

    @property
    def cut_while_rising(self) -> bool:
        """Whether max_features ended the paths of the folds before the score came to its height."""
        many = any(path.stopped == "max_features" for path in self.scored.all_paths)
        return many and self.scored.curve.rises_at_the_end()


def _thinned(places: np.ndarray) -> np.ndarray:
    """No more than `_MOST_PLACES` of some places, evenly by their number, with both ends."""
    if len(places) <= _MOST_PLACES:
        return places
    return places[np.linspace(0, len(places) - 1, _MOST_PLACES).round().astype(np.intp)]


def _features_along(paths: Sequence[SolutionPath], s: np.ndarray) -> np.ndarray:
    """The numbers of features that some paths use together at every s."""
    knots = np.unique(np.concatenate([path.knots.s for path in paths]))
    middles = np.append(knots[:-1] + np.diff(knots) / 2, knots[-1])
    inside, at = _counted(paths, middles), _counted(paths, knots)
    place = np.clip(np.searchsorted(knots, s, side="right") - 1, 0, len(knots) - 1)
    return np.where(knots[place] == s, at[place], inside[place])


def _counted(paths: Sequence[SolutionPath], s: np.ndarray) -> np.ndarray:
    counts = np.empty(len(s))
    widest = max(int(path.n_nonzero.max()) for path in paths) * len(paths)
    for block in row_ranges(len(s), widest):
        counts[block] = np.diff(used_features(paths, s[block]).indptr)
    return counts


def _features_at(paths: Sequence[SolutionPath], prices: np.ndarray) -> np.ndarray:
    """The numbers of features that some paths use together at every C."""
    at = [knots_at(path, prices) for path in paths]
    rows, inverse = np.unique(np.column_stack(at), axis=0, return_inverse=True)
    total: sp.csr_array | None = None
    for path, knots in zip(paths, rows.T, strict=True):
        used = abs(path.knots.coefs)[knots]
        total = used if total is None else total + used
    assert total is not None
    return np.diff(total.indptr)[inverse.ravel()].astype(np.float64)


class _Stage(LinearClassifier):
    """A point of a fold's paths as a fitted classifier, for scorers."""

    def __init__(
        self,
        paths: Sequence[SolutionPath],
        s: Sequence[float],
        classes: np.ndarray,
        known: Matrix,
        scores: np.ndarray,
    ) -> None:
        self.classes_ = classes
        self.n_features_in_ = paths[0].n_features_in_
        pairs = zip(paths, s, strict=True)
        self.intercept_ = np.array(
            [np.interp(at, path.knots.s, path.knots.intercepts) for path, at in pairs]
        )
        self._paths, self._s, self._known, self._scores = paths, s, known, scores

    @cached_property
    def coef_(self) -> np.ndarray:
        """The coefficients, which few scorers ask for."""
        pairs = zip(self._paths, self._s, strict=True)
        return np.array([path.knots.solution(at)[0] for path, at in pairs])

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of X, which are at hand for the rows that were held out."""
        if X is not self._known:
            return super().decision_function(X)
        return self._scores[:, 0] if self._scores.shape[1] == 1 else self._scores
