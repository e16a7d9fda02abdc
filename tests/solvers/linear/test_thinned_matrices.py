"""Newton's method over rows apart with the matrix of a few rows: the same optimum for less."""

from functools import partial

import numpy as np
import pytest

from anynorm.design.crew import Block, OneProcess
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.chunked import ChunkedProblem, RowTerms
from anynorm.solvers.frame.rounds_apart import beside_rows
from anynorm.solvers.linear import solve_linear
from anynorm.solvers.linear.chunked import chunked_newton, solve_chunked

SMOOTH = ["logistic", "squared_hinge", "squared"]


@pytest.fixture
def thinned(monkeypatch):
    """Thin already where there are few rows and columns; says for each look how much."""
    monkeypatch.setattr(chunked_newton, "_ROWS_PER_COLUMN", 20)
    monkeypatch.setattr(chunked_newton, "_COLUMNS_AS_LONG", 1)
    monkeypatch.setattr(chunked_newton, "_LONG", 0.0)
    asked, plain = [], OneProcess._answers

    def answers(self, job, message):
        if job is beside_rows.look:
            asked.append(message.thin)
        return plain(self, job, message)

    monkeypatch.setattr(OneProcess, "_answers", answers)
    return asked


def table(n=4000, p=8):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) + 2.0
    y = (X - 2.0) @ rng.standard_normal(p) + rng.standard_normal(n) > 0
    return X, y, rng


def solve_both(loss, X, y, weights, tol, *, intercept="free", start=None, held=True):
    """In blocks with a thinned matrix, and in one piece."""
    blocks = []
    for at in np.array_split(np.arange(len(y)), 5):
        whole = Block(X[at], y[at], weights[at], columns=X.shape[1])
        blocks.append(whole if held else whole.read_by(partial(X.__getitem__, at)))
    crew = OneProcess(blocks)
    crew.describe()
    terms = RowTerms(np.array([False, True]), 1, None, 0.1, get_loss(loss))
    apart = solve_chunked(ChunkedProblem(crew, terms, intercept), tol=tol, start=start)
    whole = Problem(
        y=np.where(y, 1.0, -1.0), C=0.1, loss=get_loss(loss), X=X, sample_weight=weights,
        intercept=intercept,
    )  # fmt: skip
    return apart, solve_linear(whole, tol=1e-10)


@pytest.mark.parametrize("intercept", ["free", None, 2.0])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("tol", [1e-3, 1e-9])
def test_the_optimum_is_that_of_all_rows(thinned, loss, intercept, tol):
    X, y, rng = table()
    weights = rng.random(len(y)) + 0.1
    apart, whole = solve_both(loss, X, y, weights, tol, intercept=intercept)
    assert apart.certificate.gap <= tol
    assert apart.certificate.primal <= whole.certificate.primal * (1 + 2 * tol)
    assert max(thinned) > 1
    assert 0 in thinned  # a matrix is kept


@pytest.mark.parametrize("loss", SMOOTH)
def test_few_heavy_rows_are_among_those_of_the_matrix(thinned, loss):
    """One row of a hundred has all but a hundredth of the weight."""
    X, y, rng = table()
    weights = np.where(rng.random(len(y)) < 0.01, 100.0, 0.01)
    apart, whole = solve_both(loss, X, y, weights, 1e-6)
    assert apart.certificate.primal <= whole.certificate.primal * (1 + 2e-6)
    assert thinned.count(1) <= 1 + sum(thin > 1 for thin in thinned)


@pytest.mark.parametrize("loss", SMOOTH)
def test_rows_of_a_class_together_and_a_start_far_away(thinned, loss):
    X, y, _ = table()
    order = np.argsort(y, kind="stable")
    far = 3.0 * np.ones(X.shape[1]), -50.0
    apart, whole = solve_both(loss, X[order], y[order], np.ones(len(y)), 1e-6, start=far)
    assert apart.certificate.gap <= 1e-6
    assert apart.certificate.primal <= whole.certificate.primal * (1 + 2e-6)


def test_losses_with_kinks_have_the_matrix_of_all_rows(thinned):
    X, y, _ = table()
    solve_both("hinge", X, y, np.ones(len(y)), 1e-3)
    assert set(thinned) == {1}


def test_rows_that_are_read_in_every_round_are_asked_no_more_often(thinned):
    """A round more costs more there than a matrix of all rows."""
    X, y, _ = table()
    solve_both("logistic", X, y, np.ones(len(y)), 1e-3, held=False)
    assert set(thinned) == {1}


@pytest.mark.parametrize("thin", [1, 2, 7, 100])
def test_rows_are_taken_in_proportion_to_their_curvature(thin):
    rng = np.random.default_rng(0)
    rows, curvature = np.arange(100, 2100), rng.exponential(size=2000)
    curvature[30] = 0.4 * curvature.sum()
    some, taken = beside_rows._thinned(rows, curvature, thin)
    assert taken.sum() == pytest.approx(curvature.sum())
    assert len(some) <= max(1, len(rows) // thin)
    assert len(set(some.tolist())) == len(some)
    assert 130 in some
    # Running sums are nowhere further from those of all rows than half of what a row counts.
    sums, share = np.zeros(len(rows)), curvature.sum() / (len(rows) // thin)
    sums[some - 100] = taken
    assert np.abs(np.cumsum(sums) - np.cumsum(curvature)).max() <= 0.5 * share + 1e-9
