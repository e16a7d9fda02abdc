"""``anynorm compare``: the same folds, and differences row by row."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anynorm.app.cli.app import app
from tests.app.cli.test_fit import frame


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "data.csv"
    frame(60).to_csv(file, index=False)
    return file


def invoke(*arguments, code=0):
    result = CliRunner().invoke(app, [str(each) for each in arguments])
    assert result.exit_code == code, result.output
    return result


def test_models_are_compared_on_the_same_folds(data, tmp_path):
    common = ("-t", "status", "--id", "sample", "--group", "patient", "--cv", 3)
    done = invoke("compare", data, *common, "--models", "sparse,linear", "-o", tmp_path, "--json")
    found = json.loads(done.stdout)
    assert [row["name"] for row in found["models"]] == ["sparse", "linear"]
    rows = pd.read_csv(tmp_path / "compare_predictions.csv")
    wrong = {}
    for row in found["models"]:
        name = row["name"]
        own = pd.read_csv(tmp_path / name / "oof_predictions.csv")
        assert own["fold"].tolist() == rows["fold"].tolist()
        assert own["predicted"].tolist() == rows[f"predicted_{name}"].tolist()
        wrong[name] = (rows[f"predicted_{name}"] != rows["label"]).to_numpy(dtype=float)
        assert row["error"] == pytest.approx(wrong[name].mean())
    best = found["best"]
    assert wrong[best].mean() == min(each.mean() for each in wrong.values())
    groups = np.repeat(np.arange(15), 4)
    for row in found["models"]:
        difference = wrong[row["name"]] - wrong[best]
        sums = np.bincount(groups, weights=(difference - difference.mean()) / 60)
        assert row["more"] == pytest.approx(difference.mean())
        assert row["more_se"] == pytest.approx(np.sqrt(15 / 14 * (sums @ sums)))
    assert (tmp_path / "compare.html").stat().st_size > 10_000
    alone = json.loads(
        invoke("fit", data, *common, "--model", "linear", "-o", tmp_path / "o", "--json").stdout
    )
    assert alone["error"]["value"] == found["models"][1]["error"]


def test_what_cannot_be_compared(data, tmp_path):
    for models, said in (("sparse", "two different"), ("sparse,tree", "--models takes some of")):
        done = invoke("compare", data, "-t", "status", "--models", models, "-o", tmp_path, code=2)
        assert said in done.stderr
