"""Forward selection and exchanges: what the search claims about the objective is true."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.kernels.landmarks import Landmarks
from anynorm.losses import Loss
from anynorm.norms import L1, SquaredL2
from anynorm.problem import Problem
from anynorm.solvers.kernel.span_search import SpanSearch
from anynorm.solvers.linear import solve_linear
from tests.estimators.plain import noisy_classes


def problem_of(n=60, seed=0, C=2.0, slack=None, gram=None, positive=1):
    X, y = noisy_classes(n=n, p=3, n_classes=3, seed=seed)
    gram = Gram.rbf(X, 0.3) if gram is None else gram
    loss = Loss.from_slack(L1() if slack is None else slack)
    return Problem(y=np.where(y == positive, 1.0, -1.0), C=C, loss=loss, gram=gram)


def over(problem, Z, start):
    return solve_linear(Problem(y=problem.y, C=problem.C, loss=problem.loss, X=Z), tol=1e-9)


def search_of(*problems):
    return SpanSearch(problems, over, np.random.default_rng(0), lambda: True)


@settings(deadline=None, max_examples=25)
@given(seed=st.integers(0, 50), row=st.integers(0, 59), squared=st.booleans())
def test_no_row_brings_more_than_half_its_squared_slope(seed, row, squared):
    problem = problem_of(seed=seed, slack=SquaredL2() if squared else L1())
    search = search_of(problem)
    search.begin([1, 5, 9])
    pivots, usable = search._pivots(np.array([row]))
    before = search.objective
    slope = search._slopes(np.array([row]), pivots)[0, 0] if usable[0] else 0.0
    search.begin([1, 5, 9, row])
    assert len(search.rows) == 3 + int(usable[0])
    assert search.objective <= before * (1 + 1e-8)
    assert search.objective >= before - 0.5 * slope**2 - 1e-6 * before


def test_slopes_are_those_along_features_that_were_made():
    """They are sums of kernel values over rows with dual variables, also after rows joined."""
    problems = [problem_of(seed=3, positive=k) for k in (0, 1)]
    search = search_of(*problems)
    search.begin([1, 5, 9])
    signed = np.column_stack(
        [problem.y * found.dual for problem, found in zip(problems, search.solutions, strict=True)]
    )
    for joined in range(4, 7):
        assert search._best_joins(np.arange(60))
        assert len(search.rows) == joined
        others = np.setdiff1d(np.arange(60), search.rows)
        pivots, usable = search._pivots(others)
        others, pivots = others[usable], pivots[usable]
        features = search._new_features(others, pivots)
        assert search._slopes(others, pivots) == pytest.approx(features.T @ signed, abs=1e-9)


def test_the_objective_falls_with_every_row():
    search, problem = search_of(problem_of()), problem_of()
    search.begin([])
    values = [search.objective]
    for count in range(1, 30, 4):
        search.grow(count, np.arange(60))
        assert len(search.rows) == len(set(search.rows)) == count
        values.append(search.objective)
    assert (np.diff(values) < 0).all()
    Z = Landmarks.of(problem.gram, np.array(search.rows)).design().dense()
    assert search.objective == pytest.approx(over(problem, Z, None).certificate.primal, rel=1e-7)


def test_features_stay_a_factor_of_the_kernel_when_rows_leave_and_join():
    search, K = search_of(problem_of()), problem_of().gram.block(slice(None), slice(None))
    search.begin(np.arange(12))
    search._leave(np.array([0, 5, 11]))
    search.solve()
    search.grow(11, np.arange(60))
    L = search.Z[search.rows]
    np.testing.assert_allclose(L @ L.T, K[np.ix_(search.rows, search.rows)], atol=1e-10)
    np.testing.assert_allclose(search.Z @ L.T, K[:, search.rows], atol=1e-10)
    assert np.triu(L, 1).any() == np.False_


def test_exchanges_never_make_it_worse_and_mend_a_bad_start():
    search = search_of(problem_of(n=120))
    search.begin(np.arange(8))
    before = search.objective
    search.exchange(np.arange(120))
    assert len(search.rows) == 8
    assert search.objective < 0.99 * before
    again = search.objective
    search.exchange(np.arange(120))
    assert search.objective <= again


def test_problems_that_share_rows_add_their_decreases():
    X, _ = noisy_classes(n=60, p=3, n_classes=3)
    gram = Gram.rbf(X, 0.3)
    problems = [problem_of(gram=gram, positive=k) for k in range(3)]
    search = search_of(*problems)
    search.begin([])
    search.grow(9, np.arange(60))
    assert search.weights().shape == (9, 3)
    alone = search_of(problems[0])
    alone.begin([])
    alone.grow(9, np.arange(60))
    assert alone.objective < search.solutions[0].certificate.primal
    assert search.objective == pytest.approx(sum(s.certificate.primal for s in search.solutions))


def test_it_ends_where_nothing_more_can_join():
    X = np.repeat(np.eye(3), 5, axis=0)
    y = np.where(np.arange(15) % 2, 1.0, -1.0)
    search = search_of(Problem(y=y, C=1.0, loss=Loss.from_slack("l1"), gram=Gram.linear(X)))
    search.begin([])
    search.grow(10, np.arange(15))
    assert len(search.rows) == 3
