"""CSV and TSV as people have them: separators, quotes, encodings, gaps; errors with their place."""

import bz2
import contextlib
import csv
import gzip
import io
import lzma
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anynorm.app.tables import Preparation, TableError, read_table
from tests.app.tables.files import message, written

PLAIN = "name,dose,ill\nAda,1.5,yes\nBob,0.5,no\nCyd,,no\n"


def check_plain(table):
    assert list(table.features.columns) == ["dose"]
    np.testing.assert_array_equal(table.features["dose"], [1.5, 0.5, np.nan])
    assert table.target.tolist() == ["yes", "no", "no"]
    assert table.ids.tolist() == ["Ada", "Bob", "Cyd"]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("ending", ["\n", "\r\n", "\r"])
def test_separators_and_line_ends(tmp_path, separator, ending):
    text = PLAIN.replace(",", separator).replace("\n", ending)
    check_plain(read_table(written(tmp_path, "a.csv", text), target="ill", id="name"))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_byte_order_marks(tmp_path, encoding):
    path = written(tmp_path, "a.csv", PLAIN.encode(encoding))
    check_plain(read_table(path, target="ill", id="name"))


@pytest.mark.parametrize(
    ("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress), ("xz", lzma.compress)]
)
def test_compressed_files(tmp_path, suffix, pack):
    path = written(tmp_path, f"a.csv.{suffix}", pack(PLAIN.encode()))
    check_plain(read_table(path, target="ill", id="name"))
    cut = written(tmp_path, f"cut.csv.{suffix}", pack(PLAIN.encode() * 500)[:60])
    assert f"cut.csv.{suffix}: the file cannot be decompressed" in message(read_table, cut)


def test_latin_1_is_read_and_said_with_its_line(tmp_path):
    text = "größe,y\n1.5,ä\n2.5,b\n".encode("latin-1")
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    assert list(table.features.columns) == ["größe"]
    assert table.target.tolist() == ["ä", "b"]
    assert table.notes == ["Not in UTF-8 (line 1): read as Windows-1252 (Latin-1)."]


def test_quoted_fields_with_separators_quotes_and_line_ends(tmp_path):
    text = 'note,x,y\n"a, ""b""\nc",1,p\n"d",2,q\n'
    table = read_table(written(tmp_path, "a.csv", text), target="y", id="note")
    assert table.ids.tolist() == ['a, "b"\nc', "d"]
    assert table.features["x"].tolist() == [1, 2]


def test_lines_are_those_of_the_file_behind_fields_over_several_lines(tmp_path):
    text = 'note,x,y\n"a\nb",1,p\n\n"d",2,q,r\n'
    assert message(read_table, written(tmp_path, "a.csv", text)).endswith(
        "a.csv, line 5: 4 fields, but the line of names has 3. A field that holds the separator "
        "(',') needs quotes; numbers with decimal commas need another separator."
    )


def test_blanks_around_fields_do_not_matter(tmp_path):
    text = "x , colour, y\n 1,  red , p \n2 ,blue,q\n3,red,p\n"
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    assert table.features["x"].tolist() == [1, 2, 3]
    assert table.features["colour"].tolist() == ["red", "blue", "red"]
    assert table.target.tolist() == ["p", "q", "p"]


def test_empty_rows_of_spreadsheets_are_left_out(tmp_path):
    text = "x,z,y\n1,2,p\n,,\n3,4,q\n,,\n\n"
    assert len(read_table(written(tmp_path, "a.csv", text), target="y")) == 2


@pytest.mark.parametrize("text", ["x,y,\n1,p,\n2,q,\n", "x,y\n1,p,\n2,q,\n"])
def test_separators_at_the_end_of_lines(tmp_path, text):
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    assert list(table.features.columns) == ["x"]
    assert table.ids.tolist() == ["1", "2"]


@pytest.mark.parametrize("text", [",x,y\na,1,p\nb,2,q\n", "x,y\na,1,p\nb,2,q\n"])
def test_first_column_without_a_name_holds_the_names_of_the_rows(tmp_path, text):
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    assert table.ids.tolist() == ["a", "b"]
    assert list(table.features.columns) == ["x"]


def test_space_separated_file_as_r_writes_it(tmp_path):
    text = '"x 1" "y"\n"a b" 1 "p"\n"c" 2 "q"\n'
    table = read_table(written(tmp_path, "a.txt", text), target="y")
    assert table.ids.tolist() == ["a b", "c"]
    assert table.features["x 1"].tolist() == [1, 2]


def test_columns_aligned_by_blanks(tmp_path):
    text = "  x    y\n  1    a\n 20.5  b \n"
    table = read_table(written(tmp_path, "a.txt", text), target="y")
    assert table.features["x"].tolist() == [1, 20.5]
    assert table.target.tolist() == ["a", "b"]


def test_separator_named_as_excel_does(tmp_path):
    path = written(tmp_path, "a.csv", "sep=;\nx;y\n1,5;a\n2;b\n")
    assert read_table(path, target="y").features["x"].tolist() == [1.5, 2]
    bad = written(tmp_path, "b.csv", "sep=;\nx;y\n1;a\n2;b;c\n")
    assert "b.csv, line 4: 3 fields" in message(read_table, bad)


def test_decimal_commas(tmp_path):
    text = "x;big;y\n1,5;1.234,5;p\n2;2;q\n-0,25;;p\n"
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    np.testing.assert_array_equal(table.features["x"], [1.5, 2, -0.25])
    np.testing.assert_array_equal(table.features["big"], [1234.5, 2, np.nan])
    assert "Numbers with decimal commas: 'x', 'big'." in table.notes


def test_thousands_in_quotes_and_commas_that_may_be_either(tmp_path):
    table = read_table(written(tmp_path, "a.csv", 'x,y\n"1,234.5",p\n"12",q\n'), target="y")
    assert table.features["x"].tolist() == [1234.5, 12.0]
    said = message(read_table, written(tmp_path, "b.csv", 'x,y\n1,p\n"1,234",q\n'), target="y")
    assert "b.csv, line 3, column 'x': '1,234' may mean 1.234 or 1234." in said


def test_unquoted_decimal_commas_between_commas_name_the_remedy(tmp_path):
    said = message(read_table, written(tmp_path, "a.csv", "x,z,y\n1,5,2,5,p\n1,2,q\n"), target="y")
    assert "line 2: 5 fields, but the line of names has 3" in said
    assert "decimal commas need another separator" in said


def test_gaps_in_columns_of_numbers(tmp_path):
    text = "x,z,colour,y\n1,?,?,p\nNA,2.5,red,q\n3,-,red,q\n"
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    np.testing.assert_array_equal(table.features["x"], [1, np.nan, 3])
    np.testing.assert_array_equal(table.features["z"], [np.nan, 2.5, np.nan])
    assert table.features["colour"].tolist() == ["?", "red", "red"]
    assert table.notes == ["'-', '?' counts as missing in 'z'."]


def test_a_word_among_numbers_is_an_error_with_its_place(tmp_path):
    rows = "".join(f"{k}.5,{'pq'[k % 2]}\n" for k in range(20))
    said = message(read_table, written(tmp_path, "a.csv", f"age,y\n{rows}12o,p\n"), target="y")
    assert "a.csv, line 22, column 'age': '12o' is not a number" in said
    assert "leave the cell empty" in said


def test_a_few_numbers_with_a_word_are_categories(tmp_path):
    text = "children,y\n0,p\n1,q\n2,p\n3+,q\n"
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    assert table.features["children"].tolist() == ["0", "1", "2", "3+"]


def test_infinite_numbers_are_errors_with_their_place(tmp_path):
    said = message(read_table, written(tmp_path, "a.csv", "x,z,y\n1,2,p\n3,inf,q\n"), target="y")
    assert "a.csv, line 3, column 'z': the value is infinite" in said


def test_truth_values_with_gaps(tmp_path):
    text = "x,smoker,y\n1,True,p\n2,,q\n3,FALSE,q\n"
    column = read_table(written(tmp_path, "a.csv", text), target="y").features["smoker"]
    assert column.tolist() == [True, pd.NA, False]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "a.csv: the file is empty."),
        ("\n \n", "a.csv: the file is empty."),
        ("x,y\n", "a.csv: the file has a line of names ('x', 'y') and nothing else."),
        ("x,z,x\n1,2,3\n", "a.csv, line 1: fields 1 and 3 have the same name 'x'. Give one"),
        ("1,1,0\n1,2,3\n", "a.csv, line 1: fields 1 and 2 have the same name '1'. Is the line of"),
        ("x,,y\n1,2,3\n", "a.csv, line 1: field 2 has no name."),
        ("x,z,y\n1,2,3\n1,2\n", "a.csv, line 3: 2 fields, but the line of names has 3. A line may"),
        ("x,y\n1,2\n1,2,3\n1,2,3\n", "line 3: 3 fields, but the line of names has 2 (2 such"),
        ('x,y\n1,"p\n2,q\n', "a.csv, line 2: a quote in the record that begins here is never"),
        ('x,y\n"1"0,p\n', "a.csv, line 2: a quote in the record that begins here is wrong"),
        ("x,y,\n1,2,\n1,2,3\n", "a.csv, line 3: the last of 3 columns has no name but values."),
        ("x,y\n1,\0\n", "a.csv, line 2: the file has a zero byte"),
        ("PK\3\4rest", "a.csv: this is no text but an Excel workbook"),
        ("PAR1rest", "a.csv: this is no text but a Parquet file"),
    ],
)
def test_what_is_wrong_with_the_structure(tmp_path, text, said):
    assert said in message(read_table, written(tmp_path, "a.csv", text))


