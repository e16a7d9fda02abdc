"""Block SMO: rows on demand, shrinking, budgets, warm starts, limits, and hard kernels."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.losses import Loss
from anynorm.norms import L1, LInf, SquaredL2, TopK
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.kernel import KernelRows, smo, solve_kernel
from tests.references import solve_primal
from tests.spies import Stopwatch

SLACKS = [
    (L1(), "inequality"),
    (L1(), "equality"),
    (SquaredL2(), "inequality"),
    (TopK(9), "inequality"),
    (TopK(9), "equality"),
    (LInf(), "inequality"),
]


def noisy(n, p=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return X, np.where(X[:, 0] + X[:, 1] ** 2 - 1 + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


def problem_of(n, slack=None, constraints="inequality", C=10.0, gram=None, seed=0, weights=None):
    X, y = noisy(n, seed=seed)
    loss = Loss.from_slack(L1() if slack is None else slack, constraints)
    gram = Gram.rbf(X, 0.2) if gram is None else gram(X)
    return Problem(y=y, C=C, loss=loss, gram=gram, sample_weight=weights)


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize(("slack", "constraints"), SLACKS, ids=str)
def test_the_optimum_is_that_of_an_interior_point_method(slack, constraints, C):
    problem = problem_of(60, slack, constraints, C)
    solution = solve_kernel(problem, tol=1e-8)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_primal(problem).value, rel=1e-7)


@pytest.mark.parametrize(("slack", "constraints"), SLACKS, ids=str)
def test_shrinking_and_a_small_cache_change_nothing(slack, constraints, monkeypatch):
    problem = problem_of(400, slack, constraints)
    plain = solve_kernel(problem, tol=1e-7)
    monkeypatch.setattr(smo, "_SHRINK_AFTER", 1)
    monkeypatch.setattr(smo, "_SHRINK_AGAIN", 1)
    monkeypatch.setattr(smo, "_MOST_KEPT", 0.9)
    monkeypatch.setattr(smo, "_BLOCK", 32)
    shrunk = solve_kernel(problem, tol=1e-7)
    small = solve_kernel(problem, tol=1e-7, cache_size=0.0)
    for other in (shrunk, small):
        assert other.status is Status.OPTIMAL
        assert other.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-7)


def test_rows_that_settle_are_left_out_for_a_while(monkeypatch):
    parts = []
    shrink = KernelRows.shrunk

    def spy(self, kept):
        parts.append((self.n, len(kept)))
        return shrink(self, kept)

    monkeypatch.setattr(KernelRows, "shrunk", spy)
    monkeypatch.setattr(smo, "_SHRINK_AFTER", 5)
    monkeypatch.setattr(smo, "_MOST_KEPT", 0.8)
    monkeypatch.setattr(smo, "_BLOCK", 32)
    problem = problem_of(800, C=1.0)
    assert solve_kernel(problem, tol=1e-6).status is Status.OPTIMAL
    assert parts
    assert all(kept <= 0.8 * n for n, kept in parts)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 14),
    kind=st.sampled_from(range(len(SLACKS))),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
    gamma=st.sampled_from([0.0, 0.5, 1e6]),
    weighted=st.booleans(),
)
def test_degenerate_points_end_with_a_certificate(seed, n, kind, C, gamma, weighted):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, 2)).astype(float)  # duplicates, with labels of both kinds
    y = rng.permutation(np.where(np.arange(n) % 2 == 0, 1.0, -1.0))
    weights = rng.integers(1, 4, n).astype(float) if weighted else None
    loss = Loss.from_slack(*SLACKS[kind])
    problem = Problem(y=y, C=C, loss=loss, gram=Gram.rbf(X, gamma), sample_weight=weights)
    solution = solve_kernel(problem, tol=1e-6)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_primal(problem).value, rel=1e-5)


def test_a_start_from_a_nearby_problem_saves_steps():
    cold = solve_kernel(problem_of(600, C=10.0), tol=1e-6)
    start = solve_kernel(problem_of(600, C=9.0), tol=1e-6).dual
    warm = solve_kernel(problem_of(600, C=10.0), tol=1e-6, start=start)
    assert warm.n_iter < cold.n_iter
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-6)


def test_duals_stay_in_their_ball_and_sum_to_zero():
    for slack, constraints in SLACKS:
        problem = problem_of(150, slack, constraints, C=3.0)
        a = solve_kernel(problem, tol=1e-6).dual
        assert abs(problem.y @ a) <= 1e-12 * np.abs(a).sum()
        if not isinstance(slack, SquaredL2):
            assert slack.dual_value(a) <= 3.0 * (1 + 1e-12)


def test_float32_rows_give_way_where_they_are_not_accurate_enough():
    X, y = noisy(400)
    gram = Gram.poly((X + 50).astype(np.float32), 0.5, 2, 1.0)
    problem = Problem(y=y, C=0.1, loss=Loss.from_slack("l1"), gram=gram)
    assert solve_kernel(problem, tol=1e-4).status is Status.OPTIMAL


def test_threads_share_rows():
    X, y = noisy(500)
    gram = Gram.rbf(X, 0.2)
    problems = [
        Problem(y=np.roll(y, k), C=1.0, loss=Loss.from_slack("l1"), gram=gram) for k in range(3)
    ]
    rows, found = KernelRows(gram, 0, sharers=3, holders=3), [None] * 3

    def solve(k):
        found[k] = solve_kernel(problems[k], tol=1e-5, rows=rows)

    threads = [threading.Thread(target=solve, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for problem, solution in zip(problems, found, strict=True):
        alone = solve_kernel(problem, tol=1e-5, rows=KernelRows(gram, 0, sharers=3))
        np.testing.assert_array_equal(solution.dual, alone.dual)


def test_limits_end_the_search_with_a_certified_point():
    solve_kernel(problem_of(300), tol=0.5)  # compiled before the clock starts
    problem, watch = problem_of(3000, C=1e4), Stopwatch()
    late = solve_kernel(problem, tol=1e-12, deadline=time.monotonic() + 0.2)
    assert watch.seconds < 2.0
    assert late.status is Status.TIME_LIMIT
    assert late.certificate.gap > 1e-12
    short = solve_kernel(problem, tol=1e-12, max_iter=1000)
    assert short.status is Status.MAX_ITER
    assert short.n_iter <= 1000


def test_progress_reports_a_falling_gap():
    reports = []
    solve_kernel(problem_of(600, C=100.0), tol=1e-6, progress=reports.append)
    assert len(reports) > 2
    assert reports[-1].gap <= 1e-6 < reports[0].gap


def test_a_problem_without_slack_norm_is_refused():
    X, y = noisy(20)
    with pytest.raises(ValueError, match="a free intercept"):
        solve_kernel(
            Problem(y=y, C=1.0, loss=Loss.from_slack("l1"), gram=Gram.linear(X), intercept=None)
        )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), B=st.integers(1, 40), C=st.sampled_from([0.1, 1.0, 30.0]))
def test_points_above_the_budget_paper_s_elbow_carry_no_weight(seed, B, C):
    """Theorem 2: where the B-th smallest margin is below 1, points of larger margins have a = 0."""
    X, y = noisy(60, seed=seed)
    loss = Loss.from_slack(TopK(B))
    problem = Problem(y=y, C=C, loss=loss, gram=Gram.rbf(X, 0.2))
    solution = solve_kernel(problem, tol=1e-10)
    margins = y * (problem.scores(solution.dual) + solution.intercept)
    elbow = np.sort(margins)[B - 1]
    if elbow < 1 - 1e-6:
        above = margins > elbow + 1e-6
        np.testing.assert_allclose(solution.dual[above], 0.0, atol=1e-7 * C)
        # It does not say that at most B carry weight: those tied at the elbow share what is left.
        assert np.count_nonzero(solution.dual > 1e-9 * C) >= min(B, solution.dual.sum() / C)


def test_a_kernel_that_rounding_made_indefinite_is_still_certified():
    X, y = noisy(80, p=2)
    K = Gram.rbf(X, 0.05).block(slice(None), slice(None)).astype(np.float32).astype(np.float64)
    assert np.linalg.eigvalsh(K)[0] < 0
    problem = Problem(y=y, C=1.0, loss=Loss.from_slack("l1"), gram=Gram.precomputed(K))
    exact = Problem(y=y, C=1.0, loss=Loss.from_slack("l1"), gram=Gram.rbf(X, 0.05))
    solution = solve_kernel(problem, tol=1e-5)
    assert solution.status is Status.OPTIMAL
    expected = solve_kernel(exact, tol=1e-5).certificate.primal
    assert solution.certificate.primal == pytest.approx(expected, rel=1e-4)


def test_an_indefinite_kernel_ends_uncertified():
    rng = np.random.default_rng(0)
    K = rng.standard_normal((30, 30))
    K = K + K.T - 5 * np.eye(30)
    y = np.where(np.arange(30) % 2 == 0, 1.0, -1.0)
    for slack in ("l1", "l2", "squared_l2"):
        loss = Loss.from_slack(slack)
        problem = Problem(y=y, C=1.0, loss=loss, gram=Gram.precomputed(K))
        solution = solve_kernel(problem, tol=1e-4, deadline=time.monotonic() + 600)
        assert solution.status is Status.UNCERTIFIED
        assert np.isnan(solution.certificate.gap)


@pytest.mark.parametrize("max_iter", [30, 300, 10**6])
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize(("slack", "constraints"), SLACKS, ids=str)
def test_certificates_are_those_of_float64_scores_throughout(slack, constraints, C, max_iter):
    problem = problem_of(500, slack, constraints, C)
    solution = solve_kernel(problem, tol=1e-4, max_iter=max_iter)
    again = certify(problem, solution.coef, solution.intercept, solution.dual, tol=1e-4)
    assert solution.certificate.primal == pytest.approx(again.primal, rel=1e-12)
    assert solution.certificate.dual == pytest.approx(again.dual, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("limit", [0.05, 1000.0])
def test_certificates_of_large_problems_are_those_of_float64_scores(limit):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 4))
    X[:, 0] += np.where(X[:, 0] > 0, 1.0, -1.0)  # few support vectors
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = Problem(y=y, C=1.0, loss=Loss.from_slack("l1"), gram=Gram.rbf(X, 0.1))
    solution = solve_kernel(problem, tol=1e-4, deadline=time.monotonic() + limit)
    again = certify(problem, solution.coef, solution.intercept, solution.dual, tol=1e-4)
    assert solution.certificate.primal == pytest.approx(again.primal, rel=1e-12)
    assert solution.certificate.dual == pytest.approx(again.dual, rel=1e-12)
