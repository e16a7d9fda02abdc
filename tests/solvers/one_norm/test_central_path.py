"""The interior-point method of the 1-norm programmes: ties, sparse rows, what it leaves alone."""

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings

from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.one_norm import central_path, solve_one_norm
from anynorm.solvers.one_norm.central_path import solve_along_central_path, suits_central_path
from anynorm.solvers.one_norm.linear_programs import solve_linear_programme
from tests.references import solve_linear_program
from tests.solvers.problems import BIASES, small_data


def words(n=260, p=150, seed=0, tfidf=False):
    """Counts of words, of which some tell the classes apart."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    rate = 3.0 / (np.arange(p) + 5.0)
    lean = np.where(rng.random(p) < 0.2, rng.normal(size=p), 0.0)
    X = sp.csr_array(rng.poisson(rate * np.exp(0.8 * y[:, None] * lean)).astype(float))
    if tfidf:
        X = X @ sp.diags_array(1.0 / np.sqrt(1.0 + np.asarray((X > 0).sum(axis=0)).ravel()))
    return X, y


def table(n=260, p=30, seed=0):
    """Zeros and ones."""
    rng = np.random.default_rng(seed)
    X = (rng.random((n, p)) < 0.2).astype(float)
    return X, np.where(X[:, :8] @ rng.normal(size=8) + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)


def one_norm(X, y, loss="hinge", C=1.0, **pieces):
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, regulariser="l1", **pieces)


def on_central_path(problem, tol=1e-6, **more):
    arguments = {"max_iter": 10_000, "deadline": None, "seed": 0, "start": None, "progress": None}
    return solve_along_central_path(problem, tol=tol, **{**arguments, **more})


@pytest.mark.parametrize("C", [0.02, 1.0, 30.0])
@pytest.mark.parametrize("data", [words(), words(tfidf=True), table()], ids=["counts", "tf", "0/1"])
def test_text_and_tables_have_the_optimum_and_the_support_of_others(data, C):
    problem = one_norm(*data, C=C)
    solution = on_central_path(problem, tol=1e-7)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-7)
    pull = np.abs(problem.pull_back(on_central_path(problem, tol=1e-9).dual))
    # Ties leave a choice of columns: all that can be in use are those pulled at their bounds.
    assert not solution.coef[pull < 0.99].any()


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_array, np.asarray])
def test_weights_losses_biases_and_storages(loss, bias, storage):
    X, y = words(260, 60) if storage is not np.asarray else table(260, 30)
    rng = np.random.default_rng(1)
    problem = one_norm(
        storage(X),
        y,
        loss,
        0.3,
        intercept=bias,
        sample_weight=rng.choice([0.0, 1.0, 2.0, 0.1], len(y)),
        penalty_weights=rng.choice([0.5, 1.0, 3.0, np.inf], X.shape[1]),
    )
    assert suits_central_path(problem, tol=1e-6, start=None) == (
        np.sum(problem.sample_weight > 0) >= 250
    )
    solution = on_central_path(problem, tol=1e-8)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-7)
    assert not solution.coef[np.isinf(problem.penalty_weights)].any()


@given(data=small_data())
@settings(max_examples=60, deadline=None)
def test_whatever_it_finds_of_degenerate_data_is_certified(data):
    X, y, pieces, _ = data
    problem = one_norm(X, y, **pieces)
    assume(np.ptp(y[problem.row_weights() > 0]) > 0)
    solution = on_central_path(problem)
    certificate = problem.values(solution.coef, solution.intercept, solution.dual)
    assert certificate.primal == pytest.approx(solution.certificate.primal, rel=1e-9)
    assert certificate.dual == pytest.approx(solution.certificate.dual, rel=1e-9, abs=1e-12)


def test_the_simplex_method_takes_over_where_the_path_ends_early(monkeypatch):
    monkeypatch.setattr(central_path, "_MOST_COLUMNS", 0)  # no step can be made
    problem = one_norm(*words())
    assert on_central_path(problem).status is Status.MAX_ITER
    solution = solve_one_norm(problem, tol=1e-9)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-9)


def test_what_does_not_suit_it():
    problem = one_norm(*words())
    assert suits_central_path(problem, tol=1e-6, start=None)
    assert not suits_central_path(problem, tol=1e-12, start=None)
    assert not suits_central_path(problem.part(np.arange(100)), tol=1e-6, start=None)
    free = np.where(np.arange(problem.n_coefs) == 3, 0.0, 1.0)
    assert not suits_central_path(replace(problem, penalty_weights=free), tol=1e-6, start=None)
    alone = replace(problem, y=np.ones(problem.n_rows))
    assert not suits_central_path(alone, tol=1e-6, start=None)


def test_a_start_at_a_vertex_is_left_to_the_simplex_method():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 10))
    problem = one_norm(X, np.where(X[:, 0] + rng.normal(size=300) > 0, 1.0, -1.0), C=0.3)
    arguments = {"max_iter": 10_000, "deadline": None, "seed": 0, "progress": None}
    vertex = solve_linear_programme(problem, tol=1e-9, start=None, **arguments).dual
    assert not suits_central_path(replace(problem, C=0.31), tol=1e-6, start=vertex)
    assert suits_central_path(problem, tol=1e-6, start=0.9 * vertex)


def test_iterations_and_time_end_it_with_a_certified_point():
    problem = one_norm(*words())
    few = on_central_path(problem, max_iter=2)
    assert few.status is Status.MAX_ITER
    assert few.n_iter == 2
    assert 0 < few.certificate.gap <= 1
    late = on_central_path(problem, deadline=time.monotonic())
    assert late.status is Status.TIME_LIMIT


def test_columns_that_were_left_out_are_missed_and_come_back(monkeypatch):
    monkeypatch.setattr(central_path, "_FEW", 3)
    monkeypatch.setattr(central_path, "_MOST", 5)
    problem = one_norm(*words(), C=3.0)
    solution = on_central_path(problem)
    assert solution.status is Status.OPTIMAL
    assert np.count_nonzero(solution.coef) > 5


def rows_of_every_step(monkeypatch):
    """How many rows take part, step after step."""
    counts = []
    step = central_path._CentralPoint.step

    def counted(point):
        counts.append(point.n)
        return step(point)

    monkeypatch.setattr(central_path._CentralPoint, "step", counted)
    return counts


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("bias", BIASES)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
def test_rows_that_have_left_change_nothing(monkeypatch, loss, bias, C):
    counts = rows_of_every_step(monkeypatch)
    X, y = table(600, 20)
    weights = np.random.default_rng(2).choice([1.0, 2.0, 0.1], len(y))
    problem = one_norm(X, y, loss, C, intercept=bias, sample_weight=weights)
    solution = on_central_path(problem, tol=1e-8)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-7)
    assert min(counts) < 600


def test_rows_that_left_too_early_come_back(monkeypatch):
    counts = rows_of_every_step(monkeypatch)
    monkeypatch.setattr(central_path, "_SETTLED", 1.2)
    monkeypatch.setattr(central_path, "_CLEAR", 0.02)
    problem = one_norm(*table(600, 20), C=3.0)
    solution = on_central_path(problem, tol=1e-7)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-7)
    assert (np.diff(counts) > 0).any()


def test_a_point_gone_astray_goes_on_from_where_rows_left(monkeypatch):
    counts = rows_of_every_step(monkeypatch)
    monkeypatch.setattr(central_path, "_ASTRAY", 0.0)  # whatever comes after it
    problem = one_norm(*table(600, 20), C=3.0)
    solution = on_central_path(problem, tol=1e-7)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-7)
    assert min(counts) < 600
    assert counts[-1] == 600
