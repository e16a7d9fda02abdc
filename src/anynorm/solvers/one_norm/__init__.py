"""Linear problems with the 1-norm regulariser: single fits and the exact path."""

from anynorm.solvers.one_norm.solve import solve_one_norm

__all__ = ["solve_one_norm"]
