"""Kernel problems with few support vectors: some rows at a time, the others screened."""

import time
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss, get_loss
from anynorm.norms import L1, TopK
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.methods import methods_for
from anynorm.solvers.kernel import METHODS, KernelRows, near_rows, screened, solve_kernel
from anynorm.solvers.kernel.box_duals import minimise, solve_screened
from anynorm.solvers.kernel.screened import ScreenedSearch, pays
from anynorm.solvers.kernel.search import KernelSearch


def waves(n=12_000, seed=0, between=0.15):
    """Two classes on both sides of a wavy surface, with a few rows on the wrong side."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(2 * n, 3))
    height = np.sin(1.5 * X[:, 0]) + np.cos(1.3 * X[:, 1]) + 0.3 * X[:, 2]
    apart = np.abs(height) > between
    X, y = X[apart][:n], np.sign(height[apart][:n])
    y[:5] *= -1
    return X, y


def problem_of(X, y, loss, **pieces):
    return Problem(y=y, C=30.0, loss=get_loss(loss), gram=Gram.rbf(X, 0.5), **pieces)


@pytest.fixture
def from_few_rows(monkeypatch):
    """Problems are searched part by part from 10,000 rows on, whatever their kernel."""
    monkeypatch.setattr(screened, "_FEWEST", 10_000)


def solved(problem, **options):
    rows = KernelRows(problem.gram, 100 << 20)
    return solve_kernel(problem, rows=rows, **({"tol": 1e-6} | options))


WITHOUT = [method for method in METHODS if method.solve is not solve_screened]


def search_of(problem, tol, memory=100 << 20):
    """A search for some rows at a time, with its budget."""
    best = Incumbent(problem, tol, Budget(10**8))
    rows = KernelRows(problem.gram, memory)
    return ScreenedSearch(KernelSearch(problem, rows, best, None, None), minimise)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.usefixtures("from_few_rows")
def test_the_same_optimum_with_and_without_screening(loss, weighted):
    X, y = waves()
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(y)) if weighted else None
    problem = problem_of(X, y, loss, sample_weight=weights)
    assert pays(problem)
    reports = []
    on = solved(problem, progress=reports.append)
    off = solved(problem, methods=WITHOUT)
    assert on.status is off.status is Status.OPTIMAL
    again = certify(problem, on.dual, on.intercept, on.dual, tol=1e-6)
    assert again.gap <= 1.1e-6  # all scores anew, in float64
    assert on.certificate.primal == pytest.approx(off.certificate.primal, rel=2e-6)
    assert on.certificate.primal >= off.certificate.dual
    assert 1 < len(reports) < 15


def test_no_support_vector_is_dropped():
    X, y = waves(seed=3)
    problem = problem_of(X, y, "squared_hinge")
    search = search_of(problem, 1e-7)
    found = search.run()
    best = solved(problem, tol=1e-10, methods=WITHOUT)
    assert found.gap <= 1e-7
    assert_dropped_rows_have_no_dual(search, best, 1e-9)


def assert_dropped_rows_have_no_dual(search, best, allowed):
    dropped = np.ones(len(best.dual), dtype=bool)
    dropped[search.left] = False
    assert np.all(np.abs(best.dual[dropped]) <= allowed)


@st.composite
def problems_with_ties(draw):
    """A few rows on a grid, many of them repeated, perhaps weighted, of classes that overlap."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.integers(40, 160))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    X = np.round(rng.normal(size=(n, 2)) + draw(st.sampled_from([0.3, 1.0, 3.0])) * y[:, None])
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=n) if draw(st.booleans()) else None
    if weights is not None:
        weights[:2] = 1.0
    return Problem(
        y=y, C=draw(st.sampled_from([0.01, 1.0, 100.0])), sample_weight=weights,
        loss=get_loss(draw(st.sampled_from(["hinge", "squared_hinge"]))),
        gram=Gram.linear(X) if draw(st.booleans()) else Gram.rbf(X, 0.5),
    )  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(problem=problems_with_ties(), tol=st.sampled_from([1e-2, 1e-5, 1e-8]))
def test_search_is_safe_with_ties_and_repeated_rows(problem, tol):
    """Small parts, all of whose choices are wrong at first."""
    small = {"_FEWEST_FIRST": 4, "_MOST_SUPPORT": 2.0, "_NEAR": 0.3, "_ROOM": 1}
    with patch.multiple(screened, **small):
        search = search_of(problem, tol, memory=1 << 20)
        found = search.run()
    best = solved(problem, tol=1e-11, methods=WITHOUT)
    size = problem.zero_primal()
    if found is not None and found.gap <= tol:
        a = problem.y * found.beta
        assert abs(certify(problem, a, found.intercept, a, tol=tol).gap) <= 1.01 * tol + 1e-12
    margins = problem.y * (problem.scores(best.dual) + best.intercept)
    dropped = np.setdiff1d(np.flatnonzero(problem.row_weights() > 0), search.left)
    assert np.all(margins[dropped] >= 1.0 - 1e-5)
    assert np.all(np.abs(best.dual[dropped]) <= 1e-4 * (1 + size))


