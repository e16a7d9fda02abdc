"""Small sparse problems: walks by descent over their rows, the same optimum as by the reference."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.design import design_of
from anynorm.losses import LOSSES, get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.linear import dense_walk, shared_over_C, walk, walk_over_C
from anynorm.solvers.linear import descent_steps as steps
from anynorm.solvers.linear.few_rows import FewRows
from anynorm.solvers.linear.sparse_rows import SparseBlock, SparseRows, sparse_rows_suit
from tests.references import solve_primal

SUITED = ["hinge", "absolute", "squared_hinge"]


def sparse_problem(loss, n=250, p=800, C=0.5, seed=0, positive=0.5, **more):
    """Ten entries to a row, some rows and columns empty, some rows twice."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, p), density=10 / p, random_state=rng, format="csr")
    X.data = rng.normal(size=X.nnz)
    X = sp.csr_array(sp.vstack([X[: n - 10], X[:8], sp.csr_array((2, p))]))
    scores = X @ np.where(np.arange(p) < p // 4, rng.normal(size=p), 0.0) + 0.3 * rng.normal(size=n)
    y = np.where(scores > np.quantile(scores, 1 - positive), 1.0, -1.0)
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, **more)


@pytest.mark.parametrize("C", [1e-3, 0.5, 100.0])
@pytest.mark.parametrize("intercept", ["free", None, 1.5])
@pytest.mark.parametrize("loss", SUITED)
def test_against_the_reference(loss, intercept, C):
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=250)
    weights[5] = 0.0
    scale = np.random.default_rng(2).uniform(0.0, 1.0, size=800)
    scale[:4] = 0.0
    problem = sparse_problem(
        loss, C=C, intercept=intercept, sample_weight=weights, feature_scale=scale
    )
    assert sparse_rows_suit(problem, 1e-6)
    found = walk(problem, n_rounds=1, tol=1e-6)[0]
    reference = solve_primal(problem)
    assert found.status is Status.OPTIMAL
    assert found.certificate.gap <= 1e-6
    assert found.certificate.dual <= reference.value * (1 + 1e-8)
    assert found.certificate.primal == pytest.approx(reference.value, rel=2e-6)
    assert found.certificate.primal == pytest.approx(
        problem.objective(found.coef, found.intercept), rel=1e-12
    )
    assert not found.coef[:4].any()


@pytest.mark.parametrize("intercept", ["free", None, 1.0])
@pytest.mark.parametrize("loss", SUITED)
def test_rounds_are_certified_for_their_own_problem_and_fall(loss, intercept):
    Cs = [1e-3, 0.1, 1.0, 100.0, 1e4]
    problem = sparse_problem(loss, intercept=intercept)
    for C, (rounds,) in zip(Cs, walk_over_C([problem], Cs, n_rounds=5), strict=True):
        size = intercept
        for found in rounds:
            inner = replace(problem, C=C, intercept=size, feature_scale=found.feature_scale)
            if intercept == 1.0:  # a feature, weighted like the others
                size = np.sqrt(abs(found.intercept)) or None
            checked = certify(inner, found.coef, found.intercept, found.dual, tol=1e-4)
            assert checked.gap <= 1e-4
            assert found.certificate.primal == pytest.approx(checked.primal, rel=1e-8)
            assert found.certificate.dual == pytest.approx(checked.dual, rel=1e-8)
        for before, found in pairwise(rounds):
            assert found.certificate.status is Status.OPTIMAL
            assert found.objective <= before.objective * (1 + 2e-4)


