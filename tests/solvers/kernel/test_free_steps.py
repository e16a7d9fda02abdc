"""Newton steps for the free variables against the optimality conditions in float64."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anynorm.kernels.gram import Gram
from anynorm.kernels.rows import KernelRows
from anynorm.losses import Loss
from anynorm.norms import L1, TopK
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.kernel import free_steps, solve_kernel
from anynorm.solvers.kernel.free_steps import Face, FreeSteps
from tests.references import solve_primal

N = 60


def kernel(seed, diagonal):
    X = np.random.default_rng(seed).standard_normal((N, 4))
    gram = Gram.rbf(X, 0.3)
    extra = np.full(N, 0.1) if diagonal else np.empty(0)
    K = gram.block(slice(None), slice(None)) + (np.diag(extra) if diagonal else 0)
    return gram, extra, K


def face(rng, low=-np.inf, high=np.inf):
    sign = np.where(np.arange(N) % 2, 1.0, -1.0)
    return Face(np.arange(N), sign, rng.standard_normal(N), np.full(N, low), np.full(N, high))


def reference(K, view, free, tight):
    """The KKT system of the free variables."""
    rules = np.array([np.ones(N), view.sign])[: 1 + tight][:, free]
    k, r = len(free), len(rules)
    system = np.block([[K[np.ix_(free, free)], rules.T], [rules, np.zeros((r, r))]])
    d = np.zeros(N)
    d[free] = np.linalg.solve(system, np.append(view.pull[free], np.zeros(r)))[:k]
    return d


def full(found):
    d = np.zeros(N)
    d[found[0]] = found[1]
    return d


@pytest.mark.parametrize("exact", [True, False])
@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("tight", [True, False])
def test_one_factor_serves_changed_sets(exact, diagonal, tight):
    rng = np.random.default_rng(3)
    gram, extra, K = kernel(0, diagonal)
    rows = KernelRows(gram, 1 << 20, exact=exact)
    steps, view = FreeSteps(rows, extra, N), face(rng)
    base = np.arange(0, 40)
    assert not steps.knows(base)
    assert steps.prepare(view, base)
    for free in (base, base[5:], np.arange(45), np.r_[3:20, 25:40, 50:58], base):
        assert steps.knows(free)
        d = full(steps.step(view, free, tight))
        best = reference(K, view, free, tight)
        assert np.abs(d - best).max() <= (1e-9 if exact else 1e-3) * np.abs(best).max()
        assert abs(d.sum()) <= 1e-12 * np.abs(d).sum()
        assert not np.delete(d, free).any()
        view = face(rng)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.floats(0.02, 2.0))
def test_bounds_hold_and_the_step_descends(seed, tight, reach):
    rng = np.random.default_rng(seed)
    gram, extra, K = kernel(seed, diagonal=False)
    steps, view = FreeSteps(KernelRows(gram, 1 << 20), extra, N), face(rng, -reach, reach)
    free = np.sort(rng.choice(N, 50, replace=False))
    steps.prepare(view, free[:45])
    found = steps.step(view, free, tight)
    if found is None:
        return
    d = full(found)
    assert np.abs(d).max() <= reach * (1 + 1e-9)
    assert abs(d.sum()) <= 1e-9 * (1 + np.abs(d).sum())
    assert not tight or abs(view.sign @ d) <= 1e-9 * (1 + np.abs(d).sum())
    inside = np.abs(d) < reach * (1 - 1e-6)
    inside &= np.isin(np.arange(N), free)
    at_rest = (view.pull - K @ d)[inside]
    rules = np.array([np.ones(N), view.sign])[: 1 + tight][:, inside]
    prices = np.linalg.lstsq(rules.T, at_rest, rcond=None)[0]
    assert np.abs(at_rest - prices @ rules).max() <= 1e-3 * np.abs(view.pull).max()


def test_equal_points_with_both_labels_are_solved_all_the_same():
    # Newton's matrix of equal points is singular: refused, or a step that must not lead astray.
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((40, 3)), 4, axis=0)
    y = np.where(rng.random(160) < 0.5, 1.0, -1.0)
    for slack in (L1(), TopK(20)):
        problem = Problem(y=y, C=50.0, loss=Loss.from_slack(slack), gram=Gram.rbf(X, 0.5))
        found = solve_kernel(problem, tol=1e-6)
        assert found.status is Status.OPTIMAL
        assert found.certificate.primal == pytest.approx(solve_primal(problem).value, rel=1e-5)


def test_the_factor_in_parts_is_the_factor():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1700, 30))
    Q = A @ A.T + 30 * np.eye(1700)
    found = np.tril(free_steps.factor_in_place(Q.copy()))
    np.testing.assert_allclose(found, np.linalg.cholesky(Q), atol=1e-10)
    with pytest.raises(np.linalg.LinAlgError):
        free_steps.factor_in_place(Q - 1e3 * np.eye(1700))


def test_columns_that_begin_late_are_solved_as_others():
    rng = np.random.default_rng(0)
    factor = np.tril(rng.standard_normal((700, 700))) / 30 + np.eye(700)
    right = np.asfortranarray(np.eye(700)[:, np.r_[0:30, 300:420, 640:700]])
    found = free_steps._solve_lower(factor, right.copy(order="F"))
    np.testing.assert_allclose(factor @ found, right, atol=1e-9)
