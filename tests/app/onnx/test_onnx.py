"""What onnxruntime computes from an exported graph is what the model computes."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

import anynorm
from anynorm import to_onnx
from anynorm.app.tables import Preparation
from tests.app.model_files.models import CLASSIFIERS

onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'anynorm[onnx]'")
runtime = pytest.importorskip(
    "onnxruntime", reason="onnxruntime is not installed: pip install onnxruntime"
)

RNG = np.random.default_rng(5)
# Inputs are float32: both sides get the same numbers.
X = (3.0 + RNG.normal(size=(60, 5)) * [1, 10, 0.1, 5, 1]).astype(np.float32).astype(np.float64)
BINARY = np.where(X[:, 0] + 0.1 * X[:, 1] > 3.3, "ill", "well")
THREE = np.digitize(X[:, 0] - X[:, 4], [-0.5, 0.5]) * 10
TARGET = X @ np.arange(5.0)
NEW = (3.0 + RNG.normal(size=(300, 5)) * [1, 10, 0.1, 5, 1]).astype(np.float32)
FRAME = pd.DataFrame(
    {
        "age": X[:, 0],
        "site": np.array(["north", "south", "wést"])[np.arange(60) % 3],
        "dose": np.where(X[:, 1] > 12, np.nan, X[:, 1]),
        "smoker": X[:, 2] > 3,
        "sex": np.array(["f", "m"])[(np.arange(60) // 2) % 2],
    }
)


def answers(proto, inputs):
    session = runtime.InferenceSession(
        proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def assert_agrees(model, proto, inputs, rows, dtype=np.float32):
    """Labels are equal; scores are to the last digits of `dtype`."""
    found = answers(proto, inputs)
    tight = {"rtol": 1e-12 if dtype == np.float64 else 1e-7, "atol": 1e-10}
    if "variable" in found:
        assert found["variable"].dtype == dtype
        np.testing.assert_allclose(found["variable"], model.predict(rows), **tight)
        return found
    scores = model.decision_function(rows)
    assert found["scores"].dtype == dtype
    assert found["scores"].shape == scores.shape
    np.testing.assert_allclose(found["scores"], scores, **tight)
    assert found["label"].tolist() == model.predict(rows).tolist()
    return found


KERNELS = {
    "rbf": anynorm.SVC(C=10.0),
    "rbf, far from the origin": anynorm.SVC(gamma=0.2),
    "poly": anynorm.SVC(kernel="poly", degree=2, coef0=1.0),
    "linear": anynorm.LeastNormSVC(kernel="linear", C=0.01),
}
MODELS = {**CLASSIFIERS, **KERNELS}


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("scaled", [False, True], ids=["alone", "scaled"])
def test_classifiers_agree(name, y, scaled):
    model = clone(MODELS[name])
    model = make_pipeline(StandardScaler(), model) if scaled else make_pipeline(model)
    model.fit(X, y)
    model = model if scaled else model[-1]
    found = assert_agrees(model, to_onnx(model), {"X": NEW}, NEW.astype(np.float64))
    assert len(set(found["label"].tolist())) >= 2


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (anynorm.ConstrainedLasso(5.0), TARGET),
        (anynorm.Reweighted(Ridge()), TARGET),
        (anynorm.Reweighted(LogisticRegression()), BINARY),
        (anynorm.Reweighted(anynorm.LinearSVC()), BINARY),
        (OneVsRestClassifier(anynorm.Reweighted(anynorm.LinearSVC())), THREE),
        (anynorm.LinearSVC(fit_intercept=False), BINARY),
        (anynorm.SparseSVC(C=1e-6), BINARY),  # all coefficients are zero
        (make_pipeline(RobustScaler(), MinMaxScaler(clip=True), anynorm.LinearSVC()), THREE),
        (make_pipeline(MaxAbsScaler(), "passthrough", anynorm.ConstrainedLasso(5.0)), TARGET),
        (make_pipeline(StandardScaler(with_std=False), anynorm.LinearSVC(C=0.1)), THREE),
        (make_pipeline(StandardScaler(with_mean=False), anynorm.LinearSVC(C=0.1)), THREE),
        (make_pipeline(anynorm.KernelDictionary(n_components=20), anynorm.SparseSVC()), BINARY),
        (
            make_pipeline(
                StandardScaler(), anynorm.PolynomialDictionary(), anynorm.SparseSVC(C=0.1)
            ),
            BINARY,
        ),
    ],
    ids=lambda value: type(value[-1] if isinstance(value, Pipeline) else value).__name__,
)
def test_other_models_agree(model, y):
    model.fit(X, y)
    assert_agrees(model, to_onnx(model), {"X": NEW}, NEW.astype(np.float64))


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), anynorm.LinearSVC()),
        make_pipeline(MinMaxScaler(), anynorm.SVC(kernel="poly", gamma=0.3)),
        make_pipeline(MaxAbsScaler(), anynorm.PolynomialDictionary(), anynorm.LinearSVC()),
        make_pipeline(RobustScaler(with_centering=False), anynorm.SVC()),
    ],
)
def test_a_single_column_is_not_rounded(model):
    # onnxruntime made a single factor beside a matrix product a float32
    column, rows = X[:, :1], NEW[:, :1].astype(np.float64)
    model.fit(column, column[:, 0] > 3.1)
    assert_agrees(model, to_onnx(model, dtype="float64"), {"X": rows}, rows, np.float64)


def test_a_sparse_coefficient_matrix_and_float64_rows_agree():
    model = anynorm.SparseSVC(C=0.2).fit(X, THREE).sparsify()
    rows = RNG.normal(size=(50, 5))
    assert_agrees(model, to_onnx(model, dtype="float64"), {"X": rows}, rows, np.float64)


def test_a_precomputed_kernel_agrees():
    kernel = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 500)
    model = anynorm.SVC(kernel="precomputed").fit(kernel, BINARY)
    proto = to_onnx(model, dtype="float64")
    assert_agrees(model, proto, {"X": kernel}, kernel, np.float64)


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        (BINARY == "ill", "tensor(bool)"),
        (BINARY.astype(object), "tensor(string)"),
        (THREE.astype(np.int8), "tensor(int64)"),
        (THREE.astype(np.float64), "tensor(double)"),
    ],
)
def test_labels_keep_their_type(labels, kind):
    model = anynorm.LinearSVC(C=0.1).fit(X, labels)
    proto = to_onnx(model)
    session = runtime.InferenceSession(proto.SerializeToString())
    assert session.get_outputs()[0].type == kind
    assert_agrees(model, proto, {"X": NEW}, NEW.astype(np.float64))


@pytest.mark.parametrize("scale", ["standard", "none"])
@pytest.mark.parametrize(
    "columns", [["age", "site", "dose", "smoker", "sex"], ["age", "dose"], ["site", "sex"]]
)
def test_the_preparation_of_a_table_agrees(scale, columns):
    steps = [("prepare", Preparation(scale)), ("model", anynorm.LinearSVC())]
    frame = FRAME[columns].copy()
    if "site" in columns:
        frame.loc[7, "site"] = None  # missing becomes a level
    model = Pipeline(steps).fit(frame, THREE)
    proto = to_onnx(model)
    rows = frame.iloc[::-1].reset_index(drop=True)
    if "site" in columns:
        rows.loc[3, "site"] = "never seen"
    inputs = {}
    for entry in proto.metadata_props:
        part = rows[json.loads(entry.value)]
        inputs[entry.key] = (
            part.fillna("").to_numpy(dtype=object)
            if entry.key == "categories"
            else part.to_numpy(dtype=np.float32)
        )
    assert set(inputs) == ({"X"} if columns == ["age", "dose"] else
                           {"categories"} if columns == ["site", "sex"] else
                           {"numbers", "categories"})  # fmt: skip
    assert_agrees(model, proto, inputs, rows)


def test_names_of_columns_are_kept():
    frame = FRAME[["age", "dose"]].fillna(1.0)
    model = make_pipeline(StandardScaler(), anynorm.LinearSVC()).fit(frame, BINARY)
    assert {e.key: json.loads(e.value) for e in to_onnx(model).metadata_props} == {
        "X": ["age", "dose"]
    }


def test_the_file_is_what_is_returned(tmp_path):
    model = anynorm.LinearSVC().fit(X, BINARY)
    proto = to_onnx(model, tmp_path / "model.onnx")
    assert onnx.load(tmp_path / "model.onnx") == proto
    assert (proto.producer_name, proto.producer_version) == ("anynorm", anynorm.__version__)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.onnx"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (make_pipeline(Normalizer(), anynorm.LinearSVC()), "Normalizer has no translation"),
        (anynorm.SVC(kernel=lambda A, B: A @ B.T), "a callable kernel has no translation"),
        (make_pipeline(StandardScaler(), LogisticRegression()), "LogisticRegression has no"),
        (
            make_pipeline(SimpleImputer(add_indicator=True), anynorm.LinearSVC()),
            "SimpleImputer has no translation",
        ),
        (
            make_pipeline(
                ColumnTransformer([("a", StandardScaler(), [0, 1])]), anynorm.LinearSVC()
            ),
            "ColumnTransformer has no translation.*skl2onnx",
        ),
    ],
)
def test_what_has_no_translation_is_named(model, message):
    with pytest.raises(ValueError, match=message):
        to_onnx(model.fit(X, BINARY))


def test_wrong_requests_are_refused(monkeypatch):
    model = anynorm.LinearSVC().fit(X, BINARY)
    with pytest.raises(ValueError, match="dtype must be 'float32' or 'float64'; got 'half'"):
        to_onnx(model, dtype="half")
    monkeypatch.setitem(sys.modules, "onnx", None)
    for name in ("graph", "translation"):
        monkeypatch.delitem(sys.modules, f"anynorm.app.onnx.{name}", raising=False)
    with pytest.raises(ImportError, match=r"pip install 'anynorm\[onnx\]'"):
        to_onnx(model)


@pytest.mark.parametrize("labels", [BINARY, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    "model",
    [
        anynorm.SVCCV([1.0], gammas=["scale"], cv=3, calibration="sigmoid"),
        anynorm.SVCCV([1.0], gammas=["scale"], cv=3, calibration="isotonic"),
        anynorm.SparseSVCCV(cv=3, calibration="isotonic"),
        anynorm.LinearSVC(loss="logistic"),
    ],
    ids=["sigmoid", "isotonic", "isotonic-linear", "logistic"],
)
def test_probabilities(model, labels):
    fitted = make_pipeline(StandardScaler(), clone(model)).fit(X, labels)
    found = answers(to_onnx(fitted), {"X": NEW})
    assert found["probabilities"].shape == (300, len(np.unique(labels)))
    np.testing.assert_allclose(
        found["probabilities"], fitted.predict_proba(NEW.astype(np.float64)), atol=1e-6
    )


def test_models_without_probabilities_have_no_such_output():
    assert "probabilities" not in answers(to_onnx(anynorm.LinearSVC().fit(X, BINARY)), {"X": NEW})
