"""The kernel Lasso against Clarabel, and against the plain Lasso for the linear kernel."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from anynorm import ConstrainedLasso, kernel_lasso
from anynorm.problem.solution import Status

cp = pytest.importorskip("cvxpy", reason="the reference solutions come from Clarabel")


def distance(K, x):
    """``||sum x_i psi(A_i) - psi(b)||^2`` from the kernel values of the columns and b."""
    x = np.append(x, -1.0)
    return float(x @ K @ x)


def reference(K, radius, simplex):
    """The least distance, by Clarabel."""
    n = len(K) - 1
    values, vectors = np.linalg.eigh(K)
    root = (vectors * np.sqrt(np.maximum(values, 0))).T
    x = cp.Variable(n)
    domain = [x >= 0, cp.sum(x) == radius] if simplex else [cp.norm1(x) <= radius]
    return cp.Problem(cp.Minimize(cp.sum_squares(root[:, :n] @ x - root[:, n])), domain).solve(
        solver=cp.CLARABEL
    )


def signal(d=6, n=12, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d, n))
    return A, A[:, 0] + 0.3 * rng.normal(size=d)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.3, 1.0, 2.5]),
    st.booleans(),
    st.sampled_from(["rbf", "poly", "linear"]),
)
@example(282, 2.5, False, "linear")  # the optimum is 0, to the rounding of the kernel
def test_the_solution_is_the_nearest_combination(seed, radius, simplex, kernel):
    A, b = signal(seed=seed)
    points = np.vstack([A.T, b])
    K = {
        "rbf": rbf_kernel(points, gamma=0.2),
        "poly": polynomial_kernel(points, gamma=0.2, degree=2, coef0=1.0),
        "linear": points @ points.T,
    }[kernel]
    found = kernel_lasso(
        A, b, kernel=kernel, gamma=0.2, degree=2, coef0=1.0, radius=radius, simplex=simplex
    )
    best = reference(K, radius, simplex)
    assert distance(K, found.coef) == pytest.approx(best, rel=1e-5, abs=1e-7)
    assert found.certificate.status in (Status.OPTIMAL, Status.NEGLIGIBLE)  # the optimum may be 0
    assert found.certificate.primal == pytest.approx(distance(K, found.coef), abs=1e-9)
    assert np.abs(found.coef).sum() <= radius * (1 + 1e-9)
    if simplex:
        assert found.coef.min() >= 0
        assert found.coef.sum() == pytest.approx(radius)
    given_matrix = kernel_lasso(K, kernel="precomputed", radius=radius, simplex=simplex)
    assert distance(K, given_matrix.coef) == pytest.approx(best, rel=1e-5, abs=1e-7)


def test_the_linear_kernel_is_the_lasso():
    A, b = signal(d=20)
    found = kernel_lasso(A, b, kernel="linear", radius=1.3)
    model = ConstrainedLasso(1.3, fit_intercept=False, tol=1e-10).fit(A, b)
    np.testing.assert_allclose(found.coef, model.coef_, atol=1e-6)
    assert found.certificate.primal == pytest.approx(model.certificate_.primal)


def test_a_column_that_is_b_is_found_in_any_kernel():
    A, _ = signal()
    for kernel in ("rbf", "linear", "poly"):
        found = kernel_lasso(A, A[:, 3], kernel=kernel, coef0=1.0)
        assert found.coef[3] == pytest.approx(1.0, abs=1e-4)
        assert found.certificate.status in (Status.OPTIMAL, Status.NEGLIGIBLE)
        assert found.certificate.gap <= 1e-9


def test_sparse_columns_and_callables():
    A, b = signal()
    expected = kernel_lasso(A, b, gamma=0.3).coef
    sparse = kernel_lasso(sp.csc_array(A), b, gamma=0.3).coef
    called = kernel_lasso(A, b, kernel=lambda u, v: rbf_kernel(u, v, gamma=0.3)).coef
    np.testing.assert_allclose(sparse, expected, atol=1e-8)
    np.testing.assert_allclose(called, expected, atol=1e-8)


@pytest.mark.parametrize("simplex", [True, False])
def test_the_only_column_may_be_b(simplex):
    b = np.random.default_rng(0).normal(size=7)
    for kernel in ("rbf", "linear", "poly"):
        found = kernel_lasso(b[:, None], b, kernel=kernel, coef0=1.0, simplex=simplex)
        assert found.coef == pytest.approx([1.0])
        assert found.certificate.status in (Status.OPTIMAL, Status.NEGLIGIBLE)
        assert found.certificate.gap <= 1e-9


def test_progress_is_that_of_the_function(capsys):
    A, b = signal()
    kernel_lasso(A, b, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith("kernel_lasso: iteration ") for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"radius": 0}, "radius must be a positive"),
        ({"b": [1.0]}, "b has shape"),
        ({"b": None}, "b"),
        ({"kernel": "other"}, "kernel must be"),
        ({"kernel": "precomputed"}, "b must be left out"),
        ({"kernel": "precomputed", "b": None}, "square"),
        ({"A": [[np.nan]], "b": [1.0]}, "A has NaN"),
        ({"tol": 0}, "tol must be a positive"),
        ({"gamma": "wide"}, "gamma must be"),
        ({"max_iter": 0}, "max_iter must be an integer"),
        ({"kernel": lambda u, v: -rbf_kernel(u, v)}, "not positive semidefinite"),
    ],
)
def test_what_cannot_be_used_is_named(arguments, message):
    A, b = signal()
    with pytest.raises(ValueError, match=message):
        kernel_lasso(**({"A": A, "b": b} | arguments))
