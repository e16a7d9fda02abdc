"""Kernel problems with balls and general norms: against CVXPY, each other, and odd data."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram, make_gram
from anynorm.losses import Loss
from anynorm.norms import K12, L1, L2, LInf, Lp, Mahalanobis, Norm, TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.kernel import KernelRows, solve_kernel
from tests.references import solve_primal
from tests.spies import Stopwatch
from tests.strategies import Chained, Stretched, mixing_matrix

CONSTRAINTS = ["inequality", "equality"]
KERNELS = ["rbf", "linear", "poly"]


class Grouped(Norm):
    """A user's norm with corners and curves: the sum of the 2-norms of groups of three."""

    def _sizes(self, v):
        return np.sqrt(np.bincount(np.arange(len(v)) // 3, weights=np.square(v)))

    def value(self, xi):
        return float(self._sizes(np.asarray(xi)).sum())

    def dual_value(self, a):
        return float(self._sizes(np.asarray(a)).max())

    def maximiser(self, a):
        a, sizes = np.asarray(a), self._sizes(np.asarray(a))
        k = int(np.argmax(sizes))
        return np.where(np.arange(len(a)) // 3 == k, a, 0.0) / (sizes[k] if sizes[k] > 0 else 1.0)

    def expression(self, xi):
        import cvxpy as cp

        return sum(cp.norm(xi[i : i + 3], 2) for i in range(0, xi.size, 3))


class Bare(Norm):
    """A norm of the library with everything but the three methods hidden."""

    def __init__(self, norm):
        self.norm = norm

    def value(self, xi):
        return self.norm.value(xi)

    def dual_value(self, a):
        return self.norm.dual_value(a)

    def maximiser(self, a):
        return self.norm.maximiser(a)


def overlapping(n=24, p=4, seed=0, shift=0.6):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 3 == 0, 1.0, -1.0)
    return rng.normal(size=(n, p)) + shift * y[:, None] * (np.arange(p) < 2), y


def problem_of(norm, constraints="inequality", kernel="rbf", C=1.0, X=None, y=None, **pieces):
    if X is None:
        X, y = overlapping()
    gram = pieces.pop("gram", None) or make_gram(X, kernel)
    loss = Loss.from_slack(norm, constraints)
    return Problem(y=y, C=C, loss=loss, gram=gram, **pieces)


def solved(problem, tol=1e-6, **options):
    rows = KernelRows(problem.gram, 1 << 24)
    return solve_kernel(problem, rows=rows, tol=tol, **({"max_iter": 10**7} | options))


def allowed(problem, a):
    """Whether a is a dual point, to rounding (1e-8 where the ball is a linear programme)."""
    size = np.abs(a).sum()
    balanced = abs(problem.y @ a) <= 1e-12 * size
    if isinstance(problem.loss.slack, Chained):
        a = a * (1 - 1e-8)
    return balanced and problem.loss.dual_gain(a, problem.C, problem.sample_weight) > -np.inf


# ---------------------------------------------------------------- against Clarabel


REFERENCED = [
    L2(), TopK2(3), TopK2(7.5), K12(2), K12(9.5), Lp(1.2), Lp(1.5), Lp(2), Lp(3), Lp(8),
    Mahalanobis(mixing_matrix(24)), Mahalanobis(np.diag(np.arange(1.0, 25.0))),
    Stretched(1.1), Grouped(), Chained(),
]  # fmt: skip


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("norm", REFERENCED, ids=lambda norm: repr(norm)[:14])
def test_every_norm_reaches_the_reference(norm, constraints, kernel):
    problem = problem_of(norm, constraints, kernel)
    solution = solved(problem)
    reference = solve_primal(problem).value
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.primal == pytest.approx(reference, rel=2e-6)
    assert solution.certificate.dual <= reference * (1 + 1e-7)
    assert allowed(problem, solution.dual)


@pytest.mark.parametrize("C", [1e-4, 30.0, 1e5])
@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize(
    "norm",
    [L2(), TopK2(3), K12(4), Lp(1.5), Lp(4), Mahalanobis(mixing_matrix(24)), Stretched(1.1)],
    ids=lambda norm: repr(norm)[:14],
)
def test_small_and_large_C(norm, constraints, C):
    problem = problem_of(norm, constraints, C=C)
    solution = solved(problem)
    assert solution.status is Status.OPTIMAL
    if C < 1e3:
        assert solution.certificate.primal == pytest.approx(solve_primal(problem).value, rel=2e-6)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("norm", [L2(), TopK2(4), K12(5)], ids=repr)
def test_balls_reach_a_gap_of_1e_8(norm, constraints):
    X, y = overlapping(n=120)
    solution = solved(problem_of(norm, constraints, X=X, y=y, C=3.0), tol=1e-8)
    assert solution.status is Status.OPTIMAL
    assert abs(solution.certificate.gap) <= 1e-8


# ---------------------------------------------------------------- norms that coincide


def value_of(norm, constraints, **pieces):
    solution = solved(problem_of(norm, constraints, **pieces), tol=1e-7)
    assert solution.status is Status.OPTIMAL
    return solution.certificate.primal


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Lp(2), L2()),
        (Lp(1), L1()),
        (Mahalanobis(np.eye(24)), L2()),
        (Mahalanobis(4 * np.eye(24)), L2(np.full(24, 4.0))),
        (TopK(24), L1()),
        (TopK(1), LInf()),
        (TopK2(1), LInf()),
        (TopK2(24), L2()),
        (K12(24), L1()),
        (K12(1), L2()),
        (Bare(L1()), L1()),
        (Bare(LInf()), LInf()),
        (Bare(TopK2(4)), TopK2(4)),
        (Bare(K12(4)), K12(4)),
        (Bare(Lp(1.5)), Lp(1.5)),
    ],
    ids=lambda norm: repr(norm)[:16],
)
def test_norms_that_coincide_give_one_value(one, other, constraints):
    assert value_of(one, constraints) == pytest.approx(value_of(other, constraints), rel=3e-7)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
