"""The 1-norm with smooth losses: against CVXPY and Clarabel, scikit-learn, and its own promises."""

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from anynorm.design import design_of
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.problem.certificate import certify
from anynorm.problem.solution import Status
from anynorm.solvers.frame.budget import Budget
from anynorm.solvers.frame.incumbent import Incumbent
from anynorm.solvers.one_norm import model as models
from anynorm.solvers.one_norm import smooth, solve_one_norm
from anynorm.solvers.one_norm.model import QuadraticModel, minimise_model, minimiser_along
from anynorm.solvers.one_norm.smooth import SmoothSearch, solve_smooth
from tests.references import solve_primal
from tests.solvers.problems import BIASES, overlapping, small_data

LOSSES = ["squared_hinge", "logistic", "squared"]


def text_like(n=1500, p=4000, seed=0):
    """Words by a power law, rows of similar norms, a few informative words."""
    rng = np.random.default_rng(seed)
    frequency = 1.0 / (np.arange(p) + 10.0)
    words = rng.choice(p, size=(n, 60), p=frequency / frequency.sum())
    rows = np.repeat(np.arange(n), 60)
    X = sp.csr_matrix((rng.uniform(0.05, 0.15, rows.size), (rows, words.ravel())), shape=(n, p))
    w = np.where(rng.random(p) < 0.05, rng.normal(size=p), 0.0)
    scores = X @ w
    y = np.where(scores > np.median(scores), 1.0, -1.0)
    y[rng.random(n) < 0.05] *= -1
    return X, y


def problem_of(X, y, loss="squared_hinge", C=1.0, **pieces):
    return Problem(y=y, C=C, loss=get_loss(loss), X=X, regulariser="l1", **pieces)


def assert_optimal(problem, tol=1e-8, **options):
    """Solve; check the certificate anew and against the reference."""
    solution = solve_smooth(problem, tol=tol, **options)
    nothing = 0 < solution.certificate.primal < 1e-20  # the logistic loss comes near to 0 only
    assert solution.status is (Status.NEGLIGIBLE if nothing else Status.OPTIMAL)
    again = certify(problem, solution.coef, solution.intercept, solution.dual, tol=tol)
    assert again.primal == solution.certificate.primal
    assert again.dual == pytest.approx(solution.certificate.dual, rel=1e-9, abs=1e-300)
    return solution


# ---------------------------------------------------------------- the whole


@st.composite
def small_problems(draw):
    X, y, pieces, rng = draw(small_data())
    if draw(st.booleans()):
        pieces["penalty_weights"] = rng.choice([0.3, 1.0, 2.0, np.inf], X.shape[1])
    return problem_of(X, y, draw(st.sampled_from(LOSSES)), **pieces)


