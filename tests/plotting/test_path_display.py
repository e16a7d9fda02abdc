"""The picture of a path shows its coefficients, labels the largest and marks the joints."""

import itertools
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from anynorm import LinearSVC, SparseSVCCV, sparse_svm_path
from anynorm.datasets import make_relevant
from anynorm.plotting import PathDisplay
from anynorm.plotting.path_display import spread
from tests.estimators.plain import noisy_classes

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")

X, Y = make_relevant(n_samples=60, n_features=40, n_relevant=3, random_state=0)
PATH = sparse_svm_path(X, Y)


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def test_the_lines_are_the_coefficients():
    display = PATH.plot()
    assert isinstance(display, PathDisplay)
    coefs = PATH.coefs.toarray()
    largest = np.argsort(-np.abs(coefs[-1]))[:10]
    assert len(display.lines_) == len(display.labels_) == 10
    for line, label, j in zip(display.lines_, display.labels_, largest, strict=True):
        assert line.get_label() == label.get_text() == f"x{j}"
        np.testing.assert_array_equal(line.get_xdata(), PATH.s)
        values = line.get_ydata()
        np.testing.assert_array_equal(np.nan_to_num(values), coefs[:, j])
        assert not np.isnan(values[coefs[:, j] != 0]).any()
    used = np.count_nonzero(coefs.any(axis=0))
    assert len(display.others_.get_segments()) == used - 10
    np.testing.assert_array_equal(display.joints_.get_xdata(), PATH.s)
    assert display.chosen_ is None


def test_names_axes_and_style():
    figure, ax = plt.subplots()
    names = np.array([f"gene {k}" for k in range(40)])
    display = PathDisplay(PATH.s, PATH.coefs.toarray(), names, chosen=0.5)
    display.plot(ax=ax, n_labels=2, linewidth=3.0)
    assert display.ax_ is ax
    assert display.figure_ is figure
    assert len(display.lines_) == 2
    assert display.lines_[0].get_linewidth() == 3.0
    assert display.labels_[0].get_text().startswith("gene ")
    assert display.chosen_.get_xdata() == [0.5, 0.5]


def test_labels_do_not_overlap():
    display = PATH.plot()
    display.figure_.canvas.draw()
    boxes = sorted((label.get_window_extent() for label in display.labels_), key=lambda b: b.y0)
    for below, above in itertools.pairwise(boxes):
        assert above.y0 >= below.y1 - 4.0


def test_labels_are_moved_as_little_as_needed():
    places = np.array([0.9, 0.1, 0.5])
    np.testing.assert_allclose(spread(places, 0.1), places)
    crowded = spread(np.array([0.5, 0.5, 0.51, 0.2]), 0.1)
    assert np.diff(np.sort(crowded)).min() >= 0.1 - 1e-12
    assert crowded[3] == 0.2
    np.testing.assert_allclose(crowded[:3].mean(), np.mean([0.5, 0.5, 0.51]))
    assert spread(np.full(4, 0.99), 0.1).max() <= 1.0
    assert len(spread(np.empty(0), 0.1)) == 0


def test_a_path_without_features():
    display = sparse_svm_path(np.zeros((4, 2)), [0, 1, 0, 1]).plot()
    assert display.lines_ == []


def test_estimators():
    model = SparseSVCCV(cv=2, max_features=5).fit(X, Y)
    display = PathDisplay.from_estimator(model, n_labels=3)
    assert len(display.lines_) == 3
    assert display.chosen_.get_xdata()[0] == model.s_
    three, codes = noisy_classes(n=45, p=4, n_classes=3)
    several = SparseSVCCV(cv=2).fit(three, codes)
    display = PathDisplay.from_estimator(several, class_label=2)
    np.testing.assert_array_equal(display.s, several.paths_[2].s)
    with pytest.raises(ValueError, match=r"^class_label must be one of"):
        PathDisplay.from_estimator(several)
    with pytest.raises(NotFittedError):
        PathDisplay.from_estimator(SparseSVCCV())
    with pytest.raises(ValueError, match="LinearSVC has no path"):
        PathDisplay.from_estimator(LinearSVC().fit(X, Y))


def test_the_range_that_matters_is_shown():
    """The chosen s = 4.3 was a smear at the left edge of a path that runs to 2233."""
    s = np.array([0.0, 1.0, 2.0, 4.0, 100.0])
    coefs = np.array([[0.0, 0.0], [1.0, 0.0], [1.5, -0.5], [2.0, -2.0], [3.0, -97.0]])
    display = PathDisplay(s, coefs, ["a", "b"], chosen=2.0).plot()
    assert display.ax_.get_xlim() == (0.0, 5.0)
    assert display.ax_.get_ylim()[0] > -5.0
    at_end = -2.0 - 95.0 / 96.0  # the line of b at s = 5
    assert display.labels_[0].xy == (5.0, pytest.approx(at_end))
    assert display.joints_.get_xdata().tolist() == [0.0, 1.0, 2.0, 4.0]
    whole = PathDisplay(s, coefs, ["a", "b"], chosen=2.0).plot(whole=True)
    assert whole.ax_.get_xlim() == (0.0, 100.0)
    log = PathDisplay(s, coefs, ["a", "b"], chosen=2.0).plot(whole=True, log=True)
    assert log.ax_.get_xscale() == "log"
    assert log.ax_.get_xlim() == (1.0, 100.0)
    with warnings.catch_warnings():
        warnings.simplefilter(
            "error", UserWarning
        )  # a mark at s = 0 would be infinitely far to the left
        warnings.simplefilter("ignore", DeprecationWarning)  # of what Matplotlib calls
        log.figure_.draw_without_rendering()
    assert PathDisplay(s, coefs, chosen=60.0).plot().ax_.get_xlim() == (0.0, 100.0)
