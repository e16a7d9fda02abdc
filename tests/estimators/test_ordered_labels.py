"""Labels with an order of their classes: every fit keeps it, and is otherwise the same."""

import numpy as np
import pytest

from anynorm import SVC, LinearSVC, ReweightedSVC, sparse_svm_path
from anynorm.estimators._ordered_labels import OrderedLabels, places_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
Y = np.array(["a", "b", "c"])[np.digitize(X[:, 0] + 0.3 * RNG.normal(size=40), [-0.5, 0.5])]


@pytest.mark.parametrize("Model", [LinearSVC, ReweightedSVC, SVC])
@pytest.mark.parametrize("classes", [["c", "a", "b"], ["b", "a"]])
def test_a_fit_keeps_the_order(Model, classes):
    rows = np.isin(Y, classes)
    labels = OrderedLabels(Y[rows], classes)
    model = Model().fit(X[rows], labels)
    assert type(model.classes_) is np.ndarray
    assert model.classes_.tolist() == classes
    by_place = Model().fit(X[rows], places_of(labels, np.array(classes)))
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, by_place.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(
        model.predict(X), np.array(classes)[by_place.predict(X).astype(int)]
    )


def test_a_part_has_the_order_without_the_classes_that_it_lacks():
    labels = OrderedLabels(Y, ["c", "b", "a"])
    part = labels[np.flatnonzero(Y != "b")]
    assert LinearSVC().fit(X[Y != "b"], part).classes_.tolist() == ["c", "a"]


def test_a_path_speaks_for_the_later_class():
    two = Y != "c"
    path = sparse_svm_path(X[two], OrderedLabels(Y[two], ["b", "a"]))
    other = sparse_svm_path(X[two], Y[two])
    assert path.classes_.tolist() == ["b", "a"]
    np.testing.assert_allclose(path.coefs.toarray(), -other.coefs.toarray(), atol=1e-9)
