"""The 1-norm SVM by linear programming, for a grid of C.

    minimise_{w, b}   ||w||_1 + C sum_i (1 - y_i (x_i'w + b))_+

through its dual, which has one column per example and one row per feature,

    maximise   sum(a),   |X_j'(y * a)| <= 1 for all j,   0 <= a <= C,   y'a = 0 where b is free.

HiGHS goes through the grid from small to large C; from one value to the next only bounds change,
so its simplex method starts from the last basis.  With `interior` it is the interior-point method
without crossover instead, which ends close to the optimum but not in a vertex.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from anynorm.certificate import optimal_bias
from anynorm.losses import get_loss


class OneNorm(NamedTuple):
    """A solution: coefficients, bias, the 1-norm objective, and the value of the dual."""

    coef: np.ndarray
    intercept: float
    objective: float
    bound: float


def one_norm_grid(
    X: Any, y: np.ndarray, Cs: Sequence[float], *, free_bias: bool, interior: bool = False
) -> list[OneNorm]:
    """Solve the 1-norm SVM for every C of an increasing grid.

    The bias is not penalised with `free_bias`; otherwise it is the weight of a constant feature
    of 1, penalised like the others.
    """
    if any(np.diff(Cs) <= 0):
        raise ValueError(f"Cs must increase; got {list(Cs)}")
    model = _Model(X, y, free_bias, interior)
    solutions: list[OneNorm] = []
    for C in Cs:
        if solutions and not interior and model.largest < model.C * (1 - 1e-9):
            # No dual variable is at its bound: the optimum stays for all larger C.
            solutions.append(model.at_end(solutions[-1], C))
        else:
            solutions.append(model.solve(C))
    return solutions


class _Model:
    """The linear program in HiGHS, with the bounds of one C at a time."""

    def __init__(self, X: Any, y: np.ndarray, free_bias: bool, interior: bool) -> None:
        self.X, self.y, self.free_bias = X, y, free_bias
        n, self.p = X.shape
        rows = sp.csr_matrix(X)
        constant = sp.csr_matrix(np.ones((n, 1)))
        columns = sp.hstack([rows, constant], format="csr")
        columns = sp.csr_matrix(sp.diags(y) @ columns)  # its rows are the columns of the program
        program = highspy.HighsLp()
        program.num_col_, program.num_row_ = n, self.p + 1
        program.col_cost_ = -np.ones(n)
        program.col_lower_, program.col_upper_ = np.zeros(n), np.ones(n)
        program.row_lower_ = program.row_upper_ = np.zeros(self.p + 1)
        program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        program.a_matrix_.start_ = columns.indptr
        program.a_matrix_.index_ = columns.indices
        program.a_matrix_.value_ = columns.data.astype(np.float64)
        self.highs: Any = highspy.Highs()
        precision = 1e-7 if interior else 1e-9
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": 1,
            "primal_feasibility_tolerance": precision,
            "dual_feasibility_tolerance": precision,
        }
        if interior:
            options.update(solver="ipm", run_crossover="off", presolve="off")
        for name, value in options.items():
            self.highs.setOptionValue(name, value)
        self.highs.passModel(program)
        self.C = self.largest = 0.0

    def solve(self, C: float) -> OneNorm:
        """The optimum for one C, from the last basis."""
        n, p = len(self.y), self.p
        # The duals are kept in units in which neither bound is tiny: up to C, or up to 1.
        upper = max(C, 1.0)
        bound = np.full(p + 1, upper / C)
        if self.free_bias:
            bound[p] = 0.0
        self.highs.changeColsBounds(n, np.arange(n, dtype=np.int32), np.zeros(n), np.full(n, upper))
        self.highs.changeRowsBounds(p + 1, np.arange(p + 1, dtype=np.int32), -bound, bound)
        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS ended with {self.highs.getModelStatus()} at C={C:g}")
        solution = self.highs.getSolution()
        weights = -np.asarray(solution.row_dual)
        dual = np.asarray(solution.col_value)
        self.C, self.largest = C, float(dual.max()) * C / upper
        return self._finish(weights[:p], weights[p], C, float(dual.sum()) * C / upper)

    def at_end(self, last: OneNorm, C: float) -> OneNorm:
        """The solution of a smaller C where it holds for all larger ones."""
        return self._finish(last.coef, last.intercept, C, last.bound)

    def _finish(self, coef: np.ndarray, intercept: float, C: float, bound: float) -> OneNorm:
        scores = np.asarray(self.X @ coef, dtype=np.float64)
        penalty = float(np.abs(coef).sum())
        if self.free_bias:
            intercept = optimal_bias(get_loss("hinge"), scores, self.y, C)
        else:
            penalty += abs(intercept)
        loss = float(np.maximum(0, 1 - self.y * (scores + intercept)).sum())
        return OneNorm(coef, float(intercept), penalty + C * loss, bound)
