"""Linear problems with the 1-norm regulariser: single fits and the exact path."""

from anynorm.problem.path_record import PathRecord
from anynorm.solvers.one_norm.chunked_one_norm import solve_chunked_one_norm
from anynorm.solvers.one_norm.exact_path import PathInProgress, RecordInterrupted, follow_path
from anynorm.solvers.one_norm.rising_price import RisingPrice
from anynorm.solvers.one_norm.solve import solve_one_norm

__all__ = [
    "PathInProgress",
    "PathRecord",
    "RecordInterrupted",
    "RisingPrice",
    "follow_path",
    "solve_chunked_one_norm",
    "solve_one_norm",
]
