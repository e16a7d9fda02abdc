"""Every slack norm as a CVXPY expression, from its primal definition."""

import cvxpy as cp
import numpy as np

from anynorm import norms


def norm_expression(slack, w, xi):
    """The cost of xi as an expression, with the constraints of its auxiliary variables."""
    n = len(w)
    root = np.sqrt(w)
    if hasattr(slack, "expression"):
        return slack.expression(xi), []
    if isinstance(slack, norms.SquaredL2):
        return cp.sum_squares(cp.multiply(root, xi)), []
    if isinstance(slack, norms.L1):
        return w @ cp.abs(xi), []
    if isinstance(slack, norms.L2):
        return cp.norm(cp.multiply(root, xi), 2), []
    if isinstance(slack, norms.LInf):
        return cp.norm(xi[np.flatnonzero(w > 0)], "inf"), []
    if isinstance(slack, norms.Lp):
        return cp.pnorm(cp.multiply(w ** (1 / slack.p), xi), slack.p), []
    if isinstance(slack, norms.Mahalanobis):
        return cp.norm(np.linalg.cholesky(np.asarray(slack.M)).T @ xi, 2), []
    upper, level = cp.Variable(n, nonneg=True), cp.Variable(nonneg=True)
    if isinstance(slack, norms.K12):
        lower = cp.Variable(n, nonneg=True)
        cost = w @ upper + np.sqrt(slack.r) * cp.norm(cp.multiply(root, lower), 2)
        return cost, [cp.abs(xi) <= upper + lower]
    present = np.flatnonzero(w > 0)
    rules = [cp.abs(xi[present]) <= upper[present] + level]
    if isinstance(slack, norms.TopK):
        return w @ upper + slack.k * level, rules
    assert isinstance(slack, norms.TopK2)
    return cp.norm(cp.multiply(root, upper), 2) + np.sqrt(slack.k) * level, rules
