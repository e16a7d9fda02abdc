"""What was found when the command was tried on forty messy tables."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anynorm import SparseSVCCV, sparse_svm_path
from anynorm.app.cli.app import app
from anynorm.app.job import FitOptions, grid_learning, run_fit
from anynorm.app.job.learning import edge_words
from anynorm.app.job.reporting import content_of
from anynorm.app.job.results import entries
from anynorm.app.tables import Table


def invoke(*arguments, code=0):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


def frame(n=40, seed=0):
    rng = np.random.default_rng(seed)
    ill = np.tile([True, False], n // 2)
    table = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    table["a"] += 2.0 * ill
    return table.assign(status=np.where(ill, "ill", "well"))


@pytest.fixture
def data(tmp_path):
    frame().to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


def test_the_training_file_is_no_test_file(data, tmp_path):
    """--test on the file that was learnt from was accepted silently."""
    said = invoke("fit", data, "-t", "status", "--test", data, "-o", tmp_path / "o", code=2).stderr
    assert "is the file to learn from: its error would be far too good" in said
    assert not (tmp_path / "o").exists()


def test_test_rows_that_were_learnt_from_are_counted(data, tmp_path):
    mixed = pd.concat([frame().iloc[:4], frame(seed=1)])
    mixed.to_csv(tmp_path / "test.csv", index=False)
    found = invoke(
        "fit", data, "-t", "status", "--test", tmp_path / "test.csv", "-o", tmp_path / "o",
        "--cv", 3, "--json",
    )  # fmt: skip
    notes = json.loads(found.stdout)["notes"]
    assert any(note.startswith("4 of 44 test rows are the same as rows to learn") for note in notes)


def test_results_of_an_earlier_fit_are_replaced_and_that_is_said(data, tmp_path):
    """An earlier model was overwritten without a word, beside its test predictions."""
    out = tmp_path / "o"
    frame(seed=1).to_csv(tmp_path / "test.csv", index=False)
    first = invoke("fit", data, "-t", "status", "--test", tmp_path / "test.csv", "-o", out)
    assert "earlier fit" not in first.stdout
    again = invoke("fit", data, "-t", "status", "--cv", 3, "-o", out)
    assert (
        f"{out} had the results of an earlier fit: replaced; test_predictions.csv is still the one "
        "of before." in again.stdout
    )
    found = json.loads(invoke("fit", data, "-t", "status", "--cv", 3, "-o", out, "--json").stdout)
    assert len(found["replaced"]) == 4


def test_columns_with_commas_between_them_are_told_apart(data, tmp_path):
    """`--keep a,b` said that there is no such column."""
    said = invoke("fit", data, "-t", "status", "--keep", "a,b", "-o", tmp_path / "o", code=2).stderr
    assert "--keep takes one column, or a pattern, and can be repeated: --keep a --keep b" in said
    said = invoke("fit", data, "-t", "status", "--keep", "a,z", "-o", tmp_path / "o", code=2).stderr
    assert "--keep a,z: there is no such column." in said


def test_folders_and_unknown_models_are_named_as_what_they_are(data, tmp_path):
    """A folder was "the system says: is a directory", --models was told as --model."""
    said = invoke("predict", tmp_path, data, code=2).stderr
    assert f"{tmp_path}: this is a folder; give a model file." in said.replace("\n", " ")
    said = invoke("compare", data, "-t", "status", "--models", "sparse,svm", code=2).stderr
    assert "--models takes some of sparse, reweighted, " in said
    assert "got svm." in said


def test_s_is_the_size_of_the_weights(data, tmp_path):
    """Where --max-features ended the path before the chosen s, that s was told, not the model's."""
    found = json.loads(
        invoke(
            "fit", data, "-t", "status", "--cv", 3, "--max-features", 1, "-o", tmp_path / "o",
            "--json",
        ).stdout
    )  # fmt: skip
    size = sum(abs(feature["weight"]) for feature in found["chosen_features"])
    assert found["choice"]["s"] == pytest.approx(size)


def test_no_number_of_the_system_in_an_error(data, tmp_path, monkeypatch):
    """A full disk said "[Errno 28] No space left on device"."""
    from anynorm.app.job import writing

    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path / "o"))

    monkeypatch.setattr(writing, "feature_table", full)
    said = invoke("fit", data, "-t", "status", "--cv", 3, "-o", tmp_path / "o", code=2).stderr
    assert "Errno" not in said
    assert "the system says: no space left on device." in said


