"""The walk with C and the number of rounds chosen from one cross-validation table."""

from __future__ import annotations

import functools
import time
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from anynorm.design import Matrix
from anynorm.design.threads import on_cluster
from anynorm.estimators._cross_validation import (
    NEVER,
    Folds,
    SearchedClassifier,
    TableSearch,
    grid_of_C,
    mean_held_out,
    score_columns,
    scorer_of,
    standard_error,
    tolerance_of,
)
from anynorm.estimators._docs import documented_like
from anynorm.estimators._fitting import (
    Report,
    binary_problem,
    earlier,
    is_over,
    labels_of,
    limits,
    of_any,
    run_all,
)
from anynorm.estimators._linear_model import linear_scores
from anynorm.estimators._messages import say
from anynorm.estimators._ordered_labels import places_of
from anynorm.estimators._probabilities import CalibratedClassifier, calibration_attributes
from anynorm.estimators._spread import Moment, spread
from anynorm.estimators.checks.labels import Labelled, labelled
from anynorm.estimators.checks.parameters import seed
from anynorm.estimators.reweighted_svc import ReweightedSVC, store_walks
from anynorm.losses import Loss
from anynorm.problem.certificate import Certificate

if TYPE_CHECKING:
    from anynorm.solvers.linear import Round


_ENDS = 1e-4, 1e4  # of a grid of C that is given as a number
_FOLD_TOL = 10.0  # times tol: the gap of a walk in a fold


