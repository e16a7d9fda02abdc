"""What solvers share: budgets that hold, points that never get worse, methods and their needs."""

import itertools
import math
import pickle
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anynorm.losses import Loss, get_loss
from anynorm.norms.dual_sets import Box, BudgetBox
from anynorm.problem import Problem
from anynorm.problem.certificate import Values
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.frame.methods import Method, methods_for
from anynorm.solvers.frame.patience import Patience


def problem_of(loss="hinge"):
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    return Problem(y=y, C=1.0, loss=get_loss(loss) if isinstance(loss, str) else loss, X=X)


# Budgets


def test_a_budget_of_iterations_is_never_exceeded_by_what_is_asked_for():
    budget = Budget(5)
    assert [budget.spend(2) for _ in range(3)] == [True, True, False]
    assert (budget.n_iter, budget.left, budget.goes_on()) == (4, 1, True)
    budget.book(3)
    assert (budget.n_iter, budget.left, budget.goes_on()) == (7, 0, False)
    assert budget.stopped is Status.MAX_ITER


def test_a_deadline_ends_it_whatever_is_left():
    budget = Budget(5, time.monotonic() - 1.0)
    assert not budget.in_time()
    assert not budget.spend()
    assert (budget.n_iter, budget.stopped) == (0, Status.TIME_LIMIT)


def test_a_step_that_would_be_late_is_not_begun(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    budget = Budget(10, deadline=103.0)
    clock[0] = 101.0  # a step of one second
    assert budget.allows_another()
    clock[0] = 102.5  # and one of a second and a half: the next would end at 104
    assert not budget.allows_another()
    assert budget.in_time()
    assert budget.stopped is Status.TIME_LIMIT  # it is time that stopped it, not iterations


# Incumbents

values = st.builds(
    Values,
    st.floats(5.0, 10.0),
    st.floats(0.0, 5.0),
    st.just(10.0),
)


@given(st.lists(values, min_size=1, max_size=8))
def test_what_is_kept_is_the_best_of_each_kind(offers):
    best = Incumbent(problem_of(), 1e-3, Budget(10))
    gaps = []
    for k, offered in enumerate(offers):
        best.offer(offered, k, -k)
        gaps.append(best.gap)
    assert best.primal == min(offered.primal for offered in offers)
    assert best.dual == max(offered.dual for offered in offers)
    assert offers[best.primal_point].primal == best.primal
    assert offers[-best.dual_point].dual == best.dual
    assert gaps == sorted(gaps, reverse=True)


@given(st.lists(values, min_size=1, max_size=8))
def test_a_point_of_two_parts_is_kept_whole_and_never_made_worse(offers):
    best = Incumbent(problem_of(), 1e-3, Budget(10))
    kept = []
    for k, offered in enumerate(offers):
        best.replace(offered, k)
        kept.append((best.gap, best.primal))
    assert (best.primal, best.dual) == offers[best.primal_point][:2]
    for (gap, primal), (later_gap, later_primal) in itertools.pairwise(kept):
        # Of two gaps that say next to nothing, the smaller primal value counts.
        assert later_gap <= gap or (gap > 0.9 and later_primal <= primal)


def test_a_point_without_numbers_is_replaced_by_any_other():
    best = Incumbent(problem_of(), 1e-3, Budget(10))
    best.replace(Values(math.nan, math.nan, 1.0), "nothing")
    best.replace(Values(2.0, 1.0, 1.0), "something")
    best.replace(Values(math.nan, 1.0, 1.0), "nothing again")
    assert best.primal_point == "something"


def test_parts_without_numbers_are_replaced_by_any_others():
    best = Incumbent(problem_of(), 1e-3, Budget(10))
    best.keep(Values(math.nan, math.nan, 1.0), "nothing", "nothing")
    best.keep(Values(2.0, 1.0, 1.0), "something", "something")
    best.keep(Values(math.nan, math.nan, 1.0), "nothing", "nothing")
    assert (best.primal_point, best.dual_point, best.gap) == ("something", "something", 0.5)


def test_doubt_about_weak_duality_stays():
    best = Incumbent(problem_of(), 1e-3, Budget(10))
    best.replace(Values(1.0, 0.0, 1.0, certain=False), "a")
    best.replace(Values(1.0, 1.0, 1.0), "b")
    assert best.settled
    assert best.certificate().status is Status.UNCERTIFIED
    assert math.isnan(best.certificate().gap)


def test_reports_have_the_iterations_and_the_best_values():
    reports = []
    budget = Budget(10)
    best = Incumbent(problem_of(), 1e-3, budget, reports.append)
    budget.spend(3)
    best.offer(Values(2.0, 0.0, 1.0), "a", "a")
    best.offer(Values(3.0, 1.0, 1.0), "b", "b")
    assert [(r.iteration, r.primal, r.dual, r.gap) for r in reports] == [
        (3, 2.0, 0.0, 1.0),
        (3, 2.0, 1.0, 0.5),
    ]


# Methods


def test_methods_are_those_that_can_in_their_order():
    newton = Method("Newton's method", print, needs_curve=True)
    box = Method("a box method", print, (Box,))
    budget = Method("a budget method", print, (BudgetBox,))
    table = (budget, newton, box)
    assert methods_for("we", table, problem_of("hinge")) == [box]
    assert methods_for("we", table, problem_of("squared_hinge")) == [newton, box]
    assert methods_for("we", table, problem_of("logistic")) == [newton]
    assert methods_for("we", table, problem_of(Loss.from_slack("linf"))) == [budget]


def test_where_nothing_can_the_error_says_what_is_missing():
    table = (Method("Newton's method", print, needs_curve=True), Method("SMO", print, (Box,)))
    with pytest.raises(ValueError, match=r"'LInf\(\) inequality'.*smooth loss.*SMO needs.*Box"):
        methods_for("a kernel", table, problem_of(Loss.from_slack("linf")))


def test_patience_counts_anew_after_progress():
    patience = Patience(2, 0.5)
    assert [patience.is_over(v) for v in (1.0, 0.9, 0.4, 0.3, 0.3, 0.3)] == [False] * 5 + [True]
    patience.forget()
    assert not patience.is_over(0.3)


def test_many_small_blocks_send_no_more_rows_than_one():
    """Each block began with a row of its own: seven blocks on one worker sent seven too many."""
    from anynorm.design.crew import Block
    from anynorm.problem.chunked import RowTerms
    from anynorm.solvers.frame.rounds_apart.beside_rows import few_rows

    labels = np.arange(2003) % 2
    blocks = [
        Block(np.eye(1, 3).repeat(len(part), axis=0), part, None, columns=3)
        for part in np.array_split(labels, 11)
    ]
    seen = few_rows(blocks, (RowTerms(np.arange(2), 1, None, 1.0, get_loss("hinge")), 30))
    assert 25 <= sum(len(part) for part in seen.y) <= 30


def test_a_budget_has_the_same_time_left_where_it_is_sent():
    """Clocks of other machines began at other moments."""
    budget = Budget(5, deadline=time.monotonic() + 100.0)
    budget.spend(2)
    sent = pickle.dumps(budget)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda now=time.monotonic: now() - 1e6)
        there = pickle.loads(sent)
        assert there.deadline - time.monotonic() == pytest.approx(100.0, abs=5.0)
        assert (there.left, there.in_time()) == (3, True)
    assert pickle.loads(pickle.dumps(Budget(1))).deadline == np.inf
