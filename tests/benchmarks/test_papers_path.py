"""The 1-norm SVM paper's experiments: paths verified, errors exact, the procedure as described."""

import json

import numpy as np
import pytest

from anynorm import sparse_svm_path
from anynorm.datasets import make_skin
from benchmarks.papers import counting, page, path, path_report
from benchmarks.papers.store import Store
from tests.references.linear_program import solve_linear_program


@pytest.fixture
def genes(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    y = np.arange(72) % 2
    X = rng.standard_normal((72, 40))
    X[:, :3] += 1.5 * y[:, None]
    np.savez(tmp_path / "leukemia_7129.npz", X=100 * X + 300, y=y, train_idx=np.arange(38),
             test_idx=np.arange(38, 72))  # fmt: skip
    np.savez(tmp_path / "srbct.npz", X=X, y=y)
    monkeypatch.setenv("ANYNORM_DATA", str(tmp_path))
    return tmp_path


def test_errors_along_the_path_are_those_of_the_classifiers():
    (X, y), (X_test, y_test) = path.skin(2, 3)
    solution = path.verified_path(X, y)
    s, errors = path.errors_along(solution, X_test, y_test)
    edges = np.append(s, solution.s[-1])
    middles = (edges[:-1] + edges[1:]) / 2
    for k in range(0, len(middles), 20):
        if edges[k + 1] - edges[k] > 1e-9:
            coef, intercept = solution.coef_at(s=middles[k])
            wrong = np.mean(np.sign(X_test @ coef + intercept) != y_test)
            assert errors[k] == pytest.approx(wrong)
    assert len(np.unique(s)) == len(s)


@pytest.mark.parametrize("noise", [0, 2])
def test_the_papers_procedure_goes_from_joint_to_joint_of_the_path(noise):
    X, y = make_skin(60, n_noise=noise, dictionary=True, random_state=4)
    solution = sparse_svm_path(X, y)
    coefs = solution.coefs.toarray()
    for k in range(1, solution.n_joints):
        vertex = counting.Vertex(X, y, coefs[k], solution.intercepts[k])
        if len(vertex.E) == len(vertex.V) + 1:
            break
    while moves := vertex.moves(complete=True):
        vertex.go(min(moves))
        s = np.abs(vertex.coef).sum()
        coef, intercept = solution.coef_at(s=s)
        np.testing.assert_allclose(vertex.coef, coef, atol=1e-6)
        loss, other = (  # the bias need not be unique, its loss is
            np.maximum(0, 1 - y * (X @ coef + b)).sum() for b in (vertex.bias, intercept)
        )
        assert loss == pytest.approx(other, abs=1e-6)
    assert s == pytest.approx(solution.s[-1])
    events = counting.procedure_events(solution, X, y, complete=True)
    assert abs(events - len(solution.knots.s)) <= 10


def test_the_formula_as_printed_leaves_the_path():
    X, y = make_skin(60, n_noise=2, dictionary=True, random_state=4)
    solution = sparse_svm_path(X, y)
    exact = counting.procedure_events(solution, X, y, complete=True)
    assert counting.procedure_events(solution, X, y, complete=False) > exact


def test_genes_are_halved_to_one():
    assert path.sizes_of(9) == [9, 4, 2, 1]
    rng = np.random.default_rng(1)
    y = np.where(np.arange(30) % 3 == 0, 1.0, -1.0)
    X = rng.standard_normal((30, 9))
    X[:, 5] += 3 * y
    for rank in (path.univariate_sizes, path.elimination_sizes):
        kept = rank(X, y)
        assert [len(genes) for genes in kept] == [9, 4, 2, 1]
        assert kept[-1].tolist() == [5]


def test_hybrid_is_the_weighted_one_norm_svm():
    from anynorm import LinearSVC
    from anynorm.losses import get_loss
    from anynorm.problem import Problem

    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 8))
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(30) > 0, 1.0, -1.0)
    first = np.abs(LinearSVC(0.5, tol=1e-3).fit(X, y).coef_[0])
    for C, model in zip(path.GENE_CS, path.hybrid_grid(X, y, 0.5)[path.HYBRID], strict=True):
        if C < 1e-3:  # the reference is not exact for such a small objective
            continue
        problem = Problem(
            y=y, C=C, loss=get_loss("hinge"), X=X, regulariser="l1",
            penalty_weights=first.max() / first,
        )  # fmt: skip
        optimum = solve_linear_program(problem)
        assert problem.objective(model.coef, model.intercept) == pytest.approx(optimum, rel=1e-8)


def test_quick_run_is_kept_and_makes_the_tables(genes, monkeypatch, capsys):
    monkeypatch.setattr(path, "TWO_NORM_CS", np.array([0.1, 1.0]))
    results = genes / "results.json"
    arguments = ["--quick", "--repeats", "1", "--results", str(results)]
    path.main(arguments)
    output = capsys.readouterr().out
    assert "recursive elimination" in output
    assert "94(13)" in output
    content = json.loads(results.read_text())
    assert set(content) == set(path.PARTS)
    for value in content["table1"].values():
        assert value["gap"] <= 1e-9
        assert value["joints"] <= value["knots"] <= value["pivots"] + 2
        assert value["errors"]["1-norm"] <= value["errors"]["end of the path"]
    [row] = content["table2"].values()
    assert row["1-norm"]["genes"] <= 40
    assert row["1-norm"]["test"] <= 10
    assert not list(path.table1(Store(results), (0,), 1))
    template = "<!-- papers: table1 -->\n<!-- end -->\n<!-- papers: hybrid -->\n<!-- end -->"
    text = page.filled(
        template, content, {"table1": path_report.table1, "hybrid": path_report.hybrid}
    )
    assert "srbct" in text
    path_report.draw_figure1(content["figure1"], genes / "one.png")
    path_report.draw_figure2(content["figure2"], content["table1"], genes / "two.png")
    for name in ("one", "two"):
        assert (genes / f"{name}.png").stat().st_size > 5000
