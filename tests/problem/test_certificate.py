"""Certificates: every cell against a reference, the repair, the bias, an optimum of zero."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from anynorm.kernels.gram import Gram
from anynorm.losses import LOSSES, Loss, get_loss
from anynorm.losses.bias import optimal_bias, optimal_bias_interval
from anynorm.norms import K12, L1, L2, LInf, Lp, Mahalanobis, SquaredL2, TopK, TopK2
from anynorm.problem import Problem
from anynorm.problem.certificate import (
    Certificate,
    Values,
    certificate_of,
    certify,
    doubt,
    relative_gap,
)
from anynorm.problem.repair import repair_dual
from anynorm.problem.solution import Progress, Solution, Status, worst
from tests.references import solve_linear_program, solve_primal
from tests.strategies import (
    Chained,
    Stretched,
    grid_problem,
    losses_for,
    mixing_matrix,
    vectors,
    weights_for,
)

N, P = 8, 3
RNG = np.random.default_rng(7)
Y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, -1.0, -1.0])
X = RNG.normal(size=(N, P)) + 0.5 * Y[:, None]
W = np.array([2.0, 0.0, 1.0, 0.5, 3.0, 1.0, 0.0, 1.0])
SLACKS = [
    L1(),
    L2(),
    LInf(),
    Lp(1.5),
    SquaredL2(),
    TopK(2),
    TopK(3.5),
    TopK2(2.5),
    K12(2.5),
    Mahalanobis(mixing_matrix(N)),
    Stretched(),
    Chained(),
]
UNWEIGHTED = (Mahalanobis, Stretched, Chained)


CELLS = [
    Loss.from_slack(slack, constraints)
    for slack in SLACKS
    for constraints in ("inequality", "equality")
] + [get_loss("logistic")]


def pieces(kind):
    return {
        "l2": {"X": X},
        "l1": {"X": X, "regulariser": "l1"},
        "kernel": {"gram": Gram.rbf(X, 0.4)},
        "scaled": {"X": X, "feature_scale": np.array([0.0, 0.5, 2.0])},
        "penalised": {
            "X": X,
            "regulariser": "l1",
            "penalty_weights": np.array([0.0, 0.5, np.inf]),
        },
    }[kind]


@pytest.mark.parametrize("weights", [None, W], ids=["plain", "weighted"])
@pytest.mark.parametrize("intercept", ["free", None, 0.7], ids=["free", "none", "regularised"])
@pytest.mark.parametrize("kind", ["l2", "l1", "kernel"])
@pytest.mark.parametrize("loss", CELLS, ids=lambda loss: loss.name.split("(M=")[0])
def test_every_cell_is_certified_at_the_reference_solution(loss, kind, intercept, weights):
    """Clarabel's point and multipliers have our primal value, and a gap of rounding size."""
    if weights is not None and isinstance(loss.slack, UNWEIGHTED):
        with pytest.raises(ValueError, match="weighted form"):
            loss.value(np.ones(N), 1.0, weights)
        return
    problem = Problem(
        y=Y, C=0.8, loss=loss, sample_weight=weights, intercept=intercept, **pieces(kind)
    )
    reference = solve_primal(problem)
    certificate = certify(problem, reference.coef, reference.intercept, reference.dual, tol=1e-6)
    assert certificate.primal == pytest.approx(reference.value, rel=1e-6)
    assert certificate.status is Status.OPTIMAL, str(certificate)
    assert certificate.gap >= 0
    if intercept == "free":
        b = optimal_bias(loss, problem.scores(reference.coef), Y, 0.8, weights)
        assert problem.objective(reference.coef, b) <= certificate.primal * (1 + 1e-9)


@pytest.mark.parametrize("intercept", ["free", None], ids=["free", "none"])
@pytest.mark.parametrize("kind", ["scaled", "penalised"])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "absolute", "logistic"])
def test_scaled_and_unpenalised_features_are_certified_too(name, kind, intercept):
    problem = Problem(y=Y, C=0.8, loss=get_loss(name), intercept=intercept, **pieces(kind))
    reference = solve_primal(problem)
    certificate = certify(problem, reference.coef, reference.intercept, reference.dual, tol=1e-6)
    assert certificate.primal == pytest.approx(reference.value, rel=1e-6)
    assert certificate.status is Status.OPTIMAL, str(certificate)


