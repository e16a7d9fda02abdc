"""Large linear programmes by HiGHS: signs, bounds and biases, against our own other methods."""

import time

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.one_norm import general_programme, solve_one_norm
from anynorm.solvers.one_norm.general_programme import solve_general_programme
from tests.references import solve_primal
from tests.solvers.problems import BIASES


def words(n, p, seed=0):
    """Sparse rows of unit length, and labels that many columns have a part in."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=0.1, random_state=rng, format="csr")
    X = sp.csr_array(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1))[:, None]))
    scores = X @ rng.normal(size=p) + 0.2 * rng.normal(size=n)
    return X, np.where(scores > np.median(scores), 1.0, -1.0)


def problem_of(X, y, loss="hinge", C=3.0, **pieces):
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, regulariser="l1", **pieces)


def solved(problem, **settings):
    settings = {"max_iter": 100, "deadline": None, "seed": 0, "start": None, **settings}
    return solve_general_programme(problem, tol=1e-7, progress=None, **settings)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("intercept", BIASES)
def test_the_multipliers_are_coefficients_and_intercept(loss, intercept):
    X, y = words(120, 80)
    rng = np.random.default_rng(0)
    penalty = rng.uniform(0.5, 2.0, 80)
    penalty[::17] = np.inf
    weights = rng.integers(0, 3, 120).astype(float)
    pieces = {"penalty_weights": penalty, "sample_weight": weights, "intercept": intercept}
    problem = problem_of(X, y, loss, **pieces)
    solution = solved(problem)
    assert solution.status is Status.OPTIMAL, solution.certificate
    assert certify(problem, solution.coef, solution.intercept, solution.dual, tol=1e-7).gap <= 1e-7
    assert np.all(solution.coef[::17] == 0)
    reference = solve_primal(problem_of(X.toarray(), y, loss, **pieces))
    assert solution.certificate.primal == pytest.approx(reference.value, rel=1e-6)


def test_thousands_of_columns_in_use_are_left_to_highs(monkeypatch):
    monkeypatch.setattr(general_programme, "_MANY_ROWS", 250)
    monkeypatch.setattr(general_programme, "_MANY_COLUMNS", 100)
    monkeypatch.setattr("anynorm.solvers.one_norm.central_path._MOST_COLUMNS", 50)
    asked, multipliers = [], general_programme._multipliers

    def counted(*pieces):
        asked.append(pieces)
        return multipliers(*pieces)

    monkeypatch.setattr(general_programme, "_multipliers", counted)
    X, y = words(400, 300)
    solution = solve_one_norm(problem_of(X, y), tol=1e-6)
    assert solution.status is Status.OPTIMAL
    assert len(asked) == 1
    assert np.count_nonzero(solution.coef) > 50


def test_highs_is_ended_at_the_deadline():
    X, y = words(3000, 2000)  # for which it takes about ten seconds
    begin = time.monotonic()
    solution = solved(problem_of(X, y), deadline=begin + 0.3)
    assert time.monotonic() - begin < 3.0
    assert solution.status is Status.TIME_LIMIT
    assert solution.certificate.dual <= solution.certificate.primal


def test_time_that_ends_highs_is_what_is_said_where_an_earlier_method_gave_up(monkeypatch):
    monkeypatch.setattr(general_programme, "_MANY_COLUMNS", 1000)
    monkeypatch.setattr("anynorm.solvers.one_norm.central_path._MOST_COLUMNS", 50)
    X, y = words(3000, 2000)
    solution = solve_one_norm(problem_of(X, y), deadline=time.monotonic() + 2.0)
    assert solution.status is Status.TIME_LIMIT


def test_highs_has_time_enough():
    X, y = words(120, 80)
    assert solved(problem_of(X, y), deadline=time.monotonic() + 60.0).status is Status.OPTIMAL
