"""A Newton step for the variables that are at no bound, exact for as long as they stay inside.

With the others fixed, and d the change of the free variables,

    minimise over d    1/2 d'Q d - p'd    where  s'd = 0 ,  and 1'd = 0 where the budget is spent,

which is one linear system.  What it takes beyond a bound is put there, and the rest solved again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

Array = NDArray[np.float64]

_ROUNDS = 8
_RIDGE = 1e-13  # of the largest diagonal entry: keeps semidefinite kernels regular


def free_step(Q: Array, p: Array, rules: Array, low: Array, high: Array) -> Array | None:
    """Return the best change of the free variables within their bounds, or None.

    Parameters
    ----------
    Q : ndarray of shape (k, k)
        The second derivatives in the free variables.
    p : ndarray of shape (k,)
        The negative gradient.
    rules : ndarray of shape (1 or 2, k)
        Sums of changes that must be 0.
    low, high : ndarray of shape (k,)
        How far each variable can go down (below 0) and up.
    """
    d, inside = np.zeros(len(p)), np.ones(len(p), dtype=bool)
    ridge = _RIDGE * float(np.abs(np.diagonal(Q)).max(initial=0.0))
    for _ in range(_ROUNDS):
        if np.count_nonzero(inside) <= len(rules):
            return None
        found = _within_rules(Q, p, rules, d, inside, ridge)
        if found is None:
            return None
        beyond = (found < low[inside]) | (found > high[inside])
        d[inside] = np.clip(found, low[inside], high[inside])
        if not beyond.any():
            return d if float(p @ d) > 0.5 * float(d @ (Q @ d)) else None
        inside[np.flatnonzero(inside)[beyond]] = False
    return None


def _within_rules(
    Q: Array, p: Array, rules: Array, d: Array, inside: NDArray[np.bool_], ridge: float
) -> Array | None:
    """The changes of the variables inside, the others having made theirs."""
    fixed = np.where(inside, 0.0, d)
    own = Q[np.ix_(inside, inside)]
    own[np.diag_indices(len(own))] += ridge
    wanted = (p - Q @ fixed)[inside]
    A = rules[:, inside]
    try:
        factor = cho_factor(own, lower=True, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    solved = cho_solve(factor, np.column_stack([wanted, A.T]), check_finite=False)
    schur = A @ solved[:, 1:]
    try:
        prices = np.linalg.solve(schur, A @ solved[:, 0] + rules @ fixed)
    except np.linalg.LinAlgError:
        return None
    found: Array = solved[:, 0] - solved[:, 1:] @ prices
    return found if np.isfinite(found).all() else None
