"""--keep, --C and --loss of ``anynorm fit``."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anynorm import SparseSVC, load_model
from anynorm.app.cli.app import app
from anynorm.app.tables import read_table
from tests.app.cli.test_fit import frame


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    file = tmp_path_factory.mktemp("data") / "data.csv"
    frame(60).to_csv(file, index=False)
    return file


def fit(data, folder, *more, code=0):
    common = ("fit", data, "-t", "status", "--id", "sample", "--drop", "patient", "--cv", 3)
    given = [str(each) for each in (*common, "-o", folder, "--json", *more)]
    result = CliRunner().invoke(app, given)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout) if code == 0 else result.stderr


def test_kept_columns_are_not_penalised(data, tmp_path):
    plain = fit(data, tmp_path / "a", "--rule", "one_se")
    assert "gene4" not in [row["feature"] for row in plain["chosen_features"]]
    found = fit(data, tmp_path / "b", "--rule", "one_se", "--keep", "gene4", "--keep", "se?")
    used = {row["feature"]: row for row in found["chosen_features"]}
    assert {"gene4", "sex=m"} <= set(used)
    assert used["gene4"]["selection_frequency"] == 1.0
    # the same model by the estimator, with the weights of the penalties
    model = load_model(tmp_path / "b" / "model.anynorm")
    table = read_table(data, target="status", id="sample", drop=["patient"])
    X = model[0].transform(table.features)
    weights = [0.0 if x in ("gene4", "sex") else 1.0 for x in model[0].columns_behind()]
    same = SparseSVC(C=model[-1].C_, penalty_weights=weights, tol=1e-9).fit(X, table.target)
    penalised = np.array(weights) > 0
    objective = [
        np.abs(coef[0][penalised]).sum()
        + model[-1].C_ * np.maximum(0, 1 - signs * (X @ coef[0] + b)).sum()
        for coef, b, signs in (
            (each.coef_, each.intercept_, np.where(table.target == "ill", 1.0, -1.0))
            for each in (model[-1], same)
        )
    ]
    assert objective[0] == pytest.approx(objective[1], rel=1e-6)


def test_values_of_C_and_losses(data, tmp_path):
    for model in ("linear", "reweighted"):
        found = fit(data, tmp_path, "--model", model, "--C", "0.5,0.05", "--loss", "logistic")
        assert found["choice"]["C"] in (0.05, 0.5)
        assert load_model(tmp_path / "model.anynorm")[-1].loss == "logistic"
    found = fit(data, tmp_path, "--model", "kernel", "--C", "3")
    assert found["choice"]["C"] == 3.0
    assert not any("that was tried" in note and "C = 3" in note for note in found["notes"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--keep", "gene9"), "--keep gene9: there is no such column. Did you mean"),
        (("--keep", "gene1", "--model", "linear"), "--keep is for --model sparse, not linear"),
        (("--keep", "gene1", "--loss", "squared_hinge"), "--keep goes with --loss hinge"),
        (("--C", "1"), "--C is for models with a grid of C"),
        (("--C", "1,x", "--model", "linear"), "--C must be positive numbers"),
        (("--C", "0", "--model", "linear"), "--C must be positive numbers"),
        (("--loss", "logistic"), "--loss must be one of auto, hinge, squared_hinge for --model"),
        (("--loss", "hinge", "--model", "kernel"), "--loss is for --model sparse, linear"),
    ],
)
def test_options_that_do_not_go_together(data, tmp_path, more, said):
    assert said in fit(data, tmp_path, *more, code=2)


def test_a_frame_of_kept_categories_has_its_columns(tmp_path):
    from anynorm.app.tables import Preparation

    rows = pd.DataFrame({"a": [1.0, 2.0, 3.0], "organ": ["eye", "lung", "skin"]})
    assert Preparation().fit(rows).columns_behind() == ["a", "organ", "organ", "organ"]
