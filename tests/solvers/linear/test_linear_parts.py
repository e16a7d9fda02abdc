"""Linear problems with many rows of which few decide: some rows at a time, the others proved."""

import functools
import time
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.linear import parts, solve, solve_linear
from anynorm.solvers.linear.parts import RowSearch, pays

SOLVE_PART = functools.partial(solve._solve_part, seed=0)


def data(n, p, noise, seed=0):
    rng = np.random.default_rng(seed)
    X, w = rng.normal(size=(n, p)), rng.normal(size=p)
    s = X @ w / np.linalg.norm(w)
    y = np.where(s + noise * rng.normal(size=n) > 0, 1.0, -1.0)
    return X + 0.3 * y[:, None] * w / np.linalg.norm(w), y


def incumbent(problem, tol):
    return Incumbent(problem, tol, Budget(10_000))


def off(problem, tol):
    with patch.object(solve, "pays", lambda problem: False):
        return solve_linear(problem, tol=tol)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", ["free", None, 2.0])
@pytest.mark.parametrize("noise", [0.0, 0.3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_same_optimum_with_and_without_parts(loss, noise, intercept, weighted):
    X, y = data(40_000, 6, noise)
    weights = np.random.default_rng(1).choice([0.0, 1.0, 2.0], len(y)) if weighted else None
    problem = Problem(
        y=y, C=1.0, loss=get_loss(loss), X=X, intercept=intercept, sample_weight=weights
    )
    search = RowSearch(problem, SOLVE_PART, incumbent(problem, 1e-5))
    assert search.run()
    best = off(problem, 1e-7)
    again = certify(problem, search.coef, search.bias, search.dual, tol=1e-5)
    assert again.gap <= 1e-5
    assert again.primal == pytest.approx(best.certificate.primal, rel=2e-5)
    assert again.dual <= best.certificate.primal * (1 + 1e-12)


def test_rows_are_not_left_out_where_the_sample_cannot_tell_which():
    """400,000 x 200: the near rows of such a sample had an optimum of their own, gap 0.9."""
    X, y = data(20_000, 40, 1.0)
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    solved = []

    def solve_part(part, **options):
        solved.append(part.n_rows)
        return SOLVE_PART(part, **options)

    assert not RowSearch(problem, solve_part, incumbent(problem, 1e-4)).run()
    assert solved == [79, 1250]  # the samples, and no part
    X, y = data(160_000, 5, 1.0)
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    solved.clear()
    assert RowSearch(problem, solve_part, incumbent(problem, 1e-4)).run()
    assert len(solved) == 3  # one part is enough


def test_small_duals_of_a_rough_sample_are_no_reason_to_solve_for_all_rows():
    """Nearly separable: half of the sample's duals were above 0 by a little; 1.2 s became 6.6 s."""
    X, y = data(200_000, 50, 0.05)
    problem = Problem(y=y, C=10.0, loss=get_loss("hinge"), X=X)
    search = RowSearch(problem, SOLVE_PART, incumbent(problem, 1e-4))
    assert search._solve_samples()
    assert search.least <= 0.15 * len(y)


@st.composite
def problems_with_ties(draw):
    """A few hundred rows on a grid, many repeated, perhaps weighted, of classes that overlap."""
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    n = draw(st.integers(200, 500))
    y = np.where(rng.random(n) < draw(st.sampled_from([0.5, 0.2])), 1.0, -1.0)
    X = np.round(rng.normal(size=(n, 2)) + draw(st.sampled_from([0.2, 1.0, 3.0])) * y[:, None])
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], size=n) if draw(st.booleans()) else None
    scale = np.array([1.0, 0.5]) if draw(st.booleans()) else None
    return Problem(
        y=y, C=draw(st.sampled_from([0.001, 0.1, 10.0])), sample_weight=weights, X=X,
        loss=get_loss(draw(st.sampled_from(["hinge", "squared_hinge"]))),
        intercept=draw(st.sampled_from(["free", None, 1.0])), feature_scale=scale,
    )  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(problem=problems_with_ties(), tol=st.sampled_from([1e-2, 1e-5, 1e-8]))
def test_nothing_proved_disagrees_with_the_optimum(problem, tol):
    """Small samples and parts, whose guesses are often wrong."""
    reports = []

    class Spied(RowSearch):
        def _screened(self):
            reports.append(super()._screened())
            return reports[-1]

    with patch.multiple(parts, _SAMPLE=4, _MOST=0.7, _PART_TOL=0.9):
        search = Spied(problem, SOLVE_PART, incumbent(problem, tol))
        found = search.run()
    best = off(problem, 1e-11)
    if found:
        again = certify(problem, search.coef, search.bias, search.dual, tol=tol)
        assert again.gap <= tol * (1 + 1e-6)
    margins = problem.y * (problem.scores(best.coef) + best.intercept)
    for report in reports:
        zero = report.zero_rows & (problem.row_weights() > 0)
        assert np.all(margins[zero] >= 1 - 1e-5)
        assert np.all(margins[report.bound_rows] <= 1 + 1e-5)


def test_rows_below_are_replaced_by_their_means():
    X, y = data(60_000, 4, 1.0)  # a third of the rows end below margin 1
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), X=X)
    sizes = []

    def spied(part, **options):
        sizes.append(part.n_rows)
        return SOLVE_PART(part, **options)

    search = RowSearch(problem, spied, incumbent(problem, 1e-4))
    assert search.run()
    at_bound = np.count_nonzero(search.dual >= 1 - 1e-9)
    assert at_bound > 10_000
    assert max(sizes) <= 0.21 * len(y)


def test_many_support_vectors_are_left_to_the_whole_problem():
    X, y = data(40_000, 6, 3.0)
    problem = Problem(y=y, C=1.0, loss=get_loss("squared_hinge"), X=X)
    search = RowSearch(problem, SOLVE_PART, incumbent(problem, 1e-4))
    assert not search.run()
    assert np.any(search.coef != 0)  # where the whole problem starts from


def test_solve_linear_goes_by_parts_where_that_pays():
    X, y = data(200_000, 20, 0.0)
    problem = Problem(y=y, C=0.1, loss=get_loss("hinge"), X=X)
    assert pays(problem)
    reports = []
    found = solve_linear(problem, tol=1e-4, progress=reports.append)
    assert found.status is Status.OPTIMAL
    assert 1 <= len(reports) <= 8
    assert solve_linear(problem, tol=1e-9, max_iter=3).status is Status.MAX_ITER
    late = solve_linear(problem, tol=1e-9, deadline=time.monotonic() - 1.0)
    assert late.status is Status.TIME_LIMIT


def test_what_it_is_not_for():
    X, y = data(200_000, 20, 0.0)
    for loss in ("logistic", "absolute", "squared"):
        assert not pays(Problem(y=y, C=1.0, loss=get_loss(loss), X=X))
    assert not pays(Problem(y=y[:1000], C=1.0, loss=get_loss("hinge"), X=X[:1000]))
