"""Blocks of dense rows with compiled loops: the solution of liblinear, also of degenerate rows."""

import numpy as np
import pytest
from sklearn.svm import LinearSVC as Liblinear

from anynorm.design import dense
from anynorm.design.crew import Block
from anynorm.losses import get_loss
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.solvers.linear.chunked import solve_chunked
from tests.solvers.linear.test_descent_apart import Parts


@pytest.fixture(autouse=True)
def even_here(monkeypatch):
    """Loops for small data."""
    monkeypatch.setattr(dense, "_WORTH_IN_BLOCKS", 1)
    monkeypatch.setattr(dense, "ENTRIES_PER_TASK", 1)


def degenerate(dtype):
    """Rows many times, columns that are zero, constant and equal, and blocks of one class."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(150, 6)), 2, axis=0)
    X[:, 3], X[:, 4], X[:, 5] = 0.0, 1.0, X[:, 0]
    y = X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=len(X)) > 0
    order = np.argsort(y, kind="stable")
    return X[order].astype(dtype), y[order]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_dense_blocks_find_the_solution_of_liblinear(loss, parts, dtype):
    X, y = degenerate(dtype)
    blocks = [
        Block(X[rows], y[rows], None, columns=6, number=k)
        for k, rows in enumerate(np.array_split(np.arange(len(y)), 6))
    ]
    assert all(block.design().compiled for block in blocks)
    crew = Parts(blocks, parts)
    crew.describe()
    terms = RowTerms(np.array([False, True]), 1, None, 0.5, get_loss(loss))
    found = solve_chunked(ChunkedProblem(crew, terms, None), tol=1e-6)
    wide = X.astype(np.float64)
    peer = Liblinear(loss=loss, C=0.5, fit_intercept=False, tol=1e-9, max_iter=1_000_000)
    w = peer.fit(wide, y).coef_[0]
    slack = np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * (wide @ w))
    objective = 0.5 * w @ w + 0.5 * (slack ** (1 if loss == "hinge" else 2)).sum()
    assert found.certificate.gap <= 1e-6
    assert found.certificate.primal == pytest.approx(objective, rel=3e-6)
    assert found.certificate.dual <= objective * (1 + 1e-9)
