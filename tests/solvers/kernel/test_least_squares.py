"""The least squares SVM's linear system: against numpy's solution of it, CVXPY and re-fits."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.kernels.half_matrix import Factor
from anynorm.kernels.rows import KernelRows
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.kernel import least_squares
from anynorm.solvers.kernel.conjugate_gradients import balanced
from anynorm.solvers.kernel.least_squares import (
    fit_least_squares,
    leave_one_out,
)
from tests.references import solve_primal
from tests.strategies import weights_for

ALL = slice(None)
METHODS = ["cholesky", "cg", "auto"]


def solve_least_squares(problem, rows, *, start=None, progress=None, **options):
    """One problem alone."""
    told = None if progress is None else lambda _, state: progress(state)
    return fit_least_squares([problem], rows, starts=[start], progress=told, **options).solutions[0]


def rows_of(gram, max_bytes=1 << 28):
    return KernelRows(gram, max_bytes)


def noisy(n, p=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.where(X[:, 0] + X[:, 1] * X[:, -1] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    return X, y, rng.uniform(0.1, 3.0, size=n)


def make(gram, y, C=1.0, weights=None):
    return Problem(y=y, C=C, loss=get_loss("squared"), gram=gram, sample_weight=weights)


def by_numpy(K, y, C, weights=None):
    """beta and b from the bordered system as the papers write it."""
    n = len(y)
    w = np.ones(n) if weights is None else weights
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + np.diag(1.0 / (2.0 * C * w))
    system[n, :n] = system[:n, n] = 1.0
    solution = np.linalg.solve(system, np.append(y, 0.0))
    return solution[:n], solution[n]


# The solution


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [1e-3, 1.0, 300.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [2, 40, 700])
def test_solves_the_bordered_system(n, weighted, C, method):
    X, y, w = noisy(n)
    gram = Gram.rbf(X)
    problem = make(gram, y, C, w if weighted else None)
    solution = solve_least_squares(problem, rows_of(gram), tol=1e-11, method=method)
    beta, b = by_numpy(gram.block(ALL, ALL), y, C, problem.sample_weight)
    assert abs(solution.certificate.gap) <= 1e-11
    size = np.abs(beta).max()
    np.testing.assert_allclose(y * solution.dual, beta, atol=2e-5 * size)
    assert solution.intercept == pytest.approx(b, abs=1e-4)
    assert abs((y * solution.dual).sum()) == 0.0
    if method == "cholesky":
        np.testing.assert_allclose(y * solution.dual, beta, atol=1e-9 * size)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "precomputed", "callable"])
def test_every_kernel_reaches_the_value_of_the_primal(kernel, method):
    X, y, w = noisy(14)
    gram = {
        "linear": lambda: Gram.linear(X),
        "rbf": lambda: Gram.rbf(X, 0.3),
        "poly": lambda: Gram.poly(X, 0.5, degree=2, coef0=1.0),
        "precomputed": lambda: Gram.precomputed(X @ X.T),
        "callable": lambda: Gram.from_callable(lambda A, B: np.exp(A @ B.T / 4), X),
    }[kernel]()
    problem = make(gram, y, 2.0, w)
    solution = solve_least_squares(problem, rows_of(gram), tol=1e-9, method=method)
    reference = solve_primal(problem)
    assert solution.certificate.primal == pytest.approx(reference.value, rel=1e-7)
    assert solution.intercept == pytest.approx(reference.intercept, abs=1e-4)


@settings(deadline=None)
@given(st.data(), st.integers(2, 9), st.sampled_from([0.01, 1.0, 100.0]))
def test_ties_and_weights_of_zero(data, n, C):
    rows = st.lists(st.integers(-1, 1).map(float), min_size=2, max_size=2)
    X = np.array(data.draw(st.lists(rows, min_size=n, max_size=n)))
    y = np.array(data.draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    w = data.draw(weights_for(n))
    gram = Gram.rbf(X, data.draw(st.sampled_from([0.0, 0.5, 50.0])))
    problem = make(gram, y, C, w)
    solution = solve_least_squares(problem, rows_of(gram), tol=1e-9)
    used = w > 0
    beta, b = by_numpy(gram.block(used, used), y[used], C, w[used])
    assert solution.status is Status.OPTIMAL
    expected = np.zeros(n)
    expected[used] = beta
    np.testing.assert_allclose(y * solution.dual, expected, atol=1e-9 * C * n)
    assert solution.intercept == pytest.approx(b, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_weights_are_repetitions(method):
    X, y, _ = noisy(30)
    counts = np.random.default_rng(1).integers(0, 4, size=30)
    repeated = np.repeat(np.arange(30), counts)
    once, many = Gram.rbf(X, 0.2), Gram.rbf(X[repeated], 0.2)
    weighted = solve_least_squares(
        make(once, y, 3.0, counts.astype(float)), rows_of(once), tol=1e-12, method=method
    )
    plain = solve_least_squares(
        make(many, y[repeated], 3.0), rows_of(many), tol=1e-12, method=method
    )
    assert weighted.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-10)
    assert weighted.intercept == pytest.approx(plain.intercept, abs=1e-5)
    shared = np.zeros(30)
    np.add.at(shared, repeated, plain.dual)
    np.testing.assert_allclose(weighted.dual, shared, atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_classes_share_the_matrix_and_get_their_own_solutions(method, monkeypatch):
    X, _, w = noisy(300)
    labels = np.random.default_rng(0).integers(4, size=300)
    gram = Gram.rbf(X)
    problems = [make(gram, np.where(labels == k, 1.0, -1.0), 1.0, w) for k in range(4)]
    made = []
    monkeypatch.setattr(
        least_squares,
        "Factor",
        lambda *parts, **options: made.append(1) or Factor(*parts, **options),
    )
    fit = fit_least_squares(problems, rows_of(gram), tol=1e-10, method=method)
    assert len(made) == (0 if method == "cg" else 1)
    for problem, solution in zip(problems, fit.solutions, strict=True):
        beta, b = by_numpy(gram.block(ALL, ALL), problem.y, 1.0, w)
        assert solution.status is Status.OPTIMAL
        np.testing.assert_allclose(problem.y * solution.dual, beta, atol=1e-4)
        assert solution.intercept == pytest.approx(b, abs=1e-4)


# Hard matrices


@pytest.mark.parametrize("C", [1e-12, 1e-4, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("method", ["cholesky", "auto"])
def test_extreme_prices(C, method):
    X, y, _ = noisy(60)
    gram = Gram.rbf(X)
    problem = make(gram, y, C)
    solution = solve_least_squares(problem, rows_of(gram), tol=1e-6, method=method)
    assert solution.status is Status.OPTIMAL
    beta, b = by_numpy(gram.block(ALL, ALL), y, C)
    np.testing.assert_allclose(y * solution.dual, beta, rtol=1e-5, atol=1e-5 * np.abs(beta).max())
    assert solution.intercept == pytest.approx(b, abs=1e-5)


@pytest.mark.parametrize("C", [1e-6, 1.0, 1e6, 1e10])
@pytest.mark.parametrize("method", METHODS)
def test_constant_kernel_gives_the_weighted_mean_of_the_labels(C, method):
    _, y, w = noisy(50)
    gram = Gram.rbf(np.ones((50, 2)), 0.0)
    solution = solve_least_squares(make(gram, y, C, w), rows_of(gram), tol=1e-6, method=method)
    assert abs(solution.certificate.gap) <= 1e-6
    level = gram.matvec(y * solution.dual) + solution.intercept
    rounding = 1e-6 if C < 1e8 else 1e-4  # the sum of 50 duals of the size of C
    np.testing.assert_allclose(level, np.average(y, weights=w), atol=rounding)
    residuals = 1.0 - y * level  # 2 C w xi = a
    np.testing.assert_allclose(solution.dual, 2 * C * w * residuals, atol=10 * rounding * C)


@pytest.mark.parametrize("C", [1.0, 1e6, 1e12])
@pytest.mark.parametrize("method", ["cholesky", "auto"])
def test_the_same_point_with_both_labels(C, method):
    X, y, _ = noisy(20)
    X, y = np.vstack([X, X]), np.concatenate([y, -y])
    gram = Gram.rbf(X, 0.5)
    solution = solve_least_squares(make(gram, y, C), rows_of(gram), tol=1e-6, method=method)
    # f = 0 and b = 0 leave a slack of 1 everywhere, and nothing can be better.
    assert abs(solution.certificate.gap) <= 1e-6
    assert solution.certificate.primal == pytest.approx(40 * C, rel=1e-6)
    np.testing.assert_allclose(solution.dual, 2 * C, rtol=1e-8 if C < 1e8 else 1e-2)


@pytest.mark.parametrize("n", [12, 500])
def test_indefinite_kernels_are_not_certified_and_still_solved(n):
    X, y, _ = noisy(n)
    K = np.tanh(X @ X.T - 1.0)
    gram = Gram.precomputed(K)
    assert np.linalg.eigvalsh(K + np.eye(n) / 200)[0] < -1e-3
    fit = fit_least_squares([make(gram, y, 100.0)], rows_of(gram), leave_out=True)
    (solution,) = fit.solutions
    beta, b = by_numpy(K, y, 100.0)
    assert solution.status is Status.UNCERTIFIED
    assert np.isnan(solution.certificate.gap)
    np.testing.assert_allclose(y * solution.dual, beta, atol=1e-7 * np.abs(beta).max())
    assert solution.intercept == pytest.approx(b, abs=1e-7)
    for i in (0, n // 2):
        rest = np.arange(n) != i
        beta, b = by_numpy(K[rest][:, rest], y[rest], 100.0)
        assert fit.left_out[i, 0] == pytest.approx(K[i, rest] @ beta + b, rel=1e-6, abs=1e-6)


def test_indefinite_kernels_of_many_rows(monkeypatch):
    monkeypatch.setattr(least_squares, "_SPECTRAL", 100)
    X, y, _ = noisy(300)
    K = np.tanh(X @ X.T - 1.0)
    gram = Gram.precomputed(K)
    solution = solve_least_squares(make(gram, y, 100.0), rows_of(gram))
    beta, _ = by_numpy(K, y, 100.0)
    assert solution.status is Status.UNCERTIFIED
    np.testing.assert_allclose(y * solution.dual, beta, atol=1e-6 * np.abs(beta).max())


def test_gradients_on_an_indefinite_kernel_end_without_a_claim():
    X, y, _ = noisy(300)
    gram = Gram.precomputed(np.tanh(X @ X.T - 1.0))
    solution = solve_least_squares(make(gram, y, 100.0), rows_of(gram), method="cg")
    assert solution.status is not Status.OPTIMAL


@pytest.mark.parametrize("C", [1e6, 1e8, 1e16])
@pytest.mark.parametrize("affordable", [100, 2000])
def test_singular_kernels_are_solved_or_said_not_to_be(C, affordable, monkeypatch):
    monkeypatch.setattr(least_squares, "_SPECTRAL", affordable)
    X, y, _ = noisy(400)
    X[200:] = X[:200]
    gram = Gram.linear(X)
    solution = solve_least_squares(
        make(gram, y, C), rows_of(gram), tol=1e-5, method="cholesky", max_iter=50
    )
    features = np.column_stack([X, np.ones(400)])
    least = C * float(np.linalg.lstsq(features, y, rcond=None)[1].item())
    assert np.isfinite(solution.dual).all()
    assert solution.certificate.primal >= least * (1 - 1e-3)
    if C < 1e10:
        assert abs(solution.certificate.gap) <= 1e-5
        assert solution.certificate.primal == pytest.approx(least, rel=1e-5)


def test_hopeless_scales_end_soon_and_honestly():
    """Ran all of max_iter with a factor that rounding had made useless."""
    X, y, _ = noisy(300)
    gram = Gram.poly(X, 1.0, degree=5, coef0=1e5)
    solution = solve_least_squares(make(gram, y), rows_of(gram), method="cholesky")
    assert solution.n_iter < 200
    assert solution.status is Status.MAX_ITER
    assert solution.certificate.primal <= 300.0  # not worse than f = 0


# Memory


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 2.0])
def test_any_part_of_the_matrix_in_memory_gives_the_same_solution(share):
    n = 1300
    X, y, w = noisy(n)
    w[::10] = 0.0
    gram = Gram.rbf(X)
    rows = rows_of(gram, int(share * 4 * n * n))
    problem = make(gram, y, 1.0, w)
    solution = solve_least_squares(problem, rows, tol=1e-9, method="cg")
    exact = solve_least_squares(problem, rows, tol=1e-9, method="cholesky")
    assert solution.status is Status.OPTIMAL
    np.testing.assert_allclose(solution.dual, exact.dual, atol=1e-3)
    assert solution.certificate.primal == pytest.approx(exact.certificate.primal, rel=1e-9)


def test_gradients_give_way_to_a_factor_where_they_are_slow():
    X, y, _ = noisy(1600, p=12)
    gram = Gram.rbf(X)
    problem = make(gram, y, 1e4)
    auto = solve_least_squares(problem, rows_of(gram), tol=1e-6)
    alone = solve_least_squares(problem, rows_of(gram), tol=1e-6, method="cg")
    assert auto.status is alone.status is Status.OPTIMAL
    assert auto.n_iter < 30 < alone.n_iter
    assert auto.certificate.gap < 1e-10  # a factor's


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 200), st.sampled_from([1.0, 1e-9, 1e12]))
def test_balanced_sums_are_zero_to_the_last_bit_in_any_order(seed, n, scale):
    rng = np.random.default_rng(seed)
    beta = scale * rng.normal(size=n) * 10.0 ** rng.integers(-6, 1, size=n)
    size = np.abs(beta).sum()  # of what may cancel, and leaves its last digits
    beta -= beta.mean()
    out = balanced(beta)
    up, down = np.abs(out[out > 0]).sum(), np.abs(out[out <= 0]).sum()
    assert up == down
    assert rng.permutation(out).sum() == 0.0
    np.testing.assert_allclose(out, beta, rtol=0, atol=1e-15 * n * size)


# Leave one out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [2, 3, 25])
def test_leave_one_out_is_what_n_fits_give(n, weighted):
    X, y, w = noisy(n)
    w = w if weighted else np.ones(n)
    if n > 3 and weighted:
        w[4] = 0.0
    gram = Gram.rbf(X)
    K = gram.block(ALL, ALL)
    left_out = leave_one_out(make(gram, y, 5.0, w if weighted else None), rows_of(gram))
    for i in range(n):
        rest = np.flatnonzero((np.arange(n) != i) & (w > 0))
        beta, b = by_numpy(K[np.ix_(rest, rest)], y[rest], 5.0, w[rest])
        assert left_out[i] == pytest.approx(K[i, rest] @ beta + b, abs=1e-10)


def test_leave_one_out_of_many_rows_and_classes():
    X, _, w = noisy(600)
    labels = np.random.default_rng(0).integers(3, size=600)
    gram = Gram.rbf(X)
    K = gram.block(ALL, ALL)
    problems = [make(gram, np.where(labels == k, 1.0, -1.0), 10.0, w) for k in range(3)]
    fit = fit_least_squares(problems, rows_of(gram), leave_out=True)
    for i in (0, 123, 599):
        rest = np.arange(600) != i
        for k, problem in enumerate(problems):
            beta, b = by_numpy(K[rest][:, rest], problem.y[rest], 10.0, w[rest])
            assert fit.left_out[i, k] == pytest.approx(K[i, rest] @ beta + b, abs=1e-9)


def test_the_only_row_of_a_class_is_left_out_to_the_other():
    X, _, _ = noisy(10)
    y = np.array([1.0] + [-1.0] * 9)
    gram = Gram.rbf(X)
    assert leave_one_out(make(gram, y), rows_of(gram))[0] == pytest.approx(-1.0, abs=1e-12)


def test_leave_one_out_needs_a_factor():
    X, y, _ = noisy(10)
    gram = Gram.rbf(X)
    with pytest.raises(ValueError, match="use 'cholesky'"):
        fit_least_squares([make(gram, y)], rows_of(gram), method="cg", leave_out=True)


# Limits


@pytest.mark.parametrize("method", METHODS)
def test_a_deadline_that_has_passed_gives_an_honest_certificate(method):
    X, y, _ = noisy(1100)
    gram = Gram.rbf(X)
    fit = fit_least_squares(
        [make(gram, y)],
        rows_of(gram),
        deadline=time.monotonic(),
        method=method,
        leave_out=method != "cg",
    )
    (solution,) = fit.solutions
    assert solution.status is Status.TIME_LIMIT
    assert solution.certificate.gap > 0.01
    assert np.isfinite(solution.dual).all()
    assert fit.left_out is None or np.isnan(fit.left_out).all()


def test_max_iter_ends_the_gradients():
    X, y, _ = noisy(400)
    gram = Gram.rbf(X)
    solution = solve_least_squares(make(gram, y, 100.0), rows_of(gram), max_iter=2, method="cg")
    assert solution.n_iter == 2
    assert solution.status is Status.MAX_ITER
    assert solution.certificate.gap > 1e-4


def test_a_start_at_the_solution_takes_no_time():
    X, y, _ = noisy(400)
    gram = Gram.rbf(X)
    problem = make(gram, y, 10.0)
    cold = solve_least_squares(problem, rows_of(gram), tol=1e-8, method="cg")
    warm = solve_least_squares(problem, rows_of(gram), tol=1e-8, method="cg", start=cold.dual)
    assert warm.status is Status.OPTIMAL
    assert warm.n_iter <= 1 < cold.n_iter


def test_progress_falls_to_the_tolerance():
    X, y, _ = noisy(500)
    gram = Gram.rbf(X)
    seen = []
    solution = solve_least_squares(
        make(gram, y, 10.0), rows_of(gram), tol=1e-7, method="cg", progress=seen.append
    )
    duals = [state.dual for state in seen]
    assert all(a <= b * (1 + 1e-9) for a, b in itertools.pairwise(duals))
    assert seen[-1].gap <= 1e-7
    assert seen[-1].iteration == solution.n_iter
    assert seen[-1].primal == pytest.approx(solution.certificate.primal, rel=1e-9)