def test_files_that_are_not_there_or_of_an_unknown_kind(tmp_path):
    written(tmp_path, "data.csv", PLAIN)
    assert "there is no such file. There is 'data.csv'." in message(
        read_table, tmp_path / "data.tsv"
    )
    assert "this is a folder" in message(read_table, tmp_path)
    other = written(tmp_path, "a.xyz", "x")
    assert "the suffix does not say what the file is" in message(read_table, other)
    assert "--format must be one of 'csv'" in message(read_table, other, format="html")
    check_plain(
        read_table(written(tmp_path, "b.xyz", PLAIN), target="ill", id="name", format="csv")
    )


def test_comments_at_the_head(tmp_path):
    text = "# made by a machine\n# 2024\nx,y\n1,p\n2,q\n"
    table = read_table(written(tmp_path, "a.csv", text), target="y")
    assert list(table.features.columns) == ["x"]
    assert "2 lines of comments" in table.notes[0]
    bad = written(tmp_path, "b.csv", text + "3\n")
    assert "line 6: 1 field, but" in message(read_table, bad, target="y")
    header = written(tmp_path, "c.csv", "#x,y\n1,p\n2,q\n")
    assert list(read_table(header, target="y").features.columns) == ["#x"]


def test_thousands_of_columns_read_in_a_second(tmp_path):
    rng = np.random.default_rng(0)
    values = rng.integers(-(10**5), 10**5, size=(72, 7129)) / 64
    lines = ["y," + ",".join(f"g{k}" for k in range(7129))]
    lines += ["ab"[k % 2] + "," + ",".join(map(str, row)) for k, row in enumerate(values.tolist())]
    path = written(tmp_path, "a.csv", "\n".join(lines))
    start = time.process_time()
    table = read_table(path, target="y")
    assert time.process_time() - start < 3  # about 0.6 s on one core
    np.testing.assert_array_equal(table.features, values)


