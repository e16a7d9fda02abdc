"""Starts of block SMO: what is at a bound stays there."""

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from anynorm import SVC
from anynorm.design.limits import ROUNDING
from anynorm.kernels.gram import Gram
from anynorm.kernels.rows import KernelRows
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.kernel import free_steps
from anynorm.solvers.kernel.box_duals import box_of, minimise
from anynorm.solvers.kernel.smo import _allowed


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=600) > 0, 1.0, -1.0)


def test_a_start_that_is_balanced_up_to_rounding_keeps_its_bounds():
    """One side was scaled by 1 - 1e-16, and all of its variables were free: 30 blocks, not 5."""
    X, y = data()
    problem = Problem(y=y, C=0.1, loss=get_loss("hinge"), gram=Gram.rbf(X, 1.0))
    few = min((y > 0).sum(), (y < 0).sum())
    start = np.zeros(600)
    for sign in (1.0, -1.0):
        start[np.flatnonzero(y == sign)[:few]] = 0.1 * sign
    start[np.flatnonzero(y > 0)[0]] -= 3e-16
    box = box_of(problem)
    value = _allowed(box, start)
    assert np.count_nonzero((value > box.lower) & (value < box.upper)) <= 2
    assert abs(float(box.sign @ value)) <= ROUNDING * float(value.sum())


def test_rounding_is_taken_off_a_free_variable():
    """It was taken off one at its bound, whose pull then moved the bias: a solution looked bad."""
    X, y = data()
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), gram=Gram.rbf(X, 1.0))
    positive, negative = np.flatnonzero(y > 0), np.flatnonzero(y < 0)
    start = np.zeros(600)
    start[positive[:3]] = 1.0, 1.0, 0.5 + 4e-16
    start[negative[:3]] = -1.0, -1.0, -0.5
    value = _allowed(box_of(problem), start)
    np.testing.assert_array_equal(value[positive[:2]], 1.0)
    assert value[positive[2]] == 0.5


def test_a_solution_is_no_start_for_further_blocks():
    """Five blocks were solved before the first look at the gap of a start."""
    X, y = data()
    problem = Problem(y=y, C=1.0, loss=get_loss("hinge"), gram=Gram.rbf(X, 1.0))
    rows = KernelRows(problem.gram, 1 << 24)
    first, second = Budget(10**6), Budget(10**6)
    found = minimise(problem, rows, tol=1e-5, budget=first, start=None)
    again = minimise(problem, rows, tol=1e-3, budget=second, start=found.beta)
    assert first.n_iter > 0
    assert second.n_iter == 0
    assert again.gap <= 1e-3


def test_a_kernel_function_may_put_columns_first(monkeypatch):
    """Its numbers in float64, where float32 is too coarse, were refused in an AssertionError."""

    def turned(A, B):
        return np.asfortranarray(rbf_kernel(A, B, gamma=0.05))

    def coarse(Q):
        kinds.append(Q.dtype)
        if Q.dtype == np.float32:
            raise np.linalg.LinAlgError
        return factor_in_place(Q)

    kinds, factor_in_place = [], free_steps.factor_in_place
    monkeypatch.setattr(free_steps, "factor_in_place", coarse)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 20))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=700) > 0, 1.0, -1.0)
    model = SVC(1e3, kernel=turned, tol=1e-8).fit(X, y)
    assert np.float64 in kinds
    assert model.certificate_.status == "optimal"
