"""`anynorm predict` asked for all 2,000 columns of a model that uses 25 of them."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from anynorm import SVC, LinearSVC, SparseSVC, load_model, save_model
from anynorm.app.cli.app import app
from anynorm.app.job.narrowing import narrowed
from anynorm.app.job.predict import run_predict
from anynorm.app.tables import Preparation


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 40))).add_prefix("gene")
    frame["organ"] = rng.choice(["eye", "lung", "skin"], size=60)
    frame.loc[3, "gene0"] = np.nan
    kind = np.arange(60) % 3
    frame["gene0"] += 3.0 * (kind == 0)
    frame["gene1"] += 3.0 * (kind == 1)
    return frame.assign(state=np.array(["a", "b", "c"])[kind])


def fitted(frame, classes):
    two = frame if classes == 3 else frame[frame["state"] != "c"]
    model = make_pipeline(Preparation(), SparseSVC(C=0.1))
    return model.fit(two.drop(columns="state"), two["state"]), two


@pytest.mark.parametrize("classes", [2, 3])
def test_new_rows_need_the_columns_with_weight_alone(tmp_path, frame, classes):
    model, rows = fitted(frame, classes)
    save_model(model, tmp_path / "m.anynorm", metadata={"target": "state"})
    used = model[-1].coef_.any(axis=0)
    names = [x for x, u in zip(model[0].get_feature_names_out(), used, strict=True) if u]
    needed = sorted({name.split("=")[0] for name in names})
    assert 0 < len(needed) < 30
    rows[needed].to_csv(tmp_path / "panel.csv", index=False)
    found = run_predict(tmp_path / "m.anynorm", tmp_path / "panel.csv")
    want = model.decision_function(rows.drop(columns="state"))
    got = found.table.filter(like="decision_value").to_numpy()
    np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-12, atol=1e-12)
    assert not any("does not use" in note for note in found.notes)


def test_columns_of_no_weight_are_no_news_but_strangers_are(tmp_path, frame):
    model, rows = fitted(frame, 2)
    save_model(model, tmp_path / "m.anynorm")
    rows.drop(columns="state").assign(other=1).to_csv(tmp_path / "new.csv", index=False)
    notes = run_predict(tmp_path / "m.anynorm", tmp_path / "new.csv").notes
    assert "1 column that the model does not use: 'other'." in notes


def test_models_that_use_every_column_stay_whole(frame):
    X, y = frame.drop(columns="state"), frame["state"]
    for estimator in (LinearSVC(), SVC()):
        model = make_pipeline(Preparation(), estimator).fit(X, y)
        small = narrowed(model)
        assert list(small[0].kinds_) == list(model[0].kinds_)
        np.testing.assert_array_equal(small.predict(X), model.predict(X))


def test_a_card_has_the_formula_and_writes_a_compact_file(tmp_path, frame):
    model, rows = fitted(frame, 2)
    file, panel = tmp_path / "m.anynorm", tmp_path / "panel.anynorm"
    save_model(model, file, metadata={"target": "state", "file": "data.csv"})
    done = CliRunner().invoke(app, ["card", str(file), "-o", str(panel), "--json"])
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert set(found["columns"]) < set(rows.columns)
    # the formula, by hand, in the units of the file
    total = np.zeros(len(rows))
    for part in found["formula"]:
        if part["feature"] == "(constant)":
            total += part["weight"]
        elif "=" in part["feature"]:
            column, level = part["feature"].split("=")
            total += part["weight"] * (rows[column] == level)
        else:
            total += part["weight"] * rows[part["feature"]].fillna(part["if_missing"])
    want = model.decision_function(rows.drop(columns="state"))
    np.testing.assert_allclose(total, want, rtol=1e-10, atol=1e-10)
    compact = load_model(panel)
    assert set(compact[0].feature_names_in_) == set(found["columns"])
    np.testing.assert_allclose(
        compact.decision_function(rows[found["columns"]]), want, rtol=1e-10, atol=1e-10
    )
    assert panel.stat().st_size < file.stat().st_size


def test_a_card_for_people(tmp_path, frame):
    model, _ = fitted(frame, 3)
    save_model(model, tmp_path / "m.anynorm", metadata={"target": "state", "file": "data.csv"})
    done = CliRunner().invoke(app, ["card", str(tmp_path / "m.anynorm")])
    assert done.exit_code == 0, done.stderr
    assert "state of data.csv: a, b, c" in done.stdout
    assert "(constant)" in done.stdout
    assert "if missing" in done.stdout
    save_model(LinearSVC().fit([[0.0], [1.0]], [0, 1]), tmp_path / "plain.anynorm")
    done = CliRunner().invoke(app, ["card", str(tmp_path / "plain.anynorm")])
    assert done.exit_code == 2
    assert "knows nothing of columns in files" in done.stderr
    same = str(tmp_path / "m.anynorm")
    done = CliRunner().invoke(app, ["card", same, "-o", same])
    assert done.exit_code == 2
    assert "is the model to read" in done.stderr