numbers = st.floats(-1e300, 1e300, allow_subnormal=False) | st.none()
words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp", "Zs"]), max_size=6
)
names = st.lists(words.map(lambda x: "n" + x), min_size=4, max_size=4, unique=True)
rows = st.lists(st.tuples(numbers, words.map(lambda x: "w" + x), words), min_size=1, max_size=30)


@given(names, rows, st.sampled_from(",;\t|"), st.booleans())
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None
)
def test_what_the_csv_module_writes_is_read(tmp_path, header, rows, separator, quoted):
    out = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=separator, quoting=quoting)
    writer.writerow(header)
    for k, (number, label, name) in enumerate(rows):
        writer.writerow([number, label, f"{name}{k}", k])
    path = written(tmp_path, "a.csv", out.getvalue())
    table = read_table(path, target=header[1], id=header[2], for_prediction=True)
    assert list(table.features.columns) == [header[0], header[3]]
    want = np.array([np.nan if number is None else number for number, _, _ in rows])
    np.testing.assert_allclose(table.features[header[0]].to_numpy(float), want, rtol=1e-15)
    assert table.target.tolist() == [label for _, label, _ in rows]
    assert table.ids.tolist() == [f"{name}{k}" for k, (_, _, name) in enumerate(rows)]


scraps = [
    "x",
    "y",
    "1",
    "2.5",
    "-",
    "?",
    "NA",
    "inf",
    "1,5",
    "yes",
    "no",
    "True",
    "2020-01-02",
    "1e400",
    "0x1f",
    "é",
    "#",
    "!",
]
cells = st.sampled_from([*scraps, "", "0", "3", "7.25"])
grids = st.tuples(st.integers(1, 4), st.sampled_from(",;\t| ")).flatmap(
    lambda shape: st.lists(
        st.lists(cells, min_size=shape[0], max_size=shape[0]).map(shape[1].join), max_size=8
    ).map(lambda lines: "\n".join([shape[1].join(["a", "y", "c", "d"][: shape[0]]), *lines]))
)
pieces = st.sampled_from([*scraps, *',;\t|"', '""', " ", "\n", "\n", "\r\n", "\ufeff", "\0"])


