"""Kernel duals: block SMO for boxes and budgets, and what is built around it."""

from anynorm.kernels.rows import KernelRows
from anynorm.solvers.kernel.family import Chain, Limits, Member, before_scores, solve_family
from anynorm.solvers.kernel.solve import METHODS, solve_kernel
from anynorm.solvers.kernel.strict_apart import solve_strict_apart
from anynorm.solvers.kernel.strict_budget import rows_in_order, solve_strict

__all__ = [
    "METHODS",
    "Chain",
    "KernelRows",
    "Limits",
    "Member",
    "before_scores",
    "rows_in_order",
    "solve_family",
    "solve_kernel",
    "solve_strict",
    "solve_strict_apart",
]
