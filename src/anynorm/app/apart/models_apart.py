"""The models of the job that can be fitted to rows that live apart, and how each is solved."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from anynorm.app.job.options import FitOptions, OptionError
from anynorm.design.crew import Crew
from anynorm.estimators._chunked import chunked_problems
from anynorm.estimators._fitting import limits, store_linear
from anynorm.estimators.checks.chunks import ChunkedLabelled, labelled_apart
from anynorm.estimators.linear_svc import LinearSVC
from anynorm.estimators.reweighted_svc import ReweightedSVC, store_walks
from anynorm.estimators.sparse_svc import SparseSVC
from anynorm.problem.solution import Progress, Solution

MODELS = ("sparse", "linear", "reweighted")
"""Those that there are."""

_GRID = (1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)  # each C ten times the last
_STEP = 10.0**0.5  # from one C of the sparse model to the next
_MOST = 16  # values of C: a factor of 1e8
_ROUNDS = 6  # of a walk, at the most

Starts = list[tuple[np.ndarray, float]]
"""Coefficients and intercepts of the binary problems."""


class Contrast(NamedTuple):
    """Two sides of a binary problem: what each weighs, and how far their means are apart at most.

    At w = 0, with its best bias, both sides have the same total T of dual variables, the same for
    all rows of a side: 4 up down / (up + down) for squared slacks.  The gradient is T times the
    difference of the means, so that the first feature enters at C = 1 / (T apart).  For the hinge
    T = min(up, down), and as the duals of the larger side may differ there, not before.
    """

    up: float
    down: float
    apart: float

    def first(self, loss: str) -> float:
        """The C at which the first feature enters; for the hinge at the earliest."""
        total = min(self.up, self.down)
        if loss == "squared_hinge":
            total = 4.0 * self.up * self.down / (self.up + self.down)
        return 1.0 / (total * self.apart) if total * self.apart > 0 else math.inf


class SolvedApart:
    """What was found for some rows at one C: the stages of every binary problem."""

    def __init__(self, data: ChunkedLabelled, found: Sequence[Sequence[Solution]]) -> None:
        self.data, self.found = data, found

    @property
    def coef(self) -> np.ndarray:
        """Of shape (stages, problems, p)."""
        return np.array([[part.coef for part in stages] for stages in self.found]).swapaxes(0, 1)

    @property
    def intercept(self) -> np.ndarray:
        """Of shape (stages, problems)."""
        return np.array([[part.intercept for part in stages] for stages in self.found]).T

    @property
    def starts(self) -> Starts:
        """Where the next C begins."""
        return [(np.asarray(stages[0].coef), stages[0].intercept) for stages in self.found]


class ModelApart(ABC):
    """A model of the job, for rows that live apart.

    Parameters
    ----------
    options : FitOptions
        What was asked for.
    class_weight : "balanced", dict of int to float, or None
        By the places of the classes.
    """

    regulariser: ClassVar[dict[str, Any]] = {}
    """The pieces of `ChunkedProblem` that say what is penalised."""
    n_stages = 1
    """How many models a solve gives, each simpler than the last."""
    selects = True
    """Whether features that do not help get no weight."""
    patience = 2
    """How many values of C in a row must say that going on does not pay: each is ten times the
    last, and one that is as good as its neighbour may be so by chance."""

    def __init__(self, options: FitOptions, class_weight: Any) -> None:
        self.options, self.class_weight = options, class_weight

    @property
    def loss(self) -> str:
        """The loss that is fitted."""
        return "hinge" if self.options.loss == "auto" else self.options.loss

    @abstractmethod
    def estimator(self, C: float, stages: int, **more: Any) -> Any:
        """The estimator of a C, with so many stages."""

    @abstractmethod
    def stages_of(self, estimator: Any, problem: Any, **how: Any) -> Sequence[Solution]:
        """Solve one binary problem."""

    def prices(self, contrasts: Sequence[Contrast]) -> tuple[float, ...]:
        """The values of C to try, for binary problems of such contrasts."""
        return self.options.C or _GRID

    def solve(
        self,
        crew: Crew,
        C: float,
        stages: int,
        *,
        tol: float,
        end: float | None,
        starts: Starts | None,
        progress: Callable[[Progress], None],
    ) -> SolvedApart:
        """Solve the binary problems of all rows of a crew that have weight."""
        estimator = self.estimator(C, stages, tol=tol)
        data = labelled_apart(estimator, crew, None, C)
        known = starts if starts is not None and len(starts) == data.n_problems else None
        found = [
            self.stages_of(
                estimator,
                problem,
                **limits(estimator, end),
                seed=self.options.seed,
                start=None if known is None else known[index],
                progress=progress,
            )
            for index, problem in enumerate(chunked_problems(estimator, data, **self.regulariser))
        ]
        return SolvedApart(data, found)

    def stored(self, C: float, solved: SolvedApart, tol: float, classes: np.ndarray) -> Any:
        """The estimator, fitted; its classes are the labels."""
        estimator = self.estimator(C, len(solved.found[0]), tol=tol)
        self._store(estimator, solved)
        estimator.classes_ = classes[estimator.classes_]
        return estimator

    def _store(self, estimator: Any, solved: SolvedApart) -> None:
        store_linear(estimator, solved.data, [stages[-1] for stages in solved.found])

    def _given(self, C: float, more: dict[str, Any]) -> dict[str, Any]:
        chosen = {"loss": self.loss, "class_weight": self.class_weight}
        return {"C": C, **chosen, "random_state": self.options.seed, **more}


class LinearApart(ModelApart):
    """`LinearSVC`."""

    selects = False

    def estimator(self, C: float, stages: int, **more: Any) -> LinearSVC:
        """As in the base class."""
        return LinearSVC(**self._given(C, more))

    def stages_of(self, estimator: Any, problem: Any, **how: Any) -> Sequence[Solution]:
        """As in the base class."""
        from anynorm.solvers.linear.chunked import solve_chunked  # Numba: for those who fit

        return [solve_chunked(problem, **how)]


class SparseApart(ModelApart):
    """`SparseSVC`, from the C at which features enter upwards."""

    regulariser: ClassVar[dict[str, Any]] = {"regulariser": "l1"}
    patience = 1

    @property
    def loss(self) -> str:
        """The squared hinge where nothing is said: there is no path to follow here."""
        return "squared_hinge" if self.options.loss == "auto" else self.options.loss

    def estimator(self, C: float, stages: int, **more: Any) -> SparseSVC:
        """As in the base class."""
        return SparseSVC(**self._given(C, more))

    def stages_of(self, estimator: Any, problem: Any, **how: Any) -> Sequence[Solution]:
        """As in the base class."""
        from anynorm.solvers.one_norm import solve_chunked_one_norm  # Numba: for those who fit

        return [solve_chunked_one_norm(problem, **how)]

    def prices(self, contrasts: Sequence[Contrast]) -> tuple[float, ...]:
        """The first has no feature."""
        first = min(each.first(self.loss) for each in contrasts)
        if math.isinf(first):  # all columns are constant
            return (1.0,)
        return (first / 2, *(first * _STEP ** (k + 1) for k in range(_MOST)))


class WalkApart(ModelApart):
    """`ReweightedSVC`, with up to six rounds."""

    n_stages = _ROUNDS

    def estimator(self, C: float, stages: int, **more: Any) -> ReweightedSVC:
        """As in the base class."""
        return ReweightedSVC(**self._given(C, more), n_rounds=stages)

    def stages_of(self, estimator: Any, problem: Any, **how: Any) -> Sequence[Solution]:
        """As in the base class."""
        from anynorm.solvers.linear.chunked import walk_chunked  # Numba: for those who fit

        return walk_chunked(
            problem, n_rounds=int(estimator.n_rounds), prune=bool(estimator.prune), **how
        )

    def _store(self, estimator: Any, solved: SolvedApart) -> None:
        store_walks(estimator, solved.data, solved.found)  # type: ignore[arg-type]


def model_apart(options: FitOptions, class_weight: Any) -> ModelApart:
    """The model that is asked for."""
    if options.model == "linear":
        return LinearApart(options, class_weight)
    kind = SparseApart if options.model == "sparse" else WalkApart
    return kind(options, class_weight)


def check_options(options: FitOptions) -> None:
    """Raise where something is asked for that needs all rows in one place."""
    if options.model not in MODELS:
        more = " (BudgetSVC(strict=True) in Python is)" if options.model == "budget" else ""
        raise OptionError(
            f"--model {options.model} is not for clusters{more}; --model {', '.join(MODELS)} are."
        )
    refused = {
        "--scoring auc": options.scoring == "auc",
        "--max-features": options.max_features is not None,
        "--keep": bool(options.keep),
        "--repeats": options.repeats > 1,
        "--cv loo": options.cv == "loo",
        "--rule paper": options.rule == "paper",
        "--device": options.device is not None,
    }
    for option, given in refused.items():
        if given:
            raise OptionError(
                f"{option} needs all rows in one place; leave it out with --scheduler or --workers."
            )
