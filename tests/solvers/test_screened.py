"""Kernel problems with few support vectors: some rows at a time, the others screened."""

import time

import numpy as np
import pytest

from anynorm.certificate import certify
from anynorm.gram import Gram
from anynorm.losses import Loss, get_loss
from anynorm.norms import TopK
from anynorm.problem import Problem
from anynorm.solution import Status
from anynorm.solvers.kernel import KernelRows
from anynorm.solvers.kernel.box import _minimise, solve_box
from anynorm.solvers.kernel.screened import ScreenedSearch, pays


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


def solved(problem, **options):
    rows = KernelRows(problem.gram, 100 << 20)
    pieces = {"tol": 1e-6, "max_iter": 10**8, "deadline": None, "start": None, "progress": None}
    return solve_box(problem, rows, **{**pieces, **options})


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_same_optimum_with_and_without_screening(loss, weighted):
    X, y = waves()
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(y)) if weighted else None
    problem = problem_of(X, y, loss, sample_weight=weights)
    assert pays(problem)
    reports = []
    on = solved(problem, progress=reports.append)
    off = solved(problem, screening=False)
    assert on.status is off.status is Status.OPTIMAL
    again = certify(problem, on.dual, on.intercept, on.dual, tol=1e-6)
    assert again.gap <= 1.1e-6  # all scores anew, in float64
    assert on.certificate.primal == pytest.approx(off.certificate.primal, rel=2e-6)
    assert on.certificate.primal >= off.certificate.dual
    assert 1 < len(reports) < 15


def test_no_support_vector_is_dropped():
    X, y = waves(seed=3)
    problem = problem_of(X, y, "squared_hinge")
    search = ScreenedSearch(problem, KernelRows(problem.gram, 100 << 20), _minimise, None)
    found = search.run(1e-5, 10**8, None)
    best = solved(problem, tol=1e-10, screening=False)
    assert found.gap <= 1e-5
    assert len(search.left) < 0.4 * len(y)
    dropped = np.ones(len(y), dtype=bool)
    dropped[search.left] = False
    assert np.all(np.abs(best.dual[dropped]) < 1e-9)


def test_many_support_vectors_go_to_block_smo_at_once():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(10_000, 2)), np.where(rng.random(10_000) < 0.5, 1.0, -1.0)
    problem = Problem(y=y, C=0.1, loss=get_loss("hinge"), gram=Gram.linear(X))
    search = ScreenedSearch(problem, KernelRows(problem.gram, 100 << 20), _minimise, None)
    assert search.run(1e-4, 10**8, None) is None
    assert solved(problem, tol=1e-3).status is Status.OPTIMAL


def test_limits_are_kept():
    X, y = waves()
    problem = problem_of(X, y, "squared_hinge")
    assert solved(problem, tol=1e-12, max_iter=50).status is Status.MAX_ITER
    late = solved(problem, tol=1e-12, deadline=time.monotonic() - 1.0)
    assert late.status is Status.TIME_LIMIT


def test_what_it_is_not_for():
    X, y = waves(10_000)
    few = problem_of(X[:500], y[:500], "hinge")
    budget = Problem(y=y, C=1.0, loss=Loss.from_slack(TopK(5)), gram=Gram.rbf(X, 0.5))
    signed = problem_of(X, y, "absolute")
    assert not any(pays(problem) for problem in (few, budget, signed))
