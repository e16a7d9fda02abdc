"""
A Lasso by SVM solvers, an SVM by Lasso solvers
===============================================

An SVM solved by Lasso solvers, and a Lasso solved by SVM solvers.

Both are the same problem (Jaggi 2014), so the tools of each world serve the other.  The way from
the SVM to the Lasso moves the data far away from the origin, which costs digits: the second table
shows how the error of plain solvers grows with the length of that translation.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, lars_path
from sklearn.svm import OneClassSVM

from anynorm import ConstrainedLasso, min_norm_point
from anynorm.reductions import lasso_to_svm, soft_margin, svm_to_lasso


def svm_by_lars(points):
    """The simplex point that LARS finds on the equivalent Lasso, and that Lasso."""
    # The known separating vector ties all columns, which LARS cannot take: use one beside it.
    lasso = svm_to_lasso(points, points.w * np.linspace(1, 1.2, points.d))
    path = lars_path(lasso.A, lasso.b, method="lasso")[2]
    sizes = np.abs(path).sum(axis=0)
    k = max(int(np.argmax(sizes >= 1)), 1) if (sizes >= 1).any() else len(sizes) - 1
    share = (1 - sizes[k - 1]) / (sizes[k] - sizes[k - 1])
    return _in_simplex(path[:, k - 1] + share * (path[:, k] - path[:, k - 1])), lasso


def svm_by_exact_path(points):
    """The same with our path, which takes the tie of all columns at its start."""
    lasso = svm_to_lasso(points)
    path = ConstrainedLasso(fit_intercept=False).path(lasso.A, lasso.b, radius_max=1.0)
    return _in_simplex(path.coef_at(radius=1.0)[0]), lasso


def svm_by_coordinate_descent(points):
    """The same with scikit-learn's Lasso, and a search for the penalty."""
    lasso = svm_to_lasso(points)
    A = np.asfortranarray(lasso.A)
    model = Lasso(fit_intercept=False, tol=1e-15, max_iter=20_000, warm_start=True)
    low, high = 0.0, float(np.abs(A.T @ lasso.b).max()) / len(A)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for _ in range(60):
            model.set_params(alpha=0.5 * (low + high)).fit(A, lasso.b)
            if np.abs(model.coef_).sum() > 1:
                low = model.alpha
            else:
                high = model.alpha
    return _in_simplex(model.coef_), lasso


def _in_simplex(x):
    return np.abs(x) / np.abs(x).sum()


def two_classes(n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 2, 1.0, -1.0)
    return rng.normal(size=(n, 3)) + 0.7 * y[:, None], y


def digits(sizes=(5, 10, 20, 40)):
    """For SVMs of n rows: the translation, the digits it may cost, and the solvers' errors."""
    found = {}
    for n in sizes:
        X, y = two_classes(n)
        points = soft_margin(X, y, C=1.0)
        best = min_norm_point(points).certificate.primal
        errors = []
        for solve in (svm_by_exact_path, svm_by_lars, svm_by_coordinate_descent):
            x, lasso = solve(points)
            errors.append(abs(float(np.sum(points.combine(x) ** 2)) / best - 1))
        found[n] = (lasso.translation, lasso.digits_lost, *errors)
    return found


def lasso_by_svm(seed=0):
    """The value of one Lasso, by libsvm, by the point of least norm and by ConstrainedLasso."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(60, 100))
    b = A[:, :4] @ [1.0, -1.0, 2.0, 0.5] + rng.normal(size=60)
    points = lasso_to_svm(A, b, radius=3.0)
    libsvm = OneClassSVM(kernel="precomputed", nu=1 / points.n, tol=1e-8).fit(points.kernel())
    z = np.zeros(points.n)
    z[libsvm.support_] = libsvm.dual_coef_[0]
    coefs = {
        "libsvm's OneClassSVM": points.to_lasso(z / z.sum()),
        "min_norm_point": points.to_lasso(min_norm_point(points).x),
        "ConstrainedLasso": ConstrainedLasso(3.0, fit_intercept=False).fit(A, b).coef_,
    }
    return {name: float(np.sum((A @ coef - b) ** 2)) for name, coef in coefs.items()}


def show(values, table):
    """Print both tables."""
    print("A Lasso by SVM solvers: ||A x - b||^2")
    for name, value in values.items():
        print(f"  {name:<22} {value:.8f}")
    print("An SVM by Lasso solvers: relative error of ||A x||^2")
    print(f"  {'rows':>5} {'D^2/sigma':>10} {'digits':>7} {'path':>9} {'LARS':>9} {'descent':>9}")
    for n, (length, lost, *errors) in table.items():
        print(f"  {n:>5} {length:>10.1f} {lost:>7.1f}", *(f"{error:>9.1e}" for error in errors))


def draw(table):
    """The errors of the Lasso solvers by the length of the translation."""
    length, _, *found = np.transpose(list(table.values()))
    _, ax = plt.subplots()
    names = ("our exact path", "scikit-learn's LARS", "coordinate descent")
    for name, errors in zip(names, found, strict=True):
        ax.semilogy(length, np.maximum(errors, 1e-17), marker="o", label=name)
    ax.set(xlabel="length of the translation", ylabel="relative error of the SVM's value")
    ax.legend()


if __name__ == "__main__":
    table = digits()
    show(lasso_by_svm(), table)
    draw(table)
    plt.show()
