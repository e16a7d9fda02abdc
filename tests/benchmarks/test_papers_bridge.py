"""The bridge's experiments: the solvers do solve, the rough points are what they are said to be."""

import json

import numpy as np
import pytest

from anynorm.kernels.gram import Gram
from anynorm.losses import get_loss
from anynorm.problem import Problem
from anynorm.solvers.kernel import solve_kernel
from benchmarks.generators import planted_margin
from benchmarks.papers import bridge, bridge_report, page
from benchmarks.papers.store import Store


@pytest.mark.parametrize("solve", [bridge.by_lars, bridge.in_ball])
def test_lasso_solvers_meet_the_conditions_of_optimality(solve):
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(20, 8)), rng.normal(size=20)
    x = solve(A, b, 0.5)
    check_optimal(A, b, x, 0.5, 1e-6)


def test_the_penalised_solver_finds_the_radius():
    rng = np.random.default_rng(1)
    A, b = rng.normal(size=(20, 8)), rng.normal(size=20)
    x = bridge.by_penalty("scikit-learn Lasso", A, b, 0.5)
    check_optimal(A, b, x, 0.5, 1e-5)


def check_optimal(A, b, x, radius, tol):
    """On the sphere, and every column in use as correlated with the residual as any is."""
    assert np.abs(x).sum() == pytest.approx(radius, rel=tol)
    correlation = A.T @ (b - A @ x)
    used = np.abs(x) > tol
    most = np.abs(correlation).max()
    np.testing.assert_allclose(correlation[used] * np.sign(x[used]), most, rtol=10 * tol)


def test_the_least_radius_reaches_b():
    rng = np.random.default_rng(2)
    A, b = rng.normal(size=(5, 9)), rng.normal(size=5)
    radius = bridge.exact_radius(A, b)
    for share, reached in ((1.001, True), (0.99, False)):
        residual = A @ bridge.in_ball(A, b, share * radius) - b
        assert (np.linalg.norm(residual) < 1e-4) == reached


def test_planted_points_have_the_margin():
    A = planted_margin(200, bridge.MARGIN, seed=0).astype(float)
    np.testing.assert_allclose(np.linalg.norm(A, axis=0), 1.0, atol=1e-6)
    np.testing.assert_allclose(A[0], bridge.MARGIN)
    assert np.sum(A[1] < 0) == 2
    assert (A.mean(axis=1) @ A).min() < 0


@pytest.mark.parametrize("name", bridge.SCREEN_LOSSES)
def test_shrunk_duals_have_the_gap(name):
    X, y = bridge.cancer(80)
    problem = Problem(y=y, C=1.0, loss=get_loss(name), gram=Gram.rbf(X, 1 / 30))
    dual = solve_kernel(problem, tol=1e-9).dual
    shares = []
    for gap in (1e-2, 1e-5):
        report = bridge.with_gap(problem, dual, gap)
        assert report.gap == pytest.approx(gap, rel=0.01)
        shares.append(np.mean(~np.isnan(report.dual_values)))
    assert shares[0] < shares[1]


def test_quick_run_is_kept_and_makes_tables_and_figures(tmp_path, capsys):
    results = tmp_path / "results.json"
    bridge.main(["--quick", "--results", str(results)])
    assert "nearest in the 1-norm" in capsys.readouterr().out
    content = json.loads(results.read_text())
    assert set(content) == set(bridge.PARTS)
    for value in content["svm"].values():
        assert value["errors"][bridge.LARS] < 1e-6
        assert value["errors"][bridge.OURS] < 1e-6
    for key, value in content["lasso"].items():
        assert value["errors"]["min_norm_point"] < 1e-9, key
    for key, value in content["sublinear"].items():
        eps = float(key.split("/")[1])
        assert value["margin"] >= bridge.MARGIN - eps > value["mean"]
        assert value["share"] <= 1
    for value in content["screening"].values():
        assert value["mistakes"] == 0
        assert max(value["shares"].values()) <= value["limit"] + 1e-9
    store = Store(results)
    assert not list(bridge.sublinear(store, bridge.SIZES[:1], 1))
    blocks = "".join(f"<!-- papers: {part} -->\n<!-- end -->\n" for part in bridge.PARTS)
    text = page.filled(blocks, content, bridge_report.MAKERS)
    assert all(word in text for word in ("LARS", "libsvm", "Laplacian", "squared hinge"))
    page.draw(content, bridge_report.DRAWINGS, tmp_path)
    for name in ("errors", "signal", "sublinear", "screening"):
        assert (tmp_path / f"bridge-{name}.png").stat().st_size > 5000