def test_a_choice_at_the_edge_of_a_grid_is_noted(data, tmp_path, monkeypatch):
    monkeypatch.setattr(grid_learning, "_LINEAR_CS", (0.1, 1.0))  # whichever is taken is an end
    found = json.loads(
        invoke(
            "fit", data, "-t", "status", "--model", "linear", "--cv", 3, "-o", tmp_path / "o",
            "--json",
        ).stdout
    )  # fmt: skip
    C = found["choice"]["C"]
    which = "smallest" if C == 0.1 else "largest"
    said = f"C = {C:.4g} is the {which} that was tried; a better one may lie beyond."
    assert said in found["notes"]
    monkeypatch.setattr(grid_learning, "_WIDTHS", (0.5, 1.0))
    kernel = "fit", data, "-t", "status", "--model", "least-norm", "--cv", 3, "--json"
    found = json.loads(invoke(*kernel, "-o", tmp_path / "k").stdout)
    gamma = found["choice"]["gamma"]  # it was told as a multiple of "scale"
    assert any(f"gamma = {gamma:.4g} is the " in note for note in found["notes"])
    assert edge_words({"C": [1, 10, 100]}, {"C": 10}) == ""
    assert edge_words({"C": [1.0]}, {"C": 1.0}) == ""


def test_hopeless_settings_of_a_kernel_are_no_lack_of_time(tmp_path):
    """`--model kernel` said "not converged", with exit code 3, where settings were left out."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((45, 10))
    X[np.arange(45), np.arange(45) % 2] += 4.0
    y = np.array(["ill", "well"])[np.arange(45) % 2]
    pd.DataFrame(X).add_prefix("x").assign(y=y).to_csv(tmp_path / "d.csv", index=False)
    found = invoke(
        "fit", tmp_path / "d.csv", "-t", "y", "--model", "kernel", "--cv", 3, "-o",
        tmp_path / "o", "--json",
    )  # fmt: skip
    assert json.loads(found.stdout)["converged"]


def test_out_of_fold_means_one_thing_in_a_report(tmp_path):
    """The header had the nested error, the matrix and the AUC those of the folds that chose."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 30))
    y = np.where(X[:, 0] + 0.8 * rng.normal(size=60) > 0, "ill", "well")
    table = Table(
        pd.DataFrame(X).add_prefix("x"), y, np.arange(60).astype(str), None, None, "d.csv"
    )
    found = run_fit(table, FitOptions(cv=3))
    content = content_of(found)
    np.testing.assert_array_equal(content.evaluation.scores, found.oof.scores)
    wrong = (np.asarray(content.evaluation.scores) > 0) != (found.oof.y == 1)
    assert wrong.mean() == found.errors[0].value
    assert found.judged_by == content.evaluation.judged_by
    assert not np.array_equal(found.learned.held_out, found.oof.scores)
    other = Table(table.features + 0.01, y, table.ids, None, None, "other.csv")
    tested = run_fit(table, FitOptions(cv=3), test=other)
    assert content_of(tested).evaluation.judged_by == "60 rows of other.csv"
    np.testing.assert_array_equal(content_of(tested).evaluation.scores, tested.test.scores)


def test_fewest_has_no_more_features_than_one_se(tmp_path):
    """`fewest` picked 25 features where `one_se` picked 12: the tolerance was below an error."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 40))
    y = (X[:, 0] + X[:, 1] + rng.normal(size=60) > 0).astype(int)
    used = {}
    for rule in ("one_se", "fewest"):
        model = SparseSVCCV(rule=rule).fit(X, y)
        used[rule] = model.cv_results_["mean_n_features"][model.best_index_]
    assert used["fewest"] <= used["one_se"]
    strict = SparseSVCCV(rule="fewest", score_tolerance=0.01).fit(X, y)
    assert strict.cv_results_["mean_n_features"][strict.best_index_] > used["one_se"]


def test_features_that_leave_and_return_enter_where_they_last_did():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 12))
    path = sparse_svm_path(X, (X[:, 0] + rng.normal(size=40) > 0).astype(int))
    knots = path.knots
    used = knots.coefs.toarray() != 0
    starts = used & ~np.vstack([np.zeros((1, 12), dtype=bool), used[:-1]])
    assert (starts.sum(axis=0) > 1).any()
    s = float(knots.s[-1])
    for j, entered in enumerate(entries(path, s)):
        if used[-1, j]:
            assert entered == knots.s[np.flatnonzero(starts[:, j])[-1] - 1]


def test_the_console_shows_features_of_every_class(tmp_path):
    rng = np.random.default_rng(0)
    kind = np.arange(90) % 3
    X = rng.normal(size=(90, 40))
    for k in range(3):
        X[kind == k, k] += 2.0
    table = pd.DataFrame(X).add_prefix("x").assign(y=np.array(["a", "b", "c"])[kind])
    table.to_csv(tmp_path / "d.csv", index=False)
    said = invoke("fit", tmp_path / "d.csv", "-t", "y", "--cv", 3, "-o", tmp_path / "o").stdout
    shown = [line.split()[:2] for line in said.splitlines() if line[:2] in ("a ", "b ", "c ")]
    assert {"a", "b", "c"} == {name for name, _ in shown}
    assert ["c", "x2"] in shown
