"""Fitted estimators show their score, what they use and their certificate in a notebook."""

import numpy as np
import pytest
from sklearn import config_context

from anynorm import (
    ConstrainedLasso,
    ConstrainedLassoCV,
    LeastSquaresSVC,
    LinearSVC,
    Reweighted,
    SparseSVC,
    SparseSVCCV,
)
from anynorm.datasets import make_relevant

X, Y = make_relevant(n_relevant=4, random_state=0)


def shown(model):
    html = model._repr_html_()
    assert model._repr_mimebundle_()["text/html"].startswith(html[:20])
    return html


def test_before_fit_there_is_the_diagram_alone():
    assert shown(LinearSVC()).startswith("<style>")


@pytest.mark.parametrize("sparsify", [False, True])
def test_features_and_certificate(sparsify):
    model = SparseSVC(C=0.1).fit(X, Y)
    used = np.count_nonzero(model.coef_)
    html = shown(model.sparsify() if sparsify else model)
    assert f"<b>Features</b> {used} of 200" in html
    assert "<b>Certificate</b> optimal: primal" in html
    assert "<style>" in html


def test_scores_of_searches_and_of_leaving_one_out():
    model = SparseSVCCV(max_features=3).fit(X, Y)
    assert f"<b>Cross-validated accuracy</b> {model.best_score_:.4g}" in shown(model)
    model = LeastSquaresSVC(leave_one_out=True).fit(X, Y)
    assert f"<b>Leave-one-out error</b> {model.loo_error_:.1%}" in shown(model)
    assert "<b>Support vectors</b> 100" in shown(model)


def test_regressions_and_walks_around_others_show_theirs():
    model = ConstrainedLassoCV(cv=3).fit(X, Y)
    error = np.mean((Y - ConstrainedLasso(model.radius_).fit(X, Y).predict(X)) ** 2)
    assert f"<b>Cross-validated mean squared error</b> {-model.best_score_:.4g}" in shown(model)
    assert -model.best_score_ > error
    for fitted in (model, Reweighted(LinearSVC()).fit(X, Y)):
        assert f"<b>Features</b> {np.count_nonzero(fitted.coef_)} of 200" in shown(fitted)
        assert "<b>Certificate</b> optimal: primal" in shown(fitted)


def test_text_where_diagrams_are_not_wanted():
    with config_context(display="text"):
        assert list(LinearSVC().fit(X, Y)._repr_mimebundle_()) == ["text/plain"]
