"""Probabilities: calibrations of out-of-fold scores, and those of the logistic loss."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import StratifiedKFold

from anynorm import SVC, SVCCV, LinearSVC, ReweightedSVCCV, SparseSVC, SparseSVCCV
from anynorm.estimators._probabilities import calibrated, calibration_of

FOLDS = StratifiedKFold(5, shuffle=True, random_state=0)
N = 500


def noisy(n_classes=2, n=2 * N):
    return make_classification(
        n, 6, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2, class_sep=0.7,
        random_state=1,
    )  # fmt: skip


MODELS = {
    "SVCCV": lambda **given: SVCCV(Cs=[1.0], gammas=["scale"], cv=FOLDS, **given),
    "SparseSVCCV": lambda **given: SparseSVCCV(cv=FOLDS, **given),
    "ReweightedSVCCV": lambda **given: ReweightedSVCCV(Cs=[0.1], max_rounds=2, cv=FOLDS, **given),
}


def reason(model):
    """What the error says that scikit-learn's own is raised from."""
    with pytest.raises(AttributeError, match="has no attribute 'predict_proba'") as caught:
        model.predict_proba(np.zeros((1, 6)))
    return str(caught.value.__cause__)


def calibration_error(y, proba, bins=10):
    """The mean difference between what was said and what came to pass, by bins of equal count."""
    order = np.array_split(np.argsort(proba, kind="stable"), bins)
    return np.mean([abs(proba[rows].mean() - y[rows].mean()) for rows in order])


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@pytest.mark.parametrize("name", MODELS)
def test_as_well_calibrated_as_scikit_learn_would_on_held_out_rows(name, method):
    X, y = noisy(n=10 * N)  # many to judge by: bins of 50 rows are off by 0.07 by chance alone
    model = MODELS[name](calibration=method).fit(X[:N], y[:N])
    if name == "SVCCV":
        inner = SVC(C=model.C_, gamma=model.gamma_)
    elif name == "SparseSVCCV":
        inner = SparseSVC(C=float(model.C_))
    else:
        inner = LinearSVC(C=0.1)
    peer = CalibratedClassifierCV(inner, method=method, cv=FOLDS, ensemble=False)
    theirs = peer.fit(X[:N], y[:N]).predict_proba(X[N:])[:, 1]
    ours = model.predict_proba(X[N:])[:, 1]
    labels = y[N:]
    assert calibration_error(labels, ours) <= calibration_error(labels, theirs) + 0.02
    assert brier_score_loss(labels, ours) <= brier_score_loss(labels, theirs) + 0.005
    assert calibration_error(labels, ours) < 0.1


def same_scores(method):
    """A model of three classes, scikit-learn's calibration of the same scores, and other rows."""
    X, y = noisy(3)
    model = SVCCV(Cs=[1.0], gammas=[0.2], cv=FOLDS, tol=1e-8, calibration=method)
    peer = CalibratedClassifierCV(
        SVC(C=1.0, gamma=0.2, tol=1e-8), method=method, cv=FOLDS, ensemble=False
    )
    return model.fit(X[:N], y[:N]), peer.fit(X[:N], y[:N]), X[N:], y[:N]


def test_the_same_sigmoids_as_scikit_learn_for_the_same_scores():
    model, peer, X, _ = same_scores("sigmoid")
    assert np.allclose(model.predict_proba(X), peer.predict_proba(X), atol=2e-3)


