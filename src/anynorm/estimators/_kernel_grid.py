"""Cross-validation over kernels, widths, budgets and C: each kernel matrix is made once.

A fold is the problem of all rows in which those held out have the weight 0.  So the folds of one
matrix share the rows of its kernel, and the values of C of a fold start from each other
(`solvers/kernel/family.py`).  Folds that are prepared apart, as those of the command, have a kernel
each, which their values of C share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from anynorm.design import Matrix, design_of
from anynorm.design.far_columns import far_means
from anynorm.design.limits import MEGABYTE, ROUNDING
from anynorm.design.threads import allowed, run
from anynorm.estimators._cross_validation import (
    NEVER,
    Folds,
    SlicedFolds,
    mean_held_out,
    score_columns,
    standard_error,
    tolerance_of,
)
from anynorm.estimators._fitting import Report, earlier, is_over, labels_of
from anynorm.estimators._kernel_model import (
    KernelClassifier,
    kernel_gram,
    kernel_problems,
    solve_kernels,
    store_kernel,
)
from anynorm.estimators._messages import say, warn
from anynorm.estimators._probabilities import calibration_attributes
from anynorm.estimators.checks.labels import Labelled, labelled
from anynorm.estimators.checks.matrices import known_matrix
from anynorm.kernels import Kernel, kernel_of
from anynorm.kernels.gamma import resolve_gamma
from anynorm.kernels.gram import Gram
from anynorm.norms.dual_sets import Box, BudgetBox
from anynorm.problem import Problem
from anynorm.problem.certificate import Certificate
from anynorm.problem.solution import Status

if TYPE_CHECKING:
    from anynorm.solvers.kernel import Chain, KernelRows, Member

_LEAST_C, _MOST_C = 1e-2, 1e3  # of a grid that is given as a number
_WIDEST = 16.0  # times "scale", and one over it: the ends of the gammas given as a number
_FIRST_STAGE = 0.4  # of the folds, by which hopeless settings are seen
_AT_MOST_ONE = (None, "accuracy", "balanced_accuracy", "roc_auc", "f1", "f1_macro")  # as scores
SKIPPED = "skipped"  # the status of settings that were left out


class Candidate(NamedTuple):
    """A kernel to try: as it was given, its gamma if that is searched, and with all its numbers."""

    given: Any
    gamma: float | None
    kernel: Kernel


class Setting(NamedTuple):
    """What is tried with every kernel."""

    budget: float | None
    C: float


def grid_of_C(Cs: Any) -> np.ndarray:
    """The values of C that the parameter `Cs` asks for, ascending."""
    if np.ndim(Cs) == 0:
        return np.geomspace(_LEAST_C, _MOST_C, int(Cs)) if int(Cs) > 1 else np.ones(1)
    return np.unique(np.asarray(Cs, dtype=np.float64))


def grid_of_gamma(gammas: Any, X: Matrix, weights: np.ndarray | None) -> np.ndarray:
    """The values of gamma that the parameter `gammas` asks for, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._kernel_grid import grid_of_gamma
    >>> X = np.array([[1.0], [-1.0]])
    >>> grid_of_gamma(3, X, None), grid_of_gamma(["scale", 0.5], X, None)
    (array([ 0.0625,  1.    , 16.    ]), array([0.5, 1. ]))
    """
    if np.ndim(gammas) == 0 and not isinstance(gammas, str):
        scale, count = resolve_gamma("scale", X, weights), int(gammas)
        return scale * (np.geomspace(1 / _WIDEST, _WIDEST, count) if count > 1 else np.ones(1))
    given = [gammas] if isinstance(gammas, str) else list(gammas)
    return np.unique([resolve_gamma(gamma, X, weights) for gamma in given])


def kernels_to_try(estimator: Any, X: Matrix, weights: np.ndarray | None) -> list[Candidate]:
    """The kernels of an `SVCCV`, each with every gamma that it is to have."""
    found = []
    for given in given_kernels(estimator.kernel):
        settings = {"degree": estimator.degree, "coef0": float(estimator.coef0)}
        if isinstance(given, str) and "gamma" in kernel_of(given).get_params():
            for gamma in grid_of_gamma(estimator.gammas, X, weights).tolist():
                kernel = kernel_of(given, gamma=gamma, **settings)
                found.append(Candidate(given, gamma, kernel))
        else:
            found.append(Candidate(given, None, kernel_of(given, **settings).resolved(X, weights)))
    return found


def given_budgets(budget: Any) -> list[Any]:
    """The budgets that the parameter names: one, those of a list, or [None] for none."""
    several = isinstance(budget, list | tuple | np.ndarray)
    return list(budget) if several else [budget]


def given_kernels(kernel: Any) -> list[Any]:
    """The kernels that the parameter names: one, or those of a list."""
    return list(kernel) if isinstance(kernel, list | tuple) else [kernel]


def choose(
    rule: str, scores: np.ndarray, sizes: np.ndarray, order: Sequence[int], tolerance: float | None
) -> int:
    """The setting that a rule of `SVCCV` takes.

    Parameters
    ----------
    rule : {"best", "one_se", "fewest"}
        "best" takes the highest mean score, "one_se" the simplest within one standard error of it,
        "fewest" the fewest support vectors within `tolerance` of it (None as in `tolerance_of`).
    scores, sizes : ndarray of shape (m, folds)
        Scores and numbers of support vectors; NaN where a setting was left out.
    order : sequence of int
        All settings, the simplest first: what is as good comes first.
    tolerance : float or None
        Of the scores.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._kernel_grid import choose
    >>> scores = np.array([[0.7, 0.8], [0.9, 0.7], [0.8, 0.8]])
    >>> sizes = np.array([[9, 9], [5, 5], [7, 7]])
    >>> [choose(rule, scores, sizes, [0, 1, 2], 0.1) for rule in ("best", "one_se", "fewest")]
    [1, 0, 1]
    """
    mean = np.where(np.isnan(scores).any(axis=1), -np.inf, scores.mean(axis=1))
    same = ROUNDING * max(1.0, float(np.abs(mean[np.isfinite(mean)]).max()))
    order = [place for place in order if np.isfinite(mean[place])]
    best = float(mean.max())
    good = [place for place in order if mean[place] >= best - same]
    if rule == "one_se":
        enough = best - standard_error(scores[good[0]]) - same
        return next(place for place in order if mean[place] >= enough)
    if rule == "fewest":
        enough = best - tolerance_of(tolerance, scores[good[0]]) - same
        return min(
            (place for place in order if mean[place] >= enough),
            key=lambda place: float(sizes[place].mean()),
        )
    return good[0]


@dataclass(frozen=True)
class Ground:
    """Rows that folds have in common, and where in them each fold learns and is judged."""

    X: Matrix
    folds: list[int]
    train: list[np.ndarray]
    test: list[np.ndarray]

    @classmethod
    def all_of(cls, folds: Folds) -> list[Ground]:
        """One ground where all folds are rows of one matrix, otherwise one for each."""
        if isinstance(folds, SlicedFolds):
            splits = folds.splits
            every = list(range(len(splits)))
            return [cls(folds.rows, every, [s[0] for s in splits], [s[1] for s in splits])]
        return [cls._apart(folds, fold) for fold in range(len(folds.splits))]

    @classmethod
    def _apart(cls, folds: Folds, fold: int) -> Ground:
        train, test = folds.train(fold), folds.test(fold)
        stacked: Any = (
            sp.vstack([train, test], format="csr")
            if sp.issparse(train)
            else np.vstack([train, test])
        )
        first = np.arange(train.shape[0])
        return cls(stacked, [fold], [first], [len(first) + np.arange(test.shape[0])])


@dataclass
class KernelGrid:
    """Scores, numbers of support vectors and gaps over kernels, settings and folds; the choice.

    The `cv`, `scoring` and `time_limit` of the estimator are not looked at.  `weights` are without
    those of the classes; a `scorer` of None is the accuracy.  `report` is called with the progress
    of every fit, `on_fit` with the gap of every fit of a fold when it is done.
    """

    estimator: Any
    data: Labelled
    y: np.ndarray
    weights: np.ndarray | None
    folds: Folds
    scorer: Any
    end: float | None
    report: Report | None = None
    on_fit: Callable[[float], None] | None = None
    kernels: list[Candidate] = field(init=False)
    settings: list[Setting] = field(init=False)

    def __post_init__(self) -> None:
        estimator = self.estimator
        self.kernels = kernels_to_try(estimator, self.data.X, self.weights)
        budgets, Cs = given_budgets(estimator.budget), grid_of_C(estimator.Cs).tolist()
        self.settings = [Setting(budget, C) for budget, C in product(budgets, Cs)]
        shape = (len(self.kernels), len(self.settings), len(self.folds.splits))
        self.scores, self.sizes = np.full(shape, np.nan), np.full(shape, np.nan)
        self.gaps, self.seconds = np.full(shape, np.nan), np.zeros(shape)
        self.status = np.full(shape, SKIPPED, dtype=object)
        width = () if self.data.n_problems == 1 else (self.data.n_problems,)
        self._held_out = [
            np.full((*shape[:2], len(test), *width), np.nan) for _, test in self.folds.splits
        ]
        self._buffers: dict[int, Any] = {}

    def fit(self) -> Any:
        """Fill the table, choose from it and fit the choice to all rows."""
        self.fill()
        place, setting = divmod(self.pick(self.estimator.rule), len(self.settings))
        return self._keep(place, setting)

    def fill(self) -> None:
        """Fit every setting of every kernel in every fold, but for those that are hopeless."""
        grounds = Ground.all_of(self.folds)
        # The model of all rows gets as much time as a fold.
        end = earlier(self.end, 1.0 / (len(self.folds.splits) + 1))
        for count, place in enumerate(self._order()):
            if count and is_over(end):
                break
            run(partial(self._solve_ground, place, grounds, end), len(grounds))

    def _solve_ground(
        self, place: int, grounds: list[Ground], end: float | None, number: int
    ) -> None:
        """Fit the settings of a kernel in the folds of one of the grounds."""
        from anynorm.solvers.kernel import KernelRows, before_scores  # Numba: for those who fit

        ground = grounds[number]
        gram = kernel_gram(ground.X, self.kernels[place].kernel)
        n_chains = len(ground.folds) * self.data.n_problems
        rows = None
        if not is_over(before_scores(gram, end)):
            rows = KernelRows(
                gram,
                int(float(self.estimator.cache_size) * MEGABYTE) // len(grounds),
                sharers=n_chains,
                holders=min(n_chains, allowed()),
                spare=self._buffers.get(number),
            )
            self._buffers[number] = rows.buffer
        for folds in self._stages() if len(grounds) == 1 else [ground.folds]:
            settings = self._settings_with_hope(place)
            if settings:
                self._solve(place, ground, gram, rows, folds, settings, end)

    def _order(self) -> list[int]:
        """The kernels, those of a middling gamma first: they are the likely ones."""
        found = []
        for given in dict.fromkeys(id(candidate.given) for candidate in self.kernels):
            own = [k for k, candidate in enumerate(self.kernels) if id(candidate.given) == given]
            middle = (len(own) - 1) / 2
            found += [own[k] for k in sorted(range(len(own)), key=lambda k: abs(k - middle))]
        return found

    def _stages(self) -> list[list[int]]:
        """Folds that are solved together; hopeless settings are looked for after the first."""
        n_folds = len(self.folds.splits)
        first = math.ceil(_FIRST_STAGE * n_folds)
        every = list(range(n_folds))
        if not self._may_skip or first in (0, n_folds):
            return [every]
        return [every[:first], every[first:]]

    @cached_property
    def _may_skip(self) -> bool:
        """Whether a score that is out of reach cannot be the choice of the rule.

        The standard error of "one_se", or of a tolerance that is one, is that of a setting which
        is not known yet.
        """
        estimator = self.estimator
        bounded = estimator.scoring in _AT_MOST_ONE if _is_name(estimator.scoring) else False
        by_error = estimator.rule == "one_se" or (
            estimator.rule == "fewest" and estimator.score_tolerance is None
        )
        return bool(estimator.stop_early) and bounded and not by_error

    def _settings_with_hope(self, place: int) -> list[int]:
        """All settings but the last ones that perfect scores in all other folds would not save.

        Those in between are what the next ones start from.
        """
        every = list(range(len(self.settings)))
        whole = ~np.isnan(self.scores).any(axis=2)
        if not self._may_skip or not whole.any():
            return every
        tolerance = float(self.estimator.score_tolerance) if self.estimator.rule == "fewest" else 0
        enough = float(self.scores[whole].mean(axis=1).max()) - tolerance - ROUNDING
        known = self.scores[place]
        at_most = np.where(np.isnan(known), 1.0, known).mean(axis=1)
        return every[: int(np.max(np.flatnonzero(at_most >= enough), initial=-1)) + 1]

    def _solve(
        self,
        place: int,
        ground: Ground,
        gram: Gram,
        rows: KernelRows | None,
        folds: Sequence[int],
        settings: list[int],
        end: float | None,
    ) -> None:
        """Fit some settings of a kernel in some folds of a ground."""
        from anynorm.solvers.kernel import Limits, solve_family
        from anynorm.solvers.linear import solve_linear

        estimator, began = self.estimator, time.perf_counter()
        tried = [self.settings[s] for s in settings]
        fits = [_FoldFit(self, ground, fold, gram, tried) for fold in folds]
        chains = [chain for fit in fits for chain in fit.chains]
        members = iter(
            solve_family(
                chains,
                gram,
                rows,
                Limits(float(estimator.tol), int(estimator.max_iter), end),
                solve_features=solve_linear,
                progress=self.report,
            )
        )
        for fit in fits:
            own = [next(members) for _ in fit.chains]
            for k, setting in enumerate(settings):
                self._enter(place, setting, fit, [found[k] for found in own])
        seconds = (time.perf_counter() - began) / (len(folds) * len(settings))
        self.seconds[np.ix_([place], settings, list(folds))] = seconds
        self._print(place, folds, settings)

    def _enter(self, place: int, setting: int, fit: _FoldFit, members: list[Member]) -> None:
        """Put a fit into the table."""
        cell, certificates = (place, setting, fit.fold), []
        scores = np.full((len(fit.test), self.data.n_problems), NEVER)
        used = np.zeros(fit.ground.X.shape[0], dtype=bool)
        for index, chain, member in zip(fit.problems, fit.chains, members, strict=True):
            solution = member.solution
            scores[:, index] = member.scores[fit.test] + solution.intercept
            rows = slice(None) if chain.rows is None else chain.rows
            used[rows] |= solution.coef != 0
            certificates.append(solution.certificate)
        certificate = Certificate.combine(certificates)
        self.gaps[cell], self.status[cell] = certificate.gap, certificate.status.value
        self.sizes[cell] = np.count_nonzero(used)
        scores = scores[:, 0] if scores.shape[1] == 1 else scores
        held_out = self.folds.splits[fit.fold][1]
        self._held_out[fit.fold][place, setting] = scores
        self.scores[cell] = self._score(fit, members, scores, held_out)
        if self.on_fit is not None:
            self.on_fit(float(certificate.gap))

    def _score(
        self, fit: _FoldFit, members: list[Member], scores: np.ndarray, held_out: np.ndarray
    ) -> float:
        weights = self.weights_of(held_out)
        if weights is not None and not weights.any():
            raise ValueError(
                f"sample_weight is zero for all rows that fold {fit.fold + 1} of cv holds out. Use "
                "fewer folds, or folds that spread the rows of positive weight."
            )
        y = self.y[held_out]
        if self.scorer is None:
            right = labels_of(scores, self.data.classes) == y
            return float(np.average(right, weights=weights))
        given = {} if weights is None else {"sample_weight": weights}
        found = float(self.scorer(_FoldStage(self, fit, members, scores), fit.X_test, y, **given))
        if not math.isfinite(found):
            raise ValueError(
                "scoring gives no finite number for some fold. Choose another, or folds that hold "
                "out rows of every class."
            )
        return found

    def weights_of(self, rows: np.ndarray) -> np.ndarray | None:
        """The weights of some rows."""
        return None if self.weights is None else self.weights[rows]

    def _print(self, place: int, folds: Sequence[int], settings: list[int]) -> None:
        if not self.estimator.verbose:
            return
        cells = np.ix_([place], settings, list(folds))
        best = float(self.scores[cells].mean(axis=2).max())
        say(
            f"{type(self.estimator).__name__}: {self.kernels[place].kernel}, folds "
            f"{folds[0] + 1} to {folds[-1] + 1} of {len(self.folds.splits)}: "
            f"{len(settings)} settings, best score {best:.4g}, largest gap "
            f"{np.nanmax(self.gaps[cells], initial=0.0):.1e}, {self.seconds[cells].sum():.2f} s"
        )

    def pick(self, rule: str) -> int:
        """The place in the table that a rule takes."""
        n_folds = self.scores.shape[2]
        return choose(
            rule,
            self.scores.reshape(-1, n_folds),
            self.sizes.reshape(-1, n_folds),
            self._simplest_first(),
            self.estimator.score_tolerance,
        )

    def _simplest_first(self) -> list[int]:
        """All settings: the smaller budget, then the smaller C, the smaller gamma."""
        m = len(self.settings)
        return sorted(
            range(len(self.kernels) * m),
            key=lambda k: (
                self.settings[k % m].budget or 0.0,
                self.settings[k % m].C,
                k // m,
            ),
        )

    def held_out(self, place: int, setting: int) -> np.ndarray:
        """The decision values of all rows by the folds that held them out, NaN where none did."""
        parts = [held_out[place, setting] for held_out in self._held_out]
        return mean_held_out(self.folds.splits, parts, len(self.y))

    def _keep(self, place: int, setting: int) -> Any:
        """Fit the choice to all rows and give it all to the estimator."""
        estimator, kernel = self.estimator, self.kernels[place]
        budget, C = self.settings[setting]
        self._buffers.clear()
        data = labelled(estimator, self.data.X, self.y, self.weights, self.data.feature_names, C=C)
        gram = kernel_gram(data.X, kernel.kernel)
        problems = kernel_problems(data, gram, estimator._loss_for(budget, data), C)
        starts: list[np.ndarray | None] = [None] * len(problems)
        solutions = solve_kernels(_Silent(estimator), data, problems, self.end, starts)
        found: dict[str, Any] = {
            "kernel_": kernel.given,
            "C_": C,
            **({} if kernel.gamma is None else {"gamma_": kernel.gamma}),
            **({} if budget is None else {"budget_": budget}),
            "best_index_": place * len(self.settings) + setting,
            "best_score_": float(self.scores[place, setting].mean()),
            "best_params_": self._params(kernel, self.settings[setting]),
            "cv_results_": self.results(),
            "oof_decision_function_": self.held_out(place, setting),
        }
        found |= calibration_attributes(
            estimator.calibration,
            found["oof_decision_function_"],
            self.data.codes,
            self.weights,
            [test for _, test in self.folds.splits],
        )
        store_kernel(estimator, data, gram, solutions, found)
        late = np.count_nonzero((self.status == Status.TIME_LIMIT.value).any(axis=2))
        left = np.count_nonzero((self.status == SKIPPED).all(axis=2))
        if late or left:
            warn(
                f"time_limit ended the search: {late} settings were fitted in haste, {left} not at "
                "all; the choice is among the others. Raise time_limit, or try fewer settings."
            )
        return estimator

    def _params(self, kernel: Candidate, setting: Setting) -> dict[str, Any]:
        several = len(given_kernels(self.estimator.kernel)) > 1
        return {
            **({"kernel": kernel.given} if several else {}),
            **({} if kernel.gamma is None else {"gamma": kernel.gamma}),
            **({} if setting.budget is None else {"budget": setting.budget}),
            "C": setting.C,
        }

    def results(self) -> dict[str, Any]:
        """The table as scikit-learn's searches present theirs."""
        n_folds = self.scores.shape[2]
        cells = list(product(self.kernels, self.settings))
        params = [self._params(*cell) for cell in cells]
        names = dict.fromkeys(name for each in params for name in each)
        columns = {f"param_{name}": _column([each.get(name) for each in params]) for name in names}
        scores, sizes = self.scores.reshape(-1, n_folds), self.sizes.reshape(-1, n_folds)
        status, gaps = self.status.reshape(-1, n_folds), self.gaps.reshape(-1, n_folds)
        return {
            **columns,
            "params": params,
            **score_columns(scores, sizes, "n_support"),
            **{f"split{k}_gap": gaps[:, k] for k in range(n_folds)},
            **{f"split{k}_status": status[:, k].astype(str) for k in range(n_folds)},
            "max_gap": np.where(np.isnan(gaps).all(axis=1), np.nan, np.fmax.reduce(gaps, axis=1)),
            "mean_fit_time": self.seconds.reshape(-1, n_folds).mean(axis=1),
        }


