"""Gap-safe screening: what of the optimum is known for certain at a point that is not optimal.

Let P be the primal value at (f, b), D the dual value at a feasible a, and G = P - D.

**The ball of the 2-norm problems.**  1/2 ||f||^2 makes P grow at least by 1/2 ||f - f*||^2 from
its minimum, and D fall at least by 1/2 ||f_a - f*||^2 from its maximum, f_a being the function of
the duals.  Together these are at most G; by the parallelogram law f* lies in the ball

    centre c = (f + f_a)/2,     r^2 = G - 1/4 ||f - f_a||^2,

so that ``|f*(x_i) - c(x_i)| <= r ||x_i||``, with sqrt(K_ii) for a kernel.  For f = f_a this is
r = sqrt(G), where strong convexity of P alone gives sqrt(2 G).  A regularised bias is a feature.

**The interval of a free bias.**  b* minimises a sum of convex functions of f*(x_i) + b.  Its slope
in b rises with b and with every score, so the ends of the interval of its minimisers fall as
scores rise.  With the scores known up to e_i = r ||x_i||,

    b* in [ lowest minimiser for c + e,  highest minimiser for c - e ],

by sorting breakpoints, as `anynorm.losses.bias` does for given scores.  The L2 and LInf slacks,
whose minimisers also fall as scores rise, are treated alike; other norms need a problem without a
free bias.

**Rows.**  By complementary slackness, with margins m_i at any optimum:

    inequality constraints, any norm    m_i > 1  ->  a_i = 0, not a support vector
    hinge                               m_i < 1  ->  a_i = C w_i
    absolute                            m_i < 1  ->  a_i = C w_i,     m_i > 1  ->  a_i = -C w_i

**Features** (1-norm with the squared hinge, logistic or squared loss h).  Where h'' <= 1/mu_i,
P exceeds its minimum by at least q(a_P - a*) and D is below its maximum by at least q(a - a*),
with q(d) = 1/2 sum mu_i d_i^2 and a_P = h' at the residuals of the primal point.  Again by the
parallelogram law, for the centre c = (a_P + a)/2,

    q(c - a*) <= rho^2 = G/2 - 1/4 q(a_P - a),
    |X_j'(y a*)| <= |X_j'(y c)| + rho sqrt(2 sum_i x_ij^2/mu_i),

and a feature is zero where the right side is below its penalty.  A free bias has y'a* = 0: then
x_ij counts from the column's mean (with weights 1/mu), and |mean| |y'c| is added.
The hinge has no curvature in its dual, hence no such ball.

All radii are widened by what rounding may have done to P, D and the scores.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anynorm.design.limits import ROUNDING
from anynorm.design.threads import entry_point
from anynorm.losses.bias import optimal_bias_interval
from anynorm.norms.dual_sets import Box
from anynorm.problem import Problem
from anynorm.problem.certificate import certify, relative_gap
from anynorm.problem.repair import Array, repair_dual
from anynorm.problem.solution import Solution, Status

Mask = NDArray[np.bool_]

__all__ = ["Screening", "screen"]


class Ball(NamedTuple):
    """Where the scores of the optimum are: ``|f*_i - centre_i| <= radius * length_i + error_i``.

    The errors are those of centres which were computed in less than float64.
    """

    centre: Array
    lengths: Array
    radius: float
    error: Array | float = 0.0

    def reach(self) -> Array:
        """How far the scores may be from the centre, rounding included."""
        reach = self.radius * self.lengths + self.error
        return np.asarray(reach + ROUNDING * (1.0 + np.abs(self.centre)))


@dataclass(frozen=True, eq=False)
class Screening:
    """What is certain about every optimum, from one primal and one dual point.

    Attributes
    ----------
    zero_rows : ndarray of bool, shape (n,)
        Rows that are certainly not support vectors: their dual variable is 0.
    bound_rows : ndarray of bool, shape (n,)
        Rows whose dual variable is certainly at its bound (hinge and absolute loss).
    dual_values : ndarray of shape (n,)
        The dual variables that are certain, NaN elsewhere.
    zero_features : ndarray of bool, shape (p,)
        Features whose coefficient is certainly 0 (none for the 2-norm and for kernels).
    radius : float
        Of the ball around the optimal function, or around the optimal duals (1-norm).
    bias_interval : (float, float)
        Where every optimal free bias is; infinite ends where nothing is known.
    gap : float
        The relative duality gap of the two points.
    """

    zero_rows: Mask
    bound_rows: Mask
    dual_values: Array
    zero_features: Mask
    radius: float
    bias_interval: tuple[float, float]
    gap: float

    @property
    def kept_rows(self) -> NDArray[np.intp]:
        """The rows that may be support vectors."""
        return np.flatnonzero(~self.zero_rows)

    @property
    def kept_features(self) -> NDArray[np.intp]:
        """The features whose coefficient may differ from 0."""
        return np.flatnonzero(~self.zero_features)

    def __str__(self) -> str:
        n, p = len(self.zero_rows), len(self.zero_features)
        parts = [
            f"{np.count_nonzero(self.zero_rows)} of {n} rows are no support vectors",
            f"{np.count_nonzero(self.bound_rows)} are at their bound",
        ]
        if p:
            parts.append(f"{np.count_nonzero(self.zero_features)} of {p} features are zero")
        return f"{', '.join(parts)} (relative gap {self.gap:.1e}, radius {self.radius:.2g})"


@entry_point
def screen(problem: Problem, solution: Solution) -> Screening:
    """Return what is certain about the optimum, given any solution, however rough.

    Parameters
    ----------
    problem : Problem
        The 2-norm on features or a kernel, with any loss (rows), or the 1-norm with the squared
        hinge, logistic or squared loss (features).
    solution : Solution
        Its coefficients and its duals are used; the smaller their gap, the more is certain.

    Returns
    -------
    Screening
        The rows and features that are fixed, with the radius and the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from anynorm.kernels.gram import Gram
    >>> from anynorm.losses import get_loss
    >>> from anynorm.problem import Problem
    >>> from anynorm.screening import screen
    >>> from anynorm.solvers.kernel import solve_kernel
    >>> X, y = np.array([[-9.0], [-1.0], [1.0], [9.0]]), np.array([-1.0, -1.0, 1.0, 1.0])
    >>> problem = Problem(y=y, C=10.0, loss=get_loss("squared_hinge"), gram=Gram.linear(X))
    >>> report = screen(problem, solve_kernel(problem, tol=1e-3))
    >>> report.zero_rows
    array([ True, False, False,  True])
    """
    if problem.regulariser == "l1" and not problem.loss.smooth:
        raise ValueError(
            "the 1-norm can be screened with a smooth loss (squared_hinge, logistic, squared), "
            f"whose duals have curvature; got {problem.loss.name!r}"
        )
    coef = np.zeros(problem.n_coefs) if solution.coef is None else solution.coef
    coef = np.asarray(coef, dtype=np.float64)
    scores = problem.scores(coef)
    bias = solution.intercept
    if problem.free_bias:
        bias = problem.best_bias(scores)
    found = certify(problem, coef, bias, solution.dual, tol=0.0, scores=scores)
    if found.status is Status.UNCERTIFIED or not math.isfinite(found.gap):
        return _nothing(problem, found.gap)
    dual = repair_dual(problem, solution.dual)
    if problem.regulariser == "l1":
        return _screened_features(problem, coef, bias, dual, scores)
    ball = safe_ball(problem, coef, bias, dual, scores=scores)
    gap = relative_gap(found.primal, found.dual)
    return screened_rows(problem, ball, gap)


def safe_ball(
    problem: Problem, coef: Array, bias: float, dual: Array, *, scores: Array | None = None
) -> Ball:
    """Return the ball of a 2-norm problem around its optimum, from feasible duals.

    The bias of the primal point should be the best one.  `scores` is ``problem.scores(coef)`` where
    it is at hand; it serves the duals too where they are coef.
    """
    scores = problem.scores(coef) if scores is None else scores
    beta, loss = problem.y * dual, problem.loss
    if problem.gram is not None:
        same = dual is coef or np.array_equal(coef, dual)
        pulled = scores if same else problem.pull_back(dual)
        of_dual = pulled
        apart = float((problem.y * (coef - dual)) @ (scores - pulled))
        squares = problem.gram.diagonal()
        size = float(np.abs(dual) @ np.sqrt(np.maximum(squares, 0.0)))
    else:
        v = np.ones(problem.n_coefs) if problem.feature_scale is None else problem.feature_scale
        pulled = problem.pull_back(dual)
        scaled = problem.design.scaled(problem.feature_scale)
        of_dual = scaled.matvec(pulled)
        difference = np.divide(coef, v, out=np.zeros(len(v)), where=v != 0) - pulled
        apart = float(difference @ difference)
        squares = scaled.row_norms_squared()
        size = float(np.linalg.norm(difference) + np.linalg.norm(pulled))
    s = problem.bias_feature
    centre = 0.5 * (scores + of_dual)
    if s:
        apart += (bias / s - s * float(beta.sum())) ** 2
        centre = centre + 0.5 * (bias + s**2 * float(beta.sum()))
        squares = squares + s**2
        size += abs(bias / s) + s * float(np.abs(beta).sum())
    primal = problem.objective(coef, bias, scores=scores)
    gain = loss.dual_gain(dual, problem.C, problem.sample_weight)
    curvature = problem.curvature(dual, pulled)
    gap = max(primal - gain + 0.5 * curvature, 0.0)
    rounding = ROUNDING * (abs(primal) + abs(gain) + curvature + float(np.abs(dual).sum()))
    square = max(gap - 0.25 * max(apart, 0.0), 0.0) + rounding
    radius = math.sqrt(square) + ROUNDING * size
    if not math.isfinite(radius):
        radius = math.inf
    return Ball(centre, np.sqrt(np.maximum(squares, 0.0)), radius)


def bias_bounds(problem: Problem, ball: Ball) -> tuple[float, float]:
    """Return an interval that holds every optimal bias; (0, 0) where the bias is no variable."""
    if not problem.free_bias:
        return 0.0, 0.0
    if not math.isfinite(ball.radius) or not problem.loss.bias_falls:
        return -math.inf, math.inf
    error = ball.reach()
    pieces = problem.y, problem.C, problem.sample_weight
    low = optimal_bias_interval(problem.loss, ball.centre + error, *pieces)[0]
    high = optimal_bias_interval(problem.loss, ball.centre - error, *pieces)[1]
    return low, high


def screened_rows(problem: Problem, ball: Ball, gap: float) -> Screening:
    """Return what is certain of the rows of a 2-norm problem within a ball."""
    low, high = bias_bounds(problem, ball)
    y, n = problem.y, problem.n_rows
    weights = problem.row_weights()
    least = np.full(n, -math.inf)
    most = np.full(n, math.inf)
    if math.isfinite(ball.radius):
        error, ahead = ball.reach(), y * ball.centre
        least = ahead - error + np.where(y > 0, low, -high)
        most = ahead + error + np.where(y > 0, high, -low)
    values = np.full(n, math.nan)
    box = problem.dual_set
    if isinstance(box, Box) and not problem.loss.smooth:
        values[most < 1.0] = box.upper[most < 1.0]
        values[least > 1.0] = box.lower[least > 1.0]
    elif problem.loss.one_sided:
        values[least > 1.0] = 0.0
    values[weights == 0] = 0.0
    zero = values == 0
    none = np.zeros(0 if problem.gram is not None else problem.n_coefs, dtype=bool)
    interval = (low, high)
    return Screening(zero, ~np.isnan(values) & ~zero, values, none, ball.radius, interval, gap)


def _screened_features(
    problem: Problem, coef: Array, bias: float, dual: Array, scores: Array
) -> Screening:
    """What is certain of the features of a 1-norm problem with a smooth loss."""
    y, loss, C = problem.y, problem.loss, problem.C
    weights = C * problem.row_weights()
    curve = loss.curve(weights)
    assert curve is not None
    assert loss.curvature_bound is not None
    bend = loss.curvature_bound * weights  # 1/mu
    pull = curve.dual(1.0 - y * (scores + bias))
    primal = problem.objective(coef, bias, scores=scores)
    gain = loss.dual_gain(dual, C, problem.sample_weight)
    difference = pull - dual
    apart = np.divide(difference**2, bend, out=np.zeros(len(y)), where=bend > 0).sum()
    rounding = ROUNDING * (abs(primal) + abs(gain) + float(np.abs(dual).sum()))
    gap = max(primal - gain, 0.0)
    radius = math.sqrt(max(0.5 * gap - 0.125 * float(apart), 0.0) + rounding)
    centre = y * (0.5 * (pull + dual))
    squares = problem.design.column_norms_squared(bend)
    extra = np.zeros(problem.n_coefs)
    if problem.free_bias and bend.any():
        total = float(bend.sum())
        mean = problem.design.rmatvec(bend) / total
        off = abs(float(centre.sum())) + ROUNDING * float(np.abs(centre).sum())
        extra = np.abs(mean) * off
        # What cancels here is known no better than to the last digits of the larger one.
        squares = np.maximum(squares - total * mean**2, 0.0) + 4e-16 * len(y) * squares
    pulled = np.abs(problem.design.rmatvec(centre)) + extra
    most = pulled + (radius + ROUNDING * math.sqrt(primal)) * np.sqrt(2 * squares)
    u = np.ones(problem.n_coefs) if problem.penalty_weights is None else problem.penalty_weights
    nothing = np.zeros(len(y), dtype=bool)
    return Screening(
        nothing,
        nothing,
        np.full(len(y), math.nan),
        most < u * (1 - ROUNDING),
        radius,
        (-math.inf, math.inf) if problem.free_bias else (0.0, 0.0),
        relative_gap(primal, gain),
    )


def _nothing(problem: Problem, gap: float) -> Screening:
    """Nothing is certain: there is no finite gap."""
    rows = np.zeros(problem.n_rows, dtype=bool)
    features = np.zeros(0 if problem.gram is not None else problem.n_coefs, dtype=bool)
    interval = (-math.inf, math.inf) if problem.free_bias else (0.0, 0.0)
    unknown = np.full(problem.n_rows, math.nan)
    return Screening(rows, rows, unknown, features, math.inf, interval, gap)
