"""The point of least norm in a hull, against Clarabel, scipy and what can be known beforehand."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from anynorm import min_norm_point
from anynorm.design import design_of
from anynorm.design.points import KernelPoints, MatrixPoints
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.simplex.min_norm import HullSearch, solve_min_norm
from tests.spies import Stopwatch, seconds_to_obey

cp = pytest.importorskip("cvxpy")


def hull(n, d, shift, seed=0):
    """Gaussian points around `shift` times the first axis, in columns."""
    return np.random.default_rng(seed).standard_normal((d, n)) + shift * np.eye(d, 1)


def gap_of(A, x):
    """The relative gap, from x alone."""
    assert x.min() >= 0
    assert abs(x.sum() - 1) <= 1e-12
    A = np.asarray(A, dtype=np.longdouble)  # a sum in float64 may be wrong by as much as the gap
    w = A @ x
    primal = float(w @ w)
    lowest = (A.T @ w).min()
    dual = lowest**2 / primal if lowest > 0 else 0.0
    return (primal - dual) / max(primal, 1e-10 * float((A * A).sum(axis=0).max()), 1e-300)


def clarabel(A):
    """The least squared norm by an interior point method."""
    scale = np.abs(A).max() or 1.0
    x, w = cp.Variable(A.shape[1]), cp.Variable(A.shape[0])
    constraints = [w == A / scale @ x, x >= 0, cp.sum(x) == 1]
    problem = cp.Problem(cp.Minimize(cp.sum_squares(w)), constraints)
    return problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-12, tol_gap_rel=1e-12) * scale**2


class Lazy:
    """Points with nothing but what a solver must have."""

    def __init__(self, A):
        self._A = A
        self.d, self.n = A.shape

    def dot(self, w):
        return self._A.T @ w

    def combine(self, x):
        return self._A @ x

    def columns(self, index):
        return self._A[:, index]

    def norms_squared(self):
        return (self._A**2).sum(axis=0)

    def products(self, index):
        return self._A.T @ self._A[:, index]


@st.composite
def grids(draw):
    """Small integers, with repeated columns, ties and zero columns; 0 is often in the hull."""
    d, n = draw(st.integers(1, 6)), draw(st.integers(1, 25))
    entries = st.integers(-3, 3)
    A = np.array(draw(st.lists(entries, min_size=d * n, max_size=d * n)), dtype=float)
    A = A.reshape(d, n) + draw(st.integers(0, 4)) * np.eye(d, 1)
    index = draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=30))
    return A[:, index]


@settings(deadline=None, max_examples=200)
@given(grids())
def test_grids_of_integers_have_a_certified_answer(A):
    solution = min_norm_point(A)
    assert solution.status in (Status.OPTIMAL, Status.NEGLIGIBLE)  # the optimum may be 0
    assert gap_of(A, solution.x) <= 1e-9


@settings(deadline=None, max_examples=30)
@given(grids())
def test_grids_of_integers_agree_with_clarabel(A):
    assert min_norm_point(A).certificate.primal == pytest.approx(clarabel(A + 0.0), abs=1e-7)


@pytest.mark.parametrize(
    ("n", "d", "shift"),
    [(300, 30, 3.0), (100, 300, 0.5), (40, 400, 2.0), (2000, 5, 4.5), (250, 120, 0.7), (1, 7, 0.0)],
)
def test_gaussian_points_agree_with_clarabel(n, d, shift):
    A = hull(n, d, shift)
    solution = min_norm_point(A)
    assert gap_of(A, solution.x) <= 1e-9
    assert solution.certificate.primal == pytest.approx(clarabel(A), rel=1e-7, abs=1e-12)
    np.testing.assert_allclose(solution.dual, A @ solution.x, atol=1e-12)


def test_coefficients_agree_with_non_negative_least_squares():
    from scipy.optimize import nnls

    A, heavy = hull(80, 100, 1.0), 1e4
    x, _ = nnls(np.vstack([A, np.full(80, heavy)]), np.r_[np.zeros(100), heavy])
    np.testing.assert_allclose(min_norm_point(A).x, x / x.sum(), atol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 10, 50])
def test_origin_inside_is_certified_as_zero(d):
    A = hull(40 * d, d, 0.2)
    solution = min_norm_point(A)
    largest = float((A**2).sum(axis=0).max())
    assert solution.status is Status.NEGLIGIBLE
    assert solution.certificate.primal <= 1e-30 * largest
    assert solution.certificate.dual == 0
    assert np.linalg.norm(A @ solution.x) ** 2 <= 1e-30 * largest


def test_all_ways_to_give_the_points_agree():
    A = hull(120, 40, 2.0)
    A[np.abs(A) < 1] = 0.0
    expected = min_norm_point(A)
    others = [
        min_norm_point(sp.csc_array(A)),
        min_norm_point(sp.csr_matrix(A)),
        min_norm_point(A.T @ A, kernel_matrix=True),
        min_norm_point(Lazy(A)),
        min_norm_point(np.asfortranarray(A)),
        min_norm_point(A.tolist()),
        solve_min_norm(MatrixPoints(design_of(A))),
        solve_min_norm(MatrixPoints(design_of(sp.csc_array(A)))),
        solve_min_norm(KernelPoints(A.T @ A)),
    ]
    for other in others:
        assert other.status is Status.OPTIMAL
        assert gap_of(A, other.x) <= 1e-9
        np.testing.assert_allclose(other.x, expected.x, atol=1e-8)
        assert other.certificate.zero_primal == pytest.approx(expected.certificate.zero_primal)


def test_points_offer_the_products_of_the_matrix():
    A = hull(30, 9, 1.0)
    x, w, index = np.linspace(0, 1, 30), np.linspace(-1, 1, 9), np.array([3, 3, 17])
    for stored in (A, A.T.copy().T, sp.csr_array(A)):
        points = MatrixPoints(design_of(stored))
        assert (points.d, points.n) == (9, 30)
        np.testing.assert_allclose(points.dot(w), A.T @ w)
        np.testing.assert_allclose(points.combine(x), A @ x)
        np.testing.assert_allclose(points.columns(index), A[:, index])
        np.testing.assert_allclose(points.norms_squared(), (A**2).sum(axis=0))
        np.testing.assert_allclose(points.products(index), A.T @ A[:, index])
        np.testing.assert_allclose(points.kernel(), A.T @ A)
    kernel = KernelPoints(A.T @ A)
    np.testing.assert_allclose(kernel.dot(kernel.combine(x)), A.T @ (A @ x))
    np.testing.assert_allclose(kernel.dot(kernel.columns(index)[:, 2]), A.T @ A[:, 17])
    np.testing.assert_allclose(kernel.products(index), A.T @ A[:, index])
    np.testing.assert_allclose(kernel.norms_squared(), (A**2).sum(axis=0))


def test_a_warm_start_needs_fewer_iterations():
    A = hull(600, 100, 2.0)
    cold = min_norm_point(A)
    warm = min_norm_point(A, start=cold.x)
    near = min_norm_point(A + 1e-3 * hull(600, 100, 0.0, seed=1), start=cold.x)
    assert warm.n_iter <= 1
    assert near.n_iter < cold.n_iter
    np.testing.assert_allclose(warm.x, cold.x, atol=1e-9)


@pytest.mark.parametrize("n_used", [1, 3, 40])
def test_any_start_leads_to_the_optimum(n_used):
    A = np.repeat(hull(20, 6, 2.5), 2, axis=1)
    start = np.zeros(40)
    start[-n_used:] = np.arange(1, n_used + 1)
    assert gap_of(A, min_norm_point(A, start=start).x) <= 1e-9


DEGENERATE = {
    "equal points": np.ones((5, 40)),
    "each point fifty times": np.repeat(hull(4, 5, 3.0), 50, axis=1),
    "points that all but coincide": np.repeat(hull(10, 20, 3.0), 20, axis=1)
    + 1e-9 * hull(200, 20, 0.0, seed=1),
    "a line": np.vstack([np.linspace(-1, 1, 1000), np.ones(1000)]),
    "an arc": np.vstack([np.cos(np.linspace(0, 1, 5000)), np.sin(np.linspace(0, 1, 5000))]),
    "low rank": hull(3, 60, 0.0) @ hull(200, 3, 2.0),
    "far away": hull(300, 20, 0.0) + 1e6,
    "many lengths": hull(300, 30, 2.0) * 10.0 ** np.arange(-3, 3).repeat(50),
    "a zero column": np.hstack([hull(50, 10, 9.0), np.zeros((10, 1))]),
    "nothing but zeros": np.zeros((3, 4)),
    "a single column": np.array([[3.0], [4.0]]),
    "one dimension": np.array([[3.0, 2.0, 5.0]]),
    "opposite points": np.array([[1.0, -1.0], [1.0, -1.0]]),
    "huge": 1e150 * hull(50, 10, 3.0),
    "tiny": 1e-150 * hull(50, 10, 3.0),
}


@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_points(name):
    A = DEGENERATE[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = min_norm_point(A)
    assert solution.status in (Status.OPTIMAL, Status.NEGLIGIBLE)  # the optimum may be 0
    size = np.abs(A).max(initial=0.0) or 1.0
    assert gap_of(A / size, solution.x) <= 1e-9


def test_a_single_column_is_the_answer():
    solution = min_norm_point([[3.0], [4.0]])
    assert solution.x.tolist() == [1.0]
    assert solution.certificate.primal == solution.certificate.dual == 25.0


def test_float32_and_read_only_data():
    A = hull(400, 50, 3.0)
    A.setflags(write=False)
    small = A.astype(np.float32)
    small.setflags(write=False)
    exact = min_norm_point(small.astype(np.float64))
    solution = min_norm_point(small)
    assert gap_of(small, solution.x) <= 1e-9
    np.testing.assert_allclose(solution.x, exact.x, atol=1e-9)
    assert gap_of(A, min_norm_point(A).x) <= 1e-9
    assert gap_of(small, min_norm_point(sp.csr_array(small)).x) <= 1e-9


def test_the_answer_is_the_same_every_time():
    A = hull(500, 60, 2.0)
    assert np.array_equal(min_norm_point(A).x, min_norm_point(A.copy()).x)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    noise=st.sampled_from([0.0, 1e-6, 1e-3, 0.1]),
    shift=st.sampled_from([0.5, 2.0, 5.0]),
)
def test_no_point_in_use_is_screened(seed, noise, shift):
    """Points on a grid, half of them repeated, from the optimum and from points around it."""
    rng = np.random.default_rng(seed)
    A = np.round(2 * rng.normal(size=(3, 60))) + shift * np.eye(3, 1)
    A = np.hstack([A, A[:, :40]])
    x = min_norm_point(A, tol=1e-12).x
    w, rough = A @ x, x * (1 + noise * rng.normal(size=100)) + noise * rng.random(100)
    rough = np.maximum(rough, 0.0)
    search = HullSearch(
        MatrixPoints(design_of(A)), np.einsum("ij,ij->j", A, A), 1e-9, Budget(100), None
    )
    search.looks = 10
    search._screen(search.look(rough / rough.sum()), np.empty(0, np.intp))
    if search.alive is not None:
        dropped = np.delete(np.arange(100), search.alive)
        assert np.all(x[dropped] == 0)
        assert np.all(A[:, dropped].T @ w > (w @ w) * (1 + 1e-9))


def test_screening_leaves_the_answer_alone():
    # Started from one point, the search looks often enough for points to be left out.
    A = hull(5000, 40, 5.0)
    A[1:] *= np.linspace(0.1, 3.0, 5000)
    start = np.zeros(5000)
    start[A[0].argmax()] = 1.0
    solution = min_norm_point(A, start=start)
    assert gap_of(A, solution.x) <= 1e-9
    assert solution.certificate.primal == pytest.approx(clarabel(A), rel=1e-7)


@pytest.mark.parametrize("max_working", [60, 150])
def test_blocks_serve_where_memory_is_short(max_working):
    A = hull(350, 300, 0.0)
    solution = solve_min_norm(MatrixPoints(design_of(A)), max_working=max_working)
    assert solution.status is Status.OPTIMAL
    assert gap_of(A, solution.x) <= 1e-9
    assert np.count_nonzero(solution.x) > max_working
    again = solve_min_norm(MatrixPoints(design_of(A)), max_working=max_working, start=solution.x)
    assert again.n_iter <= 1
    np.testing.assert_allclose(solution.x, min_norm_point(A).x, atol=1e-7)


def test_zero_just_outside_a_hull_of_low_rank_takes_few_steps():
    # With many points entering at a time, all but one or two were thrown out again, for seconds.
    rng = np.random.default_rng(5)
    for _ in range(4):
        A = rng.standard_normal((59, 58)) @ rng.standard_normal((58, 240)) + 0.5 * np.eye(59, 1)
        solution = min_norm_point(A)
        assert solution.status is Status.OPTIMAL
        assert solution.n_iter < 1000


def test_reduced_problems_are_solved():
    from anynorm.reductions import lasso_to_svm, soft_margin

    rng = np.random.default_rng(0)
    X, b = rng.standard_normal((60, 100)), rng.standard_normal(60)
    z = min_norm_point(lasso_to_svm(X, b, 0.7)).x
    x = lasso_to_svm(X, b, 0.7).to_lasso(z)
    v = cp.Variable(100)
    lasso = cp.Problem(cp.Minimize(cp.sum_squares(X @ v - b)), [cp.norm1(v) <= 0.7])
    lasso.solve(solver=cp.CLARABEL)
    assert float(np.sum((X @ x - b) ** 2)) == pytest.approx(lasso.value, rel=1e-7)
    points = soft_margin(X, np.sign(b), 2.0)
    solution = min_norm_point(points)
    assert gap_of(points.matrix(), solution.x) <= 1e-9
    assert solution.status is Status.OPTIMAL


@pytest.mark.parametrize("offset", [None, 2.0])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("labels", [True, False])
def test_soft_margins_with_most_points_in_use(C, offset, labels):
    """A factor of the products of all points in use took minutes, and left a gap of 1."""
    from anynorm.reductions import soft_margin

    rng = np.random.default_rng(0)
    X = sp.random_array((1500, 600), density=0.02, random_state=rng, format="csr")
    y = np.where(rng.random(1500) < 0.5, -1.0, 1.0) if labels else None
    points = soft_margin(X, y, C, offset=offset)
    min_norm_point(soft_margin(X[:50], y if y is None else y[:50], C, offset=offset))  # compiled
    began = time.process_time()
    solution = min_norm_point(points)
    assert time.process_time() - began < 20
    assert solution.status is Status.OPTIMAL
    assert gap_of(points.matrix().toarray(), solution.x) <= 2e-9
    if C == 0.01 and labels:
        assert np.count_nonzero(solution.x) > 1400


def test_a_guess_respects_the_time_limit():
    from anynorm.reductions import soft_margin

    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((2000, 50)), np.sign(rng.standard_normal(2000))
    with pytest.warns(ConvergenceWarning, match="raise time_limit"):
        solution = min_norm_point(soft_margin(X, y, 1e3), time_limit=1e-9)
    assert solution.status is Status.TIME_LIMIT
    assert solution.x.sum() == pytest.approx(1)


@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"time_limit": 1e-9}])
def test_limits_warn_with_the_gap_reached(limit):
    A = hull(500, 100, 1.0)
    with pytest.warns(ConvergenceWarning, match="relative gap of"):
        solution = min_norm_point(A, **limit)
    expected = Status.MAX_ITER if "max_iter" in limit else Status.TIME_LIMIT
    assert solution.status is expected
    assert gap_of(A, solution.x) == pytest.approx(solution.certificate.gap, rel=1e-6)


def test_a_time_limit_is_kept():
    K = hull(1500, 1500, 0.0)
    min_norm_point(np.eye(3), kernel_matrix=True)  # compiled before the clock starts
    watch = Stopwatch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        min_norm_point(K.T @ K, kernel_matrix=True, time_limit=0.2)
    assert watch.seconds < 2.0


def test_indefinite_kernels_are_not_certified():
    K = np.array([[1.0, -3.0], [-3.0, 1.0]])
    with pytest.warns(ConvergenceWarning, match="positive semidefinite"):
        solution = min_norm_point(K, kernel_matrix=True)
    assert solution.status is Status.UNCERTIFIED
    assert np.isnan(solution.certificate.gap)


def test_progress_is_printed(capsys):
    min_norm_point(hull(50, 10, 3.0), verbose=1)
    assert "min_norm_point: iteration" in capsys.readouterr().out


def test_ctrl_c_is_heeded_soon():
    A = hull(2500, 2000, 0.0)
    min_norm_point(np.eye(3))  # compiled before the clock starts
    assert seconds_to_obey(lambda: min_norm_point(A, tol=1e-300)) < 1.2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"A": [[1.0, np.nan]]}, "NaN"),
        ({"A": [[1.0, np.inf]]}, "infinite"),
        ({"A": sp.csr_array([[1.0, np.nan]])}, "NaN"),
        ({"A": [1.0, 2.0]}, "matrix"),
        ({"A": np.zeros((3, 0))}, "no columns"),
        ({"A": np.zeros((0, 3))}, "no rows"),
        ({"A": np.ones((2, 2)) * 1j}, "complex"),
        ({"A": np.ones((2, 3)), "kernel_matrix": True}, "square"),
        ({"A": [[1.0, 0.5], [0.0, 1.0]], "kernel_matrix": True}, "symmetric"),
        ({"A": [[-1.0, 0.0], [0.0, 1.0]], "kernel_matrix": True}, "diagonal"),
        ({"A": sp.csr_array(np.eye(2)), "kernel_matrix": True}, "dense"),
        ({"A": np.ones((2, 3)), "tol": 0.0}, "tol"),
        ({"A": np.ones((2, 3)), "tol": np.nan}, "tol"),
        ({"A": np.ones((2, 3)), "max_iter": 0}, "max_iter"),
        ({"A": np.ones((2, 3)), "max_iter": 1.5}, "max_iter"),
        ({"A": np.ones((2, 3)), "time_limit": -1.0}, "time_limit"),
        ({"A": np.ones((2, 3)), "start": [1.0, 1.0]}, "start"),
        ({"A": np.ones((2, 3)), "start": [1.0, -1.0, 0.0]}, "start"),
        ({"A": np.ones((2, 3)), "start": [0.0, 0.0, 0.0]}, "start"),
    ],
)
def test_errors_name_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        min_norm_point(**arguments)
