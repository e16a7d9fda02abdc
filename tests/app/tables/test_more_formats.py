"""Standard input, Excel, Feather and JSON lines."""

import io
import sys

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from anynorm.app.cli.app import app
from anynorm.app.tables import read_table
from tests.app.tables.files import message, written


class _Stdin:
    def __init__(self, content):
        self.buffer = io.BytesIO(content)


@pytest.fixture
def frame():
    return pd.DataFrame(
        {"who": ["a", "b", "c"], "x": [1.5, np.nan, 3.0], "sex": ["f", "m", "f"], "y": [0, 1, 1]}
    )


def same(table, frame):
    assert table.ids.tolist() == frame["who"].tolist()
    assert table.target.tolist() == frame["y"].tolist()
    np.testing.assert_array_equal(table.features["x"], frame["x"])
    assert table.features["sex"].tolist() == frame["sex"].tolist()
    assert list(table.features.columns) == ["x", "sex"]


def test_standard_input_is_csv(frame, monkeypatch):
    monkeypatch.setattr(sys, "stdin", _Stdin(frame.to_csv(index=False).encode()))
    table = read_table("-", target="y", id="who")
    same(table, frame)
    assert str(table.source) == "standard input"


def test_standard_input_of_another_format(frame, monkeypatch):
    lines = frame.to_json(orient="records", lines=True).encode()
    monkeypatch.setattr(sys, "stdin", _Stdin(lines))
    same(read_table("-", target="y", id="who", format="jsonl"), frame)
    monkeypatch.setattr(sys, "stdin", _Stdin(frame.to_parquet()))
    same(read_table("-", target="y", id="who", format="parquet"), frame)


def test_what_is_wrong_with_standard_input_is_said(monkeypatch):
    monkeypatch.setattr(sys, "stdin", _Stdin(b"a,b\n1,2\n3\n"))
    assert message(read_table, "-", target="b").startswith("standard input, line 3: 1 field")
    monkeypatch.setattr(sys, "stdin", _Stdin(b""))
    assert "standard input: the file is empty." in message(read_table, "-", target="b")


def test_the_command_reads_standard_input(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"])
    frame["y"] = np.where(frame["a"] > 0, "yes", "no")
    done = CliRunner().invoke(
        app, ["path", "-", "-t", "y", "--max-joints", "2"], input=frame.to_csv(index=False)
    )
    assert done.exit_code == 0, done.stderr
    assert "2 joints" in done.stderr


def test_feather(tmp_path, frame):
    frame.to_feather(tmp_path / "a.feather")
    same(read_table(tmp_path / "a.feather", target="y", id="who"), frame)
    broken = written(tmp_path, "b.feather", b"ARROW1 and no more")
    assert "b.feather: this is no Feather file that can be read" in message(read_table, broken)


@pytest.mark.parametrize("lines", [True, False])
def test_json_objects(tmp_path, frame, lines):
    frame.to_json(tmp_path / "a.jsonl", orient="records", lines=lines)
    same(read_table(tmp_path / "a.jsonl", target="y", id="who"), frame)


def test_json_that_cannot_be_used(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"x": 1, "y": 0}\n\n{"x": 2, "y": }\n')
    assert "a.jsonl, line 3: this is no JSON" in message(read_table, path, target="y")
    path = written(tmp_path, "b.json", '{"x": 1}\n[2]\n')
    assert "b.json, line 2: object 2 is none" in message(read_table, path, target="x")
    path = written(tmp_path, "c.jsonl", '{"x": {"z": 1}, "y": 0}\n{"x": 1, "y": 1}\n')
    assert "column 'x': the cells hold dict" in message(read_table, path, target="y")
    rows = "".join(f'{{"x": {k}.5, "y": {k % 2}}}\n' for k in range(12))
    path = written(tmp_path, "d.jsonl", rows + '{"x": "12o", "y": 1}\n')
    assert "d.jsonl, line 13, column 'x': '12o' is not a number" in message(
        read_table, path, target="y"
    )


def test_excel_without_openpyxl_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    path = written(tmp_path, "a.xlsx", b"PK\x03\x04")
    said = message(read_table, path, target="y")
    assert "a.xlsx: Excel workbooks need openpyxl: pip install 'anynorm[excel]'" in said


def test_excel(tmp_path, frame):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["who", "x", "sex", "y", None, "seen"])
    for row in frame.itertuples(index=False):
        x = None if np.isnan(row.x) else row.x
        sheet.append([row.who, x, row.sex, row.y, None, pd.Timestamp("2026-01-02").to_pydatetime()])
    sheet.cell(1, 5).value = "empty"
    book.create_sheet("notes")
    book.save(tmp_path / "a.xlsx")
    table = read_table(tmp_path / "a.xlsx", target="y", id="who", drop=["seen", "empty"])
    same(table, frame)
    assert "The workbook has 2 sheets: the first, 'Sheet', is read." in table.notes
    seen = read_table(tmp_path / "a.xlsx", target="y", id="who").features["seen"]
    assert seen.tolist() == ["2026-01-02 00:00:00"] * 3
    broken = written(tmp_path, "b.xlsx", b"PK\x03\x04 and no more")
    assert "b.xlsx: this is no Excel workbook that can be read" in message(read_table, broken)
