"""The least objective of data: HiGHS for linear programmes, Clarabel for all else."""

import numpy as np
import scipy.sparse as sp

from anynorm.losses import get_loss
from anynorm.problem import Problem
from tests.references.linear_program import solve_linear_program
from tests.references.primal import solve_primal


def least_one_norm(X, y, *, loss="hinge", scale=None, penalties=None, **parameters):
    """The optimal value with the 1-norm; the columns of X are to be multiplied by `scale`."""
    if scale is not None:
        penalties = 1 / np.asarray(scale)
    more = {"regulariser": "l1", "penalty_weights": penalties}
    problem = _problem(X, y, loss, **parameters, **more)
    if loss in ("hinge", "absolute"):
        return solve_linear_program(problem)
    return solve_primal(problem).value


def least_two_norm(X, y, *, loss="hinge", scale=None, **parameters):
    """The optimal value with the 2-norm; the columns of X are to be multiplied by `scale`."""
    scale = None if scale is None else np.asarray(scale, dtype=np.float64)
    return solve_primal(_problem(X, y, loss, **parameters, feature_scale=scale)).value


def _problem(X, y, loss, *, C=1.0, intercept="free", weights=None, **more):
    """The larger of the two labels in y is +1."""
    return Problem(
        y=np.where(np.asarray(y) == np.max(y), 1.0, -1.0),
        C=C,
        loss=get_loss(loss),
        X=X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64),
        sample_weight=weights,
        intercept=intercept,
        **more,
    )
