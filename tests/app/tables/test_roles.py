"""Target, names, groups, columns to leave out, the positive label; what is wrong with them."""

import numpy as np
import pytest

from anynorm.app.tables import read_table
from tests.app.tables.files import message, written

TEXT = """patient,visit,Age,colour,y
p1,a,30,red,0
p1,b,31,blue,1
p2,c,50,red,1
p3,d,60,,0
"""


@pytest.fixture
def path(tmp_path):
    return written(tmp_path, "a.csv", TEXT)


def test_every_role(path):
    table = read_table(path, target="y", id="visit", group="patient", drop=["colour"])
    assert list(table.features.columns) == ["Age"]
    assert table.target.tolist() == [0, 1, 1, 0]
    assert table.target.dtype == np.int64
    assert table.ids.tolist() == ["a", "b", "c", "d"]
    assert table.groups.tolist() == ["p1", "p1", "p2", "p3"]
    assert (table.positive, table.target_name, table.id_name, len(table)) == (None, "y", "visit", 4)
    assert table.source == path


def test_without_any_role_all_columns_are_features(path):
    table = read_table(path)
    assert table.target is None
    assert table.groups is None
    assert table.ids.tolist() == ["1", "2", "3", "4"]
    assert table.features.shape == (4, 5)


def test_names_keep_their_zeros(tmp_path):
    table = read_table(written(tmp_path, "b.csv", "k,x,y\n007,1,p\n1e3,2,q\n"), target="y", id="k")
    assert table.ids.tolist() == ["007", "1e3"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"target": "Y"}, "a.csv: there is no column 'Y'. Did you mean 'y'?"),
        ({"target": "class"}, "no column 'class'. The columns are 'patient', 'visit', 'Age',"),
        ({"target": "p1"}, "a matrix of features x samples needs --transpose"),
        ({"id": "vist"}, "Did you mean 'visit'?"),
        ({"group": "patients"}, "Did you mean 'patient'?"),
        ({"drop": ["color"]}, "there is no column 'color' to drop. Did you mean 'colour'?"),
        ({"drop": ["meta_*"]}, "there is no column 'meta_*' to drop."),
        ({"text": ["age"]}, "there is no column 'age'. Did you mean 'Age'?"),
        ({"target": "y", "id": "y"}, "column 'y': the column is the target; it cannot be the id"),
        ({"target": "y", "group": "y"}, "column 'y': the column is the target; it cannot be the"),
        ({"target": "y", "id": "visit", "group": "visit"}, "the group names every row diff"),
        ({"target": "y", "drop": "y"}, "column 'y': the column is the target and dropped."),
        ({"target": "y", "drop": ["[!y]*"]}, "no column is left for the features."),
        ({"target": "y", "positive": "2"}, "no row has the positive label '2'; the labels are '0'"),
    ],
)
def test_roles_that_cannot_be(path, options, said):
    assert said in message(read_table, path, **options)


def test_patterns_leave_out_several_columns(path):
    assert list(read_table(path, target="y", drop=["[pv]*t"]).features) == ["Age", "colour"]


def test_rows_without_a_label_are_left_out_and_the_lines_stay_right(tmp_path):
    text = "x,g,y\n1,a,p\n2,b,\n3,c,q\n4,,p\n"
    path = written(tmp_path, "b.csv", text)
    table = read_table(path, target="y", drop=["g"])
    assert table.features["x"].tolist() == [1, 3, 4]
    assert table.target.tolist() == ["p", "q", "p"]
    assert table.notes == ["1 row without a label left out."]
    said = message(read_table, path, target="y", group="g")
    assert "b.csv, line 5, column 'g': the group is missing" in said
    empty = written(tmp_path, "c.csv", "x,y\n1,\n2,NA\n")
    assert "c.csv, column 'y': no row has a label." in message(read_table, empty, target="y")


def test_errors_count_lines_behind_rows_that_were_left_out(tmp_path):
    text = "x,z,y\n1,1,p\n2,2,\n3,inf,q\n"
    said = message(read_table, written(tmp_path, "b.csv", text), target="y")
    assert "line 4, column 'z'" in said


@pytest.mark.parametrize(
    ("labels", "want"),
    [
        (["1", "-1"], [1, -1]),
        (["1.0", "2.0"], [1, 2]),
        (["yes", "no"], ["yes", "no"]),
        (["None", "mild"], ["None", "mild"]),
        (["1", "a"], ["1", "a"]),
        (["True", "False"], ["True", "False"]),
        (["0.5", "1.5"], ["0.5", "1.5"]),
    ],
)
def test_labels_are_integers_or_text(tmp_path, labels, want):
    text = f"x,y\n1,{labels[0]}\n2,{labels[1]}\n"
    table = read_table(written(tmp_path, "b.csv", text), target="y")
    assert table.target.tolist() == want


def test_targets_that_are_no_classes(tmp_path):
    one = written(tmp_path, "b.csv", "x,y\n1,p\n2,p\n")
    assert "b.csv, column 'y': every row has the label 'p'; two" in message(
        read_table, one, target="y"
    )
    rows = "".join(f"{k},{k / 7}\n" for k in range(1, 31))
    measured = written(tmp_path, "c.csv", f"x,y\n{rows}")
    assert "different numbers in 30 rows: a measurement" in message(
        read_table, measured, target="y"
    )


def test_positive_of_two_and_of_three_classes(path, tmp_path):
    assert read_table(path, target="y", positive="1").positive == 1
    assert read_table(path, target="y", positive=0).positive == 0
    three = written(tmp_path, "b.csv", "x,y\n1,AML\n2,ALL\n3,CLL\n4,AML\n")
    table = read_table(three, target="y", positive="AML")
    assert table.target.tolist() == ["AML", "not AML", "not AML", "AML"]
    assert table.positive == "AML"
    assert table.notes == ["'ALL', 'CLL' became one class, 'not AML'."]


def test_categories_that_look_like_numbers(tmp_path):
    path = written(tmp_path, "b.csv", "zip,x,y\n01234,1,p\n90210,2,q\n")
    assert read_table(path, target="y").features["zip"].tolist() == [1234, 90210]
    table = read_table(path, target="y", text=["zip"])
    assert table.features["zip"].tolist() == ["01234", "90210"]


def test_columns_that_only_number_the_rows_are_left_out(tmp_path):
    rows = "".join(f"{k},{k / 2},{k % 2}\n" for k in range(1, 13))
    table = read_table(written(tmp_path, "b.csv", f"Id,x1,y\n{rows}"), target="y")
    assert list(table.features.columns) == ["x1"]
    assert table.notes == ["'Id' only numbers the rows, left out."]


def test_prediction_needs_no_role(path):
    options = {"target": "y", "id": "nobody", "group": "none", "drop": ["nothing"]}
    table = read_table(path, **options, for_prediction=True)
    assert table.target.tolist() == [0, 1, 1, 0]
    assert table.absent == ["nobody", "none"]
    assert table.ids.tolist() == ["1", "2", "3", "4"]
    assert list(table.features.columns) == ["patient", "visit", "Age", "colour"]
    assert read_table(path, target="class", for_prediction=True).target is None


def test_prediction_keeps_rows_without_a_label_and_one_class(tmp_path):
    path = written(tmp_path, "b.csv", "x,y\n1,p\n2,\n")
    table = read_table(path, target="y", for_prediction=True)
    assert table.target.tolist() == ["p", ""]
