"""Linear problems whose rows live apart, by rounds of sums over blocks of rows."""

from anynorm.solvers.linear.chunked.chunked_walk import ChunkedRound, walk_chunked
from anynorm.solvers.linear.chunked.solve import solve_chunked

__all__ = ["ChunkedRound", "solve_chunked", "walk_chunked"]
