"""Problems over the span of few rows: their optimum, what the budget costs, the choice of rows."""

import time
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from anynorm.kernels.gram import Gram
from anynorm.kernels.landmarks import Landmarks
from anynorm.losses import Loss
from anynorm.norms import K12, L1, L2, LInf, SquaredL2, TopK
from anynorm.problem import Problem
from anynorm.problem.solution import Status
from anynorm.solvers.kernel import landmark_sets, solve_kernel, solve_strict, strict_budget
from anynorm.solvers.linear import solve_linear
from anynorm.solvers.one_norm import follow_path
from tests.estimators.plain import noisy_classes
from tests.references import solve_primal

NORMS = [L1(), SquaredL2(), L2(), LInf(), TopK(7), K12(9)]
RNG = np.random.default_rng(5)
WEIGHTS = np.random.default_rng(3).integers(1, 4, size=60).astype(float)


def problem_of(n=60, slack=None, C=1.5, weights=None, gram=None, seed=0):
    X, y = noisy_classes(n=n, p=3, seed=seed)
    gram = Gram.rbf(X, 0.3) if gram is None else gram
    loss = Loss.from_slack(L1() if slack is None else slack)
    return Problem(y=2.0 * y - 1.0, C=C, loss=loss, gram=gram, sample_weight=weights)


def strict(problem, count, **settings):
    found = solve_strict(
        [problem], count, solve_features=solve_linear, follow_path=follow_path, **settings
    )
    return found[0]


def value_of(problem, solution):
    """The objective of the kernel functions' weights, written out."""
    beta = problem.y * solution.coef
    K = problem.gram.block(slice(None), slice(None))
    slacks = np.maximum(1.0 - problem.y * (K @ beta + solution.intercept), 0.0)
    norm = problem.loss.slack
    if problem.sample_weight is not None:
        norm = norm.weighted(problem.sample_weight)
    return 0.5 * beta @ K @ beta + problem.C * norm.value(slacks)


def value_over(problem, rows):
    """The optimum over the span of given rows."""
    gram = Gram.linear(Landmarks.of(problem.gram, rows).design().dense())
    linear = Problem(y=problem.y, C=problem.C, loss=problem.loss, gram=gram)
    return solve_kernel(linear, solve_features=solve_linear).certificate.primal


@pytest.mark.parametrize("slack", NORMS, ids=repr)
def test_the_optimum_over_the_chosen_rows_is_that_of_another_solver(slack):
    problem = problem_of(slack=slack, weights=WEIGHTS)
    found = strict(problem, 6, tol=1e-6)
    solution = found.solution
    used = np.flatnonzero(solution.coef)
    assert 1 <= len(used) <= 6
    assert solution.status is Status.OPTIMAL
    assert solution.certificate.gap <= 1e-6
    assert value_of(problem, solution) == pytest.approx(solution.certificate.primal, rel=1e-8)
    Z = Landmarks.of(problem.gram, used).design().dense()
    linear = Problem(y=problem.y, C=problem.C, loss=problem.loss, X=Z, sample_weight=WEIGHTS)
    reference = solve_primal(linear).value
    assert solution.certificate.primal == pytest.approx(reference, rel=1e-5)
    assert solution.certificate.dual <= reference * (1 + 1e-6)


@pytest.mark.parametrize("slack", [L1(), SquaredL2(), TopK(7)], ids=repr)
def test_the_bound_holds_and_a_budget_of_all_rows_costs_nothing(slack):
    problem = problem_of(slack=slack)
    optimum = solve_primal(problem).value
    for count in (4, 60):
        found = strict(problem, count, tol=1e-5)
        assert found.full.primal == found.solution.certificate.primal
        assert found.full.dual <= optimum * (1 + 1e-6)
        assert optimum <= found.full.primal * (1 + 1e-6)
        assert found.full.dual >= optimum * (1 - 1e-4)
    assert found.full.gap <= 1e-5
    assert found.solution.certificate == found.full


def test_the_objective_falls_with_the_budget():
    problem = problem_of(n=100)
    values = [strict(problem, count).solution.certificate.primal for count in (2, 5, 15, 100)]
    assert (np.diff(values) < 0).all()
    assert values[-1] == pytest.approx(solve_kernel(problem).certificate.primal, rel=1e-4)