@pytest.mark.parametrize("intercept", ["free", None, 0.7], ids=["free", "none", "regularised"])
@pytest.mark.parametrize("constraints", ["inequality", "equality"])
@pytest.mark.parametrize("slack", [L1(), LInf(), TopK(2.5)], ids=repr)
def test_linear_programmes_agree_with_highs(slack, constraints, intercept):
    """HiGHS' optimum lies between our dual and primal values at Clarabel's point."""
    for weights in (None, W):
        problem = Problem(
            y=Y,
            C=1.3,
            loss=Loss.from_slack(slack, constraints),
            X=X,
            regulariser="l1",
            sample_weight=weights,
            intercept=intercept,
        )
        found = solve_primal(problem)
        certificate = certify(problem, found.coef, found.intercept, found.dual, tol=1e-6)
        optimum = solve_linear_program(problem)
        assert certificate.dual <= optimum * (1 + 1e-9)
        assert optimum <= certificate.primal * (1 + 1e-9)
        assert certificate.status is Status.OPTIMAL


@given(grid_problem(), st.data())
@settings(max_examples=150, deadline=None)
def test_repaired_duals_are_feasible(problem, data):
    a = data.draw(vectors(n=problem.n_rows, scaled=False)) * data.draw(
        st.sampled_from([1e-8, 1.0, 1e8])
    )
    repaired = repair_dual(problem, a)
    total = np.abs(repaired).sum()
    assert np.all(np.isfinite(repaired))
    if problem.free_bias:
        assert abs(problem.y @ repaired) <= 1e-14 * total
    if problem.sample_weight is not None:
        assert not repaired[problem.sample_weight == 0].any()
    if not problem.loss.signed:
        assert np.all(repaired >= 0)
    assert problem.dual_objective(repaired) >= 0  # zero is always feasible, and worth 0


@given(grid_problem(), st.data())
@settings(max_examples=100, deadline=None)
def test_no_other_scale_of_the_repaired_dual_is_better(problem, data):
    a = repair_dual(problem, data.draw(vectors(n=problem.n_rows, scaled=False)))
    best = problem.dual_objective(a)
    for scale in (0.3, 0.9, 0.999, 1.001, 1.1, 3.0):
        other = problem.dual_objective(scale * a)
        assert other <= best + 1e-9 * abs(best) + 1e-12 * problem.zero_primal()


def test_repair_keeps_a_feasible_optimal_dual():
    problem = Problem(y=Y, C=0.8, loss=get_loss("hinge"), X=X)
    dual = repair_dual(problem, solve_primal(problem).dual)
    assert np.allclose(repair_dual(problem, dual), dual, rtol=1e-9)


def test_never_penalised_columns_fall_back_to_a_rigorous_bound():
    """A dual that no correction can save gives D = 0, not a wrong certificate."""
    column = np.array([[1.0], [2.0]])
    problem = Problem(
        y=np.array([1.0, 1.0]),
        C=1.0,
        loss=get_loss("hinge"),
        X=column,
        regulariser="l1",
        intercept=None,
        penalty_weights=np.array([0.0]),
    )
    assert np.array_equal(repair_dual(problem, np.array([1.0, 1.0])), np.zeros(2))
    certificate = certify(problem, np.array([1.0 + 1e-14]), 0.0, np.ones(2), tol=1e-9)
    assert certificate.status is Status.OPTIMAL
    assert certificate.primal == 0


@pytest.mark.parametrize("loss", CELLS, ids=lambda loss: loss.name.split("(M=")[0])
def test_an_optimum_of_zero_is_certified(loss):
    """Two opposite points that an unpenalised column separates: nothing to pay."""
    if loss.name == "logistic":
        return  # its infimum is never reached
    n = 4 if not isinstance(loss.slack, Mahalanobis) else N
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    problem = Problem(
        y=y,
        C=1.0,
        loss=loss,
        X=y[:, None],
        regulariser="l1",
        penalty_weights=np.array([0.0]),
        intercept=None,
    )
    certificate = certify(problem, np.array([1.0]), 0.0, np.ones(n), tol=1e-9)
    assert (certificate.primal, certificate.dual, certificate.gap) == (0.0, 0.0, 0.0)
    # margins of 1 whose last digits may be wrong, each at the price of C
    assert certificate.status in (Status.OPTIMAL, Status.NEGLIGIBLE)
    nearly = certify(problem, np.array([1.0 - 1e-22]), 0.0, np.zeros(n), tol=1e-9)
    assert nearly.status in (Status.OPTIMAL, Status.NEGLIGIBLE)


