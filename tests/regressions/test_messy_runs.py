"""What was found when the command was tried on forty messy tables."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anynorm.app.cli.app import app
from anynorm.app.job import grid_learning
from anynorm.app.job.learning import edge_words


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
    assert edge_words({"C": [1, 10, 100]}, {"C": 10}) == ""
    assert edge_words({"C": [1.0]}, {"C": 1.0}) == ""
