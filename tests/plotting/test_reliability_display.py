"""Reliability curves of out-of-fold probabilities."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import brier_score_loss

from anynorm import SVCCV, LinearSVC, SparseSVCCV
from anynorm.plotting import ReliabilityDisplay

mpl.use("Agg")
X, Y = make_moons(200, noise=0.3, random_state=0)


def test_points_are_those_of_scikit_learn():
    model = SVCCV(Cs=[1.0], gammas=["scale"], calibration="sigmoid").fit(X, Y)
    display = ReliabilityDisplay.from_estimator(model, Y, n_bins=5)
    proba = model.oof_predict_proba_[:, 1]
    observed, predicted = calibration_curve(Y, proba, n_bins=5, strategy="quantile")
    assert np.allclose(display.curves[0].predicted, predicted)
    assert np.allclose(display.curves[0].observed, observed)
    assert display.brier == pytest.approx(brier_score_loss(Y, proba))
    assert display.ax_.get_title() == f"Brier score {display.brier:.3f}"
    assert display.curves[0].counts.sum() == 200


def test_a_curve_for_each_of_several_classes():
    flowers, kinds = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[kinds]
    model = SparseSVCCV(cv=3, calibration="isotonic").fit(flowers, names)
    display = ReliabilityDisplay.from_estimator(model, names)
    assert display.names == ["setosa", "versicolor", "virginica"]
    assert len(display.lines_) == 4


def test_errors_say_what_is_missing():
    with pytest.raises(ValueError, match="calibration='sigmoid'"):
        ReliabilityDisplay.from_estimator(LinearSVC().fit(X, Y), Y)
    model = SVCCV(Cs=[1.0], gammas=["scale"], cv=2, calibration="sigmoid").fit(X, Y)
    with pytest.raises(ValueError, match="3 labels"):
        ReliabilityDisplay.from_estimator(model, Y[:3])