def test_one_class_is_certified_at_zero():
    """All labels equal and a free bias: w = 0 and the finite end of the interval."""
    for name in ("hinge", "squared_hinge", "absolute", "squared", "logistic"):
        problem = Problem(y=np.ones(3), C=1.0, loss=get_loss(name), X=X[:3])
        b = optimal_bias(get_loss(name), np.zeros(3), np.ones(3), 1.0)
        certificate = certify(problem, np.zeros(3), b, np.ones(3), tol=1e-9)
        # the logistic loss comes near to 0 and never there
        expected = Status.NEGLIGIBLE if name == "logistic" else Status.OPTIMAL
        assert certificate.status is expected
        assert b == (64.0 if name == "logistic" else 1.0)


@st.composite
def bias_case(draw):
    n = draw(st.integers(1, 7))
    loss = draw(losses_for(n))
    scores = draw(vectors(n=n, scaled=False)) * draw(st.sampled_from([0.0, 1.0, 100.0]))
    y = np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n, max_size=n)))
    weighable = not isinstance(loss.slack, UNWEIGHTED)
    w = draw(weights_for(n)) if weighable and draw(st.booleans()) else None
    return loss, scores, y, w


def costs(loss, scores, y, w, biases):
    return np.array([loss.value(1 - y * (scores + b), 1.0, w) for b in biases])


@given(bias_case())
@settings(max_examples=150, deadline=None)
def test_the_optimal_bias_beats_a_dense_grid(case):
    """No grid point, and no scalar minimiser, is better; just outside the interval is worse."""
    loss, scores, y, w = case
    low, high = optimal_bias_interval(loss, scores, y, 1.0, w)
    b = optimal_bias(loss, scores, y, 1.0, w)
    assert low <= high
    assert math.isfinite(b)
    least = costs(loss, scores, y, w, [b])[0]
    slow = isinstance(loss.slack, Chained) and loss.constraints == "inequality"
    centre, width = np.median(y - scores), np.ptp(y - scores) + 1
    grid = np.linspace(centre - width, centre + width, 5 if slow else 101)
    tolerance = 1e-9 * (1 + least)
    assert least <= costs(loss, scores, y, w, grid).min() + tolerance
    if not slow:
        found = minimize_scalar(
            lambda b: costs(loss, scores, y, w, [b])[0],
            bounds=(grid[0], grid[-1]),
            method="bounded",
        )
        assert least <= found.fun + tolerance
    ends = [end for end in (low, high) if math.isfinite(end)]
    assert np.allclose(costs(loss, scores, y, w, ends), least, rtol=1e-9, atol=1e-9)


@given(bias_case())
@settings(max_examples=150, deadline=None)
def test_the_interval_is_all_of_the_minimisers(case):
    """A step beyond either end costs more (losses with kinks: at once; smooth ones: by squares)."""
    loss, scores, y, w = case
    if isinstance(loss.slack, Chained) or loss.slack is None:
        return
    low, high = optimal_bias_interval(loss, scores, y, 1.0, w)
    step = 1e-2 * (1 + np.abs(scores).max())
    inside = costs(loss, scores, y, w, [low if math.isfinite(low) else high])[0]
    for end, beyond in ((low, -step), (high, step)):
        if math.isfinite(end):
            assert costs(loss, scores, y, w, [end + beyond])[0] > inside


@pytest.mark.parametrize("name", LOSSES)
def test_bias_with_weights_is_bias_of_repeated_rows(name):
    rng = np.random.default_rng(5)
    for _ in range(20):
        scores, y = rng.normal(size=9), rng.choice([-1.0, 1.0], size=9)
        w = rng.integers(0, 4, size=9).astype(float)
        if not w.any():
            continue
        rows = np.repeat(np.arange(9), w.astype(int))
        weighted = optimal_bias_interval(get_loss(name), scores, y, 1.0, w)
        repeated = optimal_bias_interval(get_loss(name), scores[rows], y[rows], 1.0)
        assert weighted == pytest.approx(repeated, rel=1e-9, abs=1e-9)


