"""Which columns the walk can leave out of its next round.

The walk makes coefficients small but never zero.  Before the next round the smallest are dropped,
in the order of their size and only if they are fading (``|w_j| < v_j^2``, so that the weight of
the next round is smaller still), while

- the 1-norm objective rises by at most a share `tol` of itself: the walk's objectives still do not
  rise by more;
- the loss rises by at most ten times that share of what the coefficients gain over none at all.
  Without this the first rounds, which are far from the 1-norm solution, would lose columns that
  it needs; and a small C would empty the model at once, for the 1-norm solution is empty there,
  whereas the rounds on the way to it predict well.

How many can go is found by trial.  Along the coefficients the loss is convex, so its slope bounds
the number from above, and the trials in between follow the size of the change; a number that uses
half of what is allowed is good enough.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from anynorm import design
from anynorm.certificate import optimal_bias
from anynorm.problem import Problem

_GAIN_SHARE = 10.0  # of the tolerance
_LARGEST_SHARE = 0.05
_ENOUGH = 0.5
_TRIALS = 12


class Model(NamedTuple):
    """Coefficients, bias, and the scores ``X @ coef``."""

    coef: np.ndarray
    intercept: float
    scores: np.ndarray


def prune(problem: Problem, model: Model, *, tol: float) -> Model:
    """Return the model without its smallest coefficients, its free bias fitted again.

    Parameters
    ----------
    problem : Problem
        The 2-norm problem of which `model` is a solution; its feature_scale gives the slopes.
    model : Model
        What is to be pruned.
    tol : float
        The most that the 1-norm objective may rise, relative to itself.
    """
    sizes, v = np.abs(model.coef), problem.feature_scale
    nothing = np.zeros(len(model.scores))
    bias = _fit_bias(problem, nothing, model.intercept)
    loss, empty = problem.loss_at(model.scores, model.intercept), problem.loss_at(nothing, bias)
    if empty <= loss:
        return Model(np.zeros(len(sizes)), bias, nothing)
    fading = np.flatnonzero((sizes > 0) & (sizes < (1.0 if v is None else v**2)))
    order = fading[np.argsort(sizes[fading], kind="stable")]
    allowed = tol * (sizes.sum() + loss) + np.cumsum(sizes[order])
    share = min(_GAIN_SHARE * tol, _LARGEST_SHARE)
    allowed = np.minimum(allowed, share * (empty - loss))
    count = _find_count(problem, model, order, loss, allowed) if len(order) else 0
    if count == 0:
        return model
    coef = model.coef.copy()
    coef[order[:count]] = 0.0
    scores = problem.scores(coef)
    return Model(coef, _fit_bias(problem, scores, model.intercept), scores)


def _fit_bias(problem: Problem, scores: np.ndarray, intercept: float) -> float:
    """The best bias for these scores where it is free, else the one given."""
    if not problem.free_bias:
        return intercept
    return optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)


def _find_count(
    problem: Problem, model: Model, order: np.ndarray, loss: float, allowed: np.ndarray
) -> int:
    """How many columns of `order`, from its front, are dropped; `allowed[k - 1]` goes with k.

    The bias is kept during the search, which bounds the rise of the loss from above.
    """
    squares = np.cumsum(model.coef[order] ** 2)
    low, high = 0, int(np.searchsorted(_slopes(problem, model, order), allowed[-1])) + 1
    base, trial = model.scores, high - 1
    for _ in range(_TRIALS):
        if not low < trial < high:
            break
        scores = base - _product(problem.X, order[low:trial], model.coef)
        rise = problem.loss_at(scores, model.intercept) - loss
        limit = float(allowed[trial - 1])
        if rise <= limit:
            low, base = trial, scores
            if rise >= _ENOUGH * limit:
                break
            trial = (low + high) // 2
        else:
            # The rise grows like the size of the change at a kink, like its square elsewhere.
            high = trial
            aim = squares[trial - 1] * (0.8 * limit / rise) ** 2
            middle = (low + high) // 2
            trial = max(min(int(np.searchsorted(squares, aim)), middle), low + 1)
    return low


def _slopes(problem: Problem, model: Model, order: np.ndarray) -> np.ndarray:
    """Sums of ``w_j X_j'beta = (w_j / v_j)^2``, the first-order rise of the loss."""
    coef, v = model.coef[order], problem.feature_scale
    return np.cumsum((coef if v is None else coef / v[order]) ** 2)


def _product(X: design.Matrix, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """``X[:, columns] @ coef[columns]``."""
    if sp.issparse(X) or 8 * len(columns) > X.shape[1]:
        chosen = np.zeros(len(coef))
        chosen[columns] = coef[columns]
        return design.matvec(X, chosen)
    return design.matvec(X[:, columns], coef[columns])
