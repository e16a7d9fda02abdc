"""
Probabilities from a kernel SVM
===============================

Probabilities from a kernel SVM: its scores, calibrated by cross-validation.

An SVM's score says on which side a row lies, not how sure that is.  scikit-learn's
CalibratedClassifierCV learns the map from scores to probabilities on rows that were not fitted,
which works for any classifier with a decision function.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV, calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

from anynorm import SVC, LeastNormSVC


def overlapping(n, seed):
    """Two classes whose true probabilities are known, but of no simple shape."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    chance = expit(3 * np.sin(2 * X[:, 0]) + 2 * X[:, 1])
    return X, (rng.random(n) < chance).astype(int), chance


def compare(n=600):
    """Brier score, log loss and mean distance from the true probabilities, on new rows."""
    X, y, _ = overlapping(n, seed=0)
    test, truth, chance = overlapping(5000, seed=1)
    found = {}
    for model in (SVC(C=1.0), LeastNormSVC(C=1.0)):
        name = type(model).__name__
        guesses = {f"{name}, logistic of the score": expit(model.fit(X, y).decision_function(test))}
        for method in ("sigmoid", "isotonic"):
            calibrated = CalibratedClassifierCV(model, method=method, cv=5).fit(X, y)
            guesses[f"{name}, {method}"] = calibrated.predict_proba(test)[:, 1]
        for title, guess in guesses.items():
            distance = np.abs(guess - chance).mean()
            found[title] = brier_score_loss(truth, guess), log_loss(truth, guess), distance
    found["the true probabilities"] = brier_score_loss(truth, chance), log_loss(truth, chance), 0.0
    return found


def show(results):
    """Print the table."""
    print(f"{'probabilities of':<38} {'Brier':>7} {'log loss':>9} {'off by':>7}")
    for name, (brier, loss, distance) in results.items():
        print(f"{name:<38} {brier:>7.4f} {loss:>9.4f} {distance:>7.4f}")


def draw(n=600):
    """How often the class comes, among rows to which a probability was given."""
    X, y, _ = overlapping(n, seed=0)
    test, truth, _ = overlapping(5000, seed=1)
    model = SVC(C=1.0).fit(X, y)
    calibrated = CalibratedClassifierCV(SVC(C=1.0), cv=5).fit(X, y)
    guesses = {
        "logistic of the score": expit(model.decision_function(test)),
        "calibrated": calibrated.predict_proba(test)[:, 1],
    }
    _, ax = plt.subplots()
    for name, guess in guesses.items():
        share, mean = calibration_curve(truth, guess, n_bins=10)
        ax.plot(mean, share, marker="o", label=name)
    ax.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="as it should be")
    ax.set(xlabel="probability given", ylabel="share of the class", aspect="equal")
    ax.legend()


if __name__ == "__main__":
    show(compare())
    draw()
    plt.show()
