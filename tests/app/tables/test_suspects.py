"""Columns that a model should perhaps not have are named."""

import numpy as np
import pandas as pd
import pytest

from anynorm.app.tables import read_table
from tests.app.tables.files import written


@pytest.fixture
def frame():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) % 2 == 0, "no", "yes")
    return pd.DataFrame(
        {
            "x": rng.normal(size=20),
            "visit": rng.permutation(20) + 1,
            "site": "Basel",
            "unit": 7,
            "code": np.where(y == "yes", 5, 3),
            "word": np.where(y == "yes", "ill", "well"),
            "near": np.where((y == "yes") | (np.arange(20) == 0), 5, 3),
            "y": y,
        }
    )


def notes(folder, frame):
    frame.to_csv(folder / "a.csv", index=False)
    return read_table(folder / "a.csv", target="y").notes


def test_counters_constants_and_copies_of_the_target(tmp_path, frame):
    assert notes(tmp_path, frame) == [
        "Every row has a number of its own, of 20 in a row, in 'visit': if it only counts rows, "
        "use --drop or --id.",
        "The same value in every row, of no use to a model: 'site', 'unit'.",
        "The same as the target in every row, but for the names: 'code', 'word'. If new rows do "
        "not have it, the error is too good: use --drop.",
    ]


def test_nothing_is_said_of_few_rows_or_of_gaps(tmp_path, frame):
    assert notes(tmp_path, frame.iloc[:6]) == []
    frame = frame[["x", "code", "y"]].assign(code=frame["code"].where(frame.index != 3))
    assert notes(tmp_path, frame) == []


def test_the_index_that_pandas_writes_is_left_out(tmp_path, frame):
    frame[["x", "y"]].to_csv(tmp_path / "a.csv")
    text = (tmp_path / "a.csv").read_text().replace(",x,y", "Unnamed: 0,x,y", 1)
    table = read_table(written(tmp_path, "b.csv", text), target="y")
    assert list(table.features.columns) == ["x"]
    assert table.notes == ["'Unnamed: 0' only numbers the rows, left out."]


def test_labels_that_differ_in_capitals_alone(tmp_path, frame):
    y = frame["y"].where(frame.index > 3, "Yes")
    said = notes(tmp_path, frame[["x"]].assign(y=y))
    assert said == [
        "Labels that are spelled almost alike count as different classes: 'Yes', 'yes'. If they "
        "are one, write them alike."
    ]
    assert notes(tmp_path, frame[["x"]].assign(y=np.where(frame["y"] == "yes", 1, -1))) == []