@given(
    grids | st.lists(pieces, max_size=60).map("".join),
    st.booleans(),
    st.sampled_from(["y", None]),
)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=60,
)
def test_any_text_is_read_or_refused_with_a_table_error(tmp_path, text, transpose, target):
    path = written(tmp_path, "a.csv", text)
    with contextlib.suppress(TableError):
        table = read_table(path, target=target, transpose=transpose)
        assert len(table.features) == len(table.ids) > 0
        Preparation().fit_transform(table.features)


@pytest.mark.parametrize(
    ("cells", "numbers", "said"),
    [
        (["12.3%", "7%", "0", "-1.5 %"], [12.3, 7.0, 0.0, -1.5], "a percent sign"),
        (["$1,200", "$950", "-$3.50", "$0"], [1200.0, 950.0, -3.5, 0.0], "the currency $"),
        (["€12,50", "€3", "€1.200,00", "€0"], [12.5, 3.0, 1200.0, 0.0], "the currency €"),
        (["5 £", "6 £", "-", "7 £"], [5.0, 6.0, None, 7.0], "the currency £"),
    ],
)
def test_percent_signs_and_currencies(tmp_path, cells, numbers, said):
    rows = "".join(f'"{cell}",{k % 2}\n' for k, cell in enumerate(cells))
    table = read_table(written(tmp_path, "a.csv", "x,y\n" + rows), target="y")
    got = [None if x != x else x for x in table.features["x"].tolist()]
    assert got == numbers
    assert any(note.startswith(f"Numbers with {said}") for note in table.notes)


def test_signs_that_are_not_of_one_kind_are_text(tmp_path):
    text = "x,y\n12%,0\n0.5,1\n12%,0\n0.5,1\n"
    assert read_table(written(tmp_path, "a.csv", text), target="y").features["x"].tolist() == [
        "12%", "0.5", "12%", "0.5",
    ]  # fmt: skip
    text = 'x,y\n"€1,200",0\n"€2,300",1\n'
    said = message(read_table, written(tmp_path, "b.csv", text), target="y")
    assert "'€1,200' may mean €1.200 or €1200" in said