def test_a_norm_that_carries_its_own_weights_is_as_good_as_sample_weights():
    scores, y = X[:, 0], Y
    for slack in (L1(), L2(), LInf(), TopK(2), TopK2(2), K12(2), Lp(1.5)):
        own, outside = Loss.from_slack(slack.weighted(W)), Loss.from_slack(slack)
        assert optimal_bias(own, scores, y, 1.0) == optimal_bias(outside, scores, y, 1.0, W)
        mine = repair_dual(Problem(y=Y, C=1.0, loss=own, X=X), np.ones(N))
        theirs = repair_dual(Problem(y=Y, C=1.0, loss=outside, X=X, sample_weight=W), np.ones(N))
        assert np.allclose(mine, theirs, rtol=1e-12)


def test_the_bias_is_the_middle_of_the_interval():
    """All duals at a bound: any b in the interval is optimal, and the choice is its middle."""
    scores, y = np.array([0.0, 0.0]), np.array([1.0, -1.0])
    assert optimal_bias_interval(get_loss("hinge"), scores, y, 1.0) == (-1.0, 1.0)
    assert optimal_bias(get_loss("hinge"), scores, y, 1.0) == 0.0
    unbalanced = np.array([1.0, 1.0, -1.0])
    assert optimal_bias_interval(get_loss("hinge"), np.zeros(3), unbalanced, 1.0) == (1.0, 1.0)
    top = Loss.from_slack(TopK(2))
    assert optimal_bias_interval(top, scores, y, 1.0) == pytest.approx((-1.0, 1.0))


def test_large_scores_keep_the_bias_exact():
    """An offset of 1e9 in the scores moves the bias by -1e9 and changes nothing else."""
    rng = np.random.default_rng(2)
    scores, y = rng.normal(size=50), rng.choice([-1.0, 1.0], size=50)
    for loss in (*LOSSES.values(), Loss.from_slack(TopK(9)), Loss.from_slack(TopK2(9))):
        near = optimal_bias(loss, scores, y, 1.0)
        far = optimal_bias(loss, scores + 2.0**30, y, 1.0) + 2.0**30
        assert far == pytest.approx(near, abs=1e-6)


def test_relative_gap_convention():
    assert relative_gap(0.0, 0.0) == 0.0
    assert relative_gap(3.0, 2.0) == pytest.approx(1 / 3)
    assert relative_gap(1e-13, 0.0) == 1.0
    assert relative_gap(1.0, 1.0 + 1e-13) == 0.0
    assert relative_gap(1.0, 1.1) < 0
    assert relative_gap(math.inf, 0.0) == math.inf
    assert math.isnan(relative_gap(math.nan, 0.0))


@pytest.mark.parametrize(
    ("values", "status"),
    [
        (Values(1.0, 0.9999, 1e9), Status.OPTIMAL),
        (Values(1.0, 0.5, 1e9), Status.MAX_ITER),
        (Values(1e-12, 0.5e-12, 1e3), Status.NEGLIGIBLE),
        (Values(1e-12, 0.5e-12, 1e3, certain=False), Status.UNCERTIFIED),
        (Values(1e-12, 0.0, 1.0), Status.MAX_ITER),
        (Values(1e-12, 0.0, 1.0, rounding=1e-11), Status.NEGLIGIBLE),
    ],
)
def test_a_gap_that_only_the_scale_hides_has_a_status_of_its_own(values, status):
    certificate = certificate_of(values, 1e-3)
    assert certificate.status is status
    if status is Status.NEGLIGIBLE:
        assert certificate.gap >= 0.5  # the true one
        assert certificate.gap_at_scale < 0.1


def test_status_comes_from_the_gap_alone():
    problem = Problem(y=Y, C=0.8, loss=get_loss("hinge"), X=X)
    for stopped in (Status.MAX_ITER, Status.TIME_LIMIT):
        bad = certify(problem, np.zeros(P), 0.0, np.zeros(N), tol=1e-4, stopped=stopped)
        assert bad.status is stopped
        assert bad.gap == 1.0
    assert certify(problem, np.zeros(P), 0.0, np.zeros(N), tol=1.0).status is Status.OPTIMAL
    broken = certify(problem, np.full(P, np.nan), 0.0, np.zeros(N), tol=1e-4)
    assert broken.status is Status.MAX_ITER
    assert math.isnan(broken.gap)
    assert "max_iter" in str(broken)


def test_given_scores_save_a_product_and_change_nothing():
    for kind in ("l2", "kernel"):
        problem = Problem(y=Y, C=0.8, loss=get_loss("hinge"), **pieces(kind))
        coef = np.abs(RNG.normal(size=problem.n_coefs))
        dual = np.abs(RNG.normal(size=N))
        plain = certify(problem, coef, 0.1, dual, tol=1e-4)
        assert certify(problem, coef, 0.1, dual, tol=1e-4, scores=problem.scores(coef)) == plain


