"""Features that stand for a kernel, fewer than the rows: over them C may be as large as you like.

A linear kernel has those of X.  A kernel of low rank, such as a polynomial of few columns or RBF
with a small gamma, has a factor

        K = Z Z' + E,       E semidefinite, no entry beyond `error`,

of pivoted columns (`kernels/landmarks.py`).  Duals have a sum of at most P(0), the primal value at
zero (twice that for squared slacks), so that E adds at most  error/2 P(0)^2  to  1/2 beta'K beta.
Duals found over Z are certified with K itself, so that nothing hangs on that estimate.

With a large C duals are large and of both signs, and sums of kernel values times them lose digits.
The rows of the factor span all others: f has coefficients for these alone, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.kernels.gram import Gram
from anynorm.kernels.landmarks import Landmarks
from anynorm.norms.dual_sets import BallBox, Box, BudgetBox, PowerBall
from anynorm.problem import Problem
from anynorm.problem.solution import Solution
from anynorm.solvers.frame.budget import Budget

Array = NDArray[np.float64]

MANY_ROWS = 200  # from which features are tried at once: block SMO is quick for fewer
MOST_FEATURES = 1000  # whose p x p systems cost no more than rows do
_HARD = 1e4  # C k(x, x) from which block SMO may crawl on a kernel of low rank
_SHARE = 0.1  # of tol, for E
_ROUNDING = 1e-15  # of the diagonal: no error is smaller
_PROBED = 512  # rows whose rank says whether a factor is worth its time
_USED = 3 / 4  # of the rows: with more pivots a factor is no smaller problem


class Features(NamedTuple):
    """Features of all rows, and what their coefficients are for the kernel.

    Attributes
    ----------
    X : matrix
        The features.
    landmarks : Landmarks or None
        The rows that span all others; None for a linear kernel's own features.
    """

    X: Any
    landmarks: Landmarks | None

    @property
    def width(self) -> int:
        """How many there are."""
        return int(self.X.shape[1])

    def kernel_coef(self, found: Solution, y: Array) -> Array | None:
        """Coefficients of the landmarks' kernel functions, but for the labels, if there are any."""
        if self.landmarks is None or found.coef is None:
            return None
        out = np.zeros(len(y))
        out[self.landmarks.rows] = self.landmarks.weights(found.coef)
        return y * out


def features_of(problem: Problem, *, tol: float, budget: Budget) -> Features | None:
    """Features that stand for a problem's kernel; None where they would be too many."""
    gram = problem.gram
    assert gram is not None
    if has_own_features(gram):
        return Features(gram.X, None)
    most = min(MOST_FEATURES, int(_USED * gram.n))
    if not may_have_low_rank(problem) or not budget.affords(gram.n * most**2):
        return None
    error = max(_SHARE * tol / problem.zero_primal(), _ROUNDING * float(gram.diagonal().max()))
    found = Landmarks.spanning(gram, error, most)
    return None if found is None else Features(found[1], found[0])


def has_own_features(gram: Gram) -> bool:
    """Whether a kernel is that of features, fewer than the rows."""
    if not gram.kernel.is_inner_product or gram.X is None:
        return False
    return bool(gram.X.shape[1] < gram.n)


def may_have_low_rank(problem: Problem) -> bool:
    """Whether C is large and some rows are in the span of half of them, as far as digits tell."""
    gram, n = problem.gram, problem.n_rows
    if gram is None or gram.kernel.is_inner_product or gram.psd is False or n < MANY_ROWS:
        return False
    if not isinstance(problem.dual_set, Box | BudgetBox | BallBox | PowerBall):
        return False
    if problem.C * float(problem.row_weights().max()) * float(gram.diagonal().max()) < _HARD:
        return False
    few = np.unique(np.linspace(0, n - 1, min(n, _PROBED)).astype(np.intp))
    return 2 * len(Landmarks.of(gram, few).rows) <= len(few)