@pytest.mark.parametrize("kind", ["linear", "sparse rbf", "poly", "far rbf"])
def test_every_kind_of_kernel(kind, monkeypatch):
    monkeypatch.setattr(screened, "_FEWEST", 3000)
    monkeypatch.setattr(screened, "_FEWEST_LINEAR", 3000)
    X, y = waves(3000)
    if kind in ("linear", "poly"):
        X = X + np.outer(2 * y, [1.0, 1.0, 1.0])
    gram = {
        "linear": lambda: Gram.linear(X),
        "sparse rbf": lambda: Gram.rbf(sp.csr_array(X), 0.5),
        "poly": lambda: Gram.poly(X, 0.1, 2, 1.0),
        # Some rows far away: float32 products are not accurate, and float64 ones are used.
        "far rbf": lambda: Gram.rbf(np.r_[X[:-1], [[1e4, 0.0, 0.0]]], 0.5),
    }[kind]()
    problem = Problem(y=y, C=30.0, loss=get_loss("squared_hinge"), gram=gram)
    assert pays(problem)
    on, off = solved(problem), solved(problem, methods=WITHOUT)
    assert on.status is off.status is Status.OPTIMAL
    assert certify(problem, on.dual, on.intercept, on.dual, tol=1e-6).gap <= 1.1e-6
    assert on.certificate.primal == pytest.approx(off.certificate.primal, rel=2e-6)


def test_error_of_scores_is_measured():
    X, y = waves(2000)
    rows = KernelRows(Gram.rbf(X, 0.5), 100 << 20)
    beta = np.where(np.arange(len(y)) % 9 == 0, y, 0.0)
    exact = rows.exact_scores(beta)
    rough = exact + 1e-3 * np.random.default_rng(0).uniform(-1, 1, len(y))
    error = near_rows.score_error(rows, beta, rough)
    assert np.all(np.abs(rough - exact) <= error)
    assert np.all(near_rows.score_error(rows, beta, exact) <= 1e-12)


def test_weights_of_the_slack_norm_itself():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(11_000) < 0.5, 1.0, -1.0)
    X, w = rng.normal(size=(11_000, 2)) + 2.5 * y[:, None], rng.uniform(0.5, 2.0, 11_000)
    inside = Problem(y=y, C=1.0, loss=Loss.from_slack(L1(w)), gram=Gram.linear(X))
    given = Problem(y=y, C=1.0, loss=get_loss("hinge"), sample_weight=w, gram=Gram.linear(X))
    rows = np.arange(0, 11_000, 100)
    assert np.array_equal(inside.part(rows).row_weights(), w[rows])
    values = [solve_kernel(problem, tol=1e-6).certificate.primal for problem in (inside, given)]
    assert values[0] == pytest.approx(values[1], rel=3e-6)


def test_many_support_vectors_go_to_block_smo_at_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 2)), np.where(rng.random(10_000) < 0.5, 1.0, -1.0)
    problem = Problem(y=y, C=0.1, loss=get_loss("hinge"), gram=Gram.linear(X))
    assert search_of(problem, 1e-4).run() is None
    assert solved(problem, tol=1e-3).status is Status.OPTIMAL


@pytest.mark.usefixtures("from_few_rows")
def test_limits_are_kept():
    X, y = waves()
    problem = problem_of(X, y, "squared_hinge")
    assert solved(problem, tol=1e-12, max_iter=50).status is Status.MAX_ITER
    late = solved(problem, tol=1e-12, deadline=time.monotonic() - 1.0)
    assert late.status is Status.TIME_LIMIT


def test_what_it_is_not_for():
    X, y = waves(25_000)
    few = problem_of(X[:500], y[:500], "hinge")
    budget = Problem(y=y, C=1.0, loss=Loss.from_slack(TopK(5)), gram=Gram.rbf(X, 0.5))
    signed = problem_of(X, y, "absolute")
    assert pays(problem_of(X, y, "hinge"))
    assert not any(pays(problem) for problem in (few, signed))
    assert solve_screened not in [m.solve for m in methods_for("a kernel", METHODS, budget)]
