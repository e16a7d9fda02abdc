"""Genes x samples, with the labels in a second file or in a row."""

import time

import numpy as np
import pandas as pd
import pytest

from anynorm.app.tables import read_table
from tests.app.tables.files import message, written

MATRIX = "gene\ts1\ts2\ts3\ts4\nTP53\t1.5\t2\t3\t4\nMYC\t5\t\t7\t8\nKRAS\t0\t0.25\t0\t0\n"
LABELS = "sample,class,age,batch\ns4,AML,30,b\ns2,ALL,40,a\ns1,ALL,50,a\ns9,AML,60,b\n"


@pytest.fixture
def matrix(tmp_path):
    return written(tmp_path, "expression.tsv", MATRIX)


@pytest.fixture
def labels(tmp_path):
    return written(tmp_path, "samples.csv", LABELS)


def test_labels_are_joined_by_the_names_of_the_samples(matrix, labels):
    table = read_table(matrix, transpose=True, labels=labels, target="class", group="batch")
    assert table.ids.tolist() == ["s1", "s2", "s4"]
    assert table.target.tolist() == ["ALL", "ALL", "AML"]
    assert table.groups.tolist() == ["a", "a", "b"]
    want = pd.DataFrame({"TP53": [1.5, 2, 4], "MYC": [5, np.nan, 8], "KRAS": [0, 0.25, 0]})
    pd.testing.assert_frame_equal(table.features, want, check_column_type=False)
    assert table.notes == [
        "1 sample without a line in samples.csv, left out: 's3'.",
        "1 line of samples.csv without data: 's9'.",
        "Not used from samples.csv: 'age'.",
    ]


def test_samples_in_rows_with_labels_in_a_second_file(tmp_path, labels):
    text = "x,name,z\n1,s1,2\n3,s4,4\n"
    table = read_table(written(tmp_path, "a.csv", text), labels=labels, target="class")
    assert table.ids.tolist() == ["s1", "s4"]
    assert table.target.tolist() == ["ALL", "AML"]
    assert list(table.features.columns) == ["x", "z"]


@pytest.mark.parametrize("transpose", [False, True])
def test_names_of_samples_keep_their_zeros(tmp_path, transpose):
    text = "g,01,2,10\nx,1,2,3\n" if transpose else "key,x\n01,1\n2,2\n10,3\n"
    other = written(tmp_path, "l.csv", "n,y\n2,q\n10,p\n01,p\n")
    table = read_table(written(tmp_path, "m.csv", text), transpose=transpose, labels=other)
    assert table.ids.tolist() == ["01", "2", "10"]
    assert table.target.tolist() == ["p", "q", "p"]
    assert table.features["x"].tolist() == [1, 2, 3]


def test_prediction_keeps_samples_without_a_label(matrix, labels):
    options = {"labels": labels, "target": "class", "transpose": True}
    table = read_table(matrix, **options, for_prediction=True)
    assert table.ids.tolist() == ["s1", "s2", "s3", "s4"]
    assert table.target.tolist() == ["ALL", "ALL", "", "AML"]
    assert table.notes[0] == "1 sample without a line in samples.csv: 's3'."


def test_labels_in_parquet_and_in_a_file_that_cannot_have_them(matrix, labels, tmp_path):
    pd.read_csv(labels).to_parquet(tmp_path / "l.parquet")
    table = read_table(matrix, transpose=True, labels=tmp_path / "l.parquet", target="class")
    assert table.target.tolist() == ["ALL", "ALL", "AML"]
    pd.DataFrame({"x": [5, 6], "n": [1, 2]}).to_parquet(tmp_path / "d.parquet")
    numbered = written(tmp_path, "n.csv", "who,y\n2,q\n1,p\n")
    assert read_table(tmp_path / "d.parquet", labels=numbered).target.tolist() == ["p", "q"]
    said = message(
        read_table, matrix, transpose=True, labels=written(tmp_path, "l.svm", "1 1:1"), target="y"
    )
    assert "l.svm: labels are read from tables, not from svmlight files." in said


def test_the_column_of_names_can_be_given(matrix, tmp_path):
    other = written(tmp_path, "l.csv", "alias,real,class\ns1,s4,a\ns2,s3,b\ns3,s2,c\ns4,s1,a\n")
    table = read_table(matrix, transpose=True, labels=other, target="class", id="real")
    assert table.target.tolist() == ["a", "c", "b", "a"]


