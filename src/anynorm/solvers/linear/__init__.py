"""Linear problems with the 2-norm regulariser, and the walk from there to the 1-norm."""

from anynorm.solvers.linear.rounds import Round
from anynorm.solvers.linear.solve import solve_linear
from anynorm.solvers.linear.walk import shared_over_C, walk, walk_over_C

__all__ = ["Round", "shared_over_C", "solve_linear", "walk", "walk_over_C"]
