"""Parquet and svmlight."""

import gzip
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file

from anynorm.app.tables import Preparation, read_table
from tests.app.tables.files import message, written


def test_parquet_keeps_types(tmp_path):
    frame = pd.DataFrame(
        {
            "x": np.array([1.5, np.nan], dtype=np.float32),
            "k": pd.array([1, None], dtype="Int64"),
            "c": pd.Categorical(["b", "a"]),
            "t": pd.to_datetime(["2020-01-01", "2020-01-02"]),
            "b": [True, False],
            "y": [1, 0],
        },
        index=pd.Index(["r1", "r2"]),
    )
    frame.to_parquet(tmp_path / "a.parquet")
    table = read_table(tmp_path / "a.parquet", target="y")
    assert table.ids.tolist() == ["r1", "r2"]
    assert table.target.tolist() == [1, 0]
    preparation = Preparation(scale="none").fit(table.features)
    assert preparation.get_feature_names_out().tolist() == ["x", "k", "b", "c=b"]
    np.testing.assert_array_equal(
        preparation.transform(table.features), [[1.5, 1, 1, 1], [1.5, 1, 0, 0]]
    )
    frame.rename_axis("name").to_parquet(tmp_path / "b.pq")
    assert read_table(tmp_path / "b.pq", target="y", id="name").ids.tolist() == ["r1", "r2"]


def test_parquet_that_cannot_be_used(tmp_path):
    broken = written(tmp_path, "a.parquet", b"PAR1 and no more")
    assert "a.parquet: this is no Parquet file that can be read" in message(read_table, broken)
    pd.DataFrame({"x": [[1, 2], [3]], "y": [0, 1]}).to_parquet(tmp_path / "b.parquet")
    said = message(read_table, tmp_path / "b.parquet", target="y")
    assert "b.parquet, column 'x': the cells hold ndarray, not numbers or text" in said
    pd.DataFrame({"x": [1.0, np.inf], "y": [0, 1]}).to_parquet(tmp_path / "c.parquet")
    said = message(read_table, tmp_path / "c.parquet", target="y")
    assert "c.parquet, column 'x': in row 2: the value is infinite" in said
    pd.DataFrame({"x": []}).to_parquet(tmp_path / "d.parquet")
    assert "d.parquet: the file has no rows." in message(read_table, tmp_path / "d.parquet")


@given(
    st.integers(1, 8).flatmap(
        lambda n: st.lists(
            st.lists(st.sampled_from([0.0, 1.0, -2.5, 1e-7]), min_size=4, max_size=4),
            min_size=n,
            max_size=n,
        )
    ),
    st.booleans(),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
def test_what_scikit_learn_dumps_is_read(tmp_path, rows, zero_based):
    X = np.array(rows)
    X[0, 0] = X[0, 3] = 3.0  # so that the first and the last feature occur
    y = np.arange(len(X)) % 2 * 2 - 1
    path = tmp_path / "a.svmlight"
    dump_svmlight_file(X, y, str(path), zero_based=zero_based)
    table = read_table(path, for_prediction=True)
    np.testing.assert_array_equal(table.features.matrix.toarray(), X)
    assert table.target.tolist() == y.tolist()
    first = 0 if zero_based else 1
    assert list(table.features.columns) == [str(k + first) for k in range(4)]


def test_sparse_rows_with_groups_comments_and_compression(tmp_path):
    text = b"# head\n+1 qid:7 2:0.5 5:1 # one\n-1 qid:7 1:2\n\n+1 qid:9 5:3\n"
    table = read_table(
        written(tmp_path, "a.libsvm.gz", gzip.compress(text)), group="qid", positive="1"
    )
    assert table.target.tolist() == [1, -1, 1]
    assert table.groups.tolist() == [7, 7, 9]
    assert list(table.features.columns) == ["1", "2", "3", "4", "5"]
    np.testing.assert_array_equal(
        table.features.iloc[[2, 0]].matrix.toarray(), [[0, 0, 0, 0, 3], [0, 0.5, 0, 0, 1]]
    )
    assert sp.issparse(Preparation().fit_transform(table.features))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("1 1:2\n-1 1:2 x:3\n", "line 2: 'x:3' is not number:value"),
        ("# c\n\nAML 1:2\n", "line 3: the label 'AML' is not a number"),
        ("1 1:2\n-1 3:1 2:1\n", "line 2: feature 2 stands after feature 3"),
        ("1 1:2\n\n-1 2:nan\n", "line 3: the value of feature 2 is nan"),
        ("1 1:2\n1 2:1\n", "every row has the label '1'"),
    ],
)
def test_what_is_wrong_with_sparse_files(tmp_path, text, said):
    assert said in message(read_table, written(tmp_path, "a.svm", text))


@pytest.mark.parametrize("option", [{"id": "x"}, {"drop": ["x"]}, {"transpose": True}])
def test_options_without_meaning_for_sparse_files(tmp_path, option):
    path = written(tmp_path, "a.svm", "1 1:2\n-1 2:1\n")
    assert f"--{next(iter(option))} has no meaning for svmlight files" in message(
        read_table, path, **option
    )
    assert "behind the label: --group qid" in message(read_table, path, group="patient")


def test_many_sparse_features_are_no_matter(tmp_path):
    X = sp.random(200, 50_000, density=2e-4, format="csr", random_state=0)
    dump_svmlight_file(X, np.arange(200) % 2, str(tmp_path / "a.svm"), zero_based=False)
    start = time.process_time()
    table = read_table(tmp_path / "a.svm")
    out = Preparation().fit_transform(table.features)
    assert time.process_time() - start < 3
    assert out.shape[0] == 200
