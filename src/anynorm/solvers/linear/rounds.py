"""One round of the walk, as it is handed out."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from anynorm.problem import Problem
from anynorm.problem.certificate import Certificate, certify
from anynorm.problem.solution import Solution, Status


@dataclass(frozen=True, kw_only=True)
class Round(Solution):
    """One round of the walk: the solution of its 2-norm problem, seen as a 1-norm solution.

    What belongs to the 1-norm problem is computed when it is first asked for: a table of
    cross-validation has no use for it, and it takes a product with all of X.

    Attributes
    ----------
    coef, intercept : ndarray of shape (p,), float
        The coefficients, in the units of X, and the bias.
    dual : ndarray of shape (n,)
        The dual variables.
    certificate : Certificate
        Of the round's 2-norm problem at (coef, intercept).
    n_iter : int
        Iterations of the round.
    feature_scale : ndarray of shape (p,)
        The weights v of the round's 2-norm problem, 0 for the columns left out of it.
    scores : ndarray of shape (n,)
        ``X @ coef``.
    one_norm : Problem
        The 1-norm problem towards which the walk goes.
    """

    feature_scale: np.ndarray
    scores: np.ndarray = field(repr=False, compare=False)
    one_norm: Problem = field(repr=False, compare=False)

    @property
    def n_nonzero(self) -> int:
        """The number of features that are used."""
        return 0 if self.coef is None else int(np.count_nonzero(self.coef))

    @property
    def objective(self) -> float:
        """The 1-norm objective ``||coef||_1 + g``."""
        return self.l1_certificate.primal

    @cached_property
    def l1_certificate(self) -> Certificate:
        """Of the 1-norm problem at (coef, intercept), its dual value from the duals rescaled."""
        assert self.coef is not None
        late = self.certificate.status is Status.TIME_LIMIT
        return certify(
            self.one_norm,
            self.coef,
            self.intercept,
            self.dual,
            tol=self.certificate.tol,
            scores=self.scores,
            stopped=Status.TIME_LIMIT if late else Status.MAX_ITER,
        )
