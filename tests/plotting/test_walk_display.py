"""The picture of a walk shows the numbers of its history."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from anynorm import LinearSVC, ReweightedSVC, ReweightedSVCCV
from anynorm.datasets import make_relevant
from anynorm.plotting import WalkDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = make_relevant(n_samples=60, n_features=40, n_relevant=3, random_state=0)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    "estimator", [ReweightedSVC(C=0.1, n_rounds=5), ReweightedSVCCV([0.1], max_rounds=3, cv=2)]
)
def test_the_curves_are_the_history(estimator):
    model = estimator.fit(X, Y)
    display = WalkDisplay.from_estimator(model)
    rounds = np.arange(1, len(model.history_) + 1)
    objective, *_, features = display.lines_
    np.testing.assert_array_equal(objective.get_xdata(), rounds)
    np.testing.assert_array_equal(objective.get_ydata(), [r.objective for r in model.history_])
    np.testing.assert_array_equal(features.get_ydata(), [r.n_nonzero for r in model.history_])
    assert display.bound <= model.history_[-1].objective
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [
        "1-norm objective",
        "lower bound",
        "features",
    ]


def test_given_axes_and_styles_are_used():
    model = ReweightedSVC(n_rounds=3).fit(X, Y)
    figure, ax = plt.subplots()
    display = WalkDisplay.from_estimator(model, ax=ax, color="black")
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert display.lines_[0].get_color() == "black"


def test_numbers_without_an_estimator():
    display = WalkDisplay([3.0, 2.0], [5, 4]).plot()
    assert len(display.lines_) == 2


def test_only_walks_can_be_drawn():
    with pytest.raises(NotFittedError):
        WalkDisplay.from_estimator(ReweightedSVC())
    with pytest.raises(ValueError, match="LinearSVC has no history"):
        WalkDisplay.from_estimator(LinearSVC().fit(X, Y))
