"""The least 1-norm objective: HiGHS for linear programmes, Clarabel for the smooth losses."""

import numpy as np
import scipy.sparse as sp

from anynorm.losses import get_loss
from anynorm.problem import Problem
from tests.references.linear_program import solve_linear_program
from tests.references.primal import solve_primal


def least_one_norm(X, y, *, C=1.0, loss="hinge", intercept="free", weights=None, penalties=None):
    """The optimal value; the larger of the two labels in y is +1."""
    problem = Problem(
        y=np.where(np.asarray(y) == np.max(y), 1.0, -1.0),
        C=C,
        loss=get_loss(loss),
        X=X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64),
        regulariser="l1",
        sample_weight=weights,
        penalty_weights=penalties,
        intercept=intercept,
    )
    if loss in ("hinge", "absolute"):
        return solve_linear_program(problem)
    return solve_primal(problem).value