def test_one_other_column_of_the_labels_is_the_target(matrix, tmp_path):
    other = written(tmp_path, "l.csv", "s,kind\ns1,p\ns2,q\ns3,p\ns4,q\n")
    table = read_table(matrix, transpose=True, labels=other)
    assert table.target_name == "kind"
    assert table.target.tolist() == ["p", "q", "p", "q"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "sample,class,age\ns1,a,1\ns2,b,2\n",
            "which column holds the labels? Name it with --target",
        ),
        ("sample,class\nx1,a\nx2,b\n", "no name of a sample in expression.tsv (such as 's1', 's2'"),
        ("sample,class\ns1,a\ns2,b\ns1,b\n", "line 4, column 'sample': the sample 's1' stands"),
    ],
)
def test_labels_that_do_not_fit(matrix, tmp_path, text, said):
    text = message(read_table, matrix, transpose=True, labels=written(tmp_path, "l.csv", text))
    assert "l.csv" in text.split(":")[0]
    assert said in text


def test_target_that_is_not_in_the_labels(matrix, labels):
    said = message(read_table, matrix, transpose=True, labels=labels, target="Class")
    assert "samples.csv: there is no column 'Class'. Did you mean 'class'?" in said


def test_a_row_of_the_matrix_is_the_target(tmp_path):
    text = MATRIX + "class\tAML\tALL\tAML\tALL\npatient\t1\t1\t2\t2\n"
    path = written(tmp_path, "m.tsv", text)
    table = read_table(path, transpose=True, target="class", group="patient")
    assert table.target.tolist() == ["AML", "ALL", "AML", "ALL"]
    assert table.groups.tolist() == ["1", "1", "2", "2"]
    assert set(table.features.dtypes) == {np.dtype(float)}
    np.testing.assert_array_equal(table.features["MYC"], [5, np.nan, 7, 8])
    said = message(read_table, path, transpose=True, target="klass")
    assert "Did you mean 'class', 'KRAS'? (With --transpose it is a row's name" in said


def test_a_wrong_cell_is_named_by_line_and_sample(tmp_path, labels):
    rows = "".join(f"g{k}\t{k}.5\t{k}.25\t{k}\n" for k in range(20))
    text = "gene\ts1\ts2\ts4\n" + rows + "g20\t1\t2,5x\t3\n"
    said = message(
        read_table, written(tmp_path, "m.tsv", text), transpose=True, labels=labels, target="class"
    )
    assert "m.tsv, line 22, column 's2': in row 'g20': '2,5x' is not a number" in said


def test_probes_of_one_gene_are_numbered(tmp_path):
    text = "gene,s1,s2\nTP53,1,2\nMYC,3,4\nTP53,5,6\nTP53,7,8\n"
    table = read_table(written(tmp_path, "m.csv", text), transpose=True)
    assert list(table.features.columns) == ["TP53", "MYC", "TP53.2", "TP53.3"]
    assert table.notes == [
        "2 rows had the name of an earlier one and got a number, as 'TP53.2': 'TP53'."
    ]


def test_gct_and_geo_files(tmp_path, labels):
    gct = "#1.2\n2\t3\nName\tDescription\ts1\ts2\ts4\nTP53\ttumour\t1\t2\t3\nMYC\tna\t4\t5\t6\n"
    geo = (
        '!Series_title\t"x"\n!Sample_id\t"a"\t"b"\t"c"\n!series_matrix_table_begin\n'
        '"ID_REF"\t"s1"\t"s2"\t"s4"\n"TP53"\t1\t2\t3\n"MYC"\t4\t5\t6\n!series_matrix_table_end\n'
    )
    for name, text in (("a.tsv", gct), ("b.txt", geo)):
        path = written(tmp_path, name, text)
        table = read_table(path, transpose=True, labels=labels, target="class")
        assert table.ids.tolist() == ["s1", "s2", "s4"]
        np.testing.assert_array_equal(table.features[["TP53", "MYC"]], [[1, 4], [2, 5], [3, 6]])


@pytest.mark.parametrize("with_row", [False, True])
def test_thousands_of_genes_read_in_a_second(tmp_path, with_row):
    values = np.random.default_rng(0).integers(-(10**5), 10**5, size=(7129, 72)) / 64
    lines = ["gene," + ",".join(f"s{k}" for k in range(72))]
    lines += [f"g{k}," + ",".join(map(str, row)) for k, row in enumerate(values.tolist())]
    lines += ["y" + ",a,b" * 36] if with_row else []
    path = written(tmp_path, "m.csv", "\n".join(lines))
    start = time.process_time()
    table = read_table(path, transpose=True, target="y" if with_row else None)
    assert time.process_time() - start < 3  # 0.3 s and 1 s on one core
    np.testing.assert_array_equal(table.features, values.T)
