"""The 1-norm problem with a smooth loss for rising C, each solution starting the next.

        minimise_{w, b}   sum_j u_j |w_j| + C sum_i h_i(1 - y_i (x_i'w + b))

These are the stages of `smooth`, each solved well enough to be compared with others by
cross-validation: the violation of the optimality conditions is a twentieth of the penalty.  A model
that is kept is solved, and certified, by itself.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from anynorm.problem import Problem
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.centring import without_means
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.one_norm.smooth import FAR_FOR_MODELS, SmoothSearch

_ENOUGH = 0.05  # of the penalty: what a gradient may be beyond its bound
_MOST_STEPS = 10_000  # prox-Newton steps, over all C
_NO_GAP = -1.0  # a gap that is never reached: that of the last C is not asked for


class RisingPrice:
    """Solutions of one problem for rising C.

    Parameters
    ----------
    problem : Problem
        With the 1-norm regulariser and a smooth loss; its C is not used.

    Attributes
    ----------
    first : float
        The C up to which all penalised coefficients are zero.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.one_norm import RisingPrice
    >>> X, y = np.array([[2.0, 0.1], [-2.0, 0.1]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("squared_hinge"), X=X, regulariser="l1")
    >>> rising = RisingPrice(problem)
    >>> rising.first, rising.advance(1.0), rising.coef.round(2)
    (0.125, True, array([0.44, 0.  ]))
    """

    def __init__(self, problem: Problem) -> None:
        problem, self._means = without_means(replace(problem, C=1.0), FAR_FOR_MODELS)
        self._search = SmoothSearch(Incumbent(problem, 1.0, Budget(_MOST_STEPS), None), problem)
        self._search.goal = _NO_GAP
        penalised = np.isfinite(self._search.penalty) & ~self._search.never
        pulls = np.abs(self._search.gradient[penalised]) / self._search.penalty[penalised]
        largest = float(pulls.max(initial=0.0))
        self.first = 1.0 / largest if largest > 0 else np.inf

    def advance(self, C: float, deadline: float | None = None) -> bool:
        """Solve for a C, best above the last one; False where time was short."""
        search = self._search
        budget = Budget(_MOST_STEPS, deadline)
        search.budget = search.best.budget = budget
        search.stage(float(C), _ENOUGH)
        return budget.goes_on()

    @property
    def coef(self) -> np.ndarray:
        """The coefficients of the last solution."""
        return self._search.point()[0]

    @property
    def intercept(self) -> float:
        """Its intercept."""
        coef, bias = self._search.point()
        return bias if self._means is None else bias - float(coef @ self._means)
