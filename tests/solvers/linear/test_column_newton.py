"""Newton's method on few columns: the same optimum as by the interior-point reference."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.linear import column_newton, solve_linear, walk, walk_over_C
from anynorm.solvers.linear.column_newton import ColumnNewton, few_columns_suit
from anynorm.solvers.linear.few_rows import RowsDual
from tests.references import solve_primal

SUITED = ["hinge", "absolute", "squared_hinge"]


def tall_problem(loss, n=60, p=7, C=0.5, seed=0, **more):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, **more)


def solve(problem, *, tol=1e-9, start=None, max_iter=10_000, **more):
    """Coefficients and beta from nothing, or from the ones of `start`."""
    newton = ColumnNewton(RowsDual.of(problem), problem.row_weights())
    columns = np.ascontiguousarray(problem.X.T)
    root = np.ones(len(columns)) if problem.feature_scale is None else problem.feature_scale
    nothing = np.zeros(len(columns)), 0.0, np.zeros(problem.n_rows), np.zeros(problem.n_rows)
    size = problem.bias_feature
    precision = 0.0 if problem.free_bias else (1.0 / size**2 if size else np.inf)
    coef, scores, beta, steps = newton.solve(
        columns,
        root,
        nothing if start is None else start,
        precision=precision,
        warm=start is not None,
        tol=tol,
        budget=Budget(max_iter, None),
        **more,
    )
    np.testing.assert_allclose(scores, problem.X @ coef, atol=1e-9 * (1 + np.abs(scores).max()))
    return coef, newton.bias, beta, steps


@pytest.mark.parametrize("C", [1e-3, 0.5, 100.0])
@pytest.mark.parametrize("intercept", ["free", None, 1.5])
@pytest.mark.parametrize("loss", SUITED)
def test_against_the_reference(loss, intercept, C):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=60)
    weights[5] = 0.0
    scale = np.random.default_rng(2).uniform(0.1, 1.0, size=7)
    scale[3] = 0.0
    problem = tall_problem(
        loss, C=C, intercept=intercept, sample_weight=weights, feature_scale=scale
    )
    coef, bias, beta, _ = solve(problem)
    reference = solve_primal(problem)
    values = problem.values(coef, bias, problem.y * beta)
    assert values.primal == pytest.approx(reference.value, rel=1e-7)
    assert values.dual == pytest.approx(reference.value, rel=1e-7)
    assert coef[3] == 0.0


@pytest.mark.parametrize("loss", SUITED)
def test_sharp_coefficients_are_those_of_the_duals(loss):
    problem = tall_problem(loss, n=400, p=12)
    coef, _, beta, _ = solve(problem, tol=1e-4, sharp=1e-20)
    np.testing.assert_allclose(problem.X.T @ beta, coef, atol=1e-8)


def test_a_start_saves_steps():
    problem = tall_problem("hinge", n=300, p=20, C=1.0)
    coef, bias, beta, cold = solve(problem)
    _, _, _, warm = solve(problem, start=(coef, bias, problem.X @ coef, beta))
    assert warm < cold


def test_steps_are_limited():
    problem = tall_problem("hinge", n=300, p=20, C=10.0)
    *_, steps = solve(problem, max_iter=3)
    assert steps == 3


def test_the_matrix_is_kept_when_columns_go():
    """Rows come and go in the Gram matrix, and so do columns: it remains that of the members."""
    problem = tall_problem("hinge", n=200, p=9, C=1.0)
    newton = ColumnNewton(RowsDual.of(problem), problem.row_weights())
    columns = np.ascontiguousarray(problem.X.T)
    start = np.zeros(9), 0.0, np.zeros(200), np.zeros(200)
    more = {"precision": 0.0, "warm": False, "tol": 1e-9, "budget": Budget(10_000, None)}
    coef, _, beta, _ = newton.solve(columns, np.ones(9), start, **more)
    places = np.array([0, 1, 4, 8])
    newton.keep(places)
    part = np.ascontiguousarray(columns[places])
    newton.solve(part, np.ones(4), (coef[places], newton.bias, coef[places] @ part, beta), **more)
    members = newton.rows[newton.loops.MEMBER]
    gram = (part * members) @ part.T
    np.testing.assert_allclose(np.tril(newton.gram), np.tril(gram), atol=1e-10)
    np.testing.assert_allclose(newton.table[newton.loops.SUM], part @ members, atol=1e-10)


@pytest.mark.parametrize("loss", SUITED)
def test_one_class_and_no_columns(loss):
    problem = tall_problem(loss)
    one = replace(problem, y=np.ones(60))
    coef, bias, beta, _ = solve(one)
    assert one.values(coef, bias, beta).primal == pytest.approx(0.0, abs=1e-9)
    empty = replace(problem, X=np.zeros((60, 0)))
    _, bias, _, _ = solve(empty)
    least = empty.loss_at(np.zeros(60), empty.best_bias(np.zeros(60)))
    assert empty.loss_at(np.zeros(60), bias) == pytest.approx(least, rel=1e-6)


def test_what_suits():
    problem = tall_problem("hinge")
    assert few_columns_suit(problem.design, problem.dual_set, 1e-4)
    assert not few_columns_suit(problem.design, problem.dual_set, 1e-12)
    for other in (
        replace(problem, X=sp.csr_array((60, 1000))),
        replace(problem, X=problem.X + 1e6),
        replace(problem, X=problem.X * np.r_[1e9, np.ones(6)]),
        replace(problem, loss=get_loss("logistic")),
        replace(problem, loss=get_loss("squared")),
    ):
        assert not few_columns_suit(other.design, other.dual_set, 1e-4)


@pytest.mark.parametrize("loss", SUITED)
def test_walks_over_C_are_walks(loss):
    """Those of a search start from each other and stop at tol; every round is certified."""
    problem, Cs = tall_problem(loss, n=120, p=30), [1e-3, 0.1, 10.0, 1e3]
    for C, found in zip(Cs, walk_over_C([problem], Cs, n_rounds=5, tol=1e-6), strict=True):
        alone = walk(replace(problem, C=C), n_rounds=5, tol=1e-6)
        for one, other in zip(found[0], alone, strict=True):
            assert one.certificate.status is Status.OPTIMAL
            inner = replace(problem, C=C, feature_scale=one.feature_scale)
            exact = solve_linear(inner, tol=1e-9).certificate
            assert one.certificate.primal == pytest.approx(exact.primal, rel=2e-6)
            assert one.certificate.dual <= exact.primal * (1 + 1e-9)
            assert one.objective == pytest.approx(other.objective, rel=1e-2)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_calls_of_one_step_each_end_where_one_call_does(loss, monkeypatch):
    """Each call began anew around the duals it was left with: 870 x 300 took 201 steps, now 35."""
    problem = tall_problem(loss, n=200, p=40, C=10.0)
    *at_once, steps = solve(problem)
    monkeypatch.setattr(column_newton, "STEPS_PER_CALL", 1)
    *one_by_one, same_steps = solve(problem)
    assert same_steps == steps
    # Each call balances the bias once more, which changes its last digits.
    for whole, parts in zip(at_once, one_by_one, strict=True):
        np.testing.assert_allclose(whole, parts, rtol=1e-7, atol=1e-9)
