"""The exact path and the single fits of the hinge and absolute losses, against HiGHS."""

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.one_norm import RecordInterrupted, follow_path, solve_one_norm
from tests.references import solve_linear_program

KINDS = ("normal", "signs", "binary", "repeated rows", "opposite columns", "counts", "decimals")


def make_problem(X, y, loss="hinge", **more):
    return Problem(y=y, C=1.0, loss=get_loss(loss), X=X, regulariser="l1", **more)


def noisy(n, p, *, seed=0, flip=0.1):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[: min(5, p)] = rng.choice([-1.0, 1.0], min(5, p))
    y = np.where(X @ w > 0, 1.0, -1.0)
    y[rng.random(n) < flip] *= -1
    return X, y


@st.composite
def degenerate_problems(draw):
    """Data with ties of all sorts, weights of both kinds, three biases, two losses."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, p = draw(st.integers(1, 24)), draw(st.integers(1, 14))
    kind = draw(st.sampled_from(KINDS))
    X = {
        "normal": lambda: rng.standard_normal((n, p)),
        "signs": lambda: rng.integers(-1, 2, (n, p)),
        "binary": lambda: rng.integers(0, 2, (n, p)),
        "repeated rows": lambda: np.repeat(rng.integers(-2, 3, (n, p)), 3, axis=0)[:n],
        "opposite columns": lambda: np.hstack([np.eye(n, p), -np.eye(n, p)])[:, :p],
        "counts": lambda: np.column_stack([np.full(n, 5), rng.integers(0, 3, (n, p))])[:, :p],
        "decimals": lambda: np.round(rng.standard_normal((n, p)), 1) * (np.arange(p) > 0),
    }[kind]().astype(np.float64)  # fmt: skip
    y = np.where(rng.random(n) < draw(st.sampled_from([0.5, 0.3, 0.1])), 1.0, -1.0)
    weights = draw(st.sampled_from([None, rng.integers(1, 4, n).astype(float)]))
    penalties = draw(st.sampled_from([None, rng.choice([0.0, 0.5, 1.0, 2.0, np.inf], p)]))
    X = draw(st.sampled_from([X, X, sp.csr_matrix(X)]))
    return make_problem(
        X, y, draw(st.sampled_from(["hinge", "hinge", "absolute"])), sample_weight=weights,
        penalty_weights=penalties, intercept=draw(st.sampled_from(["free", None, 2.0])),
    )  # fmt: skip


def knot(record, k, p):
    coef = np.zeros(p)
    part = slice(record.indptr[k], record.indptr[k + 1])
    coef[record.indices[part]] = record.data[part]
    return coef, record.intercepts[k]


def at_penalty(problem, record, lam):
    """The objective at lambda of the knot that belongs to it, in the units of the path."""
    k = min(int(np.searchsorted(-record.penalties, -lam)), len(record.s) - 1)
    return replace(problem, C=1 / lam).objective(*knot(record, k, problem.n_coefs)) * lam


def optimum(problem, lam):
    return solve_linear_program(replace(problem, C=1 / lam)) * lam


@given(problem=degenerate_problems(), share=st.floats(0.02, 1.1))
@settings(max_examples=60, deadline=None)
def test_degenerate_paths_are_optimal_at_and_between_their_joints(problem, share):
    record = follow_path(problem)
    assert record.stopped == "end"
    assert record.gaps.max() <= 1e-9
    assert np.all(np.diff(record.s) > 0)
    assert np.all(np.diff(record.penalties) < 0)
    assert record.joint[0]
    assert record.joint[-1]
    scale = problem.zero_primal()
    for lam in (record.penalties[0], record.penalties[len(record.s) // 2], share):
        if lam > 1e-6:
            found = at_penalty(problem, record, lam)
            assert found == pytest.approx(optimum(problem, lam), rel=1e-6, abs=1e-7 * scale)


@pytest.mark.parametrize("intercept", ["free", None, 0.5])
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("shape", [(40, 200), (200, 15), (60, 60)])
def test_the_optimum_at_every_penalty(shape, loss, intercept):
    problem = make_problem(*noisy(*shape), loss, intercept=intercept)
    record = follow_path(problem)
    assert record.gaps.max() <= 1e-9
    for lam in record.penalties[0] * np.geomspace(0.9, 0.01, 5):
        assert at_penalty(problem, record, lam) == pytest.approx(optimum(problem, lam), rel=1e-8)


def test_the_path_between_two_joints_is_a_straight_line_of_optima():
    problem = make_problem(*noisy(50, 30))
    record = follow_path(problem)
    for k in range(0, len(record.s) - 1, 7):
        (w0, b0), (w1, b1) = (knot(record, j, 30) for j in (k, k + 1))
        lam, middle = record.penalties[k], 0.3 * record.s[k] + 0.7 * record.s[k + 1]
        coef, bias = 0.3 * w0 + 0.7 * w1, 0.3 * b0 + 0.7 * b1
        assert np.abs(coef).sum() == pytest.approx(middle, rel=1e-12)
        found = replace(problem, C=1 / lam).objective(coef, bias) * lam
        assert found == pytest.approx(optimum(problem, lam), rel=1e-9)


def test_the_end_of_separable_data_has_no_loss_and_the_least_norm():
    X, y = noisy(30, 100, flip=0.0)
    record = follow_path(make_problem(X, y))
    assert record.losses[-1] == pytest.approx(0.0, abs=1e-10)
    assert record.penalties[-1] == 0.0
    hard = solve_linear_program(Problem(y=y, C=1e6, loss=get_loss("hinge"), X=X, regulariser="l1"))
    assert record.s[-1] == pytest.approx(hard, rel=1e-6)


def test_unequal_classes_begin_at_the_least_penalty_that_keeps_w_at_zero():
    X, y = noisy(40, 10, seed=3)
    y[:25] = 1.0
    problem = make_problem(X, y)
    top = follow_path(problem).penalties[0]
    nothing = 2.0 * min(np.sum(y > 0), np.sum(y < 0))
    assert optimum(problem, 1.001 * top) == pytest.approx(nothing, rel=1e-9)
    assert optimum(problem, 0.98 * top) < nothing * (1 - 1e-6)


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array([[1.0]]), np.array([1.0])),
        (np.array([[1.0], [2.0]]), np.array([1.0, 1.0])),
        (np.zeros((4, 3)), np.array([1.0, -1.0, 1.0, -1.0])),
        (np.ones((4, 2)), np.array([1.0, -1.0, 1.0, 1.0])),
    ],
)
def test_paths_of_a_single_joint(X, y):
    record = follow_path(make_problem(X, y))
    assert record.s.tolist() == [0.0]
    assert record.stopped == "end"


def test_one_example_of_each_class():
    record = follow_path(make_problem(np.array([[3.0], [1.0]]), np.array([1.0, -1.0])))
    coef, bias = knot(record, 1, 1)
    np.testing.assert_allclose([coef[0], bias], [1.0, -2.0])
    np.testing.assert_allclose(record.penalties, [2.0, 0.0])


def test_storages_give_the_same_path():
    X, y = noisy(40, 60)
    X[np.abs(X) < 0.5] = 0.0
    plain = follow_path(make_problem(X, y))
    read_only = X.copy()
    read_only.flags.writeable = False
    wide = sp.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    single = X.astype(np.float32)
    for other in (np.asfortranarray(X), read_only, sp.csc_array(X), wide, single):
        rounding = 1e-9 if other.dtype == np.float64 else 1e-5
        record = follow_path(make_problem(other, y))
        np.testing.assert_allclose(record.s[[1, -1]], plain.s[[1, -1]], rtol=rounding)
        np.testing.assert_allclose(record.penalties[0], plain.penalties[0], rtol=rounding)
        assert record.gaps.max() <= 1e-9


def test_weights_are_repetitions():
    X, y = noisy(30, 8)
    counts = np.random.default_rng(0).integers(0, 3, 30)
    kept = counts > 0
    weighted = follow_path(make_problem(X[kept], y[kept], sample_weight=counts[kept].astype(float)))
    repeated = follow_path(make_problem(np.repeat(X, counts, axis=0), np.repeat(y, counts)))
    np.testing.assert_allclose(weighted.s, repeated.s, rtol=1e-9)
    np.testing.assert_allclose(weighted.losses, repeated.losses, rtol=1e-8, atol=1e-9)


def test_limits_stop_the_path_where_they_say():
    problem = make_problem(*noisy(60, 100))
    whole = follow_path(problem)
    few = follow_path(problem, max_features=9)
    assert few.stopped == "max_features"
    assert 5 <= np.diff(few.indptr).max() <= 9
    np.testing.assert_allclose(few.s, whole.s[: len(few.s)], rtol=1e-12)
    joints = follow_path(problem, max_joints=9)
    assert (joints.stopped, int(joints.joint.sum())) == ("max_joints", 9)
    short = follow_path(problem, s_max=0.5 * whole.s[-1])
    assert short.stopped == "s_max"
    assert short.s[-1] == 0.5 * whole.s[-1]
    coef, bias = knot(short, len(short.s) - 1, 100)
    assert np.abs(coef).sum() == pytest.approx(short.s[-1], rel=1e-12)
    found = replace(problem, C=1 / short.penalties[-1]).objective(coef, bias)
    assert found == pytest.approx(optimum(problem, short.penalties[-1]) / short.penalties[-1])
    assert follow_path(problem, s_max=0.0).s.tolist() == [0.0]
    late = follow_path(problem, deadline=time.monotonic())
    assert late.stopped == "time_limit"
    assert len(late.s) <= len(whole.s)


def test_duals_at_rest_at_their_bounds_are_no_events():
    """Columns that are never penalised, ties at lambda = 7: the path once ended there."""
    X = np.array([[-2, 2, -1, -1], [-1, -2, -1, 2], [1, 2, 2, -1], [-2, 2, 0, 1], [-1, 1, 0, -2],
                  [-1, 2, 1, 1]], dtype=float)  # fmt: skip
    y = np.array([-1.0, 1.0, -1.0, 1.0, -1.0, -1.0])
    u = np.array([0.0, 0.0, 1.0, 0.5])
    record = follow_path(make_problem(X, y, penalty_weights=u, intercept=None))
    assert record.stopped == "end"
    np.testing.assert_allclose([record.s[-1], record.losses[-1]], [0.5, 0.0], atol=1e-12)


def test_ctrl_c_hands_over_what_was_done():
    def interrupt(state):
        raise KeyboardInterrupt

    with pytest.raises(RecordInterrupted) as caught:
        follow_path(make_problem(*noisy(400, 100)), progress=interrupt)
    record = caught.value.record
    assert len(record.s) > 1
    assert record.gaps.max() <= 1e-9


# Single fits


@given(problem=degenerate_problems(), C=st.sampled_from([0.05, 0.5, 3.0]))
@settings(max_examples=40, deadline=None)
def test_degenerate_fits_are_certified(problem, C):
    problem = replace(problem, C=C)
    solution = solve_one_norm(problem, tol=1e-9)
    assert solution.status is Status.OPTIMAL
    scale = problem.zero_primal()
    reference = solve_linear_program(problem)
    assert solution.certificate.primal == pytest.approx(reference, rel=1e-6, abs=1e-7 * scale)


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("shape", [(3000, 20), (60, 3000), (2600, 40)])
def test_parts_of_rows_and_columns_lead_to_the_whole(shape, loss):
    X, y = noisy(*shape, seed=1)
    problem = replace(make_problem(X, y, loss), C=0.05)
    solution = solve_one_norm(problem, tol=1e-9)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-8)


def test_fits_with_weights_of_all_kinds():
    X, y = noisy(80, 1500, seed=2)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, 80).astype(float)
    penalties = rng.choice([0.0, 0.5, 1.0, np.inf], 1500, p=[0.002, 0.3, 0.6, 0.098])
    problem = replace(make_problem(X, y, sample_weight=weights, penalty_weights=penalties), C=0.1)
    solution = solve_one_norm(problem, tol=1e-9)
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(solve_linear_program(problem), rel=1e-8)
    assert not solution.coef[np.isinf(penalties)].any()


def test_a_fit_that_may_not_pivot_says_so():
    X, y = noisy(300, 300)
    problem = replace(make_problem(X, y), C=1.0)
    few = solve_one_norm(problem, tol=1e-9, max_iter=1)
    assert few.status is Status.MAX_ITER
    assert few.certificate.gap > 1e-9
    late = solve_one_norm(problem, tol=1e-9, deadline=time.monotonic())
    assert late.status is Status.TIME_LIMIT
