"""The cells that are linear programmes, by HiGHS.

    minimise    sum u_j |w_j| (+ |b/s|) + C N(xi),     N one of L1, LInf, TopK

with the absolute values, the largest entry and the sum of the k largest written out as
linear inequalities.
"""

import highspy
import numpy as np

from anynorm import norms
from anynorm.problem import Problem


def solve_linear_program(problem: Problem) -> float:
    """Return the optimal value of a problem with the 1-norm regulariser."""
    assert problem.regulariser == "l1"
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    n, p = problem.X.shape
    infinite = highspy.kHighsInf
    w = np.ones(n) if problem.sample_weight is None else problem.sample_weight
    u = np.ones(p) if problem.penalty_weights is None else problem.penalty_weights
    kept = np.flatnonzero(np.isfinite(u))
    coef = {j: highs.addVariable(-infinite, infinite, 0.0) for j in kept}
    size = {j: highs.addVariable(0.0, infinite, float(u[j])) for j in kept}
    for j in kept:
        highs.addConstr(size[j] - coef[j] >= 0)
        highs.addConstr(size[j] + coef[j] >= 0)
    bias = _add_bias(highs, problem, infinite)
    cost = _add_slacks(highs, problem, w, infinite)
    equality = problem.loss.constraints == "equality"
    for i in range(n):
        margin = sum((float(problem.y[i] * problem.X[i, j]) * coef[j] for j in kept), 0.0 * bias)
        margin = margin + float(problem.y[i]) * bias
        highs.addConstr(margin + cost[i] >= 1)
        if equality:
            highs.addConstr(margin - cost[i] <= 1)
    highs.run()
    assert highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return float(highs.getInfo().objective_function_value)


def _add_bias(highs, problem, infinite):
    if problem.intercept is None:
        return highs.addVariable(0.0, 0.0, 0.0)
    bias = highs.addVariable(-infinite, infinite, 0.0)
    if problem.bias_feature:
        size = highs.addVariable(0.0, infinite, 1.0 / abs(problem.bias_feature))
        highs.addConstr(size - bias >= 0)
        highs.addConstr(size + bias >= 0)
    return bias


def _add_slacks(highs, problem, w, infinite):
    """Non-negative variables xi_i with the costs of the norm."""
    C, slack = problem.C, problem.loss.slack
    if isinstance(slack, norms.L1):
        return [highs.addVariable(0.0, infinite, float(C * wi)) for wi in w]
    cost = [highs.addVariable(0.0, infinite, 0.0) for _ in w]
    weight = 1.0 if isinstance(slack, norms.LInf) else float(slack.k)
    level = highs.addVariable(0.0, infinite, C * weight)
    for i in np.flatnonzero(w > 0):
        if isinstance(slack, norms.LInf):
            highs.addConstr(level - cost[i] >= 0)
        else:
            above = highs.addVariable(0.0, infinite, float(C * w[i]))
            highs.addConstr(level + above - cost[i] >= 0)
    return cost
