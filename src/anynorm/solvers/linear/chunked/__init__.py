"""Linear problems whose rows live apart, by rounds of sums over blocks of rows."""

from anynorm.solvers.linear.chunked.solve import solve_chunked

__all__ = ["solve_chunked"]
