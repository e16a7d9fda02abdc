"""The rounds of a walk as they are handed out, and what they are worth for a larger C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.problem.certificate import Certificate, Values, certificate_of, certify
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
    def norm(self) -> float:
        """The 1-norm of the coefficients, and of a regularised bias."""
        assert self.coef is not None
        bias = self.one_norm.bias_feature
        return float(np.abs(self.coef).sum()) + (abs(self.intercept / bias) if bias else 0.0)

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


def carried_over(rounds: Sequence[Round], problem: Problem) -> list[Round]:
    """The rounds of a walk with a smaller C as those of the problem's C, as far as they are.

    Of a round's primal value, the loss alone depends on C, to which it is proportional.  Its dual
    vector a is allowed for the larger C, as is ``t a`` for t up to the ratio of both.  Where no
    slack is left, t = 1 is as good as before, and where slack is all that counts, the ratio is.
    Each round must reach its gap with the best t, and the 1-norm objective must not rise by more;
    the first round that misses this ends them.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import numpy as np
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.solvers.linear import walk
    >>> from anynorm.solvers.linear.rounds import carried_over
    >>> X, y = np.array([[2.0, 1.0], [-2.0, -1.0]]), np.array([1.0, -1.0])
    >>> problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X, intercept=None)
    >>> rounds = walk(problem, n_rounds=2, tol=1e-3)
    >>> [one.certificate.gap < 1e-3 for one in carried_over(rounds, replace(problem, C=100.0))]
    [True, True]
    """
    found: list[Round] = []
    if not isinstance(problem.dual_set, Box):
        return found
    one_norm = replace(problem, regulariser="l1", feature_scale=None)
    least = np.inf
    for known in rounds:
        was, loss = known.certificate, problem.loss_at(known.scores, known.intercept)
        primal = was.primal + loss * (1.0 - known.one_norm.C / problem.C)
        t, dual = best_scale(known, problem)
        values = Values(primal, dual, problem.zero_primal())
        certificate = certificate_of(values, was.tol)
        objective = known.norm + loss
        if not was.status is certificate.status is Status.OPTIMAL:
            break
        if objective > (1.0 + was.tol) * least:
            break
        least = min(least, objective)
        found.append(
            replace(known, dual=t * known.dual, certificate=certificate, one_norm=one_norm)
        )
    return found


def best_scale(known: Round, problem: Problem) -> tuple[float, float]:
    """The t for which t times the round's dual vector is best with the problem's C; its value."""
    box, ratio = problem.dual_set, problem.C / known.one_norm.C
    assert isinstance(box, Box)
    total, shifted = float(known.dual.sum()), float(box.shift @ known.dual**2)
    # The value for the smaller C was total - (pulled + ratio * shifted) / 2.
    pulled = 2.0 * (total - known.certificate.dual) - ratio * shifted
    bend = pulled + shifted
    t = min(ratio, total / bend) if bend > 0 and total > 0 else 1.0
    return t, t * total - 0.5 * t**2 * bend
