"""The picture of a cross-validated curve shows the numbers of its table."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from anynorm import ReweightedSVCCV, SparseSVCCV
from anynorm.datasets import make_relevant
from anynorm.plotting import CVCurveDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = make_relevant(n_samples=60, n_features=20, n_relevant=3, random_state=0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize("scoring", [None, "roc_auc"])
def test_the_curve_is_the_table(scoring):
    model = SparseSVCCV(cv=3, scoring=scoring, max_features=6).fit(X, Y)
    display = CVCurveDisplay.from_estimator(model)
    results = model.cv_results_
    score, features, chosen = display.lines_
    np.testing.assert_array_equal(score.get_xdata()[::2], results["s_low"])
    np.testing.assert_array_equal(score.get_xdata()[1::2], results["s_high"])
    np.testing.assert_array_equal(score.get_ydata()[::2], results["mean_test_score"])
    np.testing.assert_array_equal(features.get_ydata()[1::2], results["mean_n_features"])
    assert chosen.get_xdata()[0] == model.s_
    splits = np.array([results[f"split{k}_test_score"] for k in range(3)])
    errors = splits.std(axis=0, ddof=1) / np.sqrt(3)
    corners = display.band_.get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx((results["mean_test_score"] + errors).max())
    assert corners.min() == pytest.approx((results["mean_test_score"] - errors).min())
    name = "accuracy" if scoring is None else scoring
    assert display.ax_.get_ylabel() == f"cross-validated {name}"


def test_axes_and_style():
    figure, ax = plt.subplots()
    display = CVCurveDisplay([0.0, 1.0], [1.0, 2.0], [0.5, 0.7], [0.1, 0.1], [1, 2])
    display.plot(ax=ax, color="black")
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.lines_[0].get_color() == "black"
    assert len(display.lines_) == 2


def test_only_curves_can_be_drawn():
    with pytest.raises(NotFittedError):
        CVCurveDisplay.from_estimator(SparseSVCCV())
    walk = ReweightedSVCCV([0.1], max_rounds=2, cv=2).fit(X, Y)
    with pytest.raises(ValueError, match="ReweightedSVCCV has no scores along a path"):
        CVCurveDisplay.from_estimator(walk)


def test_the_range_that_matters_is_shown():
    low, high = [0.0, 1.0, 4.0], [1.0, 4.0, 100.0]
    score, error, features = [0.5, 0.9, 0.8], [0.1, 0.1, 0.1], [0, 2, 9]
    display = CVCurveDisplay(low, high, score, error, features, chosen=2.0)
    assert display.plot().ax_.get_xlim() == (0.0, 5.0)
    assert display.plot(whole=True).ax_.get_xlim() == (0.0, 100.0)
    assert display.plot(log=True).ax_.get_xscale() == "log"