@pytest.fixture
def sampled(monkeypatch):
    """Rows are chosen on a sample of 60, and the problem without a budget is too large."""
    monkeypatch.setattr(strict_budget, "_SAMPLE", 60)
    monkeypatch.setattr(strict_budget, "_PER_PLACE", 10)
    monkeypatch.setattr(strict_budget, "_WHOLE", 60)
    monkeypatch.setattr(strict_budget, "_ROUGHLY", 60)
    monkeypatch.setattr(strict_budget, "_MOST_PARTS", 0)


@pytest.mark.parametrize("slack", [L1(), SquaredL2(), TopK(30)], ids=repr)
@pytest.mark.usefixtures("sampled")
def test_rows_chosen_on_a_sample_serve_all_rows(slack):
    problem = problem_of(n=200, slack=slack, C=0.5)
    found = strict(problem, 5, tol=1e-5)
    assert found.solution.certificate.gap <= 1e-5
    assert value_of(problem, found.solution) == pytest.approx(
        found.solution.certificate.primal, rel=1e-8
    )
    full = solve_kernel(problem, tol=1e-6, solve_features=solve_linear).certificate
    assert 0 < found.full.dual <= full.primal
    assert full.dual <= found.full.primal
    by_chance = [value_over(problem, RNG.permutation(200)[:5]) for _ in range(9)]
    assert found.full.primal < min(by_chance)
    assert problem.dual_objective(found.full_dual) == pytest.approx(found.full.dual, rel=1e-9)


@pytest.mark.usefixtures("sampled")
def test_a_bound_of_part_of_the_duals_is_a_bound(monkeypatch):
    problem = problem_of(n=200)
    whole = strict(problem, 5).full.dual
    monkeypatch.setattr(strict_budget, "BOUND_ROWS", 30)
    part = strict(problem, 5)
    assert np.count_nonzero(part.full_dual) <= 30
    assert 0 < part.full.dual < whole


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("weights", [None, np.tile([1.0, 2.0], 100)], ids=["plain", "weighted"])
def test_a_rough_solution_without_a_budget_bounds_what_it_costs(monkeypatch, weights):
    problem = problem_of(n=200, weights=weights)
    weak = strict(problem, 5).full
    monkeypatch.setattr(strict_budget, "_ROUGHLY", 200)
    rough = strict(problem, 5)
    optimum = solve_primal(problem).value
    assert optimum * (1 - strict_budget._ROUGH_TOL) <= rough.full.dual <= optimum * (1 + 1e-6)
    assert rough.full.dual > weak.dual
    assert problem.dual_objective(rough.full_dual) == pytest.approx(rough.full.dual, rel=1e-9)
    monkeypatch.setattr(strict_budget, "_ROUGH_ITERATIONS", 0.05)
    stopped = strict(problem, 5)
    assert stopped.full.dual <= rough.full.dual
    assert stopped.solution.status is Status.OPTIMAL
    monkeypatch.setattr(strict_budget, "_ROUGH_COST", 1e-9)
    assert strict(problem, 5).full == weak


@pytest.mark.usefixtures("sampled")
@pytest.mark.parametrize("weights", [None, np.tile([1.0, 2.0], 100)], ids=["plain", "weighted"])
@pytest.mark.parametrize("slack", [L1(), SquaredL2()], ids=repr)
def test_parts_of_the_rows_bound_what_a_budget_costs(monkeypatch, slack, weights):
    problem = problem_of(n=200, slack=slack, weights=weights)
    optimum = solve_primal(problem).value
    weak = strict(problem, 5).full.dual
    cost = problem.gram.cost(200, 200)
    bounds = []
    for count in (1, 2, 5):
        monkeypatch.setattr(strict_budget, "_MOST_PARTS", count)
        monkeypatch.setattr(strict_budget, "_ROUGH_COST", cost / count)
        found = strict(problem, 5)
        assert found.solution.status is Status.OPTIMAL
        assert found.full.primal == found.solution.certificate.primal
        assert found.full.dual <= problem.dual_objective(found.full_dual) * (1 + 1e-8)
        assert problem.dual_objective(found.full_dual) <= optimum * (1 + 1e-6)
        assert strict(problem, 5).full == found.full
        bounds.append(found.full.dual)
    assert bounds[0] >= optimum * (1 - strict_budget._ROUGH_TOL)
    assert bounds[0] > bounds[1] > bounds[2] > 0
    assert bounds[1] > weak