def test_certificates_combine_by_sums_and_the_worst_status():
    parts = [
        Certificate(2.0, 1.9, 0.05, Status.OPTIMAL, 0.1, zero_primal=5.0),
        Certificate(0.0, 0.0, 0.0, Status.TIME_LIMIT, 0.1, zero_primal=5.0),
        Certificate(2.0, 1.0, 0.5, Status.MAX_ITER, 0.1, zero_primal=5.0),
    ]
    whole = Certificate.combine(parts)
    assert (whole.primal, whole.dual) == pytest.approx((4.0, 2.9))
    assert whole.gap == pytest.approx(1.1 / 4)
    assert whole.status is Status.TIME_LIMIT
    assert whole.per_class == tuple(parts)
    assert Certificate.combine(parts[:1]) is parts[0]
    unknown = Certificate(1.0, 0.0, math.nan, Status.UNCERTIFIED, 0.1)
    assert math.isnan(Certificate.combine([*parts, unknown]).gap)
    assert worst([]) is Status.OPTIMAL
    solution = Solution(dual=np.zeros(2), certificate=whole, n_iter=3)
    assert solution.status is Status.TIME_LIMIT
    assert Progress(1, 2.0, 1.0, 0.5, 0.1).gap == 0.5


def test_kernels_that_are_not_semidefinite_are_not_certified():
    indefinite = np.array([[0.0, 1.0], [1.0, 0.0]])
    loss = get_loss("hinge")
    shown = Problem(
        y=np.array([1.0, -1.0]), C=1.0, loss=loss, gram=Gram.precomputed(indefinite), intercept=None
    )
    certificate = certify(shown, np.ones(2), 0.0, np.ones(2), tol=1e-4)
    assert certificate.status is Status.UNCERTIFIED
    assert math.isnan(certificate.gap)
    declared = Gram.from_callable(lambda A, B: np.tanh(A @ B.T), X, psd=False)
    problem = Problem(y=Y, C=1.0, loss=loss, gram=declared)
    assert certify(problem, np.ones(N), 0.0, np.ones(N), tol=1.0).status is Status.UNCERTIFIED
    fine = Problem(y=Y, C=1.0, loss=loss, gram=Gram.precomputed(X @ X.T))
    assert certify(fine, np.zeros(N), 0.0, np.zeros(N), tol=1.0).status is Status.OPTIMAL


def test_weights_are_repetition_in_the_certificate():
    """Primal, dual and gap with integer weights are those of the repeated rows."""
    w = W.round() + (W == 0.5)
    rows = np.repeat(np.arange(N), w.astype(int))
    coef, dual = RNG.normal(size=P), np.abs(RNG.normal(size=N)) * (w > 0)
    for loss in CELLS:
        if isinstance(loss.slack, UNWEIGHTED):
            continue
        for kind in ({}, {"regulariser": "l1"}):
            weighted = Problem(y=Y, C=0.7, loss=loss, X=X, sample_weight=w, **kind)
            repeated = Problem(y=Y[rows], C=0.7, loss=loss, X=X[rows], **kind)
            one = certify(weighted, coef, 0.2, dual, tol=1e-6)
            other = certify(repeated, coef, 0.2, (dual / np.maximum(w, 1))[rows], tol=1e-6)
            assert one.primal == pytest.approx(other.primal, rel=1e-10)
            assert one.dual == pytest.approx(other.dual, rel=1e-8, abs=1e-10)


def test_badly_scaled_features_are_certified():
    """A feature at 1e12 and one at 1e-12: the certificate stands at a solution in closed form."""
    x = np.array([[1e12, 1e-12], [-1e12, -1e-12]])
    y = np.array([1.0, -1.0])
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=x)
    coef = (1 + 4e-15) * x[0] / (x[0] @ x[0])  # no margin below 1, whatever the last digits do
    dual = np.full(2, 0.5 / (x[0] @ x[0]))
    assert certify(problem, coef, 0.0, dual, tol=1e-9).status is Status.OPTIMAL


def test_what_rounding_may_add_to_two_zeros_has_no_bound():
    """An attack divided by zero where data without penalty left nothing of the objective."""
    assert doubt(Values(0.0, 0.0, 1.0, True, 1e-17)) == math.inf
    assert doubt(Values(0.0, 0.0, 1.0)) == 0.0
