"""Steps by conjugate gradients against the optimality conditions, and the fits that begin so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.svm import SVC as LibSVM

from anynorm import SVC, BudgetSVC, LeastNormSVC
from anynorm.kernels.gram import Gram
from anynorm.kernels.row_stores import FEW_POINTS
from anynorm.kernels.rows import KernelRows
from anynorm.solvers.kernel import smo
from anynorm.solvers.kernel.conjugate_steps import ConjugateSteps
from anynorm.solvers.kernel.free_steps import Face

N = 90


def kernel(seed, diagonal):
    X = np.random.default_rng(seed).standard_normal((N, 20))
    gram = Gram.rbf(X, 0.05)
    extra = np.full(N, 0.1) if diagonal else np.empty(0)
    K = gram.block(slice(None), slice(None)) + (np.diag(extra) if diagonal else 0)
    return KernelRows(gram, 1 << 20), extra, K


def face(rng, reach):
    sign = np.where(np.arange(N) % 2, 1.0, -1.0)
    return Face(np.arange(N), sign, rng.standard_normal(N), np.full(N, -reach), np.full(N, reach))


def left_over(K, view, d, inside, tight):
    """The pulls at d of those inside, less what prices of the rules explain."""
    rules = np.array([np.ones(N), view.sign])[: 1 + tight][:, inside]
    pull = (view.pull - K @ d)[inside]
    return pull - np.linalg.lstsq(rules.T, pull, rcond=None)[0] @ rules


@pytest.mark.parametrize("diagonal", [True, False])
@pytest.mark.parametrize("tight", [True, False])
def test_without_bounds_the_pulls_all_but_vanish(diagonal, tight):
    rows, extra, K = kernel(0, diagonal)
    view = face(np.random.default_rng(1), np.inf)
    steps = ConjugateSteps(rows, extra)
    variables, d = steps.step(view, np.arange(N), tight)
    assert np.array_equal(variables, np.arange(N))
    left = left_over(K, view, d, np.full(N, True), tight)
    assert np.linalg.norm(left) <= 0.06 * np.linalg.norm(view.pull)
    assert abs(d.sum()) <= 1e-9 * np.abs(d).sum()
    assert not tight or abs(view.sign @ d) <= 1e-9 * np.abs(d).sum()
    assert 0 < steps.n_products < N


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.floats(0.1, 3.0))
def test_bounds_and_rules_hold(seed, tight, reach):
    rows, extra, K = kernel(seed, diagonal=False)
    view = face(np.random.default_rng(seed), reach)
    found = ConjugateSteps(rows, extra).step(view, np.arange(N), tight)
    if found is None:
        return
    d = found[1]
    assert np.abs(d).max() <= reach
    assert abs(d.sum()) <= 1e-9 * np.abs(d).sum()
    assert not tight or abs(view.sign @ d) <= 1e-9 * np.abs(d).sum()
    assert view.pull @ d > 0.5 * d @ K @ d
    left = left_over(K, view, d, np.abs(d) < reach, tight)
    assert np.linalg.norm(left) <= 0.06 * np.linalg.norm(view.pull)


def test_where_most_come_to_their_bounds_nothing_is_done():
    rows, extra, _ = kernel(0, diagonal=False)
    view = face(np.random.default_rng(1), 0.01)
    assert ConjugateSteps(rows, extra).step(view, np.arange(N), False) is None


def test_a_kernel_that_is_not_semidefinite_does_no_harm():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, N))
    rows = KernelRows(Gram.precomputed(A + A.T), 1 << 20)
    found = ConjugateSteps(rows, np.empty(0)).step(face(rng, 1.0), np.arange(N), False)
    assert found is None or np.isfinite(found[1]).all()


def noise(n):
    """Labels that no neighbour tells: nearly all rows are support vectors."""
    rng = np.random.default_rng(7)
    return rng.standard_normal((n, 20)), np.where(rng.random(n) < 0.5, 1, -1)


@pytest.mark.parametrize("n", [600, FEW_POINTS + 260])
@pytest.mark.parametrize("model", [SVC(100.0), BudgetSVC(50, C=10.0), LeastNormSVC(100.0)])
def test_fits_where_most_rows_are_free_begin_so(model, n, monkeypatch):
    begun = []
    step = ConjugateSteps.step

    def seen(self, *given):
        begun.append(step(self, *given))
        return begun[-1]

    monkeypatch.setattr(ConjugateSteps, "step", seen)
    X, y = noise(n)
    found = model.set_params(tol=1e-6).fit(X, y)
    assert len(begun) == 1
    assert begun[0] is not None
    assert found.certificate_.gap <= 1e-6
    monkeypatch.setattr(smo, "_NEARLY_ALL", 2.0)  # never
    by_blocks = model.fit(X, y)
    assert len(begun) == 1
    assert found.certificate_.primal == pytest.approx(by_blocks.certificate_.primal, rel=2e-6)


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("C", [20.0, 100.0])
def test_many_rows_with_equalities_need_few_blocks(C, ordered, monkeypatch):
    steps = []
    step = ConjugateSteps.step

    def seen(*given):
        steps.append(step(*given))
        return steps[-1]

    monkeypatch.setattr(ConjugateSteps, "step", seen)
    X, y = noise(2300)
    if ordered:
        X, y = X[np.argsort(y)], np.sort(y)
    found = LeastNormSVC(C, gamma=0.05, tol=1e-6).fit(X, y)
    assert len(steps) > 1
    assert found.certificate_.gap <= 1e-6
    # The gap by the definitions, with a kernel matrix of NumPy's.
    beta = np.zeros(len(y))
    beta[found.support_] = found.dual_coef_.ravel()
    squares = (X**2).sum(axis=1)
    scores = np.exp(-0.05 * (squares[:, None] + squares - 2 * X @ X.T)) @ beta
    slacks = np.abs(y - scores - found.intercept_)
    primal, dual = 0.5 * beta @ scores + C * slacks.sum(), y @ beta - 0.5 * beta @ scores
    assert np.abs(beta).max() <= C * (1 + 1e-12)
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    assert primal - dual <= 1.1e-6 * primal


def test_such_a_fit_is_that_of_libsvm():
    X, y = noise(900)
    ours = SVC(10.0, gamma=0.05, tol=1e-8).fit(X, y)
    theirs = LibSVM(C=10.0, gamma=0.05, tol=1e-8).fit(X, y)
    scale = np.abs(theirs.decision_function(X)).max()
    np.testing.assert_allclose(
        ours.decision_function(X), theirs.decision_function(X), atol=1e-4 * scale
    )
