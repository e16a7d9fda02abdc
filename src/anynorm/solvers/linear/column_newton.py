"""Few dense columns: Newton's method with everything it needs in memory, many steps to a call.

The mathematics stands with the compiled loops (`column_newton_loops`).  What is kept between two
solves: the Gram matrix of the rows with curvature, in which few rows come and go from one set of
weights, or of columns, to the next.
"""

from __future__ import annotations

import numpy as np

from anynorm.design import Design
from anynorm.design.addresses import list_of
from anynorm.design.far_columns import far_means
from anynorm.design.limits import FLOOR, STEPS_PER_CALL
from anynorm.norms.dual_sets import Box, DualSet
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear.few_rows import RowsDual

MOST_COLUMNS = 300  # a factor of 9e6 multiplications: beyond, LAPACK's is far faster
MOST_IN_WALK = 1000  # ten rounds, ten C: 1600 x 400 0.9 s, by LAPACK's 9.4 s
_MOST_ENTRIES = 16_000_000  # of X, dense: 128 MB
_MOST_IN_SPARSE = 4_000_000  # of a sparse X as well, which is made dense
_SMALLEST_TOL = 1e-8  # gaps below it are for the methods that refine their last digits
_MOST_STEPS = 200  # for one solve, before the other methods get it
_FIRST_SIGMA, _WARM_SIGMA = 0.5, 8.0  # 1 over the smoothing width, in margins: cold, and started


def few_columns_suit(X: Design, box: DualSet, tol: float, *, most: int = MOST_COLUMNS) -> bool:
    """Whether X has the shape, and the loss with this dual set is one, for this method."""
    few = X.p <= most and X.n * X.p <= (_MOST_IN_SPARSE if X.sparse else _MOST_ENTRIES)
    bounded = isinstance(box, Box) and bool(np.isfinite(box.lower).all())
    if not (few and bounded and tol >= _SMALLEST_TOL):
        return False
    return not X.large_columns.size and far_means(X) is None


class ColumnNewton:
    """The method for one problem, on whatever columns are in use.

    Parameters
    ----------
    dual : RowsDual
        Labels and bounds of the rows.
    weights : ndarray of shape (n,)
        The weights of the rows, to which their bounds are proportional.
    """

    def __init__(self, dual: RowsDual, weights: np.ndarray) -> None:
        from anynorm.solvers.linear import column_newton_loops as loops

        self.loops = loops
        lower, upper, shift = dual.box
        self.rows = np.zeros((len(loops.ROW_NAMES), len(dual.y)))
        self.rows[loops.LABEL : loops.WEIGHT + 1] = dual.y, lower, upper, shift, weights
        self.floor = FLOOR * dual.empty
        self.gram: np.ndarray | None = None
        self.table = np.zeros((0, 0))

    def keep(self, places: np.ndarray) -> None:
        """Go on with some of the columns, ascending."""
        if self.gram is not None:
            self.gram = self.gram[np.ix_(places, places)]
            self.table = np.take(self.table, places, axis=1)

    def forget(self) -> None:
        """Go on with other columns."""
        self.gram = None

    def solve(
        self,
        columns: np.ndarray,
        root: np.ndarray,
        start: tuple[np.ndarray, float, np.ndarray, np.ndarray],
        *,
        precision: float,
        warm: bool,
        tol: float,
        sharp: float = np.inf,
        budget: Budget,
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
        """Coefficients, their scores and beta at a gap of about `tol`, where it is reached; steps.

        `columns[j]` is column j of X, `root` its weight v; `start` has coefficients, bias, scores
        and beta.  `sharp` is what may be left of ``1/2 ||u - A'beta||^2``, relative to the primal
        value: a small one makes the coefficients that belong to beta as good as those found.
        """
        loops, m, n = self.loops, *columns.shape
        if self.gram is None:
            self.gram, self.table = np.zeros((m, m)), np.zeros((len(loops.VECTOR_NAMES), m))
            self.rows[loops.MEMBER] = 0.0
        coef, bias, scores, beta = start
        rows, table, numbers = self.rows, self.table, np.zeros(len(loops.NUMBER_NAMES))
        rows[loops.SCORE], rows[loops.BETA] = scores, beta
        table[loops.ROOT] = root
        table[loops.U] = np.divide(coef, root, out=np.zeros(m), where=root > 0)
        numbers[loops.BIAS], numbers[loops.PRECISION] = bias, precision
        numbers[loops.SIGMA] = _WARM_SIGMA if warm else _FIRST_SIGMA
        numbers[loops.LAST] = np.inf
        places = np.empty(n + loops.MORE_PLACES, dtype=np.int64)
        used = columns, rows, table, numbers, self.gram, np.empty((m, m)), places
        tables, newton_steps, steps = list_of(used), loops.newton_loop(), 0
        most = min(_MOST_STEPS, max(budget.left, 1))
        share = max(1, STEPS_PER_CALL // (n * (m + 1) ** 2))
        while steps < most and budget.in_time():
            allowed = min(share, most - steps)
            made = newton_steps(tables.ctypes.data, tol, sharp, self.floor, allowed)
            steps += made
            if made < allowed:
                break
        coef, self.bias = root * table[loops.U], float(numbers[loops.BIAS])
        return coef, rows[loops.SCORE].copy(), rows[loops.BETA].copy(), max(1, steps)
