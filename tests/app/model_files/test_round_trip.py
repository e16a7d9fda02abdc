"""What is loaded is what was saved, to the last bit."""

from __future__ import annotations

import os
import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

import anynorm
from anynorm import ModelFileError, load_metadata, load_model, norms, save_model
from anynorm.app.model_files.fitted import check_of
from anynorm.app.model_files.kinds import KINDS
from anynorm.estimators.paths.lasso_path import LassoPath
from anynorm.estimators.paths.solution_path import SolutionPath
from anynorm.kernels.gram import Gram
from anynorm.kernels.sums import KernelSums
from tests.app.model_files import models
from tests.project.test_import import run_fresh


def assert_same(one: Any, other: Any, where: str = "model") -> None:
    """Assert that two values are equal in type, structure and every bit."""
    assert type(one) is type(other), where
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), where
        if one.flags.forc:  # views with gaps become arrays without
            assert one.flags.fnc == other.flags.fnc, where  # BLAS sums in another order for each
        if one.dtype.hasobject:
            assert_same(one.ravel().tolist(), other.ravel().tolist(), where)
        else:
            assert one.tobytes() == other.tobytes(), where
    elif sp.issparse(one):
        for part in ("shape", "data", "indices", "indptr"):
            assert_same(getattr(one, part), getattr(other, part), f"{where}.{part}")
    elif isinstance(one, dict):
        assert list(one) == list(other), where
        for key in one:
            assert_same(one[key], other[key], f"{where}[{key!r}]")
    elif isinstance(one, list | tuple):
        assert len(one) == len(other), where
        for k, (left, right) in enumerate(zip(one, other, strict=True)):
            assert_same(left, right, f"{where}[{k}]")
    elif isinstance(one, SolutionPath | LassoPath):
        assert_same(one.__getstate__(), other.__getstate__(), where)
    elif isinstance(one, KernelSums | Gram):
        assert_same(one.kernel, other.kernel, where)
        assert_same(one.origin, other.origin, where)
    elif isinstance(one, np.random.RandomState):
        assert_same(one.get_state(), other.get_state(), where)
    elif hasattr(one, "__dict__") and not isinstance(one, type | str):
        ignored = {"_loss_function_"}
        left = {k: v for k, v in vars(one).items() if k not in ignored}
        assert_same(dict(sorted(left.items())), dict(sorted(vars(other).items())), where)
    else:
        assert one == other or (one != one and other != other), where


@pytest.mark.parametrize("name", models.MAKERS)
def test_a_loaded_model_is_the_saved_one_to_the_last_bit(name, tmp_path):
    model, rows = models.made(name)
    path = tmp_path / "model.anynorm"
    save_model(model, path)
    loaded = load_model(path)
    assert_same(model, loaded)
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            assert_same(getattr(model, method)(rows), getattr(loaded, method)(rows), method)
    assert re.sub("0x[0-9A-Fa-f]+", "", repr(model)) == re.sub("0x[0-9A-Fa-f]+", "", repr(loaded))
    first = path.read_bytes()
    save_model(loaded, path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("name", ["sparse-cv, two classes", "sparse-cv, three classes"])
def test_a_loaded_path_answers_as_the_saved_one(name, tmp_path):
    model, rows = models.made(name)
    save_model(model, tmp_path / "model.anynorm")
    loaded = load_model(tmp_path / "model.anynorm")
    for before, after in zip(model.paths_, loaded.paths_, strict=True):
        assert_same(before.decision_function(rows), after.decision_function(rows))
        s = float(before.s[-1]) / 3
        assert_same(before.coef_at(s=s), after.coef_at(s=s))
        assert before.detached().certificate_at(s) == after.certificate_at(s)
    if hasattr(model, "path_"):
        assert loaded.path_ is loaded.paths_[0]


def test_a_path_alone_is_a_model(tmp_path):
    path = anynorm.sparse_svm_path(models.X, models.BINARY)
    save_model(path, tmp_path / "path.anynorm")
    assert_same(path.detached(), load_model(tmp_path / "path.anynorm"))


def test_a_loaded_model_can_be_fitted_again(tmp_path):
    for name in ("svc, two classes", "linear, three classes", "budget, two classes"):
        model, rows = models.made(name)
        save_model(model, tmp_path / "model.anynorm")
        y = models.THREE if "three" in name else models.BINARY
        loaded = load_model(tmp_path / "model.anynorm").set_params(warm_start=False)
        fresh = sklearn.clone(loaded).fit(rows, y)
        assert_same(fresh.decision_function(rows), loaded.fit(rows, y).decision_function(rows))


def test_a_wide_prediction_of_a_narrow_model_is_the_same(tmp_path):
    model, rows = models.made("svc-narrow, two classes")
    save_model(model, tmp_path / "model.anynorm")
    wide = rows.astype(np.float64)
    loaded = load_model(tmp_path / "model.anynorm")
    assert_same(model.decision_function(wide), loaded.decision_function(wide))


def test_metadata_come_back_without_the_model(tmp_path):
    given = {
        "target": "status",
        "labels": np.array(["a", "b"]),
        "missing": float("nan"),
        "shape": (3, 4),
        1: [None, True, -0.0, 1e-320, {"ü": "\ud800"}],
        "big": 2**70,
    }
    model, _ = models.made("linear, two classes")
    save_model(model, tmp_path / "model.anynorm", metadata=given)
    assert_same(given, load_metadata(tmp_path / "model.anynorm"))
    save_model(model, tmp_path / "model.anynorm")
    assert load_metadata(tmp_path / "model.anynorm") == {}
    with pytest.raises(ModelFileError, match="metadata must be a dict"):
        save_model(model, tmp_path / "model.anynorm", metadata=[1])


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=5)
    | st.integers(-128, 127).map(np.int8)
    | st.floats(width=32).map(np.float32)
    | st.booleans().map(np.bool_)
)
_arrays = arrays(
    st.sampled_from(["<f8", "<f4", "<f2", "<i8", "|u1", "|b1", "<U3"]),
    array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
) | st.lists(st.text(max_size=3) | st.none() | st.integers(), max_size=3).map(
    lambda items: np.array([*items, None], dtype=object)
)
_values = st.recursive(
    _scalars | _arrays | _arrays.map(lambda array: array.T),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3) | st.integers() | st.booleans(), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(max_size=3), _values, max_size=4))