@documented_like(ReweightedSVC)
class ReweightedSVCCV(SearchedClassifier, CalibratedClassifier, ReweightedSVC):
    """`ReweightedSVC` with C and the number of rounds chosen by cross-validation.

    All rounds of a walk come with its last one, so the table over C and rounds costs one walk of
    `max_rounds` rounds per fold and C.  The model is then fitted to all rows.

    Parameters
    ----------
    Cs : int or array-like of float, default=10
        The values of C to try; an integer means that many, evenly spaced in the logarithm, from
        1e-4 to 1e4.
    max_rounds : int, default=10
        The most rounds to try; 1, 2, ... are all in the table.
    preprocessor : transformer or None, default=None
        What prepares X, e.g. ``StandardScaler()``, or a pipeline of transformers.  A clone is
        fitted to the training rows of each fold, and one more to all rows, with y, and with
        `sample_weight` where its `fit` takes that.  ``coef_`` and all else that counts features
        are then about those that it makes, and a scorer gets prepared rows.
    cv : int, splitter, iterable or None, default=5
        The folds, as in scikit-learn.  An integer, or None for 5, means stratified folds of
        shuffled rows, the same in every fit; where `fit` gets ``groups``, folds that keep the
        groups together.
    scoring : str, callable or None, default=None
        What to maximise: a scorer's name or a callable ``(estimator, X, y)``; None is accuracy.
        Where `sample_weight` is given, it counts in the score too.
    rule : {"best", "one_se", "fewest", "paper"}, default="best"
        How to choose from the table of mean scores; the first three as in `SparseSVCCV` and
        `SVCCV`.  "best": the highest; ties go to the smaller C, then to fewer rounds.  "one_se":
        the simplest within one standard error of the best, which is the one with the fewest
        features.  "fewest": the fewest features among the scores within `score_tolerance` of the
        best.  Ties of both go to fewer rounds, then to the smaller C.  "paper": for each number of
        rounds take the rounded-down median of the values of C that reach the best score there,
        then the number of rounds whose best score is highest, fewest at ties.
    score_tolerance : float or None, default=None
        How far below the best score ``rule="fewest"`` may go.  None: 0.01, or one standard error
        where that is more.
    prune, loss, fit_intercept, intercept_scaling, class_weight : as in `ReweightedSVC`
    calibration : {"sigmoid", "isotonic"} or None, default=None
        How `predict_proba` follows from the scores: by a sigmoid (Platt's method), or by a
        non-decreasing step function, which wants a thousand rows or more.  It is fitted to
        ``oof_decision_function_``; no probability is 0 or 1.  None: no probabilities.
    tol : float, default=1e-4
        The relative duality gap that each round of the model is solved to.  In the folds, where
        scores alone count, ten times as much will do; ``cv_results_["max_gap"]`` has what was
        reached.
    max_iter : as in `ReweightedSVC`
    time_limit : float or None, default=None
        The most seconds for everything together.
    n_jobs : int or None, default=None
        The number of threads that share the folds and values of C, then the classes.  The result
        does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the order in which a solver visits the rows, not the folds: those of an integer `cv`
        are fixed, others are the splitter's business.
    verbose : int, default=0
        1 prints a line for each fold and value of C.

    Attributes
    ----------
    preprocessor_ : transformer
        The `preprocessor` as fitted to all rows; predictions begin with it, and its
        ``get_feature_names_out`` names the features of the model.  Only where there is one.
    C_ : float
        The chosen C.
    n_rounds_ : int
        The chosen number of rounds.
    best_index_ : int
        The place of the choice in the table.
    best_score_ : float
        Its mean score over the folds.
    cv_results_ : dict of ndarrays
        The table, C by C and round by round: ``param_C``, ``param_n_rounds``, ``params``,
        ``split0_test_score``, ..., ``mean_test_score``, ``std_test_score``, ``rank_test_score``,
        ``mean_n_features``, ``max_gap`` (the largest certified gap among the folds) and
        ``mean_fit_time`` (of the walk as far as `max_rounds`).
    oof_decision_function_ : ndarray of shape (n,) or (n, K)
        The decision values of the choice for each row by the folds that held it out: their mean
        where there are several, NaN where there is none.
    oof_predict_proba_ : ndarray of shape (n, K)
        Probabilities of each row by a calibration that knew nothing of its fold; where there are
        more than ten folds, of its tenth of them.
    calibration_ : dict
        The function that makes probabilities of scores.
    coef_, intercept_, classes_, history_, certificate_, n_iter_, n_features_in_
        As in `ReweightedSVC`, of the fit to all rows with ``C_`` and ``n_rounds_``.
    feature_names_in_ : as in `ReweightedSVC`

    See Also
    --------
    ReweightedSVC : One C, one number of rounds.

    Notes
    -----
    The penalty compares coefficients, so features must be of about the same scale: `preprocessor`
    brings them there inside the folds, while a scaler in a pipeline around this estimator has seen
    the rows that the folds hold out.

    Examples
    --------
    >>> from anynorm import ReweightedSVCCV
    >>> from anynorm.datasets import make_relevant
    >>> X, y = make_relevant(n_relevant=4, random_state=0)
    >>> model = ReweightedSVCCV(Cs=[0.01, 0.1, 1.0], max_rounds=4).fit(X, y)
    >>> model.cv_results_["mean_test_score"].reshape(3, 4).shape
    (3, 4)
    >>> model.n_rounds_ > 1, len(model.history_) == model.n_rounds_
    (True, True)
    """

    _rules = ("best", "one_se", "fewest", "paper")
    _takes_chunks = True

    def __init__(
        self,
        Cs: Any = 10,
        *,
        max_rounds: int = 10,
        preprocessor: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        score_tolerance: float | None = None,
        prune: bool = True,
        loss: str | Loss = "hinge",
        fit_intercept: bool = True,
        intercept_scaling: float | None = None,
        class_weight: Any = None,
        calibration: str | None = None,
        tol: float = 1e-4,
        max_iter: int = 10_000,
        time_limit: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.Cs = Cs
        self.max_rounds = max_rounds
        self.preprocessor = preprocessor
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.score_tolerance = score_tolerance
        self.prune = prune
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.calibration = calibration
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _largest_C(self) -> float:
        return float(grid_of_C(self.Cs, *_ENDS)[-1])

    def _search(
        self, data: Any, y: Any, weights: Any, folds: Folds, kept: Any, began: float
    ) -> None:
        end = None if self.time_limit is None else began + float(self.time_limit)
        WalkSearch(self, data, y, weights, folds, scorer_of(self.scoring), end, kept=kept).fit()

    def _search_apart(self, X: Any, y: Any, sample_weight: Any, groups: Any, began: float) -> None:
        from anynorm.estimators._walks_apart import search_walks_apart  # which knows this class

        end = None if self.time_limit is None else began + float(self.time_limit)
        search_walks_apart(self, X, y, sample_weight, groups, end)

    def _model(self, C: float, n_rounds: int) -> ReweightedSVC:
        """The estimator of one cell."""
        shared = ReweightedSVC().get_params(deep=False).keys() & self.get_params(deep=False).keys()
        given = {name: getattr(self, name) for name in shared} | {"n_jobs": None, "verbose": 0}
        return ReweightedSVC(C=float(C), n_rounds=int(n_rounds), **given)


def choose(
    rule: str, scores: np.ndarray, features: np.ndarray, tolerance: float | None = None
) -> tuple[int, int]:
    """The cell (place of C, place of the round) that a rule of `ReweightedSVCCV` takes.

    `scores` and `features` are by C, which ascends, round and fold; `tolerance`, of "fewest", is
    as in `tolerance_of`.
    """
    mean = scores.mean(axis=2)
    best = mean.max()
    same = 1e-12 * max(1.0, abs(best))
    if rule == "paper":
        rounds = int(np.argmax(mean.max(axis=0) >= best - same))
        reach = np.flatnonzero(mean[:, rounds] >= mean[:, rounds].max() - same)
        return int(reach[(len(reach) - 1) // 2]), rounds
    if rule == "best":
        c, rounds = np.argwhere(mean >= best - same)[0]
        return int(c), int(rounds)
    top = scores[np.unravel_index(np.argmax(mean), mean.shape)]
    below = standard_error(top) if rule == "one_se" else tolerance_of(tolerance, top)
    cells = np.argwhere(mean >= best - below - same)
    used = features.mean(axis=2)
    c, rounds = min(cells.tolist(), key=lambda cell: (used[tuple(cell)], cell[1], cell[0]))
    return c, rounds


class _Part(NamedTuple):
    """Walks that share their work: those of a fold with the values of C in some places."""

    fold: int
    places: np.ndarray


def _cells_of(shared: tuple[WalkSearch, Moment], part: _Part) -> tuple[np.ndarray, ...]:
    """Scores, numbers of features, gaps, seconds and decision values of a part of the table."""
    given, deadline = shared
    search = copy(given)  # that of another task has tables of its own
    search._empty()
    search._fill_part(part, deadline.here, None)
    fold, places = part
    tables = (table[places, :, fold] for table in (search.scores, search.features, search.gaps))
    return *tables, search.seconds[places, fold], search._held_out[fold][places]


@dataclass
class WalkSearch(TableSearch):
    """Scores, numbers of features, gaps and times over C x rounds x folds, and the choice."""

    def fit(self) -> ReweightedSVCCV:
        """Fill the table of the estimator, choose from it and fit to all rows."""
        estimator, self.grid = self.estimator, grid_of_C(self.estimator.Cs, *_ENDS)
        self.tol = _FOLD_TOL * float(estimator.tol)
        self.fill()
        chosen, rounds = choose(
            estimator.rule, self.scores, self.features, estimator.score_tolerance
        )
        data, walks = self.of_all_rows(estimator._model(self.grid[chosen], rounds + 1))
        found: dict[str, Any] = {
            "C_": float(self.grid[chosen]),
            "n_rounds_": rounds + 1,
            "best_index_": chosen * int(estimator.max_rounds) + rounds,
            "best_score_": float(self.scores[chosen, rounds].mean()),
            "cv_results_": self.results(),
            "oof_decision_function_": self.held_out(chosen, rounds),
        }
        found |= calibration_attributes(
            estimator.calibration,
            found["oof_decision_function_"],
            self.data.codes,
            self.weights,
            [test for _, test in self.folds.splits],
        )
        return store_walks(estimator, data, walks, found | dict(self.kept))

    def of_all_rows(self, model: ReweightedSVC) -> tuple[Labelled, Sequence[Any]]:
        """All rows as the model sees them, and the walks of its binary problems."""
        data = labelled(model, self.data.X, self.y, self.weights, self.data.feature_names)
        return data, model._walks(data, self.end, of_any(self.report))

    def empty_table(self) -> tuple[int, int, int]:
        """Make room for a number for each C, round and fold, and return how many there are."""
        shape = (len(self.grid), int(self.estimator.max_rounds), len(self.folds.splits))
        self.scores, self.features, self.gaps = np.empty(shape), np.empty(shape), np.empty(shape)
        self.seconds = np.empty((shape[0], shape[2]))
        return shape

    def _empty(self) -> tuple[int, int, int]:
        """The same, and for the decision values of the rows left out."""
        shape = self.empty_table()
        width = () if self.data.n_problems == 1 else (self.data.n_problems,)
        self._held_out = [
            np.full((*shape[:2], len(test), *width), NEVER) for _, test in self.folds.splits
        ]
        return shape

    def fill(self) -> None:
        """Walk in every fold with every C, one after the other where they share their work."""
        from anynorm.solvers.linear import shared_over_C  # Numba: for those who fit, not predict

        shape, model = self._empty(), self.estimator._model(self.grid[0], 1)
        data = labelled(model, self.data.X, self.y, self.weights, self.data.feature_names)
        shared = shared_over_C(binary_problem(model, data, 0), self.tol)
        chains = np.split(np.arange(shape[0]), [] if shared else np.arange(1, shape[0]))

        # The model of all rows gets as much time as a fold.
        end = earlier(self.end, 1.0 / (shape[2] + 1))
        parts = [_Part(fold, places) for fold in range(shape[2]) for places in chains]
        if on_cluster(self.estimator.n_jobs):
            self._fill_apart(parts, end)
            return
        run_all(
            len(parts),
            lambda task, progress: self._fill_part(parts[task], end, progress),
            report=of_any(self.report),
        )

    def _fill_part(self, part: _Part, end: float | None, progress: Report | None) -> None:
        """Walk in one fold with some values of C, where there is time."""
        if is_over(end):
            self._stay(part.fold, part.places)
        else:
            self._walk(part.fold, part.places, end, progress)

    def _fill_apart(self, parts: list[_Part], end: float | None) -> None:
        """The same on the workers of a cluster, each part into a table of its own."""
        alone = self.without_listeners()
        alone.grid, alone.tol = self.grid, self.tol
        found = spread(_cells_of, (alone, Moment.of(end)), parts)
        for (fold, places), cells in zip(parts, found, strict=True):
            self.scores[places, :, fold], self.features[places, :, fold] = cells[:2]
            self.gaps[places, :, fold], self.seconds[places, fold] = cells[2:4]
            self._held_out[fold][places] = cells[4]
            for c in places:
                self._print(fold, c)
                if self.on_fit is not None:
                    self.on_fit(float(self.gaps[c, -1, fold]))

    def _stay(self, fold: int, places: np.ndarray) -> None:
        """Enter, for walks that there is no time for, the model without features."""
        train, test = self.folds.splits[fold]
        counts = np.bincount(self.data.codes[train], self.weights_of(train))
        most, classes = int(counts.argmax()), self.data.classes
        self.gaps[places, :, fold], self.features[places, :, fold] = 1.0, 0.0
        self.seconds[places, fold] = 0.0
        if self.on_fit is not None:
            for _ in places:
                self.on_fit(1.0)
        signs = -np.ones(len(classes))
        signs[most] = 1.0
        signs = signs[1:] if len(classes) == 2 else signs
        self.hold_constant(fold, places, signs)
        if self.scorer is None:
            right = np.average(self.y[test] == classes[most], weights=self.weights_of(test))
            self.scores[places, :, fold] = right
            return
        X = self.folds.test(fold)
        nothing = np.zeros((len(signs), X.shape[1]))
        self.scores[places, :, fold] = self._score(nothing, signs, classes, X, test)

    def _walk(
        self, fold: int, places: np.ndarray, end: float | None, progress: Report | None
    ) -> None:
        """The walks of one fold for the Cs in these places."""
        from anynorm.solvers.linear import walk_over_C

        began = time.perf_counter()
        train, _ = self.folds.splits[fold]
        model = self.estimator._model(self.grid[places[0]], int(self.estimator.max_rounds))
        data = labelled(model, self.folds.train(fold), self.y[train], self.weights_of(train))
        held_out = self.folds.test(fold)
        walks = walk_over_C(
            [binary_problem(model, data, index) for index in range(data.n_problems)],
            self.grid[places].tolist(),
            n_rounds=int(model.n_rounds),
            prune=bool(model.prune),
            **limits(model, end) | {"tol": self.tol},
            seed=seed(model.random_state),
            progress=progress,
        )
        last: list[list[Round]] = []
        for c, found in zip(places, walks, strict=True):
            if last and all(_same(*walks) for walks in zip(last, found, strict=True)):
                self.scores[c, :, fold] = self.scores[c - 1, :, fold]
                self.features[c, :, fold] = self.features[c - 1, :, fold]
                self._held_out[fold][c] = self._held_out[fold][c - 1]
            else:
                self._enter(fold, c, found, data.classes, held_out)
            self.gaps[c, :, fold] = [
                Certificate.combine([part.certificate for part in parts]).gap
                for parts in zip(*found, strict=True)
            ]
            self.seconds[c, fold] = time.perf_counter() - began
            self._print(fold, c)
            if self.on_fit is not None:
                self.on_fit(float(self.gaps[c, -1, fold]))
            last, began = found, time.perf_counter()

    def _enter(
        self, fold: int, c: int, walks: list[list[Round]], classes: np.ndarray, X: Matrix
    ) -> None:
        """Score the rounds of a fold and a C on the rows that were left out."""
        intercepts = np.array([[part.intercept for part in rounds] for rounds in walks]).T
        rounds = [[part.coef for part in parts] for parts in zip(*walks, strict=True)]
        used = [np.count_nonzero(functools.reduce(np.logical_or, coefs)) for coefs in rounds]
        self.features[c, :, fold] = used
        # One column each: products with sparse rows would copy the transpose.
        table = np.stack([coef for coefs in rounds for coef in coefs], axis=1)
        test = self.folds.splits[fold][1]
        scores = linear_scores(X, table.T, intercepts.ravel()).reshape(len(test), *intercepts.shape)
        self._hold(fold, c, scores, classes)
        if self.scorer is not None:
            coefs = table.T.reshape(*intercepts.shape, -1)
            for number, (coef, intercept) in enumerate(zip(coefs, intercepts, strict=True)):
                score = self._score(coef, intercept, classes, X, test)
                self.scores[c, number, fold] = score
            return
        scores = scores[:, :, 0] if len(walks) == 1 else scores
        labels = [labels_of(scores[:, number], classes) for number in range(len(intercepts))]
        right = np.stack(labels, axis=1) == self.y[test][:, None]
        self.scores[c, :, fold] = np.average(right, axis=0, weights=self.weights_of(test))

    def hold_constant(self, fold: int, places: np.ndarray, signs: np.ndarray) -> None:
        """Keep the same scores, by class, of all rows left out."""
        self._held_out[fold][places] = signs[0] if len(signs) == 1 else signs

    def _hold(self, fold: int, c: int, scores: np.ndarray, classes: np.ndarray) -> None:
        """Keep scores of shape (rows, rounds, classes against the rest) of the rows left out."""
        found = by_all_classes(scores.swapaxes(0, 1), classes, self.data.classes)
        self._held_out[fold][c] = found

    def held_out(self, c: int, rounds: int) -> np.ndarray:
        """The decision values of a cell for all rows, by the folds that held them out."""
        parts = [held_out[c, rounds] for held_out in self._held_out]
        return mean_held_out(self.folds.splits, parts, len(self.y))

    def _print(self, fold: int, c: int) -> None:
        if self.estimator.verbose:
            best = int(np.argmax(self.scores[c, :, fold]))
            say(
                f"{type(self.estimator).__name__}: fold {fold + 1} of {len(self.folds.splits)}, "
                f"C={self.grid[c]:g}: score {self.scores[c, best, fold]:.4g} in round {best + 1}, "
                f"{self.seconds[c, fold]:.2f} s"
            )

    def _score(
        self,
        coef: np.ndarray,
        intercept: np.ndarray,
        classes: np.ndarray,
        X: Matrix,
        test: np.ndarray,
    ) -> float:
        """What the scorer makes of one round."""
        weights = self.weights_of(test)
        given = {} if weights is None else {"sample_weight": weights}
        stage = ReweightedSVC()  # the round as a fitted classifier
        stage.coef_, stage.intercept_, stage.classes_ = coef, intercept, classes
        stage.n_features_in_ = X.shape[1]
        return float(self.scorer(stage, X, self.y[test], **given))

    def results(self) -> dict[str, Any]:
        """The table as scikit-learn's searches present theirs."""
        n_grid, n_rounds, n_folds = self.scores.shape
        Cs, rounds = np.repeat(self.grid, n_rounds), np.tile(np.arange(1, n_rounds + 1), n_grid)
        params = zip(Cs.tolist(), rounds.tolist(), strict=True)
        return {
            "param_C": Cs,
            "param_n_rounds": rounds,
            "params": [{"C": C, "n_rounds": number} for C, number in params],
            **score_columns(self.scores.reshape(-1, n_folds), self.features.reshape(-1, n_folds)),
            "max_gap": self.gaps.reshape(-1, n_folds).max(axis=1),
            "mean_fit_time": np.repeat(self.seconds.mean(axis=1), n_rounds),
        }


def by_all_classes(scores: np.ndarray, classes: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Scores of shape (..., classes against the rest) of a fold, by all classes that are known.

    The last axis is gone where these are two.
    """
    if len(known) == 2:
        return scores[..., 0]
    both = np.concatenate([-scores, scores], axis=-1) if len(classes) == 2 else scores
    found = np.full((*scores.shape[:-1], len(known)), NEVER)
    found[..., places_of(classes, known)] = both
    return found


def _same(one: list[Round], other: list[Round]) -> bool:
    """Whether two walks are the same model by model, because one C's rounds are another's too."""
    return all(a.coef is b.coef for a, b in zip(one, other, strict=True))