@pytest.mark.usefixtures("sampled")
def test_parts_do_not_replace_a_better_bound(monkeypatch):
    problem = replace(problem_of(n=200), C=0.02)  # eight parts: a gap of 0.4, a budget's own 0.2
    own = strict(problem, 20).full
    monkeypatch.setattr(strict_budget, "_MOST_PARTS", 8)
    monkeypatch.setattr(strict_budget, "_ROUGH_COST", problem.gram.cost(200, 200) / 7.5)
    asked = []
    by_parts = strict_budget._StrictSearch._bound_by_parts
    monkeypatch.setattr(
        strict_budget._StrictSearch,
        "_bound_by_parts",
        lambda *given: asked.append(by_parts(*given)) or asked[-1],
    )
    monkeypatch.setattr(strict_budget, "_ROUGH_TOL", 0.5 * own.gap)
    found = strict(problem, 20).full
    assert asked[0].value < own.dual == found.dual
    monkeypatch.setattr(strict_budget, "_ROUGH_TOL", 2 * own.gap)
    assert strict(problem, 20).full.dual == own.dual
    assert len(asked) == 1  # where the gap is small, parts are not worth their time


@pytest.mark.usefixtures("sampled")
def test_bounds_leave_time_to_the_models_of_all_classes(monkeypatch):
    """The last part of the first class's bound had all the time that was left."""
    problem = replace(problem_of(n=200), C=10.0)
    monkeypatch.setattr(strict_budget, "_MOST_PARTS", 4)
    monkeypatch.setattr(strict_budget, "_ROUGH_COST", problem.gram.cost(200, 200) / 1.75)
    search, shares = strict_budget._StrictSearch, []
    over_features, solved = search._over_features, search._kernel_solutions

    def features(*given, **more):
        shares.clear()
        return over_features(*given, **more)

    def kernels(self, problems, starts, tol, share, *more):
        shares.append(share)
        return solved(self, problems, starts, tol, share, *more)

    monkeypatch.setattr(search, "_over_features", features)
    monkeypatch.setattr(search, "_kernel_solutions", kernels)
    both = [problem, replace(problem, y=-problem.y)]
    found = solve_strict(both, 5, solve_features=solve_linear, follow_path=follow_path)
    assert [one.solution.status for one in found] == [Status.OPTIMAL] * 2
    # Four parts of each class, after both models: each has its share of what is left.
    assert shares == pytest.approx([1 / left for left in range(8, 0, -1)])


@pytest.mark.usefixtures("sampled")
def test_parts_without_a_class_bound_nothing_and_do_no_harm(monkeypatch):
    problem = problem_of(n=200)
    y = np.where(np.arange(200) < 3, 1.0, -1.0)
    monkeypatch.setattr(strict_budget, "_MOST_PARTS", 8)
    monkeypatch.setattr(strict_budget, "_ROUGH_COST", problem.gram.cost(200, 200) / 7.5)
    rare = replace(problem, y=y)
    found = strict(rare, 5)
    assert 0 < found.full.dual <= solve_primal(rare).value * (1 + 1e-6)


def test_sets_that_are_no_better_are_rarely_taken(monkeypatch):
    """By one standard error the best of three equals was taken in a third of the draws."""
    problem, rng = problem_of(n=200), np.random.default_rng(0)
    nothing = strict_budget.Budget(1, None)
    search = strict_budget._StrictSearch(
        [problem], 5, 1e-4, nothing, 1.0, rng, solve_linear, follow_path
    )
    choice = strict_budget._Choice(search, [problem], np.arange(200))
    sets, held = [np.arange(5)] * 4, np.arange(400)

    def taken(rates):
        errors = iter([(rng.random(400) < rate).astype(float) for rate in rates])
        monkeypatch.setattr(choice, "_errors", lambda *_: next(errors))
        return choice._clearly_better(sets[0], sets[1:], held, held) is not None

    assert np.mean([taken([0.1, 0.1, 0.1, 0.1]) for _ in range(300)]) < 0.1
    assert np.mean([taken([0.3, 0.1, 0.3, 0.3]) for _ in range(300)]) > 0.99


