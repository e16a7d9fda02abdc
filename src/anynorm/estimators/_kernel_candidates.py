"""What a search over kernels tries: kernels with their widths, values of C, budgets."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from anynorm.design import Matrix
from anynorm.kernels import Kernel, kernel_of
from anynorm.kernels.gamma import resolve_gamma

ENDS_OF_C = 1e-2, 1e3  # of a grid that is given as a number
_WIDEST = 16.0  # times "scale", and one over it: the ends of the gammas given as a number


class Candidate(NamedTuple):
    """A kernel to try: as it was given, its gamma if that is searched, and with all its numbers."""

    given: Any
    gamma: float | None
    kernel: Kernel


class Setting(NamedTuple):
    """What is tried with every kernel."""

    budget: float | None
    C: float


def grid_of_gamma(gammas: Any, X: Matrix, weights: np.ndarray | None) -> np.ndarray:
    """The values of gamma that the parameter `gammas` asks for, ascending.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.estimators._kernel_candidates import grid_of_gamma
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
