"""The experimental protocol of "A Walk from 2-Norm SVM to 1-Norm SVM" (section 4.2.2).

C is chosen by 5-fold cross-validation on the training part, for each method on its own: the
rounded-down median of the values that attain the least number of errors.  The 2-norm SVM and the
rounds RW(2), RW(3), ... come out of one walk, unpruned as in the paper's Algorithm 1.  A score of
exactly zero counts as half an error.

Three kinds of bias:

* "feature": the weight of a constant feature of 1, which stays 1 in all rounds.  That is what
  calling liblinear again and again on re-weighted inputs does, and so the paper's;
* "reweighted": the same, re-weighted like every other feature, as `ReweightedSVC` has it with
  `intercept_scaling=1`;
* "free": neither regularised nor re-weighted, as `ReweightedSVC` has it by default.

The 1-norm SVM penalises the bias unless it is free.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import StratifiedKFold

from anynorm.datasets import load_dataset
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.linear import solve_linear, walk
from benchmarks.papers.one_norm import one_norm_grid

N_FOLDS = 5
TINY = 1e-4  # of ||w||_1: what the right panel of Figure 3 counts as no classifier
ONE_NORM = "1-norm"
BIASES = ("feature", "free", "reweighted")


class Model(NamedTuple):
    """A linear classifier."""

    coef: np.ndarray
    intercept: float


class Grid(NamedTuple):
    """What is fitted: values of C, rounds of the walk, the bias, and which 1-norm solver."""

    Cs: Sequence[float]
    rounds: Sequence[int]
    bias: str
    one_norm: str | None = "simplex"  # or "interior", or None to leave it out
    tol: float = 1e-3


class Outcome(NamedTuple):
    """Accuracy on the test part, the C chosen and the number of features used, by method."""

    accuracy: dict[str, float]
    C: dict[str, float]
    n_features: dict[str, int]


def method_name(n_rounds: int) -> str:
    """The paper's name of a round."""
    return "2-norm" if n_rounds == 1 else f"RW({n_rounds})"


def powers_of_ten(first: int, last: int) -> list[float]:
    """10^first, ..., 10^last."""
    return [float(f"1e{k}") for k in range(first, last + 1)]


def load_binary(name: str, scaling: str) -> tuple[Any, np.ndarray, list[Any]]:
    """A data set as (X, y, splits): the most frequent label against all others.

    `scaling` is "standard" (zero mean and unit variance over the whole set, as the paper has it),
    "unit" (rows of unit norm) or "none".
    """
    dataset = load_dataset(name, dtype=np.float64)
    labels, counts = np.unique(dataset.target, return_counts=True)
    y = np.where(dataset.target == labels[counts.argmax()], 1.0, -1.0)
    X = dataset.data
    if scaling == "standard":
        deviation = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    elif scaling == "unit":
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X = sp.csr_matrix(sp.diags(1 / np.where(norms > 0, norms, 1.0)) @ X)
    return X, y, dataset.splits


def walk_models(X: Any, y: np.ndarray, C: float, n_rounds: int, grid: Grid) -> list[Model]:
    """The classifiers after each round of the walk."""
    hinge = get_loss("hinge")
    intercept: Any = "free" if grid.bias == "free" else 1.0
    problem = Problem(y=y, C=C, loss=hinge, X=X, intercept=intercept)
    if grid.bias != "feature":
        rounds = walk(problem, n_rounds=n_rounds, prune=False, tol=grid.tol)
        return [Model(np.asarray(r.coef), r.intercept) for r in rounds]
    models: list[Model] = []
    dual = None
    for _ in range(n_rounds):
        solution = solve_linear(problem, tol=grid.tol, start=dual)
        coef, dual = np.asarray(solution.coef), solution.dual
        models.append(Model(coef, solution.intercept))
        problem = replace(problem, feature_scale=np.sqrt(np.abs(coef)))
    return models


def fit_grid(X: Any, y: np.ndarray, grid: Grid) -> dict[str, list[Model]]:
    """Every method at every C of the grid.  Columns without an entry are left out meanwhile."""
    n_features, used = X.shape[1], None
    if sp.issparse(X):
        used = np.flatnonzero(np.diff(X.tocsc().indptr))
        X = X[:, used]
    models: dict[str, list[Model]] = {method_name(k): [] for k in grid.rounds}
    for C in grid.Cs:
        rounds = walk_models(X, y, C, max(grid.rounds), grid)
        for k in grid.rounds:
            models[method_name(k)].append(rounds[k - 1])
    if grid.one_norm is not None:
        solutions = one_norm_grid(
            X, y, grid.Cs, free_bias=grid.bias == "free", interior=grid.one_norm == "interior"
        )
        models[ONE_NORM] = [Model(s.coef, s.intercept) for s in solutions]
    if used is None:
        return models
    return {name: [_spread(m, used, n_features) for m in row] for name, row in models.items()}


def _spread(model: Model, used: np.ndarray, n_features: int) -> Model:
    coef = np.zeros(n_features)
    coef[used] = model.coef
    return model._replace(coef=coef)


def n_errors(model: Model, X: Any, y: np.ndarray, *, least_norm: float = 0.0) -> float:
    """Examples on the wrong side; half of all of them where ||w||_1 is below `least_norm`."""
    if np.abs(model.coef).sum() < least_norm:
        return len(y) / 2
    margins = y * (X @ model.coef + model.intercept)
    return float(np.sum(margins < 0) + np.sum(margins == 0) / 2)


def chosen(errors: Sequence[float]) -> int:
    """The paper's rule for ties: the rounded-down median of the best."""
    best = np.flatnonzero(np.asarray(errors) == min(errors))
    return int(best[(len(best) - 1) // 2])


def evaluate(
    X: Any,
    y: np.ndarray,
    train: np.ndarray,
    test: tuple[Any, np.ndarray],
    fit: Callable[[Any, np.ndarray], dict[str, list[Model]]],
    Cs: Sequence[float],
    *,
    seed: int,
    least_norms: Iterable[float] = (0.0,),
) -> list[Outcome]:
    """Cross-validate on the training part, fit again, test; one outcome per `least_norm`.

    `fit` returns the models of every method for all of `Cs`, e.g. `fit_grid`.
    """
    levels = list(least_norms)
    X, y = X[train], y[train]
    folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed)
    final = fit(X, y)
    errors = {name: np.zeros((len(levels), len(Cs))) for name in final}
    for part, held in folds.split(np.zeros(len(y)), y):
        for name, models in fit(X[part], y[part]).items():
            for row, level in enumerate(levels):
                errors[name][row] += [
                    n_errors(model, X[held], y[held], least_norm=level) for model in models
                ]
    outcomes = []
    for row, level in enumerate(levels):
        best = {name: chosen(errors[name][row].tolist()) for name in final}
        picked = {name: final[name][k] for name, k in best.items()}
        wrong = {name: n_errors(model, *test, least_norm=level) for name, model in picked.items()}
        outcomes.append(
            Outcome(
                {name: 1 - count / len(test[1]) for name, count in wrong.items()},
                {name: Cs[k] for name, k in best.items()},
                {name: int(np.count_nonzero(model.coef)) for name, model in picked.items()},
            )
        )
    return outcomes


def random_half(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A random half for training and the other for testing, drawn anew while a class is rare.

    Every class needs two examples in the training half, so that no fold is without it.
    """
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(len(y))
        train, test = np.sort(order[: len(y) // 2]), np.sort(order[len(y) // 2 :])
        if min(np.sum(y[train] > 0), np.sum(y[train] < 0)) >= 2:
            return train, test
