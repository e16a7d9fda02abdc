"""Problems on the simplex: the point of least norm in the hull of some points."""

from anynorm.design.points import KernelPoints, MatrixPoints, Points
from anynorm.solvers.simplex.min_norm import min_norm_point
from anynorm.solvers.simplex.sublinear import SublinearSolution, sublinear_svm

__all__ = [
    "KernelPoints",
    "MatrixPoints",
    "Points",
    "SublinearSolution",
    "min_norm_point",
    "sublinear_svm",
]
