"""Predictions of model files: by name, whatever else the file holds, with the error where known."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from anynorm import LinearSVC, save_model, sparse_svm_path
from anynorm.app.cli.app import app
from anynorm.app.job.predict import run_predict
from anynorm.app.tables import Preparation, read_table
from tests.app.tables.files import message, written


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    n = 60
    sick = np.arange(n) % 2 == 1
    return pd.DataFrame(
        {
            "who": [f"p{k}" for k in range(n)],
            "dose": rng.normal(size=n) + 2 * sick,
            "code": np.where(rng.random(n) < 0.5, "01", "2"),
            "organ": rng.choice(["eye", "lung", "skin"], size=n),
            "state": np.where(sick, "sick", "fine"),
        }
    )


@pytest.fixture(scope="module")
def model(frame):
    features = frame[["dose", "code", "organ"]]
    return make_pipeline(Preparation(), LinearSVC(C=0.1)).fit(features, frame["state"])


@pytest.fixture
def folder(tmp_path, frame, model):
    """A folder with a model file and the data it is from."""
    metadata = {"target": "state", "id": "who", "scoring": "auc"}
    save_model(model, tmp_path / "m.anynorm", metadata=metadata)
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path


def test_columns_are_found_by_name(folder, frame, model):
    shuffled = frame[["state", "organ", "dose", "code", "who"]].assign(other=1)
    shuffled.to_csv(folder / "new.csv", index=False)
    found = run_predict(folder / "m.anynorm", folder / "new.csv")
    features = frame[["dose", "code", "organ"]]
    assert found.table["id"].tolist() == frame["who"].tolist()
    assert found.table["predicted"].tolist() == model.predict(features).tolist()
    np.testing.assert_allclose(
        found.table["decision_value"], model.decision_function(features), rtol=1e-14
    )
    assert found.notes == ["1 column that the model does not use: 'other'."]


def test_error_where_the_target_is_there(folder, frame, model):
    found = run_predict(folder / "m.anynorm", folder / "data.csv")
    predicted = model.predict(frame[["dose", "code", "organ"]])
    assert [each.measure for each in found.errors] == ["1 - AUC", "error"]
    assert found.errors[1].value == pytest.approx((predicted != frame["state"]).mean())
    want = pd.crosstab(frame["state"], predicted)
    np.testing.assert_array_equal(found.confusion, want)


def test_the_rows_that_the_model_learnt_from_are_recognised(folder, frame, model):
    metadata = {"target": "state", "id": "who", "file": "data.csv", "rows": 60}
    save_model(model, folder / "m.anynorm", metadata=metadata)
    notes = run_predict(folder / "m.anynorm", folder / "data.csv").notes
    assert "if it is this one, the error is too good" in notes[-1]
    frame.iloc[1:].to_csv(folder / "data.csv", index=False)
    assert run_predict(folder / "m.anynorm", folder / "data.csv").notes == []


def test_no_target_no_error(folder, frame):
    frame.drop(columns=["state", "who"]).to_csv(folder / "new.csv", index=False)
    found = run_predict(folder / "m.anynorm", folder / "new.csv")
    assert found.errors == []
    assert list(found.table.columns) == ["id", "predicted", "decision_value"]
    assert found.table["id"].tolist()[:2] == ["1", "2"]


def test_labels_that_are_missing_or_not_known(folder, frame):
    state = frame["state"].where(frame.index >= 2, ["", "dead"] + [""] * 58)
    frame.assign(state=state).to_csv(folder / "new.csv", index=False)
    found = run_predict(folder / "m.anynorm", folder / "new.csv")
    assert found.errors[1].n_rows == 58
    assert found.notes == [
        "1 row without a label.",
        "1 row with labels that the model does not know ('dead'; it knows 'fine', 'sick'): not in "
        "the error.",
    ]


def test_all_labels_but_the_positive_one_are_one_class(folder, frame):
    y = np.where(frame["state"] == "sick", "sick", "not sick")
    model = make_pipeline(Preparation(), LinearSVC()).fit(frame[["dose"]], y)
    save_model(model, folder / "one.anynorm", metadata={"target": "state"})
    other = frame["state"].where(frame.index != 0, "CLL").where(frame.index != 2, "")
    frame.assign(state=other).to_csv(folder / "new.csv", index=False)
    found = run_predict(folder / "one.anynorm", folder / "new.csv")
    wrong = (found.table["predicted"] != y)[frame.index != 2]
    assert found.errors[0].n_rows == 59
    assert found.errors[0].value == pytest.approx(wrong.mean())


def test_missing_columns_are_named(folder, frame):
    frame.rename(columns={"dose": "Dose"}).drop(columns="organ").to_csv(folder / "new.csv")
    said = message(run_predict, folder / "m.anynorm", folder / "new.csv")
    assert "new.csv: 2 of 3 columns are missing that the model needs: 'dose', 'organ'" in said
    assert "Spelled otherwise: 'Dose' for 'dose'." in said


def test_a_matrix_on_its_side(folder, frame):
    side = frame.set_index("who")[["dose", "code", "organ"]].T
    side.to_csv(folder / "side.csv")
    assert "use --transpose" in message(run_predict, folder / "m.anynorm", folder / "side.csv")
    found = run_predict(folder / "m.anynorm", folder / "side.csv", transpose=True)
    straight = run_predict(folder / "m.anynorm", folder / "data.csv")
    pd.testing.assert_frame_equal(found.table, straight.table.drop(columns="label"))


def test_columns_asked_for_must_be_there(folder):
    for role in ("target", "id"):
        said = message(run_predict, folder / "m.anynorm", folder / "data.csv", **{role: "dosis"})
        assert f"there is no column 'dosis' for --{role}. Did you mean 'dose'?" in said


def test_new_categories_and_gaps_are_said(folder, frame):
    frame.assign(organ="brain", dose=np.nan).to_csv(folder / "new.csv", index=False)
    found = run_predict(folder / "m.anynorm", folder / "new.csv")
    assert found.notes == [
        "Missing numbers became the median of the rows that the model learnt from: "
        "'dose' (60 rows).",
        "'organ' has values that the model does not know, in 60 rows: 'brain'.",
    ]


@pytest.mark.parametrize("named", [True, False])
def test_models_that_were_saved_without_preparation(folder, frame, named):
    X = frame[["dose"]].assign(twice=2 * frame["dose"])
    model = LinearSVC().fit(X if named else X.to_numpy(), frame["state"])
    save_model(model, folder / "bare.anynorm")
    X[X.columns[::-1] if named else X.columns].to_csv(folder / "x.csv", index=False)
    found = run_predict(folder / "bare.anynorm", folder / "x.csv")
    np.testing.assert_allclose(
        found.table["decision_value"], model.decision_function(X if named else X.to_numpy())
    )
    said = message(run_predict, folder / "bare.anynorm", folder / "data.csv")
    assert ("'twice'" if named else "by their order, not by name") in said


def test_sparse_rows_of_three_classes(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3 + 1
    X = (rng.random((45, 6)) < 0.2) + np.eye(6)[y]
    dump_svmlight_file(X, y, str(tmp_path / "a.svm"), zero_based=False)
    table = read_table(tmp_path / "a.svm")
    model = make_pipeline(Preparation(), LinearSVC()).fit(table.features, table.target)
    save_model(model, tmp_path / "m.anynorm")
    dump_svmlight_file(X[:5, :4], y[:5], str(tmp_path / "b.svm"), zero_based=False)
    found = run_predict(tmp_path / "m.anynorm", tmp_path / "b.svm")
    want = model.decision_function(table.features.iloc[:5].named(["1", "2", "3", "4"]))
    got = found.table[[f"decision_value_{k}" for k in (1, 2, 3)]]
    np.testing.assert_allclose(got, want)
    assert found.confusion.shape == (3, 3)
    written(tmp_path, "c.csv", "1,2\n0,1\n")
    assert "the rows are from a table but the model learnt from svmlight" in message(
        run_predict, tmp_path / "m.anynorm", tmp_path / "c.csv"
    )


def run(*arguments):
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_command_writes_the_file_and_prints_the_error(folder):
    code, out, _ = run(folder / "m.anynorm", folder / "data.csv", "-o", folder / "new" / "p.csv")
    assert code == 0
    table = pd.read_csv(folder / "new" / "p.csv")
    assert list(table.columns) == ["id", "label", "predicted", "decision_value"]
    error = (table["label"] != table["predicted"]).mean()
    assert f"{100 * error:.1f} %" in out
    assert "60 rows with labels" in out
    assert "as sick" in out


def test_command_prints_predictions_alone_to_stdout(folder):
    code, out, err = run(folder / "m.anynorm", folder / "data.csv")
    assert code == 0
    assert out.startswith("id,label,predicted,decision_value\np0,fine,")
    assert len(out.splitlines()) == 61
    assert "Predicted" in err
    assert run(folder / "m.anynorm", folder / "data.csv", "-o", folder / "p.csv", "-q")[1:] == (
        "",
        "",
    )


def test_command_prints_json(folder):
    code, out, _ = run(folder / "m.anynorm", folder / "data.csv", "--json")
    values = json.loads(out)
    assert (code, values["rows"], len(values["predictions"])) == (0, 60, 60)
    assert sum(values["predicted"].values()) == 60
    assert [each["measure"] for each in values["errors"]] == ["1 - AUC", "error"]
    assert sum(sum(row.values()) for row in values["confusion"].values()) == 60


def test_command_refuses_bad_input_with_code_2(folder, frame):
    model, data = folder / "m.anynorm", folder / "data.csv"
    for arguments, said in [
        ((folder / "no.anynorm", data), "no.anynorm: there is no such file"),
        ((data, data), "data.csv"),
        ((model, folder / "no.csv"), "no.csv: there is no such file"),
        ((model, data, "-o", data), "is one of the files to read"),
        ((model, data, "--format", "html"), "--format must be one of"),
    ]:
        code, out, err = run(*arguments)
        assert (code, out) == (2, "")
        assert said in err.replace("\n", "")
    save_model(sparse_svm_path(frame[["dose"]], frame["state"]), folder / "path.anynorm")
    code, _, err = run(folder / "path.anynorm", data)
    assert code == 2
    assert "holds a SolutionPath, which predicts no classes" in err