class _Silent:
    """The estimator's limits for the fit to all rows, of which the search has said enough."""

    def __init__(self, estimator: Any) -> None:
        self.tol, self.max_iter = estimator.tol, estimator.max_iter
        self.cache_size, self.verbose = estimator.cache_size, 0


def _is_name(scoring: Any) -> bool:
    return scoring is None or isinstance(scoring, str)


def _column(values: list[Any]) -> np.ndarray:
    """A column of ``cv_results_``: numbers, or objects where not all are."""
    if all(isinstance(value, int | float) for value in values):
        return np.array(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


class _FoldFit:
    """The problems of one fold: a chain of settings for each class that has rows in it."""

    def __init__(
        self, grid: KernelGrid, ground: Ground, fold: int, gram: Gram, settings: list[Setting]
    ) -> None:
        self.ground, self.fold, self.gram = ground, fold, gram
        own = ground.folds.index(fold)
        self.train, self.test = ground.train[own], ground.test[own]
        rows = grid.folds.splits[fold][0]
        nothing = np.broadcast_to(0.0, (len(rows), 1))  # the labels alone are looked at
        self.data = labelled(
            grid.estimator, nothing, grid.y[rows], grid.weights_of(rows), C=grid.settings[-1].C
        )
        losses = [grid.estimator._loss_for(setting.budget, self.data) for setting in settings]
        tried = list(zip(settings, losses, strict=True))
        self.problems: list[int] = []
        self.chains: list[Chain] = []
        for index in range(grid.data.n_problems):
            signs = np.where(grid.data.codes[rows] == grid.data.positive(index), 1.0, -1.0)
            counted = signs if self.data.weights is None else signs[self.data.weights > 0]
            if len(np.unique(counted)) == 2:
                self.problems.append(index)
                self.chains.append(self._chain(signs, tried))

    def _chain(self, signs: np.ndarray, tried: list[tuple[Setting, Any]]) -> Chain:
        """All rows, those held out with the weight 0; rows to learn from, if that cannot be.

        Block SMO does not see variables that are fixed at 0; other methods, and norms without a
        weighted form, are better off without them.
        """
        from anynorm.solvers.kernel import Chain

        y, weights = np.full(self.gram.n, -1.0), np.zeros(self.gram.n)
        y[self.train] = signs
        weights[self.train] = 1.0 if self.data.weights is None else self.data.weights
        gram, rows = self.gram, None
        given: np.ndarray | None = weights
        if not _has_box(Problem(y=y, C=1.0, loss=tried[0][1], gram=gram, sample_weight=weights)):
            y, gram, rows, given = signs, self._part, self.train, self.data.weights
        problems = [
            Problem(y=y, C=setting.C, loss=loss, gram=gram, sample_weight=given)
            for setting, loss in tried
        ]
        problems[0].zero_primal()
        return Chain(problems, rows)

    @cached_property
    def _part(self) -> Gram:
        return self.gram.part(self.train)

    @cached_property
    def X_test(self) -> Matrix:
        """The rows that are held out."""
        return self.ground.X[self.test]

    def scores(self, X: Any, members: list[Member], n_problems: int) -> np.ndarray:
        """The decision values of any rows."""
        means = far_means(design_of(self.ground.X)) if self.gram.kernel.is_inner_product else None
        X = X if means is None else np.asarray(X, np.float64) - means
        scores = np.full((X.shape[0], n_problems), NEVER)
        for index, chain, (solution, _) in zip(self.problems, self.chains, members, strict=True):
            beta = np.zeros(self.gram.n)
            assert solution.coef is not None
            beta[slice(None) if chain.rows is None else chain.rows] = (
                chain.problems[0].y * solution.coef
            )
            scores[:, index] = self.gram.predict(X, beta) + solution.intercept
        return scores


def _has_box(problem: Problem) -> bool:
    """Whether a problem with weights can be had, and its duals lie in a box."""
    try:
        problem.zero_primal()
        return isinstance(problem.dual_set, Box | BudgetBox)
    except ValueError:  # a norm without a weighted form
        return False


class _FoldStage(KernelClassifier):
    """A fit of a fold as a fitted classifier, for scorers."""

    def __init__(
        self, grid: KernelGrid, fit: _FoldFit, members: list[Member], scores: np.ndarray
    ) -> None:
        self.classes_, self.n_features_in_ = grid.data.classes, fit.ground.X.shape[1]
        self.kernel = fit.gram.kernel
        self._held, self._members, self._known = fit, members, scores

    def decision_function(self, X: Any) -> np.ndarray:
        """The scores of X, which are at hand for the rows that were held out."""
        if X is self._held.X_test:
            return self._known
        width = 1 if self._known.ndim == 1 else self._known.shape[1]
        scores = self._held.scores(known_matrix(X, self), self._members, width)
        return scores.ravel() if width == 1 else scores
