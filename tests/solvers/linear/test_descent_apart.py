"""Coordinate descent on the rows of several parts: the solution of liblinear, in few rounds."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

from anynorm.design.crew import Block, Crew
from anynorm.losses import get_loss
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.solvers.linear.chunked import solve, solve_chunked


class Parts(Crew):
    """Blocks dealt to parts that answer one after the other."""

    def __init__(self, blocks, parts):
        super().__init__()
        self._parts = [blocks[k::parts] for k in range(parts)]

    @property
    def n_parts(self):
        return len(self._parts)

    def _answers(self, job, message):
        return [job(part, message) for part in self._parts]

    def _turned(self, turn, given):
        raise NotImplementedError

    def close(self):
        pass


@pytest.fixture(autouse=True)
def no_matrices(monkeypatch):
    monkeypatch.setattr(solve, "_LARGEST_FACTOR", 0)


def table(n, p, seed=0):
    """Rows of ten entries each, most of them in a few columns, and labels with noise."""
    rng = np.random.default_rng(seed)
    columns = (p * rng.random((n, 10)) ** 2).astype(np.int32)
    starts = np.arange(0, 10 * n + 1, 10, dtype=np.int32)
    X = sp.csr_array((np.full(10 * n, 0.3), columns.ravel(), starts), (n, p))
    X.sum_duplicates()
    return X, X @ rng.standard_normal(p) + 0.5 * rng.standard_normal(n) > 0


def problem(X, y, *, parts, C, loss="hinge", intercept="free", n_blocks=8):
    places = np.array_split(np.arange(len(y)), n_blocks)
    blocks = [
        Block(X[rows], y[rows], None, columns=X.shape[1], sparse=True, number=k)
        for k, rows in enumerate(places)
    ]
    crew = Parts(blocks, parts)
    crew.describe()
    terms = RowTerms(np.array([False, True]), 1, None, C, get_loss(loss))
    return ChunkedProblem(crew, terms, intercept)


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_parts_find_the_solution_of_liblinear(loss, parts):
    X, y = table(4000, 300)
    given = problem(X, y, parts=parts, C=0.5, loss=loss, intercept=None)
    found = solve_chunked(given, tol=1e-5)
    peer = Liblinear(loss=loss, C=0.5, fit_intercept=False, tol=1e-8, max_iter=100_000)
    w = peer.fit(X, y).coef_[0]
    slack = np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * (X @ w))
    objective = 0.5 * w @ w + 0.5 * (slack ** (1 if loss == "hinge" else 2)).sum()
    assert found.certificate.gap <= 1e-5
    assert found.certificate.primal == pytest.approx(objective, rel=2e-5)
    assert found.certificate.dual <= objective * (1 + 1e-9)


def test_many_rows_per_column_take_few_rounds():
    # Whole blocks one after the other took 8.
    given = problem(*table(60_000, 2000), parts=2, C=0.1)
    found = solve_chunked(given, tol=1e-3)
    assert found.certificate.gap <= 1e-3
    assert found.n_iter <= 6


def test_blocks_of_one_class_take_few_rounds():
    # Large pieces of blocks took 99, whole blocks 33.
    X, y = table(60_000, 2000)
    order = np.argsort(y, kind="stable")
    found = solve_chunked(problem(X[order], y[order], parts=2, C=0.1), tol=1e-3)
    assert found.certificate.gap <= 1e-3
    assert found.n_iter <= 10


@pytest.mark.parametrize("parts", [2, 8])
def test_a_gap_that_seems_closed_long_before_it_is_is_asked_about_again(parts):
    # Nearly all duals are at a bound at once, and what is left is a matter of the bias.
    found = solve_chunked(problem(*table(4000, 12_000), parts=parts, C=0.1), tol=1e-3)
    assert found.certificate.gap <= 1e-3
    assert found.n_iter <= 100


def far_bias(n, p, seed=0):
    """Rows around the origin, nearly as many of either class; at a small C the bias is near 1."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(p, size=(n, 40), dtype=np.int32)
    values = rng.choice([-1.0, 1.0], 40 * n) / np.sqrt(40)
    X = sp.csr_array(
        (values, columns.ravel(), np.arange(0, 40 * n + 1, 40, dtype=np.int32)), (n, p)
    )
    X.sum_duplicates()
    return X, X @ rng.standard_normal(p) + 0.2 * rng.standard_normal(n) > -0.05


@pytest.mark.parametrize("parts", [1, 2, 5])
@pytest.mark.parametrize("C", [1e-3, 0.1])
def test_a_bias_far_away_takes_few_rounds(C, parts):
    # Steps of the mean row's squared norm: a gap of 0.06 after 1000 rounds, and 165 to 1000 rounds.
    X, y = far_bias(2000, 5000)
    found = solve_chunked(problem(X, y, parts=parts, C=C), tol=1e-3)
    libsvm = SVC(C=C, kernel="linear", tol=1e-8).fit(X, y)
    w, b = libsvm.coef_.toarray().ravel(), libsvm.intercept_[0]
    slack = np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * (X @ w + b))
    objective = 0.5 * w @ w + C * slack.sum()
    assert found.certificate.gap <= 1e-3
    assert found.certificate.primal == pytest.approx(objective, rel=1e-3)
    assert found.certificate.dual <= objective * (1 + 1e-9)
    assert found.n_iter <= 80


@pytest.mark.parametrize("size", [1.0, 100.0])
def test_a_regularised_bias_far_away_takes_few_rounds(size):
    X, y = far_bias(2000, 5000)
    found = solve_chunked(problem(X, y, parts=2, C=0.01, intercept=size), tol=1e-3)
    peer = Liblinear(loss="hinge", C=0.01, intercept_scaling=size, tol=1e-8, max_iter=1_000_000)
    w, b = peer.fit(X, y).coef_[0], peer.intercept_[0]
    slack = np.maximum(0.0, 1.0 - np.where(y, 1.0, -1.0) * (X @ w + b))
    objective = 0.5 * (w @ w + (b / size) ** 2) + 0.01 * slack.sum()
    assert found.certificate.gap <= 1e-3
    assert found.certificate.primal == pytest.approx(objective, rel=1e-3)
    assert found.n_iter <= 50
