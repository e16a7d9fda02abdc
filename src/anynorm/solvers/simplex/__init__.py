"""Problems on the simplex: the point of least norm in the hull of some points, and its kin."""

from anynorm.solvers.simplex.lasso_in_kernel import solve_kernel_lasso
from anynorm.solvers.simplex.min_norm import solve_min_norm
from anynorm.solvers.simplex.sublinear import SublinearSolution, solve_sublinear

__all__ = ["SublinearSolution", "solve_kernel_lasso", "solve_min_norm", "solve_sublinear"]