def test_Lp_tends_to_its_limits(constraints):
    assert value_of(Lp(1.001), constraints) == pytest.approx(value_of(L1(), constraints), rel=1e-2)
    assert value_of(Lp(200), constraints) == pytest.approx(value_of(LInf(), constraints), rel=3e-2)


@pytest.mark.parametrize("constraints", CONSTRAINTS)
@pytest.mark.parametrize("norm", [L2(), TopK2(5), K12(6), Lp(1.5), Lp(3)], ids=repr)
def test_weights_equal_repetition(norm, constraints):
    X, y = overlapping()
    w = np.arange(len(y)) % 4
    gram = make_gram(X, "rbf")
    weighted = solved(
        problem_of(norm, constraints, y=y, X=X, gram=gram, sample_weight=w.astype(float)), tol=1e-7
    )
    many = np.repeat(np.arange(len(y)), w)
    repeated = Gram.precomputed(gram.block(many, many))
    assert np.all(weighted.dual[w == 0] == 0)
    assert weighted.certificate.primal == pytest.approx(
        value_of(norm, constraints, X=X[many], y=y[many], gram=repeated), rel=3e-7
    )


# ---------------------------------------------------------------- odd data


@st.composite
def odd_problems(draw):
    """Repeated rows of both classes, constant kernels, two rows, rare classes, odd C."""
    n = draw(st.sampled_from([2, 3, 6, 12]))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    kind = draw(st.sampled_from(["normal", "repeated", "constant", "zero", "rank one"]))
    X = rng.normal(size=(n, 2))
    if kind == "repeated":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "constant":
        X[:] = 1.0
    elif kind == "zero":
        X[:] = 0.0
    elif kind == "rank one":
        X = X[:, :1] * np.ones(2)
    y = np.where(rng.random(n) < draw(st.sampled_from([0.0, 0.2, 0.5])), 1.0, -1.0)
    norm = draw(
        st.sampled_from(
            [L2(), TopK2(2), K12(2), Lp(1), Lp(1.5), Lp(4), Mahalanobis(mixing_matrix(n)),
             Mahalanobis(np.eye(n)), Stretched(1.2), Bare(LInf()), Bare(L1())]
        )
    )  # fmt: skip
    return problem_of(
        norm,
        draw(st.sampled_from(CONSTRAINTS)),
        draw(st.sampled_from(["rbf", "linear"])),
        draw(st.sampled_from([1e-3, 1.0, 100.0])),
        X,
        y,
    )


@settings(max_examples=80, deadline=None)
@given(odd_problems())
def test_odd_data_end_with_a_certificate(problem):
    solution = solved(problem, tol=1e-4)
    assert solution.status is Status.OPTIMAL
    assert np.all(np.isfinite(solution.dual))


@pytest.mark.parametrize("norm", [L2(), Lp(1.5), Stretched(1.1)], ids=repr)
def test_a_kernel_that_is_not_positive_semidefinite_is_not_certified(norm):
    rng = np.random.default_rng(0)
    A = rng.normal(size=(12, 12))
    K = A + A.T
    np.fill_diagonal(K, 0.5)
    y = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    problem = problem_of(norm, X=np.zeros((12, 1)), y=y, gram=Gram.precomputed(K))
    assert solved(problem, max_iter=10**5).status is not Status.OPTIMAL


# ---------------------------------------------------------------- limits and reports


@pytest.mark.parametrize(
    "norm",
    [L2(), K12(50), Lp(1.5), Bare(L2()), Mahalanobis(mixing_matrix(400))],
    ids=lambda norm: repr(norm)[:14],
)
def test_time_limits_are_kept(norm):
    X, y = overlapping(n=400)
    problem = problem_of(norm, X=X, y=y, C=100.0)
    solved(problem_of(norm, X=X, y=y, C=100.0), tol=0.5)  # compiled code, once
    watch = Stopwatch()
    solution = solved(problem, tol=1e-12, deadline=time.monotonic() + 0.3)
    assert watch.seconds < 2.0
    assert solution.status is not Status.OPTIMAL or abs(solution.certificate.gap) <= 1e-12


@pytest.mark.parametrize("norm", [L2(), Lp(1.5), Bare(L2())], ids=repr)
def test_few_iterations_give_an_honest_status(norm):
    X, y = overlapping(n=60)
    solution = solved(problem_of(norm, X=X, y=y), tol=1e-10, max_iter=2)
    assert solution.status is Status.MAX_ITER
    assert solution.certificate.gap > 1e-10


@pytest.mark.parametrize("norm", [L2(), Lp(1.5), Bare(L2())], ids=repr)
def test_progress_is_reported(norm):
    reports = []
    solution = solved(problem_of(norm), progress=reports.append)
    assert reports
    assert reports[-1].primal == pytest.approx(solution.certificate.primal, rel=1e-5)


def test_a_start_from_a_nearby_problem_saves_work():
    X, y = overlapping(n=200)
    first = solved(problem_of(L2(), X=X, y=y, C=10.0))
    near = problem_of(L2(), X=X, y=y, C=10.001)
    assert solved(near, start=first.dual).n_iter < 0.7 * solved(near).n_iter
