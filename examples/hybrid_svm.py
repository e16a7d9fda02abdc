"""
Zou's hybrid SVM, the 1-norm and the walk
=========================================

Zou's hybrid SVM beside the 1-norm SVM and the walk.

The hybrid SVM penalises the coefficients of the 1-norm SVM by how large they are in the 2-norm
solution w: ``u_j = |w_j|^-g``.  That is one re-weighting of the 1-norm problem; the walk re-weights
2-norm problems until they are the 1-norm problem.  Both let features fade that a plain 2-norm SVM
hardly uses, and both pay less for those that it uses much.

C is chosen by cross-validation for each method, on data where 6 of 200 features matter.

H. Zou: An improved 1-norm SVM for simultaneous classification and variable selection,
AISTATS 2007.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.model_selection import GridSearchCV

from anynorm import LinearSVC, ReweightedSVC, SparseSVC
from anynorm.datasets import make_relevant


class HybridSVC(ClassifierMixin, BaseEstimator):
    """The 1-norm SVM with the penalties |w|^-g of a 2-norm solution w."""

    def __init__(self, C=1.0, *, C_first=0.01, g=1.0):
        self.C = C
        self.C_first = C_first
        self.g = g

    def fit(self, X, y):
        first = np.abs(LinearSVC(C=self.C_first).fit(X, y).coef_[0])
        with np.errstate(divide="ignore"):  # a zero has an infinite penalty: it is left out
            weights = (first / first.max()) ** -self.g
        self.model_ = SparseSVC(C=self.C, penalty_weights=weights).fit(X, y)
        self.classes_, self.coef_ = self.model_.classes_, self.model_.coef_
        return self

    def predict(self, X):
        return self.model_.predict(X)


CS = np.logspace(-2, 1, 7)
METHODS = {
    "2-norm": LinearSVC(),
    "1-norm": SparseSVC(),
    "hybrid, g = 1": HybridSVC(),
    "hybrid, g = 2": HybridSVC(g=2.0),
    "walk, 3 rounds": ReweightedSVC(),
    "walk, 10 rounds": ReweightedSVC(n_rounds=10),
}


def compare(n_repeats=5, n_relevant=6, Cs=CS):
    """Test error and number of features of every method, averaged over draws of the data."""
    test, truth = make_relevant(5000, n_relevant=n_relevant, random_state=10_000)
    rows = {name: [] for name in METHODS}
    for seed in range(n_repeats):
        X, y = make_relevant(100, n_relevant=n_relevant, random_state=seed)
        for name, method in METHODS.items():
            model = GridSearchCV(method, {"C": Cs}, cv=5).fit(X, y).best_estimator_
            error = np.mean(model.predict(test) != truth)
            rows[name].append((error, np.count_nonzero(model.coef_)))
    return {name: np.mean(found, axis=0) for name, found in rows.items()}


def show(results):
    """Print the table."""
    print(f"{'method':<16} {'test error':>10} {'features':>9}")
    for name, (error, features) in results.items():
        print(f"{name:<16} {error:>10.3f} {features:>9.1f}")


def draw(results):
    """A point for each method: few features and small errors are at the lower left."""
    _, ax = plt.subplots()
    marks = iter("os^vDP")  # some methods lie close together
    for name, (error, features) in results.items():
        ax.plot(features, error, next(marks), markersize=8, label=name)
    ax.set(xlabel="features", ylabel="test error", xscale="log", ylim=(0, None))
    ax.legend()


if __name__ == "__main__":
    found = compare(n_repeats=1, Cs=CS[:5:2])  # compare() has seven values of C and five draws
    show(found)
    draw(found)
    plt.show()
