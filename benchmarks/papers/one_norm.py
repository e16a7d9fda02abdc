"""The 1-norm SVM for a grid of C.

    minimise_{w, b}   ||w||_1 + C sum_i (1 - y_i (x_i'w + b))_+

The exact path is followed once, and read off at every C.  With `interior` it is an interior-point
method instead, as the walk paper had: HiGHS without crossover, on the dual

    maximise   sum(a),   |X_j'(y * a)| <= 1 for all j,   0 <= a <= C,   y'a = 0 where b is free,

one programme for each C.  It ends close to the optimum but not in a vertex.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import highspy
import numpy as np
import scipy.sparse as sp

from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.losses import get_loss
from anynorm.losses.bias import optimal_bias
from anynorm.problem import Problem
from anynorm.problem.certificate import relative_gap
from anynorm.solvers.one_norm import follow_path


class OneNorm(NamedTuple):
    """A solution: coefficients, bias, the 1-norm objective, and the relative duality gap.

    On a path the gap is the worst of all its knots.
    """

    coef: np.ndarray
    intercept: float
    objective: float
    gap: float


def one_norm_grid(
    X: Any, y: np.ndarray, Cs: Sequence[float], *, free_bias: bool, interior: bool = False
) -> list[OneNorm]:
    """Solve the 1-norm SVM for every C of an increasing grid.

    The bias is not penalised with `free_bias`; otherwise it is the weight of a constant feature
    of 1, penalised like the others.
    """
    if any(np.diff(Cs) <= 0):
        raise ValueError(f"Cs must increase; got {list(Cs)}")
    problem = Problem(
        y=y, C=1.0, loss=get_loss("hinge"), X=X, regulariser="l1",
        intercept="free" if free_bias else 1.0,
    )  # fmt: skip
    if interior:
        model = _Model(problem)
        return [model.solve(C) for C in Cs]
    record = follow_path(problem, penalty_min=1 / Cs[-1])
    path, gap = SolutionPath(problem, record), float(record.gaps.max())
    solutions = []
    for C in Cs:
        coef, intercept = path.coef_at(C=C)
        value = replace(problem, C=C).objective(coef, intercept)
        solutions.append(OneNorm(coef, intercept, value, gap))
    return solutions


class _Model:
    """The linear program in HiGHS, with the bounds of one C at a time."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        n, self.p = problem.X.shape
        rows = sp.csr_matrix(problem.X)
        constant = sp.csr_matrix(np.ones((n, 1)))
        columns = sp.hstack([rows, constant], format="csr")
        columns = sp.csr_matrix(sp.diags(problem.y) @ columns)  # rows: the program's columns
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
        options: dict[str, Any] = {
            "output_flag": False, "threads": 1, "solver": "ipm", "run_crossover": "off",
            "presolve": "off",
        }  # fmt: skip
        for name, value in options.items():
            self.highs.setOptionValue(name, value)
        self.highs.passModel(program)

    def solve(self, C: float) -> OneNorm:
        """Close to the optimum for one C."""
        n, p, free_bias = self.problem.n_rows, self.p, self.problem.free_bias
        # The duals are kept in units in which neither bound is tiny: up to C, or up to 1.
        upper = max(C, 1.0)
        bound = np.full(p + 1, upper / C)
        if free_bias:
            bound[p] = 0.0
        self.highs.changeColsBounds(n, np.arange(n, dtype=np.int32), np.zeros(n), np.full(n, upper))
        self.highs.changeRowsBounds(p + 1, np.arange(p + 1, dtype=np.int32), -bound, bound)
        self.highs.run()
        if self.highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise RuntimeError(f"HiGHS ended with {self.highs.getModelStatus()} at C={C:g}")
        solution = self.highs.getSolution()
        weights = -np.asarray(solution.row_dual)
        dual = float(np.sum(solution.col_value)) * C / upper
        problem = replace(self.problem, C=C)
        coef, intercept = weights[:p], float(weights[p])
        if free_bias:
            intercept = optimal_bias(problem.loss, problem.scores(coef), problem.y, C)
        value = problem.objective(coef, intercept)
        return OneNorm(coef, intercept, value, relative_gap(value, dual))
