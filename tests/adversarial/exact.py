"""Objectives from their definitions, in extended precision and with nothing of the package."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from scipy.optimize import nnls

from anynorm import norms

Exact = np.longdouble


def exactly(values) -> np.ndarray:
    """An array in extended precision."""
    return np.asarray(values, dtype=Exact)


def norm_value(slack, xi, w) -> Exact:
    """The cost of slacks, weighted so that a row of weight 2 is two rows."""
    v, w = np.abs(exactly(xi)), exactly(w)
    present = v[w > 0].max(initial=0)
    if isinstance(slack, norms.SquaredL2):
        return w @ v**2
    if isinstance(slack, norms.L1):
        return w @ v
    if isinstance(slack, norms.L2):
        return np.sqrt(w @ v**2)
    if isinstance(slack, norms.LInf):
        return present
    if isinstance(slack, norms.Lp):
        return (w @ (v / present) ** slack.p) ** (1 / Exact(slack.p)) * present if present else v[0]
    if isinstance(slack, norms.Mahalanobis):
        return np.sqrt(np.maximum(exactly(xi) @ exactly(slack.M) @ exactly(xi), 0))
    levels = np.unique(np.append(v[w > 0], 0))
    if isinstance(slack, norms.TopK):  # linear between the levels
        return min(Exact(slack.k) * t + w @ np.maximum(v - t, 0) for t in levels)
    if isinstance(slack, norms.TopK2):
        root = np.sqrt(Exact(slack.k))
        return _least(lambda t: root * t + np.sqrt(w @ np.maximum(v - t, 0) ** 2), present)
    assert isinstance(slack, norms.K12)
    return min(_split(v, w, Exact(slack.r), t) for t in (*levels, *_turns(v, w, slack.r, levels)))


def _split(v, w, r, t):
    """What lies below t costs its 2-norm, what lies above its 1-norm."""
    return w @ np.maximum(v - t, 0) + np.sqrt(r * (w @ np.minimum(v, t) ** 2))


def _turns(v, w, r, levels):
    """Where the derivative of `_split` vanishes between two levels."""
    for low, high in pairwise(levels):
        above = v > low
        left = Exact(r) - w[above].sum()
        if left > 0:
            t = np.sqrt(w[~above] @ v[~above] ** 2 / left)
            if low < t < high:
                yield t


def _least(function, high: Exact) -> Exact:
    """The least value of a convex function between 0 and `high`."""
    low = Exact(0)
    for _ in range(120):  # thirds: the last digits of a value need half the digits of its place
        a, b = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, b) if function(a) <= function(b) else (a, high)
    return min(function(Exact(0)), function((low + high) / 2))


def loss_value(loss, margins, w) -> Exact:
    """The loss, C apart: a name, or a slack with its constraints."""
    residual = 1 - margins
    if loss == "logistic":
        return exactly(w) @ np.logaddexp(Exact(0), -margins)
    slack, equality = NAMED.get(loss, loss) if isinstance(loss, str) else loss
    if not equality:
        residual = np.maximum(residual, 0)
        if not slack.monotone:
            residual = _cheapest_above(slack, residual)
    return norm_value(slack, residual, w)


NAMED = {
    "hinge": (norms.L1(), False),
    "squared_hinge": (norms.SquaredL2(), False),
    "absolute": (norms.L1(), True),
    "squared": (norms.SquaredL2(), True),
}
"""Slack, and whether margins above 1 cost too."""


def _cheapest_above(slack, lower):
    """The cheapest slacks that are nowhere below `lower`."""
    root = np.linalg.cholesky(np.asarray(slack.M)).T
    scale = float(lower.max(initial=0)) or 1.0
    low = np.asarray(lower / scale, dtype=np.float64)
    return lower + scale * exactly(nnls(root, -root @ low)[0])


def linear_value(X, y, C, loss, w, coef, bias, *, s=None, scales=None, penalties=None) -> Exact:
    """R + C loss of coefficients: the 2-norm, over `scales`, or the 1-norm with `penalties`.

    s is the value of the constant feature of a penalised bias.
    """
    coef, bias = exactly(coef), Exact(bias)
    margins = y * (exactly(X) @ coef + bias)
    rest = Exact(0) if s is None else bias / Exact(s)
    used = coef != 0
    if penalties is not None:
        size = np.abs(coef[used]) @ exactly(penalties)[used] + np.abs(rest)
    else:
        scaled = coef[used] if scales is None else coef[used] / exactly(scales)[used]
        size = (scaled @ scaled + rest**2) / 2
    return size + Exact(C) * loss_value(loss, margins, w)


def blur(A, y, C, loss, w, x, bias) -> Exact:
    """What the rounding of the scores A x + bias to float64 can add to the loss."""
    x, bias = exactly(x), Exact(bias)
    sizes = np.abs(A) @ np.abs(x) + np.abs(bias) + 1
    margins, rounding = y * (exactly(A) @ x + bias), 2 * Exact(np.finfo(np.float64).eps) * sizes
    two_sided = loss != "logistic" and (NAMED[loss] if isinstance(loss, str) else loss)[1]
    worse = np.where(margins > 1, rounding, -rounding) if two_sided else -rounding
    return Exact(C) * (loss_value(loss, margins + worse, w) - loss_value(loss, margins, w))


def kernel_value(K, y, C, loss, w, beta, bias) -> Exact:
    """R + C loss of f = K beta + bias."""
    beta = exactly(beta)
    f = K @ beta
    return beta @ f / 2 + Exact(C) * loss_value(loss, y * (f + Exact(bias)), w)


def kernel_matrix(X, kernel, *, gamma=1.0, degree=3, coef0=0.0) -> np.ndarray:
    """The matrix of a named kernel."""
    X = exactly(X)
    if kernel == "rbf":
        squares = np.array([((X - row) ** 2).sum(axis=1) for row in X])
        return np.exp(-Exact(gamma) * squares)
    products = X @ X.T
    return products if kernel == "linear" else (Exact(gamma) * products + Exact(coef0)) ** degree


def squares(X, y, w, coef, intercept) -> Exact:
    """The weighted sum of squared residuals."""
    residual = exactly(y) - exactly(X) @ exactly(coef) - Exact(intercept)
    return exactly(w) @ residual**2


def square(v) -> Exact:
    """The squared length of a vector."""
    return v @ v


def distance(K, x) -> Exact:
    """The squared distance of a combination of the points to the last one."""
    z = np.append(exactly(x), Exact(-1))
    return z @ exactly(K) @ z
