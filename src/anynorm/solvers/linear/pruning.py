"""Zeroing the coefficients that do not matter, smallest first.

The walk makes coefficients small but never zero.  Those are dropped, in the order of their size,
while the loss rises by no more than an allowance; a free bias is fitted again each time.  What the
penalty gains is not counted: a rule that counted it would drop columns for the penalty's sake,
which is the walk's own business, and arrive at the 1-norm solution too early.

How many can go is found by bisection.  Along the coefficients the loss is convex, so its slope
bounds the number from above; and each step multiplies only the columns between the two ends of
the bracket.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from anynorm import design
from anynorm.certificate import optimal_bias
from anynorm.problem import Problem

_BRACKET = 32  # the bisection ends when the ends differ by this share of the number dropped


class Model(NamedTuple):
    """Coefficients, bias, and the scores ``X @ coef``."""

    coef: np.ndarray
    intercept: float
    scores: np.ndarray


def fit_bias(problem: Problem, scores: np.ndarray, intercept: float) -> float:
    """The best bias for these scores where it is free, else the one given."""
    if not problem.free_bias:
        return intercept
    return optimal_bias(problem.loss, scores, problem.y, problem.C, problem.sample_weight)


def prune(problem: Problem, model: Model, *, allowance: float, share: float) -> Model:
    """Drop the smallest coefficients while the loss rises by at most the allowance.

    The allowance is also kept below `share` of what the coefficients gain over none at all, so
    that a model is not lost because the loss is large without it and with it.

    Parameters
    ----------
    problem : Problem
        A 2-norm problem of which `model` is a solution; its feature_scale gives the slopes.
    model : Model
        What is to be pruned.
    allowance : float
        The most that the loss may rise.
    share : float
        The most that it may rise relative to the gain.
    """
    used = np.flatnonzero(model.coef)
    order = used[np.argsort(np.abs(model.coef[used]), kind="stable")]
    loss = problem.loss_at(model.scores, model.intercept)
    nothing = np.zeros(len(model.scores))
    gain = problem.loss_at(nothing, fit_bias(problem, nothing, model.intercept)) - loss
    limit = min(allowance, share * gain)
    if gain <= 0:
        count = len(order)
    else:
        most = int(np.searchsorted(np.cumsum(_slopes(problem, model)[order]), limit, side="right"))
        count = _largest_count(problem, model, order[:most], loss + limit)
    if count == 0:
        return model
    coef = model.coef.copy()
    coef[order[:count]] = 0.0
    scores = problem.scores(coef)
    return Model(coef, fit_bias(problem, scores, model.intercept), scores)


def _slopes(problem: Problem, model: Model) -> np.ndarray:
    """``w_j X_j'beta = (w_j / v_j)^2``: the first-order rise of the loss without column j."""
    v = problem.feature_scale
    if v is None:
        return model.coef**2
    return np.divide(model.coef, v, out=np.zeros(len(v)), where=v > 0) ** 2


def _largest_count(problem: Problem, model: Model, order: np.ndarray, limit: float) -> int:
    """How many columns of `order`, from its front, can go while the loss stays within `limit`."""
    low, high = 0, len(order) + 1
    base = model.scores
    trial = len(order)
    while trial > low:
        scores = base - _product(problem.X, order[low:trial], model.coef)
        bias = fit_bias(problem, scores, model.intercept)
        if problem.loss_at(scores, bias) <= limit:
            low, base = trial, scores
        else:
            high = trial
        if high - low <= max(1, low // _BRACKET):
            break
        trial = (low + high) // 2
    return low


def _product(X: design.Matrix, columns: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """``X[:, columns] @ coef[columns]``."""
    if sp.issparse(X) or 2 * len(columns) > X.shape[1]:
        chosen = np.zeros(len(coef))
        chosen[columns] = coef[columns]
        return design.matvec(X, chosen)
    return design.matvec(X[:, columns], coef[columns])
