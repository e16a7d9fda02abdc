"""The kernel papers' experiments: their SMO is right, weights stand for rows, the sums add."""

import json

import numpy as np
import pytest
from sklearn.svm import SVR

from anynorm import BudgetSVC, LeastNormSVC
from anynorm.kernels.gram import Gram
from benchmarks.papers import kernel, kernel_report, page
from benchmarks.papers.pairwise import EPSILON, pairwise
from benchmarks.papers.store import Store


def clouds(n, seed):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2 == 0, 1.0, -1.0)
    return rng.standard_normal((n, 3)) + 0.7 * y[:, None], y


@pytest.fixture
def sets(tmp_path, monkeypatch):
    for name in kernel.IDA_SETS[:2]:
        X, y = clouds(60, 1)
        order = np.random.default_rng(2).permuted(np.tile(np.arange(60), (3, 1)), axis=1)
        np.savez(
            tmp_path / f"{name}.npz", X=X.round(), y=y, train_idx=order[:, :40],
            test_idx=order[:, 40:],
        )  # fmt: skip
    rng = np.random.default_rng(3)
    digit = rng.integers(0, 10, 600)
    pixels = rng.integers(0, 60, (600, 20)) + 150 * (np.arange(20) % 10 == digit[:, None])
    np.savez(tmp_path / "mnist.npz", X=pixels.astype(np.uint8), y=digit)
    monkeypatch.setenv("ANYNORM_DATA", str(tmp_path))
    kernel.mnist.cache_clear()
    yield tmp_path
    kernel.mnist.cache_clear()


@pytest.mark.parametrize("second_order", [False, True])
def test_paper_smo_solves_the_ls_system(second_order):
    X, y = clouds(50, 4)
    K, C = Gram.rbf(X, 0.3).block(slice(None), slice(None)), 7.0
    found = pairwise(K + np.eye(50) / C, y, second_order=second_order, epsilon=1e-10)
    system = np.block(
        [[K + np.eye(50) / C, np.ones((50, 1))], [np.ones((1, 50)), np.zeros((1, 1))]]
    )
    solution = np.linalg.solve(system, np.append(y, 0.0))
    np.testing.assert_allclose(found.beta, solution[:50], atol=1e-7)
    assert found.intercept == pytest.approx(solution[50], abs=1e-7)


@pytest.mark.parametrize("second_order", [False, True])
def test_paper_smo_finds_the_optimum_that_libsvm_finds(second_order):
    X, y = clouds(60, 5)
    K = Gram.rbf(X, 0.3).block(slice(None), slice(None))
    found = pairwise(K, y, 2.0, second_order=second_order, epsilon=1e-8)
    model = SVR(C=2.0, epsilon=0.0, kernel="precomputed", tol=1e-8).fit(K, y)
    beta = np.zeros(60)
    beta[model.support_] = model.dual_coef_[0]
    values = [0.5 * b @ K @ b - y @ b for b in (found.beta, beta)]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert np.abs(found.beta).max() <= 2.0
    assert found.beta.sum() == pytest.approx(0, abs=1e-9)


def test_stop_of_the_paper_is_on_the_largest_violation():
    X, y = clouds(40, 6)
    K = Gram.rbf(X, 0.3).block(slice(None), slice(None))
    found = pairwise(K, y, 3.0)
    gradient = K @ found.beta - y
    falls, rises = gradient[found.beta > -3.0].max(), gradient[found.beta < 3.0].min()
    assert falls - rises <= EPSILON
    assert 0 < found.n_iter < pairwise(K, y, 3.0, epsilon=1e-9).n_iter


def test_weights_stand_for_equal_rows():
    X, y = clouds(80, 7)
    X = X.round()
    rows, labels, counts = kernel.collapsed(X, y)
    assert len(rows) < 80
    assert counts.sum() == 80
    for method in kernel.METHODS:
        repeated = kernel.classifier(method, 2.0, gamma=0.3, tol=1e-8).fit(X, y)
        weighted = kernel.classifier(method, 2.0, gamma=0.3, tol=1e-8)
        weighted.fit(rows, labels, sample_weight=counts)
        np.testing.assert_allclose(
            weighted.decision_function(X), repeated.decision_function(X), atol=1e-3
        )


def test_papers_C_of_the_ls_svm_is_twice_ours():
    X, y = clouds(30, 8)
    K, C = Gram.rbf(X, 0.3).block(slice(None), slice(None)), 5.0
    model = kernel.classifier("LS", C, gamma=0.3, tol=1e-10).fit(X, y)
    found = pairwise(K + np.eye(30) / C, y, epsilon=1e-10)
    np.testing.assert_allclose(kernel.signed_dual(model, 30), found.beta, atol=1e-4)


