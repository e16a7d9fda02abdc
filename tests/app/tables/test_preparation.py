"""Frames to matrices: against pandas, NumPy and scikit-learn; the notes; what is refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from anynorm.app.tables import Preparation, SparseFrame, match_columns
from anynorm.app.tables.number_frame import NumberFrame
from tests.app.tables.files import message


@pytest.fixture
def frame():
    return pd.DataFrame(
        {
            "age": [30.0, np.nan, 50.0, 44.0, 20.0],
            "count": [1, 2, 3, 4, 5],
            "smoker": pd.array([True, None, False, False, False], dtype="boolean"),
            "sex": ["m", "f", "f", "m", "f"],
            "organ": ["eye", None, "skin", "lung", "eye"],
        }
    )


def test_columns_and_their_names(frame):
    preparation = Preparation(scale="none").fit(frame)
    out = pd.DataFrame(preparation.transform(frame), columns=preparation.get_feature_names_out())
    want = pd.DataFrame(
        {
            "age": [30.0, 37.0, 50.0, 44.0, 20.0],
            "count": [1.0, 2, 3, 4, 5],
            "smoker": [1.0, 0, 0, 0, 0],
            "sex=m": [1.0, 0, 0, 1, 0],
            "organ=eye": [1.0, 0, 0, 0, 1],
            "organ=lung": [0.0, 0, 0, 1, 0],
            "organ=skin": [0.0, 0, 1, 0, 0],
            "organ=(missing)": [0.0, 1, 0, 0, 0],
        }
    )
    pd.testing.assert_frame_equal(out, want, check_column_type=False)


def test_notes_say_what_was_done(frame):
    frame["when"] = pd.Timestamp("2020-01-01")
    frame["day"] = "2020-01-03"
    frame["empty"] = np.nan
    assert Preparation().fit(frame).notes_ == [
        "No value at all, left out: 'empty'.",
        "Dates and times, left out: 'when', 'day'. Make numbers of them, such as days since the "
        "first, to use them.",
        "Missing numbers became the median of their column: 'age' (1 row), 'smoker' (1 row).",
        "Categories became columns of zeros and ones: 'sex' (f, m), "
        "'organ' (eye, lung, skin, (missing)).",
        "Every column was brought to mean 0 and standard deviation 1.",
    ]


def test_scaling_is_that_of_the_rows_it_was_fitted_on(frame):
    preparation = Preparation().fit(frame)
    out = preparation.transform(frame)
    plain = Preparation(scale="none").fit_transform(frame)
    np.testing.assert_allclose(out, (plain - plain.mean(0)) / plain.std(0), atol=1e-15)
    assert preparation.scale_of("count") == pytest.approx(np.std([1, 2, 3, 4, 5]))


def test_parts_of_the_rows_give_the_same_columns_from_their_own_values(frame):
    whole = Preparation().fit(frame)
    part = clone(Preparation(kinds=whole.kinds_)).fit(frame.iloc[[0, 3]])
    assert list(part.get_feature_names_out()) == list(whole.get_feature_names_out())
    np.testing.assert_allclose(part.transform(frame)[[0, 3], 0], [-1, 1])  # 30 and 44
    assert part.transform(frame)[1, 0] == 0  # their median, 37, is their mean


def test_a_column_without_values_in_a_part_is_zero_there(frame):
    whole = Preparation().fit(frame)
    part = Preparation(kinds=whole.kinds_).fit(frame.iloc[[1]])
    assert np.isfinite(part.transform(frame)).all()


def test_new_rows_by_name_with_new_categories_and_gaps(frame):
    preparation = Preparation(scale="none").fit(frame)
    new = pd.DataFrame(
        {"extra": [1, 2], "organ": ["brain", "eye"], "sex": ["x", "m"], "smoker": [False, True]}
    )
    new = new.assign(count=[7, np.nan], age=[60, 70])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = preparation.transform(new)
    np.testing.assert_array_equal(out, [[60, 7, 0, 0, 0, 0, 0, 0], [70, 3, 1, 1, 1, 0, 0, 0]])
    assert preparation.news_in(new) == [
        "1 column that the model does not use: 'extra'.",
        "Missing numbers became the median of the rows that the model learnt from: "
        "'count' (1 row).",
        "'sex' has values that the model does not know, in 1 row: 'x'.",
        "'organ' has values that the model does not know, in 1 row: 'brain'.",
    ]


def test_categories_written_as_numbers_are_recognised_in_any_type():
    preparation = Preparation(scale="none").fit(pd.DataFrame({"k": ["0", "1", "2", "3+"]}))
    for column in ([0, 2], [0.0, 2.0], ["0", "2"], pd.Categorical([0, 2])):
        out = preparation.transform(pd.DataFrame({"k": column}))
        np.testing.assert_array_equal(out, [[1, 0, 0, 0], [0, 0, 1, 0]])


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ([f"Mr {k}" for k in range(40)], "40 different texts in 40 rows ('Mr 0', 'Mr 1', 'Mr 10' "),
        ([f"{k % 120} Main" for k in range(400)], "120 different texts in 400 rows"),
        (np.arange(20) * 1j, "complex numbers cannot be used"),
        ([1.0, np.inf], "the value in row 2 is infinite"),
    ],
)
def test_columns_that_cannot_be_used(column, said):
    text = message(Preparation().fit, pd.DataFrame({"name": column}))
    assert text.startswith("column 'name': ")
    assert said in text


def test_frames_without_anything_to_use():
    assert "no column can be used" in message(Preparation().fit, pd.DataFrame({"x": [np.nan]}))
    twins = pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])
    assert "two columns have the name 'x'" in message(Preparation().fit, twins)
    assert "no rows" in message(Preparation().fit, pd.DataFrame({"x": []}))
    with pytest.raises(ValueError, match="scale must be 'standard' or 'none'; got 'max'"):
        Preparation(scale="max").fit(pd.DataFrame({"x": [1.0]}))
    with pytest.raises(TypeError, match="works on data frames"):
        Preparation().fit(np.ones((2, 2)))


def test_words_where_numbers_were_learnt():
    preparation = Preparation().fit(pd.DataFrame({"x": [1.0, 2.0]}))
    said = message(preparation.transform, pd.DataFrame({"x": ["3", "four"]}))
    assert "column 'x': 'four' in row 2 is not a number" in said
    np.testing.assert_array_equal(
        preparation.transform(pd.DataFrame({"x": ["3", None]})),
        preparation.transform(pd.DataFrame({"x": [3, 1.5]})),
    )


def test_numbers_alone_are_prepared_without_a_frame():
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0, 8.0], "b": [True, False, True, True]})
    whole = Preparation().fit(frame)
    rows = whole.as_numbers(frame)
    assert isinstance(rows, NumberFrame)
    part = Preparation(kinds=whole.kinds_).fit(rows.iloc[[0, 2, 3]])
    same = Preparation(kinds=whole.kinds_).fit(frame.iloc[[0, 2, 3]])
    np.testing.assert_array_equal(part.transform(rows), same.transform(frame))
    np.testing.assert_array_equal(part.transform(frame.iloc[[1]]), same.transform(frame)[[1]])
    for other in (frame.assign(a=[1.0, None, 3.0, 4.0]), frame.assign(a=list("xyxy"))):
        assert isinstance(Preparation().fit(other).as_numbers(other), pd.DataFrame)


def test_sparse_features_stay_sparse():
    dense = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.0], [3.0, 0.0, 4.0]])
    frame = SparseFrame(sp.csr_matrix(dense), ["1", "2", "3"])
    preparation = Preparation().fit(frame)
    out = preparation.transform(frame)
    assert sp.issparse(out)
    np.testing.assert_allclose(out.toarray(), dense / dense.std(axis=0))
    np.testing.assert_allclose(preparation.scales_, dense.std(axis=0))
    new = SparseFrame(sp.csr_matrix([[5.0, 7.0]]), ["2", "9"])
    np.testing.assert_allclose(
        preparation.transform(new).toarray(), [[0, 5 / dense[:, 1].std(), 0]]
    )
    assert preparation.news_in(new) == ["1 column that the model does not use: '9'."]
    said = message(preparation.transform, pd.DataFrame({"1": [1.0], "2": [1.0], "3": [1.0]}))
    assert (
        said == "the rows are from a table but the model learnt from svmlight: give the same kind."
    )


@given(
    st.integers(2, 12).flatmap(
        lambda n: st.tuples(
            st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n),
            st.lists(st.sampled_from("abc"), min_size=n, max_size=n),
            st.lists(st.booleans(), min_size=n, max_size=n),
        )
    ),
    st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_weights_in_original_units_give_the_same_scores(columns, scaled):
    frame = pd.DataFrame(dict(zip(["x", "colour", "b"], columns, strict=True)))
    scale = "standard" if scaled else "none"
    preparation = Preparation(scale=scale).fit(frame)
    plain = Preparation(scale="none").fit_transform(frame)
    p = plain.shape[1]
    coef = np.linspace(-1, 2, 2 * p).reshape(2, p)
    intercept = np.array([0.5, -1])
    got, b = preparation.to_original_units(coef, intercept)
    want = preparation.transform(frame) @ coef.T + intercept
    size = 1 + np.abs(plain).max() * np.abs(got).max()
    np.testing.assert_allclose(plain @ got.T + b, want, atol=1e-12 * size)


def test_in_a_pipeline(frame):
    y = [0, 1, 1, 0, 1]
    model = make_pipeline(Preparation(), LinearSVC()).fit(frame, y)
    assert model.predict(frame[frame.columns[::-1]]).tolist() == y
    assert list(model[:-1].get_feature_names_out())[:2] == ["age", "count"]


def test_match_columns_says_what_is_missing():
    frame = pd.DataFrame({"Age": [1], "b": [2]})
    said = message(match_columns, frame, ["age", "b"])
    assert (
        said
        == "1 column is missing that the model needs: 'age'. Spelled otherwise: 'Age' for 'age'."
    )
    said = message(match_columns, frame, [f"g{k}" for k in range(30)])
    assert said.startswith("30 of 30 columns are missing that the model needs: 'g0', 'g1'")
    assert said.endswith("'g9' and 20 more.")