def test_the_walk_goes_where_that_of_the_dense_copy_goes():
    problem = sparse_problem("hinge", C=1.0)
    dense = replace(problem, X=problem.X.toarray())
    for one, other in zip(walk(problem, n_rounds=4), walk(dense, n_rounds=4), strict=True):
        assert one.objective == pytest.approx(other.objective, rel=0.02)
    whole = [walk(at, n_rounds=4, prune=False, tol=1e-6) for at in (problem, dense)]
    for one, other in zip(*whole, strict=True):
        assert one.objective == pytest.approx(other.objective, rel=1e-3)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("form", ["csr", "csc"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_storage_does_not_matter(dtype, form, index):
    problem = sparse_problem("hinge")
    X = problem.X.copy()
    X.data = np.round(8 * X.data) / 8
    given = X.astype(dtype).asformat(form)
    given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    for part in (given.data, given.indices, given.indptr):
        part.flags.writeable = False
    one = walk(replace(problem, X=X), n_rounds=3)
    other = walk(replace(problem, X=given), n_rounds=3)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_array_equal(a.coef, b.coef)


def test_columns_are_cut_out_and_turned_as_scipy_does():
    X = sparse_problem("hinge").X
    every = SparseRows(design_of(X), seed=0).every
    chosen = np.array([0, 3, 4, 100, 799])
    block = every.take(chosen)
    np.testing.assert_array_equal(block.X.dense(), X.toarray()[:, chosen])
    np.testing.assert_array_equal(block.table, X.toarray()[:, chosen].T)
    starts, places, values = block.by_rows
    turned = sp.csr_array((values, places, starts), shape=block.X.shape)
    np.testing.assert_array_equal(turned.toarray(), X.toarray()[:, chosen])


@pytest.mark.parametrize("C", [1e-5, 1e-3])
def test_a_far_bias_is_reached_in_few_epochs(C):
    """Nine of ten rows in one class, and a C at which the bias alone decides."""
    problem = sparse_problem("hinge", C=C, positive=0.1)
    found = walk(problem, n_rounds=2)
    assert max(one.certificate.gap for one in found) <= 1e-4
    assert max(one.n_iter for one in found) <= 100


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_without_a_bias_as_few_epochs_are_enough(C):
    """The sum of the duals, which nothing balances there, was added to the gap."""
    problem = sparse_problem("hinge", n=1000, p=2000, C=C, intercept=None)
    assert problem.X[-2:].nnz == 0  # rows that no column moves belong at their bounds
    rounds = walk(problem)
    assert max(one.certificate.gap for one in rounds) <= 1e-4
    assert max(one.n_iter for one in rounds) <= 100
    assert np.array_equal(rounds[0].dual[-2:], [C, C])


@pytest.mark.parametrize("loss", SUITED)
def test_a_start_at_the_optimum_ends_soon(loss):
    problem = sparse_problem(loss, C=10.0)
    first = walk(problem, n_rounds=1)[0]
    again = walk(problem, n_rounds=1, start=first.dual)[0]
    assert again.n_iter < 0.5 * first.n_iter
    assert again.certificate.gap <= 1e-4


def test_a_larger_C_starts_where_the_last_one_ended():
    problem = sparse_problem("squared_hinge", n=1000, p=2000)
    Cs = [1.0, 1.5, 2.0]
    ((cold,),) = walk_over_C([problem], [Cs[-1]], n_rounds=1)
    *_, (warm,) = walk_over_C([problem], Cs, n_rounds=1)
    assert warm[0].n_iter < cold[0].n_iter


def test_many_columns_are_not_made_dense(monkeypatch):
    made = []
    table = SparseBlock.table.func
    look = property(lambda block: made.append(len(block) * block.n) or table(block))
    monkeypatch.setattr(SparseBlock, "table", look)
    monkeypatch.setattr(dense_walk, "MOST_MADE_DENSE", 50_000)
    problem = sparse_problem("hinge", n=1500, p=150, seed=3)
    for rounds in walk_over_C([problem], [1e-2, 1e3, 1e5], n_rounds=3):
        assert max(one.certificate.gap for one in rounds[0]) <= 1e-4
    assert max(made, default=0) <= 50_000


def test_many_rows_of_few_columns_at_a_large_C():
    """Descent crawls there: Newton's method takes over, and keeps what follows."""
    problem = sparse_problem("hinge", n=1500, p=150, seed=3)
    for rounds in walk_over_C([problem], [1.0, 1e3, 1e5], n_rounds=3):
        assert max(one.certificate.gap for one in rounds[0]) <= 1e-4
        assert max(one.n_iter for one in rounds[0]) <= 1000


def test_seeds_decide_the_order_and_nothing_else():
    problem = sparse_problem("hinge", C=10.0)
    one, same, other = (walk(problem, n_rounds=2, seed=seed, tol=1e-6) for seed in (0, 0, 1))
    for a, b in zip(one, same, strict=True):
        np.testing.assert_array_equal(a.coef, b.coef)
    assert one[0].certificate.primal == pytest.approx(other[0].certificate.primal, rel=1e-5)
    assert max(c.certificate.gap for c in other) <= 1e-6


def test_limits_end_with_a_true_certificate():
    problem = sparse_problem("hinge", C=10.0)
    optimum = walk(problem, n_rounds=1, tol=1e-7)[0].certificate
    for cut in (
        walk(problem, n_rounds=2, tol=1e-7, max_iter=1)[0],
        walk(problem, n_rounds=2, tol=1e-7, deadline=time.monotonic() - 1.0)[0],
    ):
        assert cut.certificate.dual <= optimum.primal
        assert optimum.dual <= cut.certificate.primal


@pytest.mark.parametrize("loss", LOSSES)
def test_what_suits(loss):
    problem = sparse_problem(loss)
    assert sparse_rows_suit(problem, 1e-4) == (loss in SUITED)
    assert not sparse_rows_suit(problem, 1e-12)
    assert not sparse_rows_suit(replace(problem, X=problem.X.toarray()), 1e-4)
    full = sp.csr_array(np.random.default_rng(0).normal(size=problem.X.shape))
    assert not sparse_rows_suit(replace(problem, X=full), 1e-4)
    huge = problem.X @ sp.diags_array(np.where(np.arange(800) == 1, 1e6, 1.0))
    assert not sparse_rows_suit(replace(problem, X=sp.csr_array(huge)), 1e-4)
    if loss in SUITED:
        assert shared_over_C(problem, 1e-4)


def test_rows_that_depend_on_each_other_take_few_epochs():
    """Five rounds with a large C, where most duals stay free: 730 epochs without combined moves."""
    problem = sparse_problem("hinge", n=500, p=700, C=100.0)
    rounds = walk(problem, n_rounds=5, tol=1e-3)
    assert max(one.certificate.gap for one in rounds) <= 1e-3
    assert sum(one.n_iter for one in rounds) <= 350


@pytest.mark.parametrize("shift", [0.0, 0.5])
@pytest.mark.parametrize("variance", [0.0, 2.0])
def test_moves_are_combined_in_the_best_way(shift, variance):
    """As by least squares where no bound is met, else no worse than before and inside."""
    rng = np.random.default_rng(0)
    n, m = 30, 20
    matrix = sp.random_array((n, m), density=0.3, rng=rng, format="csr")
    matrix.data = rng.normal(size=matrix.nnz)
    y = np.where(rng.normal(size=n) > 0, 1.0, -1.0)
    points = np.cumsum(0.1 * rng.normal(size=(steps.MOVES + 1, n)), axis=0)
    points[2] = points[1]  # a move that depends on others
    numbers = np.zeros(steps.N_NUMBERS)
    numbers[[steps.VARIANCE, steps.BIAS]] = variance, 0.3

    def value(beta, start):
        u, change = matrix.T @ beta, float((beta - start).sum())
        bias = change * (0.3 + 0.5 * variance * change)
        return y @ beta - 0.5 * u @ u - 0.5 * shift * beta @ beta - bias

    for width in (np.inf, 0.3):
        past, known = np.empty(steps.past_length(n, m)), 0
        for beta in points:
            known = steps._remember(n, m, beta, matrix.T @ beta, numbers, steps.MOVES, past, known)
        beta, u, at = points[-1].copy(), matrix.T @ points[-1], numbers.copy()
        rows = y, beta - width, beta + width, np.full(n, shift)
        entries = matrix.indptr, matrix.indices, matrix.data
        steps._combine(n, rows, shift, entries, m, beta, u, at, steps.MOVES, past)
        np.testing.assert_allclose(u, matrix.T @ beta, atol=1e-12)
        assert at[steps.BIAS] == pytest.approx(0.3 + variance * (beta - points[-1]).sum())
        assert np.abs(beta - points[-1]).max() <= width
        assert value(beta, points[-1]) > value(points[-1], points[-1])
        if width == np.inf:
            moves = np.diff(points, axis=0)
            sums = np.sqrt(variance) * moves.sum(axis=1)
            images = np.column_stack([moves @ matrix, sums, np.sqrt(shift) * moves])
            slopes = moves @ (y - 0.3 - shift * points[-1]) - moves @ matrix @ (
                matrix.T @ points[-1]
            )
            best = np.linalg.lstsq(images @ images.T, slopes)[0]
            np.testing.assert_allclose(beta, points[-1] + best @ moves, rtol=1e-6)


@pytest.mark.parametrize("form", [sp.csr_array, sp.csr_array.toarray])
def test_a_round_that_would_be_the_same_again_is_not_solved_again(form):
    """With a tiny C, whose models soon stay what they are."""
    problem = replace(sparse_problem("hinge"), X=form(sparse_problem("hinge").X[:, :100]))
    (rounds,) = next(iter(walk_over_C([problem], [1e-3], n_rounds=20, tol=1e-3)))
    assert [one.n_iter for one in rounds[-5:]] == [0] * 5
    before, last = rounds[-2:]
    np.testing.assert_array_equal(last.coef, before.coef)
    np.testing.assert_allclose(last.feature_scale**2, np.abs(before.coef), rtol=1e-12)
    inner = replace(problem, C=1e-3, feature_scale=last.feature_scale)
    checked = certify(inner, last.coef, last.intercept, last.dual, tol=1e-3)
    assert checked.gap <= 1e-3
    assert last.certificate.gap == pytest.approx(checked.gap, abs=1e-9)


def test_rounds_that_serve_a_larger_C_too_share_their_coefficients():
    """Which says that they need not be scored again; they were copied where X has empty columns."""
    problem = sparse_problem("hinge").part(np.arange(240))
    assert (problem.design.column_entries() == 0).any()
    (one,), (other,) = walk_over_C([problem], [1e3, 1e5], n_rounds=3, tol=1e-3)
    assert [a.coef is b.coef for a, b in zip(one, other, strict=True)] == [True] * 3
    assert all(a.feature_scale is b.feature_scale for a, b in zip(one, other, strict=True))
    assert {a.one_norm.C for a in other} == {1e5}


@pytest.mark.parametrize("intercept", ["free", None, 1.5])
@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_a_walk_goes_on_from_any_of_its_rounds(form, intercept):
    """As it does where the first rounds are those of a smaller C."""
    problem = sparse_problem("hinge", intercept=intercept)
    rows = SparseRows(problem.design, seed=0)
    if form == "dense":
        problem = replace(problem, X=problem.X.toarray())
        rows = FewRows(problem.design)
    limits = dense_walk.WalkLimits(6, True, 1e-6, 10_000, None, 0, exact=False)
    whole = dense_walk.walk_dense(problem, rows, limits, None, None)
    path = dense_walk._DenseWalk(problem, rows, limits, None)
    path.go_on_from(whole[2])
    for one, other in zip(whole, path.all(whole[:3]), strict=True):
        assert other.certificate.status is Status.OPTIMAL
        assert other.objective == pytest.approx(one.objective, rel=1e-4)
