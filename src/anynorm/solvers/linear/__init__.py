"""Linear problems with the 2-norm regulariser, and the walk from there to the 1-norm."""

from anynorm.solvers.linear.solve import solve_linear
from anynorm.solvers.linear.walk import Round, walk

__all__ = ["Round", "solve_linear", "walk"]