@settings(max_examples=150, deadline=None)
@given(small_problems())
def test_optimal_on_small_problems_of_every_kind(problem):
    solution = assert_optimal(problem, tol=1e-9)
    reference = solve_primal(problem)
    allowance = 1e-6 * max(abs(reference.value), 1e-3 * problem.zero_primal())
    assert solution.certificate.primal <= reference.value + allowance
    assert solution.certificate.dual <= reference.value + allowance


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", BIASES)
@pytest.mark.parametrize("shape", [(20, 300), (300, 20), (80, 80)])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_wide_tall_and_square_data_over_four_decades_of_C(loss, intercept, shape, C):
    X, y = overlapping(*shape, seed=3)
    solution = assert_optimal(problem_of(X, y, loss, C, intercept=intercept), tol=1e-9)
    reference = solve_primal(problem_of(X, y, loss, C, intercept=intercept))
    assert solution.certificate.primal <= reference.value * (1 + 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_columns_that_are_never_penalised(loss):
    X, y = overlapping(seed=5)
    penalty = np.array([0.0, 1.0, 1.0, 0.0, np.inf, 2.0, 1.0, 5.0])
    problem = problem_of(X, y, loss, 0.05, penalty_weights=penalty)
    solution = assert_optimal(problem)
    assert np.all(solution.coef[[0, 3]] != 0)
    assert solution.coef[4] == 0
    assert solution.certificate.primal <= solve_primal(problem).value * (1 + 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_zeros_are_exact_and_as_many_as_the_dual_says(loss):
    X, y = overlapping(n=100, p=60, seed=1)
    solution = assert_optimal(problem_of(X, y, loss, 0.2), tol=1e-10)
    pressure = np.abs(X.T @ (y * solution.dual))
    assert 0 < np.count_nonzero(solution.coef) < 40
    assert np.all(solution.coef[pressure < 1 - 1e-4] == 0)
    assert np.all(pressure[solution.coef != 0] > 1 - 1e-4)


def test_nothing_is_chosen_where_the_penalty_rules():
    X, y = overlapping()
    solution = assert_optimal(problem_of(X, y, C=1e-4))
    assert not solution.coef.any()
    assert solution.n_iter == 1


# ---------------------------------------------------------------- data of every kind


@pytest.mark.parametrize("loss", LOSSES)
def test_storage_does_not_matter(loss):
    X, y = overlapping(n=80, p=30, seed=2)
    X = np.where(np.abs(X) > 0.8, X, 0.0).astype(np.float32).astype(float)
    expected = assert_optimal(problem_of(X, y, loss), tol=1e-10)
    wide = sp.csr_array(X)
    wide = sp.csr_array((wide.data, wide.indices.astype(np.int64), wide.indptr.astype(np.int64)))
    fixed = np.asfortranarray(X)
    fixed.flags.writeable = False
    frozen = sp.csc_array(X.astype(np.float32))
    for array in (frozen.data, frozen.indices, frozen.indptr):
        array.flags.writeable = False
    for stored in (sp.csr_array(X), wide, fixed, frozen, X.astype(np.float32)):
        found = assert_optimal(problem_of(stored, y, loss), tol=1e-10)
        np.testing.assert_allclose(found.coef, expected.coef, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", BIASES)
def test_a_row_of_weight_zero_is_no_row_and_of_weight_two_is_two(loss, intercept):
    X, y = overlapping()
    weights = np.where(np.arange(len(y)) % 4 == 0, 0.0, np.where(np.arange(len(y)) % 4 == 1, 2, 1))
    rows = np.repeat(np.arange(len(y)), weights.astype(int))
    weighted = assert_optimal(
        problem_of(X, y, loss, sample_weight=weights, intercept=intercept), tol=1e-10
    )
    repeated = assert_optimal(problem_of(X[rows], y[rows], loss, intercept=intercept), tol=1e-10)
    np.testing.assert_allclose(weighted.coef, repeated.coef, atol=1e-6)
    assert not weighted.dual[weights == 0].any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", BIASES)
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_one_class(loss, intercept, sign):
    X, _ = overlapping()
    problem = problem_of(X, np.full(len(X), sign), loss, intercept=intercept)
    solution = assert_optimal(problem)
    if intercept == "free":
        assert not solution.coef.any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("scale", [1e-12, 1e12, 1e15])
@pytest.mark.parametrize("intercept", BIASES)
def test_a_column_of_absurd_scale_does_not_disturb_the_others(loss, scale, intercept):
    """Which of two sums was taken decided whether the last digits of the duals were good enough."""
    X, y = overlapping()
    X[:, 4] *= scale
    assert_optimal(problem_of(X, y, loss, intercept=intercept), tol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [0.05, 0.2, 1.0, 100.0])
def test_columns_that_the_bias_could_have_a_part_of_take_few_steps(loss, C):
    """Models that were solved too loosely crept along these columns, and gave up at 8e-4."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 30)) + 1.0
    y = np.where((X[:, :3] - 1.0).sum(axis=1) + 0.5 * rng.standard_normal(2000) > 0, 1.0, -1.0)
    solution = solve_smooth(problem_of(X, y, loss, C=C), tol=1e-6)
    assert solution.status is Status.OPTIMAL
    assert solution.n_iter <= 12


@pytest.mark.parametrize("loss", LOSSES)
def test_features_far_from_zero(loss):
    X, y = overlapping()
    solution = assert_optimal(problem_of(X + 500.0, y, loss), tol=1e-8)
    expected = assert_optimal(problem_of(X, y, loss), tol=1e-8)
    assert solution.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-7)


def test_zero_data():
    y = np.array([1.0, -1.0, 1.0])
    for X in (np.zeros((3, 2)), sp.csr_array((3, 2))):
        for intercept in BIASES:
            assert not assert_optimal(problem_of(X, y, intercept=intercept)).coef.any()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_sparse_text_with_more_words_than_documents(loss, C):
    X, y = text_like()
    problem = problem_of(X, y, loss, C, intercept=None)
    solution = assert_optimal(problem, tol=1e-6)
    assert np.count_nonzero(solution.coef) < 1500
    if loss == "squared_hinge":
        peer = LinearSVC(
            penalty="l1", dual=False, C=C, fit_intercept=False, tol=1e-4, max_iter=3000
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            rival = problem.objective(peer.fit(X, y).coef_.ravel())
        assert solution.certificate.dual <= rival
        assert solution.certificate.primal <= rival * (1 + 1e-6)


# ---------------------------------------------------------------- budgets


def test_deadline_and_iterations_are_kept_and_the_certificate_says_so():
    X, y = text_like()
    late = solve_smooth(problem_of(X, y, C=100.0), tol=1e-9, deadline=time.monotonic())
    assert late.status is Status.TIME_LIMIT
    short = solve_smooth(problem_of(X, y, C=100.0), tol=1e-9, max_iter=2)
    assert short.status is Status.MAX_ITER
    assert short.n_iter == 2
    assert short.certificate.primal <= problem_of(X, y, C=100.0).zero_primal()


def test_progress_reports_a_falling_gap():
    X, y = overlapping()
    reports = []
    solution = solve_smooth(problem_of(X, y), tol=1e-8, progress=reports.append)
    assert reports[-1].gap <= 1e-8 < reports[0].gap
    assert reports[-1].iteration == solution.n_iter
    assert np.all(np.diff([report.dual for report in reports]) >= 0)


def test_a_start_can_only_help():
    X, y = overlapping()
    fine = solve_smooth(problem_of(X, y), tol=1e-10)
    again = solve_smooth(problem_of(X, y), tol=1e-3, start=fine.dual)
    assert again.certificate.dual >= fine.certificate.dual * (1 - 1e-12)


def test_what_a_loss_lacks_is_named():
    X, y = overlapping()
    loss = get_loss("hinge").from_slack("linf")
    problem = Problem(y=y, C=1.0, loss=loss, X=X, regulariser="l1")
    with pytest.raises(ValueError, match=r"'LInf\(\) inequality'.*BudgetBox.*needs a smooth loss"):
        solve_one_norm(problem)


@pytest.mark.parametrize("root", [0.03, 0.4, 0.97])
def test_search_along_a_step_finds_a_flat_place(root):
    t = minimiser_along(lambda t: (t - root) * (1 + 50 * (t > root)))
    assert abs((t - root) * (1 + 50 * (t > root))) <= 0.1 * root
    assert minimiser_along(lambda t: t - 2) == 1.0
    assert minimiser_along(lambda t: t + 0.1) == 0.0


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", BIASES)
def test_another_share_of_C_needs_no_product(loss, intercept):
    X, y = overlapping()
    problem = problem_of(X, y, loss, intercept=intercept)
    search = SmoothSearch(Incumbent(problem, 1e-6, Budget(100)), problem)
    search.stage(0.2, 0.1)
    search._change_share(0.7)
    expected = search.gradient, search.a, search.violation, search.primal
    search.look()
    for value, again in zip(
        expected, (search.gradient, search.a, search.violation, search.primal), strict=True
    ):
        np.testing.assert_allclose(value, again, rtol=1e-10, atol=1e-12)


def test_every_model_is_looked_at_once(monkeypatch):
    looks, look = [], SmoothSearch.look
    monkeypatch.setattr(SmoothSearch, "look", lambda search: looks.append(1) or look(search))
    X, y = overlapping()
    solution = solve_smooth(problem_of(X, y, "logistic"), tol=1e-6)
    assert solution.status is Status.OPTIMAL
    assert len(looks) == solution.n_iter + 1


def sparse_model(coef=None):
    """A least-squares model of 60 sparse columns, at zero or where it is told to begin."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 60)) * (rng.random((200, 60)) < 0.2)
    coef = np.zeros(60) if coef is None else coef
    every = np.arange(200)
    return QuadraticModel(
        block=design_of(sp.csr_array(X)).column_block(np.arange(60), every, np.ones(200)),
        penalty=np.full(60, 3.0),
        unit=np.full(60, 3.0),
        coef=coef.copy(),
        residual=X @ (rng.normal(size=60) * (rng.random(60) < 0.5)) - X @ coef,
        root=np.zeros(200),
        free_bias=False,
        floor=-np.inf,
        damping=1e-12,
    )


def test_a_model_whose_signs_are_known_takes_few_passes(monkeypatch):
    monkeypatch.setattr(models, "_DIRECT", 0)  # conjugate gradients, however few columns
    first = sparse_model()
    minimise_model(first, 1e-9, lambda: True)
    passes, descend = [], QuadraticModel.descend
    monkeypatch.setattr(
        QuadraticModel, "descend", lambda model, order: passes.append(1) or descend(model, order)
    )
    again = sparse_model(1.01 * first.coef)
    minimise_model(again, 1e-6, lambda: True)
    np.testing.assert_allclose(again.coef, first.coef, atol=1e-5)
    assert len(passes) <= 4  # 6 with four of them before the first step


def test_the_last_models_begin_with_as_many_steps_as_those_before_ended(monkeypatch):
    monkeypatch.setattr(models, "_DIRECT", 0)
    begun, ended = [], []

    def watched(model, target, spend):
        begun.append(model.steps)
        minimise_model(model, target, spend)
        ended.append(model.steps)

    monkeypatch.setattr(smooth, "minimise_model", watched)
    X, y = overlapping()
    solve_smooth(problem_of(X, y, "logistic", C=100.0), tol=1e-10)
    assert begun[0] == models.FIRST_STEPS < begun[-1] == ended[-2]
