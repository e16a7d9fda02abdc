"""The walk paper's experiments follow its protocol; their solvers agree with independent ones."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from anynorm.losses import get_loss
from anynorm.problem import Problem
from benchmarks import walk as walk_benchmark
from benchmarks.papers import protocol, walk, walk_report
from benchmarks.papers.one_norm import one_norm_grid
from benchmarks.papers.page import filled
from benchmarks.papers.protocol import Grid, Model
from tests.references.linear_program import solve_linear_program


def small(seed=0, n=24, p=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    y = np.where(X[:, 0] + 0.6 * rng.standard_normal(n) > 0.2, 1.0, -1.0)
    return X, y


@pytest.fixture
def data_folder(tmp_path, monkeypatch):
    X, y = small(n=40)
    np.savez(tmp_path / "sonar.npz", X=X, y=(y > 0).astype(np.int8))
    monkeypatch.setenv("ANYNORM_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("interior", [False, True])
@pytest.mark.parametrize("free_bias", [False, True])
def test_one_norm_grid_is_optimal_for_every_C(free_bias, interior):
    X, y = small()
    Cs = [1e-6, 0.01, 0.1, 1.0, 100.0]
    solutions = one_norm_grid(X, y, Cs, free_bias=free_bias, interior=interior)
    sparse = one_norm_grid(sp.csr_matrix(X), y, Cs, free_bias=free_bias, interior=interior)
    for C, solution, same in zip(Cs, solutions, sparse, strict=True):
        problem = Problem(
            y=y, C=C, loss=get_loss("hinge"), X=X, regulariser="l1",
            intercept="free" if free_bias else 1.0,
        )  # fmt: skip
        optimum = solve_linear_program(problem)
        value = problem.objective(solution.coef, solution.intercept)
        assert value == pytest.approx(solution.objective, rel=1e-12)
        accuracy = 1e-5 if interior else 1e-9
        assert value == pytest.approx(optimum, rel=accuracy)
        assert abs(solution.gap) <= accuracy
        assert same.objective == pytest.approx(optimum, rel=accuracy)


def test_bias_feature_of_the_paper_stays_one_as_with_liblinear():
    X, y = small(1)
    models = protocol.walk_models(X, y, 0.5, 3, Grid([0.5], (3,), "feature", tol=1e-9))
    scale = np.ones(X.shape[1])
    for model in models:
        peer = LinearSVC(C=0.5, loss="hinge", tol=1e-10, max_iter=10**6, random_state=0)
        peer.fit(X * scale, y)
        np.testing.assert_allclose(model.coef, scale * peer.coef_[0], atol=2e-4)
        assert model.intercept == pytest.approx(peer.intercept_[0], abs=2e-4)
        scale = np.sqrt(np.abs(model.coef))
    reweighted = protocol.walk_models(X, y, 0.5, 3, Grid([0.5], (3,), "reweighted", tol=1e-9))
    assert abs(reweighted[2].intercept - models[2].intercept) > 1e-3


def test_ties_go_to_the_rounded_down_median():
    assert protocol.chosen([3, 1, 1, 2, 1, 1]) == 2
    assert protocol.chosen([1, 1, 1]) == 1
    assert protocol.chosen([2, 0.5, 3]) == 1


def test_zero_scores_and_tiny_weights_are_half_right():
    X, y = np.array([[1.0], [-1.0], [0.0], [2.0]]), np.array([1.0, -1.0, 1.0, -1.0])
    assert protocol.n_errors(Model(np.array([1.0]), 0.0), X, y) == 1.5
    tiny = Model(np.array([1e-5]), 0.0)
    assert protocol.n_errors(tiny, X, y) == 1.5
    assert protocol.n_errors(tiny, X, y, least_norm=protocol.TINY) == 2.0


def test_halves_are_a_partition_with_both_classes():
    y = np.r_[np.ones(9), -np.ones(4)]
    for seed in range(20):
        train, test = protocol.random_half(y, seed)
        assert sorted([*train, *test]) == list(range(13))
        assert len(train) == 6
        assert np.sum(y[train] < 0) >= 2


def test_sparse_and_dense_data_give_the_same_models():
    X, y = small(2)
    X[np.abs(X) < 0.7] = 0
    X = np.hstack([X, np.zeros((len(y), 2))])
    grid = Grid([0.1, 1.0], (1, 2), "free", tol=1e-8)
    dense, sparse = (protocol.fit_grid(A, y, grid) for A in (X, sp.csr_array(X)))
    for name, models in dense.items():
        for one, other in zip(models, sparse[name], strict=True):
            np.testing.assert_allclose(one.coef, other.coef, atol=1e-3)


def test_experiments_are_kept_and_not_done_again(data_folder, monkeypatch, capsys):
    monkeypatch.setattr(walk, "FIGURE_2_CS", [0.1, 1.0])
    monkeypatch.setattr(walk, "OTHER_CS", [0.01, 1.0])
    path = data_folder / "results.json"
    store = walk.Store(path)
    rows = ["sonar", "srbct"]
    assert len(list(walk.table2(store, rows, 1, "feature"))) == 1
    assert "skipped srbct" in capsys.readouterr().out
    again = walk.Store(path)
    assert len(list(walk.table2(again, ["sonar"], 2, "feature"))) == 1
    assert len(list(walk.figure2(again, ["sonar"], 5))) == 2
    assert not list(walk.figure2(walk.Store(path), ["sonar"], 5))
    assert len(list(walk.figure3(again, [2], 1))) == 1
    for value in again.content["table2"].values():
        assert set(value["accuracy"]) == set(walk_report.METHODS)
        assert all(0.4 < accuracy <= 1 for accuracy in value["accuracy"].values())
    curves = walk_report.excesses(again.content["figure2"], "plain")["sonar"]
    assert np.all(curves > -1e-6)
    assert np.all(np.diff(curves) < 2e-6)
    page = "<!-- papers: table2 -->\n<!-- end -->\n<!-- papers: figure3 -->\n<!-- end -->"
    text = filled(page, again.content, walk_report.MAKERS)
    assert "73.3±0.7" in text
    assert "ours, bias feature of 1 | 2 " in text
    assert filled(text, again.content, walk_report.MAKERS) == text
    walk_report.draw_figure3(again.content["figure3"], data_folder / "figure3.png")
    assert (data_folder / "figure3.png").stat().st_size > 5000


def test_summaries_are_the_papers_four_curves():
    curves = {
        "a": np.array([[4.0, 1.0], [9.0, 0.5]]),
        "b": np.array([[1.0, 0.1], [2.0, 0.2]]),
    }
    found = walk_report.summaries(curves)
    np.testing.assert_allclose(found["worst case"], [4.0, 1.0])
    np.testing.assert_allclose(found["mean"], [3.0, 0.6])
    np.testing.assert_allclose(found["true mean"], [4.0, 0.45])
    np.testing.assert_allclose(found["true median"], [3.0, 0.35])


def test_both_sides_of_the_benchmark_reach_the_gap():
    [row] = walk_benchmark.main(["--quick", "--repeats", "1", "--only", "ten rounds, C=0.01"])
    ours, theirs = row.details["ours"], row.details["liblinear"]
    assert ours["gap"] <= walk_benchmark.GAP
    assert -1e-9 <= theirs["gap"] <= walk_benchmark.GAP
    assert ours["objective"] == pytest.approx(theirs["objective"], rel=1e-2)
    assert row.ratio == theirs["cpu"] / ours["cpu"]
