"""Warnings point at the user's line, wherever the fit is called from; nothing else prints."""

import ast
import pathlib
import warnings

import joblib
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import anynorm
from anynorm import (
    ConstrainedLasso,
    LinearSVC,
    SparseSVCCV,
    kernel_lasso,
    min_norm_point,
    sparse_svm_path,
)
from tests.estimators.plain import noisy_classes
from tests.estimators.public import ESTIMATORS, made, parameters

X, Y = noisy_classes(n=60, p=5)
SOURCE = pathlib.Path(anynorm.__file__).parent


def lines_of_warnings(work, category=ConvergenceWarning):
    """The files and lines that the warnings of a call point at."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        work()
    found = [w for w in caught if issubclass(w.category, category)]
    assert found
    return {(w.filename, w.lineno) for w in found}


def assert_here(found):
    """All of them point at this file, at the line of the call, not at that of a helper."""
    (place,) = found
    assert place[0] == __file__
    line = pathlib.Path(__file__).read_text().splitlines()[place[1] - 1]
    assert "lambda: " in line


def unconverged(Estimator, base=None):
    """An instance, perhaps of a subclass, that cannot reach its tol."""
    kind = Estimator if base is None else base
    given = {"tol": 1e-300, "max_iter": 1, "solver": "cg", "Cs": [1.0], "max_rounds": 2, "cv": 2}
    return kind(**made(Estimator, **given).get_params(deep=False))


WARNING = [Estimator for Estimator in ESTIMATORS if "tol" in parameters(Estimator)]


@pytest.mark.parametrize("Estimator", WARNING)
def test_a_fit_warns_at_its_line(Estimator):
    model = unconverged(Estimator)
    assert_here(lines_of_warnings(lambda: model.fit(X, Y)))


@pytest.mark.parametrize("Estimator", WARNING)
def test_the_fit_of_a_subclass_warns_at_the_line_of_its_caller(Estimator):
    """A subclass that calls our fit in its own is the user's, and so is its line."""

    class Plain(Estimator):
        pass

    class Wrapping(Estimator):
        def fit(self, X, y):
            work = lambda: super(Wrapping, self).fit(X, y)  # noqa: E731
            return work()

    for kind in (Plain, Wrapping):
        kind.__init__ = Estimator.__init__
        model = unconverged(Estimator, kind)
        assert_here(lines_of_warnings(lambda: model.fit(X, Y)))  # noqa: B023


@pytest.mark.parametrize("Estimator", WARNING)
def test_a_pipeline_warns_at_its_line(Estimator):
    model = make_pipeline(StandardScaler(), unconverged(Estimator))
    assert_here(lines_of_warnings(lambda: model.fit(X, Y)))


@pytest.mark.parametrize("Estimator", WARNING)
def test_cross_validation_warns_at_its_line(Estimator):
    model = unconverged(Estimator)
    assert_here(lines_of_warnings(lambda: cross_val_score(model, X, Y, cv=2)))
    search = GridSearchCV(model, {"tol": [1e-300]}, cv=2)
    assert_here(lines_of_warnings(lambda: search.fit(X, Y)))


def test_the_threads_of_a_search_warn_at_the_line_that_called_us():
    """The user's line is not on their stack; that of the pool, which was taken, says nothing."""
    model = unconverged(LinearSVC)
    with joblib.parallel_config(backend="threading"):
        found = lines_of_warnings(lambda: cross_val_score(model, X, Y, cv=2, n_jobs=2))
    (place,) = found
    assert place[0].startswith(str(pathlib.Path(sklearn.__file__).parent))


def test_functions_warn_at_their_line():
    A = X.T + 1.0
    assert_here(lines_of_warnings(lambda: min_norm_point(A, tol=1e-300, max_iter=1)))
    assert_here(lines_of_warnings(lambda: kernel_lasso(A, A[:, 0] + 1, tol=1e-300, max_iter=1)))
    lasso = ConstrainedLasso(tol=1e-300)
    assert_here(lines_of_warnings(lambda: lasso.path(X, Y + X[:, 0])))


def test_paths_warn_at_their_line(monkeypatch):
    """Gaps of paths are those of rounding: the bound is lowered rather than the data made bad."""
    from anynorm.estimators import sparse_path

    monkeypatch.setattr(sparse_path.warn_of_gaps, "__defaults__", (0.0,))
    assert_here(lines_of_warnings(lambda: sparse_svm_path(X, Y)))
    assert_here(lines_of_warnings(lambda: SparseSVCCV(cv=2).fit(X, Y)))
    monkeypatch.undo()
    limited = SparseSVCCV(cv=2, time_limit=1e-9)
    assert_here(lines_of_warnings(lambda: limited.fit(X, Y)))


def test_a_column_of_labels_is_warned_of_at_the_line_of_the_fit():
    column = Y[:, None]
    work = [
        *(lambda: LinearSVC().fit(X, column), lambda: ConstrainedLasso().fit(X, column)),
        lambda: made(anynorm.Reweighted).fit(X, column),
        lambda: sparse_svm_path(X, column),
    ]
    for call in work:
        assert_here(lines_of_warnings(call, DataConversionWarning))


def test_only_one_module_prints_and_warns():
    """Solvers and all the rest of the library are silent; the shell's commands are not meant."""
    for file in SOURCE.rglob("*.py"):
        place = file.relative_to(SOURCE).as_posix()
        if place.startswith("app/") or place == "estimators/_messages.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            called = getattr(node, "func", None)
            name = getattr(called, "id", None)
            assert name != "print", f"{place}:{node.lineno} prints"
            attribute = getattr(called, "attr", None)
            assert attribute not in ("warn", "warn_explicit"), f"{place}:{node.lineno} warns"