def test_planes_turn_by_the_angle_between_them():
    assert kernel.turned([1.0, 0.0, 3.0], [2.0, 2.0, 0.0]) == pytest.approx(45)
    X, y = np.array([[2.0, 0.0], [-2.0, 0.0]]), np.array([1.0, -1.0])
    np.testing.assert_allclose(kernel.plane("Least 1-norm", X, y), [0.5, 0, 0], atol=1e-6)


def test_threshold_has_the_fewest_errors():
    rng = np.random.default_rng(9)
    for _ in range(50):
        scores = rng.integers(-4, 5, 12) / 2
        y = rng.choice([-1.0, 1.0], 12)
        found = np.sum(y * (scores + kernel.threshold(scores, y)) <= 0)
        cuts = np.arange(-4.75, 5, 0.25)
        assert found == min(np.sum(y * (scores - cut) <= 0) for cut in cuts)


def test_pruning_to_all_weights_is_the_model_itself(sets):
    problem = kernel.digits(0, 80, 100)
    assert len(problem.positive) == 5
    model = BudgetSVC(20, C=0.5, kernel="precomputed").fit(problem.K, problem.y)
    kept, again = kernel.pruned_errors(problem, model, [20, 80])
    predicted = model.predict(problem.K_test)
    assert kept[-1] == np.sum(predicted != problem.y_test) == kernel.fitted_errors(problem, model)
    assert len(kept) == len(again) == 2


def test_sums_over_problems_go_on_where_they_were(sets):
    stores = [Store(sets / f"{k}.json") for k in range(2)]
    list(kernel.summed(stores[0], 2, [10, 40], (40, 50)))
    for repeats in (1, 2):
        list(kernel.summed(Store(sets / "1.json"), repeats, [10, 40], (40, 50)))
    first, second = (json.loads((sets / f"{k}.json").read_text()) for k in range(2))
    assert first == second
    assert first["budget"]["sums"]["done"] == 2


def test_quick_run_is_kept_and_makes_the_tables(sets, capsys):
    results = sets / "results.json"
    kernel.main(["--quick", "--repeats", "1", "--results", str(results)])
    output = capsys.readouterr().out
    assert "paper's SMO" in output
    assert "71.4±9.8" in output
    content = json.loads(results.read_text())
    assert set(content) == set(kernel.PARTS)
    for value in content["table2"].values():
        for method in kernel.METHODS:
            errors = {row["error"] for row in value[method].values()}
            assert max(errors) - min(errors) <= 0.1
            assert value[method]["ours"]["gap"] <= 1e-4
    for found in content["counts"].values():
        for name in ("strict", "strict, the old way", "Nystroem + LinearSVC", "random subset"):
            used = found[name]["n_support"]
            assert all(n <= B for n, B in zip(used, kernel.QUICK_COUNTS, strict=True))
        assert len(set(found["no budget"]["errors"])) == 1
    makers = {"table2": kernel_report.table2, "counts": kernel_report.counts}
    template = "<!-- papers: table2 -->\n<!-- end -->\n<!-- papers: counts -->\n<!-- end -->"
    filled = page.filled(template, content, makers)
    assert "ida_heart" in filled
    assert "dictionary + 1-norm" in filled
    kernel_report.draw_outliers(content["outliers"], sets / "one.png")
    kernel_report.draw_budget(content["budget"], sets / "two.png")
    kernel_report.draw_counts(content["counts"], sets / "three.png")
    for name in ("one", "two", "three"):
        assert (sets / f"{name}.png").stat().st_size > 5000


def test_least_norm_uses_the_rows_that_the_paper_counts():
    X, y = clouds(40, 10)
    model = LeastNormSVC(C=1.0, gamma=0.3, tol=1e-8).fit(X, y)
    K = Gram.rbf(X, 0.3).block(slice(None), slice(None))
    found = pairwise(K, y, 1.0, epsilon=1e-9)
    assert len(model.support_) == np.count_nonzero(np.abs(found.beta) > 1e-6)


def test_the_fewest_are_those_within_a_standard_error_of_no_budget():
    plain = {"errors": [10, 10], "n_support": [9, 9]}
    results = {
        str(k): {
            "counts": [2, 5], "n_test": 100, "no budget": plain,
            "strict": {"errors": [12 + k, 10 + k % 2], "n_support": [2, 5]},
        }
        for k in range(4)
    }  # fmt: skip
    error, above, used = kernel_report.means(results, "strict")
    np.testing.assert_allclose(error, [0.135, 0.105])
    np.testing.assert_allclose(above[0], [0.035, 0.005])
    np.testing.assert_allclose(used, [2, 5])
    lines = kernel_report.counts(results).splitlines()
    assert [line.split("|")[-2].strip() for line in lines if "strict" in line] == ["none"]
