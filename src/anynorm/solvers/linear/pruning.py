"""Which columns the walk can leave out of its next round, and which of them it takes back.

The walk makes coefficients small but never zero.  Before the next round the smallest are dropped,
in the order of their size and only if they are fading (``|w_j| < v_j^2``, so that the weight of
the next round is smaller still).  As many go as lower the 1-norm objective the most, and then as
many more as raise it by a share `tol`; but

- the loss rises by at most a share of what the coefficients gain over none at all.  Without this
  a small C would empty the model at once, for the 1-norm solution is empty there, whereas the
  rounds on the way to it predict well.

How many can go is found by trial: the columns in question are cut into a few portions, one pass
over X gives the scores without the first, the first two, ... of them, and a second pass looks
inside the portion in which the limit lies.

A column that was dropped is *missed* where the duals of a later round pull at it with
``|X_j'(y a)| > 1``, which the 1-norm problem does not allow.  With a weight v_j^2 it would lower
that round's optimum by about ``v_j^2 (X_j'(y a))^2 / 2`` and add ``v_j^2 / 2`` to the bound that
the round minimises, so to take it back pays as long as the weights are small.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from anynorm.problem import Problem

GENEROSITY = 0.02  # the weight of what comes back, as a share of the 1-norm
_LESS_GENEROUS = 0.1  # the factor of what dropped columns get back, each time it did not pay
_GAIN_SHARE = 0.3  # of the gain over no model, and of the margin: the most that dropping may cost
_PORTIONS = 16  # of columns tried in one pass over X
_PASSES = 2  # over X: the last column to go is known to 1 / 16^2 of them


class WalkModel(NamedTuple):
    """Coefficients, bias, and the scores ``X @ coef``."""

    coef: np.ndarray
    intercept: float
    scores: np.ndarray


def prune(problem: Problem, model: WalkModel, *, tol: float) -> WalkModel:
    """Return the model without its smallest coefficients, its free bias fitted again.

    Parameters
    ----------
    problem : Problem
        The 2-norm problem of which `model` is a solution; its feature_scale gives the weights.
    model : WalkModel
        What is to be pruned.
    tol : float
        The most that the 1-norm objective may rise, relative to itself.
    """
    sizes, v = np.abs(model.coef), problem.feature_scale
    nothing = np.zeros(len(model.scores))
    bias = _fit_bias(problem, nothing, model.intercept)
    loss, empty = problem.loss_at(model.scores, model.intercept), problem.loss_at(nothing, bias)
    if empty <= loss:
        return WalkModel(np.zeros(len(sizes)), bias, nothing)
    order = fading(sizes, None if v is None else v**2)
    allowance = Allowance.of(sizes, loss, empty, tol)
    count, scores = _drop(problem, model, order, loss, allowance)
    if count == 0:
        return model
    coef = model.coef.copy()
    coef[order[:count]] = 0.0
    return WalkModel(coef, _fit_bias(problem, scores, model.intercept), scores)


class Allowance(NamedTuple):
    """How far the objective may be above its least, and how bad the fit may be.

    The latter is the most that the loss may be or, where slack is then removed by scaling up, the
    least that a margin may be.
    """

    rise: float
    loss: float
    margin: float

    @classmethod
    def of(cls, sizes: np.ndarray, loss: float, empty: float, tol: float) -> Allowance:
        """For coefficients of these sizes; `empty` is the loss of none at all."""
        most = loss + _GAIN_SHARE * (empty - loss)
        return cls(tol * (float(sizes.sum()) + loss), most, 1.0 - _GAIN_SHARE)


def fading(sizes: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The columns that fade, the smallest first; `weights` are v^2, None for 1."""
    places = np.flatnonzero((sizes > 0) & (sizes < (1.0 if weights is None else weights)))
    return places[np.argsort(sizes[places])]


def _fit_bias(problem: Problem, scores: np.ndarray, intercept: float) -> float:
    """The best bias for these scores where it is free, else the one given."""
    if not problem.free_bias:
        return intercept
    return problem.best_bias(scores)


def _drop(
    problem: Problem, model: WalkModel, order: np.ndarray, loss: float, allowance: Allowance
) -> tuple[int, np.ndarray]:
    """How many columns of `order`, from its front, are dropped, and the scores without them.

    The bias is kept during the search, which bounds the loss from above.
    """
    scores = {0: model.scores}

    def losses_without(ends: np.ndarray) -> np.ndarray:
        portions = [order[a:b] for a, b in pairwise(ends)]
        products = problem.design.matvec_by_portions(model.coef, portions)
        tried = (scores[int(ends[0])][:, None] - np.cumsum(products, axis=1)).T
        scores.update(zip(ends[1:].tolist(), tried, strict=True))
        return np.array([problem.loss_at(row, model.intercept) for row in tried])

    count = how_many_go(np.abs(model.coef[order]), loss, allowance, losses_without)
    return count, np.ascontiguousarray(scores[count])


def how_many_go(
    sizes: np.ndarray,
    loss: float,
    allowance: Allowance,
    losses_without: Callable[[np.ndarray], np.ndarray],
) -> int:
    """How many columns are dropped, from the front; the objective counts the norm of what stays.

    Parameters
    ----------
    sizes : ndarray
        The coefficients that fade, in the order in which they may go.
    loss : float
        With all of them.
    allowance : Allowance
        What dropping may cost.
    losses_without : callable
        ``losses_without(ends)``, the loss without the first ``ends[1], ends[2], ...`` columns, of
        which ``ends[0]`` are known to go.
    """
    norms = np.concatenate([[0.0], -np.cumsum(sizes)])
    low, high, least = 0, len(sizes), loss
    for _ in range(_PASSES):
        if low == high:
            break
        ends = np.unique(np.linspace(low, high, _PORTIONS + 1).astype(int))
        losses = losses_without(ends)
        objectives = losses + norms[ends[1:]]
        allowed = losses <= allowance.loss
        least = min(least, objectives[allowed].min(initial=least))
        good = np.flatnonzero(allowed & (objectives <= least + allowance.rise))
        last = int(good[-1]) if good.size else -1
        low = int(ends[last + 1])
        high = int(ends[min(last + 2, len(ends) - 1)])
    return low


def take_back(weights: np.ndarray, pull: np.ndarray, share: float) -> np.ndarray:
    """Give the dropped columns that are missed a weight, in place; returns which they are.

    Parameters
    ----------
    weights : ndarray of shape (p,)
        The squared weights of the next round, 0 for columns that are not in use.
    pull : ndarray of shape (p,)
        ``X'(y a)``.
    share : float
        The most that is given to all of them together, relative to what the others have.  None
        gets more than the others have on average, times its excess over 1.
    """
    missed = np.flatnonzero((weights == 0) & (np.abs(pull) > 1.0))
    total = float(weights.sum())
    given = (np.abs(pull[missed]) - 1.0) * total / max(1, np.count_nonzero(weights))
    weights[missed] = given * min(1.0, share * total / given.sum()) if given.any() else 0.0
    return missed


def less_generous(share: float, tol: float) -> float:
    """The share for `take_back` once what came back did not pay; in the end none."""
    return share * _LESS_GENEROUS if share > tol else 0.0