def test_the_same_steps_as_scikit_learn_between_platts_targets():
    model, peer, X, y = same_scores("isotonic")
    [calibrated_peer] = peer.calibrated_classifiers_
    scores = calibrated_peer.estimator.decision_function(X)
    own = np.column_stack(
        [fit.predict(f) for fit, f in zip(calibrated_peer.calibrators, scores.T, strict=True)]
    )
    inside = np.bincount(y)
    low, high = 1 / (len(y) - inside + 2), (inside + 1) / (inside + 2)
    between = low + (high - low) * own
    expected = between / between.sum(axis=1, keepdims=True)
    assert np.allclose(model.predict_proba(X), expected, atol=2e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_isotonic_steps_are_never_certain_and_scikit_learns_lose_by_it(n_classes):
    """The log loss was 0.570 against 0.535: both said 0 of rows that were there, by luck of few."""
    gains = []
    for seed in range(5):
        X, y = make_classification(
            6 * N, 6, n_informative=4, n_redundant=0, n_classes=n_classes, flip_y=0.2,
            class_sep=0.7, random_state=seed,
        )  # fmt: skip
        model = MODELS["SVCCV"](calibration="isotonic").fit(X[:N], y[:N])
        inner = SVC(C=model.C_, gamma=model.gamma_)
        peer = CalibratedClassifierCV(inner, method="isotonic", cv=FOLDS, ensemble=False)
        theirs = peer.fit(X[:N], y[:N]).predict_proba(X[N:])
        ours = model.predict_proba(X[N:])
        assert ours.min() > 0
        assert ours.max() < 1
        gains.append(log_loss(y[N:], theirs) - log_loss(y[N:], ours))
    # Steps depend on the last digits of scores: of a single draw either may be the luckier by 0.02.
    assert np.mean(gains) > 0.03


@pytest.mark.parametrize("name", MODELS)
def test_shapes_sums_and_logarithms(name):
    for n_classes in (2, 3):
        X, y = noisy(n_classes, 200)
        labels = np.array(["a", "b", "c"])[y]
        model = MODELS[name](calibration="sigmoid").fit(X, labels)
        proba = model.predict_proba(X)
        assert proba.shape == (200, n_classes)
        assert np.allclose(proba.sum(axis=1), 1.0)
        assert np.allclose(np.exp(model.predict_log_proba(X)), proba)
        assert model.oof_predict_proba_.shape == (200, n_classes)
        assert np.allclose(model.oof_predict_proba_.sum(axis=1), 1.0)
        assert log_loss(labels, model.oof_predict_proba_) < np.log(n_classes)


@pytest.mark.parametrize("name", MODELS)
def test_no_calibration_means_no_probabilities(name):
    X, y = noisy(2, 100)
    model = MODELS[name]().fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "calibration_")
    assert "calibration='sigmoid'" in reason(model)
    model.set_params(calibration="sigmoid")
    assert "Fit it again" in reason(model)


def test_a_calibration_of_rows_is_not_judged_by_them():
    """Isotonic steps through their own rows would say nothing but 0 and 1 for noise."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 2, 300)
    model = SVCCV(Cs=[1.0], gammas=["scale"], cv=FOLDS, calibration="isotonic").fit(X, y)
    own = calibrated(model.calibration_, model.oof_decision_function_[:, None])[:, 0]
    honest = model.oof_predict_proba_[:, 1]
    assert brier_score_loss(y, own) < 0.25 < brier_score_loss(y, honest)


def test_weights_are_repetitions_in_a_calibration():
    rng = np.random.default_rng(0)
    scores, codes = rng.normal(size=(80, 1)), rng.integers(0, 2, 80)
    weights = rng.integers(1, 4, 80)
    rows = np.repeat(np.arange(80), weights)
    for method in ("sigmoid", "isotonic"):
        one = calibration_of(method, scores, codes, weights.astype(float))
        other = calibration_of(method, scores[rows], codes[rows], None)
        assert np.allclose(calibrated(one, scores), calibrated(other, scores), atol=1e-4)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_logistic_loss_has_probabilities_of_its_own(n_classes):
    X, y = noisy(n_classes, 200)
    model = LinearSVC(C=1.0, loss="logistic", tol=1e-8).fit(X, y)
    scores = model.decision_function(X)
    if n_classes == 2:
        peer = LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
        assert np.allclose(model.predict_proba(X), peer.predict_proba(X), atol=1e-3)
        assert np.allclose(model.predict_proba(X)[:, 1], expit(scores))
    else:
        parts = expit(scores)
        assert np.allclose(model.predict_proba(X), parts / parts.sum(axis=1, keepdims=True))
    assert np.array_equal(model.predict_proba(X).argmax(axis=1), model.predict(X))
    assert SparseSVC(C=1.0, loss="logistic").fit(X, y).predict_proba(X).shape == (200, n_classes)


@pytest.mark.parametrize("Model", [LinearSVC, SparseSVC])
def test_other_losses_have_none(Model):
    X, y = noisy(2, 60)
    model = Model().fit(X, y)
    assert not hasattr(model, "predict_proba")
    assert "loss='logistic'" in reason(model)