@pytest.mark.usefixtures("sampled")
def test_a_rare_class_is_in_the_sample():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    y = np.where(np.arange(1000) < 6, 1.0, -1.0)
    X[:6] += 3.0
    problem = Problem(y=y, C=10.0, loss=Loss.from_slack("l1"), gram=Gram.rbf(X, 0.5))
    found = strict(problem, 5)
    scores = problem.scores(found.solution.coef) + found.solution.intercept
    assert np.mean(scores[:6] > 0) > 0.8


@pytest.mark.parametrize("slack", [L1(), TopK(30)], ids=repr)
def test_features_that_do_not_fit_in_memory_are_made_again(slack):
    problem = problem_of(n=100, slack=slack)
    stored = strict(problem, 8, tol=1e-7).solution
    lazy = strict(problem, 8, tol=1e-7, cache_size=0.001).solution
    assert lazy.certificate.gap <= 1e-7
    assert lazy.certificate.primal == pytest.approx(stored.certificate.primal, rel=1e-6)


def test_sparse_rows_and_given_matrices_have_the_same_solution():
    X, _ = noisy_classes(n=60, p=3)
    plain = problem_of()
    K = plain.gram.block(slice(None), slice(None))
    expected = strict(plain, 9).solution
    for gram in (Gram.rbf(sp.csr_array(X), 0.3), Gram.precomputed(K)):
        found = strict(problem_of(gram=gram), 9).solution
        assert found.certificate.primal == pytest.approx(expected.certificate.primal, rel=1e-6)


def test_rows_without_weight_are_as_if_they_were_not_there():
    X, y = noisy_classes(n=120, p=3)
    kept = np.arange(120) % 4 > 0
    weights = kept.astype(float)
    signs = 2.0 * y - 1.0
    loss = Loss.from_slack("l1")
    whole = Problem(y=signs, C=1.0, loss=loss, gram=Gram.rbf(X, 0.3), sample_weight=weights)
    part = Problem(y=signs[kept], C=1.0, loss=loss, gram=Gram.rbf(X[kept], 0.3))
    one, other = strict(whole, 6).solution, strict(part, 6).solution
    assert not one.coef[~kept].any()
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-3)


def test_time_that_is_up_leaves_a_model_and_its_gap():
    problem = problem_of(n=200)
    found = strict(problem, 20, deadline=time.monotonic())
    assert np.count_nonzero(found.solution.coef) <= 20
    assert np.isfinite(found.solution.certificate.primal)
    assert found.full.dual <= found.full.primal


def test_an_indefinite_kernel_has_no_bound_but_an_optimum_over_its_rows():
    X, _ = noisy_classes(n=60, p=3)
    gram = Gram.precomputed(np.tanh(0.5 * X @ X.T + 0.1))
    problem = problem_of(gram=gram)
    found = strict(problem, 4)
    assert np.isnan(found.full.gap)
    assert found.full.status is Status.UNCERTIFIED
    assert value_of(problem, found.solution) == pytest.approx(
        found.solution.certificate.primal, rel=1e-8
    )


def test_k_means_finds_clusters_in_the_space_of_the_kernel():
    rng = np.random.default_rng(0)
    centres = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0], [5.0, 5.0]])
    X = centres[np.arange(200) % 4] + 0.3 * rng.normal(size=(200, 2))
    rows = landmark_sets.kmeans_rows(Gram.rbf(X, 0.5), 4, rng)
    assert sorted(rows % 4) == [0, 1, 2, 3]
    assert (np.linalg.norm(X[rows] - centres[rows % 4], axis=1) < 0.3).all()
    same = np.ones((5, 1))
    assert len(landmark_sets.kmeans_rows(Gram.rbf(same, 1.0), 3, rng)) == 1


def test_the_path_gives_no_more_rows_than_asked_for():
    problem, rng = problem_of(), np.random.default_rng(0)
    rows = landmark_sets.path_rows([problem], 8, rng, follow_path)
    assert 1 <= len(rows) <= 8
    shared = landmark_sets.path_rows([problem, problem], 8, rng, follow_path)
    assert 1 <= len(shared) <= 8
    assert len(landmark_sets.path_rows([problem], 300, rng, follow_path)) == 0
