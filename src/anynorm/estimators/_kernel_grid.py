"""Cross-validation over kernels, widths, budgets and C: each kernel matrix is made once.

A fold is the problem of all rows in which those held out have the weight 0.  So the folds of one
matrix share the rows of its kernel, and the values of C of a fold start from each other
(`solvers/kernel/family.py`).  Folds that are prepared apart, as those of the command, have a kernel
each, which their values of C share.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from anynorm.design.limits import MEGABYTE, ROUNDING
from anynorm.design.threads import allowed, on_cluster, run
from anynorm.estimators._cross_validation import (
    NEVER,
    TableSearch,
    grid_of_C,
    mean_held_out,
    score_columns,
    standard_error,
    tolerance_of,
)
from anynorm.estimators._fitting import earlier, is_over, labels_of
from anynorm.estimators._kernel_candidates import (
    ENDS_OF_C,
    Candidate,
    Setting,
    given_budgets,
    given_kernels,
    kernels_to_try,
)
from anynorm.estimators._kernel_folds import FoldFit, FoldStage, Ground
from anynorm.estimators._kernel_model import (
    kernel_gram,
    kernel_problems,
    solve_kernels,
    store_kernel,
)
from anynorm.estimators._messages import say, warn
from anynorm.estimators._probabilities import calibration_attributes
from anynorm.estimators._spread import Moment, spread
from anynorm.estimators.checks.devices import where_lives
from anynorm.estimators.checks.labels import labelled
from anynorm.kernels.gram import Gram
from anynorm.problem.certificate import Certificate
from anynorm.problem.solution import Status

if TYPE_CHECKING:
    from anynorm.solvers.kernel import KernelRows, Member

_FIRST_STAGE = 0.4  # of the folds, by which hopeless settings are seen
_AT_MOST_ONE = (None, "accuracy", "balanced_accuracy", "roc_auc", "f1", "f1_macro")  # as scores
SKIPPED = "skipped"  # the status of settings that were left out


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


def _cells_of(
    shared: tuple[KernelGrid, Moment], place: int
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The part of the table of one kernel, and its decision values fold by fold."""
    given, deadline = shared
    grid, end = replace(given), deadline.here  # with tables of its own
    grounds = Ground.all_of(grid.folds)
    if not is_over(end) or place == grid._order()[0]:
        for number in range(len(grounds)):
            grid._solve_ground(place, grounds, end, number)
    tables = grid.scores, grid.sizes, grid.gaps, grid.seconds, grid.status
    return [table[place] for table in tables], [values[place] for values in grid._held_out]


@dataclass
class KernelGrid(TableSearch):
    """Scores, numbers of support vectors and gaps over kernels, settings and folds; the choice."""

    def __post_init__(self) -> None:
        estimator = self.estimator
        self.kernels: list[Candidate] = kernels_to_try(estimator, self.data.X, self.weights)
        budgets, Cs = given_budgets(estimator.budget), grid_of_C(estimator.Cs, *ENDS_OF_C).tolist()
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
        # The model of all rows gets as much time as a fold.
        end = earlier(self.end, 1.0 / (len(self.folds.splits) + 1))
        if on_cluster(self.estimator.n_jobs):
            self._fill_apart(end)
            return
        grounds = Ground.all_of(self.folds)
        for count, place in enumerate(self._order()):
            if count and is_over(end):
                break
            run(partial(self._solve_ground, place, grounds, end), len(grounds))

    def _fill_apart(self, end: float | None) -> None:
        """The same on the workers of a cluster, a kernel to a task.

        What is hopeless is found among the settings of a kernel alone, so that more are fitted.
        """
        places = range(len(self.kernels))
        found = spread(_cells_of, (self.without_listeners(), Moment.of(end)), places)
        for place, (tables, held_out) in zip(places, found, strict=True):
            own = self.scores, self.sizes, self.gaps, self.seconds, self.status
            for table, cells in zip(own, tables, strict=True):
                table[place] = cells
            for fold, values in enumerate(held_out):
                self._held_out[fold][place] = values
            fitted = np.flatnonzero(~np.isnan(self.gaps[place]).all(axis=1)).tolist()
            if fitted:
                self._print(place, range(self.scores.shape[2]), fitted)
            if self.on_fit is not None:
                for gap in self.gaps[place][~np.isnan(self.gaps[place])]:
                    self.on_fit(float(gap))

    def _solve_ground(
        self, place: int, grounds: list[Ground], end: float | None, number: int
    ) -> None:
        """Fit the settings of a kernel in the folds of one of the grounds."""
        from anynorm.solvers.kernel import KernelRows, before_scores  # Numba: for those who fit

        ground = grounds[number]
        gram = kernel_gram(where_lives(self.data.X, ground.X), self.kernels[place].kernel)
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
        fits = [FoldFit(self, ground, fold, gram, tried) for fold in folds]
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

    def _enter(self, place: int, setting: int, fit: FoldFit, members: list[Member]) -> None:
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
        self, fit: FoldFit, members: list[Member], scores: np.ndarray, held_out: np.ndarray
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
        found = float(self.scorer(FoldStage(self, fit, members, scores), fit.X_test, y, **given))
        if not math.isfinite(found):
            raise ValueError(
                "scoring gives no finite number for some fold. Choose another, or folds that hold "
                "out rows of every class."
            )
        return found

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
        store_kernel(estimator, data, gram, solutions, found | dict(self.kept))
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