def test_data_of_any_shape_come_back(tmp_path_factory, metadata):
    path = tmp_path_factory.getbasetemp() / "data.anynorm"
    save_model(models.made("linear, two classes")[0], path, metadata=metadata)
    assert_same(metadata, load_metadata(path))


def test_every_estimator_has_a_place_in_files_and_in_these_tests():
    def parts(model):
        yield type(model)
        for part in model if isinstance(model, Pipeline) else [getattr(model, "estimator", None)]:
            if part is not None:
                yield from parts(part)

    tested = {part for name in models.MAKERS for part in parts(models.made(name)[0])}
    for name in anynorm.__all__:
        value = getattr(anynorm, name)
        if isinstance(value, type) and hasattr(value, "fit"):
            assert f"anynorm.{name}" in KINDS, name
            assert value in tested, name


def test_a_class_of_no_known_family_has_no_check_and_no_place():
    class Stranger(BaseEstimator):
        pass

    class Relative(anynorm.SparseSVC):
        pass

    assert check_of(Relative) is check_of(anynorm.LinearSVC)
    with pytest.raises(TypeError, match="Stranger has no family"):
        check_of(Stranger)


def test_requests_for_metadata_are_kept(tmp_path):
    with sklearn.config_context(enable_metadata_routing=True):
        model = anynorm.LinearSVC().set_fit_request(sample_weight="w").fit(models.X, models.BINARY)
        save_model(model, tmp_path / "model.anynorm")
        loaded = load_model(tmp_path / "model.anynorm")
        assert str(loaded.get_metadata_routing()) == str(model.get_metadata_routing())
        assert "'sample_weight': 'w'" in str(loaded.get_metadata_routing())


def _kernel(A, B):
    return A @ B.T


class _Mine(anynorm.LinearSVC):
    pass


class _Changed:
    """A model whose kernel was exchanged after its fit."""

    def __init__(self, kernel):
        self.model = anynorm.SVC(kernel=kernel)

    def fit(self, X, y):
        return self.model.fit(X, y).set_params(kernel="rbf")


class _MyNorm(norms.L1):
    pass


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: anynorm.SVC(kernel=_kernel),
            r"SVC was fitted with a kernel.*precomputed",
        ),
        (
            lambda: anynorm.SVC(kernel="linear", slack=norms.Mahalanobis(lambda X: np.eye(len(X)))),
            r"Mahalanobis's M is the function.*Mahalanobis\(M\(X\)\)",
        ),
        (lambda: anynorm.SVC(kernel="linear", slack=_MyNorm()), "SVC's slack is a .*_MyNorm"),
        (
            lambda: anynorm.SparseSVCCV(cv=2, scoring=lambda model, X, y: 0.5),
            r"scoring is the function.*set_params\(scoring=None\)",
        ),
        (lambda: anynorm.SparseSVCCV(cv=iter([([0, 1, 2], [3])])), r"set_params\(cv=None\)"),
        (lambda: _Changed(kernel=_kernel), r"SVC was fitted with a kernel.*precomputed"),
        (
            lambda: OneVsRestClassifier(anynorm.SVC(kernel=_kernel)),
            r"SVC's kernel is the function _kernel.*precomputed",
        ),
        (lambda: _Mine(), "the model is a .*_Mine"),
        (
            lambda: GridSearchCV(anynorm.LinearSVC(), {"C": [1.0]}, cv=2),
            "GridSearchCV.*Save its best_estimator_",
        ),
        (lambda: anynorm.LinearSVC(random_state=np.random), r"random_state is a .*module"),
    ],
)
def test_code_is_refused_with_a_remedy(make, message, tmp_path):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 1, 0, 1]
    model = make().fit(X, y)
    with pytest.raises(ModelFileError, match=message):
        save_model(model, tmp_path / "model.anynorm")
    assert os.listdir(tmp_path) == []


def test_a_folder_of_pickles_is_not_kept(tmp_path):
    # A pipeline's memory is such a folder, which fit reads: a stranger's must not be followed.
    model = make_pipeline(StandardScaler(), anynorm.LinearSVC(), memory=str(tmp_path / "cache"))
    save_model(model.fit(models.X, models.BINARY), tmp_path / "model.anynorm")
    assert load_model(tmp_path / "model.anynorm").memory is None


def test_an_attribute_of_ones_own_is_named(tmp_path):
    model = anynorm.LinearSVC().fit([[0.0], [1.0]], [0, 1])
    model.note = "mine"
    with pytest.raises(ModelFileError, match=r"attribute 'note'.*metadata"):
        save_model(model, tmp_path / "model.anynorm")


def test_a_model_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(NotFittedError):
        save_model(anynorm.LinearSVC(), tmp_path / "model.anynorm")


def test_loading_needs_neither_numba_nor_matplotlib(tmp_path):
    path = tmp_path / "model.anynorm"
    save_model(models.made("sparse-cv, two classes")[0], path)
    heavy = "{'numba', 'matplotlib'}"
    code = f"import sys, anynorm; anynorm.load_model({str(path)!r}); "
    code += f"print(sorted({heavy} & set(sys.modules)))"
    assert run_fresh(code) == "[]"
