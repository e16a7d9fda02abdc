"""Hypothesis strategies for vectors, norms and small problems of the grid, degenerate ones too."""

import numpy as np
import pytest
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss, get_loss
from anynorm.norms import K12, L1, L2, LInf, Lp, Mahalanobis, Norm, SquaredL2, TopK, TopK2
from anynorm.problem import Problem

cp = pytest.importorskip("cvxpy", reason="the users' norms are also written for cvxpy")


class Stretched(Norm):
    """A user's monotone norm with nothing but the three methods: sqrt(sum (d_i v_i)^2)."""

    def __init__(self, rate: float = 1.5):
        self.rate = rate

    def _stretch(self, v):
        return self.rate ** np.arange(len(v))

    def value(self, xi):
        return float(np.linalg.norm(self._stretch(xi) * np.asarray(xi)))

    def dual_value(self, a):
        return float(np.linalg.norm(np.asarray(a) / self._stretch(a)))

    def maximiser(self, a):
        size = self.dual_value(a)
        return np.asarray(a) / self._stretch(a) ** 2 / (size if size > 0 else 1.0)

    def expression(self, xi):
        return cp.norm(cp.multiply(self._stretch(np.zeros(xi.size)), xi), 2)


class Chained(Norm):
    """A user's norm that is not monotone: sum |v_i + v_{i+1} / 2|."""

    monotone = False

    def _matrix(self, n):
        return np.eye(n) + 0.5 * np.eye(n, k=1)

    def value(self, xi):
        return float(np.abs(self._matrix(len(xi)) @ np.asarray(xi)).sum())

    def dual_value(self, a):
        return float(np.abs(np.linalg.solve(self._matrix(len(a)).T, np.asarray(a))).max(initial=0))

    def maximiser(self, a):
        A = self._matrix(len(a))
        prices = np.linalg.solve(A.T, np.asarray(a))
        corner = np.zeros(len(a))
        i = int(np.argmax(np.abs(prices)))
        corner[i] = 1.0 if prices[i] >= 0 else -1.0
        return np.linalg.solve(A, corner)

    def expression(self, xi):
        return cp.norm1(self._matrix(xi.size) @ xi)


def mixing_matrix(n: int) -> np.ndarray:
    """A positive definite matrix with off-diagonal entries of both signs."""
    A = np.random.default_rng(n).normal(size=(n, n))
    return A @ A.T / n + 0.3 * np.eye(n)


WEIGHTED_NORMS = [
    L1(),
    L2(),
    LInf(),
    Lp(1.5),
    Lp(3),
    TopK(2),
    TopK(1.5),
    TopK2(2),
    TopK2(2.5),
    K12(2),
    K12(2.5),
]
"""One or two of every norm with a weighted form."""


def norms_for(n: int) -> list[Norm]:
    """Every norm, for vectors of length n."""
    return [*WEIGHTED_NORMS, Mahalanobis(mixing_matrix(n)), Stretched(), Chained()]


def slacks_for(n: int) -> list[Norm | SquaredL2]:
    """Every slack, for problems with n rows."""
    return [*norms_for(n), SquaredL2()]


_SCALES = st.sampled_from([1.0, 1.0, 1e-6, 1e6])


@st.composite
def vectors(draw, n=None, max_size=7, scaled=True):
    """Vectors with ties, zeros and signs, at ordinary or extreme scale."""
    size = draw(st.integers(1, max_size)) if n is None else n
    entry = st.one_of(
        st.integers(-3, 3).map(float), st.floats(-4, 4, allow_nan=False).map(lambda x: round(x, 3))
    )
    v = np.array(draw(st.lists(entry, min_size=size, max_size=size)))
    return v * (draw(_SCALES) if scaled else 1.0)


@st.composite
def weights_for(draw, n, whole=False):
    """Non-negative weights, not all zero; whole numbers on request."""
    choices = [0.0, 1.0, 2.0, 3.0] if whole else [0.0, 0.25, 1.0, 1.7, 3.0]
    w = np.array(draw(st.lists(st.sampled_from(choices), min_size=n, max_size=n)))
    if not w.any():
        w[draw(st.integers(0, n - 1))] = 1.0
    return w


@st.composite
def weighted_norms(draw, n):
    """A norm for vectors of length n, with weights in about half of the cases."""
    norm = draw(st.sampled_from(norms_for(n)))
    if any(norm == other for other in WEIGHTED_NORMS) and draw(st.booleans()):
        norm = norm.weighted(draw(weights_for(n)))
    return norm


@st.composite
def losses_for(draw, n):
    """Any loss for n rows: a slack with its constraints, or the logistic loss."""
    slack = draw(st.sampled_from([*slacks_for(n), None]))
    if slack is None:
        return get_loss("logistic")
    return Loss.from_slack(slack, draw(st.sampled_from(["inequality", "equality"])))


def _features(draw, n, p, degenerate):
    if degenerate:
        entry = st.integers(-2, 2).map(float)
    else:
        entry = st.floats(-3, 3, allow_nan=False).map(lambda x: round(x, 2))
    rows = st.lists(entry, min_size=p, max_size=p)
    X = np.array(draw(st.lists(rows, min_size=n, max_size=n)))
    if degenerate:
        if draw(st.booleans()):
            X[n // 2 :] = X[: n - n // 2]  # repeated rows
        if p > 1 and draw(st.booleans()):
            X[:, -1] = draw(st.sampled_from([0.0, 1.0]))  # a constant column
        X[:, 0] *= draw(st.sampled_from([1.0, 1e5, 1e-5]))
    return X


@st.composite
def grid_problem(draw, degenerate=None, loss=None, max_rows=7, max_cols=3, kernels=True):
    """A small problem from any cell of the grid.

    Degenerate ones have ties, repeated rows, constant and badly scaled columns, perhaps one
    class or one example only.
    """
    degenerate = draw(st.booleans()) if degenerate is None else degenerate
    n = draw(st.integers(1 if degenerate else 3, max_rows))
    p = draw(st.integers(1, max_cols))
    X = _features(draw, n, p, degenerate)
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    if not degenerate:
        y[:2] = [1.0, -1.0]
    loss = draw(losses_for(n)) if loss is None else loss
    pieces = {"X": X}
    kind = draw(st.sampled_from(["l2", "l1", "kernel", "scaled", "penalised"]))
    if kind == "kernel" and kernels:
        pieces = {"gram": Gram.rbf(X, 0.5)}
    elif kind == "scaled":
        scale = draw(st.lists(st.sampled_from([0.0, 0.5, 2.0]), min_size=p, max_size=p))
        pieces["feature_scale"] = np.array(scale)
    elif kind == "penalised":
        penalty = draw(st.lists(st.sampled_from([0.0, 0.5, 2.0, np.inf]), min_size=p, max_size=p))
        pieces |= {"regulariser": "l1", "penalty_weights": np.array(penalty)}
    elif kind == "l1":
        pieces["regulariser"] = "l1"
    weighable = loss.slack is None or not isinstance(loss.slack, Mahalanobis | Stretched | Chained)
    weights = draw(weights_for(n)) if weighable and draw(st.booleans()) else None
    return Problem(
        y=y,
        C=draw(st.sampled_from([0.01, 0.7, 1.0, 10.0])),
        loss=loss,
        sample_weight=weights,
        intercept=draw(st.sampled_from(["free", None, 1.0, 0.5])),
        **pieces,
    )
