"""Independent solutions of small problems, by solvers that share no code with anynorm.

norm_expression        a slack norm as a convex expression (CVXPY)
solve_primal           the primal as written, for every cell of the grid (CVXPY, Clarabel)
solve_linear_program   the cells that are linear programmes (HiGHS)
least_one_norm         the least 1-norm objective of data, by whichever of the two is exact
least_two_norm         the least 2-norm objective of data
"""

import pytest

pytest.importorskip(
    "cvxpy", reason="the reference solutions need cvxpy (pip install anynorm[test])"
)
pytest.importorskip("highspy", reason="the reference solutions need highspy")

from tests.references.least_value import least_one_norm, least_two_norm
from tests.references.linear_program import solve_linear_program
from tests.references.norm_expression import norm_expression
from tests.references.primal import Reference, solve_primal

__all__ = [
    "Reference",
    "least_one_norm",
    "least_two_norm",
    "norm_expression",
    "solve_linear_program",
    "solve_primal",
]
