"""A fitted model has its report in one line."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from anynorm import (
    SVC,
    ConstrainedLasso,
    LinearSVC,
    ReweightedSVCCV,
    SparseSVCCV,
    load_model,
    report,
    save_model,
    sparse_svm_path,
)
from tests.app.model_files.models import BINARY, CLASSIFIERS, THREE, X

OLD, NEW = slice(0, 26), slice(26, 36)


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two", "three"])
@pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
def test_every_classifier_has_a_page(model, y, tmp_path):
    model = clone(model).fit(X[OLD], y[OLD])
    content = report.report_of(model, X[NEW], y[NEW])
    wrong = np.mean(model.predict(X[NEW]) != y[NEW])
    assert content.facts["Error"].startswith(f"{wrong:.1%} ± ")
    assert content.certificate is model.certificate_
    np.testing.assert_array_equal(content.evaluation.scores, model.decision_function(X[NEW]))
    report.write_report(model, tmp_path / "report.html", X[NEW], y[NEW], title="My title")
    assert "<title>My title</title>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    report.write_report(model, tmp_path / "alone.html")


@pytest.mark.parametrize("y", [BINARY, THREE], ids=["two", "three"])
def test_a_path_has_the_curve_and_the_choice_of_its_folds(y, tmp_path):
    model = SparseSVCCV(cv=3, rule="one_se").fit(X, y)
    content = report.report_of(model)
    views = content.classes
    assert content.in_common == ("s" if len(views) == 1 else "C")
    assert len(views) == len(model.paths_)
    for view, s in zip(views, np.atleast_1d(model.s_), strict=True):
        assert view.picks == {"one_se": s}
        # a path stays at its s for a while as C rises, and the curve of several classes is one of
        # C: the page shows the last value at a place
        there = 1 - view.cv_error[np.searchsorted(view.cv_s, s, side="right") - 1]
        assert np.isclose(there, model.best_score_)
    save_model(model, tmp_path / "model.anynorm")
    report.write_report(load_model(tmp_path / "model.anynorm"), tmp_path / "again.html")


def test_a_walk_has_its_rounds_and_its_table():
    model = ReweightedSVCCV([0.1, 1.0], max_rounds=3, cv=3, rule="one_se").fit(X, BINARY)
    content = report.report_of(model)
    assert len(content.objectives) == model.n_rounds_
    np.testing.assert_allclose(content.cv_error[-1], 1 - model.best_score_)
    row, column = content.grid.chosen
    assert content.grid.columns[1][column] == model.C_
    assert content.grid.rows[1][row] == model.n_rounds_


def test_features_have_the_names_and_scales_of_what_made_them():
    frame_names = [f"gene {k}" for k in range(6)]
    inside = SparseSVCCV(cv=3, preprocessor=StandardScaler()).fit(X, BINARY)
    around = make_pipeline(StandardScaler(), LinearSVC()).fit(X, BINARY)
    for model in (inside, around):
        content = report.report_of(model)
        np.testing.assert_allclose(content.scales, X.std(axis=0))
        assert list(content.feature_names) == [f"x{k}" for k in range(6)]
    pd = pytest.importorskip("pandas")
    named = LinearSVC().fit(pd.DataFrame(X, columns=frame_names), BINARY)
    assert list(report.report_of(named).feature_names) == frame_names
    assert report.report_of(make_pipeline(StandardScaler(), SVC()).fit(X, BINARY)).scales is None


def test_a_path_alone_has_one_too(tmp_path):
    report.write_report(sparse_svm_path(X, BINARY), tmp_path / "path.html", title="The path")
    assert "<title>The path</title>" in (tmp_path / "path.html").read_text(encoding="utf-8")


def test_what_has_no_report_is_refused(tmp_path):
    file, model = tmp_path / "report.html", LinearSVC().fit(X, BINARY)
    for other in (LogisticRegression().fit(X, BINARY), ConstrainedLasso().fit(X, X[:, 0]), "x"):
        with pytest.raises(TypeError, match="model must be a fitted classifier of anynorm"):
            report.write_report(other, file)
    with pytest.raises(ValueError, match="X and y go together"):
        report.write_report(model, file, X)
    with pytest.raises(ValueError, match="y has the label 'perhaps'"):
        report.write_report(model, file, X, np.where(BINARY == "no", "no", "perhaps"))
    with pytest.raises(TypeError, match="a GenericReport has its rows and its title"):
        report.write_report(report.report_of(model), file, title="Another")
    assert not file.exists()
