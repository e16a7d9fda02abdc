"""What is to be solved, how good an answer is, and what a solver hands back."""

from anynorm.problem.hull import HullProblem
from anynorm.problem.lasso import LassoProblem
from anynorm.problem.svm import Problem

__all__ = ["HullProblem", "LassoProblem", "Problem"]
