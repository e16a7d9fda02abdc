"""Where X lives: products, rows and columns of a matrix of features, however it is stored."""

from anynorm.design.products import (
    Matrix,
    column_norms_squared,
    matvec,
    rmatvec,
    row_norms_squared,
    take_rows,
)

__all__ = [
    "Matrix",
    "column_norms_squared",
    "matvec",
    "rmatvec",
    "row_norms_squared",
    "take_rows",
]
