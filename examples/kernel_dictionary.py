"""
A non-linear model with few basis functions
===========================================

A non-linear 1-norm SVM: basis functions at training rows, of which few are kept.

Every training row x_i gives a feature k(x, x_i).  The 1-norm chooses among them, so that a
prediction costs a handful of kernel values, where a kernel SVM has a support vector for every row
that is not clearly on its side.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from anynorm import KernelDictionary, PolynomialDictionary, SparseSVC
from anynorm.datasets import make_skin


def chosen(model, grid, X, y):
    """The model with the parameters of the best cross-validated score, fitted to all rows."""
    return GridSearchCV(model, grid, cv=5).fit(X, y).best_estimator_


def compare(n_samples=200):
    """Test error and number of functions, where one class surrounds the other."""
    X, y = make_skin(n_samples, random_state=0)
    test, truth = make_skin(5000, random_state=1)
    Cs, gammas = [0.1, 1.0, 10.0], [0.1, 0.5, 2.0]
    classical = chosen(SVC(), {"C": Cs, "gamma": gammas}, X, y)
    found = {"SVC (scikit-learn)": (1 - classical.score(test, truth), classical.n_support_.sum())}
    for dictionary, grid in (
        (KernelDictionary(n_components=None), {"kerneldictionary__gamma": gammas}),
        (PolynomialDictionary(), {}),
    ):
        model = make_pipeline(dictionary, SparseSVC())
        model = chosen(model, {"sparsesvc__C": Cs, **grid}, X, y)
        name = f"{type(dictionary).__name__} + SparseSVC"
        found[name] = (1 - model.score(test, truth), np.count_nonzero(model[-1].coef_))
    return found


def show(results):
    """Print the table."""
    print(f"{'model':<34} {'test error':>10} {'functions':>10}")
    for name, (error, count) in results.items():
        print(f"{name:<34} {error:>10.3f} {count:>10}")


def draw(n_samples=200):
    """The boundary of the model with a kernel dictionary, and the rows whose kernels it uses."""
    X, y = make_skin(n_samples, random_state=0)
    dictionary = KernelDictionary(gamma=0.5, n_components=None)
    model = make_pipeline(dictionary, SparseSVC(C=1.0)).fit(X, y)
    used = X[model[0].component_indices_[model[-1].coef_[0] != 0]]
    ticks = np.linspace(-4, 4, 100)
    grid = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    scores = model.decision_function(grid).reshape(100, 100)
    _, ax = plt.subplots()
    ax.contour(ticks, ticks, scores, levels=[0], colors="0.3")
    ax.scatter(*X.T, c=y, cmap="coolwarm", s=12)
    ax.scatter(*used.T, facecolors="none", edgecolors="k", s=90)
    ax.set(title=f"boundary, and the {len(used)} rows in use of {n_samples}", aspect="equal")


if __name__ == "__main__":
    show(compare())
    draw()
    plt.show()
