"""Linear problems with the 2-norm regulariser."""

from anynorm.solvers.linear.solve import solve_linear

__all__ = ["solve_linear"]
