"""The walk: objectives that never rise, bounds that hold, zeros that are zeros."""

import time
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.losses import LOSSES, get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.linear import solve_linear, walk
from anynorm.solvers.linear.rounds import carried_over
from tests.estimators.plain import LOSS_OF_MARGIN, noisy_classes
from tests.references import solve_linear_program, solve_primal
from tests.strategies import grid_problem

INTERCEPTS = ["free", None, 1.0]


def make_problem(loss="hinge", n=60, p=20, seed=0, C=0.5, intercept="free", **more):
    X, y = noisy_classes(n=n, p=p, seed=seed)
    y = np.where(y == 1, 1.0, -1.0)
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, intercept=intercept, **more)


def few_relevant(loss="hinge", n=60, p=20, C=0.5, seed=0, relevant=3, kind=np.asarray, **more):
    """Labels that hang on a few columns, the others are noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    signal = X[:, :relevant].sum(axis=1) + 0.3 * rng.normal(size=n)
    y = np.where(signal > 0, 1.0, -1.0)
    return Problem(y=y, C=C, loss=get_loss(loss), X=kind(X), **more)


def one_norm(problem):
    return replace(problem, regulariser="l1", feature_scale=None)


def plain_objective(problem, coef, intercept):
    """||u||_1 + C sum_i weight_i loss, and |b/s|, without the package."""
    scores = np.asarray(problem.X @ coef, dtype=float) + intercept
    weights = np.ones(len(problem.y)) if problem.sample_weight is None else problem.sample_weight
    bias = abs(intercept / problem.bias_feature) if problem.bias_feature else 0.0
    losses = LOSS_OF_MARGIN[problem.loss.name](problem.y * scores)
    return np.abs(coef).sum() + bias + problem.C * weights @ losses


def check_rounds(problem, rounds, *, tol, prune):
    """What every walk promises, whatever the problem."""
    zero = problem.zero_primal()
    for k, found in enumerate(rounds):
        assert found.objective == pytest.approx(
            plain_objective(problem, found.coef, found.intercept), rel=1e-9, abs=1e-12 * zero
        )
        assert found.n_nonzero == np.count_nonzero(found.coef)
        assert found.l1_certificate.primal == found.objective
        assert found.l1_certificate.dual <= found.objective * (1 + 1e-9) + 1e-12 * zero
        if not k:
            continue
        before = rounds[k - 1]
        inner_gap = max(found.certificate.primal - found.certificate.dual, 0.0)
        allowance = inner_gap + (tol * before.objective if prune else 0.0)
        slack = 1e-9 * before.objective + 1e-12 * zero
        assert found.objective <= before.objective + allowance + slack  # Theorem 2


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_theorem_2_over_random_problems(loss, prune, data):
    problem = data.draw(grid_problem(loss=get_loss(loss), max_rows=9, max_cols=5, kernels=False))
    problem = replace(problem, regulariser="l2", feature_scale=None, penalty_weights=None)
    tol = data.draw(st.sampled_from([1e-2, 1e-4, 1e-8]))
    rounds = walk(problem, n_rounds=5, prune=prune, tol=tol)
    assert len(rounds) == 5
    check_rounds(problem, rounds, tol=tol, prune=prune)


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
def test_theorem_2_on_larger_problems(loss, intercept, prune):
    problem = make_problem(loss, n=80, p=40, intercept=intercept, C=0.3)
    rounds = walk(problem, n_rounds=12, prune=prune)
    assert all(found.certificate.gap <= 1e-4 for found in rounds)
    check_rounds(problem, rounds, tol=1e-4, prune=prune)
    assert rounds[-1].objective < 0.98 * rounds[0].objective


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_the_linear_programme_is_approached_from_above(loss, intercept):
    problem = few_relevant(loss, n=40, p=15, intercept=intercept, C=0.4)
    optimum = solve_linear_program(one_norm(problem))
    rounds = walk(problem, n_rounds=60, tol=1e-6)
    for found in rounds:
        assert found.l1_certificate.dual <= optimum * (1 + 1e-9)
        assert optimum <= found.objective * (1 + 1e-9)
    excess = [found.objective / optimum - 1 for found in rounds]
    assert excess[0] > 0.02
    assert excess[9] < 0.3 * excess[0]
    assert excess[-1] < 3e-3
    for bound in (found.l1_certificate for found in rounds):
        assert (bound.status is Status.OPTIMAL) == (bound.gap <= 1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic", "squared"])
def test_the_smooth_1_norm_optimum_is_approached_from_above(loss):
    problem = make_problem(loss, n=40, p=10, C=0.4)
    optimum = solve_primal(one_norm(problem)).value
    rounds = walk(problem, n_rounds=60, tol=1e-8)
    for found in rounds:
        assert found.l1_certificate.dual <= optimum * (1 + 1e-7)
        assert optimum <= found.objective * (1 + 1e-7)
    assert rounds[-1].objective == pytest.approx(optimum, rel=1e-3)
    assert rounds[-1].l1_certificate.dual == pytest.approx(optimum, rel=0.05)


@pytest.mark.parametrize("loss", LOSSES)
def test_each_round_is_the_reference_solution_of_its_problem(loss):
    """Algorithm 1 with an interior-point solver on features rescaled by hand."""
    problem = make_problem(loss, n=30, p=6, C=0.7)
    v = np.ones(6)
    for found in walk(problem, n_rounds=4, prune=False, tol=1e-10):
        reference = solve_primal(replace(problem, X=problem.X * v))
        np.testing.assert_allclose(found.coef, reference.coef * v, rtol=1e-3, atol=1e-5)
        assert found.certificate.primal == pytest.approx(reference.value, rel=1e-7)
        v = np.sqrt(np.abs(found.coef))


@pytest.mark.parametrize("loss", LOSSES)
def test_the_certificate_is_of_the_coefficients_handed_out(loss):
    problem = make_problem(loss, n=60, p=40, C=0.1)
    rounds = walk(problem, n_rounds=10, tol=1e-3)
    assert rounds[-1].n_nonzero < 40
    np.testing.assert_array_equal(rounds[0].feature_scale, np.ones(40))
    for before, found in pairwise(rounds):
        used = found.coef != 0
        kept = used & (before.coef != 0)
        np.testing.assert_allclose(found.feature_scale[kept] ** 2, np.abs(before.coef[kept]))
        penalty = 0.5 * ((found.coef[used] / found.feature_scale[used]) ** 2).sum()
        primal = penalty + plain_objective(problem, found.coef, found.intercept)
        primal -= np.abs(found.coef).sum()
        assert found.certificate.primal == pytest.approx(primal, rel=1e-9)
        assert found.certificate.status is Status.OPTIMAL
        assert found.certificate.gap <= 1e-3


@pytest.mark.parametrize("loss", LOSSES)
def test_the_pruned_walk_arrives_at_the_1_norm_optimum(loss):
    problem = make_problem(loss, n=60, p=40, C=0.1)
    optimum = solve_primal(one_norm(problem)).value
    pruned = walk(problem, n_rounds=31, tol=1e-6)
    whole = walk(problem, n_rounds=31, prune=False, tol=1e-6)
    assert all(found.n_nonzero == 40 for found in whole)
    assert pruned[-1].n_nonzero < 25
    assert pruned[-1].objective <= 1.002 * optimum
    assert whole[-1].objective <= 1.002 * optimum


def test_a_dropped_column_comes_back_where_it_is_missed():
    X = np.zeros((7, 2))
    X[6, 0], X[5, 1] = 1.0, 2.0
    y = np.array([1.0, -1.0, -1.0, -1.0, -1.0, -1.0, 1.0])
    problem = Problem(y=y, C=0.7, loss=get_loss("squared_hinge"), X=X)
    rounds = walk(problem, n_rounds=40, tol=1e-2)
    used = [bool(found.coef[1]) for found in rounds]
    assert used[:3] == [True, False, True]
    assert rounds[-1].objective <= 1.001 * solve_primal(one_norm(problem)).value


def test_the_rounds_of_a_longer_walk_are_those_of_a_shorter_one():
    problem = make_problem(n=60, p=40, C=0.1)
    long = walk(problem, n_rounds=6)
    for n_rounds in range(1, 6):
        short = walk(problem, n_rounds=n_rounds)
        for one, other in zip(short, long, strict=False):
            np.testing.assert_array_equal(one.coef, other.coef)
            assert one.intercept == other.intercept


@pytest.mark.parametrize("loss", LOSSES)
def test_one_round_is_the_2_norm_solution(loss):
    problem = make_problem(loss)
    (found,) = walk(problem, n_rounds=1)
    alone = solve_linear(problem)
    np.testing.assert_array_equal(found.coef, alone.coef)
    assert found.certificate == alone.certificate
    assert found.objective == pytest.approx(
        plain_objective(problem, alone.coef, alone.intercept), rel=1e-12
    )


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, np.asfortranarray, np.float32])
def test_storage_does_not_matter(kind):
    problem = make_problem(n=60, p=40, C=0.1)
    dense = walk(problem, n_rounds=6)
    other = walk(replace(problem, X=kind(problem.X)), n_rounds=6)
    for one, two in zip(dense, other, strict=True):
        np.testing.assert_allclose(one.coef, two.coef, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_few_columns_are_taken_out_and_put_back(kind):
    """p >> n with one relevant column: the walk ends on a small part of X."""
    problem = few_relevant(n=40, p=800, C=1.0, relevant=1, kind=kind)
    rounds = walk(problem, n_rounds=40, tol=1e-3)
    check_rounds(problem, rounds, tol=1e-3, prune=True)
    assert rounds[-1].n_nonzero < 800 / 8
    assert np.argmax(np.abs(rounds[-1].coef)) == 0
    assert all(found.coef.shape == (800,) for found in rounds)


@pytest.mark.parametrize("scale", [False, True])
def test_columns_without_an_entry_change_nothing(scale):
    """A part of a text has more of them than of others, and they were carried along."""
    part = few_relevant(n=40, p=300, C=1.0)
    X = np.zeros((40, 900))
    X[:, 1::3] = part.X
    rng = np.random.default_rng(0)
    given = rng.uniform(0.5, 1.5, size=900) if scale else None
    whole = replace(part, X=sp.csr_array(X), feature_scale=given)
    rounds = walk(whole, n_rounds=5)
    check_rounds(whole, rounds, tol=1e-4, prune=True)
    assert np.array_equal(rounds[0].feature_scale, np.ones(900) if given is None else given)
    alone = walk(replace(part, feature_scale=None if given is None else given[1::3]), n_rounds=5)
    for one, two in zip(rounds, alone, strict=True):
        np.testing.assert_allclose(one.coef[1::3], two.coef, rtol=1e-6, atol=1e-8)
        assert one.n_nonzero == two.n_nonzero


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_an_X_of_zeros_has_no_model(kind):
    y = np.where(np.arange(20) < 12, 1.0, -1.0)
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=kind(np.zeros((20, 100))))
    rounds = walk(problem, n_rounds=3)
    assert [found.n_nonzero for found in rounds] == [0, 0, 0]
    assert all(found.coef.shape == (100,) for found in rounds)


def test_X_is_left_alone():
    problem = make_problem(n=60, p=40)
    before = problem.X.copy()
    problem.X.flags.writeable = False
    walk(problem, n_rounds=4)
    np.testing.assert_array_equal(problem.X, before)


# Degenerate data


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((6, 3)),
        np.ones((6, 1)),
        np.array([[1.0], [2.0], [3.0], [-1.0], [0.0], [4.0]]),
        np.repeat(np.array([[1.0], [2.0], [3.0], [-1.0], [0.0], [4.0]]), 3, axis=1),
        np.column_stack([np.arange(6.0), np.zeros(6), 1e-200 * np.arange(6.0)]),
        np.eye(6) * 1e6,
    ],
    ids=["zero", "constant", "one column", "duplicates", "tiny column", "large"],
)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_degenerate_data(X, loss, intercept):
    y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, 1.0])
    problem = Problem(y=y, C=1.0, loss=get_loss(loss), X=X, intercept=intercept)
    for prune in (True, False):
        rounds = walk(problem, n_rounds=6, prune=prune)
        check_rounds(problem, rounds, tol=1e-4, prune=prune)
        assert all(np.isfinite(found.coef).all() for found in rounds)
        reached = (Status.OPTIMAL, Status.NEGLIGIBLE)  # the latter for features of 1e12
        assert all(found.certificate.status in reached for found in rounds)


def test_equal_columns_keep_equal_weights():
    problem = make_problem(p=4)
    doubled = replace(problem, X=np.hstack([problem.X, problem.X]))
    for found in walk(doubled, n_rounds=4, prune=False, tol=1e-10):
        np.testing.assert_allclose(found.coef[:4], found.coef[4:], rtol=1e-6, atol=1e-9)


def test_weights_that_vanish_do_no_harm():
    """A hundred rounds without pruning: weights fall below 1e-150, squares below the smallest."""
    problem = make_problem(n=60, p=20, C=0.1)
    rounds = walk(problem, n_rounds=100, prune=False)
    check_rounds(problem, rounds, tol=1e-4, prune=False)
    sizes = np.abs(rounds[-1].coef)
    assert sizes.min() < 1e-12 * sizes.max()
    assert all(found.certificate.gap <= 1e-4 for found in rounds)


def test_a_C_too_small_for_any_1_norm_model_leaves_none():
    """The 1-norm optimum is zero; the walk gets there, its first rounds still separate."""
    problem = make_problem(n=60, p=10, C=1e-4)
    assert solve_linear_program(one_norm(problem)) == pytest.approx(
        plain_objective(problem, np.zeros(10), 1.0 if problem.y.sum() > 0 else -1.0), rel=1e-6
    )
    rounds = walk(problem, n_rounds=20)
    assert rounds[0].n_nonzero == 10
    assert 0 < rounds[1].n_nonzero <= 10
    assert np.abs(rounds[-1].coef).sum() < 1e-6 * np.abs(rounds[0].coef).sum()


@pytest.mark.parametrize("loss", LOSSES)
def test_one_class_only(loss):
    problem = make_problem(loss, n=10, p=3)
    rounds = walk(replace(problem, y=np.ones(10)), n_rounds=3)
    assert rounds[-1].objective <= rounds[0].objective + 1e-9
    assert np.isfinite(rounds[-1].coef).all()


# WalkLimits


def test_rounds_after_the_deadline_stay_where_the_last_one_was():
    problem = make_problem(n=60, p=10)
    rounds = walk(problem, n_rounds=5, deadline=time.monotonic() - 1.0, tol=1e-12)
    assert len(rounds) == 5
    for found in rounds[1:]:
        np.testing.assert_array_equal(found.coef, rounds[0].coef)
        assert found.certificate.status in (Status.TIME_LIMIT, Status.OPTIMAL)
    check_rounds(problem, rounds, tol=1e-12, prune=True)


@pytest.mark.parametrize("loss", LOSSES)
def test_objectives_do_not_rise_even_when_iterations_run_out(loss):
    X = np.random.default_rng(0).normal(size=(200, 30)) * np.logspace(-2, 2, 30)
    y = np.where(X[:, :15].sum(axis=1) > 0, 1.0, -1.0)
    problem = Problem(y=y, C=10.0, loss=get_loss(loss), X=X)
    rounds = walk(problem, n_rounds=5, tol=1e-10, max_iter=2)
    objectives = [found.objective for found in rounds]
    for before, after in pairwise(objectives):
        assert after <= before * (1 + 1e-9)


def test_progress_counts_from_the_beginning_of_the_walk():
    seen = []
    rounds = walk(make_problem(n=60, p=10), n_rounds=4, progress=seen.append)
    assert len(seen) >= 4
    assert [state.iteration for state in seen] == sorted(state.iteration for state in seen)
    assert [state.seconds for state in seen] == sorted(state.seconds for state in seen)
    assert seen[-1].iteration <= sum(found.n_iter for found in rounds)


def test_a_start_saves_iterations():
    problem = make_problem(n=200, p=50)
    cold = walk(problem, n_rounds=1)
    warm = walk(problem, n_rounds=1, start=cold[0].dual)
    assert warm[0].n_iter <= cold[0].n_iter
    np.testing.assert_allclose(warm[0].coef, cold[0].coef, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("intercept", ["free", None, 2.0])
@pytest.mark.parametrize("loss", ["hinge", "absolute", "squared_hinge", "squared"])
def test_rounds_carried_over_to_a_larger_C_are_certified_there(loss, intercept):
    """Also where slack is all that counts, and the duals grow with C."""
    problem = make_problem(loss, n=60, p=5, C=1e4, intercept=intercept)
    rounds = walk(problem, n_rounds=3, tol=1e-3)
    larger = replace(problem, C=5e4)
    carried = carried_over(rounds, larger)
    assert len(carried_over(rounds, replace(problem, C=1e4 + 1e-9))) == 3
    for known, found in zip(rounds, carried, strict=True):
        assert found.coef is known.coef
        inner = replace(larger, feature_scale=found.feature_scale)
        again = certify(inner, found.coef, found.intercept, found.dual, tol=1e-3)
        assert again.status is Status.OPTIMAL
        if intercept != 2.0:  # which is weighted as well, and a round does not say how
            assert found.certificate.primal == pytest.approx(again.primal, rel=1e-9)
            assert found.certificate.dual == pytest.approx(again.dual, rel=1e-6)


def test_rounds_of_a_C_that_counts_are_not_those_of_a_larger_one():
    problem = make_problem("hinge", n=60, p=5, C=0.01)
    rounds = walk(problem, n_rounds=3, tol=1e-3)
    assert carried_over(rounds, replace(problem, C=0.1)) == []


def test_rounds_are_carried_over_as_far_as_they_are_good_enough():
    problem = make_problem("hinge", n=60, p=5, C=1e4)
    larger = replace(problem, C=5e4)
    rounds = walk(problem, n_rounds=4, tol=1e-3)
    late = replace(rounds[2].certificate, status=Status.TIME_LIMIT)
    rounds[2] = replace(rounds[2], certificate=late)
    found = carried_over(rounds, larger)
    assert [one.coef is known.coef for one, known in zip(found, rounds, strict=False)] == [True] * 2
